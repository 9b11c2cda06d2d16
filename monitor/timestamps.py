"""Event times: RFC 3339 text and epoch milliseconds to microseconds since the epoch, a whole column at a time."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]

NO_TIME = -(2**62)
"""An event that carries no time, in a column of times."""
BAD_TIME = NO_TIME - 1
"""An event whose time cannot be read."""

_SHORTEST = len("2026-11-18T09:00:00Z")
_LONGEST = len("2026-11-18T09:00:00.123456789012+00:00")
_OFFSET = len("+00:00")
_FIRST_MS = -62_167_219_200_000  # year 0, the first that RFC 3339 can write
_LAST_MS = 253_402_300_799_999  # the end of year 9999, the last one


def from_epoch_ms(milliseconds: NDArray[np.float64]) -> Times:
    """Epoch milliseconds, possibly with a fraction; `BAD_TIME` outside the years 0 to 9999."""
    known = (milliseconds >= _FIRST_MS) & (milliseconds <= _LAST_MS)
    times = np.full(milliseconds.size, BAD_TIME, dtype=np.int64)
    # Whole and fractional milliseconds apart: their product with 1000 would lose microseconds to rounding.
    whole = np.floor(milliseconds[known])
    times[known] = whole.astype(np.int64) * 1000 + np.rint((milliseconds[known] - whole) * 1000).astype(np.int64)
    return times


def from_rfc3339(texts: Sequence[str]) -> Times:
    """RFC 3339 text, section 5.6, digits after the microsecond dropped; `BAD_TIME` where it is anything else.

    A leap second (:60) is the first second of the next minute, as in POSIX time. An offset is required.
    """
    lengths = set(map(len, texts))
    if len(lengths) == 1:
        return _same_length(texts, lengths.pop())
    times = np.empty(len(texts), dtype=np.int64)
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    for length in lengths:
        where = np.flatnonzero(sizes == length)
        times[where] = _same_length([texts[row] for row in where.tolist()], length)
    return times


def _same_length(texts: Sequence[str], length: int) -> Times:
    if not _SHORTEST <= length <= _LONGEST:
        return np.full(len(texts), BAD_TIME, dtype=np.int64)
    # "replace" keeps one byte per character, and a question mark fits nowhere in a time.
    rows = np.frombuffer("".join(texts).encode("ascii", "replace"), np.uint8).reshape(-1, length)
    characters = np.ascontiguousarray(rows.T)  # one row per position: whole-row operations, several times faster
    zulu = (characters[-1] | 32) == ord("z")
    if zulu.all():
        return _local(characters[:-1])
    times = np.full(len(texts), BAD_TIME, dtype=np.int64)
    times[zulu] = _local(characters[:-1, zulu])
    if length >= _SHORTEST + _OFFSET - 1:
        times[~zulu] = _with_offset(characters[:, ~zulu])
    return times


def _with_offset(characters: NDArray[np.uint8]) -> Times:
    """Times that end in +hh:mm or -hh:mm."""
    sign, colon = characters[-6], characters[-3]
    hours, minutes = _number(characters[-5:-3]), _number(characters[-2:])
    fits = ((sign == ord("+")) | (sign == ord("-"))) & (colon == ord(":"))
    fits &= (hours >= 0) & (hours <= 23) & (minutes >= 0) & (minutes <= 59)
    times = _local(characters[:-_OFFSET])
    east = np.where(sign == ord("-"), -1, 1) * (hours * 60 + minutes) * 60_000_000
    return np.where(fits & (times != BAD_TIME), times - east, BAD_TIME)


def _number(digits: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Two digits as a number, -1 where they are not digits."""
    values = digits.astype(np.int64) - ord("0")
    known = ((values >= 0) & (values <= 9)).all(axis=0)
    return np.where(known, values[0] * 10 + values[1], -1)


def _local(characters: NDArray[np.uint8]) -> Times:
    """Times without their offset: YYYY-MM-DDThh:mm:ss, optionally with a fraction of any length."""
    length = characters.shape[0]
    if length == _SHORTEST:  # a dot without a digit after it
        return np.full(characters.shape[1], BAD_TIME, dtype=np.int64)
    lowest, span, weights = _layout(length)
    values = characters - lowest  # wraps below `lowest`, so that one comparison finds what does not fit
    shaped = values <= span
    shaped[10] = ((characters[10] | 32) == ord("t")) | (characters[10] == ord(" "))
    # Whole numbers far below 2**53: the matrix product is exact.
    year, month, day, hour, minute, second, micros = (weights @ values.astype(np.float64)).astype(np.int64)
    fits = shaped.all(axis=0) & (month >= 1) & (month <= 12) & (day >= 1)
    fits &= (hour <= 23) & (minute <= 59) & (second <= 60)
    months = np.where(fits, year * 12 + month - 1 - 1970 * 12, 0)
    first = _month_start(months)
    fits &= day <= _month_start(months + 1) - first
    seconds = (first + day - 1) * 86_400 + hour * 3600 + minute * 60 + second
    return np.where(fits, seconds * 1_000_000 + micros, BAD_TIME)


def _layout(length: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float64]]:
    """Per position the lowest character and how many may follow it, and the weight of its digit in each part."""
    template = np.frombuffer(b"0000-00-00T00:00:00.".ljust(length, b"0")[:length], np.uint8)[:, None]
    span = np.where(template == ord("0"), 9, 0).astype(np.uint8)
    weights = np.zeros((7, length))  # year, month, day, hour, minute, second, microsecond
    for part, (start, stop) in enumerate(((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))):
        weights[part, start:stop] = 10.0 ** np.arange(stop - start - 1, -1, -1)
    fraction = min(6, max(0, length - 20))
    weights[6, 20 : 20 + fraction] = 10.0 ** np.arange(5, 5 - fraction, -1)
    return template, span, weights


def _month_start(months: NDArray[np.int64]) -> NDArray[np.int64]:
    """Days from the epoch to the first of the month that is `months` after January 1970."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)

"""Event times: RFC 3339 text and epoch milliseconds to microseconds since the epoch, a whole column at a time."""

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags

Times = NDArray[np.int64]
Characters = NDArray[np.uint8]

NO_TIME = -(2**62)
"""An event that carries no time, in a column of times."""
BAD_TIME = NO_TIME - 1
"""An event whose time cannot be read."""

_SHORTEST = len("2026-11-18T09:00:00Z")
_LONGEST = len("2026-11-18T09:00:00.123456789012+00:00")
_OFFSET = len("+00:00")
_LINE_FEED = ord("\n")
_MINUTE = len("2026-11-18T09:00")  # two words of eight bytes
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


def from_rfc3339(lines: str) -> Times:
    """RFC 3339 text, section 5.6, one time a line; `BAD_TIME` where it is anything else.

    Digits after the microsecond are dropped. A leap second (:60) is the first second of the next minute, as in POSIX
    time. An offset is required.
    """
    # "replace" keeps one byte per character, and a question mark fits nowhere in a time.
    text = np.frombuffer(f"{lines}\n".encode("ascii", "replace"), np.uint8)
    width = lines.find("\n") + 1 or text.size
    if text.size % width == 0:
        rows = text.reshape(-1, width)
        if (rows[:, -1] == _LINE_FEED).all() and np.count_nonzero(text == _LINE_FEED) == rows.shape[0]:
            return _same_length(rows[:, :-1])
    texts = lines.split("\n")
    times = np.empty(len(texts), dtype=np.int64)
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    for length in set(sizes.tolist()):
        where = np.flatnonzero(sizes == length)
        joined = "".join([texts[row] for row in where.tolist()])
        rows = np.frombuffer(joined.encode("ascii", "replace"), np.uint8).reshape(where.size, length)
        times[where] = _same_length(rows)
    return times


def _same_length(rows: Characters) -> Times:
    """Times of which each has its own row of characters."""
    times = np.full(rows.shape[0], BAD_TIME, dtype=np.int64)
    if not _SHORTEST <= rows.shape[1] <= _LONGEST:
        return times
    zulu = (rows[:, -1] | 32) == ord("z")
    if zulu.all():
        return _local(rows[:, :-1])
    if zulu.any():
        times[zulu] = _local(rows[zulu, :-1])
    if rows.shape[1] >= _SHORTEST + _OFFSET - 1:
        times[~zulu] = _with_offset(rows[~zulu])
    return times


def _with_offset(rows: Characters) -> Times:
    """Times that end in +hh:mm or -hh:mm."""
    sign = rows[:, -_OFFSET]
    shaped, (hours, minutes) = _read(rows[:, 1 - _OFFSET :], b"00:00", (0, 2), (3, 5))
    fits = shaped & ((sign == ord("+")) | (sign == ord("-"))) & (hours <= 23) & (minutes <= 59)
    times = _local(rows[:, :-_OFFSET])
    east = np.where(sign == ord("-"), -1, 1) * (hours * 60 + minutes) * 60_000_000
    return np.where(fits & (times != BAD_TIME), times - east, BAD_TIME)


def _local(rows: Characters) -> Times:
    """Times without their offset: YYYY-MM-DDThh:mm:ss, optionally with a fraction of any length."""
    digits = rows.shape[1] - _SHORTEST  # of the fraction, after its dot
    if digits == 0:
        return np.full(rows.shape[0], BAD_TIME, dtype=np.int64)
    template = b":00" if digits < 0 else b":00." + b"0" * digits
    shaped, (seconds, fraction) = _read(rows[:, _MINUTE:], template, (1, 3), (4, 4 + min(6, max(0, digits))))
    micros = seconds * 1_000_000 + fraction * 10 ** (6 - min(6, max(0, digits)))
    minutes = _minutes(rows[:, :_MINUTE])
    return np.where(shaped & (seconds <= 60) & (minutes != BAD_TIME), minutes + micros, BAD_TIME)


def _minutes(rows: Characters) -> Times:
    """YYYY-MM-DDThh:mm in microseconds. Neighbours mostly share the minute: each run of equals is read once."""
    words = rows.view(np.uint64)
    day, time = words[:, 0], words[:, 1]
    starts = np.concatenate([[0], np.flatnonzero((day[1:] != day[:-1]) | (time[1:] != time[:-1])) + 1])
    runs = np.array(rows[starts])
    runs[:, 10][((runs[:, 10] | 32) == ord("t")) | (runs[:, 10] == ord(" "))] = ord("T")
    shaped, parts = _read(runs, b"0000-00-00T00:00", (0, 4), (5, 7), (8, 10), (11, 13), (14, 16))
    year, month, day, hour, minute = parts
    fits = shaped & (month >= 1) & (month <= 12) & (day >= 1) & (hour <= 23) & (minute <= 59)
    months = np.where(fits, year * 12 + month - 1 - 1970 * 12, 0)
    start = _month_start(months)
    fits &= day <= _month_start(months + 1) - start
    times = np.where(fits, (((start + day - 1) * 24 + hour) * 60 + minute) * 60_000_000, BAD_TIME)
    return np.repeat(times, np.diff(starts, append=rows.shape[0]))


def _read(rows: Characters, template: bytes, *parts: tuple[int, int]) -> tuple[Flags, NDArray[np.int64]]:
    """Whether each row has digits exactly where the template has zeros, and the numbers that some of them make."""
    expected = np.frombuffer(template, np.uint8)[:, None]
    span = np.where(expected == ord("0"), 9, 0).astype(np.uint8)
    values = np.ascontiguousarray(rows.T) - expected  # wraps below, so that one comparison finds what does not fit
    weights = np.zeros((len(parts), len(template)), dtype=np.float32)
    for row, (start, stop) in enumerate(parts):
        weights[row, start:stop] = 10.0 ** np.arange(stop - start - 1, -1, -1)
    # Whole numbers of at most six digits, below 2**24: the matrix product is exact.
    shaped: Flags = np.all(values <= span, axis=0)
    return shaped, (weights @ values.astype(np.float32)).astype(np.int64)


def _month_start(months: NDArray[np.int64]) -> NDArray[np.int64]:
    """Days from the epoch to the first of the month that is `months` after January 1970."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)

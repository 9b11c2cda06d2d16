"""Event times: RFC 3339 text and epoch milliseconds to microseconds since the epoch, a whole column at a time.

What could be another unit, or lacks its offset, is not guessed at: it is a time only where the stream says how it
writes times (`TimeReading`), and otherwise a value that says what it probably is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Flags
from monitor.errors import InputError

Times = NDArray[np.int64]
Characters = NDArray[np.uint8]

NO_TIME = -(2**62)
"""An event that carries no time, in a column of times."""
BAD_TIME = NO_TIME - 1
"""An event whose time cannot be read."""
LIKELY_SECONDS, LIKELY_MICROSECONDS, LIKELY_NANOSECONDS, WITHOUT_OFFSET = (NO_TIME - 2 - k for k in range(4))
"""The same, where it would be a time of these years in another unit, or in some zone. All are below `NO_TIME`."""

PER_SECOND = {"seconds": 1, "milliseconds": 1_000, "microseconds": 1_000_000, "nanoseconds": 1_000_000_000}

_SHORTEST = len("2026-11-18T09:00:00Z")
_LONGEST = len("2026-11-18T09:00:00.123456789012+00:00")
_OFFSET = len("+00:00")
_LINE_FEED = ord("\n")
_MINUTE = len("2026-11-18T09:00")  # two words of eight bytes
_QUARTER = 900_000_000  # of an hour: zones change their offset at none but these
_FIRST = -62_167_219_200  # year 0, the first that RFC 3339 can write, in seconds
_LAST = 253_402_300_799.999  # the end of year 9999, the last one
_FIRST_WITH_ZONE = -62_135_596_800_000_000  # year 1, the first of Python's calendar, in microseconds
_YEAR_2000, _YEAR_2100 = 946_684_800, 4_102_444_800


@dataclass(frozen=True, slots=True)
class TimeReading:
    """How a stream writes times that do not say it themselves. By default: milliseconds since the epoch, none of them
    before 2000 (it would be a mistaken unit), and texts with an offset."""

    per_second: int | None = None
    """Of numbers; None for milliseconds that are looked at twice."""
    zone: ZoneInfo | None = None
    """Of texts without an offset. An hour that comes twice in autumn is taken as the first."""

    @classmethod
    def of(cls, said: str) -> Self:
        """A reading from a setting: a unit of numbers, "utc", or the name of a zone."""
        if said in PER_SECOND:
            return cls(per_second=PER_SECOND[said])
        if not said:
            return cls()
        try:
            return cls(zone=ZoneInfo("UTC" if said.lower() == "utc" else said))
        except (KeyError, ValueError, OSError) as error:  # what zoneinfo makes of a name that is none, or is a folder
            raise _no_reading(said) from error


def _no_reading(said: str) -> InputError:
    return InputError(
        f'times: want one of {", ".join(PER_SECOND)} for numbers, or "utc" or a zone such as "Europe/Brussels" for '
        f"texts without an offset, got {said!r}"
    )


AS_THEY_SAY = TimeReading()


def from_values(stamps: Sequence[Any], recorded: Times | None, reading: TimeReading = AS_THEY_SAY) -> Times:
    """Texts and floats as they come; what is neither has the time of its record, where that is known."""
    times = np.full(len(stamps), NO_TIME, dtype=np.int64)
    if recorded is not None:
        times = np.where(recorded < 0, NO_TIME, recorded)  # brokers write -1 for "none"
    texts = [row for row, stamp in enumerate(stamps) if isinstance(stamp, str)]
    numbers = [row for row, stamp in enumerate(stamps) if isinstance(stamp, float)]
    if texts:
        broken = [row for row in texts if "\n" in stamps[row]]
        lines = "\n".join("" if "\n" in stamps[row] else stamps[row] for row in texts)
        times[texts] = from_rfc3339(lines, reading.zone)
        times[broken] = BAD_TIME
    if numbers:
        times[numbers] = from_epoch(np.array([stamps[row] for row in numbers]), reading)
    return times


def from_epoch(numbers: NDArray[np.float64], reading: TimeReading = AS_THEY_SAY) -> Times:
    """Numbers since the epoch, possibly with a fraction; not a time outside the years 0 to 9999."""
    if reading.per_second is not None:
        return _from_units(numbers, reading.per_second)
    times = _from_units(numbers, PER_SECOND["milliseconds"])
    doubtful = times < _YEAR_2000 * 1_000_000
    times[doubtful] = BAD_TIME
    for code, unit in (
        (LIKELY_SECONDS, "seconds"),
        (LIKELY_MICROSECONDS, "microseconds"),
        (LIKELY_NANOSECONDS, "nanoseconds"),
    ):
        seconds = numbers / PER_SECOND[unit]
        times[doubtful & (seconds >= _YEAR_2000) & (seconds < _YEAR_2100)] = code
    return times


def _from_units(numbers: NDArray[np.float64], per_second: int) -> Times:
    known = (numbers >= _FIRST * per_second) & (numbers <= _LAST * per_second)
    times = np.full(numbers.size, BAD_TIME, dtype=np.int64)
    # Whole seconds apart: the product of all with a power of ten would lose microseconds to rounding.
    whole = np.floor(numbers[known] / per_second)
    rest = (numbers[known] - whole * per_second) * (1_000_000 / per_second)
    times[known] = whole.astype(np.int64) * 1_000_000 + np.rint(rest).astype(np.int64)
    return times


def from_rfc3339(lines: str, zone: ZoneInfo | None = None) -> Times:
    """RFC 3339 text, section 5.6, one time a line; `BAD_TIME` where it is anything else.

    Digits after the microsecond are dropped. A leap second (:60) is the first second of the next minute, as in POSIX
    time. A time without an offset is one of the `zone`, and `WITHOUT_OFFSET` where none is given.
    """
    # "replace" keeps one byte per character, and a question mark fits nowhere in a time.
    text = np.frombuffer(f"{lines}\n".encode("ascii", "replace"), np.uint8)
    width = lines.find("\n") + 1 or text.size
    if text.size % width == 0:
        rows = text.reshape(-1, width)
        if (rows[:, -1] == _LINE_FEED).all() and np.count_nonzero(text == _LINE_FEED) == rows.shape[0]:
            return _same_length(rows[:, :-1], zone)
    texts = lines.split("\n")
    times = np.empty(len(texts), dtype=np.int64)
    sizes = np.fromiter(map(len, texts), np.int64, len(texts))
    for length in set(sizes.tolist()):
        where = np.flatnonzero(sizes == length)
        joined = "".join([texts[row] for row in where.tolist()])
        rows = np.frombuffer(joined.encode("ascii", "replace"), np.uint8).reshape(where.size, length)
        times[where] = _same_length(rows, zone)
    return times


def _same_length(rows: Characters, zone: ZoneInfo | None) -> Times:
    """Times of which each has its own row of characters."""
    if not _SHORTEST - 1 <= rows.shape[1] <= _LONGEST:
        return np.full(rows.shape[0], BAD_TIME, dtype=np.int64)
    times = _complete(rows)
    if (bare := times == BAD_TIME).any():
        times[bare] = _of_zone(_local(rows[bare]), zone)
    return times


def _of_zone(local: Times, zone: ZoneInfo | None) -> Times:
    """Local times as times; neighbours mostly share the quarter of an hour, and with it the offset."""
    usable = local >= _FIRST_WITH_ZONE
    if zone is None:
        return np.where(usable, WITHOUT_OFFSET, BAD_TIME)
    times = np.full(local.size, BAD_TIME, dtype=np.int64)
    quarters, inverse = np.unique(local[usable] // _QUARTER, return_inverse=True)
    times[usable] = local[usable] - np.array([_offset(int(q), zone) for q in quarters], dtype=np.int64)[inverse]
    return times


def _offset(quarter: int, zone: ZoneInfo) -> int:
    """Microseconds that a zone is ahead of UTC at a quarter of an hour of its own."""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=15 * quarter)
    ahead = moment.replace(tzinfo=zone).utcoffset()
    return 0 if ahead is None else ahead // timedelta(microseconds=1)


def _complete(rows: Characters) -> Times:
    """The texts that say their offset."""
    times = np.full(rows.shape[0], BAD_TIME, dtype=np.int64)
    if rows.shape[1] < _SHORTEST:
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

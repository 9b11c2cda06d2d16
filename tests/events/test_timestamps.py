"""Event times, against Python's own datetime one by one."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitor.errors import InputError
from monitor.events.timestamps import (
    BAD_TIME,
    LIKELY_MICROSECONDS,
    LIKELY_NANOSECONDS,
    LIKELY_SECONDS,
    WITHOUT_OFFSET,
    TimeReading,
    from_epoch,
    from_rfc3339,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MILLISECONDS = TimeReading.of("milliseconds")
DAYLIGHT_SAVING = [EPOCH.replace(year=year, tzinfo=None) for year in (1901, 2090)]
ZONES = ["UTC", "Europe/Brussels", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"]

SHAPE = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:)(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d)|(?P<bare>))", flags=re.ASCII
)


def slowly(text: str) -> int:
    """RFC 3339 by the letter, one text at a time."""
    match = SHAPE.fullmatch(text)
    if match is None or len(text) > 38:
        return BAD_TIME
    date, clock, second, fraction, sign, hours, minutes, bare = match.groups()
    if int(second) > 60 or int(hours or 0) > 23 or int(minutes or 0) > 59:
        return BAD_TIME
    try:
        whole = datetime.fromisoformat(f"{date}T{clock}00+00:00")
    except ValueError:
        return BAD_TIME
    east = (-1 if sign == "-" else 1) * (int(hours or 0) * 60 + int(minutes or 0)) * 60_000_000
    micros = int(((fraction or "") + "000000")[:6])
    if bare is not None:
        return WITHOUT_OFFSET
    return (whole - EPOCH) // MICROSECOND + int(second) * 1_000_000 + micros - east


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Mostly times in every spelling, some of them impossible, some spoiled by one character."""
    number = st.integers
    text = (
        f"{draw(number(1, 9999)):04}-{draw(number(0, 13)):02}-{draw(number(0, 32)):02}"
        f"{draw(st.sampled_from('TTTt '))}{draw(number(0, 24)):02}:{draw(number(0, 60)):02}:{draw(number(0, 61)):02}"
        f"{draw(st.sampled_from(['', '', '.1', '.123', '.123456', '.999999999', '.']))}"
        f"{draw(st.sampled_from(['Z', 'Z', 'z', '+00:00', '-23:59', '+05:30', '+24:00', '', '+0530']))}"
    )
    if draw(number(0, 4)) == 0:
        place = draw(number(0, len(text)))
        text = text[:place] + draw(st.sampled_from(["", "é", "\u0663", "9", "-", "\n", " "])) + text[place + 1 :]
    return text


@given(st.lists((texts() | st.text(max_size=45)).map(lambda text: text.replace("\n", "?")), min_size=1, max_size=20))
@example(["2024-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2000-02-29T00:00:00Z"])
@example(["2016-12-31T23:59:60Z", "1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_text_means_what_it_means_to_datetime(some: list[str]) -> None:
    assert from_rfc3339("\n".join(some)).tolist() == [slowly(text) for text in some]


def test_a_leap_second_is_the_first_of_the_next_minute() -> None:
    assert from_rfc3339("2016-12-31T23:59:60Z").tolist() == from_rfc3339("2017-01-01T00:00:00Z").tolist()


def test_an_offset_is_required_or_a_zone() -> None:
    text = "2026-11-18T09:00:00"
    assert from_rfc3339(text).tolist() == [WITHOUT_OFFSET]
    assert from_rfc3339(text, ZoneInfo("UTC")).tolist() == from_rfc3339(f"{text}Z").tolist()


@given(
    st.lists(st.datetimes(*DAYLIGHT_SAVING), min_size=1, max_size=20),
    st.sampled_from(ZONES),
)
def test_local_times_are_those_of_the_zone(some: list[datetime], zone: str) -> None:
    """Also in the hour that comes twice (the first of them), and in the one that does not come at all."""
    local = ZoneInfo(zone)
    expected = [(moment.replace(tzinfo=local) - EPOCH) // MICROSECOND for moment in some]
    assert from_rfc3339("\n".join(moment.isoformat(" ") for moment in some), local).tolist() == expected


@pytest.mark.parametrize("said", ["minutes", "Mars/Base", "Europe", "../etc/passwd", "s"])
def test_a_reading_that_is_none_is_refused_with_those_that_are(said: str) -> None:
    with pytest.raises(InputError, match=r"want one of seconds, milliseconds, .* or a zone such as"):
        TimeReading.of(said)


@pytest.mark.parametrize(
    ("number", "likely"),
    [
        (1_790_000_000.0, LIKELY_SECONDS),
        (946_684_800.0, LIKELY_SECONDS),
        (1.79e15, LIKELY_MICROSECONDS),
        (1.79e18, LIKELY_NANOSECONDS),
        (12_345.0, BAD_TIME),
        (-1.0, BAD_TIME),
        (946_684_799_999.0, BAD_TIME),
    ],
)
def test_numbers_that_are_no_milliseconds_of_these_years_say_what_they_may_be(number: float, likely: int) -> None:
    assert from_epoch(np.array([number, 1_790_000_000_000.0])).tolist() == [likely, 1_790_000_000_000_000]


@pytest.mark.parametrize("unit", ["seconds", "milliseconds", "microseconds", "nanoseconds"])
def test_a_unit_that_is_said_is_believed(unit: str) -> None:
    reading = TimeReading.of(unit)
    assert reading.per_second is not None
    numbers = np.array([1_790_000_000.25, 0.0, 3_600.0]) * reading.per_second
    assert from_epoch(numbers, reading).tolist() == [1_790_000_000_250_000, 0, 3_600_000_000]


@given(st.integers(-62_167_219_200_000, 253_402_300_799_999))
def test_whole_milliseconds_are_exact(milliseconds: int) -> None:
    assert from_epoch(np.array([float(milliseconds)]), MILLISECONDS).tolist() == [milliseconds * 1000]


def test_a_fraction_of_a_millisecond_is_rounded_to_the_microsecond() -> None:
    assert from_epoch(np.array([1_794_992_400_000.25, 0.0004, -0.001]), MILLISECONDS).tolist() == [
        1_794_992_400_000_250,
        0,
        -1,
    ]


@pytest.mark.parametrize("milliseconds", [1e300, -1e300, np.nan, np.inf, 253_402_300_800_000, -62_167_219_200_001])
def test_a_number_that_no_calendar_holds_is_no_time(milliseconds: float) -> None:
    assert from_epoch(np.array([milliseconds]), MILLISECONDS).tolist() == [BAD_TIME]

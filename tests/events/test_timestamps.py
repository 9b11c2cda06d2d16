"""Event times, against Python's own datetime one by one."""

import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from monitor.events.timestamps import BAD_TIME, from_epoch_ms, from_rfc3339

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

SHAPE = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:)(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", flags=re.ASCII)


def slowly(text: str) -> int:
    """RFC 3339 by the letter, one text at a time."""
    match = SHAPE.fullmatch(text)
    if match is None or len(text) > 38:
        return BAD_TIME
    date, clock, second, fraction, sign, hours, minutes = match.groups()
    if int(second) > 60 or int(hours or 0) > 23 or int(minutes or 0) > 59:
        return BAD_TIME
    try:
        whole = datetime.fromisoformat(f"{date}T{clock}00+00:00")
    except ValueError:
        return BAD_TIME
    east = (-1 if sign == "-" else 1) * (int(hours or 0) * 60 + int(minutes or 0)) * 60_000_000
    micros = int(((fraction or "") + "000000")[:6])
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


def test_an_offset_is_required() -> None:
    assert from_rfc3339("2026-11-18T09:00:00").tolist() == [BAD_TIME]


@given(st.integers(-62_167_219_200_000, 253_402_300_799_999))
def test_whole_milliseconds_are_exact(milliseconds: int) -> None:
    assert from_epoch_ms(np.array([float(milliseconds)])).tolist() == [milliseconds * 1000]


def test_a_fraction_of_a_millisecond_is_rounded_to_the_microsecond() -> None:
    assert from_epoch_ms(np.array([1_794_992_400_000.25, 0.0004, -0.001])).tolist() == [1_794_992_400_000_250, 0, -1]


@pytest.mark.parametrize("milliseconds", [1e300, -1e300, np.nan, np.inf, 253_402_300_800_000, -62_167_219_200_001])
def test_a_number_that_no_calendar_holds_is_no_time(milliseconds: float) -> None:
    assert from_epoch_ms(np.array([milliseconds])).tolist() == [BAD_TIME]

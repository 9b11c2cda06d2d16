"""The page of all streams: how many have moved, the worst first, on one axis; and addresses that say what is seen."""

import re
import time
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException

from monitor.observers import Snapshot
from monitor.web import page
from monitor.web.page.choice import LASTING, SHOWN, SORTED, Choice, chosen, written
from monitor.web.page.timeline import CELLS, Range, strip
from tests.web.fleet import NOW, TROUBLES, fleet
from tests.web.made_up import MINUTE


@pytest.fixture(scope="module")
def sixty() -> Snapshot:
    return fleet(60).snapshot


def names(html: str) -> list[str]:
    return re.findall(r'<a href="/streams/([^"?]+)" title', html)


def seen(snapshot: Snapshot, **what: str) -> str:
    return page.document(snapshot, NOW / 1e6, Choice(**what))


def test_it_says_how_many_have_moved_and_are_not_watched_and_shows_the_worst_first(sixty: Snapshot) -> None:
    html = seen(sixty)
    assert "7 of 60 moved, 6 in alarm" in html
    assert "2 not watched" in html
    assert "<title>(7) Shiftwatch</title>" in html
    listed = names(html)
    assert len(listed) == 60
    assert set(listed[:9]) == set(TROUBLES)
    assert listed[0] == "email-intent-fr", "what no known shift explains is the gravest"
    assert listed[6] == "spam-be", "one window alone is no alarm"


def test_what_has_no_window_any_more_or_none_yet_is_not_watched_and_says_so(sixty: Snapshot) -> None:
    html = seen(sixty, show="not watched")
    assert sorted(names(html)) == ["parcel-delay-uk", "returns-de"]
    assert "no window for 10 h" in html
    assert "waiting for its first window" in html


def test_streams_can_be_sought_and_sorted(sixty: Snapshot) -> None:
    assert names(seen(sixty, search="FRAUD", sort="name"))[1:] == [
        f"card-fraud-{at}" for at in ("de", "fr", "nl", "uk")
    ]
    assert "No stream is like that" in seen(sixty, search="nothing")
    assert names(seen(sixty, show="moved", sort="name")) == sorted(names(seen(sixty, show="moved")))


def test_a_name_from_an_address_stays_text(sixty: Snapshot) -> None:
    assert "<script>alert" not in seen(sixty, search="<script>alert(1)</script>")


def test_sixty_streams_of_a_thousand_windows_are_shown_in_a_tenth_of_a_second() -> None:
    snapshot = fleet(1_000).snapshot
    seen(snapshot)
    for last in ("", "all"):
        started = time.process_time()
        html = seen(snapshot, last=last)
        assert time.process_time() - started < 0.1
        assert len(html) < 100_000


def test_a_strip_leaves_empty_what_has_no_window_and_shows_the_gravest_of_many(sixty: Snapshot) -> None:
    readings = sixty.tracks["parcel-delay-uk"][""].readings
    end = readings[-1].key.end
    gap = strip(readings[-10:], Range(end - 60 * 60 * MINUTE, end + 60 * 60 * MINUTE))
    assert [mark.path for mark in gap.marks] != []
    edges = [float(x) for mark in gap.marks for x in re.findall(r"[MH]([\d.]+)", mark.path)]
    assert max(edges) <= 500 + 1000 / CELLS
    whole = strip(readings, Range(readings[0].key.start, end))
    moved = {mark.style for mark in whole.marks if mark.style != "v-stable"}
    assert moved == {f"v-{reading.verdict}" for reading in readings if reading.verdict.moved}


@pytest.mark.parametrize("hours", [0.02, 1, 6, 24, 24 * 7, 24 * 365])
def test_an_axis_has_a_few_round_times(hours: float) -> None:
    ticks = Range(NOW, NOW + int(hours * 60 * MINUTE)).ticks
    assert 1 <= len(ticks) <= 7
    assert all(0 <= float(tick.at.rstrip("%")) <= 100 for tick in ticks)


times = st.none() | st.integers(min_value=-(10**15), max_value=10**16)


@given(
    st.builds(
        Choice,
        stream=st.text(min_size=1),
        segment=st.text(),
        since=times,
        until=times,
        last=st.sampled_from(["", "all", *LASTING]),
        named=st.text(),
        show=st.sampled_from(SHOWN),
        sort=st.sampled_from(SORTED),
        search=st.text(),
    )
)
def test_the_address_of_a_choice_makes_that_choice(choice: Choice) -> None:
    query = urlsplit(choice.link()).query
    assert chosen(choice.stream, "", dict(parse_qsl(query, keep_blank_values=True))) == choice


def test_times_without_a_zone_are_in_utc_and_others_are_converted() -> None:
    assert written(chosen("s", "2026-11-18T09:00", {}).window or 0) == "2026-11-18T09:00:00Z"
    assert written(chosen("s", "2026-11-18T09:00+01:00", {}).window or 0) == "2026-11-18T08:00:00Z"


@pytest.mark.parametrize("query", [{"from": "yesterday"}, {"sort": "badly"}, {"last": "2w"}])
def test_what_an_address_cannot_mean_is_said(query: dict[str, str]) -> None:
    with pytest.raises(HTTPException, match="want "):
        chosen("s", "", query)

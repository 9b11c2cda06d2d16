"""What is remembered: one frozen state that grows with what happens and never beyond its bounds."""

from dataclasses import replace

import numpy as np
import pytest

from monitor.assessment.verdict import Verdict
from monitor.limits import SEGMENT_TRACKS, SEGMENT_WINDOWS
from monitor.observers.snapshot import SECONDS, BucketCounts
from monitor.service.notices import Reassigned, StreamsSpread, WindowRefused
from monitor.state import Ring
from monitor.web.server import not_ready
from tests.web.made_up import MINUTE, Lagging, Story


def test_a_reader_keeps_the_state_that_it_took() -> None:
    story = Story()
    story.window()
    before = story.history.snapshot
    story.window(Verdict.PRIOR_SHIFT)
    assert len(before.tracks["made-up"][""].readings) == 1
    assert len(story.history.snapshot.tracks["made-up"][""].readings) == 2


def test_only_so_many_windows_are_remembered_and_all_are_counted() -> None:
    story = Story(windows=5)
    for _ in range(12):
        story.window()
    snapshot = story.history.snapshot
    readings = snapshot.tracks["made-up"][""].readings
    assert [one.key.end for one in readings] == [story.now - MINUTE * back for back in range(4, -1, -1)]
    assert snapshot.windows == {("made-up", "stable"): 12}
    assert sum(snapshot.assessing["made-up"].counts) == 12


def test_streams_that_come_to_several_members_make_the_service_unready_until_they_do_not() -> None:
    story = Story(source=Lagging())
    story.busy()
    assert not_ready(story.history) == ""
    story.tell(StreamsSpread(frozenset({"made-up"}), frozenset({"made-up"})))
    story.tell(WindowRefused(story.key, 10))
    story.tell(WindowRefused(story.key, 10))
    assert not_ready(story.history) == "windows of made-up are not published: several members get its events"
    assert story.history.snapshot.flow.windows_refused == {"made-up": 2}
    story.tell(StreamsSpread(frozenset({"made-up"}), frozenset()))
    assert not_ready(story.history) == "", "parts are what was asked for"


def test_one_window_may_be_all_that_is_remembered() -> None:
    story = Story(windows=1)
    story.window()
    story.window()
    assert len(story.history.snapshot.tracks["made-up"][""].readings) == 1


def test_segments_are_remembered_for_less_long_and_forgotten_when_others_come() -> None:
    story = Story()
    for _ in range(SEGMENT_WINDOWS + 10):
        story.window()
        story.window(segment="country=BE")
    assert len(story.history.snapshot.tracks["made-up"]["country=BE"].readings) == SEGMENT_WINDOWS
    for number in range(2 * SEGMENT_TRACKS):
        story.window()
        story.window(segment=f"country={number}")
    tracks = story.history.snapshot.tracks["made-up"]
    assert len(tracks) == SEGMENT_TRACKS
    assert "" in tracks
    assert "country=BE" not in tracks
    assert f"country={2 * SEGMENT_TRACKS - 1}" in tracks


def test_segments_do_not_count_as_windows_of_the_stream() -> None:
    story = Story()
    story.window()
    story.window(Verdict.UNKNOWN_CLASS, segment="country=BE")
    assert story.history.snapshot.windows == {("made-up", "stable"): 1}


def test_totals_add_up() -> None:
    story = Story()
    story.busy(100, rejected=2)
    story.busy(50, rejected=3, reason="negative")
    story.busy(1, rejected=1, stream="")
    flow = story.history.snapshot.flow
    assert flow.events == {"made-up": 151}
    assert flow.rejected == {("made-up", "not-json"): 2, ("made-up", "negative"): 3, ("", "not-json"): 1}
    assert flow.late == {("made-up", "late"): 9}
    assert flow.records == {"t-0": 157}
    assert sum(flow.commits.counts) == 3


def test_a_partition_that_went_has_no_newest_event_any_more() -> None:
    story = Story()
    story.busy()
    assert "t-0" in story.history.snapshot.flow.event_time
    story.tell(Reassigned(gone=frozenset({"t-0"})))
    flow = story.history.snapshot.flow
    assert "t-0" not in flow.event_time
    assert flow.reassignments == 1


@pytest.mark.parametrize("change", [Reassigned(gone=frozenset({"t-0"})), Reassigned(refused="the group moved on")])
def test_windows_that_another_member_may_publish_now_are_not_waited_for(change: Reassigned) -> None:
    story = Story()
    story.busy(100)
    assert story.history.snapshot.flow.waiting_since.keys() == {"made-up"}
    story.tell(change)
    story.busy(0)
    assert not story.history.snapshot.flow.waiting_since, "it would page for a window that is out"


def test_a_refused_commit_is_counted_and_no_reassignment() -> None:
    story = Story()
    story.tell(Reassigned(refused="the group moved on"))
    assert (story.history.snapshot.flow.refused, story.history.snapshot.flow.reassignments) == (1, 0)


def test_a_source_that_can_report_is_asked_at_most_once_a_second() -> None:
    asked = []

    class Counting(Lagging):
        def report(self):  # type: ignore[no-untyped-def]
            asked.append(story.now)
            return super().report()

    story = Story(source=Counting())
    for _ in range(10):
        story.now += 250_000
        story.busy()
    assert 2 <= len(asked) <= 3
    assert story.history.snapshot.flow.report is not None


def test_a_source_that_cannot_report_is_not_asked() -> None:
    story = Story(source=object())
    story.busy()
    assert story.history.snapshot.flow.report is None


def test_a_track_is_stale_three_windows_after_its_last_and_not_before_five_minutes() -> None:
    story = Story()
    story.window()
    track = story.history.snapshot.tracks["made-up"][""]
    assert not track.stale(story.now / 1e6 + 299)
    assert track.stale(story.now / 1e6 + 301)
    hour = replace(track.latest, key=replace(track.latest.key, start=track.latest.key.end - 60 * MINUTE))
    long = replace(track, known=replace(track.known, rings={"windows": Ring((hour,), 1)}))
    assert not long.stale(story.now / 1e6 + 3 * 3600 - 1)
    assert long.stale(story.now / 1e6 + 3 * 3600 + 1)


def test_the_truth_is_what_the_labelled_events_say() -> None:
    story = Story()
    story.window(labels=np.array([0, 0, 1, -1, -1, -1, -1, -1, -1, 2]))
    story.window()
    first, second = story.history.snapshot.tracks["made-up"][""].readings
    assert (first.answer.realised, first.labelled) == ((0.5, 0.25, 0.25), 4)
    assert (second.answer.realised, second.labelled) == (None, 0)


def test_a_histogram_counts_each_value_once_and_keeps_the_last_window() -> None:
    histogram = BucketCounts.empty(SECONDS).plus(0.005, "a").plus(0.0051, "b").plus(99.0, "c")
    assert (histogram.counts[0], histogram.counts[1], histogram.counts[-1]) == (1, 1, 1)
    assert sum(histogram.counts) == 3
    assert histogram.last == ("c", 99.0)

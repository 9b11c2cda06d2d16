"""A window says when it is incomplete, whatever the batches and the restarts; and nothing else makes it say so."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.ports import NEVER
from monitor.windows import CountPlan, Gap, StreamRows, TimePlan, Window, Windowing, sampled
from monitor.windows.origin import OPEN, Stretch, followed, widened
from monitor.windows.progress import PartitionProgress

NONE = np.empty(0, dtype=np.int64)


def rows(times: list[int]) -> Window:
    scores = np.linspace(0.1, 0.9, len(times))
    return Window(np.column_stack([scores, 1 - scores]), timestamps=np.array(times, dtype=np.int64))


def windowing_of(lateness: int = 0, most: int = 1000, **streams: TimePlan | CountPlan) -> Windowing:
    made = Windowing(streams or {"s": TimePlan(size=10, slide=10, lateness=lateness, most=most)})
    for partition in ("a", "b"):
        made.begin(partition, None)
    return made


def bring(windowing: Windowing, partition: str, first: int, times: list[int], stream: str = "s") -> None:
    offsets = np.arange(first, first + len(times))
    windowing.add(partition, first + len(times), [StreamRows.of(stream, rows(times), offsets)])


def gaps(windows: list[Window]) -> dict[int, tuple[Gap, ...]]:
    return {window.key.start: window.origin.gaps for window in windows}


def test_windows_that_records_are_gone_from_say_so_and_no_others_do() -> None:
    windowing = windowing_of()
    bring(windowing, "a", 0, [1, 12])
    windowing.add("a", 100, [], skipped=98)
    bring(windowing, "a", 100, [35, 41, 52, 70])
    found = gaps(list(windowing.close(["a"])))
    assert found == {0: (), 10: (Gap.SKIPPED,), 30: (Gap.SKIPPED,), 40: (), 50: ()}


def test_what_came_out_of_order_around_records_that_are_gone_may_have_been_among_them() -> None:
    windowing = windowing_of(lateness=10)
    bring(windowing, "a", 0, [1, 12])
    windowing.add("a", 100, [], skipped=98)
    bring(windowing, "a", 100, [35, 41, 52, 70])
    found = gaps(list(windowing.close(["a"])))
    assert found == {0: (Gap.SKIPPED,), 10: (Gap.SKIPPED,), 30: (Gap.SKIPPED,), 40: (Gap.SKIPPED,), 50: ()}


def test_a_restart_between_the_loss_and_the_close_forgets_nothing() -> None:
    windowing = windowing_of()
    bring(windowing, "b", 0, [13])
    windowing.add("a", 100, [], skipped=100)
    committed = windowing.checkpoint()
    again = Windowing({"s": TimePlan(size=10, slide=10, lateness=0, most=1000)})
    for partition, progress in committed.progress.items():
        again.begin(partition, progress)
    bring(again, "b", 0, [13, 60])
    bring(again, "a", 100, [44, 61])
    assert gaps(list(again.close(["a", "b"]))) == {10: (Gap.SKIPPED,), 40: (Gap.SKIPPED,)}


def test_a_partition_that_does_not_bring_a_stream_costs_it_nothing() -> None:
    plan = TimePlan(size=10, slide=10, lateness=0, most=1000)
    windowing = windowing_of(s=plan, other=plan)
    windowing.add("a", 100, [], skipped=100)
    bring(windowing, "a", 100, [3, 20], "other")
    bring(windowing, "b", 0, [3, 20])
    assert {(w.key.stream, w.origin.gaps) for w in windowing.close(["a", "b"])} == {
        ("s", ()),
        ("other", (Gap.SKIPPED,)),
    }


def test_the_first_window_that_can_know_says_that_an_idle_partition_had_events_to_come() -> None:
    windowing = windowing_of()
    bring(windowing, "a", 0, [5, 15, 21])
    bring(windowing, "b", 0, [3])
    assert gaps(list(windowing.close(["a", "b"], idle={"b"}))) == {0: (), 10: ()}
    bring(windowing, "b", 1, [6, 23])
    bring(windowing, "a", 3, [33, 41])
    bring(windowing, "b", 3, [42])
    assert gaps(list(windowing.close(["a", "b"]))) == {20: (Gap.IDLE,), 30: ()}


def test_a_partition_that_was_set_aside_with_nothing_to_come_changes_no_window() -> None:
    def published(idle: set[str]) -> list[tuple[object, ...]]:
        windowing = windowing_of()
        bring(windowing, "b", 0, [3])
        bring(windowing, "a", 0, [5, 15, 21])
        found = list(windowing.close(["a", "b"], idle))
        bring(windowing, "b", 1, [24, 52])
        bring(windowing, "a", 3, [33, 51])
        found += windowing.close(["a", "b"])
        return [(w.key, w.closed_because, w.origin, w.counts, w.posteriors.tolist()) for w in found]

    assert published({"b"}) == published(set())


def test_a_sample_of_a_window_is_no_whole_window() -> None:
    windowing = windowing_of(most=3)
    bring(windowing, "a", 0, [1, 2, 3, 4, 11, 12, 20])
    assert gaps(list(windowing.close(["a"]))) == {0: (Gap.SAMPLED,), 10: ()}
    assert sampled(rows([1, 2]), 3).origin.complete


def test_a_count_window_over_records_that_are_gone_says_so() -> None:
    windowing = windowing_of(s=CountPlan(3))
    bring(windowing, "a", 0, [1, 2, 3, 4])
    windowing.add("a", 50, [], skipped=46)
    bring(windowing, "a", 50, [50, 51, 52, 53, 54])
    assert [window.origin.gaps for window in windowing.close(["a"])] == [(), (Gap.SKIPPED,), ()]


def test_what_one_partition_brings_to_windows_that_another_has_closed_by_itself_is_no_whole_window() -> None:
    windowing = windowing_of()
    bring(windowing, "a", 0, [5, 15, 25])
    windowing.forget("b")
    list(windowing.close(["a"]))
    alone = windowing.checkpoint().progress["a"]
    again = Windowing({"s": TimePlan(size=10, slide=10, lateness=0, most=1000)})
    again.begin("a", alone)
    again.begin("b", PartitionProgress(offset=0, running_max=NEVER, read=0, closed=NEVER))
    bring(again, "b", 0, [3, 12, 24, 31])
    bring(again, "a", alone.offset, [25, 32])
    assert gaps(list(again.close(["a", "b"]))) == {0: (Gap.SPREAD,), 10: (Gap.SPREAD,), 20: ()}


def test_a_window_names_the_partitions_that_it_was_made_from() -> None:
    windowing = windowing_of()
    bring(windowing, "b", 0, [3, 20])
    bring(windowing, "a", 0, [5, 12, 20])
    assert [window.origin.partitions for window in windowing.close(["a", "b"])] == [("a", "b"), ("a",)]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=6))
def test_stretches_of_one_kind_become_one_that_touches_whatever_any_of_them_did(spans: list[tuple[int, int]]) -> None:
    stretches = [Stretch(Gap.SKIPPED, "", min(span), max(span)) for span in spans]
    together: tuple[Stretch, ...] = ()
    for each in stretches:
        together = widened(together, each)
    assert len(together) == 1
    for start in range(0, 60, 5):
        touched = any(each.touches("s", start, start + 5) for each in stretches)
        assert not touched or together[0].touches("s", start, start + 5)


@pytest.mark.parametrize(("time", "last"), [(7, 7), (2, 4)])
def test_an_open_stretch_ends_with_the_next_event_and_never_before_it_begins(time: int, last: int) -> None:
    (ended,) = followed((Stretch(Gap.SKIPPED, "", 4, OPEN),), time)
    assert (ended.first, ended.last) == (4, last)
    assert followed((ended,), 99) == (ended,)
    assert Stretch(Gap.SKIPPED, "", NEVER, OPEN).touches("any", 0, 1)

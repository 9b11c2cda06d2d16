"""Event-time and count windows: any batching, any interleaving of partitions and any restart give the same windows."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.ports import NEVER
from monitor.windows import WindowCheckpoint
from monitor.windows.assembly import Plan, Windowing
from monitor.windows.batch import RejectedAt, StreamRows
from monitor.windows.by_count import CountPlan
from monitor.windows.by_time import TimePlan
from monitor.windows.origin import Gap
from monitor.windows.progress import from_stored, to_stored
from monitor.windows.window import Window
from tests.windows import naive
from tests.windows.naive import Event

MANY = 1_000_000


def rows(events: list[Event]) -> Window:
    values = np.array([event.value for event in events])
    return Window(
        posteriors=np.column_stack([values, 1 - values]),
        timestamps=np.array([event.time for event in events], dtype=np.int64),
    )


def feed(windowing: Windowing, partition: str, events: list[Event], start: int, stop: int) -> None:
    """One batch: the records `start` to `stop` of a partition; a record's offset is its number."""
    offsets = range(start, min(stop, len(events)))
    good = [offset for offset in offsets if events[offset].time is not None]
    bad = [RejectedAt(offset, None) for offset in offsets if events[offset].time is None]
    streams = (
        [StreamRows.of("s", rows([events[offset] for offset in good]), np.array(good, dtype=np.int64))] if good else []
    )
    windowing.add(partition, min(stop, len(events)), streams, bad)


def seen(window: Window) -> tuple[object, ...]:
    values = tuple(window.posteriors[:, 0].tolist())
    counts = window.counts
    return (window.key, values, counts.late, counts.rejected, counts.sampled_out, window.closed_because)


def run(
    plan: Plan, partitions: dict[str, list[Event]], seed: int, largest: int, kills: float = 0.0
) -> list[tuple[object, ...]]:
    """Feed everything in random batches of random partitions, killing the process now and then after a commit."""
    rng = random.Random(seed)
    published: list[tuple[object, ...]] = []
    windowing, committed = Windowing({"s": plan}), WindowCheckpoint()
    position = dict.fromkeys(partitions, 0)
    left = 20  # kills: while no window closes each begins the work anew, and chance alone might never let it end
    for name in partitions:
        windowing.begin(name, None)
    while any(position[name] < len(events) for name, events in partitions.items()):
        waiting = [name for name, events in partitions.items() if position[name] < len(events)]
        name = rng.choice(waiting)
        stop = position[name] + rng.randint(1, largest)
        feed(windowing, name, partitions[name], position[name], stop)
        position[name] = min(stop, len(partitions[name]))
        closed = [seen(window) for window in windowing.close(list(partitions))]
        if left and rng.random() < kills:  # killed before the commit: what was closed is lost with it
            left -= 1
            windowing = Windowing({"s": plan})
            for other in partitions:
                windowing.begin(other, committed.progress.get(other))
                position[other] = committed.progress[other].offset if other in committed.progress else 0
            continue
        published += closed
        committed = windowing.checkpoint()
    return published + [seen(window) for window in windowing.finish()]


events = st.lists(
    st.builds(
        Event,
        time=st.one_of(st.none(), st.integers(0, 200), st.integers(0, 200)),
        value=st.integers(0, 1000).map(lambda number: number / 1000),
    ),
    max_size=60,
)
inputs = st.fixed_dictionaries({"p0": events, "p1": events})
plans = st.sampled_from(
    [
        TimePlan(size=20, slide=20, lateness=0, most=MANY),
        TimePlan(size=20, slide=20, lateness=15, most=MANY),
        TimePlan(size=30, slide=10, lateness=25, most=MANY),
    ]
)


@settings(max_examples=150, deadline=None)
@given(inputs, plans, st.integers(0, 2**32), st.integers(1, 30), st.sampled_from([0.0, 0.4]))
def test_any_batching_interleaving_and_restart_gives_the_windows_of_the_obvious_twin(
    partitions: dict[str, list[Event]], plan: TimePlan, seed: int, largest: int, kills: float
) -> None:
    published = run(plan, partitions, seed, largest, kills)
    expected = naive.windows(partitions, plan.size, plan.slide, plan.lateness)
    assert [key.start for key, *_ in published] == list(expected)
    for (key, values, late, rejected, *_), content in zip(published, expected.values(), strict=True):
        assert key.end == key.start + plan.size
        assert sorted(values) == sorted(content.values)
        assert (late, rejected) == (content.late, content.rejected)


@settings(max_examples=60, deadline=None)
@given(inputs, st.integers(0, 2**32), st.integers(0, 2**32), st.integers(1, 30))
def test_the_rows_of_a_window_come_in_the_same_order_whatever_the_batching(
    partitions: dict[str, list[Event]], seed: int, other: int, largest: int
) -> None:
    plan = TimePlan(size=50, slide=50, lateness=40, most=MANY)
    assert run(plan, partitions, seed, largest) == run(plan, partitions, other, 3)


@settings(max_examples=60, deadline=None)
@given(inputs, st.integers(0, 2**32), st.integers(0, 2**32), st.sampled_from([0.0, 0.4]))
def test_the_reservoir_keeps_the_same_events_whatever_the_batching_and_the_restarts(
    partitions: dict[str, list[Event]], seed: int, other: int, kills: float
) -> None:
    plan = TimePlan(size=100, slide=50, lateness=100, most=5)
    once = run(plan, partitions, seed, 60)
    assert run(plan, partitions, other, 4, kills) == once
    assert all(len(values) <= 5 for _, values, *_ in once)


@settings(max_examples=100, deadline=None)
@given(events, st.integers(1, 12), st.integers(0, 2**32), st.integers(1, 30), st.sampled_from([0.0, 0.4]))
def test_count_windows_of_one_partition_do_not_depend_on_batching_or_restarts(
    stream: list[Event], count: int, seed: int, largest: int, kills: float
) -> None:
    published = run(CountPlan(count), {"p0": stream}, seed, largest, kills)
    times = [event.value for event in stream if event.time is not None]
    expected = [sorted(times[start : start + count]) for start in range(0, len(times), count)]
    assert [sorted(values) for _, values, *_ in published] == expected
    assert [key.number for key, *_ in published] == list(range(1, len(expected) + 1))
    assert published == run(CountPlan(count), {"p0": stream}, seed + 1, 7)


def test_a_count_window_may_end_inside_a_record_that_carries_many_events() -> None:
    def fresh(progress: WindowCheckpoint) -> Windowing:
        windowing = Windowing({"s": CountPlan(3)})
        windowing.begin("p", progress.progress.get("p"))
        return windowing

    record = [Event(time, time / 10) for time in range(5)]
    windowing = fresh(WindowCheckpoint())
    windowing.add("p", 1, [StreamRows.of("s", rows(record), np.zeros(5, dtype=np.int64))])
    first = [window.posteriors[:, 0].tolist() for window in windowing.close(["p"])]
    again = fresh(windowing.checkpoint())
    again.add("p", 1, [StreamRows.of("s", rows(record), np.zeros(5, dtype=np.int64))])
    rest = [window.posteriors[:, 0].tolist() for window in again.finish()]
    assert first == [[0.0, 0.1, 0.2]]
    assert rest == [[0.3, 0.4]]


def one_partition(lateness: int = 0) -> Windowing:
    windowing = Windowing({"s": TimePlan(size=10, slide=10, lateness=lateness, most=MANY)})
    windowing.begin("a", None)
    windowing.begin("b", None)
    return windowing


def test_a_window_waits_for_the_slowest_partition() -> None:
    windowing = one_partition()
    feed(windowing, "a", [Event(25, 0.5)], 0, 1)
    assert list(windowing.close(["a", "b"])) == []
    feed(windowing, "b", [Event(5, 0.1), Event(12, 0.2)], 0, 2)
    assert [(w.key.start, w.closed_because) for w in windowing.close(["a", "b"])] == [(0, "watermark")]


def test_an_idle_partition_does_not_hold_a_window_open_and_what_it_brings_later_is_counted_apart() -> None:
    windowing = one_partition()
    feed(windowing, "a", [Event(5, 0.5), Event(25, 0.5)], 0, 2)
    closed = list(windowing.close(["a", "b"], idle={"b"}))
    assert [(w.key.start, w.closed_because) for w in closed] == [(0, "watermark")]
    left_out = windowing.add("b", 1, [StreamRows.of("s", rows([Event(6, 0.1)]), np.array([0]))])
    assert left_out.late_after_idle["s"].tolist() == [0]
    assert left_out.late["s"].size == 0


def test_when_all_partitions_are_idle_windows_close_up_to_the_mark_that_the_clock_gives() -> None:
    windowing = one_partition()
    feed(windowing, "a", [Event(5, 0.5)], 0, 1)
    assert list(windowing.close(["a", "b"], idle={"a", "b"})) == []
    assert [w.key.start for w in windowing.close(["a", "b"], idle={"a", "b"}, idle_mark=10)] == [0]


def test_a_partition_that_is_taken_away_leaves_no_trace() -> None:
    windowing = one_partition()
    feed(windowing, "a", [Event(1, 0.5)], 0, 1)
    feed(windowing, "b", [Event(2, 0.1), Event(30, 0.1)], 0, 2)
    windowing.forget("b")
    feed(windowing, "a", [Event(1, 0.5), Event(30, 0.5)], 1, 2)
    assert [w.posteriors[:, 0].tolist() for w in windowing.close(["a"])] == [[0.5]]
    assert set(windowing.checkpoint().progress) == {"a"}


def test_a_checkpoint_names_the_earliest_record_that_an_open_window_needs() -> None:
    windowing = one_partition(lateness=10)
    feed(windowing, "a", [Event(5, 0.5), Event(13, 0.5), Event(21, 0.5)], 0, 3)
    list(windowing.close(["a"]))
    progress = windowing.checkpoint().progress["a"]
    assert (progress.offset, progress.running_max, progress.read, progress.closed) == (1, 5, 3, 21)


def test_rejected_records_before_the_first_event_have_no_time_to_be_counted_at() -> None:
    windowing = one_partition()
    windowing.add("a", 1, [], [RejectedAt(0, None)])
    assert windowing.event_time("a") == NEVER
    assert windowing.checkpoint().progress["a"].offset == 1


def test_windows_of_several_streams_close_in_the_order_of_their_deadlines() -> None:
    windowing = Windowing(
        {
            "patient": TimePlan(size=10, slide=10, lateness=30, most=MANY),
            "quick": TimePlan(size=10, slide=10, lateness=0, most=MANY),
        }
    )
    windowing.begin("a", None)
    both = [Event(time, 0.5) for time in (5, 15, 25, 60)]
    for offset, event in enumerate(both):
        part = [StreamRows.of(name, rows([event]), np.array([offset])) for name in ("quick", "patient")]
        windowing.add("a", offset + 1, part)
    order = [(window.key.stream, window.key.start) for window in windowing.close(["a"])]
    assert order == [("quick", 0), ("quick", 10), ("quick", 20), ("patient", 0), ("patient", 10), ("patient", 20)]


@pytest.mark.parametrize("held", [True, False])
def test_the_partitions_ahead_of_the_slowest_are_the_ones_to_hold_back(held: bool) -> None:
    windowing = one_partition()
    feed(windowing, "a", [Event(50 if held else 5, 0.5)], 0, 1)
    feed(windowing, "b", [Event(5, 0.5)], 0, 1)
    assert windowing.ahead(["a", "b"]) == ({"a"} if held else frozenset())


def starts(windows: list[Window]) -> list[int]:
    return [window.key.start for window in windows]


def test_a_partition_that_comes_after_its_windows_were_published_does_not_publish_them_again() -> None:
    #      0         10        20        30
    #  a   |  5      |    13   |
    #  c             |   12  16|    22   |       comes when [0, 10) and [10, 20) are published
    windowing = one_partition()
    windowing.forget("b")
    feed(windowing, "a", [Event(5, 0.5), Event(13, 0.5)], 0, 2)
    assert starts(list(windowing.close(["a"], idle={"a"}, idle_mark=20))) == [0, 10]
    windowing.begin("c", None)
    late = [Event(12, 0.1), Event(16, 0.1), Event(22, 0.1)]
    good = np.arange(3)
    left_out = windowing.add("c", 3, [StreamRows.of("s", rows(late), good)])
    assert left_out.late_after_idle["s"].tolist() == [0, 1]
    (window,) = windowing.finish()
    assert (window.key.start, window.events) == (20, 1)
    assert window.origin.gaps == (Gap.IDLE,)


def test_it_brings_older_windows_and_those_of_other_streams_all_the_same() -> None:
    plan = TimePlan(size=10, slide=10, lateness=0, most=MANY)
    windowing = Windowing({"s": plan, "t": plan})
    windowing.begin("a", None)
    windowing.add("a", 1, [StreamRows.of("s", rows([Event(105, 0.5)]), np.array([0]))])
    list(windowing.close(["a"], idle={"a"}, idle_mark=120))
    windowing.begin("c", None)
    events = [Event(5, 0.1), Event(106, 0.1)]
    left_out = windowing.add("c", 2, [StreamRows.of(name, rows(events), np.array([0, 1])) for name in ("s", "t")])
    assert [left_out.late_after_idle[name].tolist() for name in ("s", "t")] == [[1], []]
    assert [window.key.id for window in windowing.finish()] == ["s//0/10", "t//0/10", "t//100/110"]


@settings(deadline=None, max_examples=60)
@given(
    files=st.lists(st.lists(st.integers(0, 60), min_size=1, max_size=8), min_size=1, max_size=5),
    lateness=st.sampled_from([0, 7]),
    slide=st.sampled_from([10, 5]),
    seed=st.integers(0, 2**16),
)
def test_files_that_follow_each_other_publish_each_window_once_whatever_their_times_and_restarts(
    files: list[list[int]], lateness: int, slide: int, seed: int
) -> None:
    rng = random.Random(seed)
    plan = TimePlan(size=10, slide=slide, lateness=lateness, most=MANY)
    windowing, published, events = Windowing({"s": plan}), list[Window](), 0
    left_out = 0
    for number, times in enumerate(files):
        name = f"f{number}"
        windowing.begin(name, None)
        while events < len(times):
            stop = min(len(times), events + rng.randint(1, 3))
            batch = rows([Event(time, 0.5) for time in times[events:stop]])
            came = windowing.add(name, stop, [StreamRows.of("s", batch, np.arange(events, stop))])
            left_out += came.late_after_idle["s"].size + came.late["s"].size
            events = stop
            everyone = [f"f{each}" for each in range(number + 1)]
            published += windowing.close(everyone, idle=everyone[:-1])
        events = 0
        if rng.random() < 0.7:  # all are silent for long
            published += windowing.close(everyone, idle=everyone, idle_mark=rng.randint(0, 120))
        elif rng.random() < 0.5:
            published += windowing.finish()
        if rng.random() < 0.5 and not windowing.rows:
            progress = windowing.checkpoint().progress
            kept = {each: from_stored(each, to_stored(progress[each])) for each in progress}
            windowing = Windowing({"s": plan})
            for each, one in kept.items():
                windowing.begin(each, one)
    published += windowing.finish()
    ids = [window.key.id for window in published]
    assert len(set(ids)) == len(ids)
    if slide == plan.size:
        assert sum(window.events for window in published) + left_out == sum(map(len, files))

"""Parts of windows: whoever makes them, in whatever order they come together, the windows are those of one process."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import InputError
from monitor.windows import PartWindows, Segments, Tally, TimePlan, Window, WindowCounts, Windowing, fixed_sums
from monitor.windows.parts import Part, PartitionRead, closed, merged
from monitor.windows.window import merge
from tests.windows import naive
from tests.windows.naive import Event
from tests.windows.test_assembly import MANY, feed, inputs, plans, seen

FAR = 10_000
"""Later than every event: closes all windows."""
WHOLE = TimePlan(size=400, slide=400, lateness=500, most=MANY)
KEPT = Path(__file__).parent.parent / "kept" / "parts"


def batches(events: list[Event], rng: random.Random, largest: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(events):
        stop = min(len(events), start + rng.randint(1, largest))
        yield start, stop
        start = stop


def parts_of(partitions: dict[str, list[Event]], plan: TimePlan, seed: int, largest: int) -> list[list[bytes]]:
    """What the first stage makes of each batch, encoded; in each partition's order, but partitions at random."""
    rng = random.Random(seed)
    waiting = {name: list(batches(events, rng, largest)) for name, events in partitions.items() if events}
    progress = dict.fromkeys(partitions)
    made = []
    while waiting:
        name = rng.choice(list(waiting))
        start, stop = waiting[name].pop(0)
        worker = Windowing({"s": plan})
        worker.begin(name, progress[name])
        feed(worker, name, partitions[name], start, stop)
        made.append([part.encoded() for part in worker.release(name, start)["s"]])
        progress[name] = worker.checkpoint().progress[name]
        waiting = {name: left for name, left in waiting.items() if left}
    return made


def rows_and_sums(left_out: Window) -> Tally:
    """Something to count of rows that are left out."""
    return Tally(left_out.events, left_out.events, "sums", fixed_sums("posteriors", left_out.posteriors))


def far(partitions: dict[str, list[Event]]) -> dict[str, list[Event]]:
    return {name: [*events, Event(FAR, 0.0)] for name, events in partitions.items()}


def assembled(
    made: list[list[bytes]], plan: TimePlan, partitions: list[str], seed: int, kills: float
) -> list[tuple[object, ...]]:
    """What the second stage makes of it; now and then it goes on elsewhere, from what was kept."""
    rng = random.Random(seed)
    store: dict[str, bytes] = {}
    windows, published = PartWindows.begun("s", plan, store, None), []
    for parts in made:
        windows.take([(Part.decoded(part), part) for part in parts])
        published += [seen(window) for window in windows.close(partitions, [], None)]
        if rng.random() < kills:
            store = dict(store)
            windows = PartWindows.begun("s", plan, store, windows.progress)
    assert len(store) <= 2 * len(partitions), "closed windows leave nothing behind"
    return published


@settings(max_examples=100, deadline=None)
@given(inputs, plans, st.integers(0, 2**32), st.integers(1, 30), st.sampled_from([0.0, 0.4]))
def test_parts_become_the_windows_of_the_obvious_twin_whoever_makes_and_keeps_them(
    partitions: dict[str, list[Event]], plan: TimePlan, seed: int, largest: int, kills: float
) -> None:
    made = parts_of(far(partitions), plan, seed, largest)
    published = assembled(made, plan, list(partitions), seed, kills)
    expected = naive.windows(far(partitions), plan.size, plan.slide, plan.lateness)
    expected = {start: content for start, content in expected.items() if start + plan.size <= FAR - plan.lateness}
    assert [key.start for key, *_ in published] == list(expected)
    for (_, values, late, rejected, *_), content in zip(published, expected.values(), strict=True):
        assert sorted(values) == sorted(content.values)
        assert (late, rejected) == (content.late, content.rejected)


@settings(max_examples=60, deadline=None)
@given(inputs, st.integers(0, 2**32), st.sampled_from([5, MANY]), st.sampled_from([0.0, 0.4]))
def test_windows_of_parts_are_those_of_one_process_sampled_or_whole(
    partitions: dict[str, list[Event]], seed: int, most: int, kills: float
) -> None:
    plan = TimePlan(size=100, slide=50, lateness=100, most=most)
    one = Windowing({"s": plan})
    for name, events in far(partitions).items():
        one.begin(name, None)
        feed(one, name, events, 0, len(events))
    want = [seen(window) for window in one.close(list(partitions))]
    assert assembled(parts_of(far(partitions), plan, seed, 4), plan, list(partitions), seed, kills) == want


@settings(max_examples=60, deadline=None)
@given(inputs, st.integers(0, 2**32), st.sampled_from([5, MANY]))
def test_merging_knows_no_order_and_no_grouping_and_counts_nothing_twice(
    partitions: dict[str, list[Event]], seed: int, most: int
) -> None:
    plan = TimePlan(size=400, slide=400, lateness=500, most=most, tally=rows_and_sums)
    parts = [Part.decoded(part) for made in parts_of(partitions, plan, seed, 7) for part in made]
    parts = [part for part in parts if part.pane == 0]
    if not parts:
        return
    once = closed(parts, plan, 0)
    rng, shuffled = random.Random(seed), list(parts)
    rng.shuffle(shuffled)
    while len(shuffled) > 1:
        one, other = shuffled.pop(rng.randrange(len(shuffled))), shuffled.pop(rng.randrange(len(shuffled)))
        both = Part.decoded(merged([one, other], plan).encoded())
        shuffled.append(merged(rng.sample([one, both, other, both], 4), plan) if rng.random() < 0.3 else both)
    again = closed(shuffled, plan, 0)
    assert (once is None) == (again is None)
    if once is not None and again is not None:
        assert seen(once) == seen(again)
        assert once.posteriors.tobytes() == again.posteriors.tobytes()
        assert once.origin == again.origin
        assert (once.left_out is None) == (again.left_out is None) == (not once.counts.sampled_out)
        if once.left_out is not None and again.left_out is not None:
            assert once.left_out.rows == again.left_out.rows == once.counts.sampled_out
            assert once.left_out.sum("posteriors").tolist() == again.left_out.sum("posteriors").tolist()


def part(first: int, stop: int, pane: int = 0) -> Part:
    return Part("s", pane, {"p0": PartitionRead(((first, stop),), 5)}, counts=WindowCounts(late=stop - first))


def test_parts_that_share_some_records_and_not_all_are_refused() -> None:
    with pytest.raises(InputError, match="they share 5 of 10 records"):
        merged([part(0, 10), part(5, 15)], WHOLE)
    with pytest.raises(InputError, match="want those of one pane"):
        merged([part(0, 10), part(10, 20, pane=5)], WHOLE)


def test_a_part_without_events_moves_the_clock_and_is_not_kept() -> None:
    store: dict[str, bytes] = {}
    windows = PartWindows.begun("s", TimePlan(10, 10, 0, MANY), store, None)
    empty = Part("s", 0, {"p1": PartitionRead(((0, 1),), 4)})
    windows.take([(empty, empty.encoded())])
    assert (store, windows.reached("p1"), windows.read("p1")) == ({}, 4, 1)


@pytest.mark.parametrize("clocks", [(7, 5), (5, 7)])
def test_a_merged_part_has_come_as_far_as_any(clocks: tuple[int, int]) -> None:
    first, second = (
        replace(part(10 * number, 10 * number + 10), seen={"p0": PartitionRead(((10 * number, 10 * number + 10),), at)})
        for number, at in enumerate(clocks)
    )
    assert merged([first, second], WHOLE).seen["p0"].clock == 7


def test_what_was_read_is_one_stretch_once_nothing_is_missing_in_between() -> None:
    gap = merged([part(20, 30), part(0, 10)], WHOLE)
    assert gap.seen["p0"].records == ((0, 10), (20, 30))
    whole = merged([gap, part(10, 20)], WHOLE)
    assert (whole.seen["p0"].records, whole.counts.late) == (((0, 30),), 30)


def everything() -> Part:
    """A part with all that events may bring."""
    rows = Window(
        posteriors=np.array([[0.25, 0.75], [0.5, 0.5]]),
        features=np.array([[1.5, np.nan], [-0.0, 3.0]]),
        labels=np.array([1, -1]),
        targets=np.array([np.nan, 2.0]),
        predictions=np.array([1.0, 2.0]),
        timestamps=np.array([3, 4]),
        ids=np.array(["tx-1", None], dtype=np.object_),
        segments=Segments(np.array([1, 0], dtype=np.int32), ("BE", "Köln")),
        counts=WindowCounts(sampled_out=7),
        left_out=Tally(7, 6, "by r", {"scores": np.array([0, 300, 5]), "sums": np.array([-(2**40), 2**40])}),
    )
    return Part(
        "s",
        -20,
        {"p0": PartitionRead(((0, 10), (12, 13)), 5), "p1": PartitionRead(((3, 4),), 9)},
        rows,
        WindowCounts(1, 2, 3),
    )


def assert_same(got: Part, want: Part) -> None:
    assert (got.stream, got.pane, got.seen, got.counts) == (want.stream, want.pane, want.seen, want.counts)
    assert got.rows is not None
    assert want.rows is not None
    assert got.rows.counts == want.rows.counts
    for column in ("posteriors", "features", "labels", "targets", "predictions", "timestamps"):
        assert getattr(got.rows, column).tobytes() == getattr(want.rows, column).tobytes()
    assert got.rows.ids is not None
    assert got.rows.ids.tolist() == ["tx-1", None]
    assert got.rows.segments is not None
    assert got.rows.segments.names == ("BE", "Köln")
    assert got.rows.segments.codes.tolist() == [1, 0]
    assert (got.rows.left_out is None) == (want.rows.left_out is None)
    if got.rows.left_out is not None and want.rows.left_out is not None:
        tally, other = got.rows.left_out, want.rows.left_out
        assert (tally.rows, tally.events, tally.basis) == (other.rows, other.events, other.basis)
        assert {name: numbers.tolist() for name, numbers in tally.numbers.items()} == {
            name: numbers.tolist() for name, numbers in other.numbers.items()
        }


def test_a_part_comes_back_from_its_bytes_whole_and_read_only() -> None:
    back = Part.decoded(everything().encoded())
    assert_same(back, everything())
    assert back.rows is not None
    with pytest.raises(ValueError, match="read-only"):
        back.rows.posteriors[0, 0] = 1.0


def test_the_bytes_of_both_versions_are_read() -> None:
    assert_same(Part.decoded(KEPT.joinpath("part-2.bin").read_bytes()), everything())
    first, whole = Part.decoded(KEPT.joinpath("part-1.bin").read_bytes()), everything()
    assert whole.rows is not None
    assert_same(first, replace(whole, rows=whole.rows.alone()))


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
def test_bytes_that_are_no_part_are_refused_in_words(noise: bytes, at: int, byte: int) -> None:
    with pytest.raises(InputError, match="not a part of a window"):
        Part.decoded(noise)
    damaged = bytearray(everything().encoded())
    damaged[at % len(damaged)] = byte
    try:
        Part.decoded(bytes(damaged))
    except InputError:
        return


Place = tuple[int | str, ...]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ((3, "p0", 0), []),
        ((3, "p0", 0), [[10, 0]]),
        ((3, "p0", 0), [[0, 10], [5, 13]]),
        ((5, 0, "timestamps", 1), [-1, 2]),
        ((5, 0, "timestamps"), ["<i8", [1], bytes(8)]),
        ((5, 0, "posteriors"), ["<f8", [], bytes(8)]),
        ((5, 0, "posteriors", 0), "f8,f8"),
        ((5, 0, "posteriors", 0), "<08"),
        ((5, 0, "posteriors", 0), "<U2"),
        ((5, 0, "key"), ["<i8", [2], bytes(16)]),
        ((5, 2), ["one"]),
        ((5, 3, 1), ["BE"]),
        ((5, 3, 0, 2), b"\1\0\0\0\xff\xff\xff\xff"),
    ],
)
def test_a_part_that_contradicts_itself_is_refused(place: Place, value: object) -> None:
    form = at = msgspec.msgpack.decode(everything().encoded())
    *outer, last = place
    for each in outer:
        at = at[each]
    at[last] = value
    with pytest.raises(InputError, match="not a part of a window"):
        Part.decoded(msgspec.msgpack.encode(form))


def test_what_was_kept_of_windows_and_cannot_be_read_is_refused_in_words() -> None:
    plan = TimePlan(10, 10, 0, MANY)
    with pytest.raises(InputError, match="kept in version 9, and this release reads 1"):
        PartWindows.begun("s", plan, {}, msgspec.msgpack.encode([9, ["another form"]]))
    for noise in (b"", b"noise", msgspec.msgpack.encode([1, 2])):
        with pytest.raises(InputError, match="s: what was kept of its windows cannot be read"):
            PartWindows.begun("s", plan, {}, noise)


def open_windows(plan: TimePlan) -> bytes:
    """What is kept after one event."""
    windows = PartWindows.begun("s", plan, {}, None)
    windows.take([(part(0, 1), part(0, 1).encoded())])
    return windows.progress


@pytest.mark.parametrize("plan", [TimePlan(9, 9, 0, MANY), TimePlan(10, 5, 0, MANY), TimePlan(10, 10, 1, MANY)])
def test_open_windows_are_not_cut_anew(plan: TimePlan) -> None:
    before = TimePlan(10, 10, 0, MANY)
    with pytest.raises(InputError, match="s: its open windows were cut by size, slide and lateness 1e-05s/1e-05s/0s"):
        PartWindows.begun("s", plan, {}, open_windows(before))
    again = PartWindows.begun("s", replace(before, most=5, seed=1), {}, open_windows(before))
    assert again.read("p0") == 1


def test_windows_that_were_kept_before_their_cut_was_go_on_and_keep_it() -> None:
    form = msgspec.msgpack.decode(open_windows(TimePlan(10, 10, 0, MANY)))
    first = PartWindows.begun("s", TimePlan(10, 10, 0, MANY), {}, msgspec.msgpack.encode(form[:-1]))
    assert first.read("p0") == 1
    with pytest.raises(InputError, match="cannot be cut anew"):
        PartWindows.begun("s", TimePlan(20, 20, 0, MANY), {}, first.progress)


@pytest.mark.parametrize(("classes", "features"), [(3, 1), (2, 2)])
def test_parts_by_references_of_other_shapes_are_not_merged(classes: int, features: int) -> None:
    def made(number: int, classes: int, features: int) -> Part:
        rows = Window(
            posteriors=np.full((1, classes), 0.5), features=np.zeros((1, features)), timestamps=np.array([number])
        )
        return Part("s", 0, {"p": PartitionRead(((number, number + 1),), number)}, rows)

    with pytest.raises(InputError, match="the reference became another while windows were open"):
        merged([made(0, 2, 1), made(1, classes, features)], WHOLE)


def test_a_newer_version_is_refused() -> None:
    newer = msgspec.msgpack.encode([3, "whatever"])
    with pytest.raises(InputError, match="has version 3, and this release reads 2"):
        Part.decoded(newer)
    with pytest.raises(InputError, match="kept in version 9"):
        PartWindows.begun("s", TimePlan(10, 10, 0, MANY), {}, msgspec.msgpack.encode([9]))


def test_a_part_holds_no_more_rows_than_are_kept_however_many_there_were() -> None:
    rng = np.random.default_rng(0)
    chunks = [
        Window(posteriors=rng.random((1_000, 2)), timestamps=np.arange(1_000) * 1_000 + number) for number in range(50)
    ]
    parts = [Part("s", 0, {"p0": PartitionRead(((n, n + 1),), n)}, rows) for n, rows in enumerate(chunks)]
    store: dict[str, bytes] = {}
    windows = PartWindows.begun("s", TimePlan(10**6, 10**6, 0, most=300), store, None)
    largest = 0
    for each in parts:
        windows.take([(each, each.encoded())])
        largest = max(largest, sum(map(len, store.values())))
    assert largest < 2 * len(parts[0].encoded())
    (last,) = (Part("s", 10**6, {"p0": PartitionRead(((50, 51),), 10**6)}),)
    windows.take([(last, last.encoded())])
    (window,) = windows.close(["p0"], [], None)
    assert (window.events, window.counts.sampled_out) == (300, 49_700)
    assert not window.origin.complete


def test_events_that_come_after_their_window_was_closed_without_their_partition_are_counted_and_said() -> None:
    plan = TimePlan(10, 10, 0, MANY)
    windows = PartWindows.begun("s", plan, {}, None)

    def take(partition: str, number: int, time: int) -> int:
        rows = Window(posteriors=np.array([[0.5, 0.5]]), timestamps=np.array([time]))
        made = Part("s", time // 10 * 10, {partition: PartitionRead(((number, number + 1),), time)}, rows)
        return windows.take([(made, made.encoded())])

    assert [take("p0", 0, 5), take("p0", 1, 25)] == [0, 0]
    assert [window.key.start for window in windows.close(["p0", "p1"], ["p1"], None)] == [0]
    assert take("p1", 0, 6) == 1
    assert take("p1", 1, 35) == 0
    take("p0", 2, 36)
    (window,) = windows.close(["p0", "p1"], [], None)
    assert (window.key.start, [gap.value for gap in window.origin.gaps]) == (20, ["idle-partitions"])


@pytest.mark.chaos
def test_ten_million_rows_in_a_thousand_parts_are_one_window_in_bounded_memory() -> None:
    most, rng = 100_000, np.random.default_rng(0)
    plan = TimePlan(10**9, 10**9, 0, most)
    chunks = [
        Window(posteriors=rng.random((10_000, 2)), timestamps=rng.integers(0, 10**9, 10_000)) for _ in range(1_000)
    ]
    store: dict[str, bytes] = {}
    windows, largest = PartWindows.begun("s", plan, store, None), 0
    for number, rows in enumerate(chunks):
        part = Part("s", 0, {f"p{number % 100}": PartitionRead(((number, number + 1),), 0)}, rows)
        windows.take([(part, part.encoded())])
        largest = max(largest, sum(map(len, store.values())))
    last = Part("s", 10**9, {f"p{number}": PartitionRead(((1_000, 1_001),), 10**9) for number in range(100)})
    windows.take([(last, last.encoded())])
    (window,) = windows.close([f"p{number}" for number in range(100)], [], None)
    whole = closed([Part("s", 0, {"p": PartitionRead(((0, 1_000),), 0)}, merge(chunks))], plan, 0)
    assert whole is not None
    assert window.posteriors.tobytes() == whole.posteriors.tobytes()
    assert window.times.tobytes() == whole.times.tobytes()
    assert (window.events, window.counts) == (most, WindowCounts(sampled_out=10_000_000 - most))
    assert largest < (2 * most + 10_000) * 3 * 8 * 1.02

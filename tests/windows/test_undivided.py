"""Events of many streams that are kept together give the windows, late events and positions of streams taken apart."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.windows import CountPlan, Plan, StreamRows, Streams, TimePlan, Window, Windowing
from monitor.windows.batch import LeftOut

NAMES = ("counted", "labelled", "patient", "quick", "sliding")
PLANS: dict[str, Plan] = {
    "counted": CountPlan(3),
    "labelled": TimePlan(10, 10, 2, 1_000),
    "patient": TimePlan(50, 50, 9, 1_000),
    "quick": TimePlan(10, 10, 0, 2),  # so few that windows are sampled
    "sliding": TimePlan(20, 5, 3, 1_000),
}
Event = tuple[int, int, bool]
"""Which stream, when, and whether its label is there."""

batches = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.lists(st.tuples(st.integers(0, 4), st.integers(0, 120), st.booleans()), min_size=1, max_size=12),
        st.booleans(),
    ),
    max_size=12,
)


def columns(events: Sequence[Event], first: int) -> Window:
    """Scores that tell each event from every other."""
    scores = (first + np.arange(len(events))) / 1_000
    labels = np.array([0 if labelled else -1 for _, _, labelled in events])
    times = np.array([time for _, time, _ in events])
    return Window(np.column_stack([scores, 1 - scores]), labels=labels, timestamps=times)


def seen(window: Window) -> tuple[object, ...]:
    assert window.timestamps is not None
    rows = window.posteriors.tolist(), window.timestamps.tolist()
    return window.key, window.counts, window.closed_because, window.origin, rows


def said(left_out: LeftOut) -> object:
    copies = {name: arrivals.offsets.tolist() for name, arrivals in left_out.copies.items()}
    late = [
        {name: offsets.tolist() for name, offsets in kind.items()} for kind in (left_out.late, left_out.late_after_idle)
    ]
    return late, copies, {name: copied.tolist() for name, copied in left_out.copied.items()}


def kept(windowing: Windowing) -> object:
    """What a restart needs; what a partition lacks has no order."""
    progress = windowing.checkpoint().progress
    return {name: (replace(each, lacks=()), frozenset(each.lacks)) for name, each in progress.items()}


@settings(max_examples=200)
@given(batches, st.booleans())
def test_streams_together_are_as_each_apart(batches: list[tuple[str, list[Event], bool]], forget: bool) -> None:
    together, apart = (Windowing(PLANS, awaiting_labels=["labelled"]) for _ in range(2))
    offsets = dict.fromkeys("ab", 0)
    for windowing in (together, apart):
        for partition in offsets:
            windowing.begin(partition, None)
    for turn, (partition, events, idle) in enumerate(batches):
        first, codes = offsets[partition], np.array([code for code, _, _ in events])
        rows, numbers = columns(events, 100 * turn), first + np.arange(len(events))
        offsets[partition] = first + len(events)
        each = [
            StreamRows.of(NAMES[code], rows.take(codes == code), numbers[codes == code]) for code in np.unique(codes)
        ]
        missed = together.add(partition, offsets[partition], [StreamRows(Streams(NAMES, codes), rows, numbers)])
        assert said(missed) == said(apart.add(partition, offsets[partition], each))
        assert together.rows == apart.rows or "quick" in {NAMES[code] for code in codes}  # thinned when divided
        due = list(offsets), [next(name for name in offsets if name != partition)] if idle else []
        assert together.due(*due) == apart.due(*due)
        assert [seen(window) for window in together.close(*due)] == [seen(window) for window in apart.close(*due)]
        assert kept(together) == kept(apart)
        if forget and turn == len(batches) // 2:
            for windowing in (together, apart):
                windowing.forget("a")
                windowing.begin("a", None)  # it leaves alone what has been published without it
    assert [seen(window) for window in together.finish()] == [seen(window) for window in apart.finish()]
    assert kept(together) == kept(apart)


def test_what_waits_together_is_divided_before_it_is_much() -> None:
    names = tuple(f"s{number}" for number in range(4))
    windowing = Windowing(dict.fromkeys(names, TimePlan(10**9, 10**9, 0, 10)))
    windowing.begin("p", None)
    most = 0
    for turn in range(100):
        codes = np.arange(200) % 4
        rows = Window(np.full((200, 2), 0.5), timestamps=np.arange(200))
        windowing.add("p", 200 * turn + 200, [StreamRows(Streams(names, codes), rows, 200 * turn + np.arange(200))])
        most = max(most, windowing.rows)
    assert most < 5_000  # of 20,000: a window keeps at most 10, and in passing twice as many

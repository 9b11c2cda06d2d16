"""The labelled rows that a window is judged by, against a slow twin that sees all input at once."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.ports import NEVER
from monitor.windows import PartitionProgress
from monitor.windows.assembly import Windowing
from monitor.windows.batch import LabelTimes, StreamRows
from monitor.windows.by_time import TimePlan
from monitor.windows.label_evidence import EvidencePlan
from monitor.windows.window import Window

SIZE, LATENESS = 10, 3
PARTITIONS = ("p", "q")


@dataclass(frozen=True)
class Record:
    """A scored event, with its label or without; or a label alone."""

    time: int
    name: str
    label: float | None
    scored: bool


def twin(partitions, span, enough):
    """By start of window: the times and labels of its evidence."""
    rows, told, windows = [], [], set()
    for records in partitions.values():
        newest = NEVER
        for one in records:
            newest = max(newest, one.time)
            late = one.time < newest - LATENESS
            at = newest if late else one.time
            if not one.scored:
                told.append((one.name, at, one.label))
            elif not late or one.label is not None:
                rows.append((one.name, at, one.label))
            if one.scored and not late:
                windows.add(one.time // SIZE * SIZE)
    found = {}
    for start in sorted(windows):
        end = start + SIZE
        last = {}
        for name, at, label in told:
            if end - span <= at < end:
                last[name] = max(last.get(name, (NEVER, 0.0)), (at, label))
        labelled = [
            last.get(name, (at, label))
            for name, at, label in rows
            if end - span <= at < end and (label is not None or name in last)
        ]
        for back in range(SIZE, span + 1, SIZE):
            found[start] = sorted(one for one in labelled if one[0] >= end - back)
            if len(found[start]) >= enough:
                break
    return found


def plan(span, enough):
    return TimePlan(SIZE, SIZE, LATENESS, 10_000, evidence=EvidencePlan(span, enough))


def put(windowing, partition, records, first):
    """One batch."""
    scored = [(first + at, one) for at, one in enumerate(records) if one.scored]
    alone = [(first + at, one) for at, one in enumerate(records) if not one.scored]
    streams, labels = [], {}
    if scored:
        rows = Window(
            posteriors=np.empty((len(scored), 0)),
            predictions=np.zeros(len(scored)),
            targets=np.array([np.nan if one.label is None else one.label for _, one in scored]),
            timestamps=np.array([one.time for _, one in scored]),
            ids=np.array([one.name for _, one in scored], dtype=object),
        )
        streams = [StreamRows.of("s", rows, np.array([offset for offset, _ in scored]))]
    if alone:
        labels["s"] = LabelTimes(
            np.array([offset for offset, _ in alone]),
            np.array([one.time for _, one in alone]),
            np.array([one.name for _, one in alone], dtype=object),
            np.array([one.label for _, one in alone]),
        )
    windowing.add(partition, first + len(records), streams, (), labels)


def seen(windows):
    return {window.key.start: rows_of(window.evidence) for window in windows}


def rows_of(evidence):
    if not evidence.events:
        return []
    return sorted(zip(evidence.timestamps.tolist(), evidence.targets.tolist(), strict=True))


def run(partitions, span, enough, *, batch, restart_after=0):
    """In batches, dealt in turn; after so many of them a crash, and a new start from the last checkpoint."""
    windowing, found, checkpoint = Windowing({"s": plan(span, enough)}), {}, None
    for name in partitions:
        windowing.begin(name, None)
    position, turn = dict.fromkeys(partitions, 0), 0
    while any(position[name] < len(records) for name, records in partitions.items()):
        for name, records in partitions.items():
            put(windowing, name, records[position[name] : position[name] + batch], position[name])
            position[name] = min(position[name] + batch, len(records))
        unread = [name for name in partitions if position[name] < len(partitions[name])]
        closed = seen(windowing.close(unread or PARTITIONS))
        assert not closed.keys() & found.keys()
        found.update(closed)
        checkpoint = windowing.checkpoint()
        turn += 1
        if turn == restart_after:
            windowing = Windowing({"s": plan(span, enough)})
            for name, progress in checkpoint.progress.items():
                assert isinstance(progress, PartitionProgress)
                windowing.begin(name, progress)
                position[name] = progress.offset
    found.update(seen(windowing.finish()))
    return found


record = st.builds(
    Record,
    time=st.integers(0, 60),
    name=st.sampled_from([f"e{number}" for number in range(12)]),
    label=st.integers(0, 9).map(float),
    scored=st.just(False),
) | st.builds(
    Record,
    time=st.integers(0, 60),
    name=st.sampled_from([f"e{number}" for number in range(12)]),
    label=st.none() | st.integers(0, 9).map(float),
    scored=st.just(True),
)


def arriving(records):
    """Roughly in the order of their times, as producers write them."""
    return sorted(records, key=lambda one: one.time // 7)


@settings(max_examples=150, deadline=None)
@given(
    partitions=st.fixed_dictionaries({name: st.lists(record, max_size=25).map(arriving) for name in PARTITIONS}),
    rules=st.tuples(st.sampled_from([10, 20, 40]), st.integers(1, 8)),
    batch=st.integers(1, 12),
    restart_after=st.integers(0, 6),
)
def test_whatever_the_batches_and_restarts_the_evidence_is_what_the_records_say(
    partitions, rules, batch, restart_after
):
    assert run(partitions, *rules, batch=batch, restart_after=restart_after) == twin(partitions, *rules)


def test_a_partition_that_is_taken_away_leaves_without_a_trace():
    windowing = Windowing({"s": plan(40, 1)})
    for name in PARTITIONS:
        windowing.begin(name, None)
    put(windowing, "p", [Record(1, "a", 1.0, True), Record(2, "a", 5.0, False)], 0)
    put(windowing, "q", [Record(1, "b", 2.0, True)], 0)
    windowing.forget("p")
    assert seen(windowing.finish()) == {0: [(1, 2.0)]}


@pytest.mark.parametrize(("labels", "kept"), [(3, 3), (5, 5)])
def test_more_labels_than_a_test_takes_are_thinned_to_the_same_sample(labels, kept, monkeypatch):
    monkeypatch.setattr("monitor.windows.label_evidence.EVIDENCE_ROWS", 5)
    some = [Record(at % 10, f"e{at}", float(at), True) for at in range(labels if labels < 5 else 60)]
    found = run({"p": some[::2], "q": some[1::2]}, 10, 1, batch=4)
    again = run({"p": some[::2], "q": some[1::2]}, 10, 1, batch=30)
    assert found == again
    assert len(found[0]) == kept

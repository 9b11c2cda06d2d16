"""The part of the service's loop that labels take: keep closed windows, keep labels, say outcomes when they are due.

A label counts for a window if, when it comes, its partition's clock has not got to the window's deadline: end plus
wait plus allowed lateness. The outcome is due when the watermark gets there, so by then every label that counts has
been read: which labels count depends on each partition's order alone, not on batches, interleaving or restarts.

Outcomes stand between windows in the order of event time: one that was due when a window closed comes before it. A
window settles (what its labels teach is learned) before the first window that closes once labels have had the time that
they took lately, by the labels that had come when that one closed; at its own outcome at the latest.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from monitor.arrays import Flags, Labels, Vector, present
from monitor.assessment import encode
from monitor.kinds import KINDS, kind_of
from monitor.labels import Arrived, Awaited, LabelFlow, Outcome, OutcomeResult, OutcomeRules, Settlement, Waiting, rows
from monitor.labels.store import LabelStore
from monitor.ports import NEVER, Message, RawBatch
from monitor.windows import Arrivals, LeftOut, PartitionProgress, Plan, Window, WindowCheckpoint

if TYPE_CHECKING:
    from monitor.events import DecodedBatch, LateLabels
    from monitor.reference import FiledReference
    from monitor.service.under_way import Ready
    from monitor.state import WindowSeen

LAST = chr(0x10FFFF)
"""No window's id comes after this."""


@dataclass(slots=True)
class _Stream:
    """One stream that awaits labels."""

    awaited: Awaited
    plan: Plan
    reference: FiledReference
    store: LabelStore
    labels: int
    """In the store."""
    evicted: int = 0
    thinned: int = 0

    @property
    def classes(self) -> tuple[str, ...]:
        """What class numbers stand for; none of a regressor."""
        return self.reference.schema.classes

    def useless(self, name: str, closed: int) -> int:
        """Labels that came before this can join no window any more; one that comes first waits as long as events do."""
        oldest = self.store.oldest(name)
        if oldest is None and self.plan.length is None:
            return NEVER  # an open count window may reach back as far as it likes
        before = closed - 2 * self.awaited.wait - (self.plan.length or 0) - self.plan.lateness
        return before if oldest is None else min(before, oldest - self.awaited.wait)


class Ledger:
    """Everything about late labels that outlives a turn of the loop. Streams without labels cost nothing."""

    def __init__(
        self, awaited: Mapping[str, Awaited], plans: Mapping[str, Plan], references: Mapping[str, FiledReference]
    ) -> None:
        self._stores = {path: LabelStore(path) for path in sorted({plan.store for plan in awaited.values()})}
        self._streams = {
            name: _Stream(
                plan, plans[name], references[name], self._stores[plan.store], self._stores[plan.store].labels(name)
            )
            for name, plan in sorted(awaited.items())
        }
        for name, stream in self._streams.items():
            stream.store.number_by(name, stream.classes)
        self._written: dict[bytes, tuple[str, int, str]] = {}
        """Outcomes, by the key of their message, that are not committed: stream, deadline and window."""
        self._committing: dict[bytes, tuple[str, int, str]] = {}
        """Those among them that the commit under way publishes."""
        self._kept: list[tuple[str, int, str]] = []
        """Windows kept, and not published yet: stream, deadline and window."""
        self._publishing: set[tuple[str, int, str]] = set()
        """Those among them that the commit under way publishes."""
        self._begun = False

    @property
    def streams(self) -> Collection[str]:
        """Those that await labels."""
        return self._streams.keys()

    def begin(self, progress: Iterable[PartitionProgress]) -> None:
        """Take up where commits say: outcomes that came with them are out, and windows that did not are not, whatever
        became of the store since."""
        tokens = {each.outcomes for each in progress} - {""}
        for store in self._stores.values():
            if not self._begun:  # later on they are our own, and under way
                store.take_back(tokens)
            if out := store.noted(tokens):
                store.settled(out)
        self._begun = True

    def take(self, batch: RawBatch, decoded: DecodedBatch, left_out: LeftOut) -> None:
        """Keep the labels of a batch, and the labelled copies of earlier events."""
        for name, stream in self._streams.items():
            came = [
                *_plain(batch, decoded.late_labels.get(name), left_out.label_marks.get(name)),
                *_copies(left_out.copies.get(name)),
            ]
            stream.labels += sum(stream.store.arrived(name, batch.partition, labels) for labels in came)

    def may_be_due(self, mark: int | None, windows_wait: bool) -> bool:
        """Whether outcomes may be due when event time has come so far and all windows that wait are answered."""
        return bool(self._streams) and (windows_wait or bool(self._due(mark)))

    def outcomes(self, mark: int | None) -> list[Outcome]:
        """The outcomes that are due and not written yet, in the order of their deadlines; all for None.

        Those of its segments follow a window's own.
        """
        due = list[Outcome]()
        for deadline, name, window in self._due(mark):
            due.extend(self._outcomes(self._streams[name].store.waiting(name, deadline, window)))
            self._written[_key(window)] = (name, deadline, window)
        return due

    def settlements(self, stream: str, after: tuple[int, str], mark: int | None, wait: int) -> list[Settlement]:
        """The windows after one that settle when another closes, in order; labels take so many microseconds."""
        known = self._streams.get(stream)
        if known is None or mark is None:
            return []
        until = (mark - known.plan.lateness - wait, LAST)
        return list(self._settlements(known, stream, after, until, mark))

    def settlements_by(self, outcome: Outcome, after: tuple[int, str]) -> list[Settlement]:
        """The windows after one up to that of an outcome, by all labels that came before it was due.

        Its stream has settled before the outcomes of segments.
        """
        if outcome.result.segment:
            return []
        stream, result = self._streams[outcome.result.stream], outcome.result
        deadline = result.ends + stream.awaited.wait + stream.plan.lateness
        until = (result.ends, result.window)
        return list(self._settlements(stream, result.stream, after, until, deadline))

    def keep(self, window: Window, parts: Sequence[WindowSeen], closed: int | None) -> None:
        """Let a window wait for its labels, with what was published of it and of each of its segments."""
        key, stream = window.key, self._streams.get(window.key.stream)
        if stream is None or closed is None:
            return
        told, kept = kind_of(stream.reference).outcomes.waits(window, parts, stream.reference)
        waiting = Waiting(
            stream=key.stream,
            window=key.id,
            start=key.start,
            end=key.end,
            closes=closed,
            deadline=key.end + stream.awaited.wait + stream.plan.lateness,
            events=window.events,
            told=told,
            rows=kept,
        )
        stream.evicted += stream.store.keep(waiting, stream.awaited.most)
        self._kept.append((waiting.stream, waiting.deadline, waiting.window))

    def flushed(self, ready: Ready) -> WindowCheckpoint:
        """Before the sink commits: what it builds on is on disk, and the checkpoint names what is published with it."""
        self._committing = {
            message.key: self._written[message.key] for message in ready.messages if message.key in self._written
        }
        published = {message.key for message in ready.messages}
        self._publishing = {one for one in self._kept if one[2].encode() in published}
        token = secrets.token_hex(8) if self._committing or self._publishing else ""
        for store in self._stores.values():
            if token:
                store.note(token, self._of(store, self._committing.values()))
            kept = self._of(store, self._kept)
            store.note_kept({one: token if one in self._publishing else "" for one in kept})
            store.flush()
        if not token:
            return ready.checkpoint
        return WindowCheckpoint(
            {name: replace(progress, outcomes=token) for name, progress in ready.checkpoint.progress.items()}
        )

    def committed(self, checkpoint: WindowCheckpoint) -> None:
        """After the sink committed: let go of what is settled and of what nobody can need."""
        if self._committing:
            for store in self._stores.values():
                store.settled(self._of(store, self._committing.values()))
            for key in self._committing:
                del self._written[key]
        self._kept = [one for one in self._kept if one not in self._publishing]
        closed = max((progress.closed for progress in checkpoint.progress.values()), default=NEVER)
        for name, stream in self._streams.items():
            if closed > NEVER:
                stream.labels -= stream.store.forget_labels(name, stream.useless(name, closed))
            if (surplus := stream.labels - stream.awaited.most) > 0:
                stream.store.thin_labels(name, surplus)
                stream.labels -= surplus
                stream.thinned += surplus

    def refused(self) -> None:
        """The commit was refused: what came after the last one begins again, here or with another member."""
        for name, deadline, window in self._kept:
            self._streams[name].store.drop(name, deadline, window)
        self._written, self._kept = {}, []

    def flow(self) -> dict[str, LabelFlow]:
        """What waits, by stream."""
        flow = {}
        for name, stream in self._streams.items():
            windows, events = stream.store.size(name)
            flow[name] = LabelFlow(windows, events, stream.labels, stream.evicted, stream.thinned)
        return flow

    def close(self) -> None:
        """What was not flushed comes again."""
        for store in self._stores.values():
            store.close()

    def _due(self, mark: int | None) -> list[tuple[int, str, str]]:
        return sorted(
            (deadline, name, window)
            for name, stream in self._streams.items()
            for deadline, window in stream.store.due(name, mark)
            if _key(window) not in self._written
        )

    def _outcomes(self, one: Waiting) -> Iterator[Outcome]:
        stream = self._streams[one.stream]
        store = stream.store
        labels = store.labels_of(one, rows.ids(one.rows))
        return _rules(one).outcomes(one, labels, store.copies_in(one), store.unknown(one), stream.classes)

    def _settlements(
        self, stream: _Stream, name: str, after: tuple[int, str], until: tuple[int, str], before: int
    ) -> Iterator[Settlement]:
        """Of the windows after one up to another, by the labels that came before some event time."""
        if kind_of(stream.reference).outcomes.settlement is None:
            return
        for window in stream.store.unsettled(name, after, until):
            waiting = stream.store.waiting(name, *window)
            settlement = _rules(waiting).settlement
            if settlement is not None:
                wanted = rows.ids(waiting.rows)
                labels = stream.store.labels_before(waiting, wanted, min(before, waiting.deadline))
                yield settlement(waiting, labels, stream.classes)

    def _of(self, store: LabelStore, windows: Iterable[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
        """Those that this store keeps."""
        return [one for one in windows if self._streams[one[0]].store is store]


def message(outcome: OutcomeResult) -> Message:
    """An outcome goes where results go, under a key of its own."""
    return Message("results", _key(outcome.window), encode(outcome))


def _key(window: str) -> bytes:
    """Beside the window's own: a compacted topic keeps both."""
    return f"outcome/{window}".encode()


class _PublishedTask(msgspec.Struct):
    """Of what was published of a window: the task of the reference that it was compared with."""

    task: str | None = None


def _rules(one: Waiting) -> OutcomeRules:
    """Those of the kind that a stream was of when the window was published."""
    rules: OutcomeRules = KINDS[msgspec.json.decode(one.told, type=_PublishedTask).task].outcomes
    return rules


def labels_taken(batch: RawBatch, decoded: DecodedBatch, left_out: LeftOut, fresh: Flags) -> dict[str, int]:
    """How many labels came, by stream, in the records that were not judged before a restart."""
    counts = {stream: int(np.count_nonzero(fresh[labels.index])) for stream, labels in decoded.late_labels.items()}
    for stream, copies in left_out.copies.items():
        news = np.count_nonzero(fresh[np.searchsorted(batch.offsets, copies.offsets)])
        counts[stream] = counts.get(stream, 0) + int(news)
    return counts


def _plain(batch: RawBatch, late: LateLabels | None, marks: Labels | None) -> Iterator[Arrived]:
    if late is not None and late.ids is not None and marks is not None:
        values = late.labels.astype(np.float64) if late.targets is None else late.targets
        yield Arrived(batch.offsets[late.index], late.ids.tolist(), late.timestamps, marks, values)


def _copies(late: Arrivals | None) -> Iterator[Arrived]:
    if late is None or not late.rows.events:
        return
    rows = late.rows
    yield Arrived(
        offsets=late.offsets,
        ids=[None] * rows.events if rows.ids is None else rows.ids.tolist(),
        times=np.full(rows.events, NEVER),
        marks=late.marks_after,
        values=_values(rows),
        at=late.timestamps,
        answers=rows.posteriors if rows.predictions is None else rows.predictions[:, None],
    )


def _values(rows: Window) -> Vector:
    if rows.targets is not None:
        return rows.targets
    return present(rows.labels, "labels").astype(np.float64)

"""The loop: source -> windows -> assess -> sink, and its commit protocol.

What is written and how far the source has been read are committed together, or not at all: killing the process at
any instant is a normal way to stop it. A stop drops the open windows; the next start reads their events again.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from connectors.protocols import Message, Progress, RawBatch, Sink, Source
from monitor.arrays import Flags, Labels
from monitor.deadletters import DeadLetterLimits, DeadLetterWatch, dead_letter
from monitor.errors import CommitRefusedError
from monitor.events import DecodedBatch, Decoder, Rejected
from monitor.happenings import BatchTaken, Committed, Happening, Observer, Reassigned, Turned, WindowAssessed
from monitor.publishing import Watched, published
from monitor.windowing import RejectedAt, StreamRows, Windowing
from monitor.windows import Window
from monitor.wire import Reason


@dataclass(frozen=True, slots=True)
class Clock:
    """Wall-clock microseconds since the epoch, and seconds that only ever go forward."""

    now: Callable[[], int] = field(default=lambda: time.time_ns() // 1000)
    elapsed: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the loop waits for what; seconds."""

    poll: float = 0.2
    commit: float = 5.0
    """Progress is committed at least this often while records arrive, even when no window closes."""
    idle: float = 60.0
    """A partition that has nothing to read for this long no longer holds windows open. Zero: it always does."""
    most_waiting: int = 10_000_000
    """Events in open windows; beyond it only the partitions that windows wait for are read."""


class Service:
    """Watches streams until the source is finished or `stop` says so."""

    def __init__(
        self,
        watched: Mapping[str, Watched],
        decoder: Decoder,
        source: Source,
        sink: Sink,
        *,
        observers: Sequence[Observer] = (),
        limits: DeadLetterLimits = DeadLetterLimits(),
        pace: Pace = Pace(),
        clock: Clock = Clock(),
    ) -> None:
        self._watched = watched
        self._decoder = decoder
        self._source = source
        self._sink = sink
        self._observers = observers
        self._pace = pace
        self._clock = clock
        self._watch = DeadLetterWatch(limits)
        self._windowing = Windowing({stream: one.plan for stream, one in watched.items()})
        self._last_read: dict[str, float] = {}
        self._written = False
        self._last_commit = clock.elapsed()

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Go on until nothing more will come, or until asked to stop; then commit what is complete."""
        try:
            self._start()
            while not stop():
                self._turn()
                if self._source.finished:
                    self._publish(self._windowing.finish())
                    self._tell(Turned((), frozenset(), frozenset(), self._windowing.rows))
                    break
            self._commit()
        finally:
            self._source.close()
            self._sink.close()

    def _start(self) -> None:
        checkpoint = self._sink.recover()
        self._source.start(checkpoint)
        progress = dict(checkpoint.progress) if checkpoint else {}
        # Also what the source has no more of: its positions must outlive the next commit.
        for partition in progress.keys() | set(self._source.partitions()):
            self._begin(partition, progress.get(partition))

    def _turn(self) -> None:
        self._follow_reassignment()
        held = self._held_back()
        batches = self._source.poll(self._pace.poll, held)
        for batch in batches:
            self._take(batch)
        partitions = tuple(self._source.partitions())
        idle = self._idle(partitions)
        self._publish(self._windowing.close(partitions, idle, self._idle_mark()))
        if self._written or (batches and self._clock.elapsed() - self._last_commit > self._pace.commit):
            self._commit()
        self._tell(Turned(partitions, idle, held, self._windowing.rows))

    def _take(self, batch: RawBatch) -> None:
        self._last_read[batch.partition] = self._clock.elapsed()
        decoded = self._decoder.decode(batch, self._clock.now())
        self._watch.see(len(batch.records), decoded.rejected)
        left_out = self._windowing.add(
            batch.partition,
            batch.next_offset,
            {stream: StreamRows(scored.rows, batch.offsets[scored.index]) for stream, scored in decoded.scored.items()},
            [RejectedAt(int(batch.offsets[one.index]), one.stream or None) for one in decoded.rejected],
        )
        # Records that were judged before a restart are read again only to rebuild windows.
        fresh = batch.offsets >= self._windowing.judged(batch.partition)
        rejected = [one for one in decoded.rejected if fresh[one.index]]
        for one in rejected:
            self._write(dead_letter(batch, one))
        for stream, watched in self._watched.items():
            if watched.dead_letter_late:
                self._dead_letter_late(batch, stream, Reason.LATE, left_out.late.get(stream))
                self._dead_letter_late(batch, stream, Reason.LATE_AFTER_IDLE, left_out.late_after_idle.get(stream))
        self._tell(
            BatchTaken(
                partition=batch.partition,
                records=int(np.count_nonzero(fresh)),
                events=_fresh_events(decoded, fresh),
                rejected=Counter((one.stream, str(one.reason)) for one in rejected),
                late={stream: len(offsets) for stream, offsets in left_out.late.items()},
                late_after_idle={stream: len(offsets) for stream, offsets in left_out.late_after_idle.items()},
                event_time=self._windowing.event_time(batch.partition),
            )
        )

    def _dead_letter_late(self, batch: RawBatch, stream: str, reason: Reason, offsets: Labels | None) -> None:
        for index in [] if offsets is None else np.unique(np.searchsorted(batch.offsets, offsets)).tolist():
            late = Rejected(index, reason, "its window had been closed", batch.records[index], stream)
            self._write(dead_letter(batch, late))

    def _publish(self, windows: Iterable[Window]) -> None:
        for window in windows:
            started = self._clock.elapsed()
            for assessed in published(window, self._watched[window.key.stream]):
                for message in assessed.messages:
                    self._write(message)
                seconds = self._clock.elapsed() - started
                self._tell(WindowAssessed(assessed.assessment, assessed.window, seconds))
                started = self._clock.elapsed()

    def _write(self, message: Message) -> None:
        self._sink.write(message)
        self._written = True

    def _commit(self) -> None:
        started = self._clock.elapsed()
        checkpoint = self._windowing.checkpoint()
        try:
            self._sink.commit(checkpoint)
        except CommitRefusedError:
            self._tell(Reassigned(refused=True))
        else:
            self._tell(Committed(checkpoint, self._clock.elapsed() - started))
        self._written = False
        self._last_commit = self._clock.elapsed()

    def _follow_reassignment(self) -> None:
        change = self._source.reassigned()
        if change is None:
            return
        for partition in change.gone:
            self._windowing.forget(partition)
            self._last_read.pop(partition, None)
        for partition, progress in change.came.items():
            self._begin(partition, progress)
        self._tell(Reassigned(came=frozenset(change.came), gone=change.gone))

    def _begin(self, partition: str, progress: Progress | None) -> None:
        self._windowing.begin(partition, progress)
        self._last_read[partition] = self._clock.elapsed()

    def _held_back(self) -> frozenset[str]:
        if self._windowing.rows <= self._pace.most_waiting:
            return frozenset()
        partitions = self._source.partitions()
        return self._windowing.ahead(frozenset(partitions) - self._idle(partitions))

    def _idle(self, partitions: Collection[str]) -> frozenset[str]:
        if not self._pace.idle:
            return frozenset()
        since = self._clock.elapsed() - self._pace.idle
        return frozenset(
            partition
            for partition in partitions
            if self._last_read.get(partition, since) < since and not self._source.waiting(partition)
        )

    def _idle_mark(self) -> int:
        """When nothing comes from anywhere, event time is taken to have come to now less the patience for idleness."""
        return self._clock.now() - int(self._pace.idle * 1e6)

    def _tell(self, happening: Happening) -> None:
        for observer in self._observers:
            observer(happening)


def _fresh_events(decoded: DecodedBatch, fresh: Flags) -> dict[str, int]:
    return {stream: int(np.count_nonzero(fresh[scored.index])) for stream, scored in decoded.scored.items()}

"""The loop: source -> windows -> assess -> sink, and its commit protocol.

What is written and how far the source has been read are committed together, or not at all: killing the process at
any instant is a normal way to stop it. A stop drops the open windows; the next start reads their events again.

Windows may be assessed beside the loop (`workers`), which meanwhile goes on reading: what each turn has to publish
waits in `under_way`, with the checkpoint of that turn, until its results are there.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from monitor.arrays import Flags, Labels
from monitor.errors import CommitRefusedError, ConnectorError
from monitor.events import DecodedBatch, Decoder, JoinRule, Reason, Rejected, Scored
from monitor.labels import Outcome
from monitor.limits import COMMIT_EVERY, IDLE_AFTER, MOST_WAITING
from monitor.ports import Checkpoint, Marking, Message, Progress, RawBatch, Sink, Source
from monitor.service.dead_letters import DeadLetterLimits, DeadLetterWatch, dead_letter
from monitor.service.idleness import Idleness
from monitor.service.label_ledger import Ledger, labels_taken
from monitor.service.label_ledger import message as outcome_message
from monitor.service.live_correction import Correcting
from monitor.service.notices import (
    BatchTaken,
    Committed,
    Happening,
    LabelsWaiting,
    Observer,
    OutcomeKnown,
    Reassigned,
    Remembered,
    StateAdvanced,
    Turned,
    WindowAssessed,
)
from monitor.service.placing import placed
from monitor.service.publishing import Watched, messages
from monitor.service.reading import EventReading
from monitor.service.shared_out import WholeWindows
from monitor.service.stream_states import StreamStates
from monitor.service.under_way import Ready, UnderWay
from monitor.service.workers import Answers, Assessing, Here
from monitor.state import Changed, LearnedState, WindowSeen, owner
from monitor.windows import (
    LeftOut,
    PartitionProgress,
    Window,
    WindowCheckpoint,
    Windowing,
    from_stored,
)


@dataclass(frozen=True, slots=True)
class Clock:
    """Wall-clock microseconds since the epoch, and seconds that only ever go forward."""

    now: Callable[[], int] = field(default=lambda: time.time_ns() // 1000)
    elapsed: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the loop waits for what; seconds."""

    poll: float = 0.2
    commit: float = COMMIT_EVERY / 1e6
    """Progress is committed at least this often while records arrive, even when no window closes."""
    idle: float = IDLE_AFTER / 1e6
    """A partition that has nothing to read for this long no longer holds windows open. Zero: it always does."""
    most_waiting: int = MOST_WAITING
    """Events in open windows; beyond it only the partitions that windows wait for are read."""
    answers: float = 0.02
    """The longest poll while windows are being assessed: their results should not wait for the next record."""
    sign_of_life: float = 1.0
    """While nothing can be read because the assessments are behind, the source is polled this often all the same."""
    stop: float = 1.0
    """How long a stop waits for assessments; what is not ready by then is left to the next start."""


class _InterruptedError(Exception):
    """A stop does not wait for the assessments any longer: what is not published is left to the next start."""


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
        assessing: Assessing | None = None,
        join: JoinRule | None = None,
    ) -> None:
        """`assessing` is where windows are assessed; without one they are on the loop. `join` is for events that are
        two records each."""
        self._watched = watched
        self._reading = EventReading(decoder, join)
        self._source = source
        self._sink = sink
        self._observers = observers
        self._pace = pace
        self._clock = clock
        self._watch = DeadLetterWatch(limits)
        plans = {stream: each.plan for stream, each in watched.items()}
        awaited = {stream: each.awaited for stream, each in watched.items() if each.awaited is not None}
        self._windowing = Windowing(plans, awaiting_labels=awaited)
        self._ledger = Ledger(awaited, plans, {stream: each.reference for stream, each in watched.items()})
        self._dead_lettering = [stream for stream, each in watched.items() if each.dead_letter_late]
        self._idleness = Idleness(pace.idle)
        self._assessing = assessing or Here(watched, clock.elapsed)
        self._under_way = UnderWay[Answers]()
        self._states = StreamStates({stream: each.concerns for stream, each in watched.items()}, sink)
        self._correcting = Correcting(watched, self._states.committed_of)
        self._whole = WholeWindows(source, {stream: each.spread for stream, each in watched.items()}, self._tell)
        self._refused = False
        self._begun = False
        """Whether partitions have come. A member that comes later is refused; those that are there go on."""
        self._uncommitted = False
        """Whether records were read that no checkpoint counts yet."""
        self._stop: Callable[[], bool] = lambda: False
        self._last_commit = clock.elapsed()

    def run(self, stop: Callable[[], bool] = lambda: False) -> None:
        """Go on until nothing more will come, or until asked to stop; then commit what is complete."""
        self._stop = stop
        try:
            self._start()
            with suppress(_InterruptedError):
                self._loop()
                self._under_way.end_turn(self._windowing.checkpoint())
                self._drain()
            self._publish(0.0)
        finally:
            self._assessing.close()
            self._source.close()
            self._sink.close()
            self._ledger.close()

    def _loop(self) -> None:
        while not self._stop():
            self._turn()
            if self._source.finished:
                self._assess(self._windowing.finish())
                self._expect_outcomes()
                self._tell(Turned((), frozenset(), frozenset(), self._windowing.rows))
                return

    def _start(self) -> None:
        checkpoint = self._sink.recover()
        self._states.begin()
        gone = self._source.start(checkpoint) or ()
        progress = _restored(checkpoint.progress) if checkpoint else {}
        missed = [partition for partition in gone if progress[partition].offset < progress[partition].read]
        if missed:
            raise ConnectorError(f"{', '.join(sorted(missed))} is gone, and open windows need it again")
        # Also what the source has no more of: its positions must outlive the next commit.
        partitions = {**dict.fromkeys(self._source.partitions()), **progress}
        self._begin_all(partitions)
        if partitions:  # of a group they are not known yet, nor what was committed with them
            self._ledger.begin(progress.values())
        self._remember()

    def _turn(self) -> None:
        self._follow_reassignment()
        held = self._held_back()
        batches = self._source.poll(self._patience(), held)
        for batch in batches:
            self._take(batch)
        partitions = tuple(self._source.partitions())
        idle = self._idle(partitions)
        due = (partitions, idle, self._idleness.mark(partitions, self._clock.elapsed()))
        if not self._windowing.due(*due) or self._whole.known:
            self._assess(self._windowing.close(*due))
        self._whole.look()
        self._expect_outcomes()
        overdue = self._under_way.empty and self._clock.elapsed() - self._last_commit > self._pace.commit
        self._uncommitted |= bool(batches)
        if self._under_way.begun or (self._uncommitted and overdue):
            self._uncommitted = False
            self._under_way.end_turn(self._windowing.checkpoint())
        self._publish(0.0)
        self._tell(Turned(partitions, idle, held, self._windowing.rows, self._under_way.windows))

    def _patience(self) -> float:
        return min(self._pace.poll, self._pace.answers) if self._under_way.windows else self._pace.poll

    def _take(self, batch: RawBatch) -> None:
        batch, decoded = self._reading.decoded(batch, self._clock.now())
        self._watch.see(len(batch.records), decoded.rejected)
        left_out = placed(self._windowing, batch, decoded)
        self._whole.saw(batch.partition, decoded)
        self._hear(batch.partition)
        self._ledger.take(batch, decoded, left_out)
        # Records that were judged before a restart are read again only to rebuild windows.
        fresh = batch.offsets >= self._windowing.judged(batch.partition)
        rejected = [bad for bad in decoded.rejected if fresh[bad.index]]
        self._under_way.put(dead_letter(batch, bad) for bad in rejected)
        news = list(_news(decoded, left_out, fresh))
        self._under_way.put(self._correcting.corrected(news))
        for stream in self._dead_lettering:
            self._dead_letter_late(batch, stream, Reason.LATE, left_out.late.get(stream))
            self._dead_letter_late(batch, stream, Reason.LATE_AFTER_IDLE, left_out.late_after_idle.get(stream))
        self._tell(
            BatchTaken(
                partition=batch.partition,
                records=int(np.count_nonzero(fresh)),
                events={stream: count for scored, new in news for stream, count in scored.streams.counts(new).items()},
                labels=labels_taken(batch, decoded, left_out, fresh),
                rejected=Counter((bad.stream, str(bad.reason)) for bad in rejected),
                examples={str(bad.reason): bad.detail for bad in reversed(rejected)},
                late={stream: len(offsets) for stream, offsets in left_out.late.items()},
                late_after_idle={stream: len(offsets) for stream, offsets in left_out.late_after_idle.items()},
                event_time=self._windowing.event_time(batch.partition),
            )
        )

    def _dead_letter_late(self, batch: RawBatch, stream: str, reason: Reason, offsets: Labels | None) -> None:
        for index in [] if offsets is None else np.unique(np.searchsorted(batch.offsets, offsets)).tolist():
            late = Rejected(index, reason, "its window had been closed", batch.records[index], stream)
            self._under_way.put([dead_letter(batch, late)])

    def _assess(self, windows: Iterable[Window]) -> None:
        for window in filter(None, map(self._whole.publishable, windows)):
            while not self._assessing.room:
                self._wait_for_room()
            self._under_way.expect(self._windowing.mark, window, self._assessing.hand_in(window))
            self._publish(0.0)

    def _expect_outcomes(self) -> None:
        mark = self._windowing.mark
        if self._ledger.may_be_due(mark, self._under_way.waiting):
            self._under_way.settle(mark)

    def _wait_for_room(self) -> None:
        """The source has to wait, and is told so: it keeps its connections and its membership alive by being polled."""
        if self._stop():
            raise _InterruptedError
        before = self._under_way.windows
        self._publish(self._pace.sign_of_life)
        if self._under_way.windows == before:
            self._source.poll(0.0, self._source.partitions())

    def _drain(self) -> None:
        """Publish all that is under way."""
        stopped = None
        while self._under_way.windows:
            if self._stop():
                stopped = stopped or self._clock.elapsed()
                if self._clock.elapsed() - stopped > self._pace.stop:
                    raise _InterruptedError
            self._publish(self._pace.poll)
        self._publish(0.0)

    def _publish(self, timeout: float) -> None:
        """Write what is ready after at most so many seconds, and commit it."""
        for step, answers in self._under_way.steps(timeout):
            for outcome in self._ledger.outcomes(step.mark):
                step.turn.messages.extend(self._settled(outcome, step.turn.states))
            if step.window is not None and answers is not None:
                step.turn.messages.extend(self._answered(step.window, step.mark, answers, step.turn.states))
                step.turn.windows += len(answers)
        ready = self._under_way.ready()
        if ready is not None and not self._refused:
            for message in (*ready.messages, *self._states.records(ready.states)):
                self._sink.write(message)
            self._commit(self._ledger.flushed(ready), ready)

    def _settled(self, outcome: Outcome, changed: Changed) -> Iterator[Message]:
        """What is published of a window whose labels have come."""
        after = self._states.of(outcome.result.stream).state(LearnedState).settled
        for settlement in self._ledger.settlements_by(outcome, after):
            self._states.advance(settlement, changed)
        seen, further = self._states.advance(outcome, changed)
        yield outcome_message(seen.result)
        yield from further
        self._tell(OutcomeKnown(seen.result))
        self._tell(StateAdvanced(seen, self._states.of(*owner(seen))))

    def _answered(self, window: Window, mark: int | None, answers: Answers, changed: Changed) -> Iterator[Message]:
        """What is published of a window."""
        known = self._states.of(window.key.stream).state(LearnedState)
        watched = self._watched[window.key.stream]
        if known.wait is not None:
            for settlement in self._ledger.settlements(window.key.stream, known.settled, mark, known.wait):
                self._states.advance(settlement, changed)
        parts = list[WindowSeen]()
        for answer in answers:
            published = answer.published
            assessed = WindowAssessed(
                published.written.assessment,
                published.window,
                answer.seconds,
                examined=published.examined,
                written=published.written,
            )
            # Members make parts of the same windows: what each knows by its own is not kept beside what others know.
            kept = not window.key.part
            seen, further = self._states.advance(assessed, changed if kept else {})
            yield from (self._whole.signed(message, window) for message in messages(published, seen, window, watched))
            yield from (message for message in further if kept or message.channel != "states")
            parts.append(seen)
            self._tell(seen)
            self._tell(StateAdvanced(seen, self._states.of(*owner(seen))))
        self._ledger.keep(window, parts, mark)

    def _commit(self, checkpoint: WindowCheckpoint, ready: Ready) -> None:
        started = self._clock.elapsed()
        checkpoint = self._reading.holding(checkpoint)
        try:
            self._sink.commit(_marked(checkpoint.stored(), self._source))
        except CommitRefusedError as error:
            self._refused = True
            self._tell(Reassigned(refused=str(error) or "no reason was given"))
        else:
            self._ledger.committed(checkpoint)
            self._reading.committed(checkpoint.progress)
            self._states.committed(ready.states)
            self._tell(LabelsWaiting(self._ledger.flow()))
            self._tell(Committed(checkpoint, self._clock.elapsed() - started, ready.windows))
        self._last_commit = self._clock.elapsed()

    def _follow_reassignment(self) -> None:
        change = self._source.reassigned(self._drain)
        if self._refused:
            # All that came after the refused commit begins again with it.
            self._under_way.clear()
            self._assessing.drop()
            self._ledger.refused()
            self._states.refused()
            self._refused = False
        if change is None:
            return
        for partition in change.gone:
            self._windowing.forget(partition)
            self._reading.forget(partition)
            self._idleness.forget(partition)
        came = _restored({partition: stored for partition, stored in change.came.items() if stored is not None})
        self._begin_all({partition: came.get(partition) for partition in change.came})
        if change.came:
            self._ledger.begin(came.values())
            self._states.begin()
        self._remember()
        if change.came and not self._begun:
            self._begun = True
            self._whole.check_waiting(self._ledger.streams)
        self._tell(Reassigned(came=frozenset(change.came), gone=change.gone))

    def _remember(self) -> None:
        """Tell what is known of the streams that come here."""
        known = self._states.all()
        self._tell(Remembered({stream: known[stream] for stream in self._whole.ours(known)}))

    def _begin_all(self, came: Mapping[str, PartitionProgress | None]) -> None:
        """Those first that say what has been published."""
        for partition in sorted(came, key=lambda name: came[name] is None):
            self._windowing.begin(partition, came[partition])
            self._reading.begin(partition, came[partition])
            self._hear(partition)

    def _hear(self, partition: str) -> None:
        self._idleness.hear(partition, self._clock.elapsed(), self._windowing.reached(partition))

    def _held_back(self) -> frozenset[str]:
        if self._windowing.rows <= self._pace.most_waiting:
            return frozenset()
        partitions = self._source.partitions()
        return self._windowing.ahead(frozenset(partitions) - self._idle(partitions))

    def _idle(self, partitions: Collection[str]) -> frozenset[str]:
        return self._idleness.idle(partitions, self._clock.elapsed(), self._source.waiting)

    def _tell(self, happening: Happening) -> None:
        for observer in self._observers:
            observer(happening)


def _news(decoded: DecodedBatch, left_out: LeftOut, fresh: Flags) -> Iterator[tuple[Scored, Flags]]:
    """Which scored events are new: not read before a restart, and no labelled copies of earlier ones."""
    for scored in decoded.together:
        news = fresh[scored.index]
        for stream, rows in scored.streams.apart(news.size) if left_out.copied else ():
            if stream in left_out.copied:
                news[rows] &= ~left_out.copied[stream]
        yield scored, news


def _marked(checkpoint: Checkpoint, source: Source) -> Checkpoint:
    """The checkpoint with what the source will know its partitions by."""
    if not isinstance(source, Marking):
        return checkpoint
    progress = checkpoint.progress.items()
    return Checkpoint({name: replace(each, mark=source.mark(name, each.offset)) for name, each in progress})


def _restored(stored: Mapping[str, Progress]) -> dict[str, PartitionProgress]:
    """What a connector kept of each partition, read."""
    return {partition: from_stored(partition, each) for partition, each in stored.items()}

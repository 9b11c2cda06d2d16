"""Concept shift: whether labels of settled windows still follow the scores as they did on the hold-out.

Evidence is gathered with every window that settles (`labels.concept`). It begins a shift where it is so large that it
comes by chance at most once in 1,000 windows with labels, or as rarely as the budget of alarms asks for. The shift ends
when windows speak for the hold-out against what was found, a hundred to one; evidence then begins anew. While it lasts,
windows with enough events have the verdict `concept-shift`, and the feed recommends nothing but what labels have
taught. Segments are too small to be tested apart: they keep the verdicts of their events, and how good the model is in
them is not estimated meanwhile.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import log

import msgspec
import numpy as np

from monitor.arrays import UNLABELLED, present
from monitor.assessment import Assessment, Test, rfc3339, with_concept
from monitor.labels import Settlement, concept
from monitor.labels.concept import Stake, Stakes, Usual
from monitor.ports import Message
from monitor.reference import FiledReference, Reference
from monitor.state.alarm_message import Event, alarm_message
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan
from monitor.tolerances import CLASS_EVENTS, CONCEPT_ONCE_IN, RESOLVED_ODDS

NAME = "concept"
SERIES = "labels against scores"
"""Of the alarms."""


class Shift(msgspec.Struct, frozen=True):
    """A concept shift that has begun and has not ended."""

    stake: Stake
    """What speaks most for it."""
    since: int
    """When the first window began that shows it, microseconds."""
    windows: int
    """With labels, since then, when it was found."""
    against: float = 0.0
    """What windows have had to say against it since, in nats."""


class ConceptState(msgspec.Struct, frozen=True):
    """Eighteen stakes."""

    until: int = 0
    """When the last window ended whose labels were counted: those that overlap it are not."""
    windows: int = 0
    """With labels that could be compared."""
    labels: int = 0
    """Of the last of them."""
    evidence: float = 0.0
    """Of all stakes together, in nats; while a shift lasts, that with which it was found."""
    logs: tuple[float, ...] = ()
    """What each stake has won since it last began anew,"""
    since: tuple[int, ...] = ()
    """when that was,"""
    lengths: tuple[int, ...] = ()
    """and over how many windows."""
    shift: Shift | None = None
    published: Shift | None = None
    """The shift as the alarms have it."""


def concept_shift(plan: StatePlan, reference: FiledReference) -> Concern[ConceptState] | None:
    """The concern, for whole streams of classifiers that await labels."""
    if not plan.awaiting or not isinstance(reference, Reference):
        return None
    watch = _Watch.of(plan, reference)

    def advance(state: ConceptState, seen: Seen) -> Advanced[ConceptState]:
        if isinstance(seen, WindowSeen):
            return watch.segment(state, seen) if seen.window.key.segment else watch.window(state, seen)
        if isinstance(seen, Settlement):
            return Advanced(watch.settled(state, seen))
        if seen.result.segment:
            return Advanced(state)
        result = msgspec.structs.replace(seen.result, concept=watch.words(state))
        return Advanced(state, seen=replace(seen, result=result))

    return Concern(NAME, version=1, state=ConceptState, advance=advance, new_reference="begins anew")


@dataclass(frozen=True)
class _Watch:
    """What the labels of a stream are held against."""

    reference: Reference
    threshold: float
    """A shift by chance comes about at most once in so many windows with labels."""
    budgeted: bool
    """Whether there is a budget of alarms."""

    @classmethod
    def of(cls, plan: StatePlan, reference: Reference) -> "_Watch":
        rate = 0.0 if plan.budget is None else plan.budget.of_labels
        return cls(reference, max(CONCEPT_ONCE_IN, 1 / rate if rate else 0.0), bool(rate))

    @cached_property
    def usual(self) -> Usual | None:
        """How labels follow the scores on the hold-out; None where nothing can be tested. Worked out when first asked
        for: workers, which assess windows and know no labels, never do."""
        if self._few:
            return None
        sample = self.reference.sample
        usual = concept.as_usual(sample.posteriors, sample.labels)
        return usual if usual is not None and usual.tells else None

    @property
    def refused(self) -> str:
        """Why nothing is tested; empty where something is."""
        if self._few:
            return f"{CLASS_EVENTS} hold-out events of each class are wanted; {', '.join(self._few)}"
        return "" if self.usual is not None else "the scores say too little of the hold-out's labels"

    @property
    def _few(self) -> list[str]:
        """The classes of which the hold-out has too few events."""
        counts = zip(self.reference.classes, self.reference.class_counts.tolist(), strict=True)
        return [f"{name} has {count:,.0f}" for name, count in counts if count < CLASS_EVENTS]

    def settled(self, state: ConceptState, seen: Settlement) -> ConceptState:
        """With the labels of one window more."""
        one = seen.learned_from
        known = one.labels != UNLABELLED
        if self.usual is None or seen.reference != self.reference.version or seen.start < state.until:
            return state
        some = concept.strata(self.reference.calibrated(one.posteriors[known]), one.labels[known])
        if not some.sign.size:
            return state
        state = msgspec.structs.replace(
            state, until=seen.end, windows=state.windows + 1, labels=int(np.count_nonzero(known))
        )
        if state.shift is not None:
            return _lasting(state, state.shift, concept.against(some, self.usual, state.shift.stake))
        return self._gathered(state, concept.increments(some, self.usual), seen.start)

    def _gathered(self, state: ConceptState, steps: Stakes, start: int) -> ConceptState:
        """Stakes that have lost begin anew with this window."""
        logs, since, lengths = (
            np.array(part or [0] * steps.size).reshape(steps.shape) for part in (state.logs, state.since, state.lengths)
        )
        lost = logs <= 0
        logs = np.where(lost, 0.0, logs) + steps
        since, lengths = np.where(lost, start, since), np.where(lost, 0, lengths) + 1
        evidence = round(concept.total(logs), 6)
        if evidence >= log(self.threshold):
            stake, at = concept.leading(logs)
            shift = Shift(stake, int(since[at]), int(lengths[at]))
            return msgspec.structs.replace(state, evidence=evidence, logs=(), since=(), lengths=(), shift=shift)
        return msgspec.structs.replace(
            state,
            evidence=evidence,
            logs=tuple(logs.round(9).ravel().tolist()),
            since=tuple(since.ravel().tolist()),
            lengths=tuple(lengths.ravel().tolist()),
        )

    def window(self, state: ConceptState, seen: WindowSeen) -> Advanced[ConceptState]:
        """The result and the feed say it; with a budget it is an alarm too."""
        if not state.windows or self.usual is None or not isinstance(seen.assessment, Assessment):
            return Advanced(state)
        shift = state.shift
        test = Test(
            statistic=state.evidence,
            p_value=None,
            effect=0.0 if shift is None else abs(shift.stake.theta(self.usual)),
            level=1 / self.threshold,
            floor=float(self.usual.edges[0, 0]) if shift is None else shift.stake.edge(self.usual),
            events=state.labels,
            significant=shift is not None,
            meaning="evidence of labels, in nats, that they follow the scores otherwise than on the hold-out",
        )
        assessment = with_concept(seen.assessment, test, "" if shift is None else self.words(state))
        return Advanced(
            msgspec.structs.replace(state, published=shift),
            self._alarms(state, seen) if self.budgeted else [],
            seen=replace(seen, assessment=assessment),
        )

    def segment(self, state: ConceptState, seen: WindowSeen) -> Advanced[ConceptState]:
        """While labels of its stream speak against the scores, these do not tell how good they are in a segment."""
        whole = seen.whole.get(NAME, ConceptState())
        if whole.shift is None or not isinstance(seen.assessment, Assessment):
            return Advanced(state)
        return Advanced(state, seen=replace(seen, assessment=seen.assessment.without_performance(self.words(whole))))

    def words(self, state: ConceptState) -> str:
        """What labels say against the scores, or why nothing is tested; empty where they say nothing."""
        if refused := self.refused:
            return f"not tested: {refused}"
        shift, usual = state.shift, present(self.usual, "the hold-out's relation")
        if shift is None:
            return ""
        slope = float(usual.base[0])
        worth = (
            f"a step of 1 in the scores' log odds is worth about {max(slope + shift.stake.theta(usual), 0.0):.2g} "
            f"in those of the labels, {slope:.2g} on the hold-out"
        )
        how = {(0, -1): f"less closely: {worth}", (0, 1): f"more closely: {worth}"}.get(
            (shift.stake.direction, shift.stake.sign), "in another shape: what scores of some range say has changed"
        )
        return (
            f"labels follow the scores {how} (labels of {shift.windows} windows from {rfc3339(shift.since)} on, "
            "whatever their class mix)"
        )

    def _alarms(self, state: ConceptState, seen: WindowSeen) -> list[Message]:
        """What has begun or ended since the last window."""
        old, new = state.published, state.shift
        over = old is not None and (new is None or new.since != old.since)
        begun = new is not None and (old is None or over)
        events: list[tuple[Shift | None, Event]] = [(old, "resolved")] * over
        events += [(new, "raised")] * begun
        return [self._message(shift, event, state, seen) for shift, event in events if shift is not None]

    def _message(self, shift: Shift, event: Event, state: ConceptState, seen: WindowSeen) -> Message:
        resolved = f"{SERIES}: the last windows speak {RESOLVED_ODDS:.0f} to 1 against it"
        return alarm_message(
            seen.window.key,
            event,
            SERIES,
            since=shift.since,
            windows=shift.windows,
            size=(2 * log(self.threshold) / shift.windows) ** 0.5,
            once_in=self.threshold,
            reason=self.words(state) if event == "raised" else resolved,
            alert="ShiftwatchConceptShift",
        )


def _lasting(state: ConceptState, shift: Shift, step: float) -> ConceptState:
    """With one window of labels more: the odds for the hold-out against what was found decide whether it is over."""
    against = max(0.0, round(shift.against + step, 9))
    if against > log(RESOLVED_ODDS):
        return msgspec.structs.replace(state, evidence=0.0, shift=None)
    return msgspec.structs.replace(state, shift=msgspec.structs.replace(shift, against=against))

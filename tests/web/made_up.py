"""Assessed windows that never were: any number of windows, features and classes, in no time; and a clock to go by."""

from dataclasses import dataclass, field, replace
from functools import cache

import msgspec
import numpy as np

from monitor.assessment import NOTHING_WRONG, Assessment, DataQuality, FeatureShift, Test
from monitor.assessment.harm import Harm
from monitor.assessment.performance import Performance
from monitor.assessment.verdict import Verdict
from monitor.kinds.class_mix import ClassifierFacts
from monitor.kinds.classifier import CLASSIFIER
from monitor.labels import outcome_message, outcomes, published_window
from monitor.labels.outcome_message import OutcomeResult
from monitor.labels.values import Found, LabelFlow, Stateless, Waiting
from monitor.observers.history import History
from monitor.observers.snapshot import Caps, StreamFacts
from monitor.performance import MeasureValue
from monitor.ports import NEVER, Intake, PartitionReport, Report, SinkReport
from monitor.priors.estimate import PriorEstimate
from monitor.recalibration import Recalibration, identity
from monitor.reference import Reference
from monitor.service.loop import Clock
from monitor.service.notices import (
    BatchTaken,
    Committed,
    Happening,
    LabelsWaiting,
    Turned,
)
from monitor.shifts.feature_tests import Move
from monitor.state import Budget, StatePlan, WindowSeen, concerns_of
from monitor.windows import WindowCheckpoint
from monitor.windows.origin import WHOLE
from monitor.windows.summary import WindowSummary
from monitor.windows.window import Window, WindowCounts, WindowKey
from tests.state.windows import Shown

MINUTE = 60_000_000
NO_LABELS = Found(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
START = 1_795_000_000_000_000 // MINUTE * MINUTE


@cache
def reference(classes: int) -> Reference:
    """From calibrated scores of as many classes as the story has, so that what labels teach fits them."""
    rng = np.random.default_rng(classes)
    posteriors = rng.dirichlet(np.ones(classes), size=50 * classes)
    labels = (posteriors.cumsum(axis=1) < rng.random((len(posteriors), 1))).sum(axis=1)
    return Reference.fit(posteriors, labels, classes=[f"c{y}" for y in range(classes)], stream="s")


@dataclass
class Story:
    """One stream and what happens to it; windows of a minute, assessed as they end."""

    stream: str = "made-up"
    classes: int = 3
    features: int = 4
    windows: int = 1_000
    changes: str | None = None
    budget: Budget | None = None
    caps: Caps = field(default_factory=Caps)
    source: object = None
    sink: object = None
    now: int = START
    behind: int = 0
    """How long after their time events are read."""
    number: int = 0
    history: History = field(init=False)
    last: WindowSeen = field(init=False)
    """Of the whole stream."""

    def __post_init__(self) -> None:
        clock = Clock(now=lambda: self.now + self.behind, elapsed=lambda: self.now / 1e6)
        told = facts(self.stream, self.classes, self.features)
        self.history = History({self.stream: told}, caps=self.caps, source=self.source, sink=self.sink, clock=clock)
        plan = StatePlan(remembered=self.windows, awaiting=True, changes=self.changes, budget=self.budget)
        concerns = [one for one in concerns_of(plan, reference(self.classes)) if one.name != "trust"]
        self.shown = Shown(self.stream, concerns, self.history)

    @property
    def key(self) -> WindowKey:
        """Of the last window of the whole stream."""
        return WindowKey(self.stream, "", self.now - MINUTE, self.now)

    def tell(self, happening: Happening) -> None:
        self.history(happening)

    def window(
        self,
        verdict: Verdict = Verdict.STABLE,
        *,
        priors: tuple[float, ...] | None = None,
        moved: dict[int, float] | None = None,
        segment: str = "",
        labels: np.ndarray | None = None,
        apply: bool = False,
        converged: bool = True,
        quality: DataQuality = NOTHING_WRONG,
    ) -> Assessment:
        """One more window (or a segment of the last one); `moved` gives features their distances."""
        if not segment:
            self.number += 1
            self.now = START + self.number * MINUTE
        key = WindowKey(self.stream, segment, self.now - MINUTE, self.now)
        assessment = assessed(
            key,
            verdict,
            priors or source(self.classes),
            moved=moved or {},
            features=self.features,
            apply=apply,
        )
        assessment = replace(assessment, quality=quality)
        if not converged:
            told = assessment.prevalence
            object.__setattr__(told, "converged", False)
            object.__setattr__(told, "stop_reason", "ran out of steps")
        window = Window.of(np.tile(source(self.classes), (10, 1)), labels=labels)
        summary = replace(WindowSummary.of(window, self.classes), key=key)
        seen = WindowSeen(assessment, summary, 0.03)
        self.shown.show(seen)
        self.last = self.last if segment else seen
        return assessment

    def outcome(self, trusted: bool = True, labelled: int = 10, segment: str = "") -> OutcomeResult:
        """Some labels of the last window, or of a segment of it, have come, and all have been the first class."""
        last = self.last.assessment
        assert isinstance(last, Assessment)
        key, told = last.key, published_window.told(last, {})
        one = Waiting(self.stream, key.id, key.start, key.end, key.end, key.end, last.events, told, None)
        copies = Stateless([None] * labelled, np.zeros(labelled), np.tile(last.source_priors, (labelled, 1)))
        found = outcomes.outcome(one, NO_LABELS, copies, 3)
        judged = outcome_message.trusted(found.result, "" if trusted else "labels show that the estimate was off")
        judged = msgspec.structs.replace(judged, segment=segment)
        self.shown.show(replace(found, result=judged))
        self.tell(LabelsWaiting({self.stream: LabelFlow(2, 300, 40, 1, 5)}))
        return judged

    def busy(self, events: int = 1_000, rejected: int = 0, reason: str = "not-json", stream: str | None = None) -> None:
        """A batch, a turn of the loop and a commit."""
        stream = self.stream if stream is None else stream
        self.tell(
            BatchTaken(
                "t-0",
                events + rejected,
                {self.stream: events},
                {(stream, reason): rejected},
                {self.stream: 3},
                {},
                self.now,
            )
        )
        self.tell(Turned(("t-0",), frozenset(), frozenset(), events))
        self.tell(Committed(WindowCheckpoint(), 0.002))


class Lagging:
    """A source that says how far behind it is, and what it answered those who post to it."""

    def report(self) -> Report:
        partitions = (PartitionReport("t-0", "t", 900, 100, 250),)
        intake = Intake({"accepted": 9, "full": 1}, log_bytes=700, log_limit_bytes=1_000)
        counts = {"rebalances": 2, "lost": 1, "skipped": 3, "fetch_errors": 5}
        return Report(partitions, **counts, intake=intake, certificate_expires=2e9)


class Transacting:
    """A sink that works in transactions."""

    def report(self) -> SinkReport:
        return SinkReport(committed=40, aborted=1, certificate_expires=1.9e9)


def source(classes: int) -> tuple[float, ...]:
    """Each class is half as frequent as the one before."""
    shares = 0.5 ** np.arange(1, classes + 1)
    return tuple((shares / shares.sum()).tolist())


def facts(stream: str, classes: int, features: int) -> StreamFacts:
    return StreamFacts(
        stream=stream,
        kind=CLASSIFIER.name,
        model=ClassifierFacts(names("class", classes), source(classes), "class_1" if classes == 2 else None, "em"),
        verdicts=CLASSIFIER.verdicts,
        features=names("feature", features),
        reference="0123456789abcdef",
        reference_events=50_000,
        window_seconds=60.0,
    )


def names(what: str, count: int) -> tuple[str, ...]:
    return tuple(f"{what}_{number}" for number in range(count))


def assessed(
    key: WindowKey,
    verdict: Verdict,
    priors: tuple[float, ...],
    *,
    moved: dict[int, float],
    features: int,
    apply: bool,
) -> Assessment:
    """An assessment with these findings."""
    classes = names("class", len(priors))
    estimate = PriorEstimate(
        "em", np.array(priors), np.array(priors) * 0.9, np.minimum(np.array(priors) * 1.1, 1), 5_000, 7, True, 1e-9,
        "gap", True,
    )  # fmt: skip
    rng = np.random.default_rng(key.end % 2**32)
    quiet = rng.uniform(0, 0.028, features)
    shifts = {
        name: FeatureShift(_move(name, moved.get(at, float(quiet[at])), at in moved), None)
        for at, name in enumerate(names("feature", features))
    }
    prior = verdict in (Verdict.PRIOR_SHIFT, Verdict.PRIOR_AND_COVARIATE_SHIFT)
    return Assessment(
        key=key,
        closed_because="watermark",
        origin=WHOLE,
        events=5_000,
        counts=WindowCounts(late=2, rejected=1),
        unusable=0,
        missing_values=0,
        verdict=verdict,
        reasons=(f"made up as {verdict}",),
        classes=classes,
        source_priors=np.array(source(len(priors))),
        prevalence=estimate,
        label_shift=estimate,
        estimates={"cc": estimate, "em": estimate},
        tests={
            "prior-shift": Test(9.0 if prior else 1.0, 1e-8 if prior else 0.4, 0.2, 0.01, 0.05, 5_000, prior, "mix"),
            "label-shift-fit": Test(5.0, 0.5, 0.0, 0.01, 0.05, 5_000, False, "fit"),
            "unknown-mass": Test(0.1, 0.7, 0.0, 0.01, 0.01, 5_000, False, "unknown"),
            "disagreement": Test(0.01, None, 0.01, 1.0, 0.1, 5_000, False, "apart"),
        },
        features=shifts,
        posteriors={},
        recalibration=_recalibration(classes, priors, apply),
        reference_version="0123456789abcdef",
        hold_out_events=7_000,
        harm=Harm(0.4, 0.3, 1.2, 0.6, 0.21, 0.2),
        performance=_performance(verdict),
    )


def _performance(verdict: Verdict) -> Performance:
    if verdict not in (Verdict.STABLE, Verdict.PRIOR_SHIFT):
        return Performance(withheld=f"the verdict is {verdict}")
    return Performance({"accuracy": MeasureValue(0.9, 0.88, 0.92), "brier": MeasureValue(0.1, 0.08, 0.12)}, "")


def _move(name: str, distance: float, moved: bool) -> Move:
    p = 1e-9 if moved else 0.7
    return Move(name, "ks", distance, distance, p, distance, p, 0.0, 0.0, 1.0, 5_000, p, 1.0, p, moved, False)


def _recalibration(classes: tuple[str, ...], priors: tuple[float, ...], apply: bool) -> Recalibration:
    told = identity(classes, np.array(source(len(classes))), reason="made up")
    if not apply:
        return told
    multipliers = tuple(p / s for p, s in zip(priors, told.source_priors, strict=True))
    return replace(told, target_priors=priors, multipliers=multipliers, apply=True)


__all__ = ["MINUTE", "NEVER", "START", "Lagging", "Story", "Transacting", "facts", "names", "source"]

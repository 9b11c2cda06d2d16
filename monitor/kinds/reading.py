"""What is kept of an assessed window for those who look at it later: metrics, the API, the status page.

A reading is small and frozen. What only one kind of stream has is its `answer`, a type of the kind's own.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from monitor.assessment import NOTHING_WRONG, DataQuality, FeatureShift, Test, Verdict, describe
from monitor.kinds.assessed import Assessed
from monitor.recalibration import Recalibration
from monitor.windows import Gap, WindowKey, WindowSummary

Floats = NDArray[np.float32]
Sample = tuple[str, tuple[str, ...], float]
"""A metric's name, its labels after those that say whose it is, and its value; whole numbers are exported exactly."""


@dataclass(frozen=True, slots=True)
class SmoothedMix:
    """How much of each class there is now, by all windows so far, in the order of the classes."""

    priors: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


class Answer(Protocol):
    """What a kind of stream says about a window beyond what all say; it is shown by the kind's own panels."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Empty for a kind without classes."""
        ...

    @property
    def iterations(self) -> int | None:
        """How many the reported estimate took; None where nothing is iterated."""
        ...

    def metrics(self, most: int) -> Iterator[Sample]:
        """Its samples for at most so many classes."""
        ...

    def stream_metrics(self, most: int) -> Iterator[Sample]:
        """The samples that only whole streams have."""
        ...

    def summary(self) -> Mapping[str, Any]:
        """What the API says of it."""
        ...

    def levels(self) -> Mapping[str, float]:
        """Series of values, a name each, in which changes of level are looked for; in units of their own errors."""
        ...


class ModelFacts(Protocol):
    """What is known of the model of a stream before its first window."""

    @property
    def classes(self) -> tuple[str, ...]:
        """Empty for a kind without classes."""
        ...

    @property
    def estimator(self) -> str:
        """The reference's choice; empty where nothing is estimated."""
        ...

    def metrics(self, most: int) -> Iterator[Sample]:
        """Its samples for at most so many classes."""
        ...

    def summary(self) -> Mapping[str, Any]:
        """What the API says of it."""
        ...


AnswerT_co = TypeVar("AnswerT_co", bound=Answer, covariant=True)


@dataclass(frozen=True, slots=True)
class MovedFeature:
    """A feature that moved beyond what the class mix explains."""

    name: str
    kind: str
    effect: float
    p_value: float
    explanation: str


@dataclass(frozen=True, slots=True, eq=False)
class Reading(Generic[AnswerT_co]):
    """One window, as it is remembered."""

    key: WindowKey
    events: int
    labelled: int
    late: int
    rejected: int
    sampled_out: int
    gaps: tuple[Gap, ...]
    """Why the window is incomplete; empty if it is not."""
    member: str
    partitions: tuple[str, ...]
    """Who made it out of what."""
    verdict: Verdict
    reasons: tuple[str, ...]
    answer: AnswerT_co
    """What this kind of stream says beyond that."""
    tests: Mapping[str, Test]
    features: tuple[str, ...]
    """All that was compared with the reference: the predictions of a regressor too."""
    effects: Floats
    """Per feature: how far it moved beyond what the class mix explains, 0 to 1."""
    p_values: Floats
    """Corrected across features."""
    moved: tuple[MovedFeature, ...]
    apply: bool
    """Whether the recalibration is to be applied."""
    why: str
    """The reason for that."""
    doubt: str
    """Why labels of earlier windows say that the estimates are off; empty if they do not."""
    recent: Verdict | None = None
    """Against what was normal lately; None where that is not known,"""
    recent_reasons: tuple[str, ...] = ()
    """and why."""
    quality: DataQuality = NOTHING_WRONG
    """What is plainly wrong with the data."""
    volume: float | None = None
    """Events beside those of the same hour of earlier days, where these are known."""

    def strongest(self, most: int) -> list[int]:
        """The numbers of the features with the largest effects, at most so many, in the order of the features."""
        if len(self.features) <= most:
            return list(range(len(self.features)))
        return sorted(np.argsort(-self.effects, kind="stable")[:most].tolist())


AnyReading = Reading[Any]


def reading_of(
    assessment: Assessed,
    answer: Answer,
    window: WindowSummary,
    recalibration: Recalibration,
    *,
    doubt: str,
    volume: float | None = None,
) -> AnyReading:
    """What is remembered of an assessed window; the recalibration is that which was published."""
    compared, recent = assessment.compared, assessment.baselines.get("recent")
    return Reading(
        key=assessment.key,
        events=assessment.events,
        labelled=window.labelled,
        late=assessment.counts.late,
        rejected=assessment.counts.rejected,
        sampled_out=assessment.counts.sampled_out,
        gaps=assessment.origin.gaps,
        member=assessment.origin.member,
        partitions=assessment.origin.partitions,
        verdict=assessment.verdict,
        reasons=assessment.reasons,
        answer=answer,
        tests=assessment.tests,
        features=tuple(compared),
        effects=np.array([_effect(shift) for shift in compared.values()], dtype=np.float32),
        p_values=np.array([_p_value(shift) for shift in compared.values()], dtype=np.float32),
        moved=tuple(
            MovedFeature(name, shift.kind, _effect(shift), _p_value(shift), describe(shift.move, shift.explanation))
            for name, shift in compared.items()
            if shift.moved
        ),
        apply=recalibration.corrects,
        why=recalibration.reason,
        doubt=doubt,
        recent=None if recent is None else recent.verdict,
        recent_reasons=() if recent is None else recent.reasons,
        quality=assessment.quality,
        volume=volume,
    )


def strongest(moved: list[float], most: int) -> list[int]:
    """The numbers of the largest, at most so many, in their own order."""
    return sorted(sorted(range(len(moved)), key=lambda number: -moved[number])[:most])


def _effect(shift: FeatureShift) -> float:
    """The effect of its values or of their absence, whichever moved further."""
    return max(shift.move.distance, abs(shift.move.missing_rate - shift.move.expected_missing_rate))


def _p_value(shift: FeatureShift) -> float:
    return min(shift.move.adjusted_p, shift.move.missing_adjusted_p)

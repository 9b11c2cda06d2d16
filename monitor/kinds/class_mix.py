"""What is kept of a classifier's window: how much of each class there was, by whom estimated, and what labels said."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.assessment import Assessment, BasedOn
from monitor.kinds.reading import Sample, SmoothedMix, strongest
from monitor.performance import MeasureValue
from monitor.priors import PriorEstimate
from monitor.recalibration import Recalibration
from monitor.reference import Reference
from monitor.tolerances import LEAST_ERROR, NORMAL_95
from monitor.windows import WindowSummary


@dataclass(frozen=True, slots=True)
class EstimateReading:
    """What one estimator said of the class mix."""

    method: str
    priors: tuple[float, ...]
    iterations: int
    converged: bool
    gap: float
    stop_reason: str


@dataclass(frozen=True, slots=True)
class ClassMixAnswer:
    """How much of each class, in one window."""

    classes: tuple[str, ...]
    source_priors: tuple[float, ...]
    reported: EstimateReading
    """The prevalence that is reported, and its interval."""
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    estimates: tuple[EstimateReading, ...]
    multipliers: tuple[float, ...]
    realised: tuple[float, ...] | None
    """Shares of the classes among the labelled events of the window, where there are any."""
    based_on: str = str(BasedOn.LABEL_SHIFT)
    """What the reported prevalence rests on."""
    harm: float | None = None
    """The harm score, where there are blocks of the hold-out to say what is usual."""
    smoothed: SmoothedMix | None = None
    """None before the first window that may be trusted."""
    performance: Mapping[str, MeasureValue] = field(default_factory=dict)
    """How good the model is, estimated without labels."""
    withheld: str = ""
    """Why that is not said."""
    experts: Mapping[str, float] = field(default_factory=dict)
    """What each weighs in the pool that labels have taught; empty where there is none."""

    @property
    def priors(self) -> tuple[float, ...]:
        """The prevalence that is reported."""
        return self.reported.priors

    @property
    def iterations(self) -> int:
        """The iterations of the reported estimate."""
        return self.reported.iterations

    @property
    def leading(self) -> int:
        """The class whose share moved most."""
        return int(np.argmax(self._moved()))

    def metrics(self, most: int) -> Iterator[Sample]:
        """Shares, intervals, multipliers and truth of the classes that moved most."""
        columns = {
            "prevalence_ratio": self.priors,
            "prevalence_lower_ratio": self.lower,
            "prevalence_upper_ratio": self.upper,
            "multiplier_ratio": self.multipliers,
            "realised_ratio": self.realised,
        }
        if (smoothed := self.smoothed) is not None:
            columns["smoothed_ratio"] = smoothed.priors
            columns["smoothed_lower_ratio"] = smoothed.lower
            columns["smoothed_upper_ratio"] = smoothed.upper
        for number in strongest(self._moved(), most):
            for name, values in columns.items():
                if values is not None:
                    yield name, (self.classes[number],), values[number]
        yield "estimate_converged", (), float(self.reported.converged)
        yield "estimate_gap", (), self.reported.gap
        if self.harm is not None:
            yield "harm_score", (), self.harm
        for measure, figure in self.performance.items():
            yield "estimated_performance", (measure,), figure.value
            yield "estimated_performance_lower", (measure,), figure.lower
            yield "estimated_performance_upper", (measure,), figure.upper

    def stream_metrics(self, most: int) -> Iterator[Sample]:
        """What every estimator says, and what experts weigh."""
        for name, weight in self.experts.items():
            yield "expert_weight_ratio", (name,), weight
        numbers = strongest(self._moved(), most)
        for estimate in self.estimates:
            yield "estimator_converged", (estimate.method,), float(estimate.converged)
            for number in numbers:
                yield "estimator_ratio", (estimate.method, self.classes[number]), estimate.priors[number]

    def summary(self) -> Mapping[str, Any]:
        """What the API says of it."""
        columns = zip(self.classes, self.priors, self.lower, self.upper, self.source_priors, strict=True)
        return {
            "prevalence": {
                name: {"estimate": prior, "lower": lower, "upper": upper, "reference": source}
                for name, prior, lower, upper, source in columns
            },
            "smoothed": None if self.smoothed is None else self._shares(self.smoothed),
            "estimator": self.reported.method,
            "based_on": self.based_on,
            "harm": self.harm,
            "performance": {
                "figures": {
                    name: {"estimate": measured.value, "lower": measured.lower, "upper": measured.upper}
                    for name, measured in self.performance.items()
                },
                "withheld": self.withheld,
            },
            "experts": dict(self.experts),
            "converged": self.reported.converged,
            "realised": None if self.realised is None else dict(zip(self.classes, self.realised, strict=True)),
        }

    def _shares(self, smoothed: SmoothedMix) -> Mapping[str, Any]:
        columns = zip(self.classes, smoothed.priors, smoothed.lower, smoothed.upper, strict=True)
        return {name: {"estimate": prior, "lower": lower, "upper": upper} for name, prior, lower, upper in columns}

    def levels(self) -> Mapping[str, float]:
        """The share of each class: its difference from the reference by a standard error.

        The standard error is the interval's width over twice 1.96. Of two classes one says all.
        """
        first = 1 if len(self.classes) == 2 else 0
        shares = np.subtract(self.priors, self.source_priors)[first:]
        errors = np.maximum(np.subtract(self.upper, self.lower)[first:] / (2 * NORMAL_95), LEAST_ERROR)
        scores = (shares / errors).tolist()
        return {f"share of {name}": score for name, score in zip(self.classes[first:], scores, strict=True)}

    def _moved(self) -> list[float]:
        """How far the share of each class is from the reference's."""
        return [abs(prior - source) for prior, source in zip(self.priors, self.source_priors, strict=True)]


@dataclass(frozen=True, slots=True)
class ClassifierFacts:
    """What is known of a classifier before its stream's first window."""

    classes: tuple[str, ...]
    source_priors: tuple[float, ...]
    positive: str | None
    estimator: str

    @classmethod
    def of(cls, reference: Reference) -> "ClassifierFacts":
        """What its reference says."""
        priors = _tuple(reference.source_priors)
        return cls(reference.classes, priors, reference.schema.positive, reference.estimator)

    def metrics(self, most: int) -> Iterator[Sample]:
        """The reference's shares."""
        for name, prior in list(zip(self.classes, self.source_priors, strict=True))[:most]:
            yield "source_prior_ratio", (name,), prior

    def summary(self) -> Mapping[str, Any]:
        """What the API says of it."""
        return {
            "estimator": self.estimator,
            "priors": dict(zip(self.classes, self.source_priors, strict=True)),
            "positive": self.positive,
        }


def read(
    assessment: Assessment, window: WindowSummary, recalibration: Recalibration, smoothed: SmoothedMix | None
) -> ClassMixAnswer:
    """What is remembered of a window."""
    prevalence = assessment.prevalence
    return ClassMixAnswer(
        classes=assessment.classes,
        source_priors=_tuple(assessment.source_priors),
        reported=_estimate(prevalence.method, prevalence),
        lower=_tuple(prevalence.lower),
        upper=_tuple(prevalence.upper),
        estimates=tuple(_estimate(name, estimate) for name, estimate in assessment.estimates.items()),
        multipliers=recalibration.multipliers,
        realised=tuple(count / window.labelled for count in window.class_counts) or None,
        based_on=str(assessment.based_on),
        harm=None if assessment.harm is None else assessment.harm.score,
        smoothed=smoothed,
        performance=assessment.performance.figures,
        withheld=assessment.performance.withheld,
        experts={expert.name: expert.weight for expert in recalibration.experts},
    )


def _estimate(name: str, estimate: PriorEstimate) -> EstimateReading:
    priors = _tuple(estimate.priors)
    converged = bool(estimate.converged)
    return EstimateReading(name, priors, estimate.iterations, converged, estimate.gap, estimate.stop_reason)


def _tuple(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(values.tolist())

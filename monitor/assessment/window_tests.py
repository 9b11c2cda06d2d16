"""Every test of a window of a classifier: statistic, p-value, effect, and what both are held against. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from monitor.arrays import Vector
from monitor.assessment.classifier_view import AssessedReference
from monitor.assessment.known_events import soft_match
from monitor.assessment.mix_rule import MixRule, held_against, spread
from monitor.priors import PriorEstimate, em
from monitor.shifts import Diagnosis, Explanation, Move, ShiftReference, cohen_w
from monitor.tolerances import (
    DISAGREEMENT_ERRORS,
    DISAGREEMENT_FLOOR,
    DISTANCE_FLOOR,
    FIT_FLOOR,
    NORMAL_95,
    UNKNOWN_FLOOR,
)
from monitor.windows import Window

UNBIASED = ("acc-qp", "pacc", "em")
"""Those whose disagreement means something: under label shift they estimate the same thing."""


@dataclass(frozen=True, slots=True)
class Test:
    """One test: statistic, p-value, effect size, and what both are held against."""

    __test__ = False  # not a test case, whatever pytest makes of the name

    statistic: float
    p_value: float | None
    effect: float
    level: float
    floor: float
    events: int
    significant: bool
    """p-value below the level, and effect at or above the floor."""
    meaning: str


@dataclass(frozen=True, slots=True, eq=False)
class FeatureShift:
    """How one feature (or posterior) stands against the reference."""

    move: Move
    explanation: Explanation | None

    @property
    def moved(self) -> bool:
        """Beyond what the class mix explains, significantly, and by more than the floor."""
        return self.move.moved

    @property
    def kind(self) -> str:
        """`none`, `linear`, `monotone`, `shape`, `categories` or `missing`."""
        if not self.move.moved:
            return "none"
        if self.move.missing_moved:
            return "missing"
        return "categories" if self.explanation is None else self.explanation.kind

    @property
    def alpha(self) -> float:
        """window = alpha x reference + beta."""
        return 1.0 if self.explanation is None else self.explanation.alpha

    @property
    def beta(self) -> float:
        """window = alpha x reference + beta."""
        return 0.0 if self.explanation is None else self.explanation.beta


def tests_of(
    window: Window,
    reference: AssessedReference,
    diagnosis: Diagnosis,
    estimates: Mapping[str, PriorEstimate],
    rule: MixRule,
) -> dict[str, Test]:
    """Every test with its statistic, p-value, effect size, threshold and n."""
    n, pi, level = window.events, usual_mix(diagnosis, reference), rule.level / 3
    null = reference.statistics.get("em") or None
    ratio = em.likelihood_ratio(window.posteriors, reference.source_priors, null, estimates.get("em"))
    whole, mix = diagnosis.whole, diagnosis.mix
    # Where the mix varies by more than its sampling error the match, which knows by how much, decides too.
    prior_shift_p = max(ratio.p_value, mix.p_value) if mix is not None and mix.natural else ratio.p_value
    if mix is not None and diagnosis.usual is not None:
        prior_shift_p = mix.p_value  # at this time of the season the whole reference's mix is not to be expected
    measured: dict[str, tuple[float, float, float, float, int, str]] = {
        "prior-shift": (
            ratio.statistic,
            prior_shift_p,
            cohen_w(estimates[reference.estimator].priors, pi),
            rule.floor,
            n,
            "likelihood ratio of the best class mix against the reference's, null calibrated on the reference",
        ),
        "label-shift-fit": (
            whole.statistic,
            whole.p_value,
            whole.effect,
            FIT_FLOOR,
            diagnosis.fit_events,
            "what one class mix leaves unexplained, in pooled standard deviations",
        ),
    }
    if mix is not None:
        meaning = "the class mix matched on unmoved inputs against the reference's"
        measured["class-mix"] = (mix.statistic, mix.p_value, mix.effect, rule.floor, diagnosis.mix_events, meaning)
    if (mapped := diagnosis.mapped) is not None:
        meaning = "what is left unexplained after the moved inputs were mapped back"
        measured["mapped-fit"] = (mapped.statistic, mapped.p_value, mapped.effect, 0.0, n, meaning)
    if (unknown := diagnosis.unknown) is not None:
        meaning = "share of the events beyond where the classes were"
        measured["unknown-mass"] = (unknown.statistic, unknown.p_value, unknown.mass, UNKNOWN_FLOOR, n, meaning)
    if (deficit := None if diagnosis.label_shift_fits else soft_match(window, reference)) is not None:
        meaning = "share that soft matching of random features leaves to no class"
        measured["soft-deficit"] = (deficit.statistic, deficit.p_value, deficit.effect, UNKNOWN_FLOOR, n, meaning)
    tests = {
        name: Test(statistic, p, effect, level, floor, events, p < level and effect >= floor, meaning)
        for name, (statistic, p, effect, floor, events, meaning) in measured.items()
    }
    if diagnosis.features:
        tests["features"] = of_moves(diagnosis.features, level, diagnosis.seen.events)
    _hold_against(rule, tests, diagnosis, estimates[reference.estimator], reference)
    apart, allowed = _disagreement(estimates, reference.estimator)
    meaning = "total variation between the reported and another unbiased estimate, against their errors"
    tests["disagreement"] = Test(apart, None, apart, 1.0, allowed, n, apart > allowed, meaning)
    return tests


def usual_mix(diagnosis: Diagnosis, reference: ShiftReference) -> Vector:
    """What the class mix of a window is held against: the reference's, at this time of its season if it has one."""
    return reference.source_priors if diagnosis.usual is None else diagnosis.usual.shares


def _hold_against(
    rule: MixRule,
    tests: dict[str, Test],
    diagnosis: Diagnosis,
    chosen: PriorEstimate,
    reference: AssessedReference,
) -> None:
    """Let the rule say which of the moves beyond chance count, and name the class that stands out."""
    pi, n, usual = usual_mix(diagnosis, reference), chosen.events, diagnosis.usual
    held = float(reference.class_counts.sum()) if usual is None else usual.events
    mixes = {"prior-shift": (chosen.priors, spread(chosen))}
    if diagnosis.rest is not None:
        match = diagnosis.rest.match
        mixes["class-mix"] = (match.priors, np.maximum(np.diag(match.covariance), 0.0))
    for name, (priors, variances) in mixes.items():
        if name in tests:
            move = held_against(rule, reference.classes, priors, pi, variances, events=n, hold_out_events=held)
            beyond_chance = (tests[name].p_value or 0.0) < tests[name].level
            tests[name] = replace(tests[name], significant=beyond_chance and move.counts)
    meaning = "the class that stands out most: the factor by which its share changed, against its own error"
    tests["class-share"] = Test(
        move.statistic, move.p_value, move.factor, rule.level / 3, move.wanted, n,
        move.p_value < rule.level / 3 and move.factor >= move.wanted, meaning,
    )  # fmt: skip


def of_moves(moved: tuple[Move, ...], level: float, events: int) -> Test:
    """The features' family: the smallest adjusted p-value, and the largest distance."""
    p_value = min(min(move.adjusted_p, move.missing_adjusted_p) for move in moved)
    distance = max(move.distance for move in moved)
    significant = any(move.moved for move in moved)
    return Test(
        distance, p_value, distance, level, DISTANCE_FLOOR, events, significant, "the feature that moved the most"
    )


def mix_moved(diagnosis: Diagnosis, tests: Mapping[str, Test]) -> bool:
    """Whether the mix moved, by the likelihood ratio or, where posteriors cannot be trusted, by the unmoved inputs."""
    if diagnosis.label_shift_fits:
        return tests["prior-shift"].significant
    return "class-mix" in tests and tests["class-mix"].significant


def _disagreement(estimates: Mapping[str, PriorEstimate], chosen: str) -> tuple[float, float]:
    """How far the reported estimate is from the unbiased one that it is least in line with, and how far it may be."""
    reported = estimates[chosen]
    pairs = []
    for name in UNBIASED:
        if name in estimates:
            other = estimates[name]
            errors = np.hypot(_sampling_errors(reported), _sampling_errors(other))
            allowed = max(DISAGREEMENT_FLOOR, DISAGREEMENT_ERRORS * float(errors.sum()) / 2)
            pairs.append((float(np.abs(reported.priors - other.priors).sum()) / 2, allowed))
    return max(pairs, key=lambda pair: pair[0] / pair[1], default=(0.0, DISAGREEMENT_FLOOR))


def _sampling_errors(estimate: PriorEstimate) -> Vector:
    """By chance alone: an interval that grew because others contradict the estimate does not excuse that they do."""
    errors = (estimate.upper - estimate.lower) / (2 * NORMAL_95)
    return errors if estimate.bias is None else np.sqrt(np.maximum(errors**2 - estimate.bias**2, 0.0))


def feature_shifts(tested: tuple[Move, ...], explained: Mapping[int, Explanation]) -> dict[str, FeatureShift]:
    return {move.name: FeatureShift(move, explained.get(j)) for j, move in enumerate(tested)}

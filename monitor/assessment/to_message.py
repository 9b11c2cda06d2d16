"""An assessment as its message: names instead of positions, null instead of what is not a number."""

import math
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from monitor.arrays import Vector
from monitor.assessment import message as result
from monitor.assessment.baseline import Baseline
from monitor.assessment.data_quality import DataQuality
from monitor.assessment.harm import Harm
from monitor.assessment.performance import Performance
from monitor.assessment.reasons import describe
from monitor.limits import SKETCHES_READY
from monitor.priors import PriorEstimate
from monitor.shifts import Sketch, Sketches
from monitor.windows import Gap, WindowCounts

if TYPE_CHECKING:
    from monitor.assessment.classifier import Assessment
    from monitor.assessment.regressor import RegressionAssessment
    from monitor.assessment.window_tests import FeatureShift, Test


def to_result(assessment: "Assessment", software: str) -> result.WindowResult:
    """The message of contract 2."""
    names, key, prevalence = assessment.classes, assessment.key, assessment.prevalence
    unknown, harm = assessment.unknown, assessment.harm
    compared = rows_of(assessment, assessment.counted)
    return result.WindowResult(
        schema=result.SCHEMA_ID,
        stream=key.stream,
        segment=key.segment,
        window=key.id,
        start=result.rfc3339(key.start),
        end=result.rfc3339(key.end),
        closed_because=assessment.closed_because,
        complete=assessment.origin.complete,
        gaps=assessment.origin.gaps,
        member=assessment.origin.member,
        partitions=() if assessment.origin.complete else assessment.origin.partitions,
        events=counts(assessment.events, assessment.counts, assessment.unusable, assessment.missing_values),
        verdict=assessment.verdict,
        reasons=assessment.reasons,
        baselines=baseline_results(assessment.baselines),
        prevalence={
            name: result.Share(
                float(prevalence.priors[y]),
                float(prevalence.lower[y]),
                float(prevalence.upper[y]),
                float(assessment.source_priors[y]),
            )
            for y, name in enumerate(names)
        },
        harm=None if harm is None else harm_part(harm),
        performance=_performance(assessment.performance),
        unknown=None if unknown is None else result.Unknown(unknown.estimate, unknown.lower, unknown.upper),
        estimator=prevalence.method,
        based_on=assessment.based_on,
        estimates={
            name: _estimate(names, one, rows_of(assessment, one.events + one.dropped))
            for name, one in assessment.estimates.items()
        },
        tests=test_results(assessment),
        features={name: feature_result(shift, compared) for name, shift in assessment.features.items()},
        posteriors={name: feature_result(shift, compared) for name, shift in assessment.posteriors.items()},
        recalibration=assessment.recalibration,
        versions=result.Versions(software, assessment.reference_version),
        quality=quality_part(assessment.quality),
        volume=None,
        sketches=sketches_part(assessment.sketches),
        smoothed=None,
    )


def baseline_results(baselines: Mapping[str, Baseline]) -> dict[str, result.BaselineResult]:
    """The verdict against each thing that the window was held against."""
    return {
        name: result.BaselineResult(baseline.verdict, baseline.reasons, baseline.moved)
        for name, baseline in baselines.items()
    }


def harm_part(harm: Harm) -> result.HarmPart:
    """The harm score and its parts."""
    return result.HarmPart(
        score=harm.score,
        confidence=harm.confidence,
        departure=harm.departure,
        shares=harm.shares,
        expected_brier=harm.expected,
        usual_brier=harm.usual,
    )


def _performance(found: Performance) -> result.PerformancePart:
    figures = {
        name: result.FigurePart(figure.value, figure.lower, figure.upper) for name, figure in found.figures.items()
    }
    return result.PerformancePart(figures, found.withheld)


def counts(events: int, kept: WindowCounts, unusable: int, missing_values: int) -> result.Counts:
    """What happened to the events of the window."""
    return result.Counts(
        used=events,
        late=kept.late,
        rejected=kept.rejected,
        sampled_out=kept.sampled_out,
        unusable=unusable,
        missing_values=missing_values,
    )


def _estimate(names: tuple[str, ...], one: PriorEstimate, based_on: result.Rows) -> result.Estimate:
    return result.Estimate(
        priors=_named(names, one.priors),
        lower=_named(names, one.lower),
        upper=_named(names, one.upper),
        events=one.events,
        dropped=one.dropped,
        iterations=one.iterations,
        converged=bool(one.converged),
        gap=finite(one.gap),
        stop_reason=one.stop_reason,
        unique=bool(one.unique),
        deficit=finite(one.deficit),
        based_on=based_on,
    )


def rows_of(assessment: "Assessment | RegressionAssessment", events: int) -> result.Rows:
    """What an answer rests on that took so many events: of a sample more than its rows are all."""
    rows = assessment.events + assessment.unusable
    return "sample" if Gap.SAMPLED in assessment.origin.gaps and events <= rows else "all"


def test_results(assessment: "Assessment | RegressionAssessment") -> dict[str, result.TestResult]:
    """The tests as the message has them."""
    return {name: _test(test, rows_of(assessment, test.events)) for name, test in assessment.tests.items()}


def _test(one: "Test", based_on: result.Rows) -> result.TestResult:
    return result.TestResult(
        statistic=finite(one.statistic),
        p_value=finite(one.p_value),
        effect=finite(one.effect),
        level=one.level,
        floor=one.floor,
        events=one.events,
        significant=bool(one.significant),
        meaning=one.meaning,
        based_on=based_on,
    )


def feature_result(one: "FeatureShift", based_on: result.Rows) -> result.FeatureResult:
    """One feature or posterior, from all events or a sample's."""
    move, explanation = one.move, one.explanation
    correction = None
    if explanation is not None and explanation.kind in {"linear", "monotone"}:
        correction = result.Map(
            explanation.kind,
            float(explanation.alpha),
            float(explanation.beta),
            tuple(explanation.correction.window_knots.tolist()),
            tuple(explanation.correction.reference_knots.tolist()),
        )
    return result.FeatureResult(
        moved=move.moved,
        kind=one.kind,
        test=move.test,
        statistic=move.statistic,
        p_value=move.p_value,
        adjusted_p_value=move.adjusted_p,
        false_discovery_rate=move.false_discovery,
        distance=move.distance,
        plain_distance=move.plain_distance,
        plain_p_value=move.plain_p,
        events=move.n,
        missing_rate=move.missing_rate,
        expected_missing_rate=move.expected_missing_rate,
        missing_p_value=move.missing_p,
        missing_moved=move.missing_moved,
        map=correction,
        reason=describe(move, explanation) if move.moved else "",
        based_on=based_on,
    )


def quality_part(found: DataQuality) -> result.QualityPart:
    """What is plainly wrong with the data."""
    return result.QualityPart(
        rejected=found.rejected,
        missing=found.missing,
        outside_range=found.outside_range,
        new_categories=found.new_categories,
        constant=found.constant,
        features={
            name: result.FeatureQualityPart(one.outside_range, one.new_categories)
            for name, one in found.features.items()
        },
    )


def sketches_part(found: Sketches | None) -> result.SketchesPart | None:
    """The sketches, with numbers as short as a drawing allows."""
    if found is None:
        return None
    groups = ({name: _sketch(sketch) for name, sketch in group.items()} for group in (found.features, found.scores))
    return result.SketchesPart(*groups)


def _sketch(sketch: Sketch) -> result.SketchPart:
    return result.SketchPart(
        edges=_edges(sketch.edges.tobytes()),
        categories=sketch.categories,
        counts=tuple(sketch.counts.tolist()),
        reference=_shares(sketch.reference.tobytes()),
        expected=tuple(sketch.expected.round(5).tolist()),
    )


@lru_cache(maxsize=SKETCHES_READY)
def _edges(numbers: bytes) -> tuple[float, ...]:
    """Window after window has the same."""
    return tuple(_short(edge) for edge in np.frombuffer(numbers).tolist())


@lru_cache(maxsize=SKETCHES_READY)
def _shares(numbers: bytes) -> tuple[float, ...]:
    return tuple(np.frombuffer(numbers).round(5).tolist())


def _short(number: float) -> float:
    """Six digits; what lies beyond single precision may be read as infinite, and JSON has no such number."""
    short = float(f"{number:.6g}")
    return short if math.isfinite(short) else math.copysign(sys.float_info.max, number)


def _named(names: tuple[str, ...], values: Vector) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def finite(value: float | None) -> float | None:
    """Null instead of NaN and infinity."""
    return None if value is None or not math.isfinite(value) else float(value)

"""From a window and a reference to an answer: `assess` composes estimates, tests, verdict and recalibration. Pure.

The same window and reference give the same assessment, and the same bytes of JSON: nothing here reads a clock or
draws at random, and rows are expected in their canonical order (`windows.ordered`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import ClassVar

import numpy as np

from monitor import recalibration
from monitor.arrays import Vector, column_sums, frozen_matrix, frozen_vector, present
from monitor.assessment import message as result
from monitor.assessment import reasons, to_message
from monitor.assessment.baseline import Baseline, baselines
from monitor.assessment.calm_errors import calm_errors
from monitor.assessment.classifier_view import AssessedReference
from monitor.assessment.completeness import as_far_as_seen
from monitor.assessment.data_quality import NOTHING_WRONG, DataQuality, data_quality, rejected_share
from monitor.assessment.exchanged_scores import exchanged_scores
from monitor.assessment.harm import Harm, harm
from monitor.assessment.known_events import known_mix
from monitor.assessment.mix_rule import USUAL, MixRule
from monitor.assessment.performance import Performance, performance, positive_class, too_few
from monitor.assessment.prevalence import BasedOn, Prevalence, published
from monitor.assessment.tallying import counted_in, usable
from monitor.assessment.verdict import TOO_FEW, Evidence, Verdict, decide
from monitor.assessment.viewed import Viewed
from monitor.assessment.window_tests import FeatureShift, Test, feature_shifts, mix_moved, tests_of, usual_mix
from monitor.calibration import Calibration
from monitor.performance import USUAL_DECISIONS, Decisions
from monitor.priors import CHEAP, PriorEstimate, solve
from monitor.recalibration import Cause, Grounds, InputCorrection, May, Recalibration, Validity, gated
from monitor.shifts import (
    ColumnQuality,
    Diagnosis,
    Prepared,
    SketchedColumns,
    Sketches,
    UnknownEvents,
    common_resolution,
    comparable_posteriors,
    diagnose,
    label_shift_odds,
    left_by_one_feature,
    prepare,
    qualities,
    scores_alone,
    sketched,
)
from monitor.tolerances import (
    MINIMUM_EVENTS,
    VAGUE_MIX,
)
from monitor.version import __version__
from monitor.windows import Origin, Window, WindowCounts, WindowKey


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Assessment(Viewed):
    """Everything that is known about one window. `to_json` is the message of contract 2."""

    key: WindowKey
    closed_because: str
    origin: Origin
    events: int
    counts: WindowCounts
    unusable: int
    missing_values: int
    verdict: Verdict
    reasons: tuple[str, ...]
    classes: tuple[str, ...]
    source_priors: Vector
    prevalence: PriorEstimate
    """What is out there now; `based_on` says by which rule. With an unknown class, and label shift among the others,
    the shares of the known classes among the events that lie where they were."""
    estimates: Mapping[str, PriorEstimate]
    tests: Mapping[str, Test]
    features: Mapping[str, FeatureShift]
    posteriors: Mapping[str, FeatureShift]
    recalibration: Recalibration
    reference_version: str
    hold_out_events: int
    """Of the reference, or of the part of it that a segment is held against."""
    based_on: BasedOn = BasedOn.LABEL_SHIFT
    """What `prevalence` rests on; only label shift can justify a recalibration through the class mix."""
    label_shift: PriorEstimate | None = None
    """The class mix without bias if nothing but it moved; None where more did. What follows it over windows takes this:
    errors that lean towards the reference would add up."""
    calm_errors: Vector | None = None
    """By how much `label_shift` is off where the class mix has not moved, e_y^2; None where it rests on more than the
    reference's own estimator."""
    harm: Harm | None = None
    """Whether the model is likely worse here than on the hold-out; None without blocks of the hold-out."""
    performance: Performance = field(default_factory=Performance)
    """How good the model is here, estimated without labels."""
    unknown: UnknownEvents | None = None
    """Of the events; only with the verdict `unknown-class`."""
    mean: Vector = field(default_factory=lambda: np.zeros(0))
    """Of the feature map: what windows are held against each other by; empty where there are too few events."""
    recent: Baseline | None = None
    """Against what has been normal lately, where that is known."""
    evidence: Evidence = TOO_FEW
    """What the verdict rests on."""
    sketches: Sketches | None = None
    """How the window's columns are distributed beside the reference's; None where they are not wanted, and where there
    are too few events."""
    quality: DataQuality = NOTHING_WRONG
    """What is plainly wrong with the data."""
    counted: int = 0
    """The events that the comparisons of `features` and `posteriors` rest on: more than `events` where the others of a
    window were counted before a sample was taken."""
    task: ClassVar[str | None] = None

    @property
    def compared(self) -> Mapping[str, FeatureShift]:
        """All that was compared with the reference one by one, beyond the class mix."""
        return self.features

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        """Against the `reference`, which `verdict` is, and against the `recent` normal where one is known."""
        return baselines(self.verdict, self.reasons, self.features, self.recent)

    def without_performance(self, reason: str) -> "Assessment":
        """The same, but for how good the model is: what is known over windows speaks against it."""
        return replace(self, performance=replace(self.performance, figures={}, withheld=reason))

    def to_result(self) -> result.WindowResult:
        """The message as a value."""
        return to_message.to_result(self, __version__)

    def to_json(self) -> bytes:
        """The message as deterministic bytes."""
        return result.encode(self.to_result())

    def json_with_baselines(self, message: bytes) -> bytes:
        """The same, from the message as it was before the baselines were known."""
        return result.with_baselines(message, to_message.baseline_results(self.baselines))


def assess(
    window: Window,
    reference: AssessedReference,
    level: float | None = None,
    *,
    may: Mapping[str, May] | None = None,
    only_mix: bool = False,
    mix_rule: MixRule = USUAL,
    decisions: Decisions = USUAL_DECISIONS,
    sketches: bool = True,
) -> Assessment:
    """Assess a window. `level` is the chance of any verdict but `stable` for a window without a shift: the rule's.

    `may` names the features that may change their unit, and how: only those are ever corrected. `only_mix` says that
    nothing but the class mix of this stream may change: scores are then corrected without asking whether inputs have
    moved in its place. `mix_rule` says what counts as a move of the class mix, `decisions` what is decided by the
    scores and which measures are wanted. `sketches` says whether small sketches of the distributions belong to the
    answer.
    """
    rule = mix_rule if level is None else replace(mix_rule, level=level)
    assessment = as_far_as_seen(_assessed(window, reference, may or {}, rule, decisions, only_mix=only_mix))
    return assessment if sketches else replace(assessment, sketches=None)


def _assessed(
    window: Window,
    reference: AssessedReference,
    may: Mapping[str, May],
    mix_rule: MixRule,
    decisions: Decisions,
    *,
    only_mix: bool,
) -> Assessment:
    remarks = reference.remarks(window)
    window, reference = reference.matched(window), reference.timed(window.key)
    if window.key.segment:
        reference, window, compared = reference.of_segment(window)
        remarks += compared
    fit_for_use = usable(window, reference)
    unusable = int((~fit_for_use).sum())
    kept = window if not unusable else window.take(fit_for_use)
    resolution = common_resolution(kept, reference)
    posteriors = frozen_matrix(comparable_posteriors(kept.posteriors, reference, resolution), "posteriors")
    calibrated = replace(kept, posteriors=posteriors, left_out=counted_in(window, reference, resolution))
    estimates = _estimates(calibrated, reference)
    if calibrated.events < MINIMUM_EVENTS:
        words = reasons.too_few(calibrated.events, unusable)
        return replace(
            _assessment(calibrated, reference, estimates, Verdict.INSUFFICIENT_DATA, (*remarks, *words)),
            unusable=unusable,
            quality=data_quality((), (), kept.events, 0, rejected_share(kept.events, kept.counts)),
            performance=too_few(reference, decisions),
        )
    family = mix_rule.level / 3
    ready = prepare(reference, resolution)
    diagnosis = diagnose(calibrated, ready, family)
    chosen = estimates[reference.estimator]
    tests = tests_of(calibrated, reference, diagnosis, estimates, mix_rule)
    evidence = Evidence(
        enough_events=True,
        label_shift_fits=diagnosis.label_shift_fits,
        mix_moved=mix_moved(diagnosis, tests),
        unknown_class=diagnosis.unknown_class,
        inputs_explain=diagnosis.explained or diagnosis.inputs_differ,
    )
    verdict = decide(evidence)
    known = unknown = None
    if diagnosis.unknown is not None and (left := diagnosis.known) is not None:
        # Values that went missing leave a misfit too, and say nothing of events that hide.
        explained = left.p_value >= family or any(move.missing_moved for move in diagnosis.features)
        whole, left_over = calibrated.alone(), 0.0 if explained else left.effect
        known, unknown = known_mix(whole, reference, reference.estimator, ready, diagnosis.unknown, left_over=left_over)
    mean = column_sums(posteriors) / len(posteriors)
    moved_p = float(present(tests["prior-shift"].p_value, "a p-value"))
    mix = published(verdict, diagnosis, chosen, mean, reference, moved_p=moved_p, level=family, known=known)
    usual = usual_mix(diagnosis, reference)
    unknown = unknown if verdict is Verdict.UNKNOWN_CLASS else None
    words = reasons.reasons(
        verdict,
        diagnosis,
        reasons.mix_sentences(reference.classes, usual, mix.estimate, seasonal=diagnosis.usual is not None),
        _where_unknown(calibrated, ready, diagnosis) if verdict is Verdict.UNKNOWN_CLASS else "",
        exchanged_scores(kept, reference, ready, resolution, family) if diagnosis.scores_moved else None,
        unknown=unknown,
        mix_known=mix.estimate.unique,
        mix_vague=bool((mix.estimate.upper - mix.estimate.lower).max() > VAGUE_MIX),
        mix_usual=reasons.usual_mix(reference.classes, usual, mix.estimate)
        if diagnosis.mix is not None and diagnosis.mix.natural
        else "",
    )
    alone = scores_alone(diagnosis.seen, ready)
    leaves = left_by_one_feature(len(reference.classes), alone=alone)
    unsure = () if verdict is Verdict.STABLE else reasons.short_hold_out(reference.blocks)
    words += reasons.season_of_inputs(reference.blocks, diagnosis)
    assessment = _assessment(calibrated, reference, estimates, verdict, (*remarks, *words, *unsure, *mix.why))
    return replace(
        assessment,
        evidence=evidence,
        unusable=unusable,
        counted=diagnosis.seen.events,
        prevalence=mix.estimate,
        based_on=mix.based_on,
        label_shift=mix.label_shift,
        calm_errors=calm_errors(chosen.events, reference) if mix.label_shift is chosen else None,
        harm=harm(posteriors if reference.margins else kept.posteriors, posteriors, diagnosis, reference),
        performance=performance(
            kept.posteriors, posteriors, verdict, mix, reference, resolution=resolution, decisions=decisions
        ),
        unknown=unknown,
        mean=frozen_vector(diagnosis.mean, "mean"),
        tests=tests,
        quality=_quality(kept, diagnosis, ready, assessment.missing_values),
        sketches=_sketches(diagnosis, ready, reference, mix.estimate.priors),
        features=feature_shifts(diagnosis.features, diagnosis.explanations),
        posteriors={
            name: FeatureShift(replace(move, name=name), None)
            for name, move in zip(reference.classes, diagnosis.posteriors, strict=True)
        },
        recalibration=_recalibration(
            assessment,
            mix,
            tests,
            _inputs(diagnosis, may),
            reference.calibration,
            told_apart=inf if only_mix else label_shift_odds(tests["prior-shift"].statistic, diagnosis.whole, leaves),
            alone=alone,
        ),
    )


def _estimates(window: Window, reference: AssessedReference) -> dict[str, PriorEstimate]:
    """Every cheap estimator that this reference has the statistics of, and the reference's own choice."""
    names = [name for name in CHEAP if name in reference.statistics]
    if reference.estimator not in names:
        names.append(reference.estimator)
    return solve(names, window, reference)


def _assessment(
    window: Window,
    reference: AssessedReference,
    estimates: Mapping[str, PriorEstimate],
    verdict: Verdict,
    told: tuple[str, ...],
) -> Assessment:
    """The assessment as far as it goes without tests."""
    key = window.key
    validity = Validity(key.stream, key.segment, key.id, key.start, key.end, reference.version)
    return Assessment(
        key=key,
        closed_because=window.closed_because,
        origin=window.origin,
        events=window.events,
        counts=window.counts,
        unusable=0,
        missing_values=0 if window.features is None else int(np.count_nonzero(np.isnan(window.features))),
        verdict=verdict,
        reasons=told,
        classes=reference.classes,
        source_priors=reference.source_priors,
        prevalence=estimates[reference.estimator],
        estimates=estimates,
        tests={},
        features={},
        posteriors={},
        recalibration=recalibration.identity(
            reference.classes,
            reference.source_priors,
            validity,
            Cause.TOO_FEW_EVENTS,
            f"the verdict is {verdict}",
            margins=reference.margin_map,
        ),
        reference_version=reference.version,
        hold_out_events=int(reference.class_counts.sum()),
    )


def _where_unknown(window: Window, ready: Prepared, diagnosis: Diagnosis) -> str:
    """The features that set the unknown events apart the most: their median there, and in the reference.

    A feature that is missing in most of them stands in the reference's centre, as one does that is there itself: such
    a feature sets nothing apart, and a median of the few others is not named.
    """
    unknown, projections = diagnosis.unknown, ready.projections
    if unknown is None or projections is None or window.features is None:
        return ""
    apart = np.abs(np.median(projections.standardised(window.features[unknown.beyond]), axis=0))
    order = np.argsort(-apart, kind="stable")[: min(reasons.NAMED, int((apart > 0).sum()))]
    there = np.nanmedian(window.features[unknown.beyond][:, projections.columns[order]], axis=0)
    return ", ".join(
        f"{ready.feature_name(int(projections.columns[k]))} is {value:.3g} there, "
        f"{projections.medians[k]:.3g} elsewhere"
        for k, value in zip(order, there, strict=True)
    )


def _quality(window: Window, diagnosis: Diagnosis, ready: Prepared, missing: int) -> DataQuality:
    seen, columns = diagnosis.seen.features, list[ColumnQuality]()
    if window.features is not None and seen is not None:
        columns = qualities(ready.features.each, seen.each, window.features)
        missing = int(seen.missing.sum())
    names = [move.name for move in diagnosis.features]
    rejected = rejected_share(window.events, window.counts)
    return data_quality(names, columns, diagnosis.seen.events, missing, rejected)


def _sketches(diagnosis: Diagnosis, ready: Prepared, reference: AssessedReference, mix: Vector) -> Sketches:
    seen, classes = diagnosis.seen, reference.classes
    drawn = range(len(classes)) if len(classes) > 2 else (positive_class(reference),)
    features = SketchedColumns(
        [move.name for move in diagnosis.features],
        ready.features.each,
        () if seen.features is None else seen.features.each,
        [move.distance for move in diagnosis.features],
    )
    scores = SketchedColumns(
        [classes[y] for y in drawn],
        tuple(ready.posteriors[y] for y in drawn),
        [seen.posteriors.numbers.of(y) for y in drawn],
        [diagnosis.posteriors[y].distance for y in drawn],
    )
    return sketched(features, scores, mix)


def _recalibration(
    found: Assessment,
    mix: Prevalence,
    tests: Mapping[str, Test],
    inputs: Mapping[str, InputCorrection],
    calibration: Calibration,
    *,
    told_apart: float,
    alone: bool,
) -> Recalibration:
    prevalence = mix.estimate
    grounds = Grounds(
        verdict=str(found.verdict),
        target_priors=prevalence.priors,
        half_widths=(prevalence.upper - prevalence.lower) / 2,
        trustworthy=prevalence.converged and prevalence.unique,
        mix_significant=tests["prior-shift"].significant,
        told_apart=told_apart,
        scores_alone=alone,
        hold_out_events=found.hold_out_events,
        disagreement=tests["disagreement"].effect,
        allowed=tests["disagreement"].floor,
        label_shift=mix.based_on is BasedOn.LABEL_SHIFT,
    )
    validity = found.recalibration.validity
    return recalibration.imply(
        found.classes, found.source_priors, grounds, inputs, validity, calibration=calibration.to_map()
    )


def _inputs(diagnosis: Diagnosis, may: Mapping[str, May]) -> dict[str, InputCorrection]:
    """Every input that moved along a line or a curve, and whether it is to be taken back."""
    moved = {
        diagnosis.features[j].name: InputCorrection(
            explanation.kind,
            float(explanation.alpha),
            float(explanation.beta),
            tuple(float(x) for x in explanation.correction.window_knots),
            tuple(float(x) for x in explanation.correction.reference_knots),
        )
        for j, explanation in diagnosis.explanations.items()
        if explanation.kind in {"linear", "monotone"}
    }
    return {name: gated(name, correction, may.get(name), diagnosis.explained) for name, correction in moved.items()}

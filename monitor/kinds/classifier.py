"""Streams of a classifier: events carry posteriors, windows have a class mix."""

from dataclasses import replace

import numpy as np

from monitor.assessment import Assessment, Tallying, Verdict, assess, verdicts
from monitor.kinds.class_mix import ClassifierFacts, ClassMixAnswer, read
from monitor.kinds.kind import Declared, Kind
from monitor.labels import CLASS_OUTCOMES
from monitor.pages import some
from monitor.reference import Reference, largest_atom
from monitor.shifts import follow
from monitor.tolerances import ATOM_SHARE
from monitor.windows import Plan, TimePlan, Window, faults, spread_rows


def _assess(window: Window, reference: Reference, declared: Declared) -> Assessment:
    """With an outline, the feed carries the thresholds that follow from the corrections of its inputs."""
    assessment = assess(
        window,
        reference,
        may=declared.may,
        only_mix=declared.only_mix,
        mix_rule=declared.mix_rule,
        decisions=declared.decisions,
        sketches=declared.sketches,
    )
    if declared.outline is None or faults(assessment.origin.gaps):
        return assessment
    outline, rows = declared.outline, None
    if window.features is not None:
        columns = [[feature.feature.name for feature in reference.features].index(name) for name in outline.names]
        rows = np.asfortranarray(window.features[:, columns], dtype=np.float32)
    mixed = assessment.verdict is Verdict.PRIOR_AND_COVARIATE_SHIFT
    mix = assessment.prevalence.priors if mixed else reference.source_priors
    inputs = assessment.recalibration.inputs
    applied = {name: correction for name, correction in inputs.items() if correction.apply and name in outline.names}
    tree = follow(outline, applied, rows, outline.ratios(reference.classes, mix))
    return replace(assessment, recalibration=replace(assessment.recalibration, tree=tree))


def _plan(plan: Plan, reference: Reference, _: int | None) -> Plan:
    """Events above the maximum are counted, and have their part in what needs no rows."""
    return replace(plan, tally=Tallying(reference)) if isinstance(plan, TimePlan) else plan


def _described(reference: Reference) -> str:
    margins = "\nscores are margins" if reference.margins else ""
    mix = some(f"{name} {share:.3g}" for name, share in zip(reference.classes, reference.source_priors, strict=True))
    share = largest_atom(reference)
    return mix + margins + (f"\nscores have atoms: the most common holds {share:.0%}" if share >= ATOM_SHARE else "")


CLASSIFIER = Kind(
    name="classifier",
    reference=Reference,
    settings=frozenset(
        {
            "may",
            "outline",
            "features",
            "ignore",
            "scores",
            "performance",
            'changes = "prior-shift"',
            'target = "smoothed"',
        }
    ),
    verdicts=verdicts(regression=False),
    assess=_assess,
    plan=_plan,
    described=_described,
    sample=lambda window, reference: reference.usual_in(window.key.segment).prepare(spread_rows(window)).posteriors,
    facts=ClassifierFacts.of,
    answer=ClassMixAnswer,
    outcomes=CLASS_OUTCOMES,
    read=read,
)

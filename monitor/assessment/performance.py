"""How good the model is in a window, as far as scores and class mix can tell (`monitor.performance`).

It holds under a shift of the class mix and nothing else, so it is said with those verdicts alone that claim it.
Where the mix differs from window to window by nature it is what is published of it. Elsewhere it may well be that of
the hold-out, and a window that is `stable` may have moved by less than can be seen: there it is drawn back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from monitor.arrays import Matrix
from monitor.assessment.classifier_view import AssessedReference
from monitor.assessment.prevalence import BasedOn, Prevalence
from monitor.assessment.verdict import Verdict
from monitor.limits import REFERENCES_READY
from monitor.performance import (
    USUAL_DECISIONS,
    CalibrationError,
    Decisions,
    Expected,
    MeasureValue,
    drawn_back,
    estimated,
    misfits,
    scores_of,
)
from monitor.shifts import Resolution, comparable_posteriors
from monitor.tolerances import FEWEST_BLOCKS, MIX_GRID, NORMAL_95

TOLD_WITH = frozenset({Verdict.STABLE, Verdict.PRIOR_SHIFT})
"""The verdicts that say that nothing moved but the class mix."""


@dataclass(frozen=True, slots=True)
class Performance:
    """How good the model is, by measure; or why that is not said."""

    figures: Mapping[str, MeasureValue] = field(default_factory=dict)
    withheld: str = "there are too few events"
    """Why there are none; empty if there are."""
    decisions: Decisions = USUAL_DECISIONS
    positive: int = 1
    """The number of the class that of two is looked for."""


def performance(
    scored: Matrix,
    posteriors: Matrix,
    verdict: Verdict,
    mix: Prevalence,
    reference: AssessedReference,
    *,
    resolution: Resolution,
    decisions: Decisions,
) -> Performance:
    """Of a window's scores, as they are said, and calibrated at a resolution that the hold-out events then have too."""
    of_class = positive_class(reference)
    if why := _withheld(verdict, mix) or _unbalanced(reference, resolution, decisions):
        return Performance({}, why, decisions, of_class)
    source, estimate = reference.source_priors, mix.estimate
    variances = ((estimate.upper - estimate.lower) / (2 * NORMAL_95)) ** 2
    priors, left = estimate.priors, np.ones_like(source)
    if not _blocks(reference):
        priors, left = drawn_back(priors, variances, source)
    window = Expected(scores_of(scored, posteriors if reference.margins else scored, decisions, of_class), posteriors)
    misfit = _misfits(reference, resolution, decisions, tuple(np.rint(priors / MIX_GRID).tolist()))
    measures = decisions.measures(source.size, of_class)
    figures = estimated(window, measures, misfit, source=source, mix=priors, variances=variances, left=left)
    return Performance(figures, "", decisions, of_class)


def too_few(reference: AssessedReference, decisions: Decisions) -> Performance:
    """Of a window with too few events to say anything."""
    return Performance(decisions=decisions, positive=positive_class(reference))


def _withheld(verdict: Verdict, mix: Prevalence) -> str:
    if verdict not in TOLD_WITH:
        return f"the verdict is {verdict}: labels alone can tell what the scores are worth then"
    if verdict is Verdict.PRIOR_SHIFT and mix.based_on is not BasedOn.LABEL_SHIFT:
        return f"the class mix rests on {mix.based_on}, not on label shift"
    if not mix.estimate.unique:
        return "the class mix is not known"
    return ""


@lru_cache(maxsize=REFERENCES_READY)
def _unbalanced(reference: AssessedReference, resolution: Resolution, decisions: Decisions) -> str:
    """Calibrated scores add up to the class mix of the hold-out. Where they do not at the digits that events are
    written with, as models that are certain of all they say, no mix follows from them."""
    known = _hold_out(reference, resolution, decisions).posteriors.mean(axis=0)
    shares = np.bincount(reference.sample.labels, minlength=known.size) / reference.sample.labels.size
    return "" if np.abs(known - shares).max() <= MIX_GRID else "at the digits of these scores calibration does not hold"


@lru_cache(maxsize=REFERENCES_READY)
def _hold_out(reference: AssessedReference, resolution: Resolution, decisions: Decisions) -> Expected:
    """The hold-out events, as the model says them and calibrated: sorted once while the reference lives."""
    said, known = reference.raw, comparable_posteriors(reference.raw, reference, resolution)
    return Expected(scores_of(said, known if reference.margins else said, decisions, positive_class(reference)), known)


@lru_cache(maxsize=1024)
def _misfits(
    reference: AssessedReference, resolution: Resolution, decisions: Decisions, steps: tuple[float, ...]
) -> Mapping[str, CalibrationError]:
    """At a mix of so many steps of `MIX_GRID`: few mixes come up, and what calibration gets wrong is smooth in them."""
    source = reference.source_priors
    mix = np.maximum(np.array(steps), 0.5)
    blocks = reference.blocks
    return misfits(
        _hold_out(reference, resolution, decisions),
        reference.sample.labels,
        mix / mix.sum() / source,
        decisions.measures(source.size, positive_class(reference)),
        blocks.of_sample if blocks is not None and _blocks(reference) else None,
    )


def _blocks(reference: AssessedReference) -> bool:
    """Whether it is known how much windows differ by nature."""
    return reference.blocks is not None and reference.blocks.number >= FEWEST_BLOCKS


def positive_class(reference: AssessedReference) -> int:
    """Of two classes the one that is looked for: the second where nobody says it."""
    positive = reference.schema.positive
    return 1 if positive is None else reference.classes.index(positive)

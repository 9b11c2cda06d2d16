"""Recent labels: the class mix weighs estimates by how close each came in windows whose labels have come.

Every window of a stream that awaits labels has experts: the reference's shares, calibrated PCC, the label-shift
estimate, the rule of `assessment.prevalence`, the mix of the last labelled window and the mean of the last 8 and 30
(blocks of the hold-out come before the first), and PCC with its mean error of the last 2 and 8. What each says is kept
with the window until its labels come. With M_i the mean squared error of an expert that has been right or wrong three
times, weighed by 2^(-age / 16 windows), where blocks of the hold-out as long as windows come before the first outcome
and count a tenth of one

    p = sum_i w_i c_i,   w_i ~ 1 / M_i^4
    half-width^2 = t_{.975, n-1}^2 (1 + 1/n) [mean (published - true)^2 + sum_i w_i (c_i - p)^2 / 2],   n <= 20

and with fewer than five outcomes the window's own interval, stretched to hold p.

From the first outcome on (the third where there are no blocks) that is for windows whose mix does not rest on label
shift, and for stable ones of references that have blocks: a mix that has just moved, and that label shift explains, is
not held back by what was right last week.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import cast

import msgspec
import numpy as np
from scipy.special import stdtrit

from monitor.arrays import Matrix, Vector, frozen_vector, present
from monitor.assessment import CANDIDATES, Assessment, BasedOn, Verdict, errors_in_blocks
from monitor.labels import Outcome
from monitor.limits import MIXES_KEPT, REFERENCES_READY
from monitor.priors import PriorEstimate
from monitor.reference import FiledReference, Reference
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen, owner
from monitor.state.plan import StatePlan
from monitor.tolerances import (
    BLOCK_OUTCOME,
    BLOCKS_LATE,
    EXPERT_DISAGREEMENT,
    EXPERT_HALF_LIFE,
    EXPERT_POWER,
    FEW_MIXES,
    FEWEST_BLOCKS,
    FEWEST_ERRORS,
    FEWEST_OUTCOMES,
    PUBLISHED_ERRORS,
    TRUST_LABELS,
)

Experts = Mapping[str, Vector]
"""What each says of the class mix of a window, by name."""


class Judged(msgspec.Struct, frozen=True):
    """One outcome, as far as experts are concerned."""

    squares: dict[str, float]
    """Squared error of each expert."""
    published: tuple[float, ...]
    """Published minus realised, of each class."""
    realised: tuple[float, ...]
    scores: tuple[float, ...]
    """Realised minus calibrated PCC."""


class RecentLabelsState(msgspec.Struct, frozen=True):
    """The last outcomes, at most `MIXES_KEPT`."""

    outcomes: tuple[Judged, ...] = ()


def recent_labels(plan: StatePlan, reference: FiledReference) -> Concern[RecentLabelsState] | None:
    """The concern, for whole streams of classifiers that await labels."""
    if not plan.awaiting or not isinstance(reference, Reference):
        return None

    def advance(state: RecentLabelsState, seen: Seen) -> Advanced[RecentLabelsState]:
        if owner(seen)[1]:
            return Advanced(state)  # the blocks that the experts begin with are of the whole stream
        if isinstance(seen, Outcome):
            return Advanced(_with_outcome(state, seen, reference.version))
        if not isinstance(seen, WindowSeen) or not _judged_by(seen, reference):
            return Advanced(state)
        return Advanced(state, seen=_published(state, seen, cast(Assessment, seen.assessment), reference))

    return Concern("recent_labels", version=1, state=RecentLabelsState, advance=advance, new_reference="begins anew")


def _judged_by(seen: WindowSeen, reference: Reference) -> bool:
    """Whether a window has a class mix, and the estimates that experts are made of."""
    assessment = seen.assessment
    return (
        isinstance(assessment, Assessment)
        and not assessment.verdict.silent
        and {"pcc", reference.estimator} <= assessment.estimates.keys()
    )


def _with_outcome(state: RecentLabelsState, seen: Outcome, reference: str) -> RecentLabelsState:
    """Outcomes with few labels, or with labels of selected events, say nothing of the window's mix."""
    result = seen.result
    enough = result.labels.joined >= TRUST_LABELS and not result.selective
    if not enough or result.versions.reference != reference or PCC not in seen.experts:
        return state
    realised = np.array([each.realised for each in result.classes.values()])
    squares = {name: float(((np.array(said) - realised) ** 2).sum()) for name, said in seen.experts.items()}
    judged = Judged(
        squares=squares,
        published=tuple(each.error for each in result.classes.values()),
        realised=tuple(realised.tolist()),
        scores=tuple((realised - np.array(seen.experts[PCC])).tolist()),
    )
    return RecentLabelsState((*state.outcomes, judged)[-MIXES_KEPT:])


PCC = "calibrated scores"


def _published(state: RecentLabelsState, seen: WindowSeen, assessment: Assessment, reference: Reference) -> WindowSeen:
    """The window with its experts, and with what they say together where that is to be published."""
    experts = _experts(state, assessment, reference)
    of_label_shift = assessment.based_on is BasedOn.LABEL_SHIFT
    usual = reference.blocks is not None and assessment.verdict is Verdict.STABLE
    blocks = _blocks_like(assessment, reference)
    enough = state.outcomes and len(blocks) + len(state.outcomes) >= FEWEST_OUTCOMES
    if enough and (usual or not of_label_shift):
        estimate, why = _together(state, blocks, experts, assessment.prevalence)
        assessment = replace(
            assessment,
            prevalence=estimate,
            based_on=BasedOn.RECENT_LABELS,
            reasons=(*assessment.reasons, why),
        )
    return replace(seen, assessment=assessment, experts=experts)


def _experts(state: RecentLabelsState, assessment: Assessment, reference: Reference) -> dict[str, Vector]:
    pcc = assessment.estimates["pcc"].priors
    mixes, scores = _history(state, reference)
    key = assessment.key
    usual = None if reference.blocks is None else reference.blocks.usual_at(key.start, key.end)
    experts = {
        "the reference's shares": reference.source_priors if usual is None else usual.shares,
        PCC: pcc,
        "label shift": assessment.estimates[reference.estimator].priors,
        "familiar inputs": assessment.prevalence.priors,
    }
    return experts | _remembered(mixes, scores, pcc)


def _remembered(mixes: Matrix, scores: Matrix, pcc: Vector) -> dict[str, Vector]:
    """The experts that know nothing but earlier labels, and by how much the scores were off from them."""
    if not len(mixes):
        return {}
    return {
        "the last labels": mixes[-1],
        "the latest labels": mixes[-FEW_MIXES:].mean(axis=0),
        "all recent labels": mixes.mean(axis=0),
        "scores corrected by the last labels": _corrected(pcc, scores[-2:]),
        "scores corrected by the latest labels": _corrected(pcc, scores[-FEW_MIXES:]),
    }


def _blocks_like(assessment: Assessment, reference: Reference) -> tuple[Mapping[str, float], ...]:
    """The hold-out's blocks as outcomes, where they are as long as this window: else errors are of another size."""
    blocks = reference.blocks
    if blocks is None or blocks.number < FEWEST_BLOCKS or blocks.parts > 1:
        return ()
    length = float(np.median(blocks.events))
    return _in_blocks(reference) if length / 2 <= assessment.events <= 2 * length else ()


@lru_cache(maxsize=REFERENCES_READY)
def _in_blocks(reference: Reference) -> tuple[Mapping[str, float], ...]:
    """The squared error of each expert in the last blocks of the hold-out, as if their labels had come late too."""
    blocks = present(reference.blocks, "blocks")
    shares, errors = blocks.shares, errors_in_blocks(blocks, reference.source_priors)
    found = []
    for k in range(BLOCKS_LATE, len(shares))[-MIXES_KEPT:]:
        known = slice(0, k - BLOCKS_LATE + 1)
        said = _remembered(shares[known][-MIXES_KEPT:], (shares - blocks.pcc)[known][-MIXES_KEPT:], blocks.pcc[k])
        squares = dict(zip(CANDIDATES, (errors[:, k] ** 2).sum(axis=1).tolist(), strict=True))
        found.append(squares | {name: float(((mix - shares[k]) ** 2).sum()) for name, mix in said.items()})
    return tuple(found)


def _corrected(pcc: Vector, scores: Matrix) -> Vector:
    """PCC with its mean error."""
    mix = np.maximum(pcc + scores.mean(axis=0), 0.0)
    return np.asarray(mix / mix.sum())


def _history(state: RecentLabelsState, reference: Reference) -> tuple[Matrix, Matrix]:
    """The mixes that are known, and by how much the scores were off: blocks of the hold-out first, then windows."""
    mixes = [np.array(outcome.realised) for outcome in state.outcomes]
    scores = [np.array(outcome.scores) for outcome in state.outcomes]
    if (blocks := reference.blocks) is not None:
        shares = blocks.shares
        mixes, scores = [*shares, *mixes], [*(shares - blocks.pcc), *scores]
    return np.array(mixes[-MIXES_KEPT:]), np.array(scores[-MIXES_KEPT:])


def _together(
    state: RecentLabelsState, blocks: tuple[Mapping[str, float], ...], experts: Experts, said: PriorEstimate
) -> tuple[PriorEstimate, str]:
    """The mix that they say together, with its interval; and which of them count."""
    outcomes = [*blocks, *(outcome.squares for outcome in state.outcomes)]
    names = [name for name in experts if sum(name in each for each in outcomes) >= FEWEST_OUTCOMES]
    counts = 0.5 ** (np.arange(len(outcomes))[::-1] / EXPERT_HALF_LIFE)
    counts[: len(blocks)] *= BLOCK_OUTCOME
    squares = np.array([[each.get(name, np.nan) for each in outcomes] for name in names])
    known = counts * ~np.isnan(squares)
    errors = np.maximum((known * np.nan_to_num(squares)).sum(axis=1) / known.sum(axis=1), np.finfo(np.float64).eps)
    weights = (errors / errors.min()) ** -EXPERT_POWER
    weights /= weights.sum()
    each = np.array([experts[name] for name in names])
    priors = weights @ each
    off = np.array([outcome.published for outcome in state.outcomes[-PUBLISHED_ERRORS:]])
    n = len(off)
    lower, upper = np.minimum(said.lower, priors), np.maximum(said.upper, priors)
    if n >= FEWEST_ERRORS:
        variance = (off**2).mean(axis=0) + EXPERT_DISAGREEMENT * (weights @ (each - priors) ** 2)
        half = stdtrit(n - 1, 0.975) * np.sqrt(1 + 1 / n) * np.sqrt(variance)
        lower, upper = np.clip(priors - half, 0, 1), np.clip(priors + half, 0, 1)
    ranked = sorted(zip(weights.tolist(), names, strict=True), key=lambda pair: (-pair[0], pair[1]))
    words = ", ".join(f"{name} {weight:.0%}" for weight, name in ranked[:3])
    number = len(state.outcomes)
    where = f"the last {number} windows with labels" if number > 1 else "the first window with labels"
    where += " and in blocks of the hold-out" if blocks else ""
    why = f"by the errors in {where}, the prevalence weighs {words}"
    estimate = replace(
        said,
        method="recent-labels",
        priors=frozen_vector(priors, "priors"),
        lower=frozen_vector(lower, "lower"),
        upper=frozen_vector(upper, "upper"),
        standard_errors=None,
    )
    return estimate, why

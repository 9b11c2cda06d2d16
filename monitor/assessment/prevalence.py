"""Which estimate of the class mix a window publishes, and what that rests on.

Estimators of label shift (EM, matching, ...) are right where nothing but the class mix moves. Real streams move in
other ways too, and there they are often worse than no estimate at all. What each way of estimating is worth on this
stream shows in the blocks of the hold-out, whose mix is known. Three candidates c_i:

    the reference's shares pi,   calibrated PCC (the mean calibrated posterior),   the label-shift estimate

(pi at this time of the day, week or year, where the reference has a season: `shifts.season`.)

Notation. e_ik the error of candidate i in block k, each block held against the others (pi and the label-shift estimate
have seen it: their errors are taken S / (S - 1) times, S stretches of the hold-out, usually K), M_i the
mean over the blocks of |e_ik|^2; dep >= 1 how many times as large the window's misfit T is as a block's usually is.
Scores are believed as far as inputs look familiar:

    w_i ~ 1 / (M_i g_i)^2,   g = 1 for pi, min(dep, 6) for the others,      p = sum_i w_i c_i

    half-width^2 = t_{.975, S-1}^2 (1 + 1/S)
        [h mean_k (sum_i w_i e_ik)^2 + 2 sum_i w_i (c_i - p)^2 + 8 delta^2 + a^2 + u]
    h = min(max(dep, |p - pi|^2 / mean_k |p_k - pi|^2), 25),     p_k = sum_i w_i c_ik
    delta^2 = max(3/4 d^2 - 3 s^2 / K, 0),   d the difference of the mean error in the hold-out's two halves
    a^2 = max_j a_j^2, where a_j > 3 sd of it by chance; a_j the difference of the mean error of the last j blocks and
          those before them, j = 1, 2, 4, ... up to a third of all
    u = 1 / ((m + 2) n),   m events of the hold-out, n of the window

Inputs may be a thousand times as strange as usual, and the mix may be farther away than it ever was in the hold-out:
what an estimate is worth there nobody has seen. To give up the scores altogether is no better than to believe them; the
interval has to grow, in proportion to how far out the window lies. And errors that differ between the halves of the
hold-out go on to do so: delta^2 is what half of its length adds, 8 times that what a walk adds in a hold-out and a half
after its end. Where something changed shortly before its end the last blocks show it, and windows go on as they do: a
model of how force is used was off by .01 in 23 blocks, .04 and .11 in the last two, and .15 from the first window on.
And scores that were right of all m events of the hold-out are wrong of one in m + 2 (Laplace), which
makes the share of n events vary by u. Figures beside the bounds, in `monitor.tolerances`.

Where blocks are alike and nothing in a window moved that counts, candidates are weighed so too, with g = 1, the less
the more its class mix seems to have moved, and the interval is that of label shift: its estimate is right whatever the
mix, and pays for that with scores that tell little. On shuffled tables it was 1.5 to 6 times as far off as the best of
the three.

In place of p = pi + beta (PCC - pi), beta = tau^2 / (tau^2 + sigma^2 dep), to which it comes down where the label-shift
estimate is of no use and weights go by 1 / M: measured on seventeen streams (tests/bench/streams). Where the class mix
moved by more than it does by nature, pi is no candidate any more. Label shift alone is not believed then either: in a
stream that also differs in other ways it overshoots (police stops: .75 for .62), and all nine corrections that were
made by it there made scores worse.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy.special import ndtri, stdtrit

from monitor.arrays import Matrix, Vector, frozen_vector
from monitor.assessment.verdict import Verdict
from monitor.priors import PriorEstimate
from monitor.shifts import Blocks, Diagnosis, Match, ShiftReference
from monitor.tolerances import (
    CANDIDATE_DISAGREEMENT,
    ERRORS_GO_ON,
    FEWEST_BLOCKS,
    LEAST_FAMILIAR,
    NORMAL_95,
    ODD_BLOCK,
    WIDEST,
)


class BasedOn(StrEnum):
    """What a published class mix rests on."""

    LABEL_SHIFT = "label-shift"
    """Nothing but the class mix moved, or nothing else but in inputs that were left out."""
    FAMILIAR_INPUTS = "familiar-inputs"
    """Scores and the reference's shares, by what each was worth in the hold-out and by how familiar inputs look."""
    RECENT_LABELS = "recent-labels"
    """The estimates that came closest in windows whose labels have come."""


@dataclass(frozen=True, slots=True, eq=False)
class Prevalence:
    """A class mix, what it rests on, and why that is not label shift."""

    estimate: PriorEstimate
    based_on: BasedOn = BasedOn.LABEL_SHIFT
    why: tuple[str, ...] = ()
    label_shift: PriorEstimate | None = None
    """What holds if nothing but the mix moved, without bias; None where more did."""


CANDIDATES = ("the reference's shares", "calibrated scores", "label shift")


def published(
    verdict: Verdict,
    diagnosis: Diagnosis,
    label_shift: PriorEstimate,
    pcc: Vector,
    reference: ShiftReference,
    *,
    moved_p: float,
    level: float,
    known: PriorEstimate | None = None,
) -> Prevalence:
    """The class mix of a window with enough events.

    `label_shift` is what holds if nothing but the mix moved, and `moved_p` how likely that is by chance where it did
    not, significant below `level`; `known` the same of the known events, where some may be of no known class.
    """
    natural, source, blocks = diagnosis.whole.natural, reference.source_priors, reference.blocks
    by_inputs = verdict in {Verdict.COVARIATE_SHIFT, Verdict.PRIOR_AND_COVARIATE_SHIFT} or diagnosis.scores_moved
    unmoved = None if diagnosis.rest is None else _from_unmoved(diagnosis.rest.match, label_shift.events)
    explained = verdict is not Verdict.UNEXPLAINED
    if unmoved is not None and by_inputs:
        label_shift, explained = unmoved, True
    elif known is not None:
        label_shift = known
    doubt: tuple[str, ...] = ()
    if unmoved is not None and known is not None and diagnosis.or_one_feature:
        label_shift, doubt = _either(label_shift, unmoved, known), (_EITHER,)
    if blocks is not None and blocks.number < FEWEST_BLOCKS:
        blocks = None
    if explained and not natural and (verdict is not Verdict.STABLE or blocks is None):
        return Prevalence(label_shift, why=doubt, label_shift=label_shift)
    if blocks is None:
        return _without_blocks(label_shift, pcc, source)
    expected = source if diagnosis.usual is None else diagnosis.usual.shares
    candidates = np.stack([expected, pcc, label_shift.priors])
    if explained and not natural:
        return _calm(label_shift, candidates, blocks, source, _believed(moved_p, level))
    moved = verdict in {Verdict.PRIOR_SHIFT, Verdict.PRIOR_AND_COVARIATE_SHIFT}
    return _familiar(label_shift, candidates, blocks, source, departure=diagnosis.whole.departure, moved=moved)


_EITHER = (
    "the window fits as well without its unknown events as without one of its features: the prevalence is within both"
)


def _either(published: PriorEstimate, unmoved: PriorEstimate, known: PriorEstimate) -> PriorEstimate:
    """The mix of the explanation that goes first, with an interval that holds the other's too."""
    return replace(
        published,
        lower=frozen_vector(np.minimum(unmoved.lower, known.lower), "lower"),
        upper=frozen_vector(np.maximum(unmoved.upper, known.upper), "upper"),
        standard_errors=None,
    )


def errors_in_blocks(blocks: Blocks, source: Vector) -> Matrix:
    """e_ik of `CANDIDATES`, (candidates, blocks, classes).

    What the season leads to expect of a block has not seen it.
    """
    shares, unseen = blocks.shares, blocks.stretches / (blocks.stretches - 1)
    expected = _expected(blocks, source)
    return np.stack(
        [
            (expected - shares) * (unseen if blocks.season is None else 1.0),
            blocks.pcc - shares,
            (blocks.estimates - shares) * unseen,
        ]
    )


def _expected(blocks: Blocks, source: Vector) -> Matrix:
    """The reference's shares as each block has them, at its time of the season if there is one."""
    mixes = blocks.usual_mixes
    return np.broadcast_to(source, blocks.shares.shape) if mixes is None else mixes


def _mean_squares(errors: Matrix) -> Vector:
    """M_i; never quite 0: that a candidate was right in every block does not make it right for ever."""
    squares = (errors**2).sum(axis=2).mean(axis=1)
    return np.asarray(np.maximum(squares, np.finfo(np.float64).eps))


def _reach(stretches: int) -> float:
    """t_{.975, S-1} sqrt(1 + 1/S): errors of neighbouring blocks that vary as one are one error."""
    return float(stdtrit(stretches - 1, 0.975) * np.sqrt(1 + 1 / stretches))


def _weighed(weights: Vector) -> str:
    """Which candidates count."""
    named = zip(CANDIDATES, weights, strict=True)
    return ", ".join(f"{name} {weight:.0%}" for name, weight in named if weight >= 0.005)


def _believed(moved_p: float, level: float) -> float:
    """How far label shift is believed of a mix that moved with this p-value: (z / z_level)^4, and 1 from the level on.

    In long windows a move may be beyond chance and too small to count: then altogether.
    """
    return min(float(ndtri(moved_p / 2) / ndtri(level / 2)) ** 4, 1.0)


def _calm(
    label_shift: PriorEstimate, candidates: Matrix, blocks: Blocks, source: Vector, believed: float
) -> Prevalence:
    """Where nothing moved: the candidates by what each was worth in the hold-out, within the interval of label shift.

    An estimate that is right whatever the mix pays for that where the mix has not moved. With scores that tell little
    it is off by several times what the reference's shares are; the interval says so, and holds still.
    """
    weights = _mean_squares(errors_in_blocks(blocks, source)) ** -2.0
    weights *= (1 - believed) / weights.sum()
    weights[-1] += believed
    priors = weights @ candidates
    why = f"nothing moved that counts: the prevalence weighs {_weighed(weights)}, by their errors in the hold-out"
    estimate = replace(
        label_shift,
        method="calm-window",
        priors=frozen_vector(priors, "priors"),
        lower=frozen_vector(np.minimum(label_shift.lower, priors), "lower"),
        upper=frozen_vector(np.maximum(label_shift.upper, priors), "upper"),
    )
    return Prevalence(estimate, why=(why,), label_shift=label_shift)


def _familiar(
    label_shift: PriorEstimate, candidates: Matrix, blocks: Blocks, source: Vector, *, departure: float, moved: bool
) -> Prevalence:
    errors, of_blocks = errors_in_blocks(blocks, source), _expected(blocks, source)
    growth = np.array([1.0, *[min(departure, LEAST_FAMILIAR)] * 2])
    weights = (_mean_squares(errors) * growth) ** -2.0
    weights[0] *= not moved
    weights /= weights.sum()
    priors = weights @ candidates
    off = np.einsum("i,ikc->kc", weights, errors)
    usual = weights[1] * (blocks.pcc - of_blocks) + weights[2] * (blocks.estimates - of_blocks)
    away = float(((priors - candidates[0]) ** 2).sum() / max((usual**2).sum(axis=1).mean(), np.finfo(np.float64).eps))
    far = min(max(departure, away), WIDEST)
    apart = weights @ (candidates - priors) ** 2
    unseen = 1 / ((float(blocks.events.sum()) + 2) * label_shift.events)
    squares = far * (off**2).mean(axis=0) + CANDIDATE_DISAGREEMENT * apart
    squares += ERRORS_GO_ON * _between_halves(off) + _at_the_end(off)
    half = _reach(blocks.stretches) * np.sqrt(squares + unseen)
    why = (
        "blocks of the hold-out differ by more than their class mix: without labels the prevalence weighs "
        f"{_weighed(weights)}, by their errors there{_strange(departure)}"
    )
    return Prevalence(_estimate(label_shift, "familiar-inputs", priors, half), BasedOn.FAMILIAR_INPUTS, (why,))


def _between_halves(errors: Matrix) -> Vector:
    """delta^2, by how much the errors of the hold-out's second half differ from those of its first, beyond chance."""
    number = len(errors)
    first, second = errors[: number // 2], errors[number // 2 :]
    gap = (first.mean(axis=0) - second.mean(axis=0)) ** 2
    return np.asarray(np.maximum(0.75 * gap - 3.0 * errors.var(axis=0, ddof=1) / number, 0.0))


def _at_the_end(errors: Matrix) -> Vector:
    """a^2, by how much the errors of the last blocks differ from those before, where that is odd."""
    number, squares = len(errors), np.zeros(errors.shape[1])
    for last in 2 ** np.arange(max(number // 3, 1).bit_length()):
        before, latest = errors[:-last], errors[-last:]
        gap = (latest.mean(axis=0) - before.mean(axis=0)) ** 2
        by_chance = before.var(axis=0, ddof=1) * (1 / last + 1 / (number - last))
        squares = np.maximum(squares, np.where(gap > ODD_BLOCK**2 * by_chance, gap, 0.0))
    return np.asarray(squares)


def _strange(departure: float) -> str:
    return f", and inputs are {departure:.3g} times as far from the reference as usual" if departure >= 2 else ""


def _without_blocks(label_shift: PriorEstimate, pcc: Vector, source: Vector) -> Prevalence:
    """Nobody knows what each candidate is worth: halfway between two of them, and an interval that holds all three."""
    priors = (source + pcc) / 2
    sampling = NORMAL_95 * np.sqrt(priors * (1 - priors) / label_shift.events)
    lower = np.minimum(np.minimum(source, pcc) - sampling, label_shift.lower)
    upper = np.maximum(np.maximum(source, pcc) + sampling, label_shift.upper)
    half = np.maximum(priors - lower, upper - priors)
    why = (
        "label shift does not explain the window, and the reference has no blocks that say how much windows differ: "
        "the prevalence lies halfway between the reference's shares and the calibrated scores, its interval holds both"
    )
    return Prevalence(_estimate(label_shift, "familiar-inputs", priors, half), BasedOn.FAMILIAR_INPUTS, (why,))


def _estimate(like: PriorEstimate, method: str, priors: Vector, half: Vector) -> PriorEstimate:
    """In closed form, of the same events."""
    return PriorEstimate(
        method=method,
        priors=frozen_vector(priors, "priors"),
        lower=frozen_vector(np.clip(priors - half, 0, 1), "lower"),
        upper=frozen_vector(np.clip(priors + half, 0, 1), "upper"),
        events=like.events,
        iterations=1,
        converged=True,
        gap=0.0,
        stop_reason="closed form",
        unique=True,
        dropped=like.dropped,
    )


def _from_unmoved(match: Match, events: int) -> PriorEstimate:
    """The class mix that the unmoved inputs show, with its interval for the rate at which classes come."""
    spread = np.sqrt(np.maximum(np.diag(match.covariance), 0) + match.priors * (1 - match.priors) / events)
    return PriorEstimate(
        method="unmoved-inputs",
        priors=frozen_vector(match.priors, "priors"),
        lower=frozen_vector(np.clip(np.minimum(match.free - NORMAL_95 * spread, match.priors), 0, 1), "lower"),
        upper=frozen_vector(np.clip(np.maximum(match.free + NORMAL_95 * spread, match.priors), 0, 1), "upper"),
        events=events,
        iterations=1,
        converged=True,
        gap=0.0,
        stop_reason="closed form",
        unique=match.identified,
    )

"""The likelihood of the class priors given posteriors: concave, maximised by second-order steps, certified.

Notation
    g (events, classes)  posteriors under the source priors pi
    p                    the priors to be estimated
    r_iy = (g_iy / pi_y) / sum_k g_ik p_k / pi_k

    L(p)  = mean_i log sum_k g_ik p_k / pi_k            (esuli Algorithm 1 and caelen eq 6.1 climb it)
    m_y   = mean_i r_iy                                 gradient; also the factor by which an EM step multiplies p_y
    H     = mean_i r_i r_i'                             minus the second derivative

Since sum_k p_k r_ik = 1, H p = m, and the second-order model of L around p is 2 m'q - q'Hq/2 plus a constant: each
step is a program on the simplex, which settles exactly which priors are zero. By Jensen's inequality
L(best) - L(p) <= log max_y m_y: the certificate costs nothing.
"""

from dataclasses import dataclass, replace

import numpy as np

from monitor.arrays import Flags, Matrix, Vector
from monitor.limits import BLOCK_ROWS, CHECKED_ROWS
from monitor.priors.simplex import minimise
from monitor.tolerances import (
    BORROWED_SHARE,
    LENDER_GAP,
    LIKELIHOOD_GAP,
    NEWTON_STEPS,
    POLISHED_GAP,
    SINGULAR,
    SUFFICIENT_GAIN,
    THINNING,
    WARM_START_ROWS,
)

FAR_START = 1.0
"""Shortfall of the log-likelihood, in nats an event, of a start that is left for one inside of the simplex."""
IMPOSSIBLE = float(np.sqrt(np.finfo(np.float64).tiny))
"""An event of no more likelihood makes class priors impossible: the square of its inverse is no number."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Usable posteriors, the priors they were made under, and what else counts as an observation."""

    posteriors: Matrix
    source_priors: Vector
    weights: Vector | None = None
    """Events that each row stands for; None is one each."""
    shrinkage: float = 0.0
    """Pseudo-events of certain class, spread as the source priors, as a share of the events: a Dirichlet prior."""

    @property
    def least_likelihood(self) -> float:
        """No event is less likely at the optimum, relative to the source priors; a quarter, against rounding.

        There sum_i g_iy / (pi_y m_i) is at most the number of events, n, for each class, so that m_i is no less than
        max_y g_iy / pi_y / n, which is 1 / n and more. From points beyond it second-order steps take for ever.
        """
        events = len(self.posteriors) if self.weights is None else float(self.weights.sum())
        return 0.25 / (events * (1.0 + self.shrinkage))


@dataclass(frozen=True, slots=True, eq=False)
class Local:
    """The likelihood around one point."""

    priors: Vector
    value: float
    multipliers: Vector
    hessian: Matrix
    borrowed: bool = False
    """Whether the curvature is that of a thinner problem nearby."""

    @property
    def gap(self) -> float:
        """log(1 + gap): what the best priors can win at most over these, in mean log-likelihood."""
        return float(np.log(max(self.multipliers.max(), 1.0)))


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """Where the solver stopped, and why."""

    at: Local
    iterations: int
    stop_reason: str

    @property
    def converged(self) -> bool:
        return self.at.gap <= LIKELIHOOD_GAP

    @property
    def unique(self) -> bool:
        """Whether no other priors explain the events as well: nothing collinear among the classes in play."""
        in_play = (self.at.priors > 0) | (self.at.multipliers >= 1 - np.sqrt(LIKELIHOOD_GAP))
        return not undetermined(self.at.hessian[np.ix_(in_play, in_play)]).any()


def maximise(problem: Problem, start: Vector | None = None, tolerance: float = POLISHED_GAP) -> Optimum:
    """Maximise the likelihood; `start` only saves steps.

    A large problem is first solved on every eighth row, as that one is on an eighth of its own. Curvature is then
    borrowed from the rows that carry it, while gradient, value and certificate come from all rows: a quarter of the
    cost. Two steps that do not bring the gap down to an eighth end the loan.
    """
    rows = problem.posteriors.shape[0]
    if problem.weights is not None or rows < 2 * WARM_START_ROWS:
        return climb(problem, look(problem, problem.source_priors if start is None else start), tolerance)
    few = replace(problem, posteriors=np.ascontiguousarray(problem.posteriors[::THINNING]))
    lender = maximise(few, start, max(tolerance, LENDER_GAP)).at
    del few
    weighted = bearers(problem, lender)
    lender = climb(weighted, look(weighted, lender.priors), LENDER_GAP).at
    finish = climb(problem, look(problem, lender.priors, lender.hessian), tolerance, weighted)
    curvature = finish.at.hessian
    if undetermined(curvature).any():
        curvature = look(problem, finish.at.priors).hessian
    return replace(finish, at=replace(finish.at, hessian=curvature, borrowed=False))


def bearers(problem: Problem, near: Local) -> Problem:
    """Rows that carry the curvature around `near`, weighted to stand for all: about one in `BORROWED_SHARE`.

    H is a sum over rows, and a rare class has its share of it in few of them: evenly thinned rows would miss those.
    Row i is drawn with a chance that grows with (sum_y r_iy / sqrt(H_yy))^2, which bounds its leverage r_i' H^-1 r_i
    up to correlations, and counts as one over that chance. The draw is systematic: rows are taken where the running
    sum of chances passes a whole number, so that the same rows give the same answer.
    """
    g, pi = problem.posteriors, problem.source_priors
    scales = np.sqrt(np.maximum(np.diag(near.hessian), 1.0))
    typical = float((near.hessian / np.outer(scales, scales)).sum())
    # A class that the thinner problem left out may have rows here after all.
    priors = 0.99 * near.priors + 0.01 * pi
    columns = np.column_stack([priors / pi, 1.0 / (pi * scales)])
    chosen, weights, carried = [], [], 0.0
    for begin in range(0, g.shape[0], CHECKED_ROWS):
        block = g[begin : begin + CHECKED_ROWS]
        mixture, reach = (block @ columns).T
        chances = np.minimum((0.5 + 0.5 * (reach / mixture) ** 2 / typical) / BORROWED_SHARE, 1.0)
        passed = np.floor(carried + np.cumsum(chances))
        taken = np.flatnonzero(np.diff(passed, prepend=np.floor(carried)) > 0)
        carried += float(chances.sum())
        chosen.append(block[taken])
        weights.append(1.0 / chances[taken])
    return replace(problem, posteriors=np.concatenate(chosen), weights=np.concatenate(weights))


def climb(problem: Problem, here: Local, tolerance: float, few: Problem | None = None) -> Optimum:
    # From a border that events contradict by far, as a thinned start may have ended on, steps hardly lead away.
    if not here.gap <= FAR_START:
        here = look(problem, 0.99 * here.priors + 0.01 * problem.source_priors)
    gap_before = np.inf
    for iteration in range(1, NEWTON_STEPS + 1):
        if here.gap <= tolerance:
            return Optimum(here, iteration, "certified optimum")
        there = _step(problem, here)
        if here.borrowed and (there is None or there.gap > gap_before / THINNING):
            better = here if there is None else there
            there = look(problem, better.priors)
        if there is None:
            reason = "certified optimum to rounding" if here.gap <= LIKELIHOOD_GAP else "no further progress"
            return Optimum(here, iteration, reason)
        gap_before, here = here.gap, there
        if few is not None and here.borrowed:
            here = replace(here, hessian=look(few, here.priors).hessian)
    return Optimum(here, NEWTON_STEPS, "step limit")


def look(problem: Problem, priors: Vector, borrowed: Matrix | None = None, least: float = IMPOSSIBLE) -> Local:
    """Value, gradient and curvature at `priors` in one pass over the events, a cache-sized block at a time.

    With a `borrowed` curvature only value and gradient are taken. Priors under which an event has no more than the
    `least` likelihood relative to the source priors are impossible.
    """
    g, pi = problem.posteriors, problem.source_priors
    events, classes = g.shape
    ratios = priors / pi
    value, total = 0.0, 0.0
    sums, products = np.zeros(classes), np.zeros((classes, classes))
    size = max(BLOCK_ROWS, 4 * BLOCK_ROWS // classes)
    scratch = np.empty((min(size, events), classes))
    for begin in range(0, events, size):
        block = g[begin : begin + size]
        mixture = block @ ratios
        if not mixture.min() > least:
            return Local(priors, -np.inf, np.full(classes, np.inf), products)
        weights = None if problem.weights is None else problem.weights[begin : begin + size]
        logs, inverse = np.log(mixture), 1.0 / mixture
        value += float(logs.sum() if weights is None else weights @ logs)
        total += float(block.shape[0] if weights is None else weights.sum())
        sums += (inverse if weights is None else inverse * weights) @ block
        if borrowed is None:
            factors = inverse if weights is None else inverse * np.sqrt(weights)
            scaled = np.multiply(block, factors[:, None], out=scratch[: block.shape[0]])
            products += scaled.T @ scaled
    hessian = products / (total * np.outer(pi, pi)) if borrowed is None else borrowed
    local = Local(priors, value / total, sums / (total * pi), hessian, borrowed is not None)
    return _with_pseudo_events(local, pi, problem.shrinkage) if problem.shrinkage else local


def log_likelihood(problem: Problem, priors: Vector) -> float:
    """Mean log-likelihood above that of the source priors, without the pseudo-observations of a shrinkage."""
    plain, pi = Problem(problem.posteriors, problem.source_priors, problem.weights), problem.source_priors
    curvature = np.zeros((pi.size, pi.size))  # nobody asks for it
    return look(plain, priors, curvature).value - look(plain, pi, curvature).value


def undetermined(hessian: Matrix) -> Flags:
    """The classes that can be traded against each other without any event noticing."""
    size = hessian.shape[0]
    if size == 1:
        return np.zeros(1, dtype=np.bool_)
    # Scaled to a unit diagonal first: a class that is rare has a large entry and would hide everything else. The
    # directions that sum to zero become those orthogonal to the inverse scales.
    # The floor is for classes that no event has a share of: the squares of its inverse are still numbers.
    scales = np.sqrt(np.maximum(np.diag(hessian), np.sqrt(np.finfo(np.float64).tiny)))
    normal = 1.0 / scales
    normal /= np.linalg.norm(normal)
    projector = np.eye(size) - np.outer(normal, normal)
    values, vectors = np.linalg.eigh(projector @ (hessian / np.outer(scales, scales)) @ projector)
    # One zero eigenvalue is the projector's own; the eigenvectors of all others are orthogonal to `normal`.
    flat = vectors[:, values <= SINGULAR * size]
    flat = flat - np.outer(normal, normal @ flat)
    weight = np.sqrt((flat**2).sum(axis=1))
    return np.asarray(weight > 1e-6)


def _step(problem: Problem, here: Local) -> Local | None:
    """The next point: a full second-order step, shortened until it pays; an EM step if none does; None at the end."""
    curvature = here.hessian if here.borrowed else None
    goal = minimise(here.hessian, here.multipliers + here.hessian @ here.priors, start=here.priors).point
    direction = goal - here.priors
    # The direction sums to zero but for rounding, which near the optimum would drown the promise.
    promised = float((here.multipliers - 1.0) @ direction)
    length, least = 1.0, problem.least_likelihood
    while length > 1e-6 and promised > 0:
        there = look(problem, _on_simplex(here.priors + length * direction), curvature, least)
        if there.value >= here.value + SUFFICIENT_GAIN * length * promised or _closer(there, here):
            return there
        if here.borrowed:
            return None
        length *= 0.25
    there = look(problem, _on_simplex(here.priors * here.multipliers), curvature)
    return there if there.value > here.value and there.gap < here.gap else None


def _closer(there: Local, here: Local) -> bool:
    """Near the optimum the values agree to rounding, and the gap says which point is better."""
    return here.gap <= LIKELIHOOD_GAP and there.gap < here.gap and there.value > here.value - 1e-12


def _on_simplex(priors: Vector) -> Vector:
    clipped = np.maximum(priors, 0.0)
    return np.asarray(clipped / clipped.sum())


def _with_pseudo_events(local: Local, pi: Vector, share: float) -> Local:
    """The objective with `share` times pi_k events that are certainly of class k added to it."""
    if not (local.priors > 0).all():
        return replace(local, value=-np.inf, multipliers=np.full(pi.size, np.inf))
    whole = 1.0 + share
    value = (local.value + share * float(pi @ np.log(local.priors / pi))) / whole
    multipliers = (local.multipliers + share * pi / local.priors) / whole
    if local.borrowed:
        return replace(local, value=value, multipliers=multipliers)
    hessian = (local.hessian + share * np.diag(pi / local.priors**2)) / whole
    return replace(local, value=value, multipliers=multipliers, hessian=hessian)

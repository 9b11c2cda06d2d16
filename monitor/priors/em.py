"""Class priors of a window from its posteriors alone: maximum likelihood, by EM as printed and by a certified solver.

`sld` is the papers' baseline, `stopped` the thesis' cure for its divergence. `maximum_likelihood` is what the product
uses: the same concave likelihood, solved to its end.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from monitor.arrays import Labels, Matrix, Vector
from monitor.errors import InputError
from monitor.limits import BLOCK_ROWS, CHECKED_ROWS
from monitor.priors import intervals, likelihood, nulls
from monitor.priors.estimate import (
    PriorEstimate,
    Statistics,
    no_events,
    positive_priors,
    usable,
    usable_rows,
    without_interval,
)
from monitor.priors.likelihood import Problem
from monitor.tolerances import POLISHED_GAP, SLD_CHANGE, SLD_ITERATIONS


@dataclass(frozen=True, slots=True)
class LikelihoodRatio:
    """Is there a prior shift at all?"""

    statistic: float
    p_value: float
    degrees_of_freedom: float
    null: str
    """'chi-square' (right for calibrated posteriors only) or 'reference' (calibrated on the reference)."""
    events: int


def sld(
    posteriors: ArrayLike,
    source_priors: ArrayLike,
    tolerance: float = SLD_CHANGE,
    max_iterations: int = SLD_ITERATIONS,
) -> PriorEstimate:
    """The SLD algorithm as printed (esuli, Algorithm 1 and eq 6; caelen, eq 6.1).

    p^(s)_y = mean_i g^(s-1)_iy,   g^(s)_iy proportional to g^(0)_iy p^(s)_y / p^(0)_y

    stopped when the mean absolute change falls below `tolerance`, or at the cap: neither certifies a maximum, so the
    gap that is left is reported, and `converged` speaks of the gap.
    """
    g, dropped = usable_rows(posteriors)
    pi = positive_priors(source_priors, g.shape[1])
    if g.shape[0] == 0:
        return no_events("em-sld", pi, dropped)
    priors, iterations, reason = pi, 0, "iteration cap"
    for following in _em_path(g, pi, max_iterations):
        iterations += 1
        change = float(np.abs(following - priors).mean())
        priors = following
        if change < tolerance:
            reason = "change below tolerance"
            break
    return _reported("em-sld", Problem(g, pi), priors, iterations=iterations, reason=reason, dropped=dropped)


def maximum_likelihood(
    posteriors: ArrayLike,
    source_priors: ArrayLike,
    start: ArrayLike | None = None,
    shrinkage: float = 0.0,
    tolerance: float = POLISHED_GAP,
) -> PriorEstimate:
    """The priors of greatest likelihood, certified: log(1 + gap) bounds what is missing, over all rows.

    `start` (say, the last window's answer) only saves steps. `shrinkage` adds that share of pseudo-events of certain
    class, spread as the source priors: a Dirichlet prior that pulls the answer towards no shift. The interval comes
    from the observed information: it takes the posteriors as exact, which they are not; the registry's `em` adds the
    reference's noise.
    """
    g, dropped = usable_rows(posteriors)
    pi = positive_priors(source_priors, g.shape[1])
    if g.shape[0] == 0:
        return no_events("em", pi, dropped)
    if not 0 <= shrinkage < np.inf:
        raise InputError(f"shrinkage: want a finite number of at least 0, got {shrinkage}")
    return certified(Problem(g, pi, shrinkage=shrinkage), dropped, start, tolerance)


def certified(
    problem: Problem, dropped: int, start: ArrayLike | None = None, tolerance: float = POLISHED_GAP
) -> PriorEstimate:
    """Maximise the likelihood of a problem that has rows, and account for it."""
    estimate, best = solved(problem, dropped, start, tolerance)
    return intervals.around(estimate, intervals.information_errors(best.at, estimate.events))


def solved(
    problem: Problem, dropped: int, start: ArrayLike | None = None, tolerance: float = POLISHED_GAP
) -> tuple[PriorEstimate, likelihood.Optimum]:
    """`certified` for those who know better about its interval."""
    classes = problem.source_priors.size
    warm = None if start is None else np.asarray(start, dtype=np.float64)
    if warm is not None and (warm.shape != (classes,) or not (warm >= 0).all() or not 0 < warm.sum() < np.inf):
        raise InputError(f"start: want {classes} numbers of at least 0 that do not all vanish, got {warm}")
    if warm is not None:
        # A zero would be a class that no second-order step could see; a thousandth of the source priors frees it.
        warm = 0.999 * warm / warm.sum() + 0.001 * problem.source_priors
    best = likelihood.maximise(problem, warm, tolerance)
    events = problem.posteriors.shape[0] if problem.weights is None else int(problem.weights.sum())
    plain = best.at.value
    if problem.shrinkage:
        plain = likelihood.log_likelihood(problem, best.at.priors)
    else:
        plain -= _mean_log_sum(problem)
    estimate = without_interval(
        "em",
        best.at.priors,
        events,
        dropped=dropped,
        iterations=best.iterations,
        converged=best.converged,
        gap=best.at.gap,
        stop_reason=best.stop_reason,
        unique=best.unique,
        log_likelihood=plain,
    )
    return estimate, best


def stopped(
    posteriors: ArrayLike, source_priors: ArrayLike, train_posteriors: ArrayLike, train_labels: ArrayLike
) -> PriorEstimate:
    """EM that stops before it runs off (caelen 6.2, read as erratum 2 says).

    P_W^s = sum_y P(y) precision_s(y), with the precision of class y among the labelled rows that the posteriors
    corrected to step s's priors q^(s) predict as y. With s the last step before the first strict decrease of P_W, the
    answer is that step's own mean of corrected posteriors, q^(s+1). A class that is never predicted has precision 0.
    """
    g, dropped = usable_rows(posteriors)
    pi = positive_priors(source_priors, g.shape[1])
    labelled, labels = _labelled(train_posteriors, train_labels, g.shape[1])
    if g.shape[0] == 0:
        return no_events("em-stopped", pi, dropped)
    priors, iterations, reason = pi, 0, "iteration cap"
    precision = -np.inf
    for following in _em_path(g, pi, SLD_ITERATIONS):
        iterations += 1
        before, precision = precision, _weighted_precision(labelled, labels, priors / pi, pi)
        if precision < before:
            reason = "weighted precision fell"
            break
        change = float(np.abs(following - priors).mean())
        priors = following
        if change < SLD_CHANGE:
            reason = "change below tolerance"
            break
    return _reported("em-stopped", Problem(g, pi), priors, iterations=iterations, reason=reason, dropped=dropped)


def likelihood_ratio(
    posteriors: ArrayLike,
    source_priors: ArrayLike,
    null: Statistics | None = None,
    best: PriorEstimate | None = None,
) -> LikelihoodRatio:
    """Likelihood-ratio test for a prior shift: 2 N (L(best priors) - L(priors under the null)).

    Without `null` the priors under the null are the source priors and the statistic is compared with a chi-square of
    classes - 1 degrees. That is right for calibrated posteriors only: sharpened ones reject a true null in most
    windows. With `null`, from `nulls.calibrate`, both the priors and the distribution are the reference's own. `best`,
    the answer of `maximum_likelihood` to these posteriors, saves working it out again.
    """
    g, dropped = usable_rows(posteriors)
    pi = positive_priors(source_priors, g.shape[1])
    degrees = float(pi.size - 1)
    kind = "chi-square" if null is None else "reference"
    if g.shape[0] == 0 or pi.size == 1:
        return LikelihoodRatio(0.0, 1.0, degrees, kind, int(g.shape[0]))
    problem = Problem(g, pi)
    highest = (solved(problem, dropped)[0] if best is None else best).log_likelihood or 0.0
    events = g.shape[0]
    if null is None:
        statistic = max(2.0 * events * highest, 0.0)
        return LikelihoodRatio(statistic, float(chdtrc(degrees, statistic)), degrees, kind, events)
    gain = highest - likelihood.log_likelihood(problem, null["null_priors"])
    statistic = max(2.0 * events * gain, 0.0)
    p_value, degrees = nulls.survival(statistic, events, null)
    return LikelihoodRatio(statistic, p_value, degrees, kind, events)


def _em_path(g: Matrix, pi: Vector, steps: int) -> Iterator[Vector]:
    """The priors after each EM step: p * m, with m the likelihood's multipliers, a block of rows at a time."""
    priors = pi
    for _ in range(steps):
        ratios, sums = priors / pi, np.zeros(pi.size)
        for begin in range(0, g.shape[0], BLOCK_ROWS):
            block = g[begin : begin + BLOCK_ROWS]
            mixture = block @ ratios
            # A row that only a class without prior could explain keeps no share: 0/0 is 0.
            sums += np.divide(1.0, mixture, out=np.zeros_like(mixture), where=mixture > 0) @ block
        following = priors * sums / (g.shape[0] * pi)
        priors = following / following.sum()
        yield priors


def _reported(
    method: str, problem: Problem, priors: Vector, *, iterations: int, reason: str, dropped: int
) -> PriorEstimate:
    here = likelihood.look(problem, priors)
    finish = likelihood.Optimum(here, iterations, reason)
    return without_interval(
        method,
        priors,
        problem.posteriors.shape[0],
        dropped=dropped,
        iterations=iterations,
        converged=finish.converged,
        gap=min(here.gap, float(np.log(1.0 / problem.source_priors.min()))),
        stop_reason=reason,
        unique=finish.unique,
        log_likelihood=here.value - _mean_log_sum(problem),
    )


def _mean_log_sum(problem: Problem) -> float:
    """The log-likelihood of the source priors: 0 but for rows that do not quite sum to one."""
    total, weight, ones = 0.0, 0.0, np.ones(problem.source_priors.size)
    for begin in range(0, problem.posteriors.shape[0], CHECKED_ROWS):
        logs = np.log(problem.posteriors[begin : begin + CHECKED_ROWS] @ ones)
        weights = np.ones(logs.size) if problem.weights is None else problem.weights[begin : begin + CHECKED_ROWS]
        total += float(weights @ logs)
        weight += float(weights.sum())
    return total / weight


def _labelled(posteriors: ArrayLike, labels: ArrayLike, classes: int) -> tuple[Matrix, Labels]:
    """The rows that have a label and posteriors."""
    g, y = np.asarray(posteriors, dtype=np.float64), np.asarray(labels, dtype=np.int64)
    if g.ndim != 2 or g.shape[1] != classes or y.shape != (g.shape[0],):
        raise InputError(
            f"train_posteriors, train_labels: want (rows, {classes}) and (rows,), got {g.shape}, {y.shape}"
        )
    if (y >= classes).any():
        raise InputError(f"train_labels: want class numbers below {classes}, got {y.max()}")
    known = (y >= 0) & usable(g)
    return g[known], y[known]


def _weighted_precision(g: Matrix, labels: Labels, ratios: Vector, pi: Vector) -> float:
    predicted = np.argmax(g * ratios, axis=1)
    hits = np.bincount(predicted[predicted == labels], minlength=pi.size)
    claims = np.bincount(predicted, minlength=pi.size)
    return float(pi @ np.divide(hits, claims, out=np.zeros(pi.size), where=claims > 0))

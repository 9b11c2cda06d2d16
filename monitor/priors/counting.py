"""Class priors from predicted classes: counted, counted softly, and adjusted by what the reference knows of the errors.

Notation
    confusion (true, predicted)   counts of hold-out rows
    M (predicted, true)           P(predicted | true): columns are the true class (caelen eq 4.1 and 4.4, erratum 1)
    v (predicted)                 shares of the predictions in the window
"""

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Matrix, Vector
from monitor.errors import InputError
from monitor.priors import intervals
from monitor.priors.estimate import PriorEstimate, no_events, positive_priors, usable_rows, without_interval
from monitor.priors.simplex import constrained_inverse, identifiable, minimise
from monitor.tolerances import CDE_LOOPS


def predictions(posteriors: Matrix) -> Matrix:
    """One-hot predictions; a tie is shared, so that the order of the classes decides nothing."""
    hits = posteriors == posteriors.max(axis=1, keepdims=True, initial=-np.inf)
    shares = hits.sum(axis=1, keepdims=True)
    return np.asarray(hits / np.maximum(shares, 1))


def counts(posteriors: Matrix) -> Vector:
    """How many events are predicted as each class; a tie counts in parts."""
    hits = posteriors == posteriors.max(axis=1, keepdims=True, initial=-np.inf)
    if np.count_nonzero(hits) == posteriors.shape[0]:
        return np.asarray(hits.sum(axis=0, dtype=np.float64))
    return np.asarray(predictions(posteriors).sum(axis=0))


def classify_and_count(predicted_counts: ArrayLike) -> PriorEstimate:
    """The shares of the predictions: the biased baseline of every paper."""
    v = _counts(predicted_counts)
    if v.sum() <= 0:
        return _nothing_counted("cc", v.size)
    return without_interval("cc", v / v.sum(), round(v.sum()))


def probabilistic(posteriors: ArrayLike) -> PriorEstimate:
    """The mean posterior: also the first step of EM."""
    g, dropped = usable_rows(posteriors)
    if g.shape[0] == 0:
        return _nothing_counted("pcc", g.shape[1], dropped)
    mean = g.mean(axis=0)
    return without_interval("pcc", mean / mean.sum(), g.shape[0], dropped=dropped)


def adjusted(confusion: ArrayLike, predicted_counts: ArrayLike) -> PriorEstimate:
    """Adjusted count by matrix solve, clipped and rescaled (caelen, eq 4.4): v = M p.

    A singular M has no inverse: of the vectors that sum to one and come nearest to v, the one nearest to equal shares
    is taken, and said not to be unique.
    """
    tally, v = _confusion(confusion, predicted_counts)
    if v.sum() <= 0:
        return no_events("acc", tally.sum(axis=1) / tally.sum(), 0)
    m = (tally / tally.sum(axis=1, keepdims=True)).T
    sound = identifiable(m.T @ m)
    raw = np.linalg.solve(m, v / v.sum()) if sound else _nearest(m, v / v.sum())
    clipped = np.clip(raw, 0.0, 1.0)
    estimate = without_interval(
        "acc",
        clipped / clipped.sum(),
        round(v.sum()),
        unique=sound,
        stop_reason="closed form" if sound else "singular confusion matrix",
    )
    return _with_counted_interval(estimate, tally, v)


def adjusted_qp(confusion: ArrayLike, predicted_counts: ArrayLike) -> PriorEstimate:
    """Adjusted count by a program on the simplex (caelen 4.3; dussap's BBSE+): min |M p - v|^2."""
    tally, v = _confusion(confusion, predicted_counts)
    if v.sum() <= 0:
        return no_events("acc-qp", tally.sum(axis=1) / tally.sum(), 0)
    m = (tally / tally.sum(axis=1, keepdims=True)).T
    gram = m.T @ m
    solution = minimise(gram, m.T @ (v / v.sum()))
    estimate = without_interval(
        "acc-qp",
        solution.point,
        round(v.sum()),
        iterations=solution.iterations,
        converged=solution.solved,
        gap=solution.violation,
        stop_reason="solved" if solution.solved else "step limit",
        unique=identifiable(gram),
    )
    return _with_counted_interval(estimate, tally, v)


def probabilistic_adjusted(class_means: ArrayLike, window_mean: ArrayLike) -> PriorEstimate:
    """Probabilistic adjusted count (soft BBSE): the same program on mean posteriors; `class_means[true, posterior]`."""
    means, v = np.asarray(class_means, dtype=np.float64), np.asarray(window_mean, dtype=np.float64)
    gram = means @ means.T
    solution = minimise(gram, means @ v)
    return without_interval(
        "pacc",
        solution.point,
        0,
        iterations=solution.iterations,
        converged=solution.solved,
        gap=solution.violation,
        stop_reason="solved" if solution.solved else "step limit",
        unique=identifiable(gram),
    )


def cde_iterate(positive_posteriors: ArrayLike, source_positive_rate: float, loops: int = CDE_LOOPS) -> PriorEstimate:
    """CDE-iterate for two classes (caelen, Algorithm 2, read as erratum 5 says); priors are (negative, positive).

    With cost_FN = 1 and cost_FP = (pr / nr) / (pr~ / nr~), an event is positive if g > (1 - g) cost_FP, strictly;
    the share of positives gives the next pr~ / nr~. The shares 0 and 1 absorb. A loop is one look-up in
    sorted posteriors.
    """
    pi = positive_priors([1.0 - source_positive_rate, source_positive_rate], 2, "source_positive_rate")
    g = np.asarray(positive_posteriors, dtype=np.float64)
    if g.ndim != 1:
        raise InputError(f"positive_posteriors: want one number per event, got shape {g.shape}")
    usable = (g >= 0) & (g <= 1)
    dropped = int(g.size - usable.sum())
    g = np.sort(g[usable])
    if g.size == 0 or loops < 1:
        return no_events("cde", pi, dropped)
    cost, rate, reason, done = 1.0, float(pi[1]), "iteration cap", 0
    while done < loops:
        done += 1
        before = rate
        # g > (1 - g) cost  <=>  g > cost / (1 + cost)
        rate = float(g.size - np.searchsorted(g, cost / (1.0 + cost), side="right")) / g.size
        if rate in (0.0, 1.0):
            reason = "absorbed at 0" if rate == 0.0 else "absorbed at 1"
            break
        if done > 1 and rate == before:
            reason = "fixed point"
            break
        cost = float(pi[1] / pi[0]) / (rate / (1.0 - rate))
    return without_interval(
        "cde",
        np.array([1.0 - rate, rate]),
        g.size,
        dropped=dropped,
        iterations=done,
        converged=reason != "iteration cap",
        stop_reason=reason,
    )


def _counts(predicted_counts: ArrayLike) -> Vector:
    v = np.asarray(predicted_counts, dtype=np.float64)
    if v.ndim != 1 or v.size == 0 or not np.isfinite(v).all() or (v < 0).any():
        raise InputError(f"predicted_counts: want one finite number of at least 0 per class, got {v}")
    return v


def _nothing_counted(method: str, classes: int, dropped: int = 0) -> PriorEstimate:
    """Equal shares: without a reference there is nothing else to fall back on."""
    return no_events(method, np.full(classes, 1.0 / classes), dropped)


def _nearest(m: Matrix, v: Vector) -> Vector:
    """The least-squares solution of v = M p with sum p = 1 that is nearest to equal shares.

    Without the sum the shortest solution can be 0: a class that no hold-out row was predicted as, and all events are.
    """
    even = np.full(v.size, 1.0 / v.size)
    return np.asarray(even + constrained_inverse(m.T @ m) @ (m.T @ (v - m @ even)))


def _confusion(confusion: ArrayLike, predicted_counts: ArrayLike) -> tuple[Matrix, Vector]:
    tally, v = np.asarray(confusion, dtype=np.float64), _counts(predicted_counts)
    if tally.shape != (v.size, v.size):
        raise InputError(f"confusion: want shape ({v.size}, {v.size}) to go with the counts, got {tally.shape}")
    if not np.isfinite(tally).all() or (tally < 0).any():
        raise InputError("confusion: want finite counts of at least 0")
    empty = np.flatnonzero(tally.sum(axis=1) <= 0)
    if empty.size:
        raise InputError(f"confusion: want hold-out rows of every class, got none of class {empty[0]}")
    return tally, v


def _with_counted_interval(estimate: PriorEstimate, tally: Matrix, v: Vector) -> PriorEstimate:
    """The interval for one-hot features: within class i a prediction varies as a multinomial with the class's row."""
    rows = tally.sum(axis=1)
    rates = tally / rows[:, None]
    if not estimate.unique:
        return estimate
    influence = constrained_inverse(rates @ rates.T) @ rates  # (class, predicted): psi of each prediction
    variances = rates @ (influence**2).T - (rates @ influence.T) ** 2
    errors = intervals.standard_errors(variances, estimate.priors, rows, estimate.events)
    mean = v / v.sum()
    uniform = np.full(rows.size, 1.0 / rows.size)
    centre = uniform + influence @ (mean - uniform @ rates)
    return intervals.around(estimate, errors, centre)

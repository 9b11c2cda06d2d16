"""Class priors from predicted classes: counted, counted softly, and adjusted by what the reference knows of the errors.

Notation
    confusion (true, predicted)   counts of hold-out rows
    M (predicted, true)           P(predicted | true): columns are the true class (caelen eq 4.1 and 4.4, erratum 1)
    v (predicted)                 shares of the predictions in the window
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Matrix, Vector, column_sums, row_maxima
from monitor.errors import InputError
from monitor.priors import intervals
from monitor.priors.estimate import PriorEstimate, no_events, positive_priors, usable_rows, without_interval
from monitor.priors.simplex import constrained_inverse, identifiable, minimise
from monitor.tolerances import CDE_LOOPS


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """How hold-out rows were predicted, and all that follows from it alone."""

    tally: Matrix
    rows: Vector
    given_true: Matrix
    """M'; P(predicted | true) in the rows of the true classes."""
    source_priors: Vector
    sound: bool
    """Whether M tells all classes apart."""
    influence: Matrix
    """(class, predicted): psi of each prediction."""
    variances: Matrix
    """V_ik, of psi_k within class i."""

    @classmethod
    def of(cls, confusion: ArrayLike) -> "Rates":
        """The rates that counts[true, predicted] give."""
        tally = np.asarray(confusion, dtype=np.float64)
        if tally.ndim != 2 or not np.isfinite(tally).all() or (tally < 0).any():
            raise InputError("confusion: want finite counts of at least 0")
        rows = tally.sum(axis=1)
        empty = np.flatnonzero(rows <= 0)
        if empty.size:
            raise InputError(f"confusion: want hold-out rows of every class, got none of class {empty[0]}")
        given_true = tally / rows[:, None]
        gram = given_true @ given_true.T
        influence = constrained_inverse(gram) @ given_true
        variances = given_true @ (influence**2).T - (given_true @ influence.T) ** 2
        return cls(tally, rows, given_true, rows / tally.sum(), identifiable(gram), influence, variances)


def predictions(posteriors: Matrix) -> Matrix:
    """One-hot predictions; a tie is shared, so that the order of the classes decides nothing."""
    hits: Matrix = (posteriors == row_maxima(posteriors)[:, None]).astype(np.float64)
    if np.count_nonzero(hits) > len(hits):
        hits /= np.maximum(hits.sum(axis=1, keepdims=True), 1)
    return hits


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
    return averaged(column_sums(g), g.shape[0], dropped)


def averaged(sums: Vector, events: int, dropped: int = 0) -> PriorEstimate:
    """The same by the sums of the posteriors of so many events."""
    mean = sums / events
    return without_interval("pcc", mean / mean.sum(), events, dropped=dropped)


def adjusted(confusion: ArrayLike, predicted_counts: ArrayLike) -> PriorEstimate:
    """Adjusted count by matrix solve, clipped and rescaled (caelen, eq 4.4): v = M p.

    A singular M has no inverse: of the vectors that sum to one and come nearest to v, the one nearest to equal shares
    is taken, and said not to be unique.
    """
    return solved(Rates.of(confusion), predicted_counts)


def solved(rates: "Rates", predicted_counts: ArrayLike) -> PriorEstimate:
    """`adjusted` with what follows from the confusion alone, for many windows of one reference."""
    v = _counts_like(rates.tally, predicted_counts)
    if v.sum() <= 0:
        return no_events("acc", rates.source_priors, 0)
    m, shares = rates.given_true.T, v / v.sum()
    raw = np.linalg.solve(m, shares) if rates.sound else _nearest(m, shares)
    clipped = np.clip(raw, 0.0, 1.0)
    estimate = without_interval(
        "acc",
        clipped / clipped.sum(),
        round(v.sum()),
        unique=rates.sound,
        stop_reason="closed form" if rates.sound else "singular confusion matrix",
    )
    return _with_counted_interval(estimate, rates, shares)


def adjusted_qp(confusion: ArrayLike, predicted_counts: ArrayLike) -> PriorEstimate:
    """Adjusted count by a program on the simplex (caelen 4.3; dussap's BBSE+): min |M p - v|^2."""
    rates = Rates.of(confusion)
    v = _counts_like(rates.tally, predicted_counts)
    if v.sum() <= 0:
        return no_events("acc-qp", rates.source_priors, 0)
    m = rates.given_true.T
    solution = minimise(m.T @ m, m.T @ (v / v.sum()))
    estimate = without_interval(
        "acc-qp",
        solution.point,
        round(v.sum()),
        iterations=solution.iterations,
        converged=solution.solved,
        gap=solution.violation,
        stop_reason="solved" if solution.solved else "step limit",
        unique=rates.sound,
    )
    return _with_counted_interval(estimate, rates, v / v.sum())


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


def _counts_like(tally: Matrix, predicted_counts: ArrayLike) -> Vector:
    v = _counts(predicted_counts)
    if tally.shape != (v.size, v.size):
        raise InputError(f"confusion: want shape ({v.size}, {v.size}) to go with the counts, got {tally.shape}")
    return v


def _with_counted_interval(estimate: PriorEstimate, rates: Rates, shares: Vector) -> PriorEstimate:
    """The interval for one-hot features: within class i a prediction varies as a multinomial with the class's row."""
    if not estimate.unique:
        return estimate
    errors = intervals.standard_errors(rates.variances, estimate.priors, rates.rows, estimate.events)
    uniform = np.full(shares.size, 1.0 / shares.size)
    centre = uniform + rates.influence @ (shares - uniform @ rates.given_true)
    return intervals.around(estimate, errors, centre)

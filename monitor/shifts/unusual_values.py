"""Numbers that are nearly all the same, as flags and fees are: how often another value is too often.

Kolmogorov's law is that of values of which no two are alike. A flag that rises from .5 % of 10,000 events to 5 % of
1,000 has a p-value of .05 by it, 3e-26 by Fisher's exact test, and 2e-21 by the bound here. It is the law of
independent events: where hours of rain come together, and a week in six has some, it would call each a shift.

Notation. q_y the share of class y's values that are not the usual one, p_y the class mix, q = sum_y p_y q_y; D the
distance of a window of n values from the reference, weighed to that mix. What is known of q is worth m = q (1 - q) / v
rows, v = sum_y p_y^2 q_y (1 - q_y) / n_y + q' V q with V the covariance of a mix that was learnt.
"""

import numpy as np
from scipy.special import rel_entr

from monitor.arrays import Labels, Matrix, Vector
from monitor.tolerances import LEAST_ERROR, RARE_SHARE


def unusual_shares(values: Vector, labels: Labels, classes: int) -> Vector | None:
    """q_y, where nearly all values are the same one; else None.

    With half an event more on either side: of ten rows none is little to go by.
    """
    present = ~np.isnan(values)
    values, labels = values[present], labels[present]
    if not values.size:
        return None
    each, counts = np.unique(values, return_counts=True)
    others = values != each[counts.argmax()]
    if others.mean() >= RARE_SHARE:
        return None
    rows, unusual = (np.bincount(labels, minlength=classes, weights=weights) for weights in (None, others))
    return np.asarray((unusual + 0.5) / (rows + 1.0))


def expected_share(
    shares: Vector, priors: Vector, class_counts: Vector, spread: Matrix | None = None
) -> tuple[float, float]:
    """q and m; `spread` is V."""
    priors = priors / max(float(priors.sum()), LEAST_ERROR)
    q = float(priors @ shares)
    variance = float((priors**2 * shares * (1 - shares) / np.maximum(class_counts, 1.0)).sum())
    if spread is not None:
        variance += max(float(shares @ spread @ shares), 0.0)
    return q, q * (1 - q) / max(variance, LEAST_ERROR**2)


def unusual_p(distance: float, n: float, expected: float, m: float) -> float:
    """How likely so large a distance is. One above q takes at least n D other values; with r their share in both
    samples together, that many have a probability of about

        exp(-n KL(D, r) - m KL(q, r))        (Chernoff, of both samples)
    """
    if not (distance > expected and min(n, m) > 0):
        return 1.0
    shares = np.array([[distance, expected], [1 - distance, 1 - expected]])
    weights = np.array([n, m])
    together = shares @ weights / weights.sum()
    return float(np.exp(-(rel_entr(shares, together[:, None]) @ weights).sum()))

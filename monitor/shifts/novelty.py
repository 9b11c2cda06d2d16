"""Events where no class ever was: how many, and which.

Notation. z = L x with L'L the inverse pooled within-class covariance of the standardised features; m_y class centres;
s(x) = min_y |z - L m_y|^2. With a part e of unknown events beyond a threshold t, the share beyond t is
(1 - e) R_p(t) + e, where R_p is the reference's share at class mix p; hence e = (S(t) - R_p(t)) / (1 - R_p(t)).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from monitor.arrays import Flags, Labels, Matrix, Vector
from monitor.limits import LANDSCAPE_COLUMNS
from monitor.shifts import ks
from monitor.shifts.categories import effective_size
from monitor.tolerances import NOVELTY_LEVELS, NOVELTY_TAIL

Standardised = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Landscape:
    """Where the classes lie, and how far from them reference events were."""

    whitening: Standardised
    centres: Standardised
    """Whitened, one row per class."""
    scores: Vector
    """Ascending."""
    labels: Labels
    counts: Vector

    def distances(self, standardised: Standardised) -> Vector:
        """s(x) of each event."""
        return _nearest(standardised @ self.whitening, self.centres)


@dataclass(frozen=True, slots=True, eq=False)
class Novelty:
    """Events beyond what the reference holds."""

    mass: float
    """e: the part of the window that no class explains; at least 0."""
    error: float
    statistic: float
    p_value: float
    threshold: float
    beyond: Flags
    """Which events lie beyond the threshold."""
    n: int


def landscape(standardised: Standardised, labels: Labels, classes: int) -> Landscape:
    """From the reference's standardised rows; beyond `LANDSCAPE_COLUMNS` features, of random directions of them."""
    columns = standardised.shape[1]
    directions = np.eye(columns)
    if columns > LANDSCAPE_COLUMNS:
        directions = np.linalg.qr(np.random.default_rng(1).normal(size=(columns, LANDSCAPE_COLUMNS)))[0]
    rows = standardised.astype(np.float64) @ directions
    counts = np.bincount(labels, minlength=classes).astype(np.float64)
    sums = np.stack([np.bincount(labels, weights=v, minlength=classes) for v in rows.T], axis=1)
    centres: Matrix = sums / np.maximum(counts, 1)[:, None]
    residual = rows - centres[labels]
    pooled = residual.T @ residual / max(rows.shape[0] - classes, 1)
    values, vectors = np.linalg.eigh(pooled)
    # A direction without spread inside the classes gets the smallest spread that single precision can resolve.
    whitening = directions @ (vectors / np.sqrt(np.maximum(values, 1e-6)))
    whitened = (centres @ (vectors / np.sqrt(np.maximum(values, 1e-6)))).astype(np.float32)
    scores = _nearest(standardised @ whitening.astype(np.float32), whitened)
    order = np.argsort(scores, kind="stable")
    return Landscape(whitening.astype(np.float32), whitened, scores[order], labels[order], counts)


def novelty(reference: Landscape, standardised: Standardised, priors: Vector) -> Novelty:
    """The mass beyond the reference, at the tail threshold that shows it best; one-sided, corrected for the choice."""
    scores = reference.distances(standardised)
    n = scores.size
    weights = (priors / np.maximum(reference.counts, 1))[reference.labels]
    cumulative = ks.steps(weights)
    m = effective_size(reference.counts, priors)
    best = Novelty(0.0, 0.0, 0.0, 1.0, np.inf, np.zeros(n, dtype=np.bool_), n)
    # Below ten expected events on either side the normal approximation would be optimistic.
    levels = [level for level in NOVELTY_LEVELS if (1 - level) * min(n, m) >= NOVELTY_TAIL]
    for level in levels:
        at = min(int(np.searchsorted(cumulative[1:], level)), scores.size and reference.scores.size - 1)
        threshold = float(reference.scores[at])
        expected = 1.0 - float(cumulative[at + 1])
        beyond = scores > threshold
        share = float(beyond.mean())
        pooled = (n * share + m * expected) / (n + m)
        error = float(np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m)))
        z = (share - expected) / error if error > 0 else 0.0
        if z > best.statistic:
            mass = (share - expected) / (1 - expected)
            p_value = min(1.0, len(levels) * float(ndtr(-z)))
            best = Novelty(mass, error / (1 - expected), z, p_value, threshold, beyond, n)
    return best


def _nearest(whitened: Standardised, centres: Standardised) -> Vector:
    """|z|^2 - max_y (2 z'm_y - |m_y|^2)."""
    nearness = whitened @ (2 * centres.T)
    nearness -= (centres * centres).sum(axis=1)
    lengths = np.einsum("ij,ij->i", whitened, whitened)
    return np.asarray(np.maximum(lengths - nearness.max(axis=1), 0.0), dtype=np.float64)

"""Events where no class ever was: how many, and which.

Notation. y the class whose centre m_y is nearest to the standardised features x, by the covariance pooled within the
classes; S_y its own covariance; s(x) = (x - m_y)' S_y^-1 (x - m_y) + ln |S_y|. With a part e of unknown events beyond a
threshold t, the share beyond t is S(t) = (1 - e) R_p(t) + e U(t), where R_p is the reference's share at class mix p and
U that of the unknown events. What every threshold shows, e(t) = (S(t) - R_p(t)) / (1 - R_p(t)), is e where all of them
lie beyond it, and less where some lie among the classes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr

from monitor.arrays import Flags, Labels, Matrix, Vector
from monitor.limits import LANDSCAPE_COLUMNS
from monitor.shifts import ks
from monitor.shifts.blocks import Blocks, BlockSums
from monitor.shifts.categories import effective_size
from monitor.tolerances import (
    LANDSCAPE_FOLDS,
    LANDSCAPE_PRIOR_ROWS,
    NORMAL_95,
    NOVELTY_LEVELS,
    NOVELTY_TAIL,
    ROWS_PER_DIRECTION,
    UNKNOWN_LEVELS,
)

Standardised = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Where the classes lie: centres and covariances, each class's own drawn towards that of all."""

    nearest: Standardised
    """L' of the pooled covariance, by which an event finds its class,"""
    centres: Standardised
    """and the centres after it, one row per class."""
    own_centres: Standardised
    own: NDArray[np.float32]
    """L_y' of each class."""
    size: Vector
    """ln |S_y|: at the same distance a class that spreads far is denser than none, but not than a narrow one."""

    def distances(self, rows: Standardised) -> Vector:
        """s(x) of each event."""
        of_class = _nearest(rows @ self.nearest, self.centres)
        distances = np.empty(len(rows))
        for y, centre in enumerate(self.own_centres):
            members = np.flatnonzero(of_class == y)
            away = (rows[members] - centre) @ self.own[y]
            distances[members] = np.einsum("ij,ij->i", away, away) + self.size[y]
        return distances


@dataclass(frozen=True, slots=True, eq=False)
class Landscape:
    """Where the classes lie, and how far from them reference events were."""

    directions: Standardised | None
    """Random directions that are looked at where there are too many features to look at all; None for all."""
    classes: Classes
    by_row: Vector
    """s(x) of the reference's events in their order,"""
    scores: Vector
    """ascending, and"""
    labels: Labels
    """their classes then."""
    counts: Vector

    def rising(self, priors: Vector) -> Vector:
        """1 - R_p before the first and at every score."""
        of_class = ks.in_fixed_point(priors / np.maximum(self.counts, 1), priors[self.counts > 0].sum())
        return ks.added_up(of_class.take(self.labels))

    def distances(self, standardised: Standardised) -> Vector:
        """s(x) of each event."""
        return self.classes.distances(standardised if self.directions is None else standardised @ self.directions)


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
    distances: Vector
    """s(x) of each event."""
    n: int


def landscape(standardised: Standardised, labels: Labels, classes: int) -> Landscape:
    """From the reference's standardised rows; beyond `LANDSCAPE_COLUMNS` features, of random directions of them."""
    columns = standardised.shape[1]
    directions, rows = None, standardised
    if columns > LANDSCAPE_COLUMNS:
        drawn = np.random.default_rng(1).normal(size=(columns, LANDSCAPE_COLUMNS))
        directions = np.linalg.qr(drawn)[0].astype(np.float32)
        rows = standardised @ directions
    by_class = _classes(rows, labels, classes)
    if len(rows) < ROWS_PER_DIRECTION * rows.shape[1] * classes:
        scores = _unseen_scores(rows, labels, classes)
    else:
        scores = by_class.distances(rows)
    order = np.argsort(scores, kind="stable")
    counts = np.bincount(labels, minlength=classes).astype(np.float64)
    return Landscape(directions, by_class, scores, scores[order], labels[order], counts)


def _classes(standardised: Standardised, labels: Labels, classes: int) -> Classes:
    """With few rows for the number of columns, covariances are drawn to the diagonal of the pooled one."""
    rows = standardised.astype(np.float64)
    columns = rows.shape[1]
    counts = np.bincount(labels, minlength=classes).astype(np.float64)
    sums = np.stack([np.bincount(labels, weights=v, minlength=classes) for v in rows.T], axis=1)
    centres: Matrix = sums / np.maximum(counts, 1)[:, None]
    residual = rows - centres[labels]
    pooled = residual.T @ residual / max(len(rows) - classes, 1)
    diagonal, drawn = np.diag(np.diag(pooled)), columns / (columns + len(rows))
    pooled = (1 - drawn) * pooled + drawn * diagonal
    nearest = _inverse_root(pooled)[0]
    own = []
    for y in range(classes):
        members = residual[labels == y]
        scatter = members.T @ members + LANDSCAPE_PRIOR_ROWS * pooled
        drawn = columns / (columns + len(members) + LANDSCAPE_PRIOR_ROWS)
        own.append(_inverse_root((1 - drawn) * scatter / (len(members) + LANDSCAPE_PRIOR_ROWS) + drawn * diagonal))
    return Classes(
        nearest.astype(np.float32),
        (centres @ nearest).astype(np.float32),
        centres.astype(np.float32),
        np.stack([root for root, _ in own]).astype(np.float32),
        np.array([size for _, size in own]),
    )


def _inverse_root(covariance: Matrix) -> tuple[Matrix, float]:
    """L' with L'L the inverse, and the logarithm of the determinant. A direction without spread inside the classes gets
    the smallest spread that single precision can resolve."""
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, 1e-6)
    return np.asarray(vectors / np.sqrt(values)), float(np.log(values).sum())


def _unseen_scores(rows: Standardised, labels: Labels, classes: int) -> Vector:
    """How far each row is from classes that it took no part in: rows that shaped them lie nearer than others will."""
    fold = np.arange(len(rows)) % LANDSCAPE_FOLDS
    scores = np.empty(len(rows))
    for number in range(LANDSCAPE_FOLDS):
        held = fold == number
        scores[held] = _classes(rows[~held], labels[~held], classes).distances(rows[held])
    return scores


def novelty(reference: Landscape, distances: Vector, priors: Vector) -> Novelty:
    """The mass beyond the reference, at the tail threshold that shows it best; one-sided, corrected for the choice.

    `distances` are s(x) of the window's events.
    """
    n = distances.size
    m = effective_size(reference.counts, priors)
    best = Novelty(0.0, 0.0, 0.0, 1.0, np.inf, np.zeros(n, dtype=np.bool_), distances, n)
    # Below ten expected events on either side the normal approximation would be optimistic.
    levels = [level for level in NOVELTY_LEVELS if (1 - level) * min(n, m) >= NOVELTY_TAIL]
    for threshold, expected in _tails(reference, priors, levels):
        beyond = distances > threshold
        share = float(beyond.mean())
        pooled = (n * share + m * expected) / (n + m)
        error = float(np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m)))
        z = (share - expected) / error if error > 0 else 0.0
        if z > best.statistic:
            mass = (share - expected) / (1 - expected)
            p_value = min(1.0, len(levels) * float(ndtr(-z)))
            best = Novelty(mass, error / (1 - expected), z, p_value, threshold, beyond, distances, n)
    return best


def _tails(reference: Landscape, priors: Vector, levels: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Thresholds with such shares of the reference within them, and the share that lies beyond: t and R_p(t)."""
    cumulative = reference.rising(priors)
    for level in levels:
        at = min(int(np.searchsorted(cumulative[1:], level)), reference.scores.size - 1)
        yield float(reference.scores[at]), 1.0 - float(cumulative[at + 1])


@dataclass(frozen=True, slots=True)
class UnknownEvents:
    """The events of no known class, all of them, with a 95 % interval of their share."""

    estimate: float
    lower: float
    upper: float
    within: float
    """The part of the events within the threshold of `Novelty` that are of no known class for all that."""


def unknown_events(found: Novelty, reference: Landscape, priors: Vector) -> UnknownEvents:
    """How many there are, and how many of them lie among the classes, whose mix is `priors`.

    No threshold shows more than there are, so e is at least what that one shows which proves the most; `found`, which
    was seen at the mix of all events, is one of them. Of the events within the threshold t0 of `found` there are
    h (1 - R(t0)) / (1 - S(t0)) unknown for all that, h = e - e(t0); h only as far as it is more than the error of e(t).
    """
    cumulative = reference.rising(priors)
    within = float(cumulative[np.searchsorted(reference.scores, found.threshold, side="right")])
    m = effective_size(reference.counts, priors)
    tails = [(found.threshold, 1.0 - within), *_tails(reference, priors, UNKNOWN_LEVELS)]
    shown = [_shown(found.distances, threshold, expected, m) for threshold, expected in tails if expected < 1.0]
    shown.append((found.mass, found.error))
    share, error = max(shown, key=lambda one: one[0] - NORMAL_95 * one[1])
    reach = NORMAL_95 * max(error, found.error)
    hidden = max(mass - error for mass, error in shown) - max(shown[0][0], found.mass)
    return UnknownEvents(
        estimate=share,
        lower=max(share - reach, 0.0),
        upper=min(share + reach, 1.0),
        within=float(np.clip(hidden * within / (1.0 - found.beyond.mean()), 0.0, 1.0)),
    )


def _shown(distances: Vector, threshold: float, expected: float, rows: float) -> tuple[float, float]:
    """e(t) and its standard error."""
    beyond, within = float((distances > threshold).mean()), 1.0 - expected
    mass = (beyond - expected) / within
    variance = beyond * (1 - beyond) / distances.size + (1 - mass) ** 2 * expected * within / rows
    return mass, float(np.sqrt(variance)) / within


def between_blocks(found: Novelty, reference: Landscape, labels: Labels, held: Blocks) -> Novelty:
    """The same held against the mass that blocks of the hold-out have beyond this threshold by the others.

    `labels` are the classes of the reference's rows in their order.
    """
    far = (reference.by_row > found.threshold)[:, None].astype(np.float64)
    mass = BlockSums.reduced(far, labels, held.of_sample, held, reference.counts.size).residuals[:, 0]
    windows = held.stretches
    spread = float(mass.std(ddof=1) * np.sqrt(1 + 1 / windows))
    if spread == 0:
        return found
    p_value = float(stdtr(windows - 1, (mass.mean() - found.mass) / spread))
    return replace(found, p_value=max(found.p_value, p_value), error=max(found.error, spread))


def _nearest(whitened: Standardised, centres: Standardised) -> Labels:
    """The class whose centre is nearest: the y of greatest 2 z'm_y - |m_y|^2."""
    nearness = whitened @ (2 * centres.T)
    nearness -= (centres * centres).sum(axis=1)
    return np.asarray(nearness.argmax(axis=1), dtype=np.int64)

"""How good an estimate is: errors of prevalences, errors of posteriors, and what the latter are made of.

Notation: p true prevalences, e estimated ones, k classes; o the indicator of the true class and f the posterior of
one class; B a bin of events with similar posteriors, v its share of all events.

1. Esuli, A., Molinari, A., Sebastiani, F. (2020). A critical reassessment of the Saerens-Latinne-Decaestecker
   algorithm. Equations 6-12 and 15.
2. Stephenson, D. B., Coelho, C. A. S., Jolliffe, I. T. (2008). Two extra components in the Brier score decomposition.
3. Sebastiani, F. (2020). Evaluation measures for quantification: an axiomatic approach.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from monitor.arrays import Labels, Matrix, Vector
from monitor.errors import InputError
from monitor.tolerances import POSTERIOR_FLOOR

Bins = Literal["isometric", "isomeric"]


def absolute_error(true: Vector, estimated: Vector) -> float:
    """AE = 1/k sum_j |p_j - e_j| (ref 1, eq 6)."""
    return float(np.mean(np.abs(true - estimated)))


def normalised_absolute_error(true: Vector, estimated: Vector) -> float:
    """NAE = sum_j |p_j - e_j| / (2 (1 - min_j p_j)), from 0 to 1 (ref 1, eq 7)."""
    return float(np.sum(np.abs(true - estimated)) / (2 * (1 - np.min(true))))


def relative_absolute_error(true: Vector, estimated: Vector, events: int) -> float:
    """RAE = 1/k sum_j |p_j - e_j| / p_j on prevalences smoothed by 1/(2 events), so that absent classes count."""
    p, e = smoothed(true, events), smoothed(estimated, events)
    return float(np.mean(np.abs(p - e) / p))


def kullback_leibler(true: Vector, estimated: Vector, events: int) -> float:
    """KLD = sum_j p_j log(p_j / e_j) in nats, on prevalences smoothed by 1/(2 events)."""
    p, e = smoothed(true, events), smoothed(estimated, events)
    return float(np.sum(p * np.log(p / e)))


def squared_error(true: Vector, estimated: Vector) -> float:
    """Sum_j (p_j - e_j)^2: what the thesis tabulates as "mse", which is a sum and not a mean."""
    return float(np.sum((true - estimated) ** 2))


def smoothed(prevalence: Vector, events: int) -> Vector:
    """Additive smoothing by half an event per class: (p + eps) / (1 + k eps) with eps = 1/(2 events) (ref 3)."""
    eps = 1 / (2 * events)
    return np.asarray((prevalence + eps) / (1 + prevalence.size * eps))


def entropy(prevalence: Vector) -> float:
    """H = - sum_j p_j log_k p_j, from 0 to 1 (ref 1, eq 15); an absent class adds nothing."""
    present = prevalence[prevalence > 0]
    return float(-np.sum(present * np.log(present)) / np.log(prevalence.size))


def log_loss(posteriors: Matrix, labels: Labels) -> float:
    """Mean of the log losses."""
    return float(log_losses(posteriors, labels).mean())


def log_losses(posteriors: Matrix, labels: Labels) -> Vector:
    """-log of the true class's posterior, floored so that an impossible event costs finitely much."""
    return -np.log(np.maximum(posteriors[np.arange(labels.size), labels], POSTERIOR_FLOOR))


def brier(posteriors: Matrix, labels: Labels) -> float:
    """BS = 1/(k n) sum_j sum_i (o_ij - f_ij)^2 (ref 1, eq 8)."""
    return float(np.mean((_indicators(posteriors, labels) - posteriors) ** 2))


def expected_brier(posteriors: Matrix, calibrated: Matrix) -> float:
    """E BS = 1/(k n) sum_j sum_i g_ij (1 - 2 f_ij) + f_ij^2, for classes drawn from the calibrated posteriors g."""
    return float(np.mean(calibrated * (1 - 2 * posteriors) + posteriors**2))


@dataclass(frozen=True, slots=True)
class BrierParts:
    """What the Brier score is made of, over bins of each class's posteriors, averaged over the classes.

    `brier` = calibration + refinement + variance - 2 covariance, exactly, whatever the bins (ref 2). The first two
    alone are the score only if posteriors are constant inside each bin.
    """

    brier: float
    calibration: float
    """Sum_B v (mean f - mean o)^2: 0 when each bin's posteriors say how often the class occurs."""
    refinement: float
    """Sum_B v mean o (1 - mean o): 0 when every bin holds one class only."""
    variance: float
    """Sum_B v var f inside the bin."""
    covariance: float
    """Sum_B v cov(f, o) inside the bin."""
    bins: int

    @property
    def within_bins(self) -> float:
        """What calibration and refinement leave of the score: negative where posteriors inside a bin rank events."""
        return self.variance - 2 * self.covariance

    @property
    def printed_calibration_error(self) -> float:
        """CE of ref 1, eq 10, as printed: its 1/b divides by the bins a second time, as v is a weight already."""
        return self.calibration / self.bins

    @property
    def printed_refinement_error(self) -> float:
        """RE of ref 1, eq 11, as printed."""
        return self.refinement / self.bins

    @property
    def binned_brier(self) -> float:
        """CE + RE without the extra 1/b: what ref 1, Table 1, calls BS; it depends on the bins."""
        return self.calibration + self.refinement


def brier_parts(posteriors: Matrix, labels: Labels, bins: int = 10, kind: Bins = "isometric") -> BrierParts:
    """Decompose the Brier score over bins of equal length, or of equal numbers of events (ties stay together)."""
    if bins < 1:
        raise InputError(f"bins: want at least one, got {bins}")
    indicators = _indicators(posteriors, labels)
    classes = posteriors.shape[1]
    parts = np.zeros(4)
    for f, o in zip(posteriors.T, indicators.T, strict=True):
        v, mean_f, mean_o, square, product = _bin_means(f, o, bins, kind)
        parts += (
            v @ (mean_f - mean_o) ** 2,
            v @ (mean_o * (1 - mean_o)),
            v @ (square - mean_f**2),
            v @ (product - mean_f * mean_o),
        )
    calibration, refinement, variance, covariance = (parts / classes).tolist()
    return BrierParts(brier(posteriors, labels), calibration, refinement, variance, covariance, bins)


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """The reliability curve of one class: in each bin that has events, what was said and what came true."""

    said: Vector
    came_true: Vector
    events: Labels


def reliability(posteriors: Matrix, labels: Labels, of_class: int, bins: int, kind: Bins = "isometric") -> Reliability:
    """The curve of one class against all others."""
    f = posteriors[:, of_class]
    v, said, came_true, _, _ = _bin_means(f, (labels == of_class).astype(np.float64), bins, kind)
    return Reliability(said, came_true, np.rint(v * labels.size).astype(np.int64))


def expected_calibration_error(posteriors: Matrix, labels: Labels, bins: int = 15, kind: Bins = "isomeric") -> float:
    """Mean over the classes of sum_B v |mean f - mean o|: how far, on average, a posterior is from the truth."""
    indicators = _indicators(posteriors, labels)
    total = 0.0
    for f, o in zip(posteriors.T, indicators.T, strict=True):
        v, said, came_true, _, _ = _bin_means(f, o, bins, kind)
        total += float(v @ np.abs(said - came_true))
    return float(total / posteriors.shape[1])


def _indicators(posteriors: Matrix, labels: Labels) -> Matrix:
    indicators = np.zeros_like(posteriors)
    indicators[np.arange(labels.size), labels] = 1.0
    return indicators


def _bin_means(f: Vector, o: Vector, bins: int, kind: Bins) -> tuple[Vector, Vector, Vector, Vector, Vector]:
    """Share of events and means of f, o, f^2 and f o, for every bin that has events."""
    if kind == "isometric":
        of_bin = np.minimum((f * bins).astype(np.int64), bins - 1)
    else:
        cuts = np.sort(f)[np.arange(1, bins) * f.size // bins]
        of_bin = np.searchsorted(cuts, f, side="right")
    size = np.bincount(of_bin, minlength=bins).astype(np.float64)
    used = size > 0
    sums = [np.bincount(of_bin, weights=w, minlength=bins)[used] / size[used] for w in (f, o, f * f, f * o)]
    return size[used] / f.size, sums[0], sums[1], sums[2], sums[3]

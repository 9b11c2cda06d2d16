"""How much windows differ that nothing has happened to: a covariance and a law from the blocks of the hold-out.

The tests of `fit` take events as independent draws. Real weeks differ by more: by the factor mu, the design effect.
Here the blocks' own residuals (`blocks`) say by how much and in which directions, and each block, held against the
others by the same test as a window, says what the test's statistic does when nothing has happened.

Notation. C the covariance of one event within the classes at the hold-out's mix, W = (C + ridge)^-1; m_k the rows that
sampling error of e_k counts for, m their mean. With z_k = sqrt(m_k) W^(1/2) e_k (Ledoit and Wolf 2004)

    M = Z'Z / K,   mu = tr M / d,   d^2 = |M - mu I|^2
    lambda = min(sum_k |z_k z_k' - M|^2 / K^2, d^2) / d^2
    M* = (1 - lambda) M + lambda mu I

The eigenvalues l of M* say how many times as much as under sampling a block varies; 1 is what sampling makes. In a
window that counts for n rows the rest is as large as it is in a block: l(n) = 1 + (l - 1) n / m; where l < 1, no less
than l. Hence V(n) = [W^(-1/2) M*(n) W^(-1/2)] / n, a multiple of the sampling covariance plus K directions: the inverse
costs next to nothing beyond W (Woodbury).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtr, stdtrit

from monitor.arrays import Matrix, Vector
from monitor.tolerances import FEWEST_OF_PHASE, SMALLEST_VARIANCE, USUAL_SPREAD, USUAL_SPREAD_WORTH, WHOLE_BLOCKS


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """What the logarithm of a positive statistic is in windows without a shift."""

    mean: float
    spread: float
    blocks: int
    degrees: float

    @classmethod
    def of(cls, statistics: Vector) -> "Law":
        """From its value in each block."""
        return cls.of_logs(np.log(np.maximum(statistics, np.finfo(np.float64).tiny)).tolist(), 1.0)

    @classmethod
    def of_logs(cls, logs: Sequence[float], independent: float) -> "Law":
        """From logarithms of which so large a share is worth an independent one; a few, several times a window."""
        number = len(logs)
        mean = sum(logs) / number
        spread = math.sqrt(sum((log - mean) ** 2 for log in logs) / (number - 1))
        return cls(mean, spread, number, (number - 1) * independent)

    def no_less_than(self, other: "Law") -> "Law":
        """With the larger mean and spread of the two."""
        return replace(self, mean=max(self.mean, other.mean), spread=max(self.spread, other.spread))

    def worth(self, windows: int) -> "Law":
        """The same where the blocks are parts of so many windows, which they know no better than these would.

        The spread of a few windows is hardly known, and by a law with one or two degrees of freedom nothing would ever
        be a shift. It is drawn towards what it is on real streams: s^2 -> (d s_0^2 + v s^2) / (d + v), v + d degrees.
        """
        degrees = self.degrees if windows == self.blocks else windows - 1
        if windows >= WHOLE_BLOCKS:
            return replace(self, blocks=windows, degrees=degrees)
        together = degrees + USUAL_SPREAD_WORTH
        square = (USUAL_SPREAD_WORTH * USUAL_SPREAD**2 + degrees * self.spread**2) / together
        return replace(self, spread=math.sqrt(square), blocks=windows, degrees=together)

    def fitted(self, means: int) -> "Law":
        """The same where what is left beside so many means has such statistics; the degrees of freedom are no more than
        a few blocks of each leave."""
        left = min(self.blocks - means, self.blocks / FEWEST_OF_PHASE)
        return replace(self, degrees=max(min(self.degrees, left), 1.0))

    def rising(self, statistics: Vector) -> "Law":
        """The same with the spread of the upper half, where that is larger: real time has other directions in each
        phase than in their mean, and in some of them statistics rise far."""
        logs = np.log(np.maximum(statistics, np.finfo(np.float64).tiny))
        above = logs[logs > np.median(logs)] - np.median(logs)
        return replace(self, spread=max(self.spread, float(np.sqrt((above**2).mean())) if above.size else 0.0))

    def p_value(self, statistic: float) -> float:
        """P(t_{K-1} > (ln T - mean) / (s sqrt(1 + 1/K)))."""
        if statistic <= 0:
            return 1.0
        away = (np.log(statistic) - self.mean) / max(self.spread * np.sqrt(1 + 1 / self.blocks), 1e-12)
        return float(stdtr(self.degrees, -away))

    def largest(self, level: float) -> float:
        """The logarithm that is exceeded by chance with this probability."""
        return self.mean - self.spread * float(np.sqrt(1 + 1 / self.blocks) * stdtrit(self.degrees, level))


@dataclass(frozen=True, slots=True, eq=False)
class Variation:
    """How some coordinates of the map vary between windows without a shift."""

    rows: float
    """m."""
    floor: float
    """lambda mu: the eigenvalue of all directions that the blocks do not single out."""
    levels: Vector
    """The other eigenvalues l."""
    directions: Matrix
    """Their directions, W-orthonormal, (coordinates, blocks)."""
    design_effect: float
    """mu."""

    def inverse(self, sampling: Matrix, rows: float, resting: float = 1.0) -> Matrix:
        """V(n)^-1 where `sampling` is the inverse of the sampling covariance and the window counts for so many rows.

        `resting` is how many times as much real time makes of it as of a block.
        """
        if resting != 1.0:
            return self.inverse(sampling * resting, rows * resting) / resting
        floor, levels = self._at(self.floor, rows), self._at(self.levels, rows)
        seen = sampling @ self.directions
        beyond = np.maximum(levels - floor, 0.0) / rows
        inner = floor * np.eye(levels.size) + (self.directions.T @ seen) * beyond
        return np.asarray((sampling - (seen * beyond) @ np.linalg.solve(inner, seen.T)) / floor)

    def relative(self, rows: float, coordinates: int) -> float:
        """How many times as much as a block a window that counts for so many rows varies, in the mean of directions."""
        others = coordinates - self.levels.size
        ratios = self._at(self.levels, rows) / self.levels
        return float((ratios.sum() + others * self._at(self.floor, rows) / self.floor) / coordinates * self.rows / rows)

    def _at(self, levels: Vector | float, rows: float) -> Vector:
        ratio = rows / self.rows
        return np.asarray(1.0 + (np.asarray(levels) - 1.0) * np.where(np.asarray(levels) > 1.0, ratio, min(ratio, 1.0)))


def shrunk(scaled: Matrix, products: Matrix, rows: float) -> Variation:
    """From sqrt(m_k) e_k, (blocks, coordinates), and their products z_j' z_k."""
    blocks, coordinates = scaled.shape
    values, vectors = np.linalg.eigh(products / blocks)
    values = np.maximum(values, 0.0)
    mu = max(float(values.sum()) / coordinates, SMALLEST_VARIANCE)
    squares = float((values**2).sum())
    apart = squares - coordinates * mu**2
    noise = (float((np.diag(products) ** 2).sum()) - blocks * squares) / blocks**2
    weight = min(max(noise / apart, 0.0), 1.0) if apart > 0 else 1.0
    seen = values > SMALLEST_VARIANCE * mu
    directions = scaled.T @ vectors[:, seen] / np.sqrt(blocks * values[seen])
    levels = (1 - weight) * values[seen] + weight * mu
    return Variation(rows, weight * mu, levels, directions, mu)

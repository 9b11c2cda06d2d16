"""The class mix over windows: each share as a level that moves little from window to window, and sometimes jumps.

A local level model for each class, and several at once (West and Harrison 1997, chapter 12: multi-process models).

    x_t = a_t + e_t,        e_t of variance r_t = v / n_t       what a window of n_t events says
    a_t = a_{t-1} + w_t,    w_t of variance q, or of q + J with probability JUMPS: the level is somewhere else

Notation. v the variance that one event brings: the mean over the last windows, since an estimate that comes out low
also claims a small error; averages weighted by such errors are too low. q = rho r for each rho of `LEVEL_MOVES`: a
Kalman filter for each, weighed by its likelihood, which forgets. With and without a jump a filter has two normal
densities; they are taken together by their mean and variance, so that a window which may be a jump moves the level half
way and leaves it uncertain, and the next one decides.

A segment has the same filters once more, with the movement of its whole stream added to the level: where segments move
together their likelihood is higher, and a small segment follows what only the stream's many events show.

All arrays have a row for each class. What windows have in common, the reference's own error, no number of them averages
out: it is not in r_t, and whoever publishes an interval adds it.
"""

from dataclasses import dataclass, replace

import numpy as np

from monitor.arrays import Matrix, Vector
from monitor.tolerances import JUMP_SIZE, JUMPS, LEVEL_MEMORY, LEVEL_MOVES, NOISE_MEMORY

_MOVES = np.array(LEVEL_MOVES)
_LOG_JUMPS = np.log([1.0 - JUMPS, JUMPS])
_LEAST = np.finfo(np.float64).tiny


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """What is known of the level of each class after some windows: a column for each filter."""

    means: Matrix
    variances: Matrix
    logs: Matrix
    """Of the weights; the largest of a row is 0."""
    noise: Vector
    """v: the variance of a window's share, times its events."""
    events: float
    """Of a window, on average."""

    @classmethod
    def of(cls, shares: Vector, noise: Vector, events: float, *, following: bool = False) -> "Levels":
        """After one window; `following` those of a segment of a stream."""
        columns = _MOVES.size * (2 if following else 1)
        variances = np.maximum(noise / events, _LEAST)
        return cls(
            np.repeat(shares[:, None], columns, axis=1),
            np.repeat(variances[:, None], columns, axis=1),
            np.zeros((shares.size, columns)),
            noise,
            events,
        )

    @property
    def estimate(self) -> tuple[Vector, Vector]:
        """The level of each class, and its variance: those of the mixture of all filters."""
        weights = np.exp(self.logs)
        weights /= weights.sum(axis=1, keepdims=True)
        means = (weights * self.means).sum(axis=1)
        spread = self.variances + (self.means - means[:, None]) ** 2
        return np.asarray(means), np.asarray((weights * spread).sum(axis=1))

    def ahead(self, windows: float, movement: Vector | None = None) -> "Levels":
        """So many windows later, of which nothing is known but how far the whole stream has moved."""
        columns = self.means.shape[1]
        steps = np.tile(_MOVES, columns // _MOVES.size) * (self.noise / self.events)[:, None] * windows
        means = self.means
        if movement is not None:
            follow = np.arange(columns) >= _MOVES.size
            means = means + follow * movement[:, None]
        return replace(self, means=means, variances=self.variances + steps)

    def plus(self, shares: Vector, noise: Vector, events: float) -> "Levels":
        """With what one window says."""
        # (2, classes, filters): without a jump, and with one.
        prior = self.variances + np.array([0.0, JUMP_SIZE**2])[:, None, None]
        own = np.maximum(np.stack([self.noise, noise]) / events, _LEAST)[:, :, None]
        total = prior + own
        off = shares[:, None] - self.means
        logs = _LOG_JUMPS[:, None, None] - 0.5 * (np.log(total) + off**2 / total)
        likelihood = np.logaddexp(logs[0], logs[1])
        jumped = np.exp(logs[1] - likelihood)
        gains = prior / total
        steps, variances = gains * off, gains * own
        apart = steps[1] - steps[0]
        weights = LEVEL_MEMORY * self.logs + likelihood
        weights -= weights.max(axis=1, keepdims=True)
        # A level that has jumped has the noise of this window: 0.1 of it where it has not.
        likely = (jumped * np.exp(weights)).sum(axis=1) / np.exp(weights).sum(axis=1)
        return Levels(
            self.means + steps[0] + jumped * apart,
            variances[0] + jumped * (variances[1] - variances[0]) + jumped * (1.0 - jumped) * apart**2,
            weights,
            self.noise + (1.0 - NOISE_MEMORY * (1.0 - likely)) * (noise - self.noise),
            NOISE_MEMORY * self.events + (1.0 - NOISE_MEMORY) * events,
        )

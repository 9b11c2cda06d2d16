"""Evidence of a change that accumulates over windows, with a guaranteed rate of false alarms: e-detectors.

Shin, Ramdas and Rinaldo, "E-detectors: a nonparametric framework for sequential change detection" (2023). Without a
change the score u_t of a window is sub-Gaussian with variance 1 at most, given all windows before, so that the
increment L_t = exp(lambda u_t - lambda^2 / 2) has a mean of 1 at most. The Shiryaev-Roberts detector
M_t = L_t (M_{t-1} + 1) then makes M_t - t a supermartingale, and so does the mean of M_t over several lambda. An alarm
at M_t >= c, after which the detector begins anew, therefore comes at most T / c times in T windows on average.
Expectations add up whatever the dependence, so the rates 1 / c of several series add up to that of all of them.

The reference is finite. What its own error adds to the score is the same in every window: x_t = sqrt(rho_t) g +
sqrt(1 - rho_t) e_t, with g standard normal and drawn once, and rho_t the part of the variance that the windows share.
Multiplied over windows x_t would pass that for a change, so the detector sees
u_t = x_t - sqrt(rho_t) E[g | x_1 ... x_{t-1}]. The mean of u_t is 0 over references and, soon, for the one at hand; its
variance, 1 - rho_t + rho_t Var[g | ...], is 1 at most. That holds where all windows teach, also those that speak for a
change: left out, they leave an error that by chance looks like one as it is, and evidence of it rises for ever. A shift
that stays is therefore taken for the reference's error in the end, and is found before that or not at all.
"""

from dataclasses import dataclass

import numpy as np

from monitor.arrays import Flags, Matrix, Vector
from monitor.tolerances import EVIDENCE_SIZES

_SIZES = np.array(EVIDENCE_SIZES)
_NOTHING = -30.0
"""The logarithm of no evidence: e^-30 beside the 1 that every window adds."""


@dataclass(frozen=True, slots=True, eq=False)
class SeriesEvidence:
    """Of several series: a row each."""

    logs: Matrix
    """(series, sizes): log M of each lambda."""
    precision: Vector
    """1 / Var[g | windows so far]."""
    weighted: Vector
    """E[g | windows so far] times the precision."""

    @classmethod
    def none(cls, series: int) -> "SeriesEvidence":
        """Before the first window."""
        return cls(np.full((series, _SIZES.size), _NOTHING), np.ones(series), np.zeros(series))

    @property
    def log_total(self) -> Vector:
        """log M of each series: the mean over lambda."""
        return np.asarray(np.logaddexp.reduce(self.logs, axis=1) - np.log(_SIZES.size))

    def increments(self, scores: Vector, shared: float | Vector) -> Vector:
        """The scores u_t, for scores x_t of which `shared` of the variance is the reference's."""
        return np.asarray(scores - np.sqrt(shared) * self.weighted / self.precision)

    def plus(self, scores: Vector, shared: float | Vector, learned: Flags) -> "SeriesEvidence":
        """With one window more; the reference's error is `learned` but where an alarm is open.

        Logarithms are rounded down to thousandths: that loses evidence and never makes any.
        """
        u = self.increments(scores, shared)[:, None]
        logs = _SIZES * u - _SIZES**2 / 2 + np.logaddexp(self.logs, 0.0)
        shared = np.asarray(shared)
        weight = np.where(learned, shared / (1 - shared), 0.0)
        weighted = np.where(learned, np.sqrt(shared) / (1 - shared), 0.0) * scores
        return SeriesEvidence(
            np.maximum(np.floor(logs * 1000) / 1000, _NOTHING),
            np.round(self.precision + weight, 6),
            np.round(self.weighted + weighted, 6),
        )


def windows_to_notice(size: float, log_threshold: float) -> float:
    """About how many windows a shift of so many standard errors a window takes, from calm to the threshold.

    Evidence of one lambda grows by g = lambda size - lambda^2 / 2 a window from each beginning, of which there is one a
    window: M_t = (e^(g t) - 1) / (1 - e^-g). Their mean passes the threshold half a window later on average.
    """
    growth = _SIZES * size - _SIZES**2 / 2
    growth = growth[growth > 0]
    if not growth.size:
        return np.inf
    from scipy.optimize import brentq  # noqa: PLC0415 - a third of what a process of the service takes to start

    begun, wanted = -np.log(-np.expm1(-growth)), log_threshold + np.log(_SIZES.size)
    alone = np.logaddexp(wanted - begun, 0.0) / growth

    def missing(windows: float) -> float:
        return float(wanted - np.logaddexp.reduce(begun + growth * windows + np.log(-np.expm1(-growth * windows))))

    return float(brentq(missing, alone.min() / 1e6, alone.min() * (1 + 1e-9))) + 0.5

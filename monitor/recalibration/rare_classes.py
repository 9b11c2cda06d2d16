"""The class mix as far as the hold-out can tell it: no class is corrected for the sake of a handful of labelled events.

What such a class looks like is hardly known, so that other events pass for it, whatever the interval of its share says.
Rare classes keep their proportions among themselves and get one multiplier, by what they hold together; where even
together they have too few events they keep their shares, and the other classes are corrected among themselves.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.tolerances import FEWEST_OF_CLASS

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ToldMix:
    """A class mix that may be corrected towards."""

    priors: Vector
    half_widths: Vector
    """Of the intervals; 0 for a share that is not estimated, but left as it was."""
    share: float
    """How much of the estimate is in classes that can be told, be it together."""


def told_mix(priors: Vector, half_widths: Vector, source_priors: Vector, hold_out_events: float) -> ToldMix:
    """The estimate `priors`, with nothing in it that rests on a handful of hold-out events."""
    events = np.rint(source_priors * hold_out_events)
    rare = events < FEWEST_OF_CLASS
    together = bool(events[rare].sum() >= FEWEST_OF_CLASS)
    if not rare.any():
        return ToldMix(priors, half_widths, 1.0)
    if (~rare).sum() + together < 2:
        return ToldMix(priors, half_widths, 0.0)
    priors, half_widths = priors.copy(), half_widths.copy()
    if together:
        own = source_priors[rare] / source_priors[rare].sum()
        priors[rare], half_widths[rare] = own * priors[rare].sum(), own * np.linalg.norm(half_widths[rare])
        return ToldMix(priors, half_widths, 1.0)
    share = float(priors[~rare].sum())
    left = float(source_priors[~rare].sum()) / max(share, np.finfo(np.float64).tiny)
    priors[rare], half_widths[rare] = source_priors[rare], 0.0
    priors[~rare] *= left
    half_widths[~rare] *= left
    return ToldMix(priors, half_widths, share)

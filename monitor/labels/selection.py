"""Whether the events whose labels come are a fair sample of their windows. Pure.

Where fraud is found three times as often as honest customers come back, labels say how often they are found and not how
often they are. For each class the mean calibrated posterior of the m labelled events of a window is compared with that
of all n,

    z = (mean of the labelled - mean of all) / (sd sqrt(1 / m - 1 / n)),

normal with variance 1 if the m were drawn without preference. One window shows little, so sums go on over windows, each
of which forgets a share: S <- f S + z, T <- f^2 T + 1, and S / sqrt(T) is normal again.
"""

from dataclasses import dataclass

import numpy as np

from monitor.arrays import Flags, Matrix, Vector
from monitor.performance import stratum_weights
from monitor.tolerances import SELECTED_LABELS, SELECTION_MEMORY, SELECTION_SCORE


@dataclass(frozen=True, slots=True)
class Selection:
    """What the windows so far have shown."""

    sums: tuple[float, ...] = ()
    """By class: S. Empty before the first window that could show anything."""
    variance: float = 0.0
    """T."""

    @property
    def scores(self) -> tuple[float, ...]:
        """By class: how many standard errors more often events that look like it are labelled."""
        return tuple(total / self.variance**0.5 for total in self.sums) if self.variance else ()

    @property
    def selected(self) -> bool:
        """Whether the labels are no fair sample."""
        return max(map(abs, self.scores), default=0.0) > SELECTION_SCORE


NOTHING_SEEN = Selection()


def seen(before: Selection, calibrated: Matrix, labelled: Flags) -> Selection:
    """After one more window; one that is labelled as a whole, or not at all, says nothing."""
    events, known = labelled.size, int(labelled.sum())
    spread = calibrated.std(axis=0)
    if known in (0, events) or not (spread > np.finfo(np.float64).eps).all():
        return before
    apart = calibrated[labelled].mean(axis=0) - calibrated.mean(axis=0)
    z = apart / (spread * np.sqrt(1 / known - 1 / events))
    sums = SELECTION_MEMORY * np.array(before.sums or np.zeros(z.size)) + z
    return Selection(tuple(sums.tolist()), SELECTION_MEMORY**2 * before.variance + 1)


def chosen_by(scores: Matrix, labelled: Flags) -> int | None:
    """The column by which the labels of one window were chosen: that in which the labelled rows' mean lies further from
    all rows' than a random sample's would, and the furthest."""
    known, events = int(labelled.sum()), labelled.size
    if known in (0, events):
        return None
    apart = np.abs(scores[labelled].mean(axis=0) - scores.mean(axis=0))
    spread = scores.std(axis=0) * np.sqrt(1 / known - 1 / events)
    beyond = apart - SELECTED_LABELS * spread - np.finfo(np.float64).eps
    return int(beyond.argmax()) if (beyond > 0).any() else None


def weighted(chosen: Vector, labelled: Flags, copies: int) -> Vector:
    """How many rows each labelled row stands for, where labels were chosen by this; copies of events that were not kept
    stand for one."""
    return np.concatenate([stratum_weights(chosen, labelled), np.ones(copies)])

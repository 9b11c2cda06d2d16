"""How much to believe each of several corrections, by the labels that come k windows later. Pure.

The published correction is a linear pool of experts. Its loss over the labels of a window, the mean log loss f(w) of
the pool with weights w, has a concave exp(-f): exp(-f) is a geometric mean of functions that are linear in w. With
weights w_i proportional to w_i exp(-f_i) after each round, where f_i is the loss of expert i alone, therefore

    f(w) <= - ln sum_i w_i exp(-f_i),    and over all rounds    sum f(w) - sum f_i <= ln(1 / prior_i)

for any labels whatever (Vovk 1990; Kivinen and Warmuth 1999). Labels come late, so that a window is corrected before
the one before it is settled: as in Joulani, Gyorgy and Szepesvari (2013), a window takes a copy of the weights that no
unsettled window holds, a new one with the prior weights where there is none, and gives it back when it settles. The
bound then holds for each copy, and there are never more copies than windows were under way at once.

Of the free copies a window takes that which has seen the most rounds: where the labels of a stream come to be known
sooner than they once were, the few copies that are needed learn from all windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from monitor.arrays import Labels, Matrix, Vector
from monitor.limits import LEARNED_COPIES
from monitor.quality import log_loss
from monitor.tolerances import PRIOR_WEIGHTS


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of the weights."""

    losses: tuple[float, ...] = (0.0,) * len(PRIOR_WEIGHTS)
    """Of each expert, over all rounds."""
    rounds: int = 0
    window: str = ""
    """The unsettled window that holds it; empty if it is free."""

    @property
    def weights(self) -> Vector:
        """Of the experts; they sum to 1."""
        return np.asarray(softmax(np.log(PRIOR_WEIGHTS) - np.array(self.losses)))


Copies = tuple[Copy, ...]


def taken(copies: Copies, window: str) -> tuple[Copies, Copy | None]:
    """With one that this window holds; None where too many windows hold one already."""
    free = [place for place, one in enumerate(copies) if not one.window]
    if not free and len(copies) >= LEARNED_COPIES:
        return copies, None
    place = max(free, key=lambda place: (copies[place].rounds, -place), default=len(copies))
    held = replace(copies[place] if free else Copy(), window=window)
    return (*copies[:place], held, *copies[place + 1 :]), held


def given_back(copies: Copies, window: str, losses: Sequence[float] = ()) -> Copies:
    """The window that held one has settled; without any label its experts have no losses, and nothing is learned."""
    return tuple(_after(copy, losses) if copy.window == window else copy for copy in copies)


def losses(experts: Sequence[Matrix], labels: Labels) -> tuple[float, ...]:
    """The mean log loss of each expert over the labelled events of a window."""
    return tuple(log_loss(expert, labels) for expert in experts)


def _after(one: Copy, losses: Sequence[float]) -> Copy:
    if not losses:
        return replace(one, window="")
    together = np.array(one.losses) + np.array(losses)
    return Copy(tuple((together - together.min()).tolist()), one.rounds + 1)

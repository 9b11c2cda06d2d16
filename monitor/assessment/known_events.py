"""The class mix among the events that lie where the classes were, for windows in which others do not.

Events of an unknown class get posteriors too, and pull the estimate towards whatever classes they resemble. So they are
left out, and with them the part of each class that lies as far out. With I_y the share of the reference's events of
class y inside, posteriors stay what they were, while the reference's mix inside is pi_y I_y; the estimate p' of the
mix inside is that of all known events after each class gets back what was cut off: p_y proportional to p'_y / I_y.

Events of an unknown class that lie among the classes stay inside, a part c of what is there, and are counted as of
some known class, nobody knows of which. With p'' what the estimator says of all that is inside, the mix p' of the known
ones then lies between (p'' - c) / (1 - c) and p'' / (1 - c). The interval holds all of that. How large c is shows in
how the count of unknown events grows towards the classes, and in what is left of the misfit: events that lie D sd from
where they would be if they were of the class that they are counted as leave c D of it at most.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from monitor.arrays import present
from monitor.priors import ESTIMATORS, CalibratedView, PriorEstimate, ReferenceView
from monitor.priors.estimate import frozen
from monitor.shifts import Novelty, Prepared, Tested, shares_inside, unknown_events
from monitor.tolerances import HIDDEN_DISTANCE, SOFT_MATCH_EVENTS
from monitor.windows import Window

SOFT_MATCH = "dfm-rff-features"


@dataclass(frozen=True, slots=True)
class UnknownShare:
    """Share of the events that are of no known class, with its 95 % interval."""

    estimate: float
    lower: float
    upper: float


def known_mix(
    window: Window,
    reference: ReferenceView,
    estimator: str,
    ready: Prepared,
    unknown: Novelty,
    *,
    left_over: float,
) -> tuple[PriorEstimate, UnknownShare]:
    """The shares of the known classes among the known events of a calibrated window, and the share of the others.

    The estimator sees the reference's events within the threshold. `left_over` is what is left of the misfit there.
    """
    inside = shares_inside(ready, unknown.threshold)
    priors = reference.source_priors * inside
    view = CalibratedView(
        reference.classes, priors / priors.sum(), reference.class_counts * inside, reference.statistics
    )
    estimate = ESTIMATORS[estimator].estimate(window.take(~unknown.beyond), view)
    scale = 1.0 / (inside * float((estimate.priors / inside).sum()))
    known = frozen(estimate.priors * scale)
    others = unknown_events(unknown, present(ready.landscape, "where the classes lie"), known)
    within = max(others.within, left_over / HIDDEN_DISTANCE)
    mix = replace(
        estimate,
        method="known-events",
        priors=known,
        lower=frozen(np.clip((estimate.lower - within) / (1 - within) * scale, 0.0, 1.0)),
        upper=frozen(np.clip(estimate.upper / (1 - within) * scale, 0.0, 1.0)),
        standard_errors=None,
    )
    return mix, UnknownShare(others.share, others.lower, others.upper)


def soft_match(window: Window, reference: ReferenceView) -> Tested | None:
    """The share that soft matching of random features leaves to no class (dussap, P2); None without their statistics.

    Their kernel falls off with distance: what lies far from every class is orthogonal to all, and takes part in none.
    """
    if window.features is None or not reference.statistics.get(SOFT_MATCH):
        return None
    thin = window.take(slice(None, None, max(window.events // SOFT_MATCH_EVENTS, 1)))
    soft = ESTIMATORS[f"{SOFT_MATCH}-soft"].estimate(thin, reference)
    if soft.deficit is None or not soft.deficit_error:
        return None
    z = soft.deficit / soft.deficit_error
    return Tested(z, float(ndtr(-z)), soft.deficit, 1.0)

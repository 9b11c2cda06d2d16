"""The class mix among the events that lie where the classes were, for windows in which others do not.

Events of an unknown class get posteriors too, and pull the estimate towards whatever classes they resemble. So they are
left out, and with them the part of each class that lies as far out. With I_y the share of the reference's events of
class y inside, posteriors stay what they were, while the reference's mix inside is pi_y I_y; the estimate p' of the
mix inside is that of all known events after each class gets back what was cut off: p_y proportional to p'_y / I_y. Its
interval is what any p' within the interval of p' makes of it. Where a class lies outside for the most part, as one that
spreads five times as far as the other does, its events are not told from unknown ones by where they lie: then nothing
is left out, and all unknown events are among those that c speaks of.

Events of an unknown class that lie among the classes stay inside, a part c of what is there, and are counted as of
some known class, nobody knows of which. With p'' what the estimator says of all that is inside, the mix p' of the known
ones then lies between (p'' - c) / (1 - c) and p'' / (1 - c). The interval holds all of that. How large c is shows in
how the count of unknown events grows towards the classes, and in what is left of the misfit: events that lie D sd from
where they would be if they were of the class that they are counted as leave c D of it at most.
"""

from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from monitor.arrays import Vector, present
from monitor.priors import ESTIMATORS, CalibratedView, PriorEstimate, ReferenceView, frozen
from monitor.shifts import Novelty, Prepared, Tested, UnknownEvents, out_of_inside, shares_inside, unknown_events
from monitor.tolerances import HIDDEN_DISTANCE, LEAST_ERROR, LEAST_INSIDE, SOFT_MATCH_EVENTS
from monitor.windows import Window

SOFT_MATCH = "dfm-rff-features"


def known_mix(
    window: Window,
    reference: ReferenceView,
    estimator: str,
    ready: Prepared,
    unknown: Novelty,
    *,
    left_over: float,
) -> tuple[PriorEstimate, UnknownEvents]:
    """The shares of the known classes among the known events of a calibrated window, and how many others there are.

    The estimator sees the reference's events within the threshold. `left_over` is what is left of the misfit there.
    """
    inside, seen = shares_inside(ready, unknown.threshold), window.take(~unknown.beyond)
    told = bool(inside.min() >= LEAST_INSIDE)
    if not told:
        inside, seen = np.ones(inside.size), window
    priors = reference.source_priors * inside
    view = CalibratedView(
        reference.classes, priors / priors.sum(), reference.class_counts * inside, reference.statistics
    )
    estimate = ESTIMATORS[estimator].estimate(seen, view)
    known = estimate.priors * out_of_inside(estimate.priors, inside)
    others = unknown_events(unknown, present(ready.landscape, "where the classes lie"), known)
    # Those that hide are at most about as many as those that are seen.
    within = max(others.within, min(left_over / HIDDEN_DISTANCE, unknown.mass)) if told else others.upper
    rest = max(1.0 - within, LEAST_ERROR)
    lower, upper = np.clip((estimate.lower - within) / rest, 0.0, 1.0), np.clip(estimate.upper / rest, 0.0, 1.0)
    lower, upper = _of_all(lower, upper, inside)
    mix = replace(
        estimate,
        method="known-events",
        priors=frozen(known),
        lower=frozen(np.minimum(lower, known)),
        upper=frozen(np.maximum(upper, known)),
        standard_errors=None,
    )
    return mix, others


def _of_all(lower: Vector, upper: Vector, inside: Vector) -> tuple[Vector, Vector]:
    """The least and the greatest p_y, over all mixes inside between `lower` and `upper`: where p'_y is at its end, and
    the others' p'_k / I_k add up to as much, or as little, as they can."""
    least, most = np.empty(inside.size), np.empty(inside.size)
    for ends, bound, order in ((lower, least, np.argsort(inside)), (upper, most, np.argsort(-inside))):
        for y, end in enumerate(ends):
            others = order[order != y]
            room = np.maximum(upper - lower, 0.0)[others]
            left = max(1.0 - end - float(lower[others].sum()), 0.0)
            given = np.clip(left - (np.cumsum(room) - room), 0.0, room)
            rest, own = float(((lower[others] + given) / inside[others]).sum()), end / inside[y]
            bound[y] = own / (own + rest) if own > 0 else 0.0
    return least, most


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

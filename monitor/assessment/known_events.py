"""The class mix among the events that lie where the classes were, for windows in which others do not.

Events of an unknown class get posteriors too, and pull the estimate towards whatever classes they resemble. So they are
left out, and with them the part of each class that lies as far out. With I_y the share of the reference's events of
class y inside, posteriors stay what they were, while the reference's mix inside is pi_y I_y; the estimate p' of the
mix inside is that of all known events after each class gets back what was cut off: p_y proportional to p'_y / I_y.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from monitor.priors import ESTIMATORS, CalibratedView, PriorEstimate, ReferenceView
from monitor.priors.estimate import frozen
from monitor.shifts import Novelty, Prepared, Tested, shares_inside
from monitor.tolerances import NORMAL_95, SOFT_MATCH_EVENTS
from monitor.windows import Window

SOFT_MATCH = "dfm-rff-features"


@dataclass(frozen=True, slots=True)
class UnknownShare:
    """Share of the events that lie where no class was, with its 95 % interval."""

    estimate: float
    lower: float
    upper: float


def unknown_share(unknown: Novelty) -> UnknownShare:
    """What was counted beyond the classes. Events of an unknown class that lie among them cannot be counted."""
    reach = NORMAL_95 * unknown.error
    return UnknownShare(unknown.mass, max(unknown.mass - reach, 0.0), min(unknown.mass + reach, 1.0))


def known_mix(
    window: Window, reference: ReferenceView, estimator: str, ready: Prepared, unknown: Novelty
) -> PriorEstimate:
    """The shares of the known classes among the known events of a calibrated window.

    The estimator sees the reference's events within the threshold.
    """
    inside = shares_inside(ready, unknown.threshold)
    priors = reference.source_priors * inside
    view = CalibratedView(
        reference.classes, priors / priors.sum(), reference.class_counts * inside, reference.statistics
    )
    estimate = ESTIMATORS[estimator].estimate(window.take(~unknown.beyond), view)
    scale = 1.0 / (inside * float((estimate.priors / inside).sum()))
    return replace(
        estimate,
        method="known-events",
        priors=frozen(estimate.priors * scale),
        lower=frozen(np.clip(estimate.lower * scale, 0.0, 1.0)),
        upper=frozen(np.clip(estimate.upper * scale, 0.0, 1.0)),
    )


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

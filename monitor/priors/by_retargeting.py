"""Registry entry "retargeted": adjusted count on posteriors corrected to the prior that EM found.

    h_y(x) proportional to g_y(x) p~_y / pi_y, p~ from EM;   min |mean of h - sum_c p_c E[h | c]|^2 on the simplex

For calibrated posteriors the corrected posteriors h are, up to scale, the efficient score at p~: the answer is then as
precise as EM's. The expectations E[h | c] come from labelled hold-out events, so that wrong posteriors cost precision
only, and not, as with EM, truth.
"""

from dataclasses import replace

import numpy as np

from monitor.arrays import Matrix, Vector, row_sums
from monitor.errors import InputError
from monitor.limits import RETARGETING_ROWS
from monitor.priors.by_likelihood import EM
from monitor.priors.by_matching import Geometry, from_mean, reduce
from monitor.priors.estimate import (
    Answers,
    Estimator,
    HoldOut,
    PriorEstimate,
    ReferenceView,
    Statistics,
    labelled_rows,
    no_events,
    usable_rows,
)
from monitor.priors.maps import POSTERIORS, stratified
from monitor.tolerances import RETARGETING_SHARE
from monitor.windows import Window


def _summarise(hold_out: HoldOut) -> Statistics:
    g, labels, counts = labelled_rows(hold_out)
    if not (counts > 0).all():
        return {}
    chosen = stratified(labels, RETARGETING_ROWS, np.random.default_rng(hold_out.seed))
    return {"posteriors": g[chosen], "labels": labels[chosen].astype(np.float64)}


def _estimate(window: Window, reference: ReferenceView) -> PriorEstimate:
    return retargeted(window, reference, lambda _: EM.estimate(window, reference))


def retargeted(window: Window, reference: ReferenceView, answers: Answers) -> PriorEstimate:
    """The answer, from that of `em`."""
    kept, pi = reference.statistics["retargeted"], reference.source_priors
    if not kept:
        raise InputError("retargeted: want rows of every class in the reference")
    g, dropped = usable_rows(window.posteriors)
    if g.shape[0] == 0:
        return no_events("retargeted", pi, dropped)
    start = answers("em")
    # A share of every class: towards a class at 0 no posterior would move, and it could never come back.
    target = (1 - RETARGETING_SHARE) * start.priors + RETARGETING_SHARE * pi
    labels = kept["labels"].astype(np.int64)
    counts = np.bincount(labels, minlength=pi.size).astype(np.float64)
    statistics = reduce(POSTERIORS, {}, _corrected(kept["posteriors"], target / pi), labels, counts)
    estimate = from_mean(Geometry(statistics), _corrected(g, target / pi).mean(axis=0), g.shape[0], soft=False)
    return replace(estimate, method="retargeted", dropped=dropped)


def _corrected(posteriors: Matrix, ratios: Vector) -> Matrix:
    weighted = posteriors * ratios
    weighted /= row_sums(weighted)[:, None]
    return weighted


RETARGETED = Estimator("retargeted", _summarise, _estimate, building_on=retargeted)

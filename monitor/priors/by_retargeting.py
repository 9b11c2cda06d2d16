"""Registry entries "retargeted" and "em-debiased".

"retargeted" is an adjusted count on posteriors corrected to the prior that EM found.

    h_y(x) proportional to g_y(x) p~_y / pi_y, p~ from EM;   min |mean of h - sum_c p_c E[h | c]|^2 on the simplex

For calibrated posteriors the corrected posteriors h are, up to scale, the efficient score at p~: the answer is then as
precise as EM's. The expectations E[h | c] come from labelled hold-out events, so that wrong posteriors cost precision
only, and not, as with EM, truth.

"em-debiased" is EM, drawn to what labelled hold-out events make of its answer where these disagree.

EM takes posteriors at their word, p, and nothing is as precise where they are right. `retargeted`, q, asks what the
same posteriors were on labelled events: it is right whatever they are, and noisier. Where both say the same but for
chance p stays; the farther they are apart beyond it, the more q counts (as estimators with and without bias are
combined, Green and Strawderman 1991):

    b^2 = max(|q - p|^2 - DOUBT^2 |s_q^2 - s_p^2|, 0),   w = b^2 / (b^2 + |s_q^2|),   p + w (q - p)
    s^2 = (1 - w) (s_p^2 + d^2) + w s_q^2 + w (1 - w) (q - p)^2

with |.| the sum over the classes of what are squares already. s is the error of either with these odds, and d what `em`
allows for bias because of `pacc`. EM is the efficient one, so that s_q is no less than s_p: with a handful of events of
a class nobody knows what these vary by.

Calibration has no map for models that are wrong by more than slope and offset, such as a regularised logistic
regression of words: with five topics and 1,000 events on both sides EM is off by 1.8 times as much as this. Its price
is paid where posteriors are exact, hold-outs small and windows large: with 500 and 5,000 events it is .015 for .009.
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
    frozen,
    labelled_rows,
    no_events,
    nothing,
    usable_rows,
)
from monitor.priors.intervals import around
from monitor.priors.maps import POSTERIORS, stratified
from monitor.tolerances import DOUBT, LEAST_DOUBT, RETARGETING_SHARE
from monitor.windows import Window


def _summarise(hold_out: HoldOut) -> Statistics:
    g, labels, counts = labelled_rows(hold_out)
    if not (counts > 0).all():
        return {}
    chosen = stratified(labels, RETARGETING_ROWS, np.random.default_rng(hold_out.seed))
    return {"posteriors": g[chosen], "labels": labels[chosen].astype(np.float64)}


def _estimate(window: Window, reference: ReferenceView) -> PriorEstimate:
    return _on_em(window, reference, lambda _: EM.estimate(window, reference))


def _on_em(window: Window, reference: ReferenceView, answers: Answers) -> PriorEstimate:
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


RETARGETED = Estimator("retargeted", _summarise, _estimate, building_on=_on_em)


def _debias(window: Window, reference: ReferenceView) -> PriorEstimate:
    em = EM.estimate(window, reference)
    return _debiased(window, reference, lambda name: em if name == EM.name else _on_em(window, reference, lambda _: em))


def _debiased(_: Window, reference: ReferenceView, answers: Answers) -> PriorEstimate:
    em = replace(answers(EM.name), method="em-debiased")
    # It asks labelled events of every class, and both have to know how sure they are.
    if em.standard_errors is None or not reference.statistics.get(RETARGETED.name):
        return em
    other = answers(RETARGETED.name)
    if other.standard_errors is None or not np.isfinite(em.standard_errors).all():
        return em
    doubted = np.zeros_like(em.priors) if em.bias is None else em.bias**2
    of_em = em.standard_errors**2 - doubted
    of_other = np.maximum(other.standard_errors**2, of_em)
    apart = other.priors - em.priors
    by_chance = np.maximum(of_other - of_em, LEAST_DOUBT * of_em)
    beyond = max(float((apart**2 - DOUBT**2 * by_chance).sum()), 0.0)
    share = beyond / (beyond + float(of_other.sum())) if beyond else 0.0
    bias = (1.0 - share) * (doubted + share * apart**2)
    errors = np.sqrt((1.0 - share) * of_em + share * of_other + bias)
    drawn = replace(em, priors=frozen(em.priors + share * apart), bias=frozen(np.sqrt(bias)))
    return around(drawn, errors)


EM_DEBIASED = Estimator("em-debiased", nothing, _debias, building_on=_debiased)

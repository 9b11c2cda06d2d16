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

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from monitor.arrays import Matrix, Vector, present, row_sums
from monitor.errors import InputError
from monitor.limits import REFERENCES_READY, RETARGETING_ROWS
from monitor.priors.by_likelihood import EM
from monitor.priors.by_matching import Geometry, MappedRows, members, nearest, with_errors
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
    usable_in,
)
from monitor.priors.intervals import around
from monitor.priors.maps import stratified
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
    if not reference.statistics["retargeted"]:
        raise InputError("retargeted: want rows of every class in the reference")
    g, dropped = usable_in(window)
    if g.shape[0] == 0:
        return no_events("retargeted", reference.source_priors, dropped)
    estimate = _Retargeted.of(g, reference, answers("em").priors).with_interval
    return replace(estimate, method="retargeted", dropped=dropped)


@dataclass(frozen=True, eq=False)
class _Retargeted:
    """The answer to a window, and how sure it is for those who ask: that takes as long again."""

    rows: MappedRows
    """The hold-out's, with corrected posteriors."""
    mean: Vector
    """Of the window's corrected posteriors."""
    answer: PriorEstimate
    """Without an interval."""

    @classmethod
    def of(cls, posteriors: Matrix, reference: ReferenceView, start: Vector) -> "_Retargeted":
        """Of a window's usable posteriors, from the priors that EM found."""
        pi, labelled = reference.source_priors, _labelled(reference)
        # A share of every class: towards a class at 0 no posterior would move, and it could never come back.
        ratios = ((1 - RETARGETING_SHARE) * start + RETARGETING_SHARE * pi) / pi
        kept = _corrected(labelled.posteriors, ratios)
        rows = MappedRows(lambda b, e: kept[b:e], pi.size, labelled.member, labelled.counts)
        mean = _corrected(posteriors, ratios).mean(axis=0)
        return cls(rows, mean, nearest(Geometry(rows.means), mean, len(posteriors)))

    @property
    def with_interval(self) -> PriorEstimate:
        known = Geometry(self.rows.means | {"variances": self.rows.variances[:, :-1]})
        return with_errors(known, self.mean, self.answer)


@dataclass(frozen=True, slots=True, eq=False)
class _RowsKept:
    """The hold-out rows that a reference keeps."""

    posteriors: Matrix
    member: Matrix
    counts: Vector


@lru_cache(maxsize=REFERENCES_READY)
def _labelled(reference: ReferenceView) -> _RowsKept:
    kept, classes = reference.statistics["retargeted"], len(reference.classes)
    labels = kept["labels"].astype(np.int64)
    counts = np.bincount(labels, minlength=classes).astype(np.float64)
    return _RowsKept(kept["posteriors"], members(labels, classes), counts)


def _corrected(posteriors: Matrix, ratios: Vector) -> Matrix:
    weighted = posteriors * ratios
    weighted /= row_sums(weighted)[:, None]
    return weighted


RETARGETED = Estimator("retargeted", _summarise, _estimate, building_on=_on_em)


def _debias(window: Window, reference: ReferenceView) -> PriorEstimate:
    return _debiased(window, reference, lambda _: EM.estimate(window, reference))


def _debiased(window: Window, reference: ReferenceView, answers: Answers) -> PriorEstimate:
    em = replace(answers(EM.name), method="em-debiased")
    # It asks labelled events of every class, and both have to know how sure they are.
    if em.standard_errors is None or not reference.statistics.get(RETARGETED.name):
        return em
    other = _Retargeted.of(usable_in(window)[0], reference, em.priors)
    if not other.answer.unique or not np.isfinite(em.standard_errors).all():
        return em
    doubted = np.zeros_like(em.priors) if em.bias is None else em.bias**2
    of_em = em.standard_errors**2 - doubted
    apart = other.answer.priors - em.priors
    if _beyond(apart, LEAST_DOUBT * of_em) == 0:
        # Nor would it be however sure the other is: most windows need not know that.
        return around(em, np.sqrt(of_em + doubted), bias=np.sqrt(doubted))
    errors = present(other.with_interval.standard_errors, "standard errors")
    of_other = np.maximum(errors**2, of_em)
    beyond = _beyond(apart, np.maximum(of_other - of_em, LEAST_DOUBT * of_em))
    share = beyond / (beyond + float(of_other.sum())) if beyond else 0.0
    bias = (1.0 - share) * (doubted + share * apart**2)
    errors = np.sqrt((1.0 - share) * of_em + share * of_other + bias)
    return around(replace(em, priors=frozen(em.priors + share * apart)), errors, bias=np.sqrt(bias))


def _beyond(apart: Vector, by_chance: Vector) -> float:
    """b^2."""
    return max(float((apart**2 - DOUBT**2 * by_chance).sum()), 0.0)


EM_DEBIASED = Estimator("em-debiased", nothing, _debias, building_on=_debiased)

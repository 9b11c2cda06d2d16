"""Registry entries that maximise the likelihood of the posteriors: em, em-shrunk, em-sld, em-stopped."""

from dataclasses import replace

import numpy as np

from monitor.arrays import Matrix, Vector
from monitor.limits import BINNED_EVENTS, STOPPING_ROWS
from monitor.priors import em, intervals, nulls
from monitor.priors.estimate import (
    Estimator,
    HoldOut,
    PriorEstimate,
    ReferenceView,
    Statistics,
    labelled_rows,
    no_events,
    nothing,
    positive_priors,
    usable_rows,
)
from monitor.priors.histogram import binned
from monitor.priors.likelihood import Problem
from monitor.priors.maps import stratified
from monitor.tolerances import SHRINKAGE
from monitor.windows import Window


def _null(hold_out: HoldOut) -> Statistics:
    g, labels, counts = labelled_rows(hold_out)
    return {"rows": counts} | nulls.calibrate(g, counts / max(labels.size, 1))


def _maximise(window: Window, reference: ReferenceView) -> PriorEstimate:
    g, dropped = usable_rows(window.posteriors)
    if g.shape[0] == 0:
        return no_events("em", reference.source_priors, dropped)
    pi = positive_priors(reference.source_priors, g.shape[1])
    many = g.shape[1] == 2 and g.shape[0] >= BINNED_EVENTS
    estimate, _ = em.solved(binned(g, pi) if many else Problem(g, pi), dropped)
    return _with_reference_noise(estimate, g, reference)


def _shrink(window: Window, reference: ReferenceView) -> PriorEstimate:
    estimate = em.maximum_likelihood(window.posteriors, reference.source_priors, shrinkage=SHRINKAGE)
    return replace(_with_reference_noise(estimate, window.posteriors, reference), method="em-shrunk")


def _as_printed(window: Window, reference: ReferenceView) -> PriorEstimate:
    estimate = em.sld(window.posteriors, reference.source_priors)
    return _with_reference_noise(estimate, window.posteriors, reference)


def _sample(hold_out: HoldOut) -> Statistics:
    g, labels, _ = labelled_rows(hold_out)
    chosen = stratified(labels, STOPPING_ROWS, np.random.default_rng(hold_out.seed))
    return {"posteriors": g[chosen], "labels": labels[chosen].astype(np.float64)}


def _stop(window: Window, reference: ReferenceView) -> PriorEstimate:
    kept = reference.statistics["em-stopped"]
    return em.stopped(window.posteriors, reference.source_priors, kept["posteriors"], kept["labels"])


def _with_reference_noise(estimate: PriorEstimate, posteriors: Matrix, reference: ReferenceView) -> PriorEstimate:
    if estimate.events == 0:
        return estimate
    g, _ = usable_rows(posteriors)
    rows: Vector = np.asarray(reference.statistics["em"]["rows"])
    errors = intervals.likelihood_errors(g, reference.source_priors, estimate.priors, rows)
    return replace(intervals.around(estimate, errors), dropped=estimate.dropped)


EM = Estimator("em", _null, _maximise, always=True)
EM_SHRUNK = Estimator("em-shrunk", nothing, _shrink)
EM_SLD = Estimator("em-sld", nothing, _as_printed)
EM_STOPPED = Estimator("em-stopped", _sample, _stop)

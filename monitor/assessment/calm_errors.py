"""By how much the estimate of a class mix that has not moved is off: e_y^2 at pi, from the hold-out's own sample.

What a window says of itself belongs to the mix that it shows: a share that rose by two standard errors would seem to
have risen by 1.94. By the delta method (`monitor.priors.intervals`) e_y^2 = R_y + W_y / n for n events: the error of
the reference, with its bias, of which calibration leaves next to nothing, and that of the window. Estimates of the
sample, and of its rows twice over, tell the two apart.
"""

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from monitor.arrays import Vector
from monitor.assessment.classifier_view import AssessedReference
from monitor.assessment.mix_rule import spread
from monitor.limits import REFERENCES_READY
from monitor.priors import CalibratedView, PriorEstimate, kept_for, solve
from monitor.windows import Window

_TIMES = 2


class _Errors(NamedTuple):
    """R_y and W_y."""

    reference: Vector
    window: Vector


def calm_errors(events: int, reference: AssessedReference) -> Vector | None:
    """e_y^2 at pi of the reference's own estimator, in windows of so many events; None where it claims none."""
    calm = _calm(reference)
    return None if calm is None else np.asarray(calm.reference + calm.window / max(events, 1))


@lru_cache(maxsize=REFERENCES_READY)
def _calm(reference: AssessedReference) -> _Errors | None:
    """None for an estimator that claims no interval, and where classes cannot be told apart."""
    once, more = (_of_sample(reference, times) for times in (1, _TIMES))
    if once.standard_errors is None or not np.isfinite(once.standard_errors).all():
        return None
    window = np.maximum(spread(once) - spread(more), 0.0) / (1 / once.events - 1 / more.events)
    bias = (once.priors - reference.source_priors) ** 2
    return _Errors(np.maximum(spread(once) - window / once.events, 0.0) + bias, window)


def _of_sample(reference: AssessedReference, times: int) -> PriorEstimate:
    """The estimate of the hold-out's sample, each row so many times.

    Without `pacc` for `em`, and without `retargeted` for `em-debiased`, which is `em` then: rows that are repeated
    would make their disagreement look like bias.
    """
    sample, name = reference.sample, reference.estimator
    needed = ((kept_for(name) - {"retargeted"}) | {name}) & reference.statistics.keys()
    view = CalibratedView(
        reference.classes,
        reference.source_priors,
        reference.class_counts,
        {each: reference.statistics[each] for each in sorted(needed)},
    )
    window = Window.of(np.repeat(sample.posteriors, times, axis=0))
    if sample.features is not None:
        window = replace(window, features=np.repeat(sample.features, times, axis=0))
    return solve([name], window, view)[name]

"""Registry entry "auto": a weighted mean of estimators, with weights that a build learnt for this very reference.

The weights are on the simplex, so a window on which the members agree gets what they agree on: in particular a
window that equals the reference gets the source priors.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from monitor.arrays import Vector
from monitor.priors.estimate import (
    Answers,
    Estimator,
    PriorEstimate,
    ReferenceView,
    frozen,
    no_events,
    nothing,
    without_interval,
)
from monitor.windows import Window


def combine(name: str, members: Sequence[Estimator]) -> Estimator:
    """The entry for these members; a reference without learnt weights weighs them equally."""
    by_name = {member.name: member for member in members}

    def estimate(window: Window, reference: ReferenceView) -> PriorEstimate:
        return _mean(name, tuple(by_name), reference, lambda member: by_name[member].estimate(window, reference))

    def building_on(_window: Window, reference: ReferenceView, answers: Answers) -> PriorEstimate:
        return _mean(name, tuple(by_name), reference, answers)

    return Estimator(name, nothing, estimate, building_on=building_on)


def _mean(name: str, members: Sequence[str], reference: ReferenceView, answers: Answers) -> PriorEstimate:
    """The members' mean. Their errors are nearly the same error, so the interval adds up theirs as if they were."""
    kept = reference.statistics.get(name, {})
    weights: Vector = np.asarray(kept.get("weights", np.full(len(members), 1.0 / len(members))))
    used = [(answers(member), float(weight)) for member, weight in zip(members, weights, strict=True) if weight > 0]

    def mean(field: str) -> Vector:
        return np.asarray(sum(weight * getattr(estimate, field) for estimate, weight in used))

    estimates = [estimate for estimate, _ in used]
    if all(estimate.events == 0 for estimate in estimates):
        return no_events(name, reference.source_priors, max(estimate.dropped for estimate in estimates))
    combined = without_interval(
        name,
        mean("priors"),
        min(estimate.events for estimate in estimates),
        dropped=max(estimate.dropped for estimate in estimates),
        iterations=max(estimate.iterations for estimate in estimates),
        converged=all(estimate.converged for estimate in estimates),
        gap=max(estimate.gap for estimate in estimates),
        stop_reason="mean of " + ", ".join(f"{weight:.2f} {estimate.method}" for estimate, weight in used),
        unique=all(estimate.unique for estimate in estimates),
    )
    known = all(estimate.standard_errors is not None for estimate in estimates)
    return replace(
        combined,
        lower=frozen(mean("lower")),
        upper=frozen(mean("upper")),
        standard_errors=frozen(mean("standard_errors")) if known else None,
    )

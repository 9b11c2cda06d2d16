"""By how much a class mix that has not moved is off, as a reference says beforehand, and what evidence makes of it."""

from dataclasses import replace

import numpy as np
import pytest

from monitor.assessment import Assessment, assess
from monitor.assessment.calm_errors import calm_errors
from monitor.priors import ESTIMATORS
from monitor.reference.classifier import Reference
from monitor.state import WindowSeen
from monitor.state.evidence import scores
from monitor.windows import Window, WindowSummary
from tests.service import streams


def reference(events: int, estimator: str = "em", seed: int = 1) -> Reference:
    posteriors, labels = streams.scores(events, 0.3, seed=seed)
    return Reference.fit(posteriors, labels, classes=["no", "yes"], estimator=estimator)


@pytest.mark.parametrize("estimator", ["em", "pacc", "dfm-energy-soft"])
@pytest.mark.parametrize("events", [100, 1_000])
def test_estimates_of_windows_that_have_not_moved_vary_by_it_and_by_the_draw(estimator: str, events: int) -> None:
    known = reference(20_000, estimator)
    found = [
        ESTIMATORS[estimator](Window.of(streams.scores(events, 0.3, seed=500 + number)[0]), known).priors[1]
        for number in range(300)
    ]
    said = calm_errors(events, known)
    assert said is not None
    # The reference's own error is the same in all of them.
    own = calm_errors(10**9, known)
    assert own is not None
    assert np.var(found) == pytest.approx(said[1] - own[1] + 0.3 * 0.7 / events, rel=0.2)


def test_the_error_of_a_small_hold_out_is_in_it() -> None:
    """The mean over hold-outs of the square of what all their windows are off by."""
    off = []
    for seed in range(40):
        known = reference(500, seed=seed)
        many = Window.of(streams.scores(40_000, 0.3, seed=900)[0])
        off.append(ESTIMATORS["em"](many, known).priors[1] - known.source_priors[1])
    said = calm_errors(40_000, reference(500))
    assert said is not None
    # Beside the chance by which the hold-out has its classes.
    assert np.mean(np.square(off)) == pytest.approx(said[1] + 0.3 * 0.7 / 500, rel=0.5)


def test_an_estimator_without_an_interval_has_none() -> None:
    assert calm_errors(100, reference(2_000, "pcc")) is None


def moved() -> Assessment:
    window = Window.of(streams.scores(400, 0.45, seed=7)[0])
    return assess(window, reference(20_000))


def score(assessment: Assessment) -> float:
    seen = WindowSeen(assessment, WindowSummary.of(Window.of(np.full((400, 2), 0.5)), 2), 0.0)
    return scores(seen)["shares"]["share of yes rises"]


def test_evidence_of_a_moved_share_is_measured_by_the_error_of_one_that_has_not() -> None:
    found = moved()
    assert found.label_shift is not None
    assert found.label_shift.standard_errors is not None
    unsure = replace(found.label_shift, standard_errors=3 * found.label_shift.standard_errors)
    assert score(replace(found, label_shift=unsure)) == score(found)
    assert score(replace(found, label_shift=unsure, calm_errors=None)) < 0.5 * score(found)

"""Intervals of `em` where posteriors are wrong, and calibration cannot make them right."""

from dataclasses import replace

import numpy as np
import pytest

from monitor.priors import ESTIMATORS, CalibratedView, tallied
from monitor.sampling import draw
from monitor.windows import Tally, Window
from tests.priors.doubles import PlainReference

CLASSES, SOURCE, MIX = 3, np.array([0.4, 0.35, 0.25]), np.array([0.15, 0.25, 0.6])


def scored(rows: int, prevalence: np.ndarray, wrong: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors at `SOURCE` of events with this mix; where they are `wrong`, one direction counts for less than it
    says, and that depends on the other."""
    rng = np.random.default_rng(seed)
    labels = draw(np.repeat(np.arange(CLASSES), rows), prevalence, rows, rng) // rows
    centres = np.array([[0.0, 0.0], [1.2, 0.0], [0.4, 1.3]])
    x = centres[labels] + rng.normal(size=(rows, 2))
    scale = 1 + wrong * np.tanh(x[:, :1])
    logits = np.log(SOURCE) + scale * (x @ centres.T - (centres**2).sum(axis=1) / 2)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True), labels


def held(wrong: float, name: str = "em") -> tuple[float, float]:
    """How often a class's interval holds its share in windows of 5,000, and how wide they are."""
    inside, widths = [], []
    for seed in range(20):
        g, labels = scored(20_000, SOURCE, wrong, 100 + seed)
        reference = PlainReference.of(g, labels, None, names=["em", "pacc"])
        posteriors, truth = scored(5_000, MIX, wrong, 200 + seed)
        found = ESTIMATORS[name](Window.of(posteriors), reference)
        share = np.bincount(truth, minlength=CLASSES) / truth.size
        inside.append((found.lower <= share) & (share <= found.upper))
        widths.append(found.upper - found.lower)
    return float(np.mean(inside)), float(np.mean(widths))


def test_where_posteriors_are_wrong_the_interval_of_em_holds_what_matched_means_say_too() -> None:
    assert held(0.6)[0] >= 0.9


def alone(window: Window, reference: CalibratedView) -> np.ndarray:
    """The errors of `em` without `pacc`."""
    view = replace(reference, statistics={"em": reference.statistics["em"]})
    return ESTIMATORS["em"](window, view).standard_errors


@pytest.mark.parametrize("beside", [0, 19])
def test_where_they_are_right_few_intervals_grow_also_in_windows_of_which_the_rest_is_only_counted(beside: int) -> None:
    g, labels = scored(20_000, SOURCE, 0.0, 1)
    reference = PlainReference.of(g, labels, None, names=["em", "pacc"])
    grown = []
    for seed in range(40):
        rows, rest = (scored(500 * many, SOURCE, 0.0, 7 * seed + many)[0] for many in (1, max(beside, 1)))
        window = Window.of(rows)
        if beside:
            sums = tallied(rest, reference, len(rest))
            window = replace(window, left_out=Tally(len(rest), len(rest), "", sums))
        grown.append(ESTIMATORS["em"](window, reference).standard_errors / alone(Window.of(rows), reference))
    assert np.mean(np.array(grown) > 1 + 1e-9) <= 0.06


def test_bias_counts_by_what_is_beyond_two_standard_errors_of_the_difference() -> None:
    g, labels = scored(5_000, SOURCE, 0.6, 1)
    reference = PlainReference.of(g, labels, None, names=["em", "pacc"])
    window = Window.of(scored(2_000, MIX, 0.6, 2)[0])
    own, matched = alone(window, reference), ESTIMATORS["pacc"](window, reference)
    found = ESTIMATORS["em"](window, reference)
    difference = np.maximum(matched.standard_errors**2 - own**2, 0.1 * own**2)
    beyond = np.maximum((matched.priors - found.priors) ** 2 - 4 * difference, 0)
    assert (beyond > own**2).any()
    np.testing.assert_allclose(found.standard_errors**2, own**2 + beyond)

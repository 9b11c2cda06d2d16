"""What is estimated without labels, against what labels show."""

import numpy as np
import pytest

from connectors.worlds import World
from monitor import Reference, Window, assess
from monitor.performance import Decisions, Expected, Scores, estimated, measures, misfits

PAIR = World(classes=("a", "b"), priors=(0.7, 0.3), separation=1.2)


def drawn(rows: int, seed: int, priors: tuple[float, ...], sharper: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Labels of a mix and the scores of a model that knows the hold-out's, and is too sure of itself."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(2, size=rows, p=priors)
    inputs = rng.normal(size=(rows, 4)) + PAIR.means[labels]
    posteriors = PAIR.posteriors(inputs) ** sharper
    return posteriors / posteriors.sum(axis=1, keepdims=True), labels


@pytest.fixture(scope="module")
def reference() -> Reference:
    posteriors, labels = drawn(4_000, 1, PAIR.priors, sharper=2.0)
    return Reference.fit(posteriors, labels, classes=PAIR.classes)


@pytest.mark.parametrize("priors", [(0.7, 0.3), (0.63, 0.37), (0.4, 0.6)])
def test_intervals_hold_what_labels_would_have_shown(reference: Reference, priors: tuple[float, float]) -> None:
    held: dict[str, list[bool]] = {}
    for seed in range(60):
        posteriors, labels = drawn(1_000, 100 + seed, priors, sharper=2.0)
        found = assess(Window.of(posteriors), reference).performance
        if found.withheld:
            continue
        known = Scores(posteriors, posteriors, posteriors.argmax(axis=1))
        for name, measure in measures(2, 1, costs=False, ranking=False).items():
            value = found.figures[name]
            held.setdefault(name, []).append(value.lower <= measure.of(known, np.eye(2)[labels])[0] <= value.upper)
    assert {name for name, each in held.items() if np.mean(each) < 0.8} == set()
    assert min(map(len, held.values())) >= 50


def test_what_calibration_gets_wrong_is_taken_back() -> None:
    """Posteriors that are far too sure expect too much of themselves; the hold-out events say by how much."""
    hold_out, labels = drawn(20_000, 1, PAIR.priors, sharper=3.0)
    window, truth = drawn(20_000, 2, PAIR.priors, sharper=3.0)
    found = {}
    all_measures = measures(2, 1, costs=False, ranking=False)
    error = misfits(_expected(hold_out), labels, np.ones(2), all_measures)
    priors = np.array(PAIR.priors)
    known = {"mix": priors, "variances": np.zeros(2), "left": np.ones(2)}
    found = estimated(_expected(window), all_measures, error, source=priors, **known)
    for name, measure in all_measures.items():
        naive = measure.of(_expected(window).scores, window)[0]
        right = measure.of(_expected(window).scores, np.eye(2)[truth])[0]
        assert abs(found[name].value - right) < 0.02
        assert name == "roc_auc" or abs(naive - right) > 0.01


def test_what_calibration_gets_wrong_is_known_at_mixes_nearby() -> None:
    hold_out, labels = drawn(3_000, 1, PAIR.priors, sharper=3.0)
    every = measures(2, 1, costs=False, ranking=False)
    shares, step = np.bincount(labels) / labels.size, np.array([1e-5, -1e-5])
    at, near = (
        misfits(_expected(hold_out), labels, mix / shares, every)
        for mix in (np.array([0.6, 0.4]), np.array([0.6, 0.4]) + step)
    )
    for name in every:
        assert near[name].bias - at[name].bias == pytest.approx(at[name].by_mix @ step, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("mix", [(0.7, 0.3), (0.4, 0.6)])
def test_a_hold_out_by_chance_moves_the_mix_as_far_as_is_said(mix: tuple[float, float]) -> None:
    """The mix is where p = mean q(p): of posteriors that expect too much of a class, as another hold-out would have
    taught them to, by as much as its events differ from what was expected of them."""
    hold_out, labels = drawn(4_000, 1, PAIR.priors)
    window, _ = drawn(40_000, 2, mix)
    shares = np.bincount(labels) / labels.size
    error = misfits(_expected(hold_out), labels, np.array(mix) / shares, measures(2, 1, costs=False, ranking=False))

    def solved(too_much: float) -> float:
        p = np.array(mix)
        for _ in range(500):
            q = window * p / shares
            p = (q / q.sum(axis=1, keepdims=True)).mean(axis=0) + np.array([-too_much, too_much])
        return float(p[1])

    spread = np.sqrt((_weighted_errors(hold_out, labels, np.array(mix) / shares) ** 2).sum())
    moved = abs(solved(spread) - solved(0.0))
    assert moved == pytest.approx(np.sqrt(error["accuracy"].mix_variances[1]), rel=0.15)


def test_blocks_that_differ_widen_the_interval() -> None:
    posteriors, labels = drawn(5_000, 1, PAIR.priors)
    blocks = np.arange(5_000) // 250
    odd = np.where(blocks % 2 == 0, labels, 1 - labels)
    some = measures(2, 1, costs=False, ranking=False)
    alike = misfits(_expected(posteriors), labels, np.ones(2), some, blocks)
    apart = misfits(_expected(posteriors), odd, np.ones(2), some, blocks)
    independent = misfits(_expected(posteriors), labels, np.ones(2), some)
    assert alike["accuracy"].variance < 20 * independent["accuracy"].variance
    assert apart["accuracy"].variance > 1_000 * independent["accuracy"].variance


def test_it_is_withheld_where_more_than_the_mix_moved(reference: Reference) -> None:
    posteriors, _ = drawn(1_000, 3, PAIR.priors)
    few = assess(Window.of(posteriors[:20]), reference).performance
    assert (dict(few.figures), few.withheld) == ({}, "there are too few events")
    flat = assess(Window.of(np.tile([0.5, 0.5], (1_000, 1))), reference).performance
    assert not flat.figures
    assert "the verdict is" in flat.withheld


def test_a_threshold_and_costs_are_followed(reference: Reference) -> None:
    posteriors, _ = drawn(2_000, 4, PAIR.priors, sharper=2.0)
    asked = Decisions(threshold=0.2, false_positive=1.0, false_negative=10.0)
    usual = assess(Window.of(posteriors), reference).performance.figures
    found = assess(Window.of(posteriors), reference, decisions=asked).performance.figures
    assert found["accuracy"].value < usual["accuracy"].value
    assert found["roc_auc"] == usual["roc_auc"]
    assert 0 < found["cost"].value < 3
    assert "cost" not in usual


def _weighted_errors(posteriors: np.ndarray, labels: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """By how much each event is of the second class beyond what was expected, as a part of all."""
    q = posteriors * ratios / (posteriors * ratios).sum(axis=1, keepdims=True)
    return ratios[labels] * (labels - q[:, 1]) / labels.size


def _expected(posteriors: np.ndarray) -> Expected:
    return Expected(Scores(posteriors, posteriors, posteriors.argmax(axis=1)), posteriors)

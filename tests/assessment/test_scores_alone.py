"""Events without features: a real covariate shift is not corrected, a plain and large change of the class mix is."""

import numpy as np
import pytest

from monitor import Reference, Window, assess, quality
from monitor.arrays import Labels, Matrix
from monitor.assessment import Verdict
from monitor.recalibration import Cause, RecalibrationClient


def events(share: float, rows: int, seed: int) -> tuple[Matrix, Labels]:
    """Two inputs; the first one moves with the class by two standard deviations."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < share).astype(np.int64)
    return rng.normal(size=(rows, 2)) + 2.0 * labels[:, None] * np.array([1.0, 0.0]), labels


def scores(x: Matrix) -> Matrix:
    """Bayes' rule, rounded as a service writes them."""
    second = np.round(1 / (1 + np.exp(2.0 - 2.0 * x[:, 0])), 3)
    return np.column_stack([1 - second, second])


def selected(tilt: float, rows: int, seed: int) -> tuple[Matrix, Labels]:
    """Rows chosen by their first input alone: what a label is given the inputs has not changed."""
    x, labels = events(0.5, 20 * rows, seed)
    rng = np.random.default_rng(seed)
    kept = np.argsort(-(tilt * x[:, 0] + rng.gumbel(size=labels.size)))[:rows]
    return x[kept], labels[kept]


@pytest.fixture(scope="module")
def reference() -> Reference:
    x, labels = events(0.5, 10_000, 0)
    return Reference.fit(scores(x), labels)


@pytest.fixture(scope="module")
def seeing() -> Reference:
    x, labels = events(0.5, 10_000, 0)
    return Reference.fit(scores(x), labels, x)


@pytest.mark.parametrize(("share", "rows"), [(0.8, 4_000), (0.2, 4_000), (0.65, 10_000)])
def test_a_large_and_plain_change_of_the_class_mix_is_corrected_by_scores_alone(
    reference: Reference, share: float, rows: int
) -> None:
    for seed in range(1, 6):
        x, labels = events(share, rows, seed)
        found = assess(Window.of(scores(x)), reference).recalibration
        assert found.apply
        client = RecalibrationClient(lambda found=found: found, "s")  # type: ignore[misc]
        client.refresh()
        assert quality.brier(client.apply(scores(x)), labels) < quality.brier(scores(x), labels)


def test_scores_alone_correct_no_window_that_was_chosen_by_its_inputs(reference: Reference) -> None:
    moved = 0
    for seed in range(8):
        for tilt in (0.2, 0.5, 1.0):
            found = assess(Window.of(scores(selected(tilt, 2_000, seed)[0])), reference)
            assert not found.recalibration.apply
            moved += found.verdict is not Verdict.STABLE
    assert moved >= 20


def test_a_window_that_scores_alone_cannot_tell_says_what_would_help(reference: Reference, seeing: Reference) -> None:
    x, _ = events(0.65, 500, 1)
    found = assess(Window.of(scores(x)), reference)
    assert (found.verdict, found.recalibration.cause) == (Verdict.PRIOR_SHIFT, Cause.NOT_TOLD_APART)
    for help_ in ("features", "larger windows", "labels", '`may = "change-mix"`'):
        assert help_ in found.recalibration.reason
    assert assess(Window.of(scores(x)), reference, only_mix=True).recalibration.apply
    assert assess(Window.of(scores(x), x), seeing).recalibration.cause in {Cause.PRIOR_SHIFT, Cause.NOT_TOLD_APART}


def test_a_stream_of_which_only_the_mix_may_change_is_corrected_whatever_its_window_shows_else(
    reference: Reference,
) -> None:
    for seed in range(1, 6):
        x, labels = events(0.8, 300, seed)
        window = Window.of(scores(x))
        assert not assess(window, reference).recalibration.apply
        found = assess(window, reference, only_mix=True).recalibration
        assert found.apply
        client = RecalibrationClient(lambda found=found: found, "s")  # type: ignore[misc]
        client.refresh()
        assert quality.brier(client.apply(scores(x)), labels) < quality.brier(scores(x), labels)


def three(shares: tuple[float, ...], rows: int, seed: int) -> tuple[Matrix, Labels]:
    """Three classes, each of which moves another one of the first two inputs."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, rows, p=shares)
    return np.array([[0.0, 0.0], [1.6, 0.3], [0.3, 1.6]])[labels] + rng.normal(size=(rows, 2)), labels


def three_scores(x: Matrix) -> Matrix:
    """Bayes' rule, rounded as a service writes them: they need not sum to one."""
    likely = np.exp(-((x[:, None] - np.array([[0.0, 0.0], [1.6, 0.3], [0.3, 1.6]])) ** 2).sum(axis=2) / 2)
    return np.round(likely / likely.sum(axis=1, keepdims=True), 3)


def test_of_three_classes_too_no_window_is_corrected_that_was_chosen_by_its_inputs_and_a_plain_mix_is() -> None:
    third = (1 / 3, 1 / 3, 1 / 3)
    x, labels = three(third, 10_000, 0)
    reference = Reference.fit(three_scores(x), labels)
    for seed in range(1, 6):
        for tilt in ((0.5, 0.0), (1.0, 0.0), (0.5, 0.5)):
            many, _ = three(third, 40_000, seed)
            gumbel = np.random.default_rng(seed).gumbel(size=len(many))
            kept = np.argsort(-(many @ np.array(tilt) + gumbel))[:2_000]
            assert not assess(Window.of(three_scores(many[kept])), reference).recalibration.apply
        x, labels = three((0.6, 0.3, 0.1), 8_000, seed)
        found = assess(Window.of(three_scores(x)), reference).recalibration
        assert found.apply
        client = RecalibrationClient(lambda found=found: found, "s")  # type: ignore[misc]
        client.refresh()
        assert quality.brier(client.apply(three_scores(x)), labels) < quality.brier(three_scores(x), labels)

"""Events of a class that the model never saw: named as such, counted, and kept out of the shares of the others."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor import Reference, Window, assess
from tests.priors.papers import Contamination

CENTRES = np.array([[0.0, 0, 0, 0], [3, 0, 1, 0], [0, 3, 0, 1]])
FAR = np.array([-5.0, -5, 5, 0])
MIX = np.array([0.5, 0.3, 0.2])


def drawn(mix: np.ndarray, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, rows, p=mix)
    return CENTRES[labels] + rng.normal(size=(rows, 4)), labels


@pytest.fixture(scope="module")
def model() -> LogisticRegression:
    return LogisticRegression().fit(*drawn(np.full(3, 1 / 3), 3_000, 0))


@pytest.fixture(scope="module")
def reference(model: LogisticRegression) -> Reference:
    x, labels = drawn(np.full(3, 1 / 3), 6_000, 1)
    return Reference.fit(model.predict_proba(x), labels, x)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_the_shares_of_the_known_classes_hold_however_many_events_are_none_of_them(
    model: LogisticRegression, reference: Reference, share: float
) -> None:
    held = off = 0.0
    for seed in range(10):
        x, _ = drawn(MIX, int(4_000 * (1 - share)), 100 + seed)
        far = np.random.default_rng(seed).normal(size=(int(4_000 * share), 4)) + FAR
        both = np.vstack([x, far])
        found = assess(Window.of(model.predict_proba(both), both), reference)
        assert found.verdict == "unknown-class"
        assert found.unknown is not None
        held += found.unknown.lower <= share <= found.unknown.upper
        off += np.abs(found.prevalence.priors - MIX).sum() / 20
        assert ((found.prevalence.lower <= MIX) & (found.prevalence.upper >= MIX)).sum() >= 2
    assert held >= 8
    assert off < 0.02


@pytest.fixture(scope="module")
def figure_1() -> tuple[Contamination, Reference]:
    """Five Gaussian classes in five dimensions, and the reference of a model of them (dussap, figure 1)."""
    world = Contamination.draw(0, 5, 4_000, [])
    scores = world.model.predict_proba(world.source)
    return world, Reference.fit(scores, world.source_labels, world.source)


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("kind", ["background", "far", "middle"])
def test_noise_of_any_kind_leaves_the_shares_of_five_known_classes_and_is_counted_itself(
    figure_1: tuple[Contamination, Reference], kind: str, share: float
) -> None:
    world, reference = figure_1
    both = np.vstack([world.window, world.noise(kind, round(4_000 * share / (1 - share)))])
    found = assess(Window.of(world.model.predict_proba(both), both), reference)
    assert found.verdict == "unknown-class"
    assert found.unknown is not None
    assert found.unknown.lower <= share <= found.unknown.upper
    assert np.abs(found.prevalence.priors - world.truth).sum() / 2 < 0.03
    assert ((found.prevalence.lower <= world.truth) & (world.truth <= found.prevalence.upper)).sum() >= 4
    # What scores alone say is off by more, and by far more the more noise there is.
    assert np.abs(found.estimates["em"].priors - world.truth).sum() / 2 > 0.3 * share
    assert not found.recalibration.apply


@pytest.mark.parametrize("dimensions", [2, 3])
def test_noise_that_few_features_can_tell_from_a_fault_is_never_a_mix_that_is_wrong_with_confidence(
    dimensions: int,
) -> None:
    """Without one of two or three features noise may look like the classes, and be taken for a fault of that one: the
    mix of the others was off by .27 then, with intervals of .04. And what lies among the classes cannot be left out."""
    held, shares, widths = [], [], []
    for seed in (0, 2):
        world = Contamination.draw(seed, dimensions, 4_000, [])
        scores = world.model.predict_proba(world.source)
        reference = Reference.fit(scores, world.source_labels, world.source)
        for kind in ("background", "far", "middle"):
            for share in (0.1, 0.3):
                both = np.vstack([world.window, world.noise(kind, round(4_000 * share / (1 - share)))])
                found = assess(Window.of(world.model.predict_proba(both), both), reference)
                mix = found.prevalence
                held.append(((mix.lower <= world.truth) & (world.truth <= mix.upper)).mean())
                widths.append((mix.upper - mix.lower).max())
                if found.unknown is not None:
                    shares.append(found.unknown.lower <= share <= found.unknown.upper)
                assert found.verdict in {"unknown-class", "prior-and-covariate-shift"}
                assert not found.recalibration.apply
    assert min(held) >= 0.6
    assert np.mean(held) > 0.93
    assert np.mean(shares) >= 0.6
    assert np.median(widths) < 0.2, "what can be told apart is still told"


def test_a_fault_in_every_third_event_that_may_be_an_unknown_class_is_said_to_be_either() -> None:
    """One country sends an amount in another unit. Both explanations have the same mix, and the feature goes first."""

    def drawn(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 3, rows)
        return np.array([[0.0, 0, 0], [3, 0, 1], [0, 3, 0]])[labels] + rng.normal(size=(rows, 3)) + 5, labels

    model = LogisticRegression(max_iter=500).fit(*drawn(4_000, 0))
    x, labels = drawn(6_000, 1)
    reference = Reference.fit(model.predict_proba(x), labels, x)
    for seed in range(3):
        x, labels = drawn(4_000, 50 + seed)
        x[np.random.default_rng(seed).random(4_000) < 0.3, 0] *= 10
        found = assess(Window.of(model.predict_proba(x), x), reference)
        truth = np.bincount(labels) / labels.size
        assert found.verdict == "covariate-shift"
        assert "x0" in found.reasons[0]
        assert any("as well without its unknown events" in reason for reason in found.reasons)
        assert ((found.prevalence.lower <= truth) & (truth <= found.prevalence.upper)).all()
        assert (found.prevalence.upper - found.prevalence.lower).max() < 0.15


@pytest.mark.parametrize("gone", [0.1, 0.5, 1.0])
def test_an_unknown_class_beside_values_that_went_missing_leaves_an_interval_around_the_mix(
    model: LogisticRegression, reference: Reference, gone: float
) -> None:
    x, _ = drawn(MIX, 2_000, 6)
    both = np.vstack([x, np.random.default_rng(15).normal(size=(500, 4)) + FAR])
    said = model.predict_proba(both)
    both[np.random.default_rng(1).random(2_500) < gone, 3] = np.nan
    found = assess(Window.of(said, both), reference)
    assert found.verdict == "unknown-class"
    assert (found.prevalence.lower <= MIX).all()
    assert (found.prevalence.upper >= MIX).all()
    assert (found.prevalence.upper - found.prevalence.lower).max() < 0.1


@pytest.mark.parametrize("seed", [3, 10])
def test_a_class_that_spreads_far_beyond_the_other_is_not_told_from_unknown_events_and_keeps_its_share(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)

    def wide(rows: int, rare: float) -> tuple[np.ndarray, np.ndarray]:
        labels = (rng.random(rows) < rare).astype(int)
        return rng.normal(size=(rows, 5)) * np.where(labels, 5, 1)[:, None] + labels[:, None], labels

    def seen(x: np.ndarray) -> np.ndarray:
        return np.column_stack([x, x**2])

    x, labels = wide(4_000, 0.3)
    model = LogisticRegression(max_iter=2_000).fit(seen(x), labels)
    x, labels = wide(5_000, 0.03)
    reference = Reference.fit(model.predict_proba(seen(x)), labels, x)
    both = np.vstack([wide(2_850, 0.03)[0], rng.normal(size=(150, 5)) * 0.5 + 2])
    found = assess(Window.of(model.predict_proba(seen(both)), both), reference)
    assert found.verdict == "unknown-class"
    assert found.unknown is not None
    assert 0 < found.unknown.lower <= 0.05 <= found.unknown.upper
    assert found.prevalence.lower[0] <= 0.97 <= found.prevalence.upper[0]
    assert found.prevalence.priors[0] > 0.9


def test_events_between_the_classes_are_counted_only_where_no_class_was(
    model: LogisticRegression, reference: Reference
) -> None:
    x, _ = drawn(MIX, 3_600, 5)
    scattered = np.random.default_rng(5).uniform(x.min(axis=0), x.max(axis=0), size=(400, 4))
    both = np.vstack([x, scattered])
    found = assess(Window.of(model.predict_proba(both), both), reference)
    assert found.unknown is not None
    assert found.unknown.lower <= 0.1 <= found.unknown.upper
    # Soft matching of random features looks at the same events in another way, and finds about as many.
    assert found.tests["soft-deficit"].effect == pytest.approx(found.unknown.estimate, abs=0.04)


def test_the_message_says_how_many_events_are_unknown(model: LogisticRegression, reference: Reference) -> None:
    x, _ = drawn(MIX, 1_000, 7)
    calm = json.loads(assess(Window.of(model.predict_proba(x), x), reference).to_json())
    assert calm["unknown"] is None
    both = np.vstack([x, np.random.default_rng(7).normal(size=(100, 4)) + FAR])
    told = json.loads(assess(Window.of(model.predict_proba(both), both), reference).to_json())
    assert told["unknown"]["lower"] <= told["unknown"]["estimate"] <= told["unknown"]["upper"]
    assert told["estimator"] == "known-events"
    assert sum(share["estimate"] for share in told["prevalence"].values()) == pytest.approx(1)


def shop(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Late payments and capital gains are 0 for most people; both say something of the class."""
    rng = np.random.default_rng(seed)
    x, labels = make_blobs(rows, centers=[[0, 0, 0], [1.5, 1, 0]], cluster_std=1.0, random_state=seed)
    late = np.where(rng.random(rows) < 0.06 + 0.1 * labels, rng.poisson(2, rows) + 1.0, 0.0)
    gain = np.where(rng.random(rows) < 0.05 + 0.06 * labels, np.round(rng.lognormal(7, 1, rows)), 0.0)
    return np.column_stack([x, late, gain]), labels


@pytest.fixture(scope="module")
def shop_model() -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(*shop(4_000, 0))


@pytest.fixture(scope="module")
def shop_reference(shop_model: Pipeline) -> Reference:
    x, labels = shop(6_000, 1)
    names = ["a", "b", "c", "late", "gain"]
    return Reference.fit(shop_model.predict_proba(x), labels, x, feature_names=names)


@pytest.mark.parametrize(("column", "factor"), [(3, 100.0), (3, 1_000.0), (4, 1_000.0), (4, 0.001)])
def test_another_unit_in_a_column_that_is_mostly_zero_is_named_as_that_column(
    shop_model: Pipeline, shop_reference: Reference, column: int, factor: float
) -> None:
    for seed in range(3):
        moved, _ = shop(3_000, 10 + seed)
        moved[:, column] *= factor
        found = assess(Window.of(shop_model.predict_proba(moved), moved), shop_reference)
        assert found.verdict in {"covariate-shift", "prior-and-covariate-shift"}
        assert [name for name, one in found.features.items() if one.moved] == [["late", "gain"][column - 3]]


def test_values_that_go_missing_are_no_unknown_class(shop_model: Pipeline, shop_reference: Reference) -> None:
    for seed in range(3):
        holes, _ = shop(3_000, 20 + seed)
        said = shop_model.predict_proba(holes)
        holes[np.random.default_rng(seed).random(3_000) < 0.3, 0] = np.nan
        found = assess(Window.of(said, holes), shop_reference)
        assert found.verdict == "covariate-shift"
        assert found.features["a"].kind == "missing"


def test_a_digit_that_the_model_never_saw_is_named_with_450_digits_held_out() -> None:
    x, y = load_digits(return_X_y=True)
    named = calm = 0
    for digit in (0, 4, 6):
        rng = np.random.default_rng(digit)
        known = rng.permutation(np.flatnonzero(y != digit))
        train, hold_out, rest = known[:600], known[600:1_050], known[1_050:]
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)).fit(x[train], y[train])
        reference = Reference.fit(model.predict_proba(x[hold_out]), y[hold_out], x[hold_out])
        calm += assess(Window.of(model.predict_proba(x[rest]), x[rest]), reference).verdict == "stable"
        new = rng.choice(np.flatnonzero(y == digit), 100, replace=False)
        rows = np.concatenate([rng.choice(rest, 400, replace=False), new])
        named += assess(Window.of(model.predict_proba(x[rows]), x[rows]), reference).verdict == "unknown-class"
    assert calm == 3
    assert named >= 2


def test_another_unit_in_a_column_with_four_events_in_a_hundred_that_are_not_zero_is_that_column() -> None:
    """Its distribution hardly moves: what it makes of the events does."""
    rng = np.random.default_rng(5)

    def cases(rows: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.integers(0, 2, rows)
        x = rng.normal(size=(rows, 6)) + 0.8 * y[:, None]
        x[:, 0] = np.where(rng.random(rows) < 0.04, np.round(np.exp(rng.normal(5, 1, rows)), 2), 0.0)
        return x, y

    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(*cases(5_000))
    x, y = cases(10_000)
    reference = Reference.fit(model.predict_proba(x), y, x)
    for _ in range(4):
        x, _ = cases(1_000)
        x[:, 0] *= 100
        found = assess(Window.of(model.predict_proba(x), x), reference)
        assert found.verdict == "covariate-shift"
        assert "x0" in found.reasons[0]

"""A reference is what its hold-out events say, and says so again after a round trip."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from monitor.assessment import assess
from monitor.errors import InputError
from monitor.priors import DEFAULT, ESTIMATORS
from monitor.reference import artefact
from monitor.reference.classifier import Reference
from monitor.sampling import draw
from monitor.windows.window import Window
from tests.reference.worlds import CLASSES, world


@pytest.fixture(scope="module")
def reference():
    posteriors, labels, features = world(1500)
    features[::50, 2] = np.nan
    return Reference.fit(posteriors, labels, features, classes=CLASSES, feature_names=list("abcd"), stream="s")


def test_three_lines_from_a_fitted_classifier(tmp_path):
    _, labels, features = world(900)
    model = LogisticRegression().fit(features[:400], labels[:400])

    reference = Reference.fit(model.predict_proba(features[400:]), labels[400:], classes=model.classes_)
    reference.save(tmp_path / "model.ref")
    again = Reference.load(tmp_path / "model.ref")

    assert again.classes == ("0", "1", "2")
    assert again.version == reference.version


@pytest.mark.parametrize("block", [None, 150])
def test_whoever_looks_on_is_told_of_every_step_up_to_the_last(block):
    told = []
    posteriors, labels, features = world(300)
    Reference.fit(posteriors, labels, features, block=block, progress=lambda *step: told.append(step))
    assert [done for _, done, _ in told] == list(range(len(told)))
    assert {of for _, _, of in told} == {len(told) - 1}
    steps = [what for what, _, _ in told]
    assert steps[0] == "calibration"
    assert steps[-1] == "done"
    assert {f"estimator {name}" for name in ESTIMATORS} >= {what for what in steps if what.startswith("estimator")}


def test_a_round_trip_loses_nothing(reference, tmp_path):
    reference.save(tmp_path / "x.ref")
    again = Reference.load(tmp_path / "x.ref")
    assert again.schema == reference.schema
    assert again.facts == reference.facts
    assert again.estimator == DEFAULT
    assert again.sealed().version == reference.version == again.version
    window = Window.of(*world(300, 9)[::2])
    for name, estimator in ESTIMATORS.items():
        if estimator.applies_to(3, True):
            before, after = estimator(window, reference), estimator(window, again)
            assert (before.priors == after.priors).all(), name
            assert (before.lower == after.lower).all(), name


def test_the_same_events_and_seed_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        Reference.fit(*world(300)[:2], seed=5).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_another_event_gives_another_version():
    posteriors, labels, features = world(200)
    one = Reference.fit(posteriors, labels, features[:, :1])
    features[0, 0] += 1e-9
    other = Reference.fit(posteriors, labels, features[:, :1])
    assert one.version != other.version


def test_names_and_numbers_are_the_same_labels():
    posteriors, labels, _ = world(300)
    by_number = Reference.fit(posteriors, labels, classes=CLASSES)
    by_name = Reference.fit(posteriors, [CLASSES[y] for y in labels], classes=CLASSES)
    assert by_number.version == by_name.version


def test_integer_classes_of_a_model_are_names():
    posteriors, labels, _ = world(300)
    reference = Reference.fit(posteriors, labels + 1, classes=np.array([1, 2, 3]))
    assert reference.classes == ("1", "2", "3")
    assert reference.class_counts.tolist() == np.bincount(labels).tolist()


def test_source_priors_missing_rates_and_sorted_values_are_those_of_the_events(reference):
    _, labels, features = world(1500)
    features[::50, 2] = np.nan
    assert reference.source_priors == pytest.approx(np.bincount(labels) / 1500)
    profile = reference.features[2]
    assert (np.diff(profile.values) >= 0).all()
    assert sorted(features[~np.isnan(features[:, 2]), 2]) == profile.values.tolist()
    for c in range(3):
        assert profile.missing[c] == pytest.approx(np.isnan(features[labels == c, 2]).mean())
        own = features[(labels == c) & ~np.isnan(features[:, 2]), 2]
        assert sorted(own) == profile.values[profile.labels == c].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_on_a_resample_of_the_reference_em_finds_its_prevalence_within_the_interval(seed):
    posteriors, labels, _ = world(2000, 20 + seed, sharpness=2.0)
    reference = Reference.fit(posteriors, labels)
    rows = np.random.default_rng(seed).integers(0, 2000, 2000)
    estimate = ESTIMATORS["em"](Window.of(posteriors[rows]), reference)
    assert (estimate.lower <= reference.source_priors).all()
    assert (reference.source_priors <= estimate.upper).all()


def test_the_prevalence_follows_a_shift(reference):
    posteriors, labels, _ = world(4000, 30)
    target = np.array([0.2, 0.3, 0.5])
    rows = draw(labels, target, 2000, np.random.default_rng(0))
    estimate = ESTIMATORS[reference.estimator](Window.of(posteriors[rows]), reference)
    assert estimate.priors == pytest.approx(target, abs=0.05)
    assert (estimate.lower <= target).all()
    assert (target <= estimate.upper).all()


def test_a_reference_that_was_built_with_auto_goes_on_with_the_default(reference, tmp_path):
    """As the release before wrote them: with the weights of a mean of four estimators."""
    path = tmp_path / "x.ref"
    reference.save(path)
    header, arrays = artefact.load(path)
    before = header | {"estimator": "auto", "estimators": [*header["estimators"], "auto"]}
    artefact.save(path, before, arrays | {"statistics/auto/weights": np.full(4, 0.25)})
    again = Reference.load(path)
    assert again.estimator == DEFAULT
    assert again.version == reference.version
    window = Window.of(*world(300, 9)[::2])
    assert assess(window, again).to_json() == assess(window, reference).to_json()


def test_a_window_with_other_classes_is_refused(reference):
    with pytest.raises(InputError, match="want 3 columns"):
        reference.prepare(Window.of(np.full((5, 2), 0.5)))


def test_the_sample_has_the_classes_in_proportion(reference):
    assert np.bincount(reference.sample.labels).tolist() == reference.class_counts.tolist()


def test_categories_and_booleans_are_told_from_numbers():
    posteriors, labels, features = world(60)
    table = [
        ["be" if y else "nl", bool(y == 1), None if i % 5 == 0 else x[0]]
        for i, (y, x) in enumerate(zip(labels, features, strict=True))
    ]
    reference = Reference.fit(posteriors, labels, table, feature_names=["country", "night", "amount"])
    assert [f.kind for f in reference.schema.features] == ["category", "boolean", "number"]
    country, night, amount = reference.features
    assert country.counts.sum() == 60
    assert country.counts[:, country.feature.categories.index("nl")].tolist() == [(labels == 0).sum(), 0, 0]
    assert night.counts[1, 1] == (labels == 1).sum()
    assert amount.values.size == 48
    matched = reference.matched(Window.of([[0.2, 0.3, 0.5]], [["fr", True, None]]))
    assert matched.features[0].tolist() == pytest.approx([2.0, 1.0, np.nan], nan_ok=True)


GOOD, LABELS, _ = world(60)


def spoiled(row, value):
    posteriors = GOOD.copy()
    posteriors[row] = value
    return posteriors


@pytest.mark.parametrize(
    ("posteriors", "labels", "message"),
    [
        (spoiled(3, np.nan), LABELS, "1 rows are NaN or infinite, the first is row 3"),
        (spoiled(4, [0.5, 0.7, -0.2]), LABELS, "1 rows are negative, the first is row 4"),
        (spoiled(5, [0.5, 0.7, 0.2]), LABELS, "do not sum to 1 within 0.001"),
        (GOOD[:1], LABELS[:1], "at least 2 events, got 1"),
        (GOOD, LABELS[:-1], "one for each of the 60 events, got 59"),
        (GOOD, [*LABELS[:-1].tolist(), None], "1 are missing, the first in row 59"),
        (GOOD, [*LABELS[:-1].tolist(), -1], r"1 are missing \(-1\)"),
        (GOOD, [*LABELS[:-1].tolist(), 7], r"\['7'\] are not among the classes"),
        (GOOD, [0] * 60, "every class needs at least two events; 1 has 0, 2 has 0"),
        (GOOD[:, :1], LABELS, "want one for each of the 2 columns of the posteriors"),
    ],
)
def test_hold_out_events_that_make_no_sense_are_named(posteriors, labels, message):
    with pytest.raises(InputError, match=message):
        Reference.fit(posteriors, labels, classes=("0", "1", "2")[: posteriors.shape[1]])


def test_labels_of_one_class_only_are_not_enough_to_guess_the_classes():
    with pytest.raises(InputError, match="1 different ones for 3 columns"):
        Reference.fit(GOOD, ["legit"] * 60)

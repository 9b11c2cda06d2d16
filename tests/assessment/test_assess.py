"""From a window to a verdict: each shift gets its name, its reason and its correction."""

import msgspec
import numpy as np
import pytest

from monitor.assessment.classifier import assess
from monitor.assessment.verdict import Verdict
from monitor.errors import InputError
from monitor.ports.schema import Feature, StreamSchema
from monitor.reference import Reference
from monitor.windows.window import Window, WindowKey, ordered
from tests.assessment import worlds

MOVED = np.array([0.25, 0.45, 0.30])


def shifted(x):
    x[:, 3] = 1.3 * x[:, 3] + 0.5


def newcomers(x):
    rng = np.random.default_rng(9)
    rows = rng.random(len(x)) < 0.05
    x[rows] = np.array([-5.0, -5.0, 5.0, 5.0]) + rng.normal(size=(int(rows.sum()), 4))


def stretched(x):
    x[:, 3] = np.where(x[:, 3] > 0, 1.9 * x[:, 3], 0.6 * x[:, 3])


@pytest.mark.parametrize(
    ("priors", "change", "verdict"),
    [
        (worlds.PRIORS, None, Verdict.STABLE),
        (MOVED, None, Verdict.PRIOR_SHIFT),
        (worlds.PRIORS, shifted, Verdict.COVARIATE_SHIFT),
        (worlds.PRIORS, stretched, Verdict.COVARIATE_SHIFT),
        (MOVED, shifted, Verdict.PRIOR_AND_COVARIATE_SHIFT),
        (worlds.PRIORS, newcomers, Verdict.UNKNOWN_CLASS),
    ],
)
def test_every_shift_gets_its_name(priors, change, verdict):
    found = assess(worlds.window(5000, 1, priors, change), worlds.reference())
    assert found.verdict is verdict
    assert found.reasons


def test_classes_that_turned_inside_are_unexplained():
    rng = np.random.default_rng(3)
    labels = rng.choice(3, size=5000, p=worlds.PRIORS)
    x = worlds.features(labels, rng)
    x[:, 1] = worlds.CENTRES[labels, 1] + 0.8 * (x[:, 0] - worlds.CENTRES[labels, 0]) + 0.6 * rng.normal(size=5000)
    found = assess(Window.of(worlds.posteriors(x), x), worlds.reference())
    assert found.verdict in {Verdict.UNEXPLAINED, Verdict.COVARIATE_SHIFT}
    assert not found.recalibration.apply


def test_a_prior_shift_is_measured_reported_and_corrected():
    found = assess(worlds.window(5000, 2, MOVED), worlds.reference())
    assert np.abs(found.prevalence.priors - MOVED).max() < 0.03
    assert np.all(found.prevalence.lower <= found.prevalence.priors)
    assert found.recalibration.apply
    assert found.recalibration.multipliers == pytest.approx(found.prevalence.priors / found.source_priors)
    assert not any(feature.moved for feature in found.features.values())
    assert any(feature.move.plain_p < 1e-6 for feature in found.features.values())
    assert "from" in found.reasons[0]


def test_a_moved_input_is_named_with_its_line_and_the_mix_comes_from_the_others():
    found = assess(worlds.window(5000, 3, MOVED, shifted), worlds.reference())
    assert [name for name, feature in found.features.items() if feature.moved] == ["x3"]
    assert found.features["x3"].kind == "linear"
    assert found.features["x3"].alpha == pytest.approx(1.3, abs=0.12)
    assert found.prevalence.method == "unmoved-inputs"
    assert np.abs(found.prevalence.priors - MOVED).max() < 0.04
    assert found.recalibration.multipliers == (1.0, 1.0, 1.0)
    assert "x3" in found.recalibration.inputs


def test_an_input_that_went_missing_is_an_alarm():
    def lost(x):
        x[:, 2] = np.nan

    found = assess(worlds.window(3000, 4, change=lost), worlds.reference())
    assert found.features["x2"].kind == "missing"
    assert found.verdict not in {Verdict.STABLE, Verdict.PRIOR_SHIFT}
    assert "missing in all events" in found.reasons[0]


def test_without_features_the_posteriors_speak():
    g = worlds.window(5000, 5, MOVED).posteriors
    assert assess(Window.of(g), worlds.plain_reference()).verdict is Verdict.PRIOR_SHIFT
    assert assess(worlds.window(5000, 6), worlds.plain_reference()).verdict is Verdict.STABLE


def test_without_features_nothing_is_said_of_inputs():
    window = worlds.window(5000, 1, worlds.PRIORS)
    found = assess(Window.of(window.posteriors), worlds.reference())
    assert found.verdict is Verdict.STABLE
    assert found.reasons[0].startswith("the class mix and the scores agree with the reference")


def test_events_thrown_out_of_a_known_class_are_no_unknown_class():
    rng = np.random.default_rng(0)
    x, labels = worlds.draw(4_000, 0)
    turned = labels == 1
    noise = rng.normal(size=(int(turned.sum()), 4))
    noise[:, 0] = 2 * np.abs(noise[:, 0])
    noise[:, 1] = noise[:, 0] + 0.3 * noise[:, 1]
    x[turned] = worlds.CENTRES[1] + noise
    found = assess(Window.of(worlds.posteriors(x), x), worlds.reference())
    assert found.tests["unknown-mass"].significant
    assert found.verdict is Verdict.UNEXPLAINED


def test_a_new_class_may_lie_wide_apart():
    rng = np.random.default_rng(0)
    x, _ = worlds.draw(4_000, 0)
    new = rng.random(4_000) < 0.05
    x[new] = np.array([-4.0, -4.0, 4.0, 4.0]) + 2 * rng.normal(size=(int(new.sum()), 4))
    assert assess(Window.of(worlds.posteriors(x), x), worlds.reference()).verdict is Verdict.UNKNOWN_CLASS


def test_a_feature_that_alone_looks_mirrored_is_not_when_the_others_say_that_it_rises():
    def lopsided(x):
        return np.column_stack([x[:, :3], np.exp(x[:, 3])])

    x, labels = worlds.draw(20_000, 0)
    schema = StreamSchema("lopsided", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(4)))
    reference = worlds.cheaply(schema, worlds.posteriors(x), labels, lopsided(x))
    seen, _ = worlds.draw(3_000, 1)
    g, features = worlds.posteriors(seen), lopsided(seen)
    mirror_image = np.sort(10 - features[:, 3])
    features[:, 3] = mirror_image[np.argsort(np.argsort(features[:, 3]))]
    found = assess(Window.of(g, features), reference)
    assert found.verdict is Verdict.COVARIATE_SHIFT
    assert found.features["x3"].kind == "monotone"
    assert found.features["x3"].alpha > 0


def test_windows_without_a_shift_are_stable_at_the_level():
    wrong = sum(
        assess(worlds.window(1000, 100 + i), worlds.reference()).verdict is not Verdict.STABLE for i in range(60)
    )
    assert wrong <= 3  # 99.7 % bound of a binomial with 60 draws at 1 %


def test_the_same_events_in_any_order_give_the_same_bytes():
    window = worlds.window(2000, 7, MOVED, shifted)
    shuffled = window.take(np.random.default_rng(0).permutation(window.events))
    first, second = (assess(ordered(w), worlds.reference()).to_json() for w in (window, shuffled))
    assert first == second


def test_a_reference_that_was_saved_says_the_same(tmp_path):
    path = tmp_path / "reference"
    worlds.reference().save(path)
    loaded = type(worlds.reference()).load(path)
    window = worlds.window(2000, 8, MOVED)
    assert assess(window, loaded).to_json() == assess(window, worlds.reference()).to_json()


def test_the_window_is_left_as_it_was():
    window = worlds.window(1000, 9)
    before = window.posteriors.tobytes(), window.features.tobytes()
    assess(window, worlds.reference())
    assert (window.posteriors.tobytes(), window.features.tobytes()) == before


def test_times_are_rfc_3339_and_the_identity_is_the_windows():
    window = worlds.window(500, 10)
    key = WindowKey("world", "BE", 1_795_000_000_000_000, 1_795_000_300_000_000)
    message = msgspec.json.decode(
        assess(Window(window.posteriors, window.features, key=key), worlds.reference()).to_json()
    )
    assert message["start"] == "2026-11-18T11:06:40.000000Z"
    assert (message["window"], message["segment"]) == (key.id, "BE")


def test_columns_that_do_not_match_the_reference_are_refused():
    with pytest.raises(InputError, match="posteriors"):
        assess(Window.of(np.full((200, 2), 0.5)), worlds.reference())
    with pytest.raises(InputError, match="features"):
        assess(Window.of(np.full((200, 3), 1 / 3), np.zeros((200, 2))), worlds.reference())


def test_a_shift_that_only_all_inputs_together_show_names_what_has_to_be_left_out():
    """A hair of x3: significant in the fit, but no distance that counts by itself."""

    def nudged(x):
        x[:, 3] += 0.065

    found = assess(worlds.window(20_000, 3, change=nudged), worlds.reference())
    assert found.verdict is Verdict.COVARIATE_SHIFT
    assert not any(feature.moved for feature in found.features.values())
    assert found.reasons[0].startswith("one class mix explains the window only without x3 (fit p ")


def test_an_unknown_class_is_not_described_by_an_input_that_it_lacks():
    def without_x3(x):
        newcomers(x)
        x[x[:, 0] < -3, 3] = np.nan

    found = assess(worlds.window(5000, 1, change=without_x3), worlds.reference())
    assert found.verdict is Verdict.UNKNOWN_CLASS
    assert "x0 is -" in found.reasons[0]
    assert "x3" not in found.reasons[0]


def test_a_model_that_cannot_tell_the_mix_does_not_say_that_it_agrees():
    _, labels = worlds.draw(2000, 0)
    same = np.tile(worlds.PRIORS, (2000, 1))
    useless = worlds.cheaply(StreamSchema("useless", ("a", "b", "c")), same, labels, None)
    found = assess(Window.of(same), useless)
    assert found.verdict is Verdict.STABLE
    assert not found.prevalence.unique
    assert found.reasons[-1] == "the posteriors cannot tell what the class mix is"


def test_a_flag_in_one_event_in_five_hundred_is_no_alarm():
    """Two events with the flag where 0.6 were expected are one window in eight; taken for normal, an alarm."""

    def scored(rows, seed):
        x, labels = worlds.draw(rows, seed)
        rare = np.random.default_rng(seed + 7).random(rows) < 0.002
        return worlds.posteriors(x), labels, np.column_stack([x[:, :2] > 0.5, rare]).astype(float)

    g, labels, flags = scored(5000, 1000)
    schema = StreamSchema("flags", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(3)))
    reference = worlds.cheaply(schema, g, labels, flags)
    windows = [scored(300, seed) for seed in range(1001, 1041)]
    found = [assess(Window.of(g, flags), reference).verdict for g, _, flags in windows]
    assert found.count(Verdict.STABLE) >= 38


def made_of_one_telling_feature(rows, seed):
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < 0.1).astype(int)
    z = rng.normal(size=rows) + 1.8 * labels
    scores = 1 / (1 + np.exp(2.6 - 1.8 * z))
    return np.column_stack([1 - scores, scores]), labels, np.column_stack([np.exp(z).round(2), rng.random(rows) < 0.3])


def test_inputs_that_hardly_tell_the_class_mix_are_not_said_to_show_that_it_has_not_moved():
    g, labels, x = made_of_one_telling_feature(1_500, 0)
    scores, _, inputs = made_of_one_telling_feature(240, 3)
    moved = inputs * [2.0, 1.0] + [3.0, 0.0]
    found = assess(Window.of(scores, moved), Reference.fit(g, labels, x))
    assert found.verdict == "covariate-shift"
    assert found.reasons[-1] == "the other inputs hardly tell the class mix: it may have moved too"
    assert not found.recalibration.apply

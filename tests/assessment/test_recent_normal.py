"""What was normal lately: drift becomes normal, a sudden change does not for some windows, and both are told."""

from functools import cache

import msgspec
import numpy as np
import pytest

from monitor import assess
from monitor.assessment import Verdict, against_recent
from monitor.assessment.recent_normal import RecentNormal, begun
from monitor.ports.schema import Feature, StreamSchema
from monitor.reference.blocks import cut
from monitor.shifts import prepare
from monitor.shifts.moments import ridged_inverse
from monitor.shifts.window_profile import lens
from monitor.tolerances import RECENT_WINDOWS
from monitor.windows import Window
from tests.assessment import worlds

ROWS = 250
BLOCKS = 24


def blocks(number, seed, offset):
    """Consecutive blocks of the tests' world: features and labels; `offset(k, rng)` is added to block k."""
    rng = np.random.default_rng(seed)
    for k in range(number):
        labels = rng.choice(3, size=ROWS, p=worlds.PRIORS)
        yield worlds.features(labels, rng) + offset(k, rng), labels


def wandering(_, rng):
    """Natural variation."""
    return 0.2 * rng.normal(size=4)


@cache
def reference(*, cut_up=True):
    """A hold-out that varies."""
    x, labels = (np.concatenate(each) for each in zip(*blocks(BLOCKS, 0, wandering), strict=True))
    schema = StreamSchema("world", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(4)))
    return worlds.cheaply(schema, worlds.posteriors(x), labels, x, cut(ROWS, labels.size) if cut_up else None)


def followed(parts, known, normal=None):
    """Every window's assessment with both baselines."""
    found = []
    for x, _ in parts:
        assessment, normal = against_recent(assess(Window.of(worlds.posteriors(x), x), known), known, normal)
        found.append(assessment)
    return found


def moved(found):
    """Which windows are not as recent ones."""
    return [k for k, one in enumerate(found) if one.baselines["recent"].verdict is not Verdict.STABLE]


def test_calm_windows_are_as_recent_ones_from_the_first_on() -> None:
    assert len(moved(followed(blocks(60, 2, wandering), reference()))) <= 2


def test_a_feature_in_another_unit_is_told_and_named_beside_windows_that_wander() -> None:
    def changed(k, rng):
        return wandering(k, rng) + 1.2 * (k == 20) * np.eye(4)[2]

    told = followed(blocks(21, 4, changed), reference())[-1].baselines["recent"]
    assert told.verdict is Verdict.COVARIATE_SHIFT
    assert told.moved[0] == "x2"


def test_a_window_has_to_be_farther_than_many_windows_were_and_not_the_last_twenty_alone() -> None:
    parts, normal = list(blocks(3, 5, wandering)), None
    for x, _ in parts:
        _, normal = against_recent(assess(Window.of(worlds.posteriors(x), x), reference()), reference(), normal)
    storms = msgspec.structs.replace(normal, long=(100.0, normal.long[1], 4.0))
    x = parts[0][0] + 1.5 * np.eye(4)[1]
    quiet, stormy = (followed([(x, None)], reference(), known)[0].baselines["recent"] for known in (normal, storms))
    assert quiet.moved == ("x1",)
    assert stormy.moved == ()


def test_a_normal_that_was_kept_without_what_many_windows_say_goes_on() -> None:
    found, normal = [], None
    for x, _ in blocks(12, 6, wandering):
        assessment, normal = against_recent(
            assess(Window.of(worlds.posteriors(x), x), reference()), reference(), normal
        )
        found.append(assessment)
    kept = msgspec.structs.replace(normal, long=(0.0, 0.0, 0.0), features=())
    assert followed(blocks(3, 7, wandering), reference(), kept)[-1].baselines["recent"].verdict is Verdict.STABLE
    assert len(normal.features) == 4


def test_what_drifts_is_no_longer_as_in_the_reference_but_as_recent_windows() -> None:
    drift = followed(blocks(60, 1, lambda k, rng: wandering(k, rng) + 0.03 * k), reference())
    late = drift[40:]
    assert sum(one.verdict is not Verdict.STABLE for one in late) >= 15
    assert len(moved(late)) <= 2


def test_a_regime_change_is_told_by_both_and_then_by_the_reference_alone() -> None:
    changed = followed(blocks(60, 1, lambda k, rng: wandering(k, rng) + 1.5 * (k >= 30) * np.eye(4)[1]), reference())
    told = moved(changed)
    assert {30, 31} <= set(told)
    assert "x1" in changed[30].baselines["recent"].moved
    assert "recent windows" in changed[30].baselines["recent"].reasons[0]
    assert len([k for k in told if k > 40]) <= 1
    assert all(one.verdict is not Verdict.STABLE for one in changed[30:])


def test_one_strange_window_neither_becomes_normal_nor_hides_the_next() -> None:
    strange = followed(blocks(40, 1, lambda k, rng: wandering(k, rng) + 4.0 * (k in {20, 30})), reference())
    told = moved(strange)
    assert {20, 30} <= set(told)
    assert len(told) <= 4


def test_without_blocks_the_normal_is_learnt_from_windows() -> None:
    known = reference(cut_up=False)
    found = followed(blocks(50, 1, lambda k, rng: wandering(k, rng) + 4.0 * (k == 40)), known)
    assert all("recent" not in one.baselines for one in found[:10])
    assert "recent" in found[15].baselines
    rest = found[15:]
    assert {25} <= {k for k, one in enumerate(rest) if one.baselines["recent"].verdict is not Verdict.STABLE}
    assert len(moved(rest)) <= 3


def test_a_stream_without_features_has_a_recent_normal_too() -> None:
    x, labels = (np.concatenate(each) for each in zip(*blocks(BLOCKS, 0, wandering), strict=True))
    schema = StreamSchema("world", ("a", "b", "c"))
    known = worlds.cheaply(schema, worlds.posteriors(x), labels, None, cut(ROWS, labels.size))
    found, normal = [], None
    for x, _ in blocks(30, 2, lambda k, rng: wandering(k, rng) + 2.0 * (k == 25)):
        window, normal = against_recent(assess(Window.of(worlds.posteriors(x)), known), known, normal)
        found.append(window)
    assert 25 in moved(found)
    assert len(moved(found)) <= 3


def test_a_window_with_too_few_events_changes_nothing() -> None:
    x = np.zeros((5, 4))
    few = assess(Window.of(worlds.posteriors(x), x), reference())
    normal = begun(lens(prepare(reference())))
    found, after = against_recent(few, reference(), normal)
    assert after is normal
    assert "recent" not in found.baselines


def test_the_normal_is_bounded_and_survives_json() -> None:
    normal = begun(lens(prepare(reference())))
    assert len(normal.statistics) <= RECENT_WINDOWS
    again = msgspec.json.decode(msgspec.json.encode(normal), type=RecentNormal)
    assert again == normal
    assert len(msgspec.json.encode(normal)) < 30_000
    x, _ = next(blocks(1, 3, wandering))
    assessment = assess(Window.of(worlds.posteriors(x), x), reference())
    assert against_recent(assessment, reference(), again)[1] == against_recent(assessment, reference(), normal)[1]


def test_profiles_are_what_their_formulas_say() -> None:
    """The squared length of `whole` is T: what the best shares leave over, by least squares."""
    of_reference = lens(prepare(reference()))
    x, _ = next(blocks(1, 3, wandering))
    assessment = assess(Window.of(worlds.posteriors(x), x), reference())
    profile = of_reference.profile(assessment.mean, ROWS)
    assert profile is not None
    assert profile.shares.sum() == pytest.approx(1, abs=1e-5)
    moments = of_reference.moments
    sampling = ridged_inverse(np.tensordot(moments.source_priors, moments.within, axes=1))
    weights = of_reference.blocks.variation.inverse(sampling * of_reference.rows, of_reference.rows)
    root = np.linalg.cholesky(weights).T
    left = assessment.mean / moments.scale - moments.means[0]
    _, squares, _, _ = np.linalg.lstsq(root @ (moments.means[1:] - moments.means[0]).T, root @ left, rcond=None)
    assert (profile.whole**2).sum() == pytest.approx(float(squares[0]), rel=1e-3)

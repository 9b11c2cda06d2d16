"""Windows are held against how much the blocks of the hold-out differ, and against sampling alone where they do not."""

from functools import cache

import numpy as np
import pytest
from scipy.stats import kstwobign

from monitor import assess
from monitor.arrays import present
from monitor.assessment import Verdict
from monitor.ports.schema import Feature, StreamSchema
from monitor.reference.blocks import cut
from monitor.shifts import fit
from monitor.shifts.blocks import BlockSums
from monitor.shifts.distance_laws import (
    KOLMOGOROV_MEAN,
    KOLMOGOROV_SPREAD,
    KOLMOGOROV_SQUARE,
    alike_spreads,
    distance_laws,
)
from monitor.shifts.prepared import prepare
from monitor.shifts.variation import Law, shrunk
from monitor.windows import Window
from tests.assessment import worlds

ROWS = 250
BLOCKS = 24


def drawn(blocks, seed, spread):
    """Blocks of the world of the tests, each with centres of its own: off by so many standard deviations."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, size=ROWS * blocks, p=worlds.PRIORS)
    x = worlds.features(labels, rng) + np.repeat(spread * rng.normal(size=(blocks, 4)), ROWS, axis=0)
    return x, labels


@cache
def reference(spread, *, seed=0, block=ROWS, number=BLOCKS):
    """A hold-out of such blocks."""
    x, labels = drawn(number, seed, spread)
    schema = StreamSchema("world", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(4)))
    blocks = None if block is None else cut(block, labels.size)
    return worlds.cheaply(schema, worlds.posteriors(x), labels, x, blocks)


def windows(number, spread, change=lambda x: None):
    """Windows of the same kind, after a change."""
    x, _ = drawn(number, 100, spread)
    for part in np.split(x, number):
        change(part)
        yield Window.of(worlds.posteriors(part), part)


def verdicts(known, told):
    """What is said of each."""
    return [assess(window, known).verdict for window in told]


def test_calm_windows_of_a_stream_that_varies_are_stable_and_are_not_without_blocks() -> None:
    calm = list(windows(40, 0.25))
    assert verdicts(reference(0.25), calm).count(Verdict.STABLE) >= 37
    assert verdicts(reference(0.25, block=None), calm).count(Verdict.STABLE) <= 20


def test_a_hold_out_of_few_windows_knows_that_they_vary_by_its_parts() -> None:
    calm = list(windows(40, 0.25))
    known = [reference(0.25, seed=seed, number=9) for seed in range(3)]
    assert all(one.blocks.parts == 3 for one in known)
    assert sum(verdicts(one, calm).count(Verdict.STABLE) for one in known) >= 90
    assert verdicts(reference(0.25, number=9, block=None), calm).count(Verdict.STABLE) <= 20
    assert fit.block_matches(prepare(reference(0.0, number=9)).moments).variation is None
    moved = [assess(window, known[0]) for window in windows(3, 0.25, lambda x: np.multiply(x, 2.54, out=x))]
    assert all("the hold-out is only 9 times as long as a window" in " ".join(one.reasons) for one in moved)


def test_a_changed_unit_is_found_on_top_of_natural_variation() -> None:
    def doubled(x):
        x[:, 1] *= 2.54

    told = [assess(window, reference(0.25)) for window in windows(20, 0.25, doubled)]
    assert sum(one.verdict is not Verdict.STABLE for one in told) >= 19


def test_on_independent_events_the_test_is_that_without_blocks() -> None:
    with_blocks, without = prepare(reference(0.0)), prepare(reference(0.0, block=None))
    assert fit.block_matches(with_blocks.moments).variation is None
    mean = with_blocks.moments.means[0]
    assert fit.match(with_blocks.moments, mean, 300).p_value == fit.match(without.moments, mean, 300).p_value


def test_a_block_is_as_far_from_the_others_as_from_a_reference_that_has_not_seen_it() -> None:
    x, labels = drawn(BLOCKS, 0, 0.25)
    schema = StreamSchema("world", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(4)))
    known = fit.block_matches(prepare(reference(0.25)).moments)
    for k in (0, 11, 23):
        own = slice(k * ROWS, (k + 1) * ROWS)
        left, rest = np.delete(x, own, axis=0), np.delete(labels, own)
        others = worlds.cheaply(schema, worlds.posteriors(left), rest, left, cut(ROWS, rest.size))
        found = assess(Window.of(worlds.posteriors(x[own]), x[own]), others).tests["label-shift-fit"]
        assert np.log(found.statistic) == pytest.approx(np.log(known.statistics[k]), abs=0.3)


def test_neighbouring_blocks_that_vary_as_one_are_one_stretch() -> None:
    rng = np.random.default_rng(3)
    walk = np.zeros((40, 4))
    for k in range(1, 40):
        walk[k] = 0.9 * walk[k - 1] + 0.2 * rng.normal(size=4)
    labels = rng.choice(3, size=ROWS * 40, p=worlds.PRIORS)
    x = worlds.features(labels, rng) + np.repeat(walk, ROWS, axis=0)
    schema = StreamSchema("world", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(4)))
    of_walk = worlds.cheaply(schema, worlds.posteriors(x), labels, x, cut(ROWS, labels.size)).blocks
    assert 5 <= of_walk.stretches <= 20
    assert (np.diff(of_walk.stretch) >= 0).all()
    assert reference(0.25).blocks.stretches == reference(0.0).blocks.stretches == BLOCKS
    assert fit.block_matches(prepare(reference(0.25)).moments).law.degrees == BLOCKS - 1


def test_where_every_input_drifts_the_inputs_are_named_and_nothing_is_unexplained() -> None:
    def drifted(x):
        x += 3.0 * np.array([1.0, -1.0, 1.0, -1.0])

    told = [assess(window, reference(0.25)) for window in windows(10, 0.25, drifted)]
    assert all(one.verdict in {Verdict.COVARIATE_SHIFT, Verdict.PRIOR_AND_COVARIATE_SHIFT} for one in told)
    assert all(len(one.baselines["reference"].moved) >= 2 for one in told)


def test_few_references_of_independent_events_are_taken_for_ones_that_vary() -> None:
    rng = np.random.default_rng(0)
    counts, varied = np.full((20, 2), 50.0), 0
    for _ in range(200):
        sums = rng.normal(size=(20, 2, 30)) * np.sqrt(50)
        blocks = BlockSums(sums, counts, np.arange(20), whole_windows=True)
        scaled = np.sqrt(blocks.rows)[:, None] * blocks.residuals
        varied += not fit.exchangeable(scaled @ scaled.T, np.eye(30))
    assert varied <= 20


def test_the_covariance_is_that_of_ledoit_and_wolf_at_the_size_of_a_block() -> None:
    rng = np.random.default_rng(0)
    c = np.diag(rng.uniform(0.5, 2, 6))
    w, m = np.linalg.inv(c), 40.0
    scaled = rng.multivariate_normal(np.zeros(6), c + 3 * np.outer(np.ones(6), np.ones(6)), 15)
    found = shrunk(scaled, scaled @ w @ scaled.T, m)
    root = np.diag(np.sqrt(1 / np.diag(c)))
    z = scaled @ root
    whole = z.T @ z / 15
    mu = np.trace(whole) / 6
    apart = ((whole - mu * np.eye(6)) ** 2).sum()
    noise = sum(((np.outer(row, row) - whole) ** 2).sum() for row in z) / 15**2
    weight = min(noise, apart) / apart
    star = (1 - weight) * whole + weight * mu * np.eye(6)
    back = np.linalg.inv(root)
    assert found.design_effect == pytest.approx(mu)
    np.testing.assert_allclose(found.inverse(w * m, m), np.linalg.inv(back @ star @ back / m), rtol=1e-8)
    values, vectors = np.linalg.eigh(star)
    longer = vectors @ np.diag(np.where(values > 1, 1 + (values - 1) * 3, values)) @ vectors.T
    np.testing.assert_allclose(
        found.inverse(w * 3 * m, 3 * m), np.linalg.inv(back @ longer @ back / (3 * m)), rtol=1e-8
    )


def test_a_statistic_is_held_against_the_blocks_by_student_s_law() -> None:
    law = Law.of(np.exp(np.array([1.0, 2.0, 3.0])))
    assert law.p_value(np.exp(2.0)) == pytest.approx(0.5)
    assert law.p_value(np.exp(9.0)) == pytest.approx(0.0131, abs=0.0002)
    assert law.p_value(0.0) == 1.0


def test_the_spread_of_a_few_windows_is_drawn_towards_that_of_real_streams() -> None:
    logs = np.array([1.0, 1.1, 1.2, 1.3])
    law = Law.of(np.exp(logs))
    few = law.worth(4)
    assert few.spread**2 == pytest.approx((4 * 0.5**2 + 3 * law.spread**2) / 7)
    assert (few.blocks, few.degrees) == (4, 7)
    assert law.worth(3).degrees == 6
    many = Law.of(np.exp(np.linspace(1, 2, 12)))
    assert many.worth(12).spread == many.spread
    assert many.worth(10).spread == many.spread


def test_a_hold_out_of_three_windows_calls_calm_windows_stable_and_finds_a_changed_unit() -> None:
    known = reference(0.25, number=3)
    assert set(verdicts(known, windows(12, 0.25))) == {Verdict.STABLE}

    def inches(x):
        x[:, 1] *= 2.54

    found = verdicts(known, windows(12, 0.25, inches))
    assert sum(verdict is not Verdict.STABLE for verdict in found) >= 8


def test_spreads_that_are_alike_become_one_and_of_others_only_the_narrowest_widen() -> None:
    rng = np.random.default_rng(0)
    alike = alike_spreads([Law.of(np.exp(rng.normal(size=12))) for _ in range(30)])
    assert np.ptp([law.spread for law in alike]) < 0.2
    assert all(law.degrees > 60 for law in alike)
    unlike = [Law.of(np.exp(scale * rng.normal(size=12))) for scale in np.geomspace(0.01, 10, 30)]
    after = alike_spreads(unlike)
    assert after[0].spread > 1.5 * unlike[0].spread
    assert all(
        new.spread == pytest.approx(old.spread, rel=0.3) for new, old in zip(after[20:], unlike[20:], strict=True)
    )
    assert alike_spreads([None, *unlike[:2]]) == [None, *unlike[:2]]


def test_values_that_go_missing_now_and_then_may_do_so_again_and_those_that_never_did_may_not() -> None:
    x, labels = drawn(BLOCKS, 0, 0.25)
    rng = np.random.default_rng(1)
    for k in (3, 9, 15, 21):
        x[k * ROWS : (k + 1) * ROWS, 0][rng.random(ROWS) < 0.1 * (k % 4 + 1)] = np.nan
    schema = StreamSchema("world", ("a", "b", "c"), tuple(Feature(f"x{j}") for j in range(4)))
    filled = np.nan_to_num(x)
    sparse, whole, *_ = distance_laws(
        prepare(worlds.cheaply(schema, worlds.posteriors(filled), labels, x, cut(ROWS, labels.size)))
    )
    assert sparse.missing_p(0.3) > 0.005
    assert whole.missing_p(0.01) == 0.0


def test_the_moments_of_kolmogorov_s_law_are_right() -> None:
    assert kstwobign.mean() == pytest.approx(KOLMOGOROV_MEAN, abs=1e-6)
    assert kstwobign.std() == pytest.approx(KOLMOGOROV_SPREAD, abs=1e-3)
    assert kstwobign.var() + kstwobign.mean() ** 2 == pytest.approx(KOLMOGOROV_SQUARE, abs=1e-6)


def test_a_feature_is_as_far_from_the_reference_as_time_takes_it_whatever_the_size_of_the_window() -> None:
    laws = distance_laws(prepare(reference(0.25)))
    assert all(law.law is not None for law in laws)
    assert all(law.p_value(0.04, 5_000) > law.p_value(0.12, 5_000) for law in laws)
    assert min(law.p_value(0.05, 1e6) for law in laws) > 0.05
    assert not any(law.law for law in distance_laws(prepare(reference(0.0, seed=1))))


def test_whatever_is_said_of_a_window_can_be_published() -> None:
    def apart(x):
        x[:40] += np.array([-9.0, -9.0, 9.0, 9.0])

    for change in (apart, lambda x: None, lambda x: np.multiply(x, 2.54, out=x)):
        for window in windows(3, 0.25, change):
            assert assess(window, reference(0.25)).to_json()
    for window in windows(3, 0.0):
        assert assess(window, reference(0.0)).to_json()


def wide(blocks, seed, size=100, inputs=40):
    """Short blocks of many inputs, each with centres of its own, and inputs that are tied to four values."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, size * blocks)
    x = rng.normal(size=(labels.size, inputs)) + 0.5 * labels[:, None]
    x += np.repeat(0.3 * rng.normal(size=(blocks, inputs)), size, axis=0)
    x[:, 0] = np.clip(np.round(x[:, 0] + 2), 0, 3)
    odds = np.exp(0.3 * (x[:, 1:9] - 0.25).sum(axis=1))
    return np.column_stack([1 / (1 + odds), odds / (1 + odds)]), labels, x


@cache
def wide_reference(seed, blocks=12, size=100):
    scores, labels, x = wide(blocks, seed, size)
    schema = StreamSchema("wide", ("a", "b"), tuple(Feature(f"x{j}") for j in range(x.shape[1])))
    return worlds.cheaply(schema, scores, labels, x, cut(size, labels.size))


def test_a_block_is_no_nearer_to_the_others_than_a_window_is_to_all_of_them() -> None:
    law = present(fit.block_matches(prepare(wide_reference(0)).moments), "matches").law
    scores, _, x = wide(20, 7)
    parts = zip(np.split(scores, 20), np.split(x, 20), strict=True)
    seen = [assess(Window.of(*part), wide_reference(0)) for part in parts]
    fresh = np.mean([np.log(one.tests["label-shift-fit"].statistic) for one in seen])
    assert fresh == pytest.approx(present(law, "law").mean, abs=0.2)
    assert sum(one.verdict is Verdict.STABLE for one in seen) >= 19


def test_the_distance_of_tied_numbers_is_held_against_what_sampling_makes_of_tied_numbers() -> None:
    assert distance_laws(prepare(wide_reference(1, blocks=24, size=200)))[0].law is not None


def dated(blocks, seed, begin):
    """The world of the tests with a feature that tells how long it has been running."""
    x, labels = drawn(blocks, seed, 0.25)
    weeks = begin + np.repeat(np.arange(blocks) // 2, ROWS) + np.random.default_rng(seed).normal(size=labels.size)
    return np.column_stack([x, weeks]), labels


def test_a_feature_that_a_stream_ignores_is_in_no_test_and_the_others_are_held_against_the_blocks_as_before() -> None:
    x, labels = dated(BLOCKS, 0, 0)
    schema = StreamSchema("world", ("a", "b", "c"), tuple(Feature(name) for name in ("x0", "x1", "x2", "x3", "week")))
    known = worlds.cheaply(schema, worlds.posteriors(x), labels, x, cut(ROWS, labels.size))
    later = [Window.of(worlds.posteriors(part), part) for part in np.split(dated(20, 100, 60)[0], 20)]
    assert Verdict.STABLE not in verdicts(known, later)
    ignoring = known.ignoring(("week", "nothing of the kind"))
    assert verdicts(ignoring, later).count(Verdict.STABLE) >= 18
    law = present(fit.block_matches(prepare(ignoring).moments), "matches").law
    plain = present(fit.block_matches(prepare(reference(0.25)).moments), "matches").law
    assert present(law, "law").mean == pytest.approx(present(plain, "law").mean, abs=0.05)

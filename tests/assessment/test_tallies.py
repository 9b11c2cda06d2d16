"""Events above the maximum are counted before their rows go: what needs no rows is said of all, as if all were kept."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.arrays import Labels
from monitor.assessment import Assessment, Tallying, Verdict, assess
from monitor.ports.schema import Feature, StreamSchema
from monitor.reference import Reference
from monitor.windows import Gap, Origin, Part, PartWindows, Tally, TimePlan, Window
from monitor.windows.parts import PartitionRead
from monitor.windows.window import merge, ordered, sampled
from tests.assessment import worlds

EVENTS, KEPT = 9_000, 1_500
MOVED = (0.3, 0.3, 0.4)
BY_SUMS = ("cc", "pcc", "acc", "acc-qp", "pacc")
REFERENCES = {"numbers": worlds.reference, "scores": worlds.plain_reference, "mixed": worlds.mixed_reference}


def world(kind: str, seed: int = 1) -> Window:
    """Some values are missing, and one posterior is none."""
    x, _ = worlds.draw(EVENTS, seed, MOVED)
    g = worlds.posteriors(x)
    g[7] = np.nan
    if kind == "scores":
        return Window.of(g)
    table = x if kind == "numbers" else worlds.mixed(x, seed)
    table[np.random.default_rng(seed).random(EVENTS) < 0.003, 1] = np.nan
    return Window.of(g, table)


def in_parts(window: Window, kind: str, parts: int, seed: int) -> Window:
    """Dealt out at random, sampled and counted part by part, and put together again in some order."""
    rng, tally = np.random.default_rng(seed), Tallying(REFERENCES[kind]())
    dealt = np.array_split(rng.permutation(window.events), np.sort(rng.integers(0, window.events, parts - 1)))
    waiting = [sampled(window.take(rows), KEPT, tally=tally) for rows in dealt]
    while len(waiting) > 1:
        some, others = waiting[:3], waiting[3:]
        waiting = [*others, sampled(merge(some), KEPT, tally=tally)]
    return replace(ordered(waiting[0]), origin=Origin(("p",), gaps=(Gap.SAMPLED,)))


def compare(all_rows: Assessment, counted: Assessment) -> None:
    for name, shift in {**all_rows.features, **all_rows.posteriors}.items():
        move, again = shift.move, {**counted.features, **counted.posteriors}[name].move
        if move.test == "ks":
            assert again.plain_distance == move.plain_distance
        assert (again.n, again.missing_rate) == (move.n, move.missing_rate)
        assert again.missing_p == pytest.approx(move.missing_p, rel=1e-10)
        assert again.distance == pytest.approx(move.distance, abs=1e-9)
    for name in BY_SUMS:
        one, same = all_rows.estimates[name], counted.estimates[name]
        for part in ("priors", "lower", "upper"):
            assert getattr(same, part) == pytest.approx(getattr(one, part), abs=1e-9)
        assert same.events == one.events
    for name in ("label-shift-fit", "features"):
        if name in all_rows.tests:
            test, again_tested = all_rows.tests[name], counted.tests[name]
            assert again_tested.events == test.events
            assert again_tested.statistic == pytest.approx(test.statistic, rel=1e-10)
    assert counted.mean == pytest.approx(all_rows.mean, abs=1e-9)


@pytest.mark.parametrize("kind", REFERENCES)
def test_what_needs_no_rows_is_that_of_all_events_where_a_sixth_of_them_is_kept(kind: str) -> None:
    all_rows = assess(ordered(world(kind)), REFERENCES[kind]())
    counted = assess(in_parts(world(kind), kind, 5, 0), REFERENCES[kind]())
    assert (counted.events + counted.unusable, counted.counts.sampled_out) == (KEPT, EVENTS - KEPT)
    assert counted.verdict is all_rows.verdict is Verdict.PRIOR_SHIFT
    compare(all_rows, counted)
    assert counted.quality.missing == all_rows.quality.missing
    assert counted.quality.outside_range == all_rows.quality.outside_range
    if all_rows.sketches is not None and counted.sketches is not None:
        for name, sketch in all_rows.sketches.scores.items():
            assert counted.sketches.scores[name].counts.tolist() == sketch.counts.tolist()


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_the_answer_is_the_same_bytes_however_the_events_were_dealt_out(parts: int, seed: int) -> None:
    whole = assess(in_parts(world("mixed"), "mixed", 1, 0), worlds.mixed_reference())
    assert assess(in_parts(world("mixed"), "mixed", parts, seed), worlds.mixed_reference()).to_json() == whole.to_json()


def test_a_result_says_what_rests_on_a_sample_and_nothing_where_all_rows_are_kept() -> None:
    told = assess(in_parts(world("numbers"), "numbers", 3, 0), worlds.reference()).to_result()
    assert {name: one.based_on for name, one in told.estimates.items()} == {
        "em": "sample", "em-debiased": "sample", **dict.fromkeys(BY_SUMS, "all")
    }  # fmt: skip
    assert {name for name, one in told.tests.items() if one.based_on == "all"} == {
        "label-shift-fit", "class-mix", "features"
    }  # fmt: skip
    assert {one.based_on for one in told.features.values()} == {"all"}
    em, pacc = told.estimates["em"], told.estimates["pacc"]
    assert em.upper["a"] - em.lower["a"] > 1.5 * (pacc.upper["a"] - pacc.lower["a"])
    assert b'"based_on":"sample"' not in assess(world("numbers"), worlds.reference()).to_json()


@pytest.mark.parametrize("known", ["nothing", "some", "by another reference"])
def test_counts_that_are_not_all_that_was_left_out_take_no_part(known: str) -> None:
    counted = in_parts(world("numbers"), "numbers", 2, 0)
    assert counted.left_out is not None
    spoilt = {
        "nothing": None,
        "some": replace(counted.left_out, rows=counted.left_out.rows - 1),
        "by another reference": counted.left_out + Tally(0, 0, "another", {}),
    }[known]
    told = assess(replace(counted, left_out=spoilt), worlds.reference()).to_result()
    assert {one.based_on for one in [*told.estimates.values(), *told.features.values()]} == {"sample"}
    alone = assess(counted.alone(), worlds.reference())
    assert told == alone.to_result()


def test_a_moved_feature_is_explained_by_the_sample_and_found_in_all() -> None:
    x, _ = worlds.draw(EVENTS, 3)
    g = worlds.posteriors(x)
    x[:, 2] = 2.54 * x[:, 2] + 1
    found = assess(in_parts(Window.of(g, x), "numbers", 4, 0), worlds.reference())
    whole = assess(ordered(Window.of(g, x)), worlds.reference())
    assert found.verdict is whole.verdict
    assert found.features["x2"].kind == whole.features["x2"].kind == "linear"
    assert found.features["x2"].alpha == pytest.approx(2.54, abs=0.2)
    assert found.features["x2"].move.plain_distance == whole.features["x2"].move.plain_distance


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_ten_million_events_in_a_thousand_parts_are_one_window_of_all_rows_in_bounded_memory() -> None:
    parts, rows, most, end = 1_000, 10_000, 100_000, 10**9
    reference = narrow_reference()
    plan = TimePlan(end, end, 0, most, tally=Tallying(reference))

    def chunk(number: int) -> Window:
        rng = np.random.default_rng(number)
        return replace(narrow(rows, rng, 0.4)[0], timestamps=rng.integers(0, end, rows))

    store: dict[str, bytes] = {}
    windows, largest = PartWindows.begun("s", plan, store, None), 0
    for number in np.random.default_rng(0).permutation(parts).tolist():
        part = Part("s", 0, {f"p{number}": PartitionRead(((0, 1),), 0)}, chunk(number))
        windows.take([(part, part.encoded())])
        largest = max(largest, sum(map(len, store.values())))
    last = Part("s", end, {f"p{number}": PartitionRead(((1, 2),), end) for number in range(parts)})
    windows.take([(last, last.encoded())])
    (window,) = windows.close(list(last.seen), [], None)
    assert largest < (2 * most + rows) * 4 * 8 * 1.02 + 1_000_000
    counted = assess(window, reference)
    all_rows = assess(ordered(merge([chunk(number) for number in range(parts)])), reference)
    assert (counted.events, counted.counts.sampled_out) == (most, parts * rows - most)
    assert counted.verdict is all_rows.verdict is Verdict.PRIOR_SHIFT
    compare(all_rows, counted)


def narrow(rows: int, rng: np.random.Generator, positive: float) -> tuple[Window, Labels]:
    """Two classes and one feature."""
    labels = (rng.random(rows) < positive).astype(np.int64)
    x = rng.normal(labels * 1.5, 1.0)
    score = 1 / (1 + np.exp(1.125 - np.log(0.25) - 1.5 * x))
    return Window.of(np.column_stack([1 - score, score]), x[:, None]), labels


def narrow_reference() -> Reference:
    window, labels = narrow(20_000, np.random.default_rng(99), 0.2)
    schema = StreamSchema("narrow", ("no", "yes"), (Feature("x"),))
    return worlds.cheaply(schema, window.posteriors, labels, window.features)

"""Outcomes of regressors: the errors of predictions by late labels, and what the published correction made of them."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from connectors.memory import MemoryLog, MemorySink, MemorySource
from monitor.assessment import assess_regression, encode
from monitor.events.decoding import Decoder
from monitor.labels import REGRESSION_OUTCOMES, RegressionOutcome, Waiting
from monitor.labels.regression_outcome_message import json_schema
from monitor.labels.rows import ids
from monitor.labels.store import LabelStore
from monitor.labels.values import NO_COPIES, Arrived, Awaited, Stateless
from monitor.performance import Limit, gain, prediction_errors
from monitor.reference import RegressionReference
from monitor.service.loop import Pace, Service
from monitor.service.publishing import Watched
from monitor.state import StatePlan, WindowSeen
from monitor.windows import CountPlan, Window, WindowKey, WindowSummary
from tests.labels.test_outcomes import Crash, Crashing
from tests.service import regression_streams as streams
from tests.service.test_loop import after
from tests.service.test_regression_streams import EVENTS_A_MINUTE, MINUTE, events, plan, records

NONE = np.empty(0, dtype=np.int64)


def waits(window: Window, reference: RegressionReference) -> Waiting:
    """A window that was assessed, and waits for its labels; without those that it is given."""
    window = replace(window, timestamps=np.arange(window.events))
    parts = [WindowSeen(assess_regression(window, reference), WindowSummary.of(window), 0.0)]
    told, rows = REGRESSION_OUTCOMES.waits(replace(window, targets=None), parts, reference)
    key = window.key
    return Waiting("prices", key.id, key.start, key.end, key.end, key.end, window.events, told, rows)


def outcome_of(one: Waiting, labels: np.ndarray, copies: Stateless = NO_COPIES) -> RegressionOutcome:
    first, *_ = REGRESSION_OUTCOMES.outcomes(one, streams.labels_of(labels), copies, 0, ())
    assert isinstance(first.result, RegressionOutcome)
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(encode(first.result)))
    return first.result


def drawn(known: float = 0.2, **world: Any) -> tuple[Window, np.ndarray]:
    """A window whose evidence is fifty labels, and all of its labels, of which so many come."""
    said, y, x = streams.columns(1_000, 3, **world)
    key = WindowKey("prices", "", 0, 60_000_000)
    gathered = np.where(np.arange(1_000) < 80, y, np.nan)
    came = np.where(np.random.default_rng(1).random(1_000) < known, y, np.nan)
    return replace(Window.of_predictions(said, x, gathered), key=key), came


def test_errors_are_those_of_the_labels_beside_the_hold_outs() -> None:
    window, labels = drawn()
    found = outcome_of(waits(window, streams.reference()), labels)
    there = ~np.isnan(labels)
    said = window.predictions
    assert said is not None
    expected = prediction_errors(labels[there], said[there], 1_000)
    reference = streams.reference()
    usual = {"rmse": reference.error, "mae": reference.absolute_error, "bias": reference.bias}
    assert found.performance.keys() == expected.keys() == usual.keys()
    for name, error in found.performance.items():
        assert (error.realised, error.lower, error.upper) == (
            expected[name].value,
            expected[name].lower,
            expected[name].upper,
        )
        assert error.reference == usual[name]
        assert error.lower < usual[name] < error.upper
    assert found.labels.joined == there.sum()
    assert found.labels.missing == 1_000 - there.sum()
    assert found.withheld == ""
    assert found.correction.finding == "not-recommended"
    assert found.correction.reason.startswith("nothing was recommended: the labels agree")
    assert not found.applied
    assert found.labels_within == 9.0


def test_a_correction_that_was_right_has_helped_by_as_much_as_the_errors_say() -> None:
    window, labels = drawn(factors=streams.DOUBLED)
    found = outcome_of(waits(window, streams.reference()), labels)
    assert found.applied
    correction = found.correction
    assert correction.finding == "helped"
    assert correction.labels == found.labels.joined
    assert correction.error_without == found.performance["rmse"].realised
    assert correction.error_with is not None
    assert correction.error_with < 0.6 * correction.error_without
    assert correction.difference == pytest.approx(correction.error_with - correction.error_without)
    assert correction.lower is not None
    assert correction.upper is not None
    assert correction.lower < correction.difference < correction.upper < 0
    assert correction.reason.startswith("the correction helped: error ")


def test_a_correction_that_was_wrong_has_done_harm_and_that_is_said() -> None:
    window, _ = drawn(factors=streams.DOUBLED)
    back, labels = drawn()  # the relation is that of the reference again when the labels come
    np.testing.assert_array_equal(window.predictions, back.predictions)
    found = outcome_of(waits(window, streams.reference()), labels)
    assert found.correction.finding == "harmed"
    assert found.correction.lower is not None
    assert found.correction.lower > 0


def test_below_thirty_labels_nothing_is_said_of_errors_nor_of_the_correction() -> None:
    window, labels = drawn(factors=streams.DOUBLED)
    few = np.where(np.cumsum(~np.isnan(labels)) <= 29, labels, np.nan)
    one = waits(window, streams.reference())
    found = outcome_of(one, few)
    assert (found.labels.joined, found.performance) == (29, {})
    assert found.withheld == "29 labels of 1,000 events: 30 are needed"
    assert found.correction.finding == "too-few-labels"
    assert "29 labels" in found.correction.reason
    assert outcome_of(one, np.full(1_000, np.nan)).labels_within is None


def test_the_labels_of_a_small_window_say_something_when_they_are_all() -> None:
    said, y, x = streams.columns(12, 3)
    found = outcome_of(waits(Window.of_predictions(said, x), streams.reference()), y)
    assert (
        found.performance["rmse"].lower
        == found.performance["rmse"].upper
        == pytest.approx(np.sqrt(np.mean((y - said) ** 2)))
    )
    alone = outcome_of(waits(Window.of_predictions(said[:1], x[:1]), streams.reference()), y[:1])
    assert alone.performance["bias"].realised == y[0] - said[0]


def test_labels_that_were_chosen_by_prediction_are_flagged_and_weighted_and_fair_ones_are_not() -> None:
    window, labels = drawn(known=1.0)
    said, rng = window.predictions, np.random.default_rng(2)
    assert said is not None
    labels += np.where(said > np.median(said), 3.0, 0.0)
    truth = float(np.mean(labels - said))
    one = waits(window, streams.reference())
    fair = outcome_of(one, np.where(rng.random(1_000) < 0.3, labels, np.nan))
    high = np.where(rng.random(1_000) < 0.05 + 0.4 * (rng.random(1_000) < (said > np.median(said))), labels, np.nan)
    chosen = outcome_of(one, high)
    assert not fair.selective
    assert chosen.selective
    plain = float(np.nanmean(high - said))
    assert chosen.performance["bias"].lower < truth < chosen.performance["bias"].upper < plain


@pytest.mark.parametrize(("odd", "joined"), [(1e200, 199), (np.inf, 199), (np.nan, 199), (5.0, 200)])
def test_odd_labels_leave_numbers_that_json_can_say(odd: float, joined: int) -> None:
    window, labels = drawn(known=1.0, factors=streams.DOUBLED)
    labels = np.where(np.arange(1_000) < 200, labels, np.nan)
    labels[7] = odd
    found = outcome_of(waits(window, streams.reference()), labels)
    assert found.labels.joined == joined
    assert found.performance.keys() == {"rmse", "mae", "bias"}
    assert b"NaN" not in encode(found)
    assert b"Infinity" not in encode(found)


def test_labels_that_are_all_the_same_have_errors_as_predictions_have() -> None:
    window, labels = drawn()
    found = outcome_of(waits(window, streams.reference()), np.where(np.isnan(labels), np.nan, 3.0))
    assert found.performance.keys() == {"rmse", "mae", "bias"}


def test_predictions_without_an_error_and_labels_of_a_part_say_that_nothing_is_known_of_the_others() -> None:
    window, _ = drawn()
    said = window.predictions
    assert said is not None
    one = waits(window, streams.reference())
    found = outcome_of(one, np.where(np.arange(1_000) < 100, said, np.nan))
    assert found.performance == {}
    assert found.withheld.startswith("all labels are as far from their predictions")
    assert outcome_of(one, said).performance["rmse"].upper == 0.0


def test_copies_of_events_that_the_window_does_not_hold_count_for_errors_and_not_for_the_correction() -> None:
    window, labels = drawn(factors=streams.DOUBLED)
    copies = Stateless(
        ["x", "y", None, "z"], np.array([1.0, 2.0, 3.0, 1e300]), np.array([[1.5], [2.5], [2.0], [-1e300]])
    )
    one = waits(window, streams.reference())
    found = outcome_of(one, labels, copies)
    alone = outcome_of(one, labels)
    assert found.labels.stateless == 3
    assert found.labels.joined == alone.labels.joined + 3
    assert found.correction == alone.correction
    assert found.performance != alone.performance
    gone = outcome_of(replace(one, rows=None), np.empty(0), copies)
    assert (gone.kept, gone.labels.joined, gone.labels.missing) == (False, 3, 1_000)


def test_a_reference_of_an_earlier_release_knows_only_the_root_mean_square() -> None:
    window, labels = drawn()
    old = replace(streams.reference(), absolute_error=None, bias=None)
    found = outcome_of(waits(window, old), labels)
    assert [found.performance[name].reference for name in ("rmse", "mae", "bias")] == [old.error, None, None]


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize(
    "model", [LinearRegression(), GradientBoostingRegressor(random_state=0)], ids=["line", "trees"]
)
def test_on_diabetes_half_of_the_labels_tell_the_errors_of_all(model: Any, rounded: bool) -> None:
    table, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(3).permutation(y.size)
    trained, hold_out, window = order[:142], order[142:292], order[292:]
    model.fit(table[trained], y[trained])
    said = np.round(model.predict(table), -1) if rounded else model.predict(table)
    reference = RegressionReference.fit(said[hold_out], y[hold_out], table[hold_out])
    one = waits(Window.of_predictions(said[window], table[window]), reference)
    every = outcome_of(one, y[window])
    held = []
    for seed in range(40):
        known = np.random.default_rng(seed).random(window.size) < 0.5
        found = outcome_of(one, np.where(known, y[window], np.nan))
        held += [e.lower <= every.performance[name].realised <= e.upper for name, e in found.performance.items()]
        assert found.correction.finding == "not-recommended"
    assert np.mean(held) > 0.9
    assert every.performance["rmse"].realised == pytest.approx(np.sqrt(np.mean((y[window] - said[window]) ** 2)))


def service(
    partitions: dict[str, list[bytes]],
    sink: MemorySink,
    store: Path,
    *,
    batch: int = 200,
    rules: Any = None,
    **more: Any,
) -> Service:
    reference = streams.reference()
    awaited = Awaited(2 * MINUTE, 1_000_000, store)
    watched = {"prices": Watched(reference, rules or plan(), awaited=awaited, **more)}
    decoder = Decoder([reference.schema], identified=["prices"], segments={"prices": ["country"]})
    return Service(watched, decoder, MemorySource(partitions, batch=batch), sink, pace=Pace(poll=0.0))


def results(some: Sequence[bytes], **options: Any) -> list[bytes]:
    with TemporaryDirectory() as folder:
        sink = MemorySink()
        service({"p": list(some)}, sink, Path(folder) / "labels.sqlite", **options).run()
        return sink.log.values("results")


def outcomes_in(values: list[bytes]) -> list[dict[str, Any]]:
    tables = [json.loads(value) for value in values]
    return [table for table in tables if table["schema"] == "shiftwatch.regression-outcome.v1"]


def countries(some: Any) -> list[dict[str, Any]]:
    return [{**one, "segment": {"country": ["BE", "FR", "BE"][number % 3]}} for number, one in enumerate(some)]


STORY = records(
    countries(
        [
            *events(2, 1, labelled=0.5, late_labels=True),
            *events(3, 2, labelled=0.5, factors=streams.DOUBLED, first=2, late_labels=True),
        ]
    )
)


@cache
def uninterrupted(rules: Any = None) -> list[bytes]:
    return results(STORY, batch=1_000, rules=rules)


def test_each_window_has_one_outcome_and_one_of_each_segment_in_the_order_of_the_windows() -> None:
    windows = [json.loads(value) for value in uninterrupted() if b"regression-window.v1" in value]
    found = outcomes_in(uninterrupted())
    assert len(found) == 15
    assert [(one["segment"], one["window"]) for one in found] == [(one["segment"], one["window"]) for one in windows]
    for at in range(0, len(found), 3):
        whole, *segments = found[at : at + 3]
        assert sum(one["events"] for one in segments) == whole["events"] == EVENTS_A_MINUTE
        assert sum(one["labels"]["joined"] for one in segments) == whole["labels"]["joined"] > 50
        assert whole["labels"]["missing"] == whole["events"] - whole["labels"]["joined"]
    for one in found:
        jsonschema.Draft202012Validator(json_schema()).validate(one)
    whole = [one for one in found if not one["segment"]]
    assert [one["correction"]["finding"] for one in whole][:2] == ["not-recommended"] * 2
    recommended = {one["window"] for one in windows if one["recalibration"]["apply"]}
    assert {one["window"] for one in found if one["applied"]} == recommended
    assert whole[-1]["correction"]["finding"] == "helped"
    assert whole[-1]["performance"]["rmse"]["realised"] > 3 * whole[0]["performance"]["rmse"]["realised"]


def test_labels_that_show_errors_beyond_the_limit_raise_an_alarm(tmp_path: Path) -> None:
    calm, doubled = (
        events(2, 1, labelled=0.5, late_labels=True),
        events(6, 2, labelled=0.5, factors=streams.DOUBLED, first=2, late_labels=True),
    )
    sink, limits = MemorySink(), {"rmse": Limit(above=2 * streams.reference().error)}
    states = StatePlan(limits=limits, awaiting=True)
    service({"p": records(countries([*calm, *doubled]))}, sink, tmp_path / "labels.sqlite", states=states).run()
    (alarm,) = [one for value in sink.log.values("alarms") if not (one := json.loads(value))["segment"]]
    assert (alarm["series"], alarm["state"]) == ("rmse by labels", "raised")
    whole = [one for one in outcomes_in(sink.log.values("results")) if not one["segment"]]
    assert alarm["since"] == whole[2]["start"]  # the first in which prices followed other lines


@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    batch=st.integers(5, 300),
    crashes=st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=3),
    stop=st.integers(0, 6),
    rules=st.sampled_from([None, CountPlan(200)]),
)
def test_batches_and_crashes_anywhere_change_no_byte(
    batch: int, crashes: list[tuple[int, bool]], stop: int, rules: Any
) -> None:
    with TemporaryDirectory() as folder:
        log, store = MemoryLog(), Path(folder) / "labels.sqlite"
        for commits, published in crashes:
            with suppress(Crash):
                service({"p": STORY}, Crashing(log, commits, published), store, batch=batch, rules=rules).run()
        service({"p": STORY}, MemorySink(log), store, batch=batch, rules=rules).run(after(stop))
        service({"p": STORY}, MemorySink(log), store, batch=batch, rules=rules).run()
    assert log.values("results") == uninterrupted(rules)


NAMES = np.array([f"e{row}" for row in range(1_000)], dtype=np.object_)


@cache
def waiting_with_names() -> tuple[Waiting, np.ndarray, RegressionOutcome]:
    """A window whose events have ids, the labels that come, and its outcome if they come at once and without ids."""
    window, labels = drawn(factors=streams.DOUBLED)
    named = waits(replace(window, ids=NAMES), streams.reference())
    return named, labels, outcome_of(waits(window, streams.reference()), labels)


@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(st.integers(0, 300), max_size=6))
def test_the_batches_in_which_a_windows_labels_come_do_not_change_its_outcome(cuts: list[int]) -> None:
    one, labels, expected = waiting_with_names()
    rows = np.flatnonzero(~np.isnan(labels))
    edges = sorted({0, rows.size, *(min(cut, rows.size) for cut in cuts)})
    with TemporaryDirectory() as folder:
        store = LabelStore(Path(folder) / "labels.sqlite")
        store.keep(replace(one, deadline=70_000_000), 1_000_000)
        for first, last in pairwise(edges):
            some, times = rows[first:last], np.full(last - first, 5)
            store.arrived("prices", "p", Arrived(some, NAMES[some].tolist(), times, times + 68_999_995, labels[some]))
        found = store.labels_of(replace(one, deadline=70_000_000), ids(one.rows))
        store.close()
    first_of, *_ = REGRESSION_OUTCOMES.outcomes(one, found, NO_COPIES, 0, ())
    assert first_of.result == expected


def test_labels_that_are_awaited_are_evidence_as_well() -> None:
    some = [*events(4, 1, labelled=0.0)]
    copies = [{**one, "label": one["prediction"] + 20.0} for one in some[10:60]]
    values = results(records(some[:450]) + [json.dumps(one).encode() for one in copies] + records(some[450:]))
    windows = [json.loads(value) for value in values if b"regression-window.v1" in value]
    told = [one for one in windows if not one["segment"]]
    assert [one["relation"]["labels"] for one in told] == [0, 0, 50, 50]
    assert [one["events"]["late"] for one in told] == [0, 0, 0, 0]  # a copy with its label is no late event
    assert [one["labels"]["joined"] for one in outcomes_in(values) if not one["segment"]] == [50, 0, 0, 0]


def test_the_correction_that_is_judged_is_the_one_by_which_events_were_corrected() -> None:
    with TemporaryDirectory() as folder:
        sink = MemorySink()
        service({"p": STORY}, sink, Path(folder) / "labels.sqlite", corrected="window").run()
    truth = {one["id"]: one["label"] for one in map(json.loads, STORY) if "label" in one}
    last = [one for one in outcomes_in(sink.log.values("results")) if not one["segment"]][-1]
    mine = [one for one in map(json.loads, sink.log.values("events")) if one["window"] == last["window"]]
    known = [one for one in mine if one["id"] in truth]
    y = np.array([truth[one["id"]] for one in known])
    said, after_it = (np.array([one[name] for one in known]) for name in ("original", "prediction"))
    expected = gain(y, said, after_it, len(mine))
    assert expected is not None
    assert last["correction"]["error_with"] == pytest.approx(expected.corrected)
    assert last["correction"]["difference"] == pytest.approx(expected.difference.value)


def test_windows_that_wait_outlive_a_change_of_the_kind_of_stream(tmp_path: Path) -> None:
    from tests.labels.test_outcomes import FEEDBACK, reference  # noqa: PLC0415

    store = tmp_path / "labels.sqlite"
    service({"p": STORY}, MemorySink(), store, batch=60).run(after(14))
    named = replace(reference(), schema=replace(reference().schema, stream="prices"))
    awaited = Awaited(2 * MINUTE, 1_000_000, store)
    watched = {"prices": Watched(named, replace(plan(), evidence=None), awaited=awaited)}
    told = [json.loads(one or b"{}") for one in FEEDBACK.together["p"]]
    later = [{**one, "stream": "prices", "timestamp": one["timestamp"] + 3_600_000} for one in told]
    some = [json.dumps(one).encode() for one in later]
    sink = MemorySink()
    Service(
        watched, Decoder([named.schema], identified=["prices"]), MemorySource({"p": some}), sink, pace=Pace(poll=0.0)
    ).run()
    schemas = {json.loads(value)["schema"] for value in sink.log.values("results")}
    assert schemas >= {"shiftwatch.outcome.v1", "shiftwatch.regression-outcome.v1"}
    assert all(one["labels"]["joined"] == 0 for one in outcomes_in(sink.log.values("results")))

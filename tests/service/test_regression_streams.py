"""Regression streams in the service: the same bytes whatever the batching and restarts, evidence over windows."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.memory import MemoryLog, MemorySink, MemorySource
from monitor.events.decoding import Decoder
from monitor.recalibration import RecalibrationClient
from monitor.recalibration.decoding import decoded
from monitor.service.loop import Pace, Service
from monitor.service.publishing import Watched
from monitor.windows import CountPlan, EvidencePlan, TimePlan, from_stored
from tests.service import regression_streams as streams
from tests.service.streams import START_MS
from tests.service.test_loop import after, published

SECOND = 1_000_000
MINUTE = 60 * SECOND
EVENTS_A_MINUTE = 150
START = START_MS - START_MS % 60_000


def events(minutes, seed, *, labelled=0.1, factors=1.0, first=0, late_labels=False) -> Iterator[dict]:
    """One event every 0.4 s; a label comes with its event or, half a minute later, in a record of its own."""
    rows = minutes * EVENTS_A_MINUTE
    said, y, x = streams.columns(rows, seed, factors=factors, labelled=labelled)
    for number, (prediction, label, features) in enumerate(zip(said.tolist(), y.tolist(), x.tolist(), strict=True)):
        at, name = START + first * 60_000 + number * 400, f"e{first}-{number}"
        event = {"stream": "prices", "id": name, "timestamp": at, "prediction": prediction, "features": features}
        if label == label:  # noqa: PLR0124 - NaN is not labelled
            if late_labels:
                yield {"stream": "prices", "id": name, "timestamp": at + 30_000, "label": label}
            else:
                event["label"] = label
        yield event


def records(some, jitter_ms=2_000, seed=1):
    """In the order in which they arrive: a little out of order."""
    rng = np.random.default_rng(seed)
    return [
        json.dumps(one).encode()
        for one in sorted(some, key=lambda one: (one["timestamp"] + rng.integers(0, jitter_ms), one["id"]))
    ]


def plan(span=3, most=100_000):
    reference = streams.reference()
    evidence = EvidencePlan(span * MINUTE, reference.enough)
    return TimePlan(size=MINUTE, slide=MINUTE, lateness=5 * SECOND, most=most, evidence=evidence)


def build(source, sink, rules=None, corrected="no"):
    reference = streams.reference()
    watched = {"prices": Watched(reference, rules or plan(), corrected=corrected)}
    decoder = Decoder([reference.schema], identified=["prices"])
    return Service(watched, decoder, source, sink, pace=Pace(poll=0.0))


def results(partitions, batch=1_000, rules=None):
    sink = MemorySink()
    build(MemorySource(partitions, batch=batch), sink, rules).run()
    return [json.loads(one) for one in sink.log.values("results")]


STORY = [*events(3, 1, labelled=0.5), *events(3, 2, labelled=0.5, factors=streams.DOUBLED, first=3)]
SHORT = [*events(3, 1), *events(1, 2, labelled=0.5, factors=streams.DOUBLED, first=3)]


def test_a_changed_relation_is_found_and_worded_and_its_correction_waits_until_labels_agree():
    told = results({"p": records(STORY)})
    assert [one["verdict"] for one in told] == ["stable"] * 3 + ["relation-shift"] * 3
    assert told[-1]["reasons"][0].startswith("all slopes doubled; intercepts unchanged")
    assert told[-1]["recalibration"]["apply"]
    assert not any(one["recalibration"]["apply"] for one in told[:3])
    unchanged = told[0]["recalibration"]["relation"]
    assert unchanged["adapted"] == unchanged["reference"]


LONGER = [*events(3, 1, labelled=0.5), *events(5, 2, labelled=0.5, factors=streams.DOUBLED, first=3)]


@pytest.mark.parametrize("stops", [[], [3, 11]], ids=str)
@pytest.mark.parametrize("corrected", ["window", "live"])
def test_each_event_comes_once_more_with_the_prediction_that_the_named_window_makes_of_it(corrected, stops):
    log, story = MemoryLog(), {"p": records(LONGER)}
    for turns in stops:
        build(MemorySource(story, batch=60), MemorySink(log), corrected=corrected).run(after(turns))
    build(MemorySource(story, batch=60), MemorySink(log), corrected=corrected).run()
    told = {one["id"]: one for one in map(json.loads, log.values("events"))}
    assert sorted(told) == sorted(one["id"] for one in LONGER)
    assert len(log.values("events")) == len(LONGER)
    feed = {one.validity.window: one for one in map(decoded, map(json.loads, log.values("recalibrations")))}
    for event in LONGER:
        one = told[event["id"]]
        assert one["original"] == event["prediction"]
        message = feed[one["window"]] if one["window"] else None
        assert one["corrected"] == (message is not None and message.apply)
        client = RecalibrationClient(lambda message=message: message, "prices")
        client.refresh()
        expected = client.correct_predictions([event["prediction"]], np.array([event["features"]]))
        assert one["prediction"] == pytest.approx(expected[0], rel=1e-12)
    late = [told[event["id"]]["corrected"] for event in LONGER[-EVENTS_A_MINUTE:]]
    assert all(late)


def test_labels_of_earlier_windows_count_only_as_far_back_as_needed():
    told = results({"p": records(events(6, 1, labelled=0.1))}, rules=plan(span=4))
    labels = [one["relation"]["labels"] for one in told]
    alone = [one["relation"]["labels"] for one in results({"p": records(events(6, 1))}, rules=plan(span=1))]
    assert labels == [sum(alone[max(0, at - 3) : at + 1]) for at in range(6)]
    many = results({"p": records(events(6, 1, labelled=1.0))}, rules=plan(span=4))
    assert [one["relation"]["labels"] for one in many[1:-1]] == [EVENTS_A_MINUTE] * 4


def test_labels_are_awaited_by_number_when_there_are_too_few():
    (told,) = results({"p": records(events(1, 1, labelled=0.04))})
    assert told["verdict"] == "stable"
    assert told["relation"]["status"] == "too-few-labels"
    assert f"of {streams.reference().wanted} labels" in told["reasons"][1]
    assert "relation" not in told["tests"]


def two_partitions():
    ordered = records(SHORT)
    return {"p": ordered[::2], "q": ordered[1::2]}


@pytest.fixture(scope="module")
def whole():
    sink = MemorySink()
    build(MemorySource(two_partitions(), batch=1_000), sink).run()
    assert len(sink.log.values("results")) == 4
    return sink.log


@settings(max_examples=4, deadline=None)
@given(batch=st.integers(20, 400))
def test_batches_do_not_change_a_byte(whole, batch):
    sink = MemorySink()
    build(MemorySource(two_partitions(), batch=batch), sink).run()
    assert sink.log.values("results") == whole.values("results")


@settings(max_examples=4, deadline=None)
@given(batch=st.integers(40, 300), turns=st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_restarts_do_not_change_a_byte(whole, batch, turns):
    log = MemoryLog()
    for stop in turns:
        build(MemorySource(two_partitions(), batch=batch), MemorySink(log)).run(after(stop))
    build(MemorySource(two_partitions(), batch=batch), MemorySink(log)).run()
    assert log.values("results") == whole.values("results")
    assert log.values("recalibrations") == whole.values("recalibrations")


def test_a_checkpoint_holds_back_as_far_as_labels_count():
    log, ordered = MemoryLog(), records(events(6, 1))
    build(MemorySource({"p": ordered}, open_ended=True, batch=100), MemorySink(log)).run(after(9))
    progress = from_stored("p", log.checkpoint.progress["p"])
    held = json.loads(ordered[progress.offset])["timestamp"]
    newest = json.loads(ordered[progress.read - 1])["timestamp"]
    assert 2 * 60_000 <= newest - held <= 4 * 60_000


LATE = [*events(3, 1, labelled=0.3), *events(2, 2, labelled=0.5, factors=streams.DOUBLED, first=3, late_labels=True)]


def test_late_labels_join_their_events_in_the_window_in_which_they_come():
    told = results({"p": records(LATE)})
    labels = [one["relation"]["labels"] for one in told]
    own = [sum("label" in one and "prediction" in one for one in LATE[at:]) for at in (0,)]
    assert sum("prediction" not in one for one in LATE) > 100
    # Half of a minute's labels come within the minute; the last half minute's come when no event does any more.
    assert labels[3] == pytest.approx(own[0] - labels[0] + 0.25 * EVENTS_A_MINUTE, abs=25)
    assert told[-1]["verdict"] == "relation-shift"
    assert told[-1]["reasons"][0].startswith("all slopes doubled")
    change = START + 3 * MINUTE // 1_000
    since, labels_since = (moment(told[-1]["relation"][name]) for name in ("since", "labels_since"))
    assert change - 2_000 <= since <= change + 5_000  # by the events' times, half a minute before their labels'
    assert labels_since > since
    assert f"since {told[-1]['relation']['since']}" in told[-1]["reasons"][0]
    assert told[0]["relation"]["since"] is None


def moment(text):
    """Milliseconds since the epoch."""
    return datetime.fromisoformat(text).timestamp() * 1_000


@settings(max_examples=4, deadline=None)
@given(batch=st.integers(40, 300), turns=st.lists(st.integers(1, 12), max_size=2), apart=st.booleans())
def test_late_labels_give_the_same_bytes_whatever_the_batches_restarts_and_their_partition(batch, turns, apart):
    some = records([*events(2, 1), *events(1, 2, labelled=0.5, first=2, late_labels=True), *events(1, 3, first=3)])
    plain = [one for one in some if b"prediction" in one]
    partitions = {"p": plain, "q": [one for one in some if b"prediction" not in one]} if apart else {"p": some}
    log = MemoryLog()
    for stop in turns:
        build(MemorySource(partitions, batch=batch), MemorySink(log)).run(after(stop))
    build(MemorySource(partitions, batch=batch), MemorySink(log)).run()
    assert [json.loads(one) for one in log.values("results")] == results(partitions)


def test_a_labelled_copy_that_comes_after_its_window_is_evidence_at_its_arrival():
    some = [*events(4, 1, labelled=0.0)]
    copies = [{**one, "label": one["prediction"] + 20.0} for one in some[10:60]]
    told = results({"p": records(some[:450]) + [json.dumps(one).encode() for one in copies] + records(some[450:])})
    assert [one["relation"]["labels"] for one in told] == [0, 0, 50, 50]
    assert told[2]["events"]["late"] == 50
    assert told[2]["verdict"] == "relation-shift"


def test_segments_are_judged_by_their_own_labels():
    some = [{**one, "segment": {"country": "BE" if number % 3 else "FR"}} for number, one in enumerate(SHORT)]
    reference = streams.reference()
    watched = {"prices": Watched(reference, plan())}
    decoder = Decoder([reference.schema], segments={"prices": ["country"]})
    sink = MemorySink()
    Service(watched, decoder, MemorySource({"p": records(some)}), sink, pace=Pace(poll=0.0)).run()
    told = [json.loads(one) for one in sink.log.values("results")][-3:]
    labels = {one["segment"]: one["relation"]["labels"] for one in told}
    assert labels["country=BE"] + labels["country=FR"] == pytest.approx(labels[""], abs=150)
    assert all(one["verdict"] == "relation-shift" for one in told)


def test_windows_beyond_their_maximum_keep_the_same_sample_of_labels_whatever_the_batches():
    partitions = {"p": records(events(3, 1, labelled=0.5))}
    rules = replace(plan(), most=60)
    assert results(partitions, 1_000, rules) == results(partitions, 33, rules)


def test_a_service_watches_classifiers_and_regressors_side_by_side():
    from tests.service.streams import lines, reference  # noqa: PLC0415

    both = records([*events(4, 1), *({**json.loads(one or ""), "id": str(at)} for at, one in enumerate(lines(180)))])
    regressor, classifier = streams.reference(), reference()
    rules = plan()
    watched = {"s": Watched(classifier, replace(rules, evidence=None)), "prices": Watched(regressor, rules)}
    sink = MemorySink()
    decoder = Decoder([classifier.schema, regressor.schema])
    Service(watched, decoder, MemorySource({"p": both}), sink, pace=Pace(poll=0.0)).run()
    told = [json.loads(one) for one in sink.log.values("results")]
    assert {one["stream"] for one in told} == {"s", "prices"}
    assert all(("relation" in one) == (one["stream"] == "prices") for one in told)


def test_count_windows_are_judged_by_the_labels_of_their_own_events():
    told = results({"p": records(events(4, 1, labelled=0.5))}, rules=CountPlan(200))
    assert [one["events"]["used"] for one in told] == [200, 200, 200]
    assert all(one["verdict"] == "stable" and 60 < one["relation"]["labels"] < 140 for one in told)


def test_a_classifiers_windows_carry_no_evidence():
    from tests.service.streams import lines  # noqa: PLC0415

    assert all(b"evidence" not in one for one in published({"p": lines(100)}).values("results"))

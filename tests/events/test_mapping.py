"""Records of another shape: `[source.event]` says where the fields of an event stand in them."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.errors import InputError
from monitor.events import Decoder, EventMapping, Reason
from monitor.ports.schema import StreamSchema
from monitor.windows import Window
from tests.events.shop import NOW_TEXT, OTHER, PRICES, SHOP, decode, encoded, rows

FLAT = EventMapping(
    stream="",
    id="key",
    timestamp="at",
    posteriors={"legit": "p_legit", "fraud": "p_fraud"},
    features={"amount": "amount", "country": "country", "gift": "gift"},
    segment={"plan": "plan"},
)
NESTED = EventMapping(
    stream="model",
    id="meta.id",
    timestamp="meta.times.0",
    posteriors="answer.scores",
    features="asked",
    label="truth.label",
    segment={"plan": "meta.plan"},
)
BATCH = EventMapping(
    stream="",
    id="request",
    timestamp="at",
    posteriors="outputs.0.data|rows.*",
    features={"amount": "inputs.*.amount", "country": "inputs.*.country", "gift": "inputs.*.gift"},
    segment={"plan": "plan"},
)


def mapped(mapping: EventMapping, schemas: Sequence[StreamSchema] = (SHOP,)) -> Decoder:
    return Decoder(schemas, mapping=mapping, identified=["shop"], segments={"shop": ["plan"]})


OWN = Decoder([SHOP], identified=["shop"], segments={"shop": ["plan"]})


def same(one: Window, other: Window) -> None:
    """Both hold the same events."""
    for name in ("posteriors", "features", "labels", "timestamps"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.ids is not None
    assert other.ids is not None
    assert list(one.ids) == list(other.ids)
    assert one.segments is not None
    assert other.segments is not None
    assert [one.segments.names[code] for code in one.segments.codes] == [
        other.segments.names[code] for code in other.segments.codes
    ]


def own_event(number: int, *, label: str | None = None) -> dict[str, Any]:
    event = {
        "stream": "shop",
        "id": f"tx-{number}",
        "timestamp": NOW_TEXT,
        "posteriors": [0.75, 0.25],
        "features": {"amount": number + 0.5, "country": ["BE", "FR", "DE", None][number % 4], "gift": number % 2 == 0},
        "segment": {"plan": ["gold", None][number % 2]},
    }
    return event | ({} if label is None else {"label": label})


def flat(event: dict[str, Any]) -> dict[str, Any]:
    legit, fraud = event["posteriors"]
    return {"key": event["id"], "at": event["timestamp"], "p_legit": legit, "p_fraud": fraud, "else": [1]} | (
        event["features"] | event["segment"]
    )


def nested(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": event["stream"],
        "meta": {"id": event["id"], "times": [event["timestamp"], "later"], "plan": event["segment"]["plan"]},
        "answer": {"scores": dict(zip(SHOP.classes, event["posteriors"], strict=True)), "took": 3},
        "asked": event["features"],
        "truth": {"label": event["label"]} if "label" in event else None,
    }


@pytest.mark.parametrize(("mapping", "shaped"), [(FLAT, flat), (NESTED, nested)])
def test_records_of_another_shape_are_the_same_events(mapping: EventMapping, shaped: Any) -> None:
    events = [own_event(number) for number in range(9)]
    same(rows(decode(*map(shaped, events), decoder=mapped(mapping))), rows(decode(*events, decoder=OWN)))


def test_labels_come_from_where_they_stand_and_join_later_by_id() -> None:
    events = [own_event(1, label="fraud"), own_event(2)]
    found = decode(*map(nested, events), decoder=mapped(NESTED))
    np.testing.assert_array_equal(rows(found).labels, [1, -1])
    late = decode({"model": "shop", "meta": {"id": "tx-2"}, "truth": {"label": "legit"}}, decoder=mapped(NESTED))
    assert late.rejected == ()
    assert list(late.late_labels["shop"].labels) == [0]


def test_a_record_may_hold_a_batch_of_events() -> None:
    events = [own_event(number) for number in range(6)]
    record = {
        "request": "r-1",
        "at": NOW_TEXT,
        "plan": "gold",
        "outputs": [{"data": [score for event in events for score in event["posteriors"]], "shape": [6, 2]}],
        "inputs": [event["features"] for event in events],
    }
    alone = {**record, "request": "r-2", "outputs": [{"data": [0.75, 0.25]}], "inputs": record["inputs"][:1]}
    wanted = [{**event, "id": f"r-1/{n}", "segment": {"plan": "gold"}} for n, event in enumerate(events)]
    wanted.append({**wanted[0], "id": "r-2"})
    same(rows(decode(record, alone, decoder=mapped(BATCH))), rows(decode(*wanted, decoder=OWN)))


def test_one_bad_event_of_a_batch_costs_no_good_one() -> None:
    record = {
        "at": NOW_TEXT,
        "outputs": [{"data": [[0.5, 0.5], [0.5, 0.6], [0.5, "x"], [0.9, 0.1]]}],
        "inputs": [{"amount": 1}, {}, {}, {"amount": "much"}],
    }
    found = decode(record, decoder=mapped(BATCH))
    assert found.scored["shop"].rows.events == 1
    assert sorted(each.reason for each in found.rejected) == [
        Reason.BAD_FEATURES,
        Reason.BAD_POSTERIORS,
        Reason.POSTERIOR_SUM,
    ]
    assert {each.raw for each in found.rejected} == {encoded(record)[0]}


def test_lists_of_different_lengths_are_no_batch() -> None:
    record = {"at": NOW_TEXT, "outputs": [{"data": [0.5, 0.5]}], "inputs": [{}, {}]}
    (rejected,) = decode(record, decoder=mapped(BATCH)).rejected
    assert (rejected.reason, rejected.stream) == (Reason.BAD_FEATURES, "shop")
    assert rejected.detail == "inputs.*.amount: 2 values beside 1 of outputs.0.data|rows.*"


@pytest.mark.parametrize(
    ("change", "reason", "detail"),
    [
        ({"model": "lost"}, Reason.UNKNOWN_STREAM, "no stream is named 'lost'"),
        ({"answer": {"scores": {"legit": 1.0}}}, Reason.WRONG_CLASSES, "answer.scores: "),
        ({"answer": {"scores": "high"}}, Reason.BAD_POSTERIORS, "answer.scores: "),
        ({"answer": 3}, Reason.BAD_POSTERIORS, ""),
        ({"answer": None}, Reason.MISSING_POSTERIORS, ""),
        ({"asked": {"amount": "much"}}, Reason.BAD_FEATURES, "amount: text where the reference has numbers"),
        ({"meta": {"id": 1.5, "times": [NOW_TEXT]}}, Reason.BAD_ID, "meta.id: "),
        ({"meta": {"times": [[]]}}, Reason.BAD_TIMESTAMP, "meta.times.0: "),
        ({"meta": {}}, Reason.MISSING_TIMESTAMP, ""),
        ({"truth": {"label": "odd"}}, Reason.BAD_LABEL, ""),
    ],
)
def test_what_does_not_fit_is_rejected_with_the_place_where_it_stands(
    change: dict[str, Any], reason: Reason, detail: str
) -> None:
    (rejected,) = decode(nested(own_event(1)) | change, decoder=mapped(NESTED)).rejected
    assert rejected.reason == reason
    assert detail in rejected.detail


def test_scores_of_a_part_of_the_classes_are_no_answer() -> None:
    (rejected,) = decode(flat(own_event(1)) | {"p_fraud": None}, decoder=mapped(FLAT)).rejected
    assert rejected.reason == Reason.WRONG_CLASSES


def test_a_topic_of_several_streams_wants_to_know_where_their_name_stands() -> None:
    with pytest.raises(InputError, match="want a path to `stream`"):
        Decoder([SHOP, OTHER], mapping=EventMapping(stream=""))
    mapping = EventMapping(stream="meta.model", posteriors="p")
    decoder = Decoder([SHOP, OTHER], mapping=mapping)
    record = {"meta": {"model": "other"}, "timestamp": NOW_TEXT, "p": [0.2, 0.3, 0.5]}
    assert rows(decode(record, decoder=decoder), "other").events == 1


def test_regressors_are_mapped_too() -> None:
    decoder = Decoder([PRICES], mapping=EventMapping(prediction="out.0", features={"size": "in.0"}, label="paid"))
    found = rows(decode({"timestamp": NOW_TEXT, "out": [7], "in": [2.5], "paid": 8}, decoder=decoder), "prices")
    assert (found.predictions, found.features, found.targets) == ([7.0], [[2.5]], [8.0])


@pytest.mark.parametrize(
    ("mapping", "problem"),
    [
        (EventMapping(posteriors="a..b"), "want a path such as data.scores.0, got 'a..b'"),
        (EventMapping(posteriors="a.*.*"), "want one * at most"),
        (EventMapping(posteriors="a|xml"), "there is no |xml; there are |json, |csv, |base64, |rows"),
        (EventMapping(preset="kserve"), "there is no preset 'kserve'; there are kserve-v1"),
        (EventMapping(features={"a": "b"}, feature_names="c"), "`feature_names` are for `features` that are lists"),
    ],
)
def test_a_mapping_that_cannot_be_is_a_problem_of_the_configuration(mapping: EventMapping, problem: str) -> None:
    assert any(problem in each for each in mapping.problems())


def test_what_a_stream_needs_and_has_no_path_is_a_problem_of_the_configuration() -> None:
    mapping = EventMapping(posteriors={"legit": "p"}, segment="")
    assert list(mapping.gaps(SHOP, ["plan"])) == [
        "posteriors: there is no path to 'fraud'",
        "want a path to `segment`: stream shop is watched by plan",
    ]
    assert list(EventMapping(preset="bentoml").gaps(OTHER, [])) == [
        "want a path to `posteriors` or `score` for stream other"
    ]


KEYS = st.sampled_from(["a", "b", "model", "meta", "id", "times", "answer", "scores", "asked", "outputs", "data", "0"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
PATHS = st.lists(KEYS | st.sampled_from(["*", "1"]), min_size=1, max_size=3).map(".".join)
FILTERED = st.builds("".join, st.tuples(PATHS, st.sampled_from(["", "", "|json", "|csv", "|base64", "|rows"])))


@given(
    mapping=st.builds(
        EventMapping,
        stream=st.sampled_from(["", "model", "meta.id"]),
        id=FILTERED,
        timestamp=FILTERED,
        posteriors=FILTERED | st.fixed_dictionaries({"legit": FILTERED, "fraud": FILTERED}),
        features=FILTERED | st.fixed_dictionaries({"amount": FILTERED}),
        segment=st.fixed_dictionaries({"plan": FILTERED}),
    ),
    records=st.lists(ANYTHING | st.lists(ANYTHING, max_size=2), max_size=3),
)
def test_whatever_the_mapping_and_the_record_the_answer_is_events_or_named_reasons(
    mapping: EventMapping, records: list[Any]
) -> None:
    if list(mapping.problems()):
        return
    found = decode(*[json.dumps(record).encode() for record in records], decoder=mapped(mapping))
    rows_found = sum(scored.rows.events for scored in found.scored.values())
    late = sum(labels.index.size for labels in found.late_labels.values())
    assert rows_found + late + len(found.rejected) >= len(records)
    assert all(isinstance(rejected.reason, Reason) for rejected in found.rejected)

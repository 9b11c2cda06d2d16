"""Messages as serving platforms document them: each is the same events as in our own shape, and `guess` finds where."""

import json
from typing import Any

import numpy as np
import pytest

from monitor.events import JOINS, Decoder, EventMapping, Joiner, JoinRule, guess
from monitor.events.presets import PRESETS
from monitor.ports.options import read
from monitor.ports.schema import Feature, StreamSchema
from tests.events.shop import raw

IRIS = StreamSchema(
    "iris", ("setosa", "versicolor", "virginica"), (Feature("sepal_length"), Feature("petal_width")), positive=None
)
NOON = "2026-11-18T12:00:00Z"
NOON_MS = 1_795_003_200_000
SCORES = [[0.8, 0.15, 0.05], [0.1, 0.2, 0.7]]
INPUTS = [[5.1, 0.2], [6.5, 2.0]]
NAMED = [dict(zip(("sepal_length", "petal_width"), row, strict=True)) for row in INPUTS]

CLOUD_EVENT = {
    "specversion": "1.0",
    "id": "0e8ba07e-5c2e-4f1d-9d0d-6b7b4e5f8f55",
    "source": "http://localhost:9081/",
    "type": "org.kubeflow.serving.inference.response",
    "time": NOON,
    "datacontenttype": "application/json",
    "inferenceservicename": "iris",
    "namespace": "models",
    "component": "predictor",
    "endpoint": "",
}
V2 = {
    "model_name": "iris_1",
    "model_version": "1",
    "id": "cf1a3a4e",
    "parameters": {},
    "outputs": [{"name": "predict_proba", "shape": [2, 3], "datatype": "FP64", "data": SCORES[0] + SCORES[1]}],
}
MESSAGES: dict[str, Any] = {
    "kserve-v1": CLOUD_EVENT | {"data": {"predictions": SCORES}},
    "kserve-v2": CLOUD_EVENT | {"data": V2},
    "kserve-v1-binary": {"predictions": SCORES},
    "kserve-v2-binary": V2,
    "seldon-core-2": V2,
    "sagemaker": {
        "captureData": {
            "endpointInput": {
                "observedContentType": "text/csv",
                "mode": "INPUT",
                "data": "5.1,0.2\n6.5,2.0\n",
                "encoding": "CSV",
            },
            "endpointOutput": {
                "observedContentType": "text/csv; charset=utf-8",
                "mode": "OUTPUT",
                "data": "0.8,0.15,0.05\n0.1,0.2,0.7",
                "encoding": "CSV",
            },
        },
        "eventMetadata": {"eventId": "b7d8b0d0-3f5c-4d0d-9e61-2f5a7b3b1c2d", "inferenceTime": NOON},
        "eventVersion": "0",
    },
    "databricks": {
        "client_request_id": None,
        "databricks_request_id": "9a99f4c1-7a1e-4b6a-8a55-7f3d7f4f0f11",
        "date": "2026-11-18",
        "timestamp_ms": NOON_MS,
        "status_code": 200,
        "sampling_fraction": 1.0,
        "execution_time_ms": 11,
        "request": json.dumps({"dataframe_records": NAMED}),
        "response": json.dumps({"predictions": SCORES}),
        "request_metadata": {"model_name": "iris", "endpoint_name": "iris", "model_version": "1"},
    },
    "databricks-gateway": {
        "databricks_request_id": "9a99f4c1-7a1e-4b6a-8a55-7f3d7f4f0f11",
        "client_request_id": None,
        "request_date": "2026-11-18",
        "request_time": NOON,
        "status_code": 200,
        "sampling_fraction": 1.0,
        "execution_duration_ms": 11,
        "request": json.dumps({"dataframe_records": NAMED}),
        "response": json.dumps({"predictions": SCORES}),
        "served_entity_id": "iris",
        "logging_error_codes": [],
        "requester": "somebody",
    },
    "mlflow": {"predictions": SCORES},
}
WITH_INPUTS = {"sagemaker", "databricks", "databricks-gateway"}


def decoded(mapping: EventMapping, message: Any) -> Any:
    found = Decoder([IRIS], mapping=mapping, identified=["iris"]).decode(
        raw([json.dumps(message).encode()], [NOON_MS * 1000]), 2**60
    )
    assert found.rejected == ()
    return found.scored["iris"].rows


@pytest.mark.parametrize("preset", MESSAGES)
def test_a_platforms_message_holds_the_same_events_as_our_own_shape(preset: str) -> None:
    window = decoded(EventMapping(preset=preset), MESSAGES[preset])
    np.testing.assert_allclose(window.posteriors, SCORES)
    assert set(window.times) == {NOON_MS * 1000}
    if preset in WITH_INPUTS:
        np.testing.assert_array_equal(window.features, INPUTS)
    if "id" in PRESETS[preset]:
        assert [each.partition("/")[2] for each in window.ids] == ["0", "1"]


def test_a_line_of_bentoml_is_named_by_its_service() -> None:
    line = {
        "sepal_length": 5.1,
        "petal_width": 0.2,
        "p_setosa": 0.8,
        "p_versicolor": 0.15,
        "p_virginica": 0.05,
        "pred": "setosa",
        "timestamp": "2026-11-18T12:00:00.000000Z",
        "request_id": "10775466583437495360",
    }
    mapping = EventMapping(
        preset="bentoml",
        posteriors={name: f"p_{name}" for name in IRIS.classes},
        features={feature.name: feature.name for feature in IRIS.features},
    )
    window = decoded(mapping, line)
    np.testing.assert_allclose(window.posteriors, SCORES[:1])
    np.testing.assert_array_equal(window.features, INPUTS[:1])
    assert list(window.ids) == ["10775466583437495360"]


def test_a_span_of_openinference_has_input_and_output_as_texts() -> None:
    span = {
        "name": "classify",
        "context": {"trace_id": "5b8aa5a2d2c872e8", "span_id": "5fb397be34d26b51"},
        "start_time": NOON,
        "end_time": NOON,
        "attributes": {
            "openinference.span.kind": "CHAIN",
            "input.value": json.dumps(NAMED[0]),
            "input.mime_type": "application/json",
            "output.value": json.dumps(dict(zip(IRIS.classes, SCORES[0], strict=True))),
            "output.mime_type": "application/json",
        },
    }
    window = decoded(EventMapping(preset="openinference"), span)
    np.testing.assert_allclose(window.posteriors, SCORES[:1])
    np.testing.assert_array_equal(window.features, INPUTS[:1])


def test_every_preset_has_a_message_here() -> None:
    assert set(PRESETS) == set(MESSAGES) | set(JOINS) | {"bentoml", "openinference"}


@pytest.mark.parametrize("preset", ["kserve-v1", "sagemaker", "databricks", "databricks-gateway", "mlflow"])
def test_a_known_shape_is_recognised(preset: str) -> None:
    found = guess([MESSAGES[preset]])
    np.testing.assert_allclose(decoded(found, MESSAGES[preset]).posteriors, SCORES)
    assert preset in (found.preset, f"{found.preset}-binary", "mlflow")


@pytest.mark.parametrize(
    "record",
    [
        {"when": NOON, "key": "a", "out": {"probs": SCORES[0]}, "in": {"sepal_length": 5.1, "petal_width": 0.2}},
        {
            "ts": NOON_MS,
            "p_setosa": 0.8,
            "p_versicolor": 0.15,
            "p_virginica": 0.05,
            "sepal_length": 5.1,
            "petal_width": 0.2,
        },
        {"event_time": NOON, "scores": dict(zip(IRIS.classes, SCORES[0], strict=True)), "features": INPUTS[0]},
        {"time": NOON, "payload": json.dumps({"answer": SCORES[0], "inputs": NAMED[0]})},
    ],
)
def test_scores_times_and_inputs_of_unknown_shapes_are_guessed(record: dict[str, Any]) -> None:
    found = guess([record, record])
    window = decoded(found, record)
    np.testing.assert_allclose(window.posteriors, SCORES[:1])
    assert list(window.times) == [NOON_MS * 1000]


@pytest.mark.parametrize("preset", ["kserve-v1", "mlflow"])
def test_numbers_and_names_of_classes_are_not_taken_for_posteriors(preset: str) -> None:
    for answers in ([0, 2], [0, 1, 1], ["setosa", "virginica"], [12.5, 3.25]):
        message = MESSAGES[preset] | ({"data": {"predictions": answers}} if "data" in MESSAGES[preset] else {})
        found = guess([message if "data" in message else {"predictions": answers}])
        assert not found.preset
        assert found.posteriors is None


def test_where_nothing_looks_like_scores_none_are_made_up() -> None:
    found = guess([{"time": NOON, "amount": 12.5, "age": 3}])
    assert found.posteriors is found.score is found.prediction is None


def test_requests_and_responses_of_kserves_logger_are_joined_and_hold_the_inputs() -> None:
    asked = {"type": "org.kubeflow.serving.inference.request"}
    tensor = {"name": "x", "shape": [2, 2], "datatype": "FP64", "data": INPUTS[0] + INPUTS[1]}
    requests = {"kserve-v1-all": {"instances": INPUTS}, "kserve-v2-all": {"inputs": [tensor]}}
    answers = {"kserve-v1-all": {"predictions": SCORES}, "kserve-v2-all": V2}
    for preset, request in requests.items():
        rule = read(JoinRule, JOINS[preset], preset, [])
        assert rule is not None
        records = [CLOUD_EVENT | {"data": answers[preset]}, CLOUD_EVENT | asked | {"data": request}]
        joined, _ = Joiner(rule).join(raw([json.dumps(record).encode() for record in records]), NOON_MS * 1000)
        assert guess(records).preset == preset
        assert joined.translated is not None
        (record,) = joined.translated.records
        window = decoded(EventMapping(preset=preset), json.loads(record or b""))
        np.testing.assert_array_equal(window.posteriors, SCORES)
        np.testing.assert_array_equal(window.features, INPUTS)
        assert list(window.ids) == [f"{CLOUD_EVENT['id']}/0", f"{CLOUD_EVENT['id']}/1"]

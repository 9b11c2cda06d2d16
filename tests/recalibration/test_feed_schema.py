"""The published schema of the feed: messages fit it, and a client can be written from it alone."""

import json
from pathlib import Path

import jsonschema
import msgspec
import numpy as np
import pytest

from monitor import calibration
from monitor.assessment.classifier import assess
from monitor.assessment.feed_schema import DESCRIBED, json_schema
from monitor.assessment.regressor import assess_regression
from monitor.recalibration import RecalibrationClient
from monitor.recalibration.causes import Cause
from monitor.recalibration.decoding import decoded
from tests.assessment import worlds
from tests.service import regression_streams

FIRST_VERSION = Path(__file__).parent / "first_version" / "messages.jsonl"


@pytest.fixture(scope="module")
def messages() -> list[dict[str, object]]:
    """One of a window that is corrected, of one that is not, and of a regressor."""
    moved = worlds.window(3_000, 1, np.array([0.2, 0.3, 0.5]))
    regressor = regression_streams.window(factors=regression_streams.DOUBLED, labelled=0.1)
    made = (
        assess(moved, worlds.reference()),
        assess(worlds.window(3_000, 1), worlds.reference()),
        assess_regression(regressor, regression_streams.reference()),
    )
    return [json.loads(msgspec.json.encode(each.recalibration)) for each in made]


def test_messages_of_both_kinds_and_of_the_first_version_but_for_their_cause_fit_it(
    messages: list[dict[str, object]],
) -> None:
    schema = jsonschema.Draft202012Validator(json_schema())
    assert [each["apply"] for each in messages] == [True, False, True]
    for each in messages:
        schema.validate(each)
    for line in FIRST_VERSION.read_text().splitlines():
        table = json.loads(line)
        schema.validate(table | {"cause": decoded(table).cause})


def test_every_field_of_the_message_says_what_it_is() -> None:
    definitions = json_schema()["$defs"]
    for described in DESCRIBED[:4]:
        properties = definitions[described.__name__]["properties"]
        plain = {"method", "slopes", "intercepts", "matrix", "edges", "alpha", "relation", "window"}
        assert [name for name, one in properties.items() if "description" not in one and name not in plain] == []
    assert all(f"`{cause}`" in definitions["Cause"]["description"] for cause in Cause)


@pytest.mark.parametrize("number", range(3), ids=["corrected", "calm", "regressor"])
def test_what_is_not_a_message_does_not_fit(messages: list[dict[str, object]], number: int) -> None:
    message = messages[number]
    schema = jsonschema.Draft202012Validator(json_schema())
    assert not schema.is_valid({name: value for name, value in message.items() if name != "cause"})
    assert not schema.is_valid(message | {"cause": "because"})


@pytest.mark.parametrize("method", [name for name in calibration.METHODS if name != "none"])
def test_a_client_that_knows_the_descriptions_alone_corrects_as_ours_does(
    messages: list[dict[str, object]], method: str
) -> None:
    moved, labels = worlds.draw(2_000, 3)
    scored = worlds.posteriors(moved) ** 1.7
    scored /= scored.sum(axis=1, keepdims=True)
    fitted = calibration.fit(scored, labels, method).to_map()
    table = json.loads(msgspec.json.encode(messages[0])) | {"calibration": json.loads(msgspec.json.encode(fitted))}
    client = RecalibrationClient(lambda: decoded(table), "world")
    client.refresh()
    np.testing.assert_allclose(client.apply(scored), literally(table, scored), rtol=1e-9)


def literally(table: dict, scored: np.ndarray) -> np.ndarray:
    """The schema's descriptions, word by word."""
    told, k = table["calibration"], scored.shape[1]
    rows = []
    for p in scored:
        margins = told["scores"] == "margin"
        z = p if margins else np.log(np.maximum(p, told["floor"]))
        u = np.empty(k)
        for c in range(k):
            if told["method"] == "scaled":
                u[c] = told["slopes"][c] * z[c]
            elif told["method"] == "matrix":
                u[c] = sum(z[j] * told["matrix"][j][c] for j in range(k))
            elif told["method"] == "platt":
                odds = z[c] if margins else z[c] - np.log(max(1 - p[c], told["floor"]))
                s = 1 / (1 + np.exp(-(told["slopes"][c] * odds + told["intercepts"][c])))
                u[c] = np.log(max(s, told["floor"]))
            else:
                i = sum(edge < p[c] for edge in told["edges"][c])
                u[c] = np.log(max(told["values"][c][i], told["floor"]))
        q = np.exp(u + told["weights"]) * table["multipliers"]
        rows.append(q / q.sum())
    return np.array(rows)

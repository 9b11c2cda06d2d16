"""A stream whose model is a versatile tree: the service's feed carries the thresholds that follow each window."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification

from monitor.commands.run import replay, run
from monitor.errors import ConfigurationError
from monitor.recalibration import RecalibrationClient
from monitor.reference.classifier import Reference
from monitor.shifts import VersatileForestClassifier, VersatileTreeClassifier

ROWS = 3_000
NAMES = tuple(f"x{j}" for j in range(5))
START_MS = 1_749_999_000_000  # a window begins here

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"
[sink]
url = "jsonl:results.jsonl"
recalibrations = "recalibrations.jsonl"
[pace]
workers = 0
[streams.trees]
reference = "trees.ref"
outline = "outline.json"
window = { size = "50m", lateness = "0s" }
"""


@cache
def problem() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(4 * ROWS, 5, n_informative=4, n_redundant=1, class_sep=1.5, random_state=3)


@cache
def fitted(forest: bool) -> tuple[VersatileTreeClassifier | VersatileForestClassifier, Reference]:
    """A model, and its reference."""
    X, y = problem()
    model = VersatileForestClassifier(5) if forest else VersatileTreeClassifier(min_samples_leaf=20)
    model.fit(X[:ROWS], y[:ROWS])
    held = slice(ROWS, 2 * ROWS)
    reference = Reference.fit(
        model.predict_proba(X[held]),
        y[held],
        X[held],
        classes=["no", "yes"],
        feature_names=NAMES,
        stream="trees",
    )
    return model, reference


def written(folder: Path, forest: bool = False) -> np.ndarray:
    """A stream of two windows of one event a second: as before, then with x4 in another unit; the second's inputs."""
    model, reference = fitted(forest)
    reference.save(folder / "trees.ref")
    (folder / "outline.json").write_text(json.dumps(model.outline().to_message()))
    served = problem()[0][2 * ROWS :].copy()
    served[ROWS:, 4] = served[ROWS:, 4] * 1.8 + 6.0
    posteriors = model.predict_proba(served)
    with (folder / "events.jsonl").open("w") as file:
        for number, (scores, inputs) in enumerate(zip(posteriors.tolist(), served.tolist(), strict=True)):
            event = {"stream": "trees", "timestamp": START_MS + number * 1000, "posteriors": scores, "features": inputs}
            file.write(json.dumps(event) + "\n")
    (folder / "shiftwatch.toml").write_text(CONFIGURATION)
    return served[ROWS:]


def declare(folder: Path) -> None:
    with (folder / "shiftwatch.toml").open("a") as file:
        file.write('[streams.trees.features.x4]\nmay = "rescale"\n')


def test_without_a_word_about_the_feature_the_model_stays_as_it_is(tmp_path: Path) -> None:
    served = written(tmp_path)
    assert run(tmp_path / "shiftwatch.toml") == 0
    with RecalibrationClient(tmp_path / "recalibrations.jsonl", stream="trees") as client:
        assert client.tree() is None
        np.testing.assert_array_equal(client.correct_input("x4", served[:, 4]), served[:, 4])
        message = client.status().recalibration
    assert message is not None
    assert message.tree is not None
    assert "nobody has said that it may" in message.inputs["x4"].reason
    assert message.tree["reason"] == "no input that the model decides by is to be corrected"


def test_a_word_about_a_feature_that_the_reference_does_not_have_stops_the_start(tmp_path: Path) -> None:
    written(tmp_path)
    with (tmp_path / "shiftwatch.toml").open("a") as file:
        file.write('[streams.trees.features.x9]\nmay = "rescale"\n')
    with pytest.raises(ConfigurationError, match=r"streams.trees.features: 'x9' is none of the reference's features"):
        run(tmp_path / "shiftwatch.toml")


def test_a_feature_that_the_stream_ignores_is_in_no_test_and_moves_nothing(tmp_path: Path) -> None:
    written(tmp_path)
    said, moved = tmp_path / "shiftwatch.toml", {}
    for number, more in enumerate(("", 'ignore = ["x4"]\n')):
        said.write_text(CONFIGURATION + more)
        replay(said, tmp_path / f"{number}.jsonl")
        last = json.loads((tmp_path / f"{number}.jsonl").read_text().splitlines()[-1])
        moved[more] = last["features"]["x4"]["moved"]
    assert list(moved.values()) == [True, False]
    said.write_text(CONFIGURATION + 'ignore = ["x9"]\n')
    with pytest.raises(ConfigurationError, match=r"streams.trees.ignore: 'x9' is none of the reference's features"):
        run(said)


@pytest.mark.parametrize("forest", [False, True])
def test_a_scoring_service_adapts_its_model_by_the_feed_alone(tmp_path: Path, forest: bool) -> None:
    served, (model, _) = written(tmp_path, forest), fitted(forest)
    declare(tmp_path)
    truth = problem()[1][3 * ROWS :]
    assert run(tmp_path / "shiftwatch.toml") == 0

    with RecalibrationClient(tmp_path / "recalibrations.jsonl", stream="trees") as client:
        told = client.tree()
        assert told is not None
        adapted = model.with_thresholds(told)
    unshifted = model.score(problem()[0][3 * ROWS :], truth)
    assert model.score(served, truth) < unshifted - 0.1
    assert np.mean(adapted.predict(served) == truth) > unshifted - 0.02
    assert [one.feature for one in adapted.record.attributes if one.choice != "original"] == ["x4"]


def test_a_window_in_which_nothing_moved_moves_no_threshold_and_a_replay_says_the_same(tmp_path: Path) -> None:
    written(tmp_path)
    run(tmp_path / "shiftwatch.toml")
    replay(tmp_path / "shiftwatch.toml", tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "results.jsonl").read_bytes()
    calm = json.loads((tmp_path / "results.jsonl").read_text().splitlines()[0])
    assert calm["recalibration"]["tree"]["trees"] == [{"nodes": [], "swapped": [], "thresholds": []}]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda outline: outline | {"features": [*NAMES[:-1], "age"]}, "decides by age, which stream trees has not"),
        (lambda outline: {"features": outline["features"]}, "not the JSON of a model's outline"),
        (lambda outline: [outline], "not the JSON of a model's outline"),
    ],
)
def test_an_outline_that_does_not_fit_the_stream_stops_the_start(tmp_path: Path, change, complaint: str) -> None:
    written(tmp_path)
    path = tmp_path / "outline.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(ConfigurationError, match=complaint):
        run(tmp_path / "shiftwatch.toml")

"""The examples of the README and its guides run: events decode, configurations open, Python works as it stands."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from monitor import Reference
from monitor.commands.streams import opened
from monitor.events.decoding import Decoder
from monitor.events.presets import PRESETS
from monitor.ports import RawBatch
from monitor.ports.schema import Feature, StreamSchema
from monitor.settings.config import load
from tests.pages import GUIDES, ROOT, blocks, page

README = page(ROOT / "README.md")
CORRECTIONS, LABELS, RECORDS, REGRESSORS, VERDICTS = (
    page(GUIDES / f"{name}.md") for name in ("corrections", "labels", "records", "regressors", "verdicts")
)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the examples take for granted: a fitted model, and data."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(1_000) < 0.3, "fraud", "legit")
    X = rng.normal(size=(1_000, 2)) + 2.0 * (y == "fraud")[:, None]
    known = {"X_train": X[:300], "y_train": y[:300], "X_today": X[:300], "X": X[300:], "y": y[300:]}
    return known | {"model": LogisticRegression().fit(X[:300], y[:300])}


@pytest.fixture
def folder(tmp_path: Path, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the reference that the first Python example saves."""
    monkeypatch.chdir(tmp_path)
    exec(blocks(README, "python")[0], dict(names))  # noqa: S102 - our own page
    return tmp_path


def test_every_python_example_runs_in_turn(folder: Path, names: dict[str, Any]) -> None:
    space = dict(names)
    for block in blocks(README, "python") + blocks(CORRECTIONS, "python"):
        exec(block, space)  # noqa: S102 - our own pages
    assert str(space["assessment"].verdict) in README
    # No monitor answers at the example's address: the client fails open.
    np.testing.assert_array_equal(space["scores"], space["model"].predict_proba(names["X"]))


def test_the_example_of_another_shape_reads_such_a_record(tmp_path: Path) -> None:
    (tmp_path / "shiftwatch.toml").write_text(
        blocks(RECORDS, "toml")[0]
        + '[sink]\nurl = "jsonl:r.jsonl"\n[streams.fraud-v3]\nreference = "x"\nwindow = { count = 9 }\n'
    )
    mapping = load(tmp_path / "shiftwatch.toml").event
    schema = StreamSchema("fraud-v3", ("legit", "fraud"), (Feature("amount"),))
    record = {
        "model": "fraud-v3",
        "meta": {"request": "r-1", "time": "2026-11-18T09:00:00Z", "country": "BE"},
        "out": {"scores": [0.9, 0.1]},
        "in": {"amount": 12.5},
    }
    decoder = Decoder([schema], mapping=mapping, identified=["fraud-v3"], segments={"fraud-v3": ["country"]})
    decoded = decoder.decode(RawBatch("p", [json.dumps(record).encode()], np.zeros(1, dtype=np.int64), 1), 2**60)
    rows = decoded.scored["fraud-v3"].rows
    assert (rows.events, rows.segments.names) == (1, ("country=BE",))


def test_every_preset_stands_in_the_guide() -> None:
    assert {name for name in PRESETS if f"`{name}`" not in RECORDS} == set()


def test_the_example_of_a_regressor_runs_and_says_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    for block in blocks(REGRESSORS, "python"):
        exec(block, space)  # noqa: S102 - our own page
    assert space["found"].verdict == "relation-shift"
    assert "`all slopes doubled; intercepts unchanged`" in REGRESSORS
    assert space["found"].reasons[0].startswith("all slopes doubled; intercepts unchanged")
    doubled = 20 + 2 * (space["predicted"][2_000:] - 20)
    np.testing.assert_allclose(space["corrected"], doubled, atol=2.5)


def test_every_configuration_opens(folder: Path) -> None:
    whole, kafka = blocks(README, "toml")
    (regression, awaiting, limits), (alarm,) = blocks(REGRESSORS, "toml"), blocks(VERDICTS, "toml")
    exec(blocks(REGRESSORS, "python")[0], {})  # noqa: S102 - it saves the reference
    stream = re.search(r"\[streams.*", whole, re.DOTALL)
    assert stream is not None
    alarmed = re.sub(r"(?m)^alarm = .*$", "", whole) + alarm
    awaited = regression + awaiting.partition("\n")[2]
    for text in (
        whole,
        *(whole.replace(stream[0], one) for one in (regression, awaited, f"{awaited}\n{limits}")),
        kafka + stream[0] + regression,
        alarmed,
    ):
        path = folder / "shiftwatch.toml"
        path.write_text(text, encoding="utf-8")
        _, _, watched = opened(load(path), folder)
        assert list(watched) == list(tomllib.loads(text)["streams"])


def test_the_event_decodes() -> None:
    (event,) = blocks(README, "json")
    schema = StreamSchema("fraud-v3", ("legit", "fraud"), (Feature("amount"), Feature("age_days")), "fraud")
    batch = RawBatch("p", [json.dumps(json.loads(event)).encode()], np.array([0]), 1)
    decoded = Decoder([schema], segments={"fraud-v3": ["country"]}).decode(batch, now=2_000_000_000_000_000)
    assert decoded.rejected == ()
    assert decoded.scored["fraud-v3"].rows.events == 1


@pytest.mark.parametrize("text", [README, LABELS], ids=["readme", "guide"])
def test_late_labels_decode_as_a_label_and_as_a_labelled_event(text: str) -> None:
    (block,) = blocks(text, "jsonl")
    records: list[bytes | None] = [line.encode() for line in block.splitlines()]
    batch = RawBatch("p", records, np.arange(2), 2)
    schema = StreamSchema("fraud-v3", ("legit", "fraud"))
    decoded = Decoder([schema], identified=["fraud-v3"]).decode(batch, now=2_000_000_000_000_000)
    assert decoded.rejected == ()
    assert decoded.late_labels["fraud-v3"].labels.tolist() == [0]
    assert decoded.scored["fraud-v3"].rows.labelled.tolist() == [True]


def test_a_regressors_event_and_its_late_label_decode() -> None:
    (block,) = blocks(REGRESSORS, "jsonl")
    records: list[bytes | None] = [line.encode() for line in block.splitlines()]
    schema = StreamSchema("prices", (), (Feature("area"), Feature("age")))
    batch = RawBatch("p", records, np.arange(len(records)), len(records))
    decoded = Decoder([schema], identified=["prices"]).decode(batch, now=2_000_000_000_000_000)
    assert decoded.rejected == ()
    assert decoded.scored["prices"].rows.events == 1
    ids = decoded.late_labels["prices"].ids
    assert ids is not None
    assert ids.tolist() == ["h-7"]


def test_the_commands_of_the_readme_exist() -> None:
    from monitor.commands.cli import parser  # noqa: PLC0415 - what a shell would do

    for line in blocks(README, "sh"):
        for call in re.findall(r"^shiftwatch (.+)$", line, re.MULTILINE):
            assert parser().parse_args(call.split())


def test_a_reference_loads_where_the_examples_left_it(folder: Path) -> None:
    assert Reference.load(folder / "fraud-v3.ref").classes == ("fraud", "legit")

"""Messages of the first version, and the client of it: the bytes and the program are kept as they were released."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from monitor.recalibration import Cause, InputCorrection, RecalibrationClient, gated
from monitor.recalibration.decoding import decoded, parsed
from tests.recalibration.test_calibrated import calibrated, overconfident

FOLDER = Path(__file__).parent / "first_version"
LINES = (FOLDER / "messages.jsonl").read_bytes().splitlines()
CAUSES = [
    Cause.STABLE,
    Cause.PRIOR_SHIFT,
    Cause.OTHER_SHIFT,
    Cause.OTHER_SHIFT,
    Cause.OTHER_SHIFT,
    Cause.OTHER_SHIFT,
    Cause.OTHER_SHIFT,
    Cause.LABELS_DISAGREE,
    Cause.RELATION_UNCHANGED,
    Cause.RELATION_CHANGED,
    Cause.NO_GAIN,
]


@pytest.mark.parametrize(("line", "cause"), list(zip(LINES, CAUSES, strict=True)))
def test_a_message_is_read_with_its_cause_and_without_a_calibration(line: bytes, cause: Cause) -> None:
    message = decoded(parsed(line))
    assert (message.cause, message.calibration) == (cause, None)
    assert json.loads(line)["apply"] == message.apply


def test_a_correction_is_applied_to_posteriors_as_they_were_scored(tmp_path: Path) -> None:
    (tmp_path / "feed.jsonl").write_bytes(LINES[1] + b"\n")
    table = json.loads(LINES[1])
    client = RecalibrationClient(tmp_path / "feed.jsonl", table["validity"]["stream"])
    client.refresh()
    scored = overconfident(100, 1)[0]
    expected = scored * table["multipliers"]
    np.testing.assert_allclose(client.apply(scored), expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)


def test_inputs_and_thresholds_of_which_nobody_said_that_they_may_change_stay_as_they_are() -> None:
    tree = {"model": "m", "record": {}, "trees": []}
    table = {**json.loads(LINES[2]), "tree": tree}
    client = RecalibrationClient(lambda: decoded(table), table["validity"]["stream"])
    message = client.refresh().recalibration
    assert message is not None
    assert message.inputs["x1"].alpha != 1
    np.testing.assert_array_equal(client.correct_input("x1", [1.0, 2.0]), [1.0, 2.0])
    assert client.tree() is None


def test_a_client_of_the_first_version_goes_on_with_messages_of_now(tmp_path: Path) -> None:
    told, scored = calibrated("isotonic"), overconfident(50, 1)[0]
    told = replace(told, inputs={"amount": gated("amount", InputCorrection("linear", 2.0, 1.0), None, explained=True)})
    (tmp_path / "feed.jsonl").write_bytes(msgspec.json.encode(told) + b"\n")
    (tmp_path / "scored.json").write_text(json.dumps(scored.tolist()))
    program = """
import json
from monitor.recalibration import RecalibrationClient
import monitor.recalibration.message as release
assert "client.zip" in release.__file__ and not hasattr(release, "Cause")
with RecalibrationClient("feed.jsonl", stream="s") as client:
    status = client.status()
    assert status.correcting and not status.trouble, status
    assert client.correct_input("amount", [5.0]).tolist() == [5.0]
    print(json.dumps(client.apply(json.load(open("scored.json")))))
"""
    environment = os.environ | {"PYTHONPATH": str(FOLDER / "client.zip")}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    expected = scored * told.multipliers
    np.testing.assert_allclose(json.loads(done.stdout), expected / expected.sum(axis=1, keepdims=True), rtol=1e-12)

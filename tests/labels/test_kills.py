"""SIGKILL at random instants: outcomes and corrected events are those of a run that nobody disturbs."""

import json
import os
import random
import signal
import time
from pathlib import Path

from tests.labels.streams import Feedback
from tests.labels.test_outcomes import outcomes_in
from tests.service.streams import reference
from tests.service.test_kills import started

EVENTS = 12_000
KILLS = 20 if os.environ.get("CI") else 3

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"

[sink]
url = "jsonl:{name}.jsonl"
recalibrations = "{name}-recalibrations.jsonl"
events = "{name}-corrected.jsonl"

[streams.s]
reference = "s.ref"
window = {{ size = "10m", lateness = "10s" }}
labels = {{ wait = "30m", store = "{name}.sqlite" }}
corrected = "window"
"""


def test_a_run_that_is_killed_again_and_again_says_the_same_outcomes(tmp_path: Path) -> None:
    feedback = Feedback(events=EVENTS, positives=0.6, delay=1_500)
    (tmp_path / "events.jsonl").write_bytes(b"".join(record + b"\n" for _, record in feedback.records))
    reference().save(tmp_path / "s.ref")
    for name in ("whole", "killed"):
        (tmp_path / f"{name}.toml").write_text(CONFIGURATION.format(name=name), encoding="utf-8")
    whole = started(tmp_path, "whole.toml")
    _, errors = whole.communicate(timeout=120)
    assert whole.returncode == 0, errors.decode()[-2000:]

    rng, returned = random.Random(4), []
    for _ in range(KILLS):
        process = started(tmp_path, "killed.toml")
        began = time.monotonic()
        while not (tmp_path / "killed.jsonl").exists() and time.monotonic() - began < 60:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.1, 0.8))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        returned.append(process.returncode)
    last = started(tmp_path, "killed.toml")
    _, errors = last.communicate(timeout=120)
    assert last.returncode == 0, errors.decode()[-2000:]
    assert -signal.SIGKILL in returned

    for name in ("{}.jsonl", "{}-recalibrations.jsonl", "{}-corrected.jsonl"):
        assert (tmp_path / name.format("killed")).read_bytes() == (tmp_path / name.format("whole")).read_bytes()
    outcomes = outcomes_in((tmp_path / "whole.jsonl").read_bytes().splitlines())
    assert len(outcomes) == EVENTS // 600 + 1
    assert sum(one["labels"]["joined"] for one in outcomes) == len(feedback.truth)
    assert sum(one["brier"]["after"] for one in outcomes[1:]) < sum(one["brier"]["before"] for one in outcomes[1:])
    events = [json.loads(line) for line in (tmp_path / "whole-corrected.jsonl").read_bytes().splitlines()]
    assert len(events) == EVENTS
    assert all(abs(sum(one["posteriors"].values()) - 1) < 1e-9 for one in events)

"""SIGKILL at random instants: outcomes and corrected events are those of a run that nobody disturbs."""

import json
from pathlib import Path

import pytest

from tests.labels.streams import Feedback
from tests.labels.test_outcomes import outcomes_in
from tests.marks import in_chaos
from tests.processes import finished, killed_again_and_again, started
from tests.service.streams import reference

EVENTS = 12_000

CONFIGURATION = """
[source]
url = "jsonl:events.jsonl"

[sink]
url = "jsonl:{name}.jsonl"
recalibrations = "{name}-recalibrations.jsonl"
events = "{name}-corrected.jsonl"
alarms = "{name}-alarms.jsonl"

[alarms]
false = "1 per 1d"

[streams.s]
reference = "s.ref"
window = {{ size = "10m", lateness = "10s" }}
segments = ["country"]
max_segments = 2
labels = {{ wait = "30m", store = "{name}.sqlite" }}
may = "change-mix"
corrected = "window"
"""


@pytest.mark.parametrize("kills", [1, in_chaos(30)])
def test_a_run_that_is_killed_again_and_again_says_the_same_outcomes(tmp_path: Path, kills: int) -> None:
    # Labels come up to three windows late.
    feedback = Feedback(events=EVENTS, positives=0.6, delay=1_500, turned_from=EVENTS // 2, segments=True)
    (tmp_path / "events.jsonl").write_bytes(b"".join(record + b"\n" for _, record in feedback.records))
    reference().save(tmp_path / "s.ref")
    for name in ("whole", "killed"):
        (tmp_path / f"{name}.toml").write_text(CONFIGURATION.format(name=name), encoding="utf-8")
    finished(started(tmp_path, "whole.toml"))
    results = tmp_path / "killed.jsonl"
    assert killed_again_and_again(lambda: started(tmp_path, "killed.toml"), kills, (0.0, 0.5), results)
    finished(started(tmp_path, "killed.toml"))
    for name in ("{}.jsonl", "{}-recalibrations.jsonl", "{}-corrected.jsonl", "{}-alarms.jsonl"):
        assert (tmp_path / name.format("killed")).read_bytes() == (tmp_path / name.format("whole")).read_bytes()
    feed = (tmp_path / "whole-recalibrations.jsonl").read_bytes().splitlines()
    whole = [one for one in map(json.loads, feed) if not one["validity"]["segment"]]
    assert sum(bool(one["experts"]) for one in whole) > len(whole) // 2
    alarms = [json.loads(line) for line in (tmp_path / "whole-alarms.jsonl").read_bytes().splitlines()]
    assert "labels against scores" in {alarm["series"] for alarm in alarms}
    everything = outcomes_in((tmp_path / "whole.jsonl").read_bytes().splitlines())
    outcomes = [one for one in everything if not one["segment"]]
    assert len({one["window"] for one in everything}) == len(everything) == 4 * len(outcomes)
    assert len(outcomes) == EVENTS // 600 + 1
    assert sum(one["labels"]["joined"] for one in outcomes) == len(feedback.truth)
    assert sum(one["brier"]["after"] for one in outcomes[1:]) < sum(one["brier"]["before"] for one in outcomes[1:])
    events = [json.loads(line) for line in (tmp_path / "whole-corrected.jsonl").read_bytes().splitlines()]
    assert len(events) == EVENTS
    assert all(abs(sum(one["posteriors"].values()) - 1) < 1e-9 for one in events)

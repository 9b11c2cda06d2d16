"""Late labels of a regressor on Apache Kafka, with a kill between: the outcomes and alarms of a run over files."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, read, unique
from tests.kafka.world import Member
from tests.processes import finished, started, wait_until
from tests.service import regression_streams
from tests.service.test_regression_streams import events, records

CONFIGURATION = """
[source]
{source}

[sink]
{sink}

[streams.prices]
reference = "prices.ref"
window = {{ size = "1m", lateness = "5s" }}
labels = {{ wait = "2m", store = "{name}.sqlite" }}

[streams.prices.performance]
rmse = {{ above = {most:.3f} }}
"""
WINDOWS = 8


def written(folder: Path, name: str, source: str, sink: str) -> Path:
    most = 2 * regression_streams.reference().error
    path = folder / f"{name}.toml"
    path.write_text(CONFIGURATION.format(source=source, sink=sink, name=name, most=most), encoding="utf-8")
    return path


@pytest.mark.chaos
@pytest.mark.timeout(300)
def test_outcomes_and_alarms_of_a_regressor_are_those_of_a_run_over_files(
    apache_kafka: Cluster, tmp_path: Path
) -> None:
    regression_streams.reference().save(tmp_path / "prices.ref")
    calm, doubled = (
        events(2, 1, labelled=0.5, late_labels=True),
        events(WINDOWS - 2, 2, labelled=0.5, factors=regression_streams.DOUBLED, first=2, late_labels=True),
    )
    told = records([*calm, *doubled])
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(told) + b"\n")
    written(tmp_path, "files", 'url = "jsonl:events.jsonl"', 'url = "jsonl:r.jsonl"\nalarms = "a.jsonl"')
    finished(started(tmp_path, "files.toml"))
    wanted = [line for line in (tmp_path / "r.jsonl").read_bytes().splitlines() if b"regression-outcome.v1" in line]
    alarms = (tmp_path / "a.jsonl").read_bytes().splitlines()
    assert len(wanted) == WINDOWS
    assert "rmse by labels" in {json.loads(line)["series"] for line in alarms}

    broker = Broker(apache_kafka)
    topics = {name: unique(name) for name in ("events", "results", "states", "alarms")}
    broker.create(*topics.values())
    url = f"kafka://{broker.bootstrap}"
    source = f'url = "{url}/{topics["events"]}"\ngroup = "{unique("g")}"\nsession_timeout = "6s"'
    sink = f'url = "{url}/{topics["results"]}"\nstates = "{topics["states"]}"\nalarms = "{topics["alarms"]}"'
    path = written(tmp_path, "kafka", source, sink)

    def outcomes() -> list[bytes]:
        values = [each.value or b"" for each in read(broker.bootstrap, topics["results"])]
        return [value for value in values if b"regression-outcome.v1" in value]

    half = len(told) * 5 // 8
    for part, least in ((told[:half], 1), (told[half:], WINDOWS - 3)):
        broker.produce(topics["events"], {0: part})
        member = Member(path)
        wait_until(partial(lambda least: len(outcomes()) >= least, least), f"{least} outcomes", 120)
        member.kill()
    came = outcomes()
    assert came == wanted[: len(came)]
    raised = [each.value or b"" for each in read(broker.bootstrap, topics["alarms"])]
    assert raised == alarms[: len(raised)]
    assert raised

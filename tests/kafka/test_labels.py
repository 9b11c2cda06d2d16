"""Late labels on Kafka: events and labels in topics of their own, a kill between, and the outcomes of a quiet run."""

import signal
import time
from pathlib import Path

from tests.kafka.mock import MockCluster
from tests.kafka.topics import Written, mock_broker, read, unique
from tests.labels.streams import Feedback
from tests.labels.test_outcomes import results
from tests.processes import started
from tests.service.streams import reference

CONFIGURATION = """
[source]
url = "kafka://{bootstrap}/{events},{labels}"
group = "{group}"
broker_version = "{version}"
session_timeout = "6s"

[sink]
url = "kafka://{bootstrap}/{results}"
states = "{states}"
delivery = "at-least-once"
broker_version = "{version}"

[pace]
workers = 0

[streams.s]
reference = "s.ref"
window = {{ size = "1m", lateness = "10s" }}
labels = {{ wait = "1m" }}
may = "change-mix"
"""


def outcomes(written: list[Written]) -> dict[bytes, bytes]:
    """By key; what was published before a kill and again after it has to be the same."""
    found: dict[bytes, bytes] = {}
    for each in written:
        if each.key is not None and each.key.startswith(b"outcome/"):
            assert found.setdefault(each.key, each.value or b"") == each.value
    return found


def test_outcomes_are_those_of_an_undisturbed_run(mock_cluster: MockCluster, tmp_path: Path) -> None:
    feedback, broker = Feedback(events=600), mock_broker(mock_cluster)
    names = {name: unique(name) for name in ("events", "labels", "results", "states", "group")}
    broker.create(names["events"], names["labels"], names["results"], names["states"])
    expected = {value for value in results(feedback.apart) if b"outcome.v1" in value}
    text = CONFIGURATION.format(**names, bootstrap=broker.bootstrap, version=broker.options["broker_version"])
    (tmp_path / "kafka.toml").write_text(text, encoding="utf-8")
    reference().save(tmp_path / "s.ref")

    halves = [{name: records[:half] for name, records in feedback.apart.items()} for half in (300, 10_000)]
    seen: dict[bytes, bytes] = {}
    for number, wanted in enumerate((1, len(expected) - 3)):
        for name, records in halves[number].items():
            before = len(halves[0][name]) if number else 0
            broker.produce(names[name], {0: records[before:]})
        process = started(tmp_path, "kafka.toml")
        until = time.monotonic() + 90
        while len(seen) < wanted and time.monotonic() < until and process.poll() is None:
            time.sleep(0.5)
            seen = outcomes(read(broker.bootstrap, names["results"]))
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        assert len(seen) >= wanted, errors.decode()[-3000:]
    assert set(seen.values()) <= expected

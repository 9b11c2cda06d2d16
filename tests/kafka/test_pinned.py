"""Late labels in a group: members that own their partitions keep the windows that wait, and others are refused.

partition 0    events of s0, and their labels up to three windows later     member one, killed
partition 1    events of s1, and their labels                               member two, killed
"""

import json
import random
import time
from pathlib import Path

import pytest

from connectors.kafka.settings import source_settings
from monitor.errors import ConfigurationError
from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, read, unique
from tests.kafka.world import Member
from tests.labels.streams import Feedback
from tests.marks import in_chaos
from tests.processes import wait_until
from tests.service.streams import SECOND_MS, START_MS, reference

EVENTS = 900
LATER_MS = START_MS + 86_400 * SECOND_MS

CONFIGURATION = """
[source]
url = "kafka://{bootstrap}/{topic}"
group = "{group}"
session_timeout = "6s"
driver = "{driver}"
{more}

[sink]
url = "kafka://{bootstrap}/{results}"
states = "{states}"
recalibrations = "{recalibrations}"
alarms = "{alarms}"
transaction_timeout = "5s"
driver = "{driver}"

[pace]
idle = "0s"
workers = 0

[server]
port = 0

[alarms]
false = "1 per 1d"

[streams.s0]
reference = "s.ref"
window = {{ size = "1m", lateness = "10s" }}
labels = {{ wait = "4m", store = "{store}" }}

[streams.s1]
reference = "s.ref"
window = {{ size = "1m", lateness = "10s" }}
labels = {{ wait = "4m", store = "{store}" }}
"""


def records(number: int) -> list[bytes]:
    """What a partition holds; its last event is a day later, so that all windows close and all outcomes are due."""
    name = f'"stream": "s{number}"'.encode()
    feedback = Feedback(events=EVENTS, delay=180, missing=0.4, seed=3 + number)
    last = {"stream": f"s{number}", "timestamp": LATER_MS, "posteriors": [0.5, 0.5]}
    lines = [record.replace(b'"stream": "s"', name) for _, record in feedback.records]
    return [*lines, json.dumps(last).encode()]


class Group:
    """Members with their topics, all in one folder."""

    def __init__(self, broker: Broker, folder: Path, topic: str, driver: str = "python") -> None:
        self.driver = driver
        self.broker, self.folder, self.topic = broker, folder, topic
        self.names = {name: unique(name) for name in ("group", "results", "states", "recalibrations", "alarms")}
        broker.create(self.names["results"], self.names["alarms"])
        broker.create(self.names["states"], self.names["recalibrations"], cleanup_policy="compact")
        reference().save(folder / "s.ref")

    def member(self, name: str, more: str = "") -> Member:
        given = {**self.names, "bootstrap": self.broker.bootstrap, "topic": self.topic, "driver": self.driver}
        text = CONFIGURATION.format(**given, more=more, store=f"{name}.sqlite")
        path = self.folder / f"{self.names['group']}-{name}.toml"
        path.write_text(text, encoding="utf-8")
        return Member(path)

    def published(self, name: str = "results") -> dict[bytes, list[bytes]]:
        """By key, all that was committed."""
        found: dict[bytes, list[bytes]] = {}
        for record in read(self.broker.bootstrap, self.names[name]):
            found.setdefault(record.key or b"", []).append(record.value or b"")
        return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("driver", "kills"), [in_chaos("fast", 4), in_chaos("python", 30)])
def test_outcomes_of_members_with_partitions_of_their_own_outlive_kills(
    apache_kafka: Cluster, tmp_path: Path, driver: str, kills: int
) -> None:
    broker, topic, rng = Broker(apache_kafka), unique("events"), random.Random(7)
    broker.create(topic, partitions=2)
    lines = {number: records(number) for number in (0, 1)}
    group = Group(broker, tmp_path, topic, driver)
    members = {number: group.member(f"pinned{number}", f"partitions = [{number}]") for number in (0, 1)}
    for kill in range(kills):
        part = {n: each[len(each) * kill // kills : len(each) * (kill + 1) // kills] for n, each in lines.items()}
        broker.produce(topic, part)
        members[kill % 2].wait_until_reading()
        time.sleep(rng.uniform(0.0, 1.5))
        members[kill % 2].kill()
        members[kill % 2] = group.member(f"pinned{kill % 2}", f"partitions = [{kill % 2}]")
    alone = Group(broker, tmp_path, topic, driver)
    whole = alone.member("alone")
    wanted = 2 * (EVENTS // 60) * 2
    for each, some in ((alone, [whole]), (group, list(members.values()))):
        wait_until(lambda: len(each.published()) >= wanted, f"{wanted} windows and outcomes", 200)  # noqa: B023
        for member in some:
            member.check_alive()
            member.stop()
    assert group.published() == alone.published()
    assert {key: len(values) for key, values in group.published().items() if len(values) != 1} == {}
    assert any(b'"experts":[{' in value[-1] for value in alone.published("recalibrations").values())
    last = [{key: values[-1] for key, values in each.published("recalibrations").items()} for each in (group, alone)]
    assert last[0] == last[1]
    assert group.published("alarms") == alone.published("alarms")


def test_a_second_member_whose_windows_would_wait_is_refused_and_the_first_goes_on(
    apache_kafka: Cluster, tmp_path: Path
) -> None:
    broker, topic = Broker(apache_kafka), unique("events")
    broker.create(topic, partitions=2)
    group = Group(broker, tmp_path, topic)
    first = group.member("first")
    wait_until(lambda: len(first.shares) == 2, "the first has all partitions")
    second = group.member("second")
    assert second.ended() != 0
    assert "partitions = [0, 2]" in second.said
    wait_until(lambda: len(first.shares) == 2, "the first has them all again")
    broker.produce(topic, {number: records(number) for number in (0, 1)})
    wait_until(lambda: len(group.published()) >= 4 * (EVENTS // 60), "all windows and outcomes", 120)
    first.check_alive()
    first.stop()


def test_partitions_that_are_none_are_refused(apache_kafka: Cluster, tmp_path: Path) -> None:
    broker, topic = Broker(apache_kafka), unique("events")
    broker.create(topic, partitions=2)
    member = Group(broker, tmp_path, topic).member("odd", "partitions = [1, 5]")
    assert member.ended() != 0
    assert f"there is no {topic}-5" in member.said


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "want a `group` beside `partitions`"),
        ({"group": "g", "instance": "one"}, "no `instance`"),
        ({"group": "g", "partitions": [1, 1]}, "each once"),
        ({"group": "g", "partitions": [-1]}, "at least 0"),
    ],
)
def test_what_cannot_go_with_partitions_is_said(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        source_settings({"bootstrap": "b:1", "topics": "t", "partitions": [0], **options})

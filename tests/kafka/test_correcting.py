"""Live corrected events in a topic: each once whatever is killed, and corrected again right after a restart."""

import json
import time
from pathlib import Path

from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, read, unique
from tests.kafka.world import Member
from tests.service.streams import reference
from tests.service.test_corrected_events import assert_corrected_by_the_window_they_name, recalibrations_in, records

CONFIGURATION = """
[source]
url = "kafka://{bootstrap}/{events}"
group = "{group}"
session_timeout = "6s"

[sink]
url = "kafka://{bootstrap}/{group}-results"
recalibrations = "{group}-recalibrations"
events = "{group}-corrected"
states = "{group}-states"
transaction_timeout = "5s"

[pace]
workers = 0

[streams.s]
reference = "s.ref"
window = {{ size = "2m", lateness = "0s" }}
may = "change-mix"
corrected = "live"
"""


def test_a_killed_member_goes_on_correcting_where_it_stopped(apache_kafka: Cluster, tmp_path: Path) -> None:
    broker, group, topic = Broker(apache_kafka), unique("g"), unique("events")
    broker.create(topic, f"{group}-results", f"{group}-corrected")
    broker.create(f"{group}-recalibrations", f"{group}-states", cleanup_policy="compact")
    reference().save(tmp_path / "s.ref")
    config = tmp_path / "shiftwatch.toml"
    config.write_text(CONFIGURATION.format(bootstrap=broker.bootstrap, events=topic, group=group), encoding="utf-8")

    def wait_for(events: int, member: Member) -> list[bytes]:
        until = time.monotonic() + 60
        while len(found := [one.value or b"" for one in read(broker.bootstrap, f"{group}-corrected")]) < events:
            member.check_alive()
            assert time.monotonic() < until, f"{len(found)} of {events}:\n{member.said[-2000:]}"
            time.sleep(0.1)
        return found

    whole, size = records(2_000), 500
    member = Member(config)
    for part in range(3):
        broker.produce(topic, {0: whole[part * size : (part + 1) * size]})
        wait_for((part + 1) * size, member)
    member.kill()
    broker.produce(topic, {0: whole[3 * size :]})
    again = Member(config)
    events = [json.loads(line) for line in wait_for(len(whole), again)]
    again.stop()
    assert [event["id"] for event in events] == [f"e{n}" for n in range(len(whole))]
    said = [one.value or b"" for one in read(broker.bootstrap, f"{group}-recalibrations")]
    assert_corrected_by_the_window_they_name(events, recalibrations_in(said))
    assert all(event["corrected"] for event in events[2 * size :])

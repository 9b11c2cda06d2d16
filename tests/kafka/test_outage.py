"""A broker that is away for a while: how soon reading goes on once it is back."""

import signal
import time
from pathlib import Path

import pytest

from connectors.kafka import KafkaSource, open_source, source_settings
from tests.connectors.harness import nothing
from tests.kafka.apache import Cluster
from tests.kafka.conftest import require_apache
from tests.kafka.topics import Broker

OUTAGE = 12.0
SOON = 4.0


@pytest.mark.chaos
def test_reading_goes_on_soon_after_an_outage_however_long_it_was(tmp_path: Path) -> None:
    """By default a client stays away for about as long again as the broker was: 19 s after an outage of 15."""
    require_apache()
    cluster = Cluster(tmp_path / "kafka")
    broker, sources = Broker(cluster), []
    broker.create("t")
    broker.produce("t", {0: [b"before"]})
    try:
        for driver in ("python", "fast"):
            source = open_source(source_settings({"bootstrap": broker.bootstrap, "topics": "t", "driver": driver}))
            sources.append(source)
            source.start(None)
            source.reassigned(nothing)
            assert one_record(source, 10.0) == [b"before"]
        cluster.brokers[0].stop(signal.SIGKILL)
        away = time.monotonic()
        while time.monotonic() - away < OUTAGE:
            for source in sources:
                assert list(source.poll(0.1)) == []
        cluster.brokers[0].start()
        broker.produce("t", {0: [b"after"]})
        for source in sources:
            assert one_record(source, SOON) == [b"after"]
    finally:
        for source in sources:
            source.close()
        cluster.close()


def one_record(source: KafkaSource, seconds: float) -> list[bytes | None]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for batch in source.poll(0.1):
            return list(batch.records)
    return []

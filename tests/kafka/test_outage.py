"""A broker that is away for a while: how soon reading goes on once it is back."""

import gc
import logging
import os
import signal
import threading
import time
from operator import le
from pathlib import Path

import pytest

from connectors.kafka import KafkaSource, open_source, python_driver, sink_settings, source_settings
from connectors.kafka.driver import CommittedOffset, Partition, Record
from connectors.kafka.python_driver import writer
from monitor.errors import CommitRefusedError
from tests.connectors.harness import nothing
from tests.kafka.apache import Cluster
from tests.kafka.conftest import require_apache
from tests.kafka.topics import Broker
from tests.processes import wait_until

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


@pytest.mark.chaos
def test_an_outage_of_any_length_takes_a_bounded_number_of_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """kafka-python leaves the socket of each refused connection open, one a second: soon there are no more."""
    require_apache()
    caplog.set_level(logging.CRITICAL + 1, "kafka")  # kept records would keep the connections that they tell of
    monkeypatch.setattr(python_driver, "TIDY_SECONDS", 2.0)
    cluster = Cluster(tmp_path / "kafka")
    broker = Broker(cluster)
    broker.create("t")
    broker.produce("t", {0: [b"before"]})
    source = open_source(source_settings({"bootstrap": broker.bootstrap, "topics": "t"}))
    gc.disable()  # as good as in the service, which has it look rarely
    try:
        source.start(None)
        source.reassigned(nothing)
        assert one_record(source, 10.0) == [b"before"]
        before = len(os.listdir("/proc/self/fd"))
        cluster.brokers[0].stop(signal.SIGKILL)
        away = time.monotonic()
        while time.monotonic() - away < OUTAGE:
            assert list(source.poll(0.1)) == []
        assert len(os.listdir("/proc/self/fd")) < before + OUTAGE / 2
    finally:
        gc.enable()
        source.close()
        cluster.close()


@pytest.mark.chaos
@pytest.mark.parametrize("written", [False, True])
def test_nothing_stays_open_of_transactions_whose_broker_died_in_their_middle(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, written: bool
) -> None:
    """Messages that nobody answers kept a producer from closing: its thread and its sockets stayed with each outage.

    Once they are written it is the commit that nobody answers, and whoever waited for it stayed.
    """
    require_apache()
    caplog.set_level(logging.CRITICAL + 1, "kafka")  # kept records would keep the connections that they tell of
    cluster = Cluster(tmp_path / "kafka")
    broker = Broker(cluster)
    broker.create("in", "results")
    settings = {"bootstrap": broker.bootstrap, "results": "results", "transaction_timeout": "3s"}
    made = writer(sink_settings(settings), "w")
    offset = 0

    def write() -> None:
        made.begin()
        made.send([Record("results", b"k", os.urandom(20_000), ())] * 300)

    def commit() -> None:
        nonlocal offset
        offset += 1
        made.commit({Partition("in", 0): CommittedOffset(offset, "")}, "group")

    def opened() -> tuple[int, int]:
        gc.collect()  # in cycles kafka-python leaves what was refused while the broker was away
        return threading.active_count(), len(os.listdir("/proc/self/fd"))

    try:
        write()
        commit()
        before = opened()
        for _ in range(3):
            if written:
                write()
                made.flush()
            cluster.brokers[0].stop(signal.SIGKILL)
            back = threading.Thread(target=cluster.brokers[0].start)
            back.start()
            if not written:
                write()
            with pytest.raises(CommitRefusedError, match="no answer"):
                commit()
            back.join()
            write()
            commit()
        wait_until(lambda: all(map(le, opened(), before)), f"no more than {before} threads and descriptors")
    finally:
        made.close()
        cluster.close()


def one_record(source: KafkaSource, seconds: float) -> list[bytes | None]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for batch in source.poll(0.1):
            return list(batch.records)
    return []

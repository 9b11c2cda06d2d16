"""The connector of deploy/examples/redis-streams, installed as a user would, against the redis-server of the system."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import redis

from monitor.commands.connectors import open_source
from monitor.errors import ConfigurationError, OutageError
from monitor.ports import Checkpoint, Progress
from tests.connectors.contract import SourceContract
from tests.connectors.harness import RECORDS, SourceCase
from tests.examples import ROOT
from tests.processes import free_port, wait_until
from tests.service.streams import lines, reference

PROJECT = ROOT / "deploy" / "examples" / "redis-streams"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Its module, from a folder that it was installed to."""
    folder, project = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("project") / "redis"
    shutil.copytree(PROJECT, project)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target"]
    subprocess.run([*pip, str(folder), str(project)], check=True)
    sys.path.insert(0, str(folder))
    yield importlib.import_module("shiftwatch_redis")
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a server with nothing in it."""
    if shutil.which("redis-server") is None:
        pytest.skip("there is no redis-server")
    port, folder = free_port(), tmp_path_factory.mktemp("redis")
    server = subprocess.Popen(
        ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)],
        stdout=subprocess.DEVNULL,
    )
    with redis.Redis(port=port) as client:
        wait_until(lambda: answers(client), "redis-server")
    yield port
    server.terminate()
    server.wait()


@pytest.fixture
def client(port: int) -> Iterator[redis.Redis]:
    with redis.Redis(port=port) as client:
        client.flushall()
        yield client


def answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def opened(port: int, offsets: Mapping[str, int] | None = None, **options: Any) -> Any:
    source = open_source(f"redis://127.0.0.1:{port}/0", {"keys": ["s"], **options})
    source.start(Checkpoint({key: Progress(at) for key, at in offsets.items()}) if offsets else None)
    return source


class TestRedisStreams(SourceContract):
    @pytest.fixture
    def source(self, installed: ModuleType, port: int, client: redis.Redis) -> SourceCase:
        for key, records in RECORDS.items():
            for number, record in enumerate(records):
                client.xadd(key, {"event": record}, id=f"{1_000 + number // 7}-{number % 7}")
        options = {"keys": list(RECORDS), "follow": False}
        return SourceCase(lambda: open_source(f"redis://127.0.0.1:{port}/0", options), RECORDS)


def test_new_entries_are_waited_for_and_bring_their_time(installed: ModuleType, port: int, client: redis.Redis) -> None:
    source = opened(port)
    assert source.poll(0.01) == []
    client.xadd("s", {"event": b"1"}, id="1700000000123-4")
    client.xadd("s", {"other": b"2"}, id="1700000000123-5")
    (batch,) = source.poll(5.0)
    assert batch.records == [b"1", None]
    assert batch.timestamps is not None
    assert batch.timestamps.tolist() == [1_700_000_000_123_000] * 2
    assert not source.finished
    source.close()


def test_entries_that_were_trimmed_before_they_were_read_are_a_gap(
    installed: ModuleType, port: int, client: redis.Redis
) -> None:
    for number in range(10):
        client.xadd("s", {"event": b"%d" % number}, id=f"{number + 1}-0")
    source = opened(port)
    (batch,) = source.poll(0.0)
    client.xtrim("s", maxlen=2, approximate=False)
    assert source.poll(0.0) == []  # all of them were read
    again = opened(port, {"s": int(batch.offsets[3])})
    gap, rest = [*again.poll(0.0), *again.poll(0.0)][:2]
    assert (gap.skipped, len(gap.records)) == (1, 0)
    assert rest.records == [b"8", b"9"]
    assert again.report().skipped == 1
    for each in (source, again):
        each.close()


def test_a_server_that_is_away_is_an_outage(installed: ModuleType) -> None:
    with pytest.raises(OutageError, match="Redis does not answer"):
        opened(free_port())


def test_settings_that_cannot_be_are_told(installed: ModuleType) -> None:
    with pytest.raises(ConfigurationError, match="keys: want a list"):
        open_source("redis://127.0.0.1:1/0", {})
    with pytest.raises(ConfigurationError, match="there is no such setting"):
        open_source("redis://127.0.0.1:1/0", {"keys": ["s"], "kyes": 1})


CONFIGURATION = """
[source]
url = "redis://127.0.0.1:{port}/0"
keys = ["s"]
follow = false
[sink]
url = "jsonl:results.jsonl"
[pace]
workers = 0
[streams.s]
reference = "s.ref"
window = {{ count = 1000 }}
"""


def test_a_service_reads_it(installed: ModuleType, port: int, client: redis.Redis, tmp_path: Path) -> None:
    reference().save(tmp_path / "s.ref")
    with client.pipeline() as pipe:
        for line in lines(3_000):
            pipe.xadd("s", {"event": line or b""})
        pipe.execute()
    (tmp_path / "run.toml").write_text(CONFIGURATION.format(port=port), encoding="utf-8")
    folder = str(Path(str(installed.__file__)).parent)
    subprocess.run(
        [sys.executable, "-m", "monitor", "run", str(tmp_path / "run.toml")],
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        check=True,
        timeout=120,
    )
    windows = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [window["events"]["used"] for window in windows] == [1000] * 3

"""A running service on a stream whose class mix moves and comes back, and one on a stream where nothing happens."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from connectors.worlds import World
from monitor.reference.classifier import Reference
from tests.deploy.parts import running, until
from tests.processes import free_port

RATE = 1_000  # events a second, a thousand to each window of a second
WORLD = World(priors=(0.5, 0.3, 0.2))


@dataclass(frozen=True)
class Live:
    """Where the two services answer."""

    shifting: str
    calm: str


@pytest.fixture(scope="session")
def reference_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reference") / "world.ref"
    holdout = WORLD.holdout(10_000)
    Reference.fit(
        holdout.posteriors,
        holdout.labels,
        holdout.features,
        classes=WORLD.classes,
        feature_names=WORLD.features,
    ).save(path)
    return path


@pytest.fixture(scope="module")
def live(reference_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with ExitStack() as stack:
        urls = {}
        for stream, periods in (
            # The shift begins when Prometheus has come up, on a busy machine too.
            ("shifting", [(20, ""), (30, "priors = [0.1, 0.2, 0.7]"), (300, "")]),
            ("calm", [(350, "")]),
        ):
            folder, port = tmp_path_factory.mktemp(stream), free_port()
            (folder / "shiftwatch.toml").write_text(_configuration(stream, port, reference_file, periods))
            command = [sys.executable, "-m", "monitor", "run", str(folder / "shiftwatch.toml")]
            process = stack.enter_context(running(command, folder / "log"))
            urls[stream] = f"http://127.0.0.1:{port}"
            ready = urls[stream] + "/readyz"
            until(lambda ready=ready: httpx.get(ready).status_code == 200, 60, f"{stream} to be ready")  # type: ignore[misc]
            assert process.poll() is None, (folder / "log").read_text()
        yield Live(**urls)


def _configuration(stream: str, port: int, reference: Path, periods: list[tuple[int, str]]) -> str:
    tables = "".join(
        f'\n[[source.periods]]\nname = "{number}"\nevents = {seconds * RATE}\n{said}\n'
        for number, (seconds, said) in enumerate(periods)
    )
    return f"""
[sink]
url = "jsonl:results.jsonl"

[server]
port = {port}

[pace]
commit = "1s"

[streams.{stream}]
reference = "{reference}"
window = {{ size = "1s", lateness = "0s" }}

[source]
url = "synthetic:"
start = {time.time_ns() // 1_000}
interval = "1ms"
rate = {RATE}
labelled = 0.2

[source.world]
stream = "{stream}"
priors = {list(WORLD.priors)}
{tables}"""

"""`shiftwatch flink watch` in a process of its own."""

import json
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.outside import answer
from tests.processes import wait_until


def address(config: Path) -> str:
    """Where the [server] of a configuration answers."""
    found = re.search(r"^port = (\d+)$", config.read_text(), re.MULTILINE)
    assert found is not None, f"{config} has no [server]"
    return f"http://127.0.0.1:{found[1]}"


class Watcher:
    """One that has been started, and answers at `address`."""

    def __init__(self, config: Path) -> None:
        self.address = address(config)
        self._log = config.with_suffix(".log")
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "monitor", "flink", "watch", str(config)], stderr=log
            )

    def wait_until_ready(self) -> None:
        def ready() -> bool:
            assert self._process.poll() is None, self._log.read_text()[-3_000:]
            with suppress(OSError):
                return "ready" in answer(f"{self.address}/readyz")
            return False

        wait_until(ready, "a watcher that is ready", pause=0.1)

    def samples(self, name: str) -> dict[tuple[str, ...], float]:
        """The samples of a metric, by the values of their labels."""
        families = text_string_to_metric_families(answer(f"{self.address}/metrics"))
        return {
            tuple(sample.labels.values()): sample.value
            for family in families
            for sample in family.samples
            if sample.name == name
        }

    @property
    def windows(self) -> int:
        """How many it has counted, segments apart."""
        return int(sum(self.samples("shiftwatch_windows_total").values()))

    def shown(self, stream: str) -> bytes:
        """The result of the newest window; nothing before the first."""
        with suppress(OSError):
            return answer(f"{self.address}/api/streams/{stream}/result").encode()
        return b""

    def remembered(self, stream: str) -> list[Any]:
        """Its windows."""
        return list(json.loads(answer(f"{self.address}/api/streams/{stream}/windows?limit=1000")))

    def found(self, stream: str) -> int:
        """How many windows there were when it began, of which at least one is awaited: it does not count them."""
        wait_until(lambda: self.shown(stream) != b"", "a window that is shown")
        while True:
            counted = self.windows
            there = len(self.remembered(stream))
            if self.windows == counted:
                return there - counted

    def stop(self) -> int:
        """As an operator does; its exit code."""
        self._process.terminate()
        return self._process.wait(30)

    def close(self) -> None:
        """Whatever it does."""
        self._process.kill()
        self._process.wait()

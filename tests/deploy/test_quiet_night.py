"""The alert on windows that do not come, with a real Prometheus: it sleeps through a quiet night, and no trouble.

The rule is ours with its patience cut short, as the nights of a test are.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import httpx
import pytest

from tests.deploy.conftest import WORLD
from tests.deploy.parts import Prometheus, need, prometheus, running, until
from tests.processes import free_port

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]
NIGHT = 15.0
"""Three times as long as the rule as it is cut short takes to fire."""
CONFIG = """
[source]
url = "jsonl:{folder}/events"
follow = true

[sink]
url = "jsonl:{folder}/results.jsonl"

[server]
port = {port}

[pace]
commit = "1s"
idle = "1h"

[streams.s]
reference = "{reference}"
window = {{ size = "1s", lateness = "0s" }}
"""


def cut_short(rules: str) -> str:
    """Three seconds without a window, where events have come within four: not ten minutes and three windows."""
    for ours, short in (
        ("> 600 + 3 * max", "> 2 + max"),
        ("(shiftwatch_events_total[10m])", "(shiftwatch_events_total[4s])"),
    ):
        assert ours in rules
        rules = rules.replace(ours, short)
    return rules


def test_a_quiet_night_pages_nobody_and_windows_that_are_held_up_do(reference_file: Path, tmp_path: Path) -> None:
    need("prometheus")
    (tmp_path / "events").mkdir()
    port = free_port()
    config = tmp_path / "shiftwatch.toml"
    config.write_text(CONFIG.format(folder=tmp_path, port=port, reference=reference_file), encoding="utf-8")
    files = [tmp_path / "events" / f"{name}.jsonl" for name in "ab"]
    for file in files:
        file.touch()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "monitor", "run", str(config)]
    with running(command, tmp_path / "log"), prometheus(tmp_path, [url], rules=True, rewritten=cut_short) as server:
        until(lambda: httpx.get(url + "/readyz").status_code == 200, 60, "the service")
        until(lambda: events_come(files) and server.query("shiftwatch_windows_total > 3"), 60, "windows")
        until(lambda: left_open(files, server), 60, "a last window that stays open")
        time.sleep(NIGHT)
        assert server.query(f"time() - shiftwatch_waiting_since_timestamp_seconds > {NIGHT / 2}"), "it is still open"
        assert alerts(server) == []
        # In the morning one of the two brings nothing, and holds the windows open for an hour.
        until(lambda: events_come(files[:1]) and alerts(server), 60, "the alert")


def events_come(files: Sequence[Path]) -> bool:
    """A tenth of a second's."""
    posteriors = WORLD.holdout(100).posteriors.tolist()
    for file in files:
        with file.open("a", encoding="utf-8") as lines:
            now = time.time_ns() // 1_000_000
            lines.writelines(json.dumps({"timestamp": now, "posteriors": row}) + "\n" for row in posteriors)
    time.sleep(0.1)
    return True


def left_open(files: Sequence[Path], server: Prometheus) -> bool:
    """Whether the last events have come into a window that nothing closes: each window's first close the one before."""
    for _ in range(3):
        events_come(files)
    time.sleep(1.5)
    return bool(server.query("shiftwatch_waiting_since_timestamp_seconds"))


def alerts(server: Prometheus) -> list[str]:
    """Those that have fired within the last minute."""
    found = server.query('last_over_time(ALERTS{alertname="ShiftwatchNoWindows", alertstate="firing"}[1m])')
    return [each["metric"]["stream"] for each in found]

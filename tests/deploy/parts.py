"""The real parts: Prometheus and Alertmanager of Debian, started on loopback; and a receiver for their alerts."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any

import httpx
import pytest
import yaml

from monitor.commands.connectors import open_both
from monitor.settings.config import Config, load
from tests.processes import free_port

DEPLOY = Path(__file__).parents[2] / "deploy"


def need(*programs: str) -> None:
    """Skips with the reason where a program is missing; in CI it must be there."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing and os.environ.get("CI") == "true":
        pytest.fail(f"{', '.join(missing)} must be installed in CI")
    if missing:
        pytest.skip(
            f"{', '.join(missing)} cannot be found: apt-get install prometheus prometheus-alertmanager chromium"
        )


def until(true: Callable[[], Any], seconds: float, what: str) -> Any:
    """The first true answer; fails after so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if answer := true():
                return answer
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"after {seconds:.0f} s still waiting for {what}")


def tool(*command: str, cwd: Path | None = None) -> None:
    """A checker that has to be content."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr


def opened(text: str, folder: Path) -> Config:
    """A configuration that is shipped, read as a service would; its source and sink open."""
    path = folder / "shiftwatch.toml"
    path.write_text(text, encoding="utf-8")
    loaded = load(path, {"KAFKA_PASSWORD": "p", "SHIFTWATCH_TOKEN": "t"})
    ends = [
        (table["url"], {key: value for key, value in table.items() if key != "url"})
        for table in (loaded.source, loaded.sink)
    ]
    open_both(ends[0], ends[1])  # finds every problem, and connects to nothing yet
    assert loaded.source["group"]
    assert loaded.server is not None
    assert loaded.server.token
    return loaded


@contextmanager
def running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process while the block runs; what it wrote stands in the log."""
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


class Receiver:
    """Takes what Alertmanager sends to a webhook."""

    def __init__(self) -> None:
        self.alerts: list[dict[str, Any]] = []
        alerts = self.alerts

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                alerts.extend(json.loads(self.rfile.read(int(self.headers["content-length"])))["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def names(self, status: str) -> set[str]:
        return {alert["labels"]["alertname"] for alert in self.alerts if alert["status"] == status}

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Prometheus:
    """A running one, asked over its API."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def query(self, expression: str) -> list[dict[str, Any]]:
        answer = httpx.get(self.url + "/api/v1/query", params={"query": expression}).json()
        assert answer["status"] == "success", (expression, answer)
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found


@contextmanager
def prometheus(
    folder: Path,
    targets: list[str],
    alertmanager: str = "",
    *,
    rules: bool = False,
    rewritten: Callable[[str], str] = str,
    scrape: Mapping[str, Any] = MappingProxyType({"job_name": "shiftwatch"}),
) -> Iterator[Prometheus]:
    """One that scrapes twice a second; with our rules, their patience cut short, if asked or with an Alertmanager.

    What else is to be otherwise in the rules is `rewritten`.
    """
    port, addresses = free_port(), [one.removeprefix("http://") for one in targets]
    config: dict[str, Any] = {
        "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
        "scrape_configs": [{**scrape, "static_configs": [{"targets": addresses}]}],
    }
    if rules or alertmanager:
        ours = (DEPLOY / "prometheus" / "shiftwatch.rules.yml").read_text(encoding="utf-8")
        (folder / "rules.yml").write_text(rewritten(re.sub(r"for: \d+[mh]", "for: 3s", ours)), encoding="utf-8")
        config["rule_files"] = ["rules.yml"]
    if alertmanager:
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [
        "prometheus",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
        "--enable-feature=exemplar-storage",
    ]
    with running(command, folder / "prometheus.log"):
        server = Prometheus(port)
        until(lambda: httpx.get(server.url + "/-/ready").status_code == 200, 90, "Prometheus")
        yield server

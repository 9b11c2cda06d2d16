"""From a synthetic stream to a pager, with the real Prometheus and Alertmanager; and every panel on real data."""

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import numpy as np
import pytest
import yaml

from monitor.assessment.verdict import Verdict
from monitor.settings.config import ServerSettings
from monitor.web.server import serving
from tests.deploy.conftest import Live
from tests.deploy.parts import DEPLOY, Prometheus, Receiver, need, prometheus, running, until
from tests.processes import free_port
from tests.web.made_up import Lagging, Story, Transacting

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

EXPRESSIONS = [
    pytest.param(target["expr"], id=f"{path.stem}: {panel['title']}: {target['legendFormat']}")
    for path in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
    for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]
    for target in panel["targets"]
]


@contextmanager
def alertmanager(folder: Path, receiver: Receiver) -> Iterator[str]:
    """One with our routes and inhibitions, without their patience; gives its address."""
    port = free_port()
    config = (DEPLOY / "alertmanager" / "alertmanager.yml").read_text(encoding="utf-8")
    config = config.replace("http://127.0.0.1:9094", receiver.url)
    config = re.sub(r"group_wait: \w+", "group_wait: 1s", re.sub(r"group_interval: \w+", "group_interval: 1s", config))
    (folder / "alertmanager.yml").write_text(config, encoding="utf-8")
    command = [
        "prometheus-alertmanager",
        f"--config.file={folder}/alertmanager.yml",
        f"--storage.path={folder}/alertmanager",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    with running(command, folder / "alertmanager.log"):
        address = f"127.0.0.1:{port}"
        until(lambda: httpx.get(f"http://{address}/-/ready").status_code == 200, 90, "Alertmanager")
        yield address


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="module", autouse=True)
def _parts() -> None:
    need("prometheus", "promtool", "prometheus-alertmanager")


def test_a_shift_fires_its_alert_and_resolves_it_and_a_calm_stream_fires_nothing(
    live: Live, receiver: Receiver, tmp_path: Path
) -> None:
    with (
        alertmanager(tmp_path, receiver) as address,
        prometheus(tmp_path, [live.shifting, live.calm], address) as server,
    ):
        until(lambda: "ShiftwatchPriorShift" in receiver.names("firing"), 120, "the alert")
        until(lambda: "ShiftwatchPriorShift" in receiver.names("resolved"), 120, "its end")
        until(lambda: not server.query('ALERTS{alertstate="firing"}'), 60, "quiet")
        fired = {(one["labels"]["alertname"], one["labels"].get("stream")) for one in receiver.alerts}
        assert fired <= {("ShiftwatchPriorShift", "shifting"), ("ShiftwatchPrevalenceOutOfRange", "shifting")}
        assert server.query('sum(shiftwatch_windows_total{stream="calm",verdict="stable"}) > 10')
        exemplars = httpx.get(
            server.url + "/api/v1/query_exemplars",
            params={
                "query": "shiftwatch_windows_total",
                "start": (datetime.now(UTC) - timedelta(minutes=10)).isoformat(),
                "end": datetime.now(UTC).isoformat(),
            },
        ).json()["data"]
        assert any(one["labels"]["window"].startswith("calm//") for series in exemplars for one in series["exemplars"])


def test_a_stream_without_windows_keeps_quiet_about_its_last_verdict(receiver: Receiver, tmp_path: Path) -> None:
    with alertmanager(tmp_path, receiver) as address:
        for name, stream, severity in (
            ("ShiftwatchNoWindows", "s", "critical"),
            ("ShiftwatchPriorShift", "s", "warning"),
            ("ShiftwatchPriorShift", "t", "warning"),
        ):
            labels = {"alertname": name, "stream": stream, "severity": severity}
            httpx.post(f"http://{address}/api/v2/alerts", json=[{"labels": labels}]).raise_for_status()
        told = lambda: {(one["labels"]["alertname"], one["labels"]["stream"]) for one in receiver.alerts}  # noqa: E731
        wanted = {("ShiftwatchNoWindows", "s"), ("ShiftwatchPriorShift", "t")}
        until(lambda: told() >= wanted, 90, "two alerts")
        assert told() == wanted


@pytest.fixture(scope="module")
def scraped(live: Live, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A Prometheus that knows the live stream, and one that was made up to have everything: segments, labels, lag."""
    story = Story(source=Lagging(), sink=Transacting())
    story.window(Verdict.PRIOR_SHIFT, labels=np.array([0, 1, 2, 0, 1, 2, 0, 0, 0, 0]), apply=True)
    story.outcome(labelled=40)
    story.window(segment="country=BE")
    story.busy(rejected=2)
    with ExitStack() as stack:
        made_up = stack.enter_context(serving(ServerSettings(port=0), story.history))
        folder = tmp_path_factory.mktemp("scraped")
        server = stack.enter_context(prometheus(folder, [live.calm, made_up]))
        until(lambda: server.query("rate(shiftwatch_assessment_duration_seconds_count[10s]) > 0"), 60, "windows")
        yield server


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_panel_shows_data(scraped: Prometheus, expression: str) -> None:
    for variable, value in (("$stream", "made-up|calm"), ("$segment", "()"), ("$__rate_interval", "10s")):
        expression = expression.replace(variable, value)
    expression = expression.replace('stream="made-up|calm"', 'stream=~"made-up|calm"')
    found = until(lambda: scraped.query(expression), 90, expression)
    assert any(sample["value"][1] != "NaN" for sample in found)


def test_every_rule_of_grafana_can_be_evaluated(scraped: Prometheus) -> None:
    text = (DEPLOY / "grafana" / "provisioning" / "alerting" / "shiftwatch.yml").read_text(encoding="utf-8")
    for group in yaml.safe_load(text)["groups"]:
        for rule in group["rules"]:
            scraped.query(rule["data"][0]["model"]["expr"])


def test_promtool_finds_nothing_to_complain_about(live: Live) -> None:
    for url in (live.shifting, live.calm):
        scrape = httpx.get(url + "/metrics").content
        checked = subprocess.run(["promtool", "check", "metrics"], input=scrape, capture_output=True, check=False)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")

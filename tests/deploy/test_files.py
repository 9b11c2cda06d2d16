"""What is shipped for operation is valid by the tools that will read it, and speaks of metrics that exist."""

import importlib.util
import json
import re
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from monitor.assessment.verdict import Verdict, table
from monitor.observers.metric_catalogue import CATALOGUE
from tests.deploy.parts import DEPLOY, need, opened, tool

KNOWN = {name for spec in CATALOGUE for name in spec.series} | {
    "shiftwatch_process_resident_memory_bytes",
    "shiftwatch_process_cpu_seconds_total",
}


def used(text: str) -> set[str]:
    return set(re.findall(r"\bshiftwatch_[a-z_]+\b", text))


RULES = sorted((DEPLOY / "prometheus").glob("*.rules.yml"))


def rules() -> list[dict[str, Any]]:
    """All alerts."""
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def test_alert_rules_pass_promtool_and_their_own_tests() -> None:
    need("promtool")
    folder = DEPLOY / "prometheus"
    tool("promtool", "check", "rules", *(path.name for path in RULES), cwd=folder)
    tool("promtool", "check", "config", "prometheus.yml", cwd=folder)
    tool("promtool", "test", "rules", *(path.name for path in sorted(folder.glob("*.test.yml"))), cwd=folder)


def test_the_alertmanager_example_passes_amtool_and_routes_by_severity() -> None:
    need("amtool")
    config = str(DEPLOY / "alertmanager" / "alertmanager.yml")
    tool("amtool", "check-config", config)
    for severity, receiver in (("critical", "on-call"), ("warning", "team"), ("info", "record")):
        routed = ["--verify.receivers", receiver, f"severity={severity}", "alertname=X"]
        tool("amtool", "config", "routes", "test", "--config.file", config, *routed)


def test_alerts_and_dashboards_name_only_metrics_and_verdicts_that_exist() -> None:
    for path in [*RULES, *(DEPLOY / "grafana" / "dashboards").glob("*.json")]:
        text = path.read_text(encoding="utf-8").replace("\\", "")
        assert used(text) <= KNOWN, path
        for names in re.findall(r'verdict=~?"([^"]*)"', text):
            assert set(names.split("|")) <= {str(verdict) for verdict in Verdict}


def test_every_alert_says_what_is_wrong_how_bad_it_is_and_has_a_runbook() -> None:
    headings = {
        line.lstrip("# ").strip().lower()
        for line in (DEPLOY / "RUNBOOK.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("#")
    }
    for rule in rules():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert {"summary", "description", "runbook"} <= set(rule["annotations"])
        file, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert (file, anchor) == ("deploy/RUNBOOK.md", rule["alert"].lower())
        assert anchor in headings


def test_runbook_and_readme_have_the_table_of_verdicts() -> None:
    for path in (DEPLOY / "RUNBOOK.md", DEPLOY.parent / "README.md"):
        assert table() in path.read_text(encoding="utf-8"), f"put verdict.table() into {path.name}"


@pytest.mark.parametrize("verdict", list(Verdict))
def test_one_alert_waits_for_each_verdict_that_moved_and_is_as_grave(verdict: Verdict) -> None:
    told = [rule for rule in rules() if re.search(rf'verdict=~?"([^"]*\|)?{verdict}(\||")', rule["expr"])]
    in_segments = [rule for rule in told if 'segment!=""' in rule["expr"]]
    assert all(rule["labels"]["severity"] == "warning" for rule in in_segments)
    told = [rule for rule in told if rule not in in_segments]
    assert len(told) == verdict.moved
    for rule in told:
        assert rule["labels"]["severity"] == verdict.facts.gravity
        assert "shiftwatch_alarm" in rule["expr"]


def test_dashboards_and_alerts_of_grafana_are_what_their_builder_writes() -> None:
    """Run `python deploy/grafana/build.py`."""
    spec = importlib.util.spec_from_file_location("build", DEPLOY / "grafana" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    sys.modules["build"] = build  # dataclasses look their module up
    spec.loader.exec_module(build)
    for path, content in build.written().items():
        assert path.read_text(encoding="utf-8") == content, path


def test_panels_do_not_overlap_and_have_descriptions() -> None:
    for path in (DEPLOY / "grafana" / "dashboards").glob("*.json"):
        taken: set[tuple[int, int]] = set()
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert place["x"] + place["w"] <= 24
            assert not cells & taken
            assert panel["description"]
            taken |= cells


@pytest.mark.parametrize("folder", ["compose/config", "flink"])
def test_the_configuration_of_compose_opens(folder: str, tmp_path: Path) -> None:
    text = (DEPLOY / folder / "shiftwatch.toml").read_text(encoding="utf-8")
    secret = tmp_path / "token"
    secret.write_text("a token\n", encoding="utf-8")
    opened(text.replace("/run/secrets/token", str(secret)), tmp_path)


@pytest.mark.parametrize("folder", ["container", "flink"])
def test_the_container_file_passes_hadolint(folder: str) -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if hadolint is None:
        pytest.skip("hadolint is not installed: pip install '.[deploy]'")
    tool(hadolint, str(DEPLOY / folder / "Containerfile"))


def test_the_systemd_unit_passes_its_own_verifier(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze cannot be found: not a machine with systemd")
    unit = tmp_path / "shiftwatch.service"
    text = (DEPLOY / "systemd" / "shiftwatch.service").read_text(encoding="utf-8")
    unit.write_text(text.replace("/opt/shiftwatch/bin/shiftwatch", shutil.which("true") or "/bin/true"))
    tool("systemd-analyze", "verify", str(unit))


def test_the_compose_file_of_the_job_has_all_that_its_configuration_names() -> None:
    folder = DEPLOY / "flink"
    compose = yaml.safe_load((folder / "compose.yml").read_text(encoding="utf-8"))
    settings = tomllib.loads((folder / "shiftwatch.toml").read_text(encoding="utf-8"))
    topics = yaml.safe_load((DEPLOY / "compose" / "compose.yml").read_text(encoding="utf-8"))["services"]["topics"]
    for name in ("submit", "watch"):
        service = compose["services"][name]
        mounts = {target: source for source, target, _ in (each.split(":") for each in service["volumes"])}
        assert (folder / mounts[service["command"][0]]).resolve() == folder / "shiftwatch.toml"
        assert {str(Path(stream["reference"]).parent) for stream in settings["streams"].values()} <= mounts.keys()
        assert settings["server"]["token"] == "${file:/run/secrets/token}"
        assert service["secrets"] == [*compose["secrets"]] == ["token"]
    for topic in (settings["sink"]["states"], settings["sink"]["dead_letters"]):
        assert topic in str(topics["command"])
    assert compose["services"]["watch"]["ports"] == ["127.0.0.1:8321:8321"]

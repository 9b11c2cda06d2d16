"""The guides that choose, compare and move: their examples run, and what they promise is so."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from monitor.commands.run import opened
from monitor.settings.config import load
from tests.deploy.parts import need
from tests.pages import GUIDES, ROOT, blocks, followed, page
from tests.web.verdict_pictures import PICTURE, WINDOWS, assessed, picture


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the examples take for granted: a fitted model, its hold-out, and what it has scored since."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.where(rng.random(7_000) < 0.3, "fraud", "legit")
    X = rng.normal(size=(7_000, 3)) + [2.0, 1.0, 0.0] * (y == "fraud")[:, None]
    model = LogisticRegression().fit(X[:1_000], y[:1_000])
    return {"model": model, "X": X[1_000:4_000], "y": y[1_000:4_000], "X_today": X[4_000:]}


def test_a_larger_window_knows_the_mix_better(known: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    followed(python_of("windows-and-hold-outs"), known)
    said = re.findall(r"(\d+) events: .* between ([\d.]+)% and ([\d.]+)%", capsys.readouterr().out)
    widths = [float(high) - float(low) for _, low, high in said]
    assert [events for events, _, _ in said] == ["100", "300", "1000", "3000"]
    assert widths == sorted(widths, reverse=True)


def test_features_name_what_scores_alone_cannot(known: dict[str, Any]) -> None:
    followed(python_of("features-or-scores"), known)
    assert known["without"].verdict.moved
    assert known["found"].verdict == "covariate-shift"
    assert "x0" in known["found"].reasons[0]


@pytest.mark.parametrize("guide", ["segments", "moving"])
def test_the_examples_run(guide: str, known: dict[str, Any]) -> None:
    followed(python_of(guide), known)
    assert known["reference"].classes == ("fraud", "legit")


@pytest.mark.parametrize("guide", ["thresholds", "segments"])
def test_their_settings_open(guide: str, known: dict[str, Any]) -> None:
    followed(python_of("windows-and-hold-outs"), known)
    source = '[source]\nurl = "jsonl:events.jsonl"\n[sink]\nurl = "jsonl:results.jsonl"\n'
    stream = '[streams.fraud-v3]\nreference = "fraud-v3.ref"\nwindow = { size = "5m", lateness = "30s" }\n'
    Path("events.jsonl").touch()
    for block in blocks(page(GUIDES / f"{guide}.md"), "toml"):
        own = "" if "[streams.fraud-v3]\n" in block else stream
        Path("shiftwatch.toml").write_text(source + own + block, encoding="utf-8")
        assert list(opened(load(Path("shiftwatch.toml")), Path())[2]) == ["fraud-v3"]


def test_alertmanager_takes_the_example_and_tells_pagerduty_of_what_is_critical(tmp_path: Path) -> None:
    need("amtool")
    (config,) = blocks(page(GUIDES / "alerting.md"), "yaml")
    (tmp_path / "alertmanager.yml").write_text(config, encoding="utf-8")
    assert amtool(tmp_path, "check-config", "alertmanager.yml")
    (line,) = blocks(page(GUIDES / "alerting.md"), "sh")
    assert amtool(tmp_path, *line.split()[1:]).split() == ["pagerduty,slack"]


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "agg")
    cells = json.loads(page(GUIDES / "first-look.ipynb"))["cells"]
    space: dict[str, Any] = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), space)  # noqa: S102 - our own notebook
    assert "age_days" in " ".join(space["assessment"].reasons)
    assert space["assessment"].verdict.moved


def test_every_link_of_every_guide_leads_somewhere() -> None:
    for guide in [*GUIDES.glob("*.md"), ROOT / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page(guide)):
            assert "://" in target or (guide.parent / target).exists(), f"{guide.name}: {target}"


def python_of(guide: str) -> str:
    return "".join(f"```python\n{block}```\n" for block in blocks(page(GUIDES / f"{guide}.md"), "python"))


def amtool(folder: Path, *arguments: str) -> str:
    return subprocess.run(["amtool", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_the_pictures_of_the_verdicts_are_of_windows_with_these_verdicts() -> None:
    found = assessed()
    assert {verdict: one.verdict for verdict, one in found.items()} == {verdict: verdict for verdict in WINDOWS}
    kept, made = PICTURE.read_text(encoding="utf-8"), picture(found)
    assert re.findall(r'class="b".*', kept) == re.findall(r'class="b".*', made)

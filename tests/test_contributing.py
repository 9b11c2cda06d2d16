"""CONTRIBUTING.md's worked examples: taken from the page, put into a copy of the packages, and run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.examples import ROOT, TEXT, blocks


def patched(text: str, diff: str) -> str:
    """The text with each hunk in place: its lines of context, and those it removes, stand there one after the other."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] != "+")
        assert text.count(before) == 1, f"CONTRIBUTING.md wants to find this once:\n{before}"
        text = text.replace(before, "".join(line[1:] for line in lines if line[0] != "-"))
    return text


def with_example(heading: str, folder: Path) -> Path:
    """A copy of both packages with an example in it."""
    for package in ("monitor", "connectors"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for path, (language, code) in blocks(heading).items():
        file = folder / path
        file.write_text(
            patched(file.read_text(encoding="utf-8"), code) if language == "diff" else code, encoding="utf-8"
        )
    return folder


def python(folder: Path, *arguments: str) -> str:
    """What Python prints with the copy in place of the packages."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT)))},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout


@pytest.fixture(scope="module")
def estimator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_example("An estimator", tmp_path_factory.mktemp("estimator"))


def test_a_new_estimator_is_in_windows_and_can_be_chosen_for_a_reference(estimator: Path) -> None:
    random = np.random.default_rng(0)
    labels = random.random(2_000) < 0.3
    scores = np.clip(random.normal(np.where(labels, 0.7, 0.3), 0.15), 0.01, 0.99)
    events = [
        json.dumps({"stream": "s", "score": round(float(score), 3), "label": ["no", "yes"][int(label)]})
        for score, label in zip(scores, labels, strict=True)
    ]
    (estimator / "holdout.jsonl").write_text("\n".join(events) + "\n", encoding="utf-8")
    build = ["reference", "build", "holdout.jsonl", "--out", "s.ref", "--positive", "yes"]
    python(estimator, "-m", "monitor", *build, "--estimator", "dfm-root")
    said = python(
        estimator,
        "-c",
        "import json, numpy as np; from monitor import Reference, Window, assess;"
        "from monitor.commands.cli import main; main(['estimators']);"
        "scores = np.array([json.loads(line)['score'] for line in open('holdout.jsonl')][:1_000]);"
        "window = Window.of(np.column_stack([1 - scores, scores]));"
        "print(assess(window, Reference.load('s.ref')).to_json().decode())",
    )
    listed, result = said[: said.rindex("\n{")], json.loads(said[said.rindex("\n{") :])
    assert "dfm-root" in listed
    assert result["estimator"] == "dfm-root"
    shares = {name: estimate["priors"]["yes"] for name, estimate in result["estimates"].items()}
    assert shares["dfm-root"] == pytest.approx(shares["pacc"], abs=0.1)
    assert shares["dfm-root"] != shares["pacc"]


def test_a_new_estimator_is_under_the_laws(estimator: Path) -> None:
    laws = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--import-mode=append",
        "-n",
        "0",
        "-k",
        "dfm-root",
        str(ROOT / "tests/priors/test_laws.py"),
    ]
    said = python(estimator, *laws)
    assert int(re.findall(r"(\d+) passed", said)[0]) >= 5


def test_a_new_verdict_is_reached_and_shown(tmp_path: Path) -> None:
    copy = with_example("A verdict", tmp_path)
    said = python(
        copy,
        "-c",
        "from monitor.assessment.verdict import Evidence, Verdict, decide, table;"
        "from monitor.web.page import ASSETS;"
        "moved = dict(enough_events=True, label_shift_fits=False, unknown_class=False, inputs_explain=False);"
        "print(decide(Evidence(mix_moved=True, **moved)), decide(Evidence(mix_moved=False, **moved)));"
        "print('.v-mix-and-unexplained' in ASSETS['style.css'][1].decode(), 'mix-and-unexplained' in table());"
        "print(Verdict('mix-and-unexplained').moved, len({v.facts.mark for v in Verdict}) == len(Verdict))",
    )
    assert said.splitlines() == ["mix-and-unexplained unexplained", "True True", "True True"]


def test_a_new_metric_is_exported(tmp_path: Path) -> None:
    copy = with_example("A metric", tmp_path)
    said = python(
        copy,
        "-c",
        "from tests.web.made_up import Story; from monitor.observers.metrics import families;"
        "story = Story(); story.window(); history = story.history;"
        "print(*(family.name for family in families(history.snapshot, history.now())))",
    )
    assert "shiftwatch_features_moved_ratio" in said.split()


def test_a_new_concern_advances_with_every_window(tmp_path: Path) -> None:
    copy = with_example("A concern over windows", tmp_path)
    said = python(
        copy,
        "-c",
        "from monitor.state import StatePlan; from monitor.state.runs import RunState;"
        "from tests.state.test_alarms import Told;"
        "told = Told(StatePlan()); [told.window(positives) for positives in (0.6, 0.3, 0.3, 0.3)];"
        "print(told.states.of('s', '').state(RunState))",
    )
    assert said.strip() == "RunState(verdict='stable', windows=3)"


def test_the_files_of_the_ten_changes_exist() -> None:
    changes = TEXT.split("## Ten changes")[1]
    assert len(re.findall(r"^\d+\. \*\*", changes, re.M)) == 10
    for path in re.findall(r"`([\w/]+(?:\.\w+)+|[a-z]+/[a-z/]+)`", changes):
        assert any((ROOT / base / path).exists() for base in ("", "monitor", "monitor/web/page")), path


@pytest.mark.parametrize("path", re.findall(r"`((?:monitor|connectors|tests|deploy|\.ci)/[\w/.-]*)`", TEXT))
def test_every_path_of_the_page_exists(path: str) -> None:
    assert (ROOT / path).exists() or any(
        path in blocks(heading) for heading in ("An estimator", "A concern over windows")
    )

"""The sentence about the class mix says no more than the interval and the hold-out's blocks bear out."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from monitor import Reference, Window, assess
from monitor.assessment.reasons import mix_sentences
from monitor.commands.cli import main
from monitor.priors import PriorEstimate

BLOCK, BLOCKS = 500, 12
CENTRES = np.array([[0.0, 0, 0], [2, 0, 0], [0, 2, 0]])


def estimate(*shares: tuple[float, float, float]) -> PriorEstimate:
    lower, priors, upper = (np.array(column) for column in zip(*shares, strict=True))
    return PriorEstimate(
        method="em", priors=priors, lower=lower, upper=upper, events=1_000, iterations=1, converged=True, gap=0.0,
        stop_reason="", unique=True,
    )  # fmt: skip


def test_a_share_whose_interval_holds_the_old_one_may_have_risen() -> None:
    told = mix_sentences(("no", "yes"), np.array([0.7, 0.3]), estimate((0.6, 0.66, 0.72), (0.28, 0.34, 0.4)))
    assert told == ("yes may have risen from 30.0% to 34.0% (28.0% to 40.0%)",)


def test_classes_that_surely_changed_come_first() -> None:
    source = np.array([0.5, 0.45, 0.05])
    told = mix_sentences(("a", "b", "c"), source, estimate((0.3, 0.4, 0.6), (0.5, 0.52, 0.54), (0.02, 0.08, 0.2)))
    assert told[0] == "b rose from 45.0% to 52.0% (50.0% to 54.0%)"
    assert [sentence.split(" from")[0] for sentence in told[1:]] == ["a may have fallen", "c may have risen"]


def test_a_mix_that_is_usual_only_because_of_one_block_is_not_said_to_agree() -> None:
    rng = np.random.default_rng(0)

    def cases(labels: np.ndarray) -> np.ndarray:
        return rng.normal(size=(labels.size, 3)) + CENTRES[labels]

    trained = rng.choice(3, 4_000)
    model = LogisticRegression().fit(cases(trained), trained)
    mixes = [[0.6, 0.2, 0.2] if k == 4 else [0.7, 0.3, 0.0] for k in range(BLOCKS)]
    y = np.concatenate([rng.choice(3, BLOCK, p=mix) for mix in mixes])
    x = cases(y)
    names = np.array(["apple", "pear", "plum"])
    reference = Reference.fit(model.predict_proba(x), names[y], x, block=BLOCK)
    said = {}
    for share in (0.0, 0.3):
        x = cases(rng.choice(3, BLOCK, p=[0.7 - share, 0.3, share]))
        said[share] = assess(Window.of(model.predict_proba(x), x), reference)
    assert [found.verdict for found in said.values()] == ["stable", "stable"]
    assert said[0.0].reasons[0].startswith("the class mix and every input agree with the reference")
    assert said[0.3].reasons[0].startswith("but for the class mix, every input agrees with the reference")
    assert said[0.3].reasons[1].startswith("plum is ")
    assert said[0.3].reasons[1].endswith("of the hold-out: blocks of the hold-out differ too much to call that a shift")


@pytest.mark.parametrize("block", ["0", "-5", "99"])
def test_a_block_of_too_few_events_is_refused_with_the_number_that_was_said(
    block: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{p:.3f},{'no' if rng.random() > p else 'yes'}" for p in rng.random(300)]
    (tmp_path / "x.csv").write_text("score,label\n" + "\n".join(rows) + "\n")
    code = main(["reference", "build", str(tmp_path / "x.csv"), "-o", str(tmp_path / "x.ref"), f"--block={block}"])
    assert code != 0
    assert f"block: want at least 100 events, got {block}" in capsys.readouterr().err

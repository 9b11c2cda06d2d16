"""An estimator can be chosen by name, and the names can be asked for."""

from pathlib import Path

import pandas as pd
import pytest

from monitor import Reference
from monitor.commands.cli import main
from monitor.priors import ESTIMATORS
from tests.first_hour.shop import Shop


def holdout(my_shop: Shop, path: Path) -> Path:
    pd.DataFrame({"score": my_shop.scores(my_shop.frame)[:, 0], "label": my_shop.labels}).to_csv(path, index=False)
    return path


def test_the_list_names_every_estimator_and_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["estimators"]) == 0
    rows = {
        cells[1]: cells[2]
        for line in capsys.readouterr().out.splitlines()
        if len(cells := [c.strip() for c in line.split("│")]) > 2
    }
    assert rows.keys() == ESTIMATORS.keys()
    assert (rows["em"], rows["cde"], rows["dfm-rff-both"]) == ("posteriors", "two classes", "features")


def test_the_chosen_one_is_what_windows_report(
    my_shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = holdout(my_shop, tmp_path / "holdout.csv")
    arguments = ["reference", "build", str(path), "-o", str(tmp_path / "my.ref"), "--positive", "fraud"]
    assert main([*arguments, "--estimator", "pacc"]) == 0
    assert Reference.load(tmp_path / "my.ref").estimator == "pacc"
    assert "estimator    pacc" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "complaint"),
    [("dfm-rff-features", "want features in the hold-out events"), ("emm", "estimator: want one of ['acc'")],
)
def test_one_that_cannot_be_used_is_refused_by_name(
    my_shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, complaint: str
) -> None:
    path = holdout(my_shop, tmp_path / "holdout.csv")
    arguments = ["reference", "build", str(path), "-o", str(tmp_path / "my.ref"), "--positive", "fraud"]
    assert main([*arguments, "--estimator", name]) == 1
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "my.ref").exists()

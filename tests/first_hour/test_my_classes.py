"""Columns of scores in the wrong order are noticed before they are believed."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit, ndtri
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from monitor import Reference
from monitor.commands.cli import main
from monitor.events.extraction import label_numbers
from monitor.reference.class_order import fitting_columns
from tests.first_hour.shop import Shop

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """`shiftwatch reference build` of a table: the exit code, and all that was said."""

    def command(table: pd.DataFrame, *arguments: str) -> tuple[int, str]:
        table.to_csv(tmp_path / "holdout.csv", index=False)
        code = main(["reference", "build", str(tmp_path / "holdout.csv"), "-o", str(tmp_path / "my.ref"), *arguments])
        said = capsys.readouterr()
        return code, said.out + said.err

    return command


def with_columns(my_shop: Shop, *names: str) -> pd.DataFrame:
    scores = my_shop.scores(my_shop.frame)
    return pd.DataFrame({f"posteriors.{name}": scores[:, k] for k, name in enumerate(names)}).assign(
        label=my_shop.labels
    )


def test_columns_that_are_named_right_are_taken(my_shop: Shop, build: Command) -> None:
    code, said = build(with_columns(my_shop, "fraud", "legit"), "--estimator", "em")
    assert code == 0
    assert "exchanged" not in said


def test_two_exchanged_columns_are_refused_with_the_order_that_fits(
    my_shop: Shop, build: Command, tmp_path: Path
) -> None:
    code, said = build(with_columns(my_shop, "legit", "fraud"))
    assert code == 1
    assert "the columns of the posteriors look exchanged" in said
    assert "the column of fraud fits legit, the column of legit fits fraud" in said
    assert "with the columns as fraud, legit it is" in said
    assert not (tmp_path / "my.ref").exists()


def test_three_columns_that_went_round_are_refused_with_the_order_that_fits(build: Command) -> None:
    rng = np.random.default_rng(0)
    labels = rng.choice(3, 600)
    x = rng.normal(size=(600, 3)) + 1.5 * np.eye(3)[labels]
    scores = LogisticRegression().fit(x, labels).predict_proba(x)
    names = np.array(["calls", "mails", "visits"])
    turned = pd.DataFrame(scores, columns=[f"posteriors.{name}" for name in np.roll(names, 1)])
    code, said = build(turned.assign(label=names[labels]))
    assert code == 1
    assert "with the columns as calls, mails, visits" in said


def test_in_python_the_same_is_a_warning_that_the_reference_shows(my_shop: Shop) -> None:
    scores = my_shop.scores(my_shop.frame)
    right = Reference.fit(scores, my_shop.labels, classes=["fraud", "legit"])
    wrong = Reference.fit(scores, my_shop.labels, classes=["legit", "fraud"])
    assert right.warnings == ()
    assert "WARNING" not in repr(right)
    assert [warning.cause for warning in wrong.warnings] == ["classes-exchanged", "worse-than-class-shares"]
    assert "with the columns as fraud, legit it is" in repr(wrong)


def test_the_warning_is_kept_with_the_reference(my_shop: Shop, tmp_path: Path) -> None:
    scores = my_shop.scores(my_shop.frame)
    Reference.fit(scores[:, ::-1], my_shop.labels, classes=["fraud", "legit"]).save(tmp_path / "x.ref")
    assert Reference.load(tmp_path / "x.ref").warnings[0].cause == "classes-exchanged"


def test_a_bare_score_is_refused_where_no_class_says_that_it_is_meant(my_shop: Shop, build: Command) -> None:
    table = pd.DataFrame({"score": my_shop.scores(my_shop.frame)[:, 0], "label": my_shop.labels})
    code, said = build(table)
    assert code == 1
    assert "is `score` the probability of fraud or of legit? Say --positive fraud or --positive legit" in said
    assert build(table, "--positive", "fraud", "--estimator", "em")[0] == 0
    code, said = build(table, "--positive", "legit")
    assert code == 1
    assert "look exchanged" in said


@pytest.mark.parametrize(
    ("fraud", "legit"),
    [("1", "0"), ("True", "False"), ("yes", "no"), ("positive", "good"), ("Y", "N"), ("fraud", "no")],
)
def test_a_bare_score_needs_no_word_where_the_names_say_it(
    my_shop: Shop, build: Command, fraud: str, legit: str
) -> None:
    labels = my_shop.labels.map({"fraud": fraud, "legit": legit})
    code, said = build(
        pd.DataFrame({"score": my_shop.scores(my_shop.frame)[:, 0], "label": labels}), "--estimator", "em"
    )
    assert code == 0, said
    assert re.search(rf"^    {fraud} +2\d\.", said, re.MULTILINE)


def weak(rows: int, auc: float, seed: int, share: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated scores of two classes whose separation gives this area under the curve."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < share).astype(int)
    apart = np.sqrt(2) * ndtri(auc)
    x = rng.normal(size=rows) + apart * labels
    positive = expit(apart * x - apart**2 / 2 + logit(share))
    return np.column_stack([1 - positive, positive]), labels


@pytest.mark.parametrize(("auc", "share"), [(0.52, 0.5), (0.52, 0.01), (0.5, 0.5), (0.5, 0.05), (0.6, 0.004)])
def test_weak_models_and_rare_classes_are_never_taken_for_exchanged(auc: float, share: float) -> None:
    for rows in (300, 3_000):
        for seed in range(200):
            posteriors, labels = weak(rows, auc, seed, share)
            assert fitting_columns(posteriors, labels) == (0, 1)


@pytest.mark.parametrize(("auc", "share", "rows"), [(0.6, 0.5, 2_000), (0.8, 0.1, 300), (0.95, 0.02, 1_000)])
def test_exchanged_columns_of_models_that_are_of_use_are_found(auc: float, share: float, rows: int) -> None:
    turned = [weak(rows, auc, seed, share) for seed in range(50)]
    found = [fitting_columns(posteriors[:, ::-1], labels) == (1, 0) for posteriors, labels in turned]
    assert np.mean(found) >= 0.9  # the others drew a handful of the rare class, or an unlucky sample


def test_a_model_that_is_far_too_bold_is_warned_of_and_not_refused(build: Command) -> None:
    rng = np.random.default_rng(0)
    labels = rng.choice(2, 4_000, p=[0.8, 0.2])
    x = np.repeat(rng.normal(size=(4_000, 1)) + 0.5 * labels[:, None], 40, axis=1)  # forty times the same evidence
    scores = GaussianNB().fit(x[:1_000], labels[:1_000]).predict_proba(x)
    table = pd.DataFrame(scores, columns=["posteriors.0", "posteriors.1"]).assign(label=labels)
    code, said = build(table[1_000:], "--estimator", "em")
    assert code == 0
    assert "says less than always saying the class shares" in said


def test_a_model_that_was_trained_on_balanced_classes_is_taken() -> None:
    posteriors, labels = weak(3_000, 0.75, 0, share=0.01)
    odds = posteriors[:, 1] / posteriors[:, 0] * 99 * 3
    assert fitting_columns(np.column_stack([1 / (1 + odds), odds / (1 + odds)]), labels) == (0, 1)


@pytest.mark.parametrize("seed", range(5))
def test_among_ten_classes_only_the_exchanged_ones_are_named(seed: int) -> None:
    x, labels = load_digits(return_X_y=True)
    x = x + np.random.default_rng(seed).normal(size=x.shape) * 6
    scores = LogisticRegression(max_iter=200).fit(x[:900] / 16, labels[:900]).predict_proba(x[900:] / 16)
    assert fitting_columns(scores, labels[900:]) == tuple(range(10))
    order = [0, 1, 2, 8, 4, 5, 6, 7, 3, 9]
    assert fitting_columns(scores[:, order], labels[900:]) == tuple(order)


def test_classes_that_a_model_calls_0_0_and_1_0_are_those_of_the_labels(build: Command) -> None:
    rng = np.random.default_rng(0)
    labels = rng.choice([0.0, 1.0], 2_000)
    x = rng.normal(size=(2_000, 1)) + labels[:, None]
    model = LogisticRegression().fit(x[:500], labels[:500])
    columns = [f"posteriors.{name}" for name in model.classes_]
    assert columns == ["posteriors.0.0", "posteriors.1.0"]
    table = pd.DataFrame(model.predict_proba(x[500:]), columns=columns).assign(label=labels[500:])
    code, said = build(table, "--estimator", "em")
    assert code == 0, said
    numbers = label_numbers(("0.0", "1.0"))
    assert [numbers[label] for label in ("1.0", 1.0, 1, "1", "0")] == [1, 1, 1, 1, 0]

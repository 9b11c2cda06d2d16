"""The bench takes any table in time order: odd ones are read for what they are, and hopeless ones named as such."""

import gzip
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from monitor.arrays import Vector
from monitor.ports.schema import Feature
from tests.bench.streams import __main__ as bench
from tests.bench.streams.cells import cell
from tests.bench.streams.claims import CHANGES, claims
from tests.bench.streams.injected import INJECTED
from tests.bench.streams.made import KINDS, made_up
from tests.bench.streams.measures import Figures, Rule, auc, spearman
from tests.bench.streams.models import MODELS, trained
from tests.bench.streams.page import page
from tests.bench.streams.table import LEAST_ROWS, Table, from_file
from tests.bench.streams.text import UnusableError
from tests.bench.streams.watched import Tally

ROWS = 1_200
RNG = np.random.default_rng(1)
X = RNG.normal(size=ROWS).round(4)
Y = np.where(X + RNG.normal(size=ROWS) > 0, "yes", "no")


DAY = "x,day,class"


def lines(row: Callable[[int], str], header: str = "") -> str:
    return "\n".join([*([header] if header else []), *(row(i) for i in range(ROWS))]) + "\n"


PLAIN = lines(lambda i: f"{X[i]},{i % 7},{Y[i]}", DAY)

ODD = {
    "plain": PLAIN,
    "without a header": lines(lambda i: f"{X[i]},{i % 7},{Y[i]}"),
    "semicolons and decimal commas": lines(lambda i: f"{X[i]};{i % 7};{Y[i]}".replace(".", ","), "x;day;class"),
    "tabs": PLAIN.replace(",", "\t"),
    "white space": PLAIN.replace(",", "   "),
    "carriage returns": PLAIN.replace("\n", "\r\n"),
    "quotes": lines(lambda i: f'"{X[i]}","a, {i % 7}",{Y[i]}', '"x","day","class"'),
    "comments": "# made by hand\n% or not\n\n" + PLAIN,
    "ragged rows": lines(lambda i: f"{X[i]},{i % 7},{Y[i]}" + ",1" * (i % 50 == 3), DAY),
    "missing values": lines(lambda i: f"{X[i] if i % 5 else '?'},{'NA' if i % 3 else i % 7},{Y[i]}", DAY),
    "an empty column": lines(lambda i: f"{X[i]},,{Y[i]}", "x,nothing,class"),
    "a constant": lines(lambda i: f"{X[i]},1,{Y[i]}", "x,one,class"),
    "dates": lines(lambda i: f"{X[i]},2026-{1 + i // 100:02}-{1 + i % 28:02} 10:00,{Y[i]}", "x,when,class"),
    "dates the other way": lines(lambda i: f"{X[i]},{1 + i % 28}/{1 + i // 100}/2026,{Y[i]}", "x,when,class"),
    "identifiers": lines(lambda i: f"{X[i]},id-{i},{Y[i]}", "x,id,class"),
    "columns of one name": PLAIN.replace("x,day", "x,x"),
    "columns without a name": PLAIN.replace("x,day", ","),
    "infinite and huge values": lines(lambda i: f"{X[i] if i % 9 else 'inf'},{i % 7 if i != 800 else '1e300'},{Y[i]}"),
    "rows without a target": lines(lambda i: f"{X[i]},{i % 7},{'' if i % 10 == 0 else Y[i]}", DAY),
    "a class that comes late": lines(lambda i: f"{X[i]},{i % 7},{'new' if i > 900 and i % 2 else Y[i]}", DAY),
    "many classes": lines(lambda i: f"{X[i]},{i % 7},c{min(i * 37 % 101, 40)}", DAY),
    "a target that is a number": lines(lambda i: f"{X[i]},{i % 7},{X[i] * 2 + i % 7:.3f}", DAY),
    "a feature that is missing in the training rows": lines(lambda i: f"{X[i]},{i % 7 if i > 400 else ''},{Y[i]}"),
    "names with quotes": lines(lambda i: f"{X[i]};{i % 7};{Y[i]}'\"", 'x "one";back\\slash;class'),
    "numbers as names": lines(lambda i: f"{X[i]},{i % 7},{i % 2}", "0,1,target"),
    "money, percents and times of day": lines(
        lambda i: f'"$1,{100 + i % 900}.50",{i % 99}%,{i % 24}:{i % 60:02},{Y[i]}'
    ),
    "a number with stray words": lines(lambda i: f"{X[i] if i % 40 else 'error'},{i % 7},{Y[i]}", DAY),
    "the number of the row": lines(lambda i: f"{i},{X[i]},{Y[i]}", ",x,class"),
    "dates in words": lines(lambda i: f"{X[i]},'Mar {1 + i % 28}, 2026',{Y[i]}".replace("'", '"'), "x,when,class"),
    "another program's separator line": "sep=;\n" + PLAIN.replace(",", ";"),
    "a very rare class": lines(lambda i: f"{X[i]},{i % 7},{'fraud' if i % 20 == 7 else 'fine'}", DAY),
    "a target that rises": lines(lambda i: f"{X[i]},{i % 7},{i + X[i]}", DAY),
    "nulls and an odd encoding": PLAIN.replace("yes", "\xfcber\0"),
}


def table(text: str, folder: Path) -> Table:
    path = folder / "odd.csv"
    path.write_bytes(text.encode("latin-1"))
    return from_file(path)


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_any_table_becomes_a_stream(text: str, tmp_path: Path) -> None:
    found = table(text, tmp_path)
    assert len(found.classes) >= 2
    assert found.labels.size == len(found.rows) >= 0.9 * LEAST_ROWS
    assert found.rows.shape[1] == len(found.features) >= 1
    assert not np.isinf(found.rows).any()
    assert np.bincount(found.labels[: found.fifth], minlength=len(found.classes)).min() > 0


def test_a_table_is_the_same_however_it_is_written(tmp_path: Path) -> None:
    plain = table(ODD["plain"], tmp_path)
    for how in ("without a header", "semicolons and decimal commas", "tabs", "white space", "comments"):
        other = table(ODD[how], tmp_path)
        assert (other.rows == plain.rows).all(), how
        assert (other.labels == plain.labels).all(), how
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(PLAIN.encode()))
    assert (from_file(packed).rows == plain.rows).all()


def test_what_tells_the_row_is_no_feature_and_what_is_no_number_counts_as_missing(tmp_path: Path) -> None:
    numbered = table(ODD["the number of the row"], tmp_path)
    assert [feature.name for feature in numbered.features] == ["x"]
    assert "x0 is left out: it rises or falls with the rows" in " ".join(numbered.remarks)
    strays = table(ODD["a number with stray words"], tmp_path)
    assert "30 values of x are no numbers: they count as missing" in strays.remarks
    assert np.isnan(strays.rows[::40, 0]).all()


def test_money_percents_and_times_of_day_are_numbers(tmp_path: Path) -> None:
    found = table(ODD["money, percents and times of day"], tmp_path)
    assert [feature.kind for feature in found.features] == ["number"] * 3
    assert found.rows[61].tolist() == [1161.5, 61.0, 13 * 3600 + 60]


@pytest.mark.parametrize(("block", "why"), [(5_000, "no whole window"), (60, "windows of 60 events are not judged")])
def test_windows_of_no_use_are_said_to_be(block: int, why: str, tmp_path: Path) -> None:
    assert any(why in remark for remark in cell(table(PLAIN, tmp_path), block, "logistic").remarks)


def test_a_rare_class_is_among_the_rows_that_a_model_is_trained_on() -> None:
    labels = np.zeros(200_000, dtype=np.int64)
    labels[[3, 11, 17, *range(1_000, 100_000, 997)]] = 1
    rows = np.random.default_rng(0).normal(size=(labels.size, 1))
    stream = Table("rare", (Feature("x"),), rows, labels, ("no", "yes"))
    assert trained(MODELS["naive Bayes"], stream)(rows[:5]).shape == (5, 2)


def test_the_target_is_found_by_name_and_by_number(tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(PLAIN)
    assert from_file(path, "day").classes == tuple("0123456")
    assert from_file(path, "1").classes == tuple("0123456")
    assert from_file(path, "-1").classes == from_file(path).classes == ("no", "yes")
    assert from_file(path, "x", cuts=(0.0,)).classes == ("up to 0", "above 0")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no rows"),
        ("x,y\n1,a\n", "500 rows"),
        ("\0\1\2\3" * 500, "want a table of text"),
        ("PK\3\4 and no more", "packed, and broken"),
        (lines(lambda i: f"{X[i]},a", "x,class"), "fewer than two classes"),
        (lines(lambda i: f"{X[i]},{'a' if i < 600 else 'b'}", "x,class"), "fewer than two classes"),
        (lines(lambda i: f"id{i},{Y[i]}", "x,class"), "no column beside the target"),
        (lines(lambda i: f"{Y[i]}", "class"), "no column beside the target"),
    ],
)
def test_a_file_of_no_use_is_refused_with_the_reason(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match=why):
        table(text, tmp_path)


def test_the_command_prints_the_page_of_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, report = tmp_path / "odd.csv", tmp_path / "page.md"
    path.write_text(ODD["missing values"])
    arguments = ["--csv", str(path), "--target", "class", "--quick", "--report", str(report)]
    monkeypatch.setattr(sys, "argv", ["streams", *arguments])
    bench.main()
    assert report.read_text(encoding="utf-8").strip() == capsys.readouterr().out.strip()
    assert "| odd | 1,200 | 2 | 2 | 100 |" in report.read_text(encoding="utf-8")


def test_a_page_without_any_stream_says_so() -> None:
    assert "No stream could be used" in page([], "command", ["weather: no data folder"], "law")


@pytest.mark.parametrize("kind", KINDS)
def test_made_up_streams_are_the_same_every_time(kind: str) -> None:
    assert (made_up(kind, blocks=20).rows == made_up(kind, blocks=20).rows).all()


def test_the_auc_of_a_score_is_the_chance_that_it_ranks_two_windows_right() -> None:
    worse = np.array([0.0] * 6 + [1.0] * 6)
    assert auc(np.arange(12.0), worse) == 1
    assert auc(-np.arange(12.0), worse) == 0
    assert auc(np.zeros(12), worse) == 0.5
    assert auc(np.arange(12.0), np.zeros(12)) is None
    assert spearman(np.arange(12.0), np.arange(12.0) ** 3) == pytest.approx(1)
    assert spearman(np.zeros(12), np.arange(12.0)) is None


def figures(moved: int, windows: int = 30, stream: str = "one", **fields: object) -> Figures:
    tally = Tally({"stable": windows - moved, "unexplained": 0, "covariate-shift": moved}, 0)
    given: dict[str, object] = {
        **dict.fromkeys(["rows", "classes", "features", "block", "held", "windows", "harmed", "window_ms"], 1),
        **{"stream": stream, "model": "m", "remarks": (), "reference_s": 1.0, "harm": {}},
        "power": {"reference": {"unit": Tally({}, 0)}},
        **{"verdicts": {"recent": tally.verdicts}, "calm": {"as it is": tally}},
        **{"without_labels": {}, "with_labels": {}},
    }
    return Figures(**given | fields)  # type: ignore[arg-type]


def held(cells: list[Figures], claim: str) -> bool:
    return next(holds for what, holds, _ in claims(cells) if claim in what)


def test_a_claim_fails_where_one_cell_is_beyond_chance_or_all_together_are_beyond_the_bound() -> None:
    calm = "calm blocks: at most 3% not stable"
    by_chance = [figures(2), *[figures(0)] * 3]
    assert held(by_chance, calm)
    assert not held([figures(6), *[figures(0)] * 10], calm)  # .2 of thirty windows is no chance
    assert not held([figures(2)] * 4, calm)  # each could be, but not all


def test_a_change_of_regime_is_no_false_alarm_but_has_to_be_told() -> None:
    recent, told = "against the recent normal", "change of regime"
    assert held([figures(0), figures(20, stream=CHANGES)], recent)
    assert not held([figures(20)], recent)
    assert held([figures(3, stream=CHANGES)], told)
    assert not held([figures(0, stream=CHANGES)], told)


def test_an_error_above_the_bound_counts_where_the_windows_agree_on_it() -> None:
    few, claim = np.linspace(0.01, 0.03, 12), "prevalence without labels"

    def cell_of(published: Vector) -> Figures:
        rules = {"published": Rule(tuple(published), 1.0), "reference share": Rule(tuple(few))}
        return figures(0, without_labels=rules, with_labels=rules)

    within = [cell_of(few)] * 20
    assert not held([cell_of(3 * few), *within], claim)
    assert held([cell_of(few[::-1] + np.where(few > 0.025, 0.06, 0.0)), *within], claim)  # four odd windows of twelve


def test_a_unit_that_is_named_in_too_few_windows_is_told() -> None:
    def named(windows: int) -> Figures:
        return figures(0, power={"reference": {"unit": Tally({"covariate-shift": 30}, windows)}})

    claim = "a changed unit"
    assert held([named(30), named(17)], claim)
    assert not held([named(30), named(6)], claim)


def test_a_unit_is_changed_where_it_changes_something() -> None:
    stream = made_up("exchangeable", blocks=20)
    rows = stream.rows.copy()
    rows[::3, 0] = 1.0
    rows[200:400, 0] = 0.0
    unit = INJECTED["unit"]
    dry = unit(replace(stream, rows=rows), slice(200, 400), 0)
    wet = unit(replace(stream, rows=rows), slice(400, 600), 0)
    assert dry is not None
    assert wet is not None
    assert (dry.feature, wet.feature) == ("x1", "x0")

"""What a bench prints is read back whole, and repeated runs are joined without losing their spread."""

import pytest

from tests.bench.benches import BENCHES, chosen
from tests.bench.tables import Table, exponent, joined, markdown, tables
from tests.bench.timing import Spent

PAGE = "# Speed\n\nSome words.\n\n## EM\n\n" + markdown(["what", "s", "note"], [["binary", "0.011 s to gap 5e-09", ""]])


def run(seconds: str, note: str = "") -> list[Table]:
    return tables(PAGE.replace("0.011", seconds).replace("|  |", f"| {note} |"))


def test_a_table_that_was_written_is_read_back_under_its_heading() -> None:
    assert tables(PAGE) == [Table("EM", ("what", "s", "note"), (("binary", "0.011 s to gap 5e-09", ""),))]


def test_repeated_runs_give_the_median_and_the_range_of_the_numbers_that_differ() -> None:
    (table,) = joined([run("0.030"), run("0.011"), run("0.012")])
    assert table.rows == (("binary", "0.012 [0.011, 0.030] s to gap 5e-09", ""),)


def test_runs_that_agree_show_no_range() -> None:
    assert joined([run("0.011"), run("0.011")]) == run("0.011")


def test_words_that_differ_are_all_shown() -> None:
    (table,) = joined([run("1", "met"), run("1", "missed by a hair")])
    assert table.rows[0][2] == "met / missed by a hair"


def test_runs_with_different_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="different tables"):
        joined([run("1"), []])


def test_a_ratio_is_best_over_best_with_the_extremes_of_single_rounds() -> None:
    assert Spent((2.0, 1.0)).ratio(Spent((4.0, 4.0))) == "0.25 (0.25 to 0.50)"


def test_the_exponent_of_a_power_law_is_found() -> None:
    assert exponent([1, 10, 100], [3, 300, 30_000]) == pytest.approx(2)


def test_a_bench_that_does_not_exist_is_named() -> None:
    with pytest.raises(SystemExit, match="no such bench: speed"):
        chosen(["speed"])
    assert chosen([]) == list(BENCHES)


def test_every_bench_is_listed_once() -> None:
    names = [bench.name for bench in BENCHES]
    assert sorted(set(names)) == sorted(names)

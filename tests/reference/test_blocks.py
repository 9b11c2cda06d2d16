"""The hold-out in time order, cut into blocks: what is kept of each, and held against the others."""

import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from monitor.assessment import assess
from monitor.errors import InputError
from monitor.limits import BLOCKS_KEPT
from monitor.ports.schema import Feature, StreamSchema
from monitor.reference.blocks import cut, microseconds
from monitor.reference.classifier import Reference
from monitor.shifts.comparable import comparable
from monitor.shifts.prepared import mapped_rows, prepare
from monitor.windows.window import Window
from tests.assessment.worlds import cheaply

HOUR = 3_600_000_000


def world(rows=3_000, seed=0):
    """Posteriors, labels and features: a number, one with gaps, a category."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, rows)
    x = np.column_stack([rng.normal(size=rows) + labels, rng.normal(size=rows), rng.integers(0, 4, rows)])
    x[rng.random(rows) < 0.1 * (labels + 1), 1] = np.nan
    odds = np.exp(-((x[:, :1] - np.arange(3)) ** 2) / 2)
    return odds / odds.sum(axis=1, keepdims=True), labels, x


SCHEMA = StreamSchema("", ("0", "1", "2"), (Feature("a"), Feature("b"), Feature("c", "category", tuple("wxyz"))))


@cache
def fitted(block=None):
    """Its reference."""
    g, labels, x = world()
    return cheaply(SCHEMA, g, labels, x, None if block is None else cut(block, labels.size))


def test_a_count_cuts_the_rows_as_they_stand_into_blocks_of_nearly_that_size() -> None:
    found = cut(500, 5_300)
    assert (found.number, found.parts) == (11, 1)
    assert set(np.bincount(found.of_row).tolist()) == {481, 482}
    assert (np.diff(found.of_row) >= 0).all()
    assert found.starts[:3].tolist() == [0, 482, 964]
    assert found.ends[-1] == 5_299
    assert found.stretch.tolist() == list(range(11))


def test_a_hold_out_of_few_windows_is_cut_into_parts_that_are_not_held_against_their_neighbours() -> None:
    found = cut(1_000, 5_000)
    assert (found.length, found.parts, found.number, found.windows) == ("1000", 4, 20, 5)
    assert np.bincount(found.of_row).tolist() == [250] * 20
    assert found.stretch.tolist() == np.repeat(np.arange(5), 4).tolist()
    of_one = cut(1_000, 1_000)
    assert (of_one.parts, of_one.windows) == (20, 1)
    assert np.bincount(of_one.stretch).tolist() == [7, 7, 6]
    assert (cut(200, 250).parts, cut(100, 150).parts, cut(100, 150).number) == (8, 1, 2)
    days = np.arange(2_000) * (5 * 24 * HOUR) // 2_000
    of_days = cut("1d", 2_000, days)
    assert (of_days.length, of_days.parts, of_days.number) == ("1d", 4, 20)
    assert (of_days.starts // (6 * HOUR) == np.arange(20)).all()
    assert of_days.stretch.tolist() == np.repeat(np.arange(5), 4).tolist()


def test_times_put_the_rows_in_order() -> None:
    shuffled = np.random.default_rng(0).permutation(1_000)
    found = cut(100, 1_000, shuffled * HOUR)
    assert (found.of_row == shuffled // 100).all()
    assert found.starts.tolist() == [k * 100 * HOUR for k in range(10)]


def test_a_duration_cuts_as_windows_are_cut_and_leaves_out_what_is_hardly_a_window() -> None:
    times = np.concatenate([np.arange(0, 1_000), np.arange(1_000, 1_010), np.arange(2_000, 12_000)]) * (HOUR // 1_000)
    found = cut("1h", times.size, times)
    assert found.number == 11
    assert (found.of_row[:1_000] == 0).all()
    assert (found.of_row[1_000:1_010] == -1).all()
    assert (found.of_row[1_010:2_010] == 1).all()
    assert found.timed


def test_of_very_many_blocks_some_are_kept_and_the_latest_without_a_gap() -> None:
    found = cut(100, 100_000)
    assert found.number <= BLOCKS_KEPT
    assert (np.diff(found.starts[-10:]) == 100).all()
    assert found.starts[0] == 0
    assert (found.of_row >= 0).sum() == 100 * found.number


@pytest.mark.parametrize(
    ("block", "times", "said"),
    [("1d", None, "not all events have times"), (10, None, "at least 100"), ("soon", np.arange(9), "a duration like")],
)
def test_a_block_that_cannot_be_cut_is_refused_with_what_to_do(block, times, said) -> None:
    with pytest.raises(InputError, match=said):
        cut(block, 9, times)


def test_times_may_be_datetimes_or_epoch_milliseconds() -> None:
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")
    assert (microseconds(days, 2) == microseconds(days.astype("datetime64[ms]").astype(np.int64), 2)).all()
    with pytest.raises(InputError, match="1 are missing, the first in row 1"):
        microseconds(np.array(["2026-01-01", "NaT"], dtype="datetime64[D]"), 2)


@pytest.mark.parametrize("window", [300, 600])
def test_every_block_is_held_against_the_others_as_the_formulas_say(window: int) -> None:
    """e_k and D_jk, computed literally. Where blocks are parts of windows, the others are those of other windows."""
    g, labels, x = world()
    reference = fitted(window)
    blocks, ready = reference.blocks, prepare(reference)
    rows = comparable(type(reference.sample)(g, labels, x, 0), reference, ready.resolution)
    mapped = mapped_rows(rows, ready)
    size = 3_000 // blocks.number
    block, stretch = np.arange(3_000) // size, np.arange(3_000) // window
    assert np.unique(blocks.stretch).size == 3_000 // window
    for k in (0, 7):
        own = block == k
        others = stretch != stretch[own][0]
        shares = np.bincount(labels[own], minlength=3) / size
        expected = sum(shares[y] * mapped[others & (labels == y)].mean(axis=0) for y in range(3))
        np.testing.assert_allclose(blocks.mapped.residuals[k], mapped[own].mean(axis=0) - expected, atol=1e-12)

        def gap(there, is_so, own=own, others=others):
            """Of the share of events that are so, among those that are there."""
            weights = np.bincount(labels[own & there], minlength=3) / (own & there).sum()
            of_class = [there & (labels == y) for y in range(3)]
            return sum(
                w * (is_so[own & c].mean() - is_so[others & c].mean()) for w, c in zip(weights, of_class, strict=True)
            )

        for j in (0, 1):
            there = ~np.isnan(x[:, j])
            widest = max(abs(gap(there, x[:, j] <= at)) for at in x[there, j])
            assert blocks.distances[k, j] == pytest.approx(widest, abs=0.005)
        everywhere = np.ones(labels.size, dtype=bool)
        in_all = sum(abs(gap(everywhere, x[:, 2] == v)) for v in range(4)) / 2
        assert blocks.distances[k, 2] == pytest.approx(in_all)
        absent = np.isnan(x[:, 1])
        expected = sum(shares[y] * absent[others & (labels == y)].mean() for y in range(3))
        assert blocks.missing[k, 1] == pytest.approx(absent[own].mean() - expected)


def test_a_class_that_only_one_block_has_tells_nothing_and_harms_nothing() -> None:
    g, labels, x = world()
    order = np.argsort(labels, kind="stable")
    reference = cheaply(SCHEMA, g[order], labels[order], x[order], cut(1_000, labels.size))
    assert np.isfinite(reference.blocks.distances).all()
    assert np.isfinite(reference.blocks.mapped.residuals).all()


def test_fit_cuts_by_the_times_of_the_events() -> None:
    g, labels, x = world(1_000)
    days = np.datetime64("2026-01-01") + np.arange(1_000) // 125 * np.timedelta64(1, "D")
    blocks = Reference.fit(g, labels, x, times=days, block="1d").blocks
    assert blocks is not None
    assert blocks.timed
    assert blocks.events.tolist() == [125] * 8
    with pytest.raises(InputError, match="say `block` too"):
        Reference.fit(g, labels, x, times=days)


def test_blocks_stand_in_the_file_and_in_its_version(tmp_path) -> None:
    reference = fitted(300)
    reference.save(tmp_path / "a.ref")
    again = Reference.load(tmp_path / "a.ref")
    assert again.version == reference.version != fitted().version
    assert again.blocks.length == "300"
    np.testing.assert_array_equal(again.blocks.sums, reference.blocks.sums)
    assert fitted().blocks is None


def test_the_model_s_losses_are_kept_by_block() -> None:
    reference = fitted(300)
    assert reference.blocks.losses.mean() == pytest.approx(reference.blocks.expected_losses.mean(), rel=0.1)
    assert reference.blocks.pcc.sum(axis=1) == pytest.approx(np.ones(10))
    assert np.abs(reference.blocks.pcc - reference.blocks.shares).mean() < 0.05


def dated(rows=6_000, seed=2):
    """A date, an identifier, a number that drifts slowly, and a plain one."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    when = np.arange(rows) * 3_600.0
    drifting = labels + rng.normal(size=rows) + np.sin(np.arange(rows) / 900)
    x = np.column_stack([when, rng.permutation(100) @ np.ones(100) + np.arange(rows), drifting, rng.normal(size=rows)])
    odds = np.exp(np.column_stack([np.zeros(rows), drifting]))
    return odds / odds.sum(axis=1, keepdims=True), labels, x


DATED = StreamSchema("", ("no", "yes"), tuple(Feature(name) for name in ("when", "number", "drifting", "plain")))


def test_dates_and_counters_are_found_said_and_in_no_test() -> None:
    g, labels, x = dated()
    known = cheaply(DATED, g[:4_000], labels[:4_000], x[:4_000], cut(200, 4_000))
    assert [DATED.features[j].name for j in known.calendar] == ["when", "number"]
    assert all("tells when an event was" in str(warning.text) for warning in known.warnings)
    later = assess(Window.of(g[4_000:4_400], x[4_000:4_400]), known)
    assert not later.features["when"].moved
    assert later.verdict == "stable"
    without = cheaply(DATED, g[:4_000], labels[:4_000], x[:4_000])
    assert assess(Window.of(g[4_000:4_400], x[4_000:4_400]), without).features["when"].moved


def test_a_year_that_ends_in_the_hold_out_is_a_calendar_and_a_rare_flag_is_not() -> None:
    g, labels, x = world()
    hours = np.random.default_rng(0).permutation(3_000)
    x[:, 0] = 2026 + (hours >= 2_700)
    x[:, 1] = hours == 2_850
    known = cheaply(SCHEMA, g, labels, x, cut("200h", 3_000, hours * HOUR))
    assert known.calendar == (0,)
    assert "a tells when an event was, not what: it only ever rises over the hold-out" in known.warnings[0].text


def test_calendars_outlive_the_file(tmp_path: Path) -> None:
    g, labels, x = dated()
    known = cheaply(DATED, g, labels, x, cut(200, labels.size))
    known.save(tmp_path / "dated.ref")
    assert Reference.load(tmp_path / "dated.ref").calendar == known.calendar == (0, 1)


def test_dates_are_found_in_a_hold_out_of_few_windows_too_and_not_in_one_of_few_events() -> None:
    g, labels, x = dated()
    assert cheaply(DATED, g, labels, x, cut(1_000, labels.size)).calendar == (0, 1)
    assert cheaply(DATED, g[:250], labels[:250], x[:250], cut(100, 250)).calendar == ()


def test_moments_of_a_zone_are_taken_in_utc_and_numbers_in_any_column_as_numbers() -> None:
    utc = np.array(["2026-06-01T10:00", "2026-06-01T11:00"], dtype="datetime64[us]").astype(np.int64)
    with_zone = pd.Series(pd.to_datetime(utc, unit="us", utc=True)).dt.tz_convert("Europe/Brussels")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (microseconds(with_zone, 2) == utc).all()
        assert (microseconds([moment.to_pydatetime() for moment in with_zone], 2) == utc).all()
        assert (microseconds(pd.Series(utc // 1_000, dtype=object), 2) == utc).all()


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([1.78e9, 1.78e9], "row 0 is 1780000000.0, which is no time in milliseconds"),
        ([1_780_000_000_000, 1_780_000_000_000_000], "row 1 is 1780000000000000, which is no time in milliseconds"),
        (np.array(["2026-06-01T10:00Z", "x"], dtype=object), "got text; pandas.to_datetime reads it"),
    ],
)
def test_times_in_another_unit_or_as_text_are_refused_and_not_misread(times, said) -> None:
    with pytest.raises(InputError, match=said):
        microseconds(times, 2)


def test_a_block_that_holds_hardly_an_event_is_refused() -> None:
    with pytest.raises(InputError, match="no 1s of the hold-out holds 100 events; want a longer block"):
        cut("1s", 300, np.arange(300) * HOUR)


def test_a_hold_out_sorted_by_label_is_told_from_one_in_time_order() -> None:
    g, labels, x = world()
    order = np.argsort(labels, kind="stable")
    sorted_rows = cheaply(SCHEMA, g[order], labels[order], x[order], cut(200, labels.size))
    assert [warning.cause for warning in sorted_rows.warnings] == ["sorted-by-class"]
    assert not fitted(200).warnings


def test_a_hold_out_of_a_single_block_says_that_nothing_is_known_of_blocks() -> None:
    (warning,) = fitted(3_000).warnings
    assert "makes no two blocks of 3000" in warning.text
    assert fitted(3_000).blocks.number == 20


def test_a_window_without_features_is_held_against_a_reference_with_blocks() -> None:
    g, _, _ = world(300, 3)
    assert assess(Window.of(g), fitted(200)).verdict == "stable"

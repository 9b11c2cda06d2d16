"""The report of a period: what it says, that it needs nothing else, and what it looks like in a real browser."""

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from monitor.assessment import assess, assess_regression, rfc3339
from monitor.assessment.verdict import facts_by_name
from monitor.commands.cli import main
from monitor.pages.messages import read
from monitor.pages.report import PeriodReport
from monitor.pages.story import Gathering
from monitor.windows import WindowKey
from tests.assessment import worlds
from tests.service import regression_streams
from tests.web import axe
from tests.web.browser import Browser, chromium
from tests.web.day import DAY, START, STREAMS, day
from tests.web.troubled import FAULTY, faulty, prices

WATCHED = ("churn-de", "spam-be", "lead-score-be")
WINDOWS = 16


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stream that has moved, one that came back, and a calm one."""
    path = tmp_path_factory.mktemp("day") / "results.jsonl"
    path.write_bytes(b"\n".join(day(WATCHED, WINDOWS)) + b"\n")
    return path


def made(lines: Iterator[bytes] | list[bytes]) -> PeriodReport:
    gathering = Gathering()
    for line in lines:
        if (message := read(line)) is not None:
            gathering.add(message)
    return PeriodReport.of(gathering.stories(), facts_by_name())


def altered(line: bytes, **changes: object) -> bytes:
    return json.dumps({**json.loads(line), **changes}).encode()


def window(line: bytes, number: int, verdict: str) -> bytes:
    """The same as another window of that number."""
    start, end = (f"2026-01-01T{number + at:02}:00:00.000000Z" for at in (0, 1))
    return altered(line, window=f"w{number}", start=start, end=end, verdict=verdict, baselines={})


def test_streams_that_have_moved_come_first_and_are_told_in_words(results: Path, tmp_path: Path) -> None:
    report = made(results.read_bytes().splitlines())
    assert [(section.name, section.state) for section in report.sections] == [
        ("churn-de", "moved"),
        ("spam-be", "over"),
        ("lead-score-be", "calm"),
    ]
    assert report.summary == "1 of 3 streams has moved and not come back; 1 moved and came back; the other 1 was calm."
    assert "since 12:00: invoice" in report.sections[0].words
    assert main(["report", str(results), "-o", str(tmp_path / "day.md")]) == 0
    told = (tmp_path / "day.md").read_text(encoding="utf-8")
    assert "- **churn-de**: Inputs have moved since 12:00: invoice." in told
    assert "lead-score-be" not in told, "nothing has happened to it"


def test_the_page_needs_nothing_else_and_draws_what_moved(results: Path, tmp_path: Path) -> None:
    packed = tmp_path / "results.jsonl.gz"
    packed.write_bytes(gzip.compress(results.read_bytes()))
    assert main(["report", str(packed), "-o", str(tmp_path / "day.html")]) == 0
    page = (tmp_path / "day.html").read_text(encoding="utf-8")
    assert "http:" not in page
    assert "https:" not in page
    assert "invoice is" in page, "the map that explains it"
    assert page.count('class="now-bars"') >= 3 * 4, "every feature and score of the three streams"


def test_a_period_is_cut_out_and_one_without_a_window_is_an_error(results: Path, tmp_path: Path) -> None:
    out = tmp_path / "morning.md"
    assert main(["report", str(results), "--to", "2026-01-01T12:00:00Z", "-o", str(out)]) == 0
    assert "1 of 3" not in out.read_text(encoding="utf-8"), "all was calm until noon"
    assert main(["report", str(results), "--from", "2030-01-01", "-o", str(out)]) == 1
    assert main(["report", str(results), "-o", str(tmp_path / "day.doc")]) == 1
    with pytest.raises(SystemExit):
        main(["report", str(results), "--from", "yesterday", "-o", str(out)])


def test_a_line_that_is_being_written_is_passed_over_and_a_broken_one_is_named(results: Path, tmp_path: Path) -> None:
    growing, broken = tmp_path / "growing.jsonl", tmp_path / "broken.jsonl"
    growing.write_bytes(results.read_bytes() + b'{"schema": "shiftwatch.win')
    assert main(["report", str(growing), "-o", str(tmp_path / "day.md")]) == 0
    broken.write_bytes(b"not json\n" + results.read_bytes())
    assert main(["report", str(broken), "-o", str(tmp_path / "day.md")]) == 1


def test_open_alarms_are_told_whatever_the_last_verdict_is(tmp_path: Path) -> None:
    lines = tmp_path / "results.jsonl"
    lines.write_bytes(b"".join(line + b"\n" for line in [*faulty().published, *prices().published]))
    assert main(["report", str(lines), "-o", str(tmp_path / "nights.md")]) == 0
    told = (tmp_path / "nights.md").read_text(encoding="utf-8")
    assert "1 of 2 streams has moved and not come back; 1 is in alarm." in told
    assert f"- **{FAULTY}**: Nothing has moved. In alarm since 21 Nov 04:16: rejected records." in told
    assert "  - rejected records: still a share of 0.06 in the last window, where 0.0021 was usual" in told
    assert main(["report", str(lines), "-o", str(tmp_path / "nights.html")]) == 0
    page = (tmp_path / "nights.html").read_text(encoding="utf-8")
    assert "Nothing has moved, in alarm" in page
    assert "The predictions are to be corrected" in page


def test_rejected_records_are_counted_by_reason_where_dead_letters_are_given(results: Path, tmp_path: Path) -> None:
    reasons = [("not-json", ""), ("wrong-classes", "churn-de"), ("wrong-classes", "churn-de")]
    letters, out = tmp_path / "dead-letters.jsonl", tmp_path / "day.md"
    said = [{"reason": reason, "detail": "", "stream": of, "partition": "p", "offset": "1"} for reason, of in reasons]
    letters.write_text("".join(json.dumps(one) + "\n" for one in said), encoding="utf-8")
    assert main(["report", str(results), str(letters), "-o", str(out)]) == 0
    assert "Rejected records: wrong-classes 2 of churn-de, not-json 1." in out.read_text(encoding="utf-8")


def test_single_windows_are_no_episodes_and_verdicts_in_between_cut_none(results: Path) -> None:
    line = results.read_bytes().splitlines()[0]
    verdicts = ["stable", "prior-shift", "stable", "stable", "prior-shift", "stable", "prior-shift", "unexplained",
                "prior-shift", "stable", "stable", "stable", "covariate-shift", "covariate-shift"]  # fmt: skip
    story = made([window(line, number, verdict) for number, verdict in enumerate(verdicts)]).sections[0].story
    assert [(episode.verdict, len(episode.windows)) for episode in story.episodes] == [
        ("prior-shift", 5),
        ("covariate-shift", 2),
    ]
    assert story.alone == 1
    assert story.lasts
    calm = made([window(line, number, "insufficient-data") for number in range(3)]).sections[0]
    assert calm.state == "few"


def test_whatever_comes_from_outside_is_text(results: Path) -> None:
    line = results.read_bytes().splitlines()[-1]
    page = made([altered(line, stream="<script>alert(1)</script>", reasons=["<b>bold</b>"], verdict="prior-shift")])
    assert "<script>alert" not in page.html()
    assert "<b>bold" not in page.html()


def test_labels_alarms_and_segments_are_told_too(results: Path) -> None:
    lines = results.read_bytes().splitlines()[-WINDOWS:]
    last = json.loads(lines[-1])
    outcome = {
        "schema": "shiftwatch.outcome.v1", "stream": last["stream"], "window": last["window"], "start": last["start"],
        "end": last["end"], "classes": {"warm": {"realised": 0.21}},
        "performance": {"roc_auc": {"realised": 0.91, "lower": 0.88, "upper": 0.94}},
    }  # fmt: skip
    alarm = {
        "schema": "shiftwatch.alarm.v1", "stream": last["stream"], "id": "a", "state": "raised", "series": "share",
        "since": last["start"], "end": last["end"], "reason": "share of warm rises",
    }  # fmt: skip
    segment = altered(lines[-1], segment="country=BE", window="s")
    report = made([*lines, segment, json.dumps(outcome).encode(), json.dumps(alarm).encode()])
    page = report.html()
    assert "share of warm rises" in page
    assert "country=BE" in page
    assert "0.91 (0.88 to 0.94)" in page
    assert 'class="truth"' in page


def test_one_window_is_a_page_a_line_a_table_and_a_picture() -> None:
    def change(x):
        x[:, 3] += 0.8

    found = assess(worlds.window(2_000, 3, change=change), worlds.reference())
    assert repr(found).startswith("<Assessment, covariate-shift, 2,000 events: x3 ")
    assert "\n" not in repr(found)
    report = found.report()
    assert report.markdown().count("Inputs have moved: x3") == 2
    assert found._repr_html_().startswith("<iframe")
    table = found.to_frame()
    assert list(table.index) == ["x0", "x1", "x2", "x3"]
    assert table.loc["x3", "moved"]
    pytest.importorskip("matplotlib")
    assert [axes.get_title() for axes in found.plot().axes][-1] == "x3"


def test_a_regressors_window_is_shown_as_well() -> None:
    found = assess_regression(regression_streams.window(shift=0.5, labelled=0.1), regression_streams.reference())
    assert "Inputs have moved" in found.report().markdown()
    assert "prediction" in found.report().html()


def regressor() -> Iterator[bytes]:
    """Three windows of a regressor, in the last of which its slopes have doubled."""
    for number, factors in enumerate((1.0, 1.0, regression_streams.DOUBLED)):
        start, end = START + number * DAY // 3, START + (number + 1) * DAY // 3
        window = regression_streams.window(seed=number, labelled=0.2, factors=factors)
        timed = replace(window, key=WindowKey("prices", "", start, end))
        yield assess_regression(timed, regression_streams.reference()).to_json()


def test_the_errors_of_a_regressor_are_drawn_with_what_eight_of_ten_lie_in() -> None:
    html = made(regressor()).html()
    assert "label minus prediction: middle, and eight of ten" in html
    assert "root mean square" in html


def many(results: Path, folder: Path, streams: int, windows: int) -> Path:
    """A day of so many streams, of the windows of three."""
    lines = [json.loads(line) for line in results.read_bytes().splitlines()]
    path = folder / "many.jsonl"
    with path.open("wb") as out:
        for name in range(streams):
            own = lines[name % 3 * WINDOWS :][:WINDOWS]
            for number in range(windows):
                start, end = (START + DAY * (number + at) // windows for at in (0, 1))
                times = {"start": rfc3339(start), "end": rfc3339(end)}
                one = {**own[number * WINDOWS // windows], **times, "stream": STREAMS[name], "window": f"{number}"}
                out.write(json.dumps(one).encode() + b"\n")
    return path


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with chromium(tmp_path) as opened:
        yield opened


@pytest.mark.acceptance
@pytest.mark.skipif(shutil.which("chromedriver") is None, reason="chromedriver is not installed")
def test_a_day_of_sixty_streams_opens_at_once_and_can_be_searched_folded_and_printed(
    results: Path, tmp_path: Path, browser: Browser
) -> None:
    out = tmp_path / "report.html"
    assert main(["report", str(many(results, tmp_path, 60, 96)), "-o", str(out)]) == 0
    assert out.stat().st_size < 5_000_000
    for width, height, phone in ((1440, 900, False), (390, 844, True)):
        browser.size(width, height, phone=phone)
        browser.go(out.as_uri())
        took = browser.run("return performance.getEntriesByType('navigation')[0].loadEventEnd")
        assert took < 2_000
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"
    browser.run(
        "const find = document.getElementById('find'); find.value = 'invoice'; find.dispatchEvent(new Event('input'))"
    )
    shown = "return [...document.querySelectorAll('main > section[id]')].filter((part) => !part.hidden).length"
    assert browser.run(shown) == 20, "one stream of three"
    browser.run("document.querySelector('summary').click()")
    assert browser.run("return document.querySelector('details').open")
    assert browser.complaints() == []
    assert main(["report", str(results), "-o", str(tmp_path / "report.pdf")]) == 0
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.acceptance
@pytest.mark.skipif(shutil.which("chromedriver") is None, reason="chromedriver is not installed")
def test_axe_finds_nothing_in_it_that_is_hard_to_use_for_anyone(
    results: Path, tmp_path: Path, browser: Browser
) -> None:
    code, out, both = axe.script(), tmp_path / "report.html", tmp_path / "both.jsonl"
    troubled = [*prices().published, *faulty().published]
    both.write_bytes(results.read_bytes() + b"".join(line + b"\n" for line in troubled))
    assert main(["report", str(both), "-o", str(out)]) == 0
    browser.size(1440, 900)
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        browser.go(out.as_uri())
        assert axe.findings(browser, code) == [], scheme
    assert browser.complaints() == []


@pytest.mark.acceptance
@pytest.mark.skipif(
    "SCREENSHOTS" not in os.environ, reason="SCREENSHOTS=deploy/screenshots keeps what the report looks like"
)
def test_the_report_of_a_whole_day_is_kept_as_a_picture(tmp_path: Path, browser: Browser) -> None:
    results, out = tmp_path / "results.jsonl", tmp_path / "report.html"
    results.write_bytes(b"\n".join(day(windows=WINDOWS)) + b"\n")
    assert main(["report", str(results), "-o", str(out)]) == 0
    browser.size(1440, 900)
    browser.go(out.as_uri())
    browser.screenshot(Path(os.environ["SCREENSHOTS"], "report.png"))


def test_what_labels_said_of_a_regressor_afterwards_stands_beside_its_errors() -> None:
    windows = list(regressor())
    (found,) = made(windows).sections
    assert found.measure_heads == ["label minus prediction", "by labels", "on the hold-out"]
    assert (found.measures, found.corrections) == ([], "")
    told = [json.loads(line) for line in windows]
    error = {"realised": 9.5, "lower": 9.0, "upper": 10.25, "estimated": None, "reference": 4.5}
    outcomes = [
        {key: one[key] for key in ("stream", "segment", "window", "start", "end")}
        | {"schema": "shiftwatch.regression-outcome.v1", "performance": {"rmse": error}}
        | {"correction": {"finding": finding, "reason": "as labels say"}}
        for one, finding in zip(told, ("not-recommended", "harmed", "helped"), strict=True)
    ]
    report = made([*windows, *(json.dumps(one).encode() for one in outcomes)])
    (section,) = report.sections
    assert section.measures == [("rmse", "9.5 (9 to 10.2)", "4.5")]
    assert section.corrections == "Corrections helped in 1, made predictions worse in 1 of 3 windows with labels"
    assert "truth" in {mark.style for mark in section.errors[0].drawing.marks}
    assert "Corrections helped in 1, made predictions worse in 1 of 3 windows with labels." in report.html()
    assert "by labels that came later" in report.html()

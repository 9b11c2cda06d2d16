"""The status page without a browser: it says what is so, of any number of windows, and no name can break out of it."""

import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from starlette.exceptions import HTTPException

from monitor.assessment import DataQuality
from monitor.assessment.data_quality import FeatureQuality
from monitor.assessment.verdict import Verdict
from monitor.observers import Snapshot
from monitor.pages import words
from monitor.service.notices import StreamsSpread
from monitor.state import Budget
from monitor.web import page
from monitor.web.page import charts
from monitor.web.page.charts import Bins
from monitor.web.page.choice import Choice, written
from monitor.web.page.class_charts import prevalence
from monitor.web.page.classifier import SCORES
from monitor.web.page.panels import COMMON, COMMON_OF_WINDOWS, quality
from monitor.web.page.stream import PANELS, WINDOW_PANELS
from tests.web.made_up import MINUTE, START, Lagging, Story

VOID = {"meta", "link", "input", "br", "img"}


class Balanced(HTMLParser):
    """Complains about tags that do not match."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen[tag] = self.seen.get(tag, 0) + 1
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), (tag, attrs)
        assert "style" not in names, "the content policy forbids inline styles"
        assert not any(name.startswith("on") for name in names), "and inline scripts"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def rendered(story: Story, **chosen: Any) -> str:
    return checked(story.history.snapshot, story.history.now(), **chosen)


def checked(snapshot: Snapshot, now: float, **chosen: Any) -> str:
    html = page.document(snapshot, now, Choice(**chosen))
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    assert "nan" not in re.sub(r"<[^>]*>", "", html).lower().split()
    return html


def test_it_says_of_which_streams_no_windows_are_published_and_why_a_window_recommends_nothing() -> None:
    story = Story()
    assert "Several members" not in rendered(story)
    story.tell(StreamsSpread(frozenset({"made-up", "other"}), frozenset({"made-up"})))
    html = rendered(story)
    assert "Several members of the group get events of made-up: no windows of it are published." in html
    assert "Several members of the group get events of other: windows are this member&#39;s part." in html.replace(
        "'", "&#39;"
    )
    story.tell(StreamsSpread(frozenset(), frozenset()))
    assert "Several members" not in rendered(story)


def test_before_the_first_window_it_says_that_it_waits() -> None:
    html = rendered(Story())
    assert "Waiting for the first window" in html
    assert "50,000 labelled events" in html


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_has_words_a_colour_and_a_mark(verdict: Verdict) -> None:
    story = Story()
    story.window(verdict)
    html = rendered(story)
    assert verdict.facts.headline in html
    assert verdict.facts.advice in html
    assert verdict.facts.mark in html
    assert f".v-{verdict} {{ fill: {verdict.facts.colour};" in page.ASSETS["style.css"][1].decode()


def test_it_says_what_moved_how_far_and_whether_to_correct() -> None:
    story = Story(source=Lagging())
    story.busy(rejected=7)
    story.window()
    story.window(Verdict.PRIOR_AND_COVARIATE_SHIFT, priors=(0.2, 0.3, 0.5), moved={2: 0.31}, apply=True)
    html = rendered(story)
    assert "The class mix and inputs have moved" in html
    assert "50.0 %" in html
    assert "45.0 % to 55.0 %" in html
    assert "feature_2</b>" in html
    assert "The scores are to be corrected" in html
    assert "Rejected: not-json 7" in html
    assert "not read yet" in html
    assert "<title>(1) made-up · Shiftwatch</title>" in html


def test_open_alarms_stand_before_any_chart_with_what_moved_and_since_when() -> None:
    story = Story(budget=Budget.of(1e-3))
    story.window()
    assert "Open alarms" not in rendered(story)
    since = story.now
    for _ in range(8):
        story.window(priors=(0.44, 0.33, 0.23))
    html = rendered(story, stream="made-up")
    assert html.index("</h1>") < html.index("Open alarms") < html.index("How much of each class")
    assert "share of class_0 falls" in html
    assert words.moment(since) in html


def test_an_alarm_on_data_quality_stands_among_the_open_ones_and_in_its_panel() -> None:
    story = Story(budget=Budget.of(2.0))
    for _ in range(30):
        story.window()
    since = story.now
    for _ in range(5):
        story.window(quality=DataQuality(rejected=0.2))
    html = rendered(story, stream="made-up")
    assert html.index("Open alarms") < html.index("rejected records") < html.index("How much of each class")
    panel = html[html.index(">Data quality<") :]
    assert "<b>More rejected records than there used to be</b> since" in panel
    assert words.moment(since) in panel


def test_an_estimate_that_did_not_converge_says_so() -> None:
    story = Story()
    story.window(converged=False)
    assert "not converged</b>: ran out of steps" in rendered(story)


def test_a_stale_stream_says_since_when() -> None:
    story = Story()
    story.window()
    story.now += 20 * MINUTE
    html = rendered(story)
    assert "No window for 20 min" in html
    assert 'class="badge old"' in html, "and nothing looks as if all were well"
    assert "✓" not in html


def test_a_stream_that_reads_the_past_says_so() -> None:
    story = Story(behind=54 * 24 * 60 * MINUTE)
    story.window()
    assert "Of events that were 54 d old when they were read" in rendered(story)
    story = Story(behind=60 * MINUTE)
    story.window()
    assert "old when they were read" not in rendered(story)


def test_a_calm_window_in_an_alarm_does_not_say_that_nothing_is_to_be_done() -> None:
    story = Story()
    for verdict in (Verdict.PRIOR_SHIFT, Verdict.PRIOR_SHIFT, Verdict.STABLE):
        story.window(verdict)
    html = rendered(story)
    assert "Alarm:" in html
    assert "This window is calm: the alarm ends when fewer of the last windows have moved." in html
    assert "No action is needed." not in html


def test_of_two_classes_the_positive_one_is_shown() -> None:
    story = Story(classes=2)
    story.window()
    html = rendered(story)
    assert "Share of class_1 over" in html
    assert "Share of class_0 over" not in html


def test_of_many_classes_those_that_moved_most_are_shown() -> None:
    story = Story(classes=40)
    story.window()
    assert rendered(story).count("Share of class_") >= 6
    assert "and 34 more classes" in rendered(story)
    html = rendered(story)
    assert "All 40 classes" in html
    assert len(set(re.findall(r"\?class=class_\d+", html))) == 40
    assert (
        re.findall(r"Share of (class_\d+) over", rendered(story, stream="made-up", named="class_31"))[0] == "class_31"
    )


def test_of_two_classes_of_which_none_is_said_to_be_positive_the_rarer_one_is_shown() -> None:
    story = Story(classes=2)
    story.window()
    snapshot = story.history.snapshot
    told = replace(snapshot.facts["made-up"], model=replace(snapshot.facts["made-up"].model, positive=None))
    assert "Share of class_1 over" in checked(replace(snapshot, facts={"made-up": told}), story.history.now())


def test_a_rare_class_is_drawn_from_zero_up_and_a_common_one_is_not() -> None:
    story = Story(classes=7)
    for _ in range(3):
        story.window()
    bins = Bins(story.history.snapshot.tracks["made-up"][""].readings)
    common, rare = prevalence(bins, 0), prevalence(bins, 6)
    assert (rare.bottom, common.bottom == "0.0 %") == ("0.0 %", False)


def test_data_quality_is_said_in_shares_over_time_and_for_the_features_that_it_is_of() -> None:
    story = Story()
    for _ in range(4):
        story.window()
    calm, *_ = readings = list(story.history.snapshot.tracks["made-up"][""].readings)
    assert "Nothing is rejected or missing" in rendered(story)
    age = FeatureQuality(outside_range=0.4, new_categories=0.0)
    wrong = DataQuality(rejected=0.25, outside_range=0.1, constant=("x1",), features={"age": age})
    readings[-1] = replace(calm, quality=wrong, volume=0.5)
    card = SimpleNamespace(latest=readings[-1], readings=readings, bins=Bins(readings), choice=Choice(), current=False)
    shown = quality(cast(Any, card))
    assert shown["wrong"] == ["rejected", "out of range", "constant features"]
    assert shown["rows"][:2] == [("rejected", "25.0 %", "25.0 %"), ("missing", "0.0 %", "0.0 %")]
    assert shown["values"]["wrong"][0] == [0, 0, 0, 0.25]
    assert shown["features"] == [
        ("age", "40.0 % of its values lie outside the hold-out's range"),
        ("x1", "has the same value in all events"),
    ]
    assert shown["volume"] == (0.5, 0.5, 0.5)
    one = quality(cast(Any, SimpleNamespace(**{**vars(card), "choice": Choice(window=calm.key.end)})))
    assert one["chart"] is None
    assert one["rows"][0] == ("rejected", "25.0 %")


def test_labels_that_come_later_are_drawn_at_the_window_that_they_are_of() -> None:
    story = Story()
    story.window()
    outcome = story.outcome()
    story.window()
    html = rendered(story)
    assert "truth, from labels" in html
    assert 'data-shows="outcome:normalised_absolute_error"' in html
    assert 'data-shows="outcome:brier"' in html
    bins = Bins(story.history.snapshot.tracks["made-up"][""].readings)
    assert [bins.at(reading.key.end) for reading in bins.readings] == [0, 1]
    assert bins.at(story.now + 1) is None
    first = rendered(story, stream="made-up", window=story.now - MINUTE)
    assert "What labels said afterwards" in first
    for name in SCORES:
        assert f"{getattr(outcome, name).before:.4f}" in first, name
    assert f"\N{RIGHTWARDS ARROW} {outcome.normalised_absolute_error.after:.4f}" in first
    assert "What labels said afterwards" not in rendered(story, stream="made-up", window=story.now)


def test_a_range_shows_the_stream_as_of_its_last_window() -> None:
    story = Story()
    for number in range(20):
        story.window(Verdict.PRIOR_SHIFT if number == 9 else Verdict.STABLE)
    html = rendered(story, stream="made-up", since=START + 4 * MINUTE, until=START + 10 * MINUTE)
    assert "of the last 6 windows" in html
    assert "As of the last window in the range" in html
    assert "The class mix has moved" in html.split("</h1>")[1].split("</span>")[0]
    assert "No window ended in the range" in rendered(story, stream="made-up", until=START)


def test_a_window_has_a_page_with_all_its_inputs_and_its_neighbours() -> None:
    story = Story(features=30)
    for number in range(5):
        story.window(Verdict.COVARIATE_SHIFT if number == 2 else Verdict.STABLE, moved={7: 0.31} if number == 2 else {})
    third = START + 3 * MINUTE
    html = rendered(story, stream="made-up", window=third)
    assert "1 of 30 moved" in html
    assert re.findall(r"<td>(feature_\d+)</td>", html)[0] == "feature_7"
    assert f'href="/streams/made-up/windows/{written(third - MINUTE)}" rel="prev"' in html
    assert f'href="/streams/made-up/windows/{written(third + MINUTE)}" rel="next"' in html
    assert "This is the newest" in rendered(story, stream="made-up", window=START + 5 * MINUTE)
    with pytest.raises(HTTPException, match="no window that ended then"):
        rendered(story, stream="made-up", window=third + 1)


def test_the_truth_is_drawn_where_labels_tell_it() -> None:
    story = Story()
    story.window()
    assert "truth, from labels" not in rendered(story)
    story.window(labels=np.array([0, 1, 2, 0, 0, 0, 0, 0, 0, 0]))
    assert "truth, from labels" in rendered(story)
    assert 'class="truth"' in rendered(story)


def test_segments_are_shown_over_time_the_worst_first_with_pages_of_their_own() -> None:
    story = Story()
    for _ in range(3):
        story.window()
        for country in ("AT", "BE", "CH"):
            story.window(Verdict.UNKNOWN_CLASS if country == "BE" else Verdict.STABLE, segment=f"country={country}")
    html = rendered(story)
    assert re.findall(r">country=(\w\w)</a>", html) == ["BE", "AT", "CH"]
    own = rendered(story, stream="made-up", segment="country=BE")
    assert "Some events look like no known class" in own.split("</h1>")[1].split("</div>")[0]
    assert "/streams/made-up/windows/" in own
    assert "segment=country%3DBE" in own


def test_names_from_outside_stay_text() -> None:
    story = Story(stream='<img src=x onerror="alert(1)">')
    story.window(segment="")
    story.window(segment="</script><script>alert(1)</script>")
    html = rendered(story)
    assert "<img src=x" not in html
    assert "<script>alert" not in html


def test_every_panel_has_a_template_and_every_template_a_panel() -> None:
    """A kind's own template goes before that for all kinds; two are parts of the headline."""
    all_panels = {kind: {*PANELS[kind], *WINDOW_PANELS[kind]} for kind in PANELS}
    folder = files("monitor.web").joinpath("templates")
    found = {f"{kind}/{template.name}" for kind in (*PANELS, "panels") for template in folder.joinpath(kind).iterdir()}
    used = {f"panels/{panel.__name__}.html" for panel in (*COMMON, *COMMON_OF_WINDOWS)}
    for kind, panels in all_panels.items():
        used |= {f"{kind}/{part}.html" for part in ("figures", "correction")}
        for panel in panels:
            own = f"{kind}/{panel.__name__}.html"
            used.add(own if own in found else f"panels/{panel.__name__}.html")
    assert used == found


def test_only_who_makes_pages_loads_what_makes_them_and_only_exact_tests_what_takes_long_to_load() -> None:
    late = {"jinja2", "scipy.stats", "scipy.optimize", "scipy.spatial", "sklearn", "river"}
    code = f"import sys, monitor.commands.run; sys.exit(sorted({late} & sys.modules.keys()) or 0)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_values_for_the_script_cannot_end_their_element() -> None:
    story = Story()
    story.window()
    (values,) = re.findall(r'class="values">(.*?)</script>', rendered(story))
    assert set(json.loads(values)) >= {"time", "verdict", "class", "features", "effects"}


def test_a_thousand_windows_of_a_hundred_features_are_drawn_in_little_space_and_time() -> None:
    story = Story(features=100)
    rng = np.random.default_rng(1)
    for number in range(1_000):
        verdict = list(Verdict)[number // 150]
        story.window(verdict, moved={int(at): float(rng.uniform(0.03, 0.6)) for at in rng.integers(0, 100, 30)})
    rendered(story)
    started = time.process_time()
    html = page.document(story.history.snapshot, story.history.now())
    assert time.process_time() - started < 0.3
    assert len(html) < 250_000
    assert "the 24 that moved most of 100" in html


def test_many_windows_share_bins_and_none_is_lost() -> None:
    story = Story()
    for _ in range(1_000):
        story.window()
    bins = Bins(story.history.snapshot.tracks["made-up"][""].readings)
    assert len(bins.groups) <= charts.MOST_BINS
    assert sum(len(group) for group in bins.groups) == 1_000


def test_heat_begins_at_the_floor_of_the_test_and_ends_at_the_last_colour() -> None:
    levels = charts.heat_level(np.array([0.0, 0.0299, 0.03, 0.05, 0.4, 1.0]))
    assert levels.tolist() == [0, 0, 1, 1, 6, 6]


@pytest.mark.parametrize(
    ("share", "said"), [(0.0, "0.0 %"), (0.0512, "5.12 %"), (0.312, "31.2 %"), (float("nan"), "unknown")]
)
def test_shares_are_said_with_the_digits_that_matter(share: float, said: str) -> None:
    assert words.percent(share) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0312, "31 ms"), (1.0, "1.0 s"), (59, "59 s"), (300, "5 min"), (7200, "2 h"), (3 * 86400, "3 d")],
)
def test_durations_are_said_in_the_unit_that_suits(value: float, said: str) -> None:
    assert words.seconds(value) == said

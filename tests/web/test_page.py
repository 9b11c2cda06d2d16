"""The status page without a browser: it says what is so, of any number of windows, and no name can break out of it."""

import json
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

from monitor.assessment.verdict import Verdict
from monitor.pages import words
from monitor.service.notices import StreamsSpread
from monitor.state import Budget
from monitor.web import page
from monitor.web.page import charts
from monitor.web.page.charts import Bins
from monitor.web.page.document import PANELS
from monitor.web.page.panels import COMMON
from tests.web.made_up import MINUTE, Lagging, Story

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


def rendered(story: Story, stream: str = "") -> str:
    html = page.document(story.history.snapshot, story.history.now(), stream)
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
    assert "<title>(1) Shiftwatch</title>" in html


def test_open_alarms_stand_first_with_what_moved_and_since_when() -> None:
    story = Story(budget=Budget.of(1e-3))
    story.window()
    assert "Open alarms" not in rendered(story)
    since = story.now
    for _ in range(8):
        story.window(priors=(0.44, 0.33, 0.23))
    html = rendered(story)
    assert html.index("Open alarms") < html.index("<h2>made-up</h2>")
    assert "share of class_0 falls" in html
    assert words.moment(since) in html


def test_an_estimate_that_did_not_converge_says_so() -> None:
    story = Story()
    story.window(converged=False)
    assert "not converged</b>: ran out of steps" in rendered(story)


def test_a_stale_stream_says_since_when() -> None:
    story = Story()
    story.window()
    story.now += 20 * MINUTE
    assert "No window for 20 min" in rendered(story)


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


def test_the_truth_is_drawn_where_labels_tell_it() -> None:
    story = Story()
    story.window()
    assert "truth, from labels" not in rendered(story)
    story.window(labels=np.array([0, 1, 2, 0, 0, 0, 0, 0, 0, 0]))
    assert "truth, from labels" in rendered(story)
    assert 'class="truth"' in rendered(story)


def test_segments_stand_in_a_table() -> None:
    story = Story()
    story.window()
    story.window(Verdict.UNKNOWN_CLASS, segment="country=BE")
    assert "country=BE</td><td>Some events look like no known class" in rendered(story)


def test_several_streams_have_an_overview_and_pages_of_their_own() -> None:
    story = Story()
    other = Story(stream="other")
    story.window()
    snapshot = story.history.snapshot
    both = type(snapshot)(
        snapshot.started,
        {**snapshot.facts, **other.history.snapshot.facts},
        snapshot.tracks,
        assessing=snapshot.assessing,
        iterations=snapshot.iterations,
    )
    html = page.document(both, story.history.now())
    assert '<a href="/streams/other">other</a>' in html
    assert "<h2>Streams</h2>" in html
    alone = page.document(both, story.history.now(), "made-up")
    assert "<h2>Streams</h2>" not in alone
    assert "other" not in re.sub(r"<[^>]*>", "", alone).split()


def test_names_from_outside_stay_text() -> None:
    story = Story(stream='<img src=x onerror="alert(1)">')
    story.window(segment="")
    story.window(segment="</script><script>alert(1)</script>")
    html = rendered(story)
    assert "<img src=x" not in html
    assert "<script>alert" not in html


def test_every_panel_has_a_template_and_every_template_a_panel() -> None:
    """A kind's own template goes before that for all kinds; two are parts of the headline."""
    folder = files("monitor.web").joinpath("templates")
    found = {f"{kind}/{template.name}" for kind in (*PANELS, "panels") for template in folder.joinpath(kind).iterdir()}
    used = {f"panels/{panel.__name__}.html" for panel in COMMON}
    for kind, panels in PANELS.items():
        used |= {f"{kind}/{part}.html" for part in ("figures", "correction")}
        for panel in panels:
            own = f"{kind}/{panel.__name__}.html"
            used.add(own if own in found else f"panels/{panel.__name__}.html")
    assert used == found


def test_only_who_makes_pages_loads_what_makes_them() -> None:
    code = "import sys, monitor, monitor.commands.run; sys.exit('jinja2' in sys.modules)"
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
    started = time.perf_counter()
    html = page.document(story.history.snapshot, story.history.now())
    assert time.perf_counter() - started < 0.3
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

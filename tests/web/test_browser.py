"""The status page in a real Chromium: no complaints, the shift is seen, the pointer and the keys show values, it
refreshes itself, fits a phone, and survives a thousand windows of a hundred features. Screenshots are kept."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from monitor.assessment.verdict import Verdict
from monitor.settings.config import ServerSettings
from monitor.web.server import serving
from tests.deploy.parts import need, until
from tests.web.browser import Browser, chromium
from tests.web.made_up import Lagging, Story

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(200)]

LEFT, RIGHT = "\ue012", "\ue014"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    need("chromium", "chromedriver")
    with chromium(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(autouse=True)
def no_page_outlives_its_test(browser: Browser) -> Iterator[None]:
    """One that goes on asking a server which is gone would complain in the console of the next test."""
    yield
    browser.go("about:blank")
    browser.complaints()


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: into the folder that SCREENSHOTS names, to be kept."""
    folder = Path(os.environ.get("SCREENSHOTS", tmp_path_factory.mktemp("screenshots")))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def story() -> Story:
    story = Story(source=Lagging())
    story.busy(rejected=9)
    rng = np.random.default_rng(3)
    for number in range(60):
        labels = rng.integers(0, 3, 10)
        if number < 40:
            story.window(labels=labels)
        else:
            story.window(Verdict.PRIOR_AND_COVARIATE_SHIFT, priors=(0.2, 0.3, 0.5), moved={1: 0.3}, labels=labels)
    story.window(Verdict.PRIOR_SHIFT, priors=(0.2, 0.3, 0.5), apply=True)
    story.window(Verdict.STABLE, segment="country=BE")
    return story


@pytest.fixture
def url(story: Story) -> Iterator[str]:
    with serving(ServerSettings(port=0), story.history) as url:
        yield url


def test_it_shows_the_shift_and_nothing_complains(browser: Browser, url: str, shots: Path) -> None:
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        browser.size(1240, 1900)
        browser.go(url)
        assert "The class mix has moved" in browser.run("return document.querySelector('.badge').innerText")
        assert browser.run("return document.querySelectorAll('svg.plot').length") == 9
        assert browser.run("return document.title") == "(1) made-up · Shiftwatch"
        browser.screenshot(shots / f"status-{scheme}.png")
    colours = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert colours == "rgb(20, 23, 27)"
    browser.scheme("light")
    assert browser.complaints() == []


def test_pointer_and_keys_show_the_values(browser: Browser, url: str) -> None:
    browser.size(1240, 1900)
    browser.go(url)
    box = browser.run("const b = document.querySelector('.chart').getBoundingClientRect(); return [b.x, b.y, b.width]")
    browser.move(int(box[0] + box[2] - 2), int(box[1] + 20))
    said = browser.run("return document.getElementById('tip').innerText")
    assert "The class mix has moved" in said
    assert "class_0: 20.0 % (18.0 % to 22.0 %)" in said
    browser.run("document.querySelector('.heat').focus()")
    browser.press(LEFT)
    browser.press(LEFT)
    said = browser.run("return document.getElementById('tip').innerText")
    assert "feature_1: moved by 0.3" in said
    assert browser.complaints() == []


def test_it_refreshes_itself_and_keeps_what_was_open(browser: Browser, url: str, story: Story) -> None:
    browser.go(url)
    browser.run("document.querySelector('details').open = true")
    story.window(Verdict.UNKNOWN_CLASS)
    badge = "return document.querySelector('.badge').innerText"
    until(lambda: "no known class" in browser.run(badge), 90, "the next window on the page")
    assert browser.run("return document.querySelector('details').open") is True
    assert browser.complaints() == []


def test_it_says_when_the_service_is_gone(browser: Browser, story: Story) -> None:
    with serving(ServerSettings(port=0), story.history) as url:
        browser.go(url)
    live = "return document.getElementById('live').innerText"
    until(lambda: "not reached" in browser.run(live), 90, "the page to notice")
    assert "The class mix has moved" in browser.run("return document.querySelector('.badge').innerText")


def test_it_fits_a_phone(browser: Browser, url: str, shots: Path) -> None:
    browser.size(390, 844, phone=True)
    browser.go(url)
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    browser.screenshot(shots / "status-phone.png")


def test_everything_has_a_name_for_those_who_cannot_see_it(browser: Browser, url: str) -> None:
    browser.size(1240, 1900)
    browser.go(url)
    nameless = "return [...document.querySelectorAll('svg')].filter(one => !one.ariaLabel && !one.ariaHidden).length"
    assert browser.run(nameless) == 0
    assert browser.run("return document.documentElement.lang") == "en"
    assert browser.run("return document.querySelectorAll('main, header, footer').length") == 3
    contrast = browser.run(_CONTRAST)
    assert contrast >= 4.5, contrast


def test_a_thousand_windows_of_a_hundred_features_are_drawn(browser: Browser, shots: Path) -> None:
    story = Story(features=100)
    rng = np.random.default_rng(1)
    for number in range(1_000):
        moved = {int(at): float(rng.uniform(0.03, 0.6)) for at in rng.integers(0, 100, 8)} if number > 600 else {}
        verdict = Verdict.COVARIATE_SHIFT if moved else Verdict.STABLE
        story.window(verdict, moved=moved)
    with serving(ServerSettings(port=0), story.history) as url:
        browser.size(1240, 2400)
        browser.go(url)
        assert "of the last 1,000 windows" in browser.run("return document.querySelector('.wide').innerText")
        assert browser.run("return document.querySelectorAll('.rows li').length") == 24
        loaded = browser.run("return performance.getEntriesByType('navigation')[0].duration")
        assert loaded < 5_000
        browser.screenshot(shots / "status-thousand.png")
        assert browser.complaints() == []


# The lowest contrast of any text with the card behind it, by the formula of WCAG 2.
_CONTRAST = """
const light = (colour) => {
  const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const card = light(getComputedStyle(document.querySelector(".card")).backgroundColor);
const ratios = [...document.querySelectorAll(".card p, .card li, .card td, .card th, .card span, .card dt")]
  .filter((one) => one.innerText && !one.closest(".badge"))
  .map((one) => light(getComputedStyle(one).color))
  .map((text) => (Math.max(text, card) + 0.05) / (Math.min(text, card) + 0.05));
return Math.min(...ratios);
"""

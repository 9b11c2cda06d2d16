"""What a person sees who looks at sixty streams and clicks from all of them to one, to a range of time, to a window.

In a real Chromium that has nothing to complain of, and axe neither. SCREENSHOTS=deploy/screenshots keeps what is seen.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from monitor.settings.config import ServerSettings
from monitor.web.server import serving
from tests.deploy.parts import need, until
from tests.web import axe
from tests.web.browser import Browser, chromium
from tests.web.fleet import fleet
from tests.web.lived import STREAM, lived
from tests.web.troubled import FAULTY, PRICES, in_trouble

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(300)]

ENTER, LEFT = "\ue007", "\ue012"
TITLE = "return document.querySelector('h1').innerText"
LISTED = "return [...document.querySelectorAll('.lines a')].map((one) => one.innerText)"
HEADINGS = "return [...document.querySelectorAll('h2, h3')].map((one) => one.innerText)"
ADDRESS = "return location.pathname + location.search"
WIDE, PHONE = (1440, 900), (390, 844)


class Looking:
    """At one page after the other, as somebody does; every one has to be fit to be seen."""

    def __init__(self, browser: Browser, shots: Path, code: str) -> None:
        self.browser, self._shots, self._code = browser, shots, code

    def at(self, name: str, *, tall: bool = False) -> None:
        """Keeps a screenshot of what is open, of all of it or of what fits, and asks what is wrong with it."""
        width, height = WIDE
        full = self.browser.run("return document.documentElement.scrollHeight")
        self.browser.size(width, min(full, 2_400) if tall else height)
        self._kept(name)
        assert axe.findings(self.browser, self._code) == [], name
        self.browser.size(width, height)

    def on_a_phone(self, name: str) -> None:
        """The same on a narrow one, on which nothing may stick out."""
        self.browser.size(*PHONE, phone=True)
        assert self.browser.run("return document.documentElement.scrollWidth") <= PHONE[0], name
        self._kept(name)
        assert axe.findings(self.browser, self._code) == [], name
        self.browser.size(*WIDE)

    def _kept(self, name: str) -> None:
        self.browser.screenshot(self._shots / f"{name}.png")
        assert self.browser.complaints() == [], name


def test_from_sixty_streams_to_the_one_that_moved_and_to_the_window_that_says_why(tmp_path: Path) -> None:
    need("chromium", "chromedriver")
    code = axe.script()
    shots = Path(os.environ.get("SCREENSHOTS", tmp_path / "screenshots"))
    shots.mkdir(parents=True, exist_ok=True)
    history = fleet(1_000, {STREAM: lived(), **in_trouble()})
    with serving(ServerSettings(port=0), history) as url, chromium(tmp_path) as browser:
        looking = Looking(browser, shots, code)
        all_streams(looking, url)
        one_stream(looking)
        one_window(looking)
        a_regressor(looking, url)
        an_alarm_on_data(looking, url)


def all_streams(looking: Looking, url: str) -> None:
    """One screen; found by typing, sorted and filtered by clicking, and the address says so."""
    browser = looking.browser
    browser.size(*WIDE)
    browser.go(url)
    assert browser.run(TITLE) == "9 of 60 moved, 8 in alarm, 2 not watched"
    assert len(browser.run(LISTED)) == 60
    bottom = browser.run("return document.querySelector('.streams').getBoundingClientRect().bottom")
    assert bottom <= WIDE[1], "sixty streams fit on one screen"
    looking.at("overview")
    looking.on_a_phone("overview-phone")
    browser.scheme("dark")
    looking.at("overview-dark")
    browser.scheme("light")
    browser.run("const field = document.getElementById('search'); field.focus();")
    for letter in "fraud":
        browser.press(letter)
    until(lambda: len(browser.run(LISTED)) == 5, 60, "the streams that are sought")
    assert browser.run(ADDRESS) == "/?search=fraud"
    assert browser.run("return document.activeElement.id") == "search"


def one_stream(looking: Looking) -> None:
    """The stream's page; a range that is drawn with the pointer, and then stands in the address."""
    browser = looking.browser
    line = f".lines a[title='{STREAM}']"
    once_more(
        lambda: browser.drag(*[browser.place(line, 0.5)] * 2),
        lambda: browser.run(TITLE) == STREAM,
        "the page of the stream",
    )
    looking.at("stream", tall=True)
    looking.on_a_phone("stream-phone")
    once_more(
        lambda: browser.drag(browser.place(".strip", 0.6), browser.place(".strip", 0.8)),
        lambda: "from=" in browser.run(ADDRESS),
        "the range",
    )
    assert "of the last 13 windows" in browser.run("return document.querySelector('.wide').innerText")
    address = browser.run("return location.href")
    browser.go(address)
    assert "As of the last window in the range" in browser.run("return document.body.innerText")


def one_window(looking: Looking) -> None:
    """A window by a click on a chart, and by keys alone."""
    browser = looking.browser
    browser.go(browser.run("return location.origin + location.pathname"))
    once_more(
        lambda: browser.drag(*[browser.place(".strip", 0.97)] * 2),
        lambda: "/windows/" in browser.run(ADDRESS),
        "the page of the window",
    )
    assert "age_days" in browser.run("return document.querySelector('.cells').closest('figure').innerText")
    looking.at("window", tall=True)
    browser.go(browser.run("return location.href.split('/windows/')[0]"))

    def by_keys() -> None:
        browser.run("document.querySelector('.heat').focus()")
        browser.press(LEFT)
        browser.press(ENTER)

    once_more(by_keys, lambda: "/windows/" in browser.run(ADDRESS), "the page of the newest window")
    assert "This is the newest" in browser.run("return document.body.innerText")


def a_regressor(looking: Looking, url: str) -> None:
    """Its error, residuals and predictions over time; a window by the pointer, and in the dark and on a phone."""
    browser = looking.browser
    browser.go(f"{url}/streams/{PRICES}")
    assert {"Error of the predictions", "Label minus prediction", "Predictions"} <= set(browser.run(HEADINGS))
    looking.at("regressor", tall=True)
    looking.on_a_phone("regressor-phone")
    browser.scheme("dark")
    looking.at("regressor-dark", tall=True)
    browser.scheme("light")
    browser.move(*browser.place(".chart", 0.99, 0.1))
    assert "error 5." in browser.run("return document.getElementById('tip').innerText")
    once_more(
        lambda: browser.drag(*[browser.place(".strip", 0.97)] * 2),
        lambda: "/windows/" in browser.run(ADDRESS),
        "the page of its window",
    )
    assert "class mix" not in browser.run("return document.querySelector('main').innerText")
    looking.at("regressor-window", tall=True)


def an_alarm_on_data(looking: Looking, url: str) -> None:
    """Told first, on the page of all streams and on its own, though no verdict says anything."""
    browser = looking.browser
    browser.go(f"{url}/?search={FAULTY}")
    assert "more rejected records than there used to be" in browser.run("return document.body.innerText")
    looking.at("alarm-on-data-overview")
    browser.go(f"{url}/streams/{FAULTY}")
    assert "Look at the open alarms." in browser.run("return document.querySelector('.advice').innerText")
    looking.at("alarm-on-data", tall=True)
    looking.on_a_phone("alarm-on-data-phone")
    browser.scheme("dark")
    looking.at("alarm-on-data-dark", tall=True)
    browser.scheme("light")


def once_more(act: Callable[[], None], reached: Callable[[], bool], what: str) -> None:
    """Act, and again where nothing follows: a page that is brought up to date meanwhile takes no click."""
    for _ in range(5):
        act()
        with suppress(AssertionError):
            until(reached, 20, what)
            return
    raise AssertionError(f"{what}: it does not come")

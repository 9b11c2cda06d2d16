"""The API: what can be asked, what is answered to nonsense, and how a scoring service waits for a correction."""

import asyncio
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

import httpx
import jsonschema
import msgspec
import pytest

from monitor.assessment.verdict import Verdict
from monitor.settings.config import ServerSettings
from monitor.state import Budget
from monitor.web.server import application, serving
from tests.web.made_up import Story

PAGES = {"/", "/assets/{name}", "/streams/{stream}", "/streams/{stream}/windows/{window}"}
"""For people: the description is of what programs ask."""


@pytest.fixture
def story() -> Story:
    story = Story()
    story.busy()
    story.window()
    story.window(Verdict.PRIOR_SHIFT, priors=(0.2, 0.3, 0.5), apply=True)
    story.window(segment="country=BE")
    return story


@contextmanager
def client_of(story: Story) -> Iterator[httpx.Client]:
    with serving(ServerSettings(port=0), story.history) as url, httpx.Client(base_url=url, timeout=40) as client:
        yield client


@pytest.fixture
def client(story: Story) -> Iterator[httpx.Client]:
    with client_of(story) as client:
        yield client


def test_streams_are_listed_with_their_last_verdict(client: httpx.Client) -> None:
    (stream,) = client.get("/api/streams").json()
    assert (stream["stream"], stream["latest"]["verdict"], stream["stale"]) == ("made-up", "prior-shift", False)


def test_open_alarms_are_told_with_their_segment_size_and_budget() -> None:
    story = Story(budget=Budget.of(1e-3))
    for _ in range(8):
        story.window(priors=(0.44, 0.33, 0.23))
    with client_of(story) as client:
        (stream,) = client.get("/api/streams").json()
    alarms = {alarm["series"]: alarm for alarm in stream["open_alarms"]}
    assert alarms["share of class_0 falls"]["segment"] == ""
    assert alarms["share of class_0 falls"]["size"] > 1
    assert alarms["share of class_0 falls"]["once_in"] >= 1_000


def test_a_stream_tells_its_reference_and_segments(client: httpx.Client) -> None:
    stream = client.get("/api/streams/made-up").json()
    assert stream["segments"] == ["country=BE"]
    assert stream["reference"]["priors"]["class_0"] == pytest.approx(4 / 7)


def test_windows_come_newest_first_and_as_many_as_wanted(client: httpx.Client) -> None:
    windows = client.get("/api/streams/made-up/windows").json()
    assert [one["verdict"] for one in windows] == ["prior-shift", "stable"]
    assert windows[0]["prevalence"]["class_2"]["estimate"] == 0.5
    assert len(client.get("/api/streams/made-up/windows?limit=1").json()) == 1
    (segment,) = client.get("/api/streams/made-up/windows", params={"segment": "country=BE"}).json()
    assert segment["segment"] == "country=BE"


def test_a_segment_has_outcomes_of_its_own_beside_those_of_its_stream() -> None:
    story = Story()
    story.window()
    story.window(segment="country=BE")
    story.outcome()
    story.outcome(trusted=False, segment="country=BE")
    with client_of(story) as client:
        (whole,) = client.get("/api/streams/made-up/outcomes").json()
        (segment,) = client.get("/api/streams/made-up/outcomes", params={"segment": "country=BE"}).json()
        page = client.get("/streams/made-up", params={"segment": "country=BE"}).text
        assert client.get("/api/streams/made-up/outcomes", params={"segment": "country=NL"}).status_code == 404
    assert (whole["segment"], whole["trusted"]) == ("", True)
    assert (segment["segment"], segment["trusted"]) == ("country=BE", False)
    assert "truth, from labels" in page


def test_the_result_is_what_went_to_the_sink_to_the_byte(client: httpx.Client, story: Story) -> None:
    before = story.window().to_json().removesuffix(b"null}")
    published = client.get("/api/streams/made-up/result").content
    assert published.startswith(before)
    smoothed = msgspec.json.decode(published)["smoothed"]
    assert published == before + msgspec.json.encode(smoothed, order="deterministic") + b"}"
    assert set(smoothed) == {"class_0", "class_1", "class_2"}


def test_a_recalibration_that_is_known_is_not_sent_again(client: httpx.Client, story: Story) -> None:
    first = client.get("/api/streams/made-up/recalibration")
    assert first.json()["apply"] is True
    again = client.get("/api/streams/made-up/recalibration", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    weak = client.get(
        "/api/streams/made-up/recalibration", headers={"If-None-Match": f'"x", W/{first.headers["etag"]}'}
    )
    assert weak.status_code == 304
    story.window()
    changed = client.get("/api/streams/made-up/recalibration", headers={"If-None-Match": first.headers["etag"]})
    assert (changed.status_code, changed.json()["apply"]) == (200, False)


def test_whoever_waits_hears_of_the_next_recalibration_at_once(client: httpx.Client, story: Story) -> None:
    tag = client.get("/api/streams/made-up/recalibration").headers["etag"]
    timer = Timer(0.6, story.window)
    timer.start()
    started = time.monotonic()
    answer = client.get("/api/streams/made-up/recalibration?wait=30", headers={"If-None-Match": tag})
    waited = time.monotonic() - started
    timer.join()
    assert answer.status_code == 200
    assert 0.5 < waited < 3


def test_waiting_ends_without_news(client: httpx.Client) -> None:
    tag = client.get("/api/streams/made-up/recalibration").headers["etag"]
    answer = client.get("/api/streams/made-up/recalibration?wait=1", headers={"If-None-Match": tag})
    assert answer.status_code == 304


def test_many_may_wait_at_once(story: Story) -> None:
    async def ask() -> list[int]:
        transport = httpx.ASGITransport(application(story.history))
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            tag = (await http.get("/api/streams/made-up/recalibration")).headers["etag"]
            asked = [
                http.get("/api/streams/made-up/recalibration?wait=20", headers={"If-None-Match": tag})
                for _ in range(50)
            ]
            asyncio.get_running_loop().call_later(0.3, story.window)
            return [one.status_code for one in await asyncio.gather(*asked)]

    assert asyncio.run(ask()) == [200] * 50


def test_a_stream_whose_name_has_slashes_is_reached_like_any_other() -> None:
    story = Story(stream="team/fraud v3")
    story.window()
    with client_of(story) as client:
        (listed,) = client.get("/api/streams").json()
        assert listed["stream"] == "team/fraud v3"
        links = re.findall(r'href="(/streams/[^"]+)"', client.get("/").text)
        assert links
        assert all(link.startswith("/streams/team%2Ffraud%20v3") for link in links)
        for path in ("", "/windows", "/result", "/recalibration"):
            assert client.get(f"/api/streams/team%2Ffraud%20v3{path}").status_code == 200, path
        assert [client.get(link).status_code for link in links] == [200] * len(links)


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/api/streams/other", 404, "no stream 'other'"),
        ("/api/streams/made-up/windows?limit=-1", 400, "whole number"),
        ("/api/streams/made-up/windows?limit=1e9", 400, "whole number"),
        ("/api/streams/made-up/windows?limit=99999999999999", 400, "whole number"),
        ("/api/streams/made-up/recalibration?wait=x", 400, "whole number"),
        ("/api/streams/made-up/result?segment=no", 404, "no segment 'no'"),
        ("/api/nothing", 404, "Not Found"),
        ("/streams/other", 404, "no stream"),
        ("/assets/..%2f..%2fserver.py", 404, "Not Found"),
        ("/assets/none.css", 404, "no asset"),
    ],
)
def test_nonsense_is_refused_with_a_reason(client: httpx.Client, path: str, status: int, words: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_nothing_can_be_changed(client: httpx.Client) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        for path in ("/", "/metrics", "/api/streams", "/api/streams/made-up/recalibration"):
            assert client.request(method, path).status_code == 405


def test_before_the_first_window_there_is_nothing_to_apply() -> None:
    with client_of(Story()) as client:
        answer = client.get("/api/streams/made-up/recalibration")
        assert (answer.status_code, answer.json()["error"]) == (404, "no window has been assessed yet")
        assert client.get("/api/streams/made-up/windows").json() == []
        assert client.get("/api/streams").json()[0]["latest"] is None


def test_the_description_names_every_route_and_its_schemas_hold_what_is_sent(client: httpx.Client) -> None:
    description = client.get("/api/openapi.json").json()
    app = application(Story().history)
    paths = {route.path for route in app.routes if route.path not in PAGES}
    assert set(description["paths"]) | {"/api/openapi.json"} == paths
    for path, name in (("result", "WindowResult"), ("recalibration", "Recalibration")):
        body = client.get(f"/api/streams/made-up/{path}").json()
        schema = {"$ref": f"#/components/schemas/{name}", "components": description["components"]}
        jsonschema.Draft202012Validator(schema).validate(body)
    json.dumps(description)

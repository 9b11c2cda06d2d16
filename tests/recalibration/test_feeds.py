"""What a feed may bring, and what becomes of it: nothing but a whole message ever gets to scores."""

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import numpy as np
import pytest

from monitor.recalibration import RecalibrationClient
from monitor.recalibration.feeds import HttpFeed
from tests.recalibration.test_client import CLASSES, FakeFeed, client_of, message

GOOD = msgspec.json.encode(message()) + b"\n"
ROWS = [[0.2, 0.3, 0.5]]


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(GOOD), **fields}).encode() + b"\n"


NO_MESSAGES = {
    "no object": b"[1]\n",
    "deeply nested": b"[" * 100_000 + b"\n",
    "no text": b"\xff\xfe\n",
    "a number that is none": GOOD.replace(b"0.1,", b"NaN,", 1),
    "a huge number": changed(multipliers=[10**400, 1, 1]),
    "words for numbers": changed(multipliers=["1", "1", "1"]),
    "too few multipliers": changed(multipliers=[1.0]),
    "a negative multiplier": changed(multipliers=[-1.0, 1.0, 1.0]),
    "a class that the model never saw": changed(source_priors=[1.0, 0.0, 0.0]),
    "an input without its line": changed(
        inputs={"amount": {"kind": "linear", "alpha": 2.0, "beta": None, "window": [], "reference": []}}
    ),
    "knots without partners": changed(
        inputs={"amount": {"kind": "monotone", "alpha": 2.0, "beta": 0.0, "window": [1.0, 2.0], "reference": [1.0]}}
    ),
}


@pytest.mark.parametrize("line", NO_MESSAGES.values(), ids=NO_MESSAGES.keys())
def test_what_is_no_message_changes_no_score_and_costs_no_good_one(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "recalibrations.jsonl"
    path.write_bytes(line)
    client = RecalibrationClient(path, "s")
    assert "cannot be read" in client.refresh().trouble
    assert client.apply(ROWS) == ROWS
    assert (client.correct_input("amount", [3.0]), client.threshold("c")) == ([3.0], 0.5)
    with path.open("ab") as file:
        file.write(line + GOOD)
    status = client.refresh()
    assert (status.recalibration, status.trouble) == (message(), "")


def test_a_file_that_was_replaced_by_a_longer_one_is_read_from_its_beginning(tmp_path: Path) -> None:
    path, next_one = tmp_path / "recalibrations.jsonl", tmp_path / "next"
    path.write_bytes(GOOD)
    client = RecalibrationClient(path, "s")
    client.refresh()
    later = msgspec.json.encode(message(window="w2", target=(0.3, 0.3, 0.4)))
    next_one.write_bytes(later + b"\n" + b'{"schema": "of something else"}\n' * 100)
    os.replace(next_one, path)
    status = client.refresh()
    assert status.recalibration is not None
    assert (status.recalibration.validity.window, status.trouble) == ("w2", "")


def test_a_correction_by_a_new_reference_is_taken_for_a_window_that_is_known() -> None:
    old, new = message(), message(target=(0.3, 0.3, 0.4))
    new = replace(new, validity=replace(new.validity, reference="another"))
    assert client_of(old, new).refresh().recalibration == new


class Broken(Exception):  # noqa: N818
    """Nothing that a feed is allowed to raise."""


def test_looking_goes_on_whatever_a_feed_does() -> None:
    with RecalibrationClient(FakeFeed([Broken("a bug"), message()]), "s", every=0.01) as client:
        until = time.monotonic() + 5
        while not client.status().correcting and time.monotonic() < until:
            time.sleep(0.01)
        assert client.status().correcting


def test_a_service_starts_though_its_feed_hangs_and_lets_go_of_it_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("monitor.recalibration.client.START_SECONDS", 0.05)

    class Hanging:
        def __init__(self) -> None:
            self.released, self.closed = threading.Event(), threading.Event()

        def __call__(self) -> None:
            self.released.wait(10)

        def close(self) -> None:
            self.closed.set()

    feed = Hanging()
    client = RecalibrationClient(feed, "s", every=0.01)
    started = time.monotonic()
    with client:
        assert time.monotonic() - started < 2
        assert client.apply(ROWS) == ROWS
        feed.released.set()
    assert feed.closed.wait(5)


@contextmanager
def serving(status: int, *pieces: bytes, pause: float = 0.0, length: int | None = None) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            try:
                for piece in pieces:
                    self.wfile.write(piece)
                    time.sleep(pause)
            except OSError:
                pass  # the client has had enough

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def told(address: str) -> str:
    client = RecalibrationClient(address, "s")
    trouble = client.refresh().trouble
    assert client.apply(ROWS) == ROWS
    return trouble


def test_a_monitor_that_answers_with_something_else_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HttpFeed, "TIMEOUT", 0.3)
    with serving(500, b"oops") as address:
        assert "500" in told(address)
    with serving(200, b"<html>") as address:
        assert "cannot be read" in told(address)
    with serving(200, GOOD[:50], length=len(GOOD)) as address:
        assert "cannot be read" in told(address)
    with serving(200, *[b" "] * 50, pause=0.05) as address:
        assert "not over after" in told(address)
    monkeypatch.setattr("monitor.recalibration.feeds.MOST_BYTES", 100)
    with serving(200, b" " * 1_000) as address:
        assert "more than 100 bytes" in told(address)


@pytest.mark.parametrize("apply", [True, False])
def test_scores_of_another_shape_are_refused_before_the_mix_moves(apply: bool) -> None:
    client = client_of(replace(message(), apply=apply))
    for wrong in (0.3, [0.2, 0.8], [[0.2, 0.8]], np.array([[0.2], [0.8]]), np.ones((2, 4))):
        with pytest.raises(ValueError, match="want 3 columns"):
            client.apply(wrong)
    with pytest.raises(ValueError, match="want one of"):
        client.threshold("d")
    with pytest.raises(ValueError, match="want one for each"):
        client.adjust_intercepts(0.0)
    assert client.apply([]) == []
    assert client.apply(np.empty((0, 3))).shape == (0, 3)
    np.testing.assert_allclose(client.apply(ROWS[0]), np.array(client.apply(np.array(ROWS)))[0])


def test_a_models_classes_may_be_numbers() -> None:
    numbered = replace(message(), classes=("0", "1", "2"))
    client = client_of(numbered, classes=np.array([2, 1, 0]))
    assert client.status().correcting
    np.testing.assert_allclose(client.apply([ROWS[0][::-1]])[0][::-1], client_of(message()).apply(ROWS)[0])
    assert client.threshold(np.int64(2)) == client_of(message()).threshold(CLASSES[2])  # type: ignore[arg-type]

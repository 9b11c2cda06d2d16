"""A headless Chromium, driven over WebDriver's plain HTTP."""

from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.deploy.parts import running, until
from tests.processes import free_port


class Browser:
    """One window."""

    def __init__(self, http: httpx.Client, session: str) -> None:
        self._http = http
        self._session = f"/session/{session}"

    def _post(self, path: str, **body: Any) -> Any:
        answer = self._http.post(self._session + path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["value"]

    def go(self, url: str) -> None:
        self._post("/url", url=url)

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that a script returns."""
        return self._post("/execute/sync", script=script, args=list(arguments))

    def wait_for(self, promise: str) -> Any:
        """What a promise comes to."""
        script = f"const done = arguments[0]; ({promise}).then(done, (error) => done(String(error)))"
        return self._post("/execute/async", script=script, args=[])

    def size(self, width: int, height: int, *, phone: bool = False) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 2 if phone else 1, "mobile": phone}
        self._devtools("Emulation.setDeviceMetricsOverride", **metrics)

    def scheme(self, name: str) -> None:
        self._devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def move(self, x: int, y: int) -> None:
        """The pointer to a place of the view."""
        moves = [{"type": "pointerMove", "x": x, "y": y, "duration": 0}]
        self._post("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": moves}])

    def drag(self, start: tuple[int, int], end: tuple[int, int]) -> None:
        """The pointer, pressed at one place and let go at another; at the same one it is a click."""
        moves = [
            {"type": "pointerMove", "x": start[0], "y": start[1], "duration": 0},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": end[0], "y": end[1], "duration": 20},
            {"type": "pointerUp", "button": 0},
        ]
        self._post("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": moves}])

    def place(self, selector: str, x: float, y: float = 0.5) -> tuple[int, int]:
        """Where on the view a part of an element is, from its upper left corner as 0, 0 to 1, 1."""
        script = """const box = document.querySelector(arguments[0]).getBoundingClientRect();
        return [box.x + arguments[1] * box.width, box.y + arguments[2] * box.height];"""
        left, top = self.run(script, selector, x, y)
        return int(left), int(top)

    def press(self, key: str) -> None:
        keys = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._post("/actions", actions=[{"type": "key", "id": "keys", "actions": keys}])

    def complaints(self) -> list[str]:
        """What stands in the console beyond information."""
        return [entry["message"] for entry in self._post("/se/log", type="browser") if entry["level"] != "INFO"]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(b64decode(self._http.get(self._session + "/screenshot").json()["value"]))

    def _devtools(self, command: str, **parameters: Any) -> Any:
        return self._post("/goog/cdp/execute", cmd=command, params=parameters)


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """A browser while the block runs."""
    port = free_port()
    with (
        running(["chromedriver", f"--port={port}"], folder / "chromedriver.log"),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as http,
    ):
        until(lambda: http.get("/status").json()["value"]["ready"], 90, "chromedriver")
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        options = {
            "browserName": "chrome",
            "goog:chromeOptions": {"args": [*flags, f"--user-data-dir={folder}/profile"]},
            "goog:loggingPrefs": {"browser": "ALL"},
        }
        session = http.post("/session", json={"capabilities": {"alwaysMatch": options}}).json()["value"]
        assert "sessionId" in session, session
        try:
            yield Browser(http, session["sessionId"])
        finally:
            http.delete(f"/session/{session['sessionId']}")

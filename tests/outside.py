"""What a running process shows to those who look from outside, but for its clock and its counters since it began.

Runs that were killed, or whose streams moved between processes, have to show what an uninterrupted one does.
"""

import re
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from difflib import unified_diff
from urllib.parse import quote

from monitor.observers.metric_catalogue import CATALOGUE

Shown = Mapping[str, str]
"""By path: what an answer holds."""

CLOCK = re.compile(r'of \d\d:\d\d:\d\d UTC|(?s:<dl class="facts">.*?</dl>)|<p class="muted">Rejected: [^<]*</p>\n')
"""When a page was rendered, and how the process stands."""

OF_THE_PROCESS = re.compile(
    r"shiftwatch_(process_\w+|\w+_created|(start|last_\w+_assessed|last_turn|last_commit|watching_since)_timestamp_seconds"
    r"|watermark_delay_seconds)"
)
"""Metrics that say when this process did what."""


def shown(address: str, streams: Sequence[str], segments: Iterable[str] = ()) -> Shown:
    """The page, the metrics and all that the API says."""
    paths = ["/", "/metrics", "/api/streams"]
    for stream in streams:
        of = f"/api/streams/{quote(stream)}"
        paths += [
            f"/streams/{quote(stream)}",
            of,
            f"{of}/windows?limit=1000",
            f"{of}/result",
            f"{of}/recalibration",
            f"{of}/outcomes?limit=1000",
        ]
        paths += [f"{of}/windows?segment={quote(segment)}" for segment in segments]
    return {path: lasting(path, answer(address + path)) for path in paths}


def only(whole: Shown, streams: Sequence[str]) -> Shown:
    """What is shown of some of the streams alone."""
    rows = [row for row in whole["/metrics"].splitlines() if any(f'stream="{stream}"' in row for stream in streams)]
    own = tuple(f"/api/streams/{quote(stream)}/" for stream in streams)
    answers = {path: text for path, text in whole.items() if f"{path}/".startswith(own)}
    return {**answers, "/metrics": "\n".join(rows)}


def answer(address: str) -> str:
    """The body, as text."""
    with urllib.request.urlopen(address) as body:  # noqa: S310 - our own
        return str(body.read().decode())


def lasting(path: str, text: str) -> str:
    """What does not depend on when the process began."""
    return metrics(text) if path == "/metrics" else CLOCK.sub("", text)


def metrics(text: str) -> str:
    """Samples but counters and moments of this process."""
    counters = {name for spec in CATALOGUE if spec.kind in ("counter", "histogram") for name in spec.series}
    rows = [row for row in text.splitlines() if not row.startswith("#")]
    names = [row.partition(" ")[0].partition("{")[0] for row in rows]
    return "\n".join(
        row for row, name in zip(rows, names, strict=True) if name not in counters and not OF_THE_PROCESS.match(name)
    )


def assert_soon_the_same(look: Callable[[], Shown], want: Shown, seconds: float = 15.0) -> None:
    """Word for word, once a process that has just begun has heard from the cluster how far it has read."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with suppress(OSError):  # 404: it has not heard of a stream yet
            if look() == want:
                return
        time.sleep(0.2)
    assert_the_same(look(), want)


def assert_the_same(got: Shown, want: Shown) -> None:
    """Word for word."""
    assert got.keys() == want.keys()
    for path, text in want.items():
        apart = [*unified_diff(text.splitlines(), got[path].splitlines(), "wanted", "shown", n=0, lineterm="")]
        assert not apart, f"{path}: " + "\n".join(line[:500] for line in apart[:20])

"""`shiftwatch run` as it is soaked: sixty streams with segments and late labels, started again after each SIGKILL."""

import signal
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from tests.kafka.world import Member
from tests.processes import alive, children, free_port, wait_until
from tests.soak.media import Medium
from tests.soak.plan import LABELS_LATE, Plan

ORPHANS_END = 15.0
"""Seconds after a SIGKILL within which what the process had started has to end, too."""

HEAD = """
[server]
port = {port}
windows = {remembered}

[alarms]
false = "1 per 1d"

[log]
level = "warning"
"""
STREAM = """
[streams.{name}]
reference = "{name}.ref"
window = {{ size = "{window}s", lateness = "1s" }}
segments = ["country"]
labels = {{ wait = "{wait:.0f}s", store = "{service}.sqlite" }}
changes = "page-hinkley"
"""


@dataclass
class Soaked:
    """One service on one medium."""

    plan: Plan
    medium: Medium
    folder: Path
    name: str
    kills: int = 0
    orphans: list[int] = field(default_factory=list)
    """Processes that outlived the one that had started them."""
    started: float = 0.0
    before: int = 0
    """How much was published when this process was started."""
    port: int = field(default_factory=free_port)
    member: Member = field(init=False)

    def __post_init__(self) -> None:
        wait = (LABELS_LATE + 0.5) * self.plan.window
        streams = (
            STREAM.format(name=name, window=self.plan.window, wait=wait, service=self.name) for name in self.plan.names
        )
        text = (
            self.medium.tables(self.name)
            + HEAD.format(port=self.port, remembered=self.plan.remembered)
            + "".join(streams)
        )
        (self.folder / f"{self.name}.toml").write_text(text, encoding="utf-8")
        self.start()

    def start(self) -> None:
        self.before = len(self.medium.look(self.name).digests)
        self.started = time.monotonic()
        self.member = Member(self.folder / f"{self.name}.toml")

    def kill(self) -> None:
        """SIGKILL, and the same once more."""
        self.member.check_alive()
        beside = children(self.member.process)
        self.member.kill()
        self.kills += 1
        deadline = time.monotonic() + ORPHANS_END
        while left := [pid for pid in beside if alive(pid)]:
            if time.monotonic() > deadline:
                self.orphans += left
                break
            time.sleep(0.05)
        self.start()

    def renewed(self, version: str) -> None:
        """SIGHUP, and all streams are compared with another reference."""
        self.member.process.send_signal(signal.SIGHUP)
        streams = [f"/api/streams/{name}" for name in self.plan.names]
        wait_until(lambda: all(version in self.answer(path) for path in streams), f"{self.name}: {version}", 240)

    @property
    def published(self) -> bool:
        """Whether this process has published anything."""
        return len(self.medium.look(self.name).digests) > self.before

    @property
    def ready(self) -> bool:
        return self.answers("/readyz")

    def answers(self, path: str) -> bool:
        """Whether a probe is content."""
        return bool(self.answer(path))

    def answer(self, path: str) -> str:
        """The body; empty where there is none."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            return ""

    def wait_until_ready(self, seconds: float = 240) -> None:
        wait_until(lambda: self.ready, f"{self.medium.name}: {self.name} is ready", seconds)

    def end(self) -> None:
        """Stopped anyhow."""
        self.member.kill()

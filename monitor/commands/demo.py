"""`shiftwatch demo`: a made-up stream in which known things happen, and what the monitor says about them.

Everything is written into one folder, as a user would have it: events, reference, configuration, results. The run
is the same as that of `shiftwatch run`; afterwards what was injected stands beside what was said.
"""

import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from connectors.synthetic import Injected, SyntheticOptions, SyntheticSource, write
from connectors.worlds import Period, World, tour
from monitor.assessment import Assessment
from monitor.commands.run import watch
from monitor.errors import ConfigurationError
from monitor.kinds import Assessed
from monitor.reference import Reference
from monitor.service import Happening, Observer, WindowAssessed
from monitor.settings import load
from monitor.tolerances import REFERENCE_WINDOWS

WINDOW_EVENTS = 3_000
HOLD_OUT_EVENTS = REFERENCE_WINDOWS * WINDOW_EVENTS
SECONDS_TO_LOOK = 1.0

CONFIGURED = "shiftwatch.toml"
"""The configuration's file in a demo's folder."""

CONFIGURATION = """\
# Written by `shiftwatch demo`. Try: shiftwatch check shiftwatch.toml

[source]
url = "jsonl:events.jsonl"

[sink]
url = "jsonl:results.jsonl"
dead_letters = "dead-letters.jsonl"

[pace]
workers = 0    # a dozen windows are assessed before a process beside the loop would have started

[streams.{stream}]
reference = "{stream}.ref"
window = {{ size = "3m", lateness = "5s" }}
"""


@dataclass(frozen=True, slots=True)
class JudgedWindow:
    """One window: what was injected into it, and what was said."""

    injected: Injected
    assessment: Assessed

    @property
    def right(self) -> bool:
        """Whether the verdict is the one that a perfect monitor would give."""
        return str(self.assessment.verdict) == self.injected.period.verdict

    @property
    def told(self) -> str:
        """The verdict in colour, with the right one if it is another."""
        verdict = self.assessment.verdict
        return f"[green]{verdict}[/]" if self.right else f"[red]{verdict}[/] (not {self.injected.period.verdict})"


def demo(folder: Path, *, seed: int, fast: bool) -> int:
    """Make up the stream, watch it, and compare."""
    console = Console(stderr=True)
    options = SyntheticOptions(world=World(seed=seed), periods=tour(WINDOW_EVENTS))
    _prepare(folder, options, console)
    _summarise(watched(folder, options, fast=fast), options.world)
    farewell(folder)
    return 0


def watched(
    folder: Path, options: SyntheticOptions, *, fast: bool, observers: Sequence[Observer] = ()
) -> list[JudgedWindow]:
    """Run the configuration in the folder; its windows beside what was injected into them."""
    said: list[Assessed] = []

    def listen(happening: Happening) -> None:
        if isinstance(happening, WindowAssessed):
            said.append(happening.assessment)
            if not fast and sys.stderr.isatty():
                time.sleep(SECONDS_TO_LOOK)

    watch(load(folder / CONFIGURED), folder, [listen, *observers])
    return compare(SyntheticSource(options).injected(), said)


def compare(injected: Sequence[Injected], said: Sequence[Assessed]) -> list[JudgedWindow]:
    """Each window with the period that its middle lies in."""
    middles = [(assessment.key.start + assessment.key.end) // 2 for assessment in said]
    return [
        JudgedWindow(next(period for period in injected if period.start <= middle < period.end), assessment)
        for middle, assessment in zip(middles, said, strict=True)
    ]


def cleared(folder: Path, configuration: str) -> None:
    """A folder with nothing but this configuration in it; what an earlier demo has left there goes."""
    marker = folder / CONFIGURED
    if folder.exists() and any(folder.iterdir()):
        if not marker.exists() or not marker.read_text(encoding="utf-8").startswith(CONFIGURATION[:20]):
            raise ConfigurationError([f"{folder} is not empty and was not written by a demo: choose another --out"])
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    marker.write_text(configuration, encoding="utf-8")


def _prepare(folder: Path, options: SyntheticOptions, console: Console) -> None:
    world = options.world
    cleared(folder, CONFIGURATION.format(stream=world.stream))
    console.print(f"drawing {HOLD_OUT_EVENTS:,} labelled events and building the reference ...", highlight=False)
    holdout = world.holdout(HOLD_OUT_EVENTS)
    Reference.fit(
        holdout.posteriors,
        holdout.labels,
        holdout.features,
        classes=world.classes,
        feature_names=world.features,
        stream=world.stream,
    ).save(folder / f"{world.stream}.ref")
    events = write(folder / "events.jsonl", options)
    console.print(f"wrote {events:,} events to {folder}, watching them ...", highlight=False)


def _summarise(judged: Sequence[JudgedWindow], world: World) -> None:
    console = Console()
    table = Table(title="What was injected, and what was said", title_justify="left", box=None, padding=(0, 1, 0, 0))
    for heading in ("injected", "said", f"{world.classes[-1]} %", "estimate"):
        table.add_column(heading, no_wrap=True)
    for window in judged:
        period, assessment = window.injected.period, window.assessment
        assert isinstance(period, Period)  # noqa: S101 - a classifier's world has no others
        assert isinstance(assessment, Assessment)  # noqa: S101 - nor has its stream
        prevalence = assessment.prevalence
        table.add_row(
            period.name,
            window.told,
            f"{(period.priors or world.priors)[-1] * 100:.1f}",
            f"{prevalence.priors[-1] * 100:.1f} ({prevalence.lower[-1] * 100:.1f}-{prevalence.upper[-1] * 100:.1f})",
        )
    console.print(table)
    count_right(judged, console)


def count_right(judged: Sequence[JudgedWindow], console: Console) -> None:
    """How many verdicts are right."""
    right = sum(window.right for window in judged)
    console.print(f"{right} of {len(judged)} verdicts are what a perfect monitor would say.", highlight=False)


def farewell(folder: Path) -> None:
    """Where everything is, and how to have it again."""
    console = Console()
    console.print(f"Results: {folder / 'results.jsonl'}. The same again, byte for byte:", highlight=False)
    console.print(f"  shiftwatch replay {folder / CONFIGURED} -o replayed.jsonl", highlight=False)

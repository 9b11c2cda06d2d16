"""`shiftwatch demo --regression`: a regressor's made-up stream in which known things happen, and what is said of them.

One event in twenty carries its label, towards the end one in a hundred: then the labels of several windows count.
"""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from connectors.regression_worlds import RegressionWorld, regression_tour
from connectors.synthetic import SyntheticOptions, write
from monitor.assessment import RegressionAssessment
from monitor.commands.demo import WINDOW_EVENTS, JudgedWindow, cleared, count_right, farewell, watched
from monitor.reference import RegressionReference

HOLD_OUT_EVENTS = 10_000

CONFIGURATION = """\
# Written by `shiftwatch demo --regression`. Try: shiftwatch check shiftwatch.toml

[source]
url = "jsonl:events.jsonl"

[sink]
url = "jsonl:results.jsonl"
recalibrations = "recalibrations.jsonl"
dead_letters = "dead-letters.jsonl"

[streams.{stream}]
reference = "{stream}.ref"
window = {{ size = "3m", lateness = "5s" }}
evidence = "9m"              # labels of earlier windows count where one window has too few
"""


def regression_demo(folder: Path, *, seed: int, fast: bool) -> int:
    """Make up the stream, watch it, and compare."""
    world = RegressionWorld(seed=seed)
    options = SyntheticOptions(regressor=world, regression=regression_tour(WINDOW_EVENTS))
    _prepare(folder, options, world)
    _summarise(watched(folder, options, fast=fast))
    farewell(folder)
    return 0


def _prepare(folder: Path, options: SyntheticOptions, world: RegressionWorld) -> None:
    console = Console(stderr=True)
    cleared(folder, CONFIGURATION.format(stream=world.stream))
    console.print(f"drawing {HOLD_OUT_EVENTS:,} labelled events and building the reference ...", highlight=False)
    drawn = world.holdout(HOLD_OUT_EVENTS)
    RegressionReference.fit(
        drawn.predictions, drawn.targets, drawn.features, feature_names=world.features, stream=world.stream
    ).save(folder / f"{world.stream}.ref")
    events = write(folder / "events.jsonl", options)
    console.print(f"wrote {events:,} events to {folder}, watching them ...", highlight=False)


def _summarise(judged: Sequence[JudgedWindow]) -> None:
    console = Console()
    table = Table(title="What was injected, and what was said", title_justify="left", box=None, padding=(0, 1, 0, 0))
    table.add_column("injected")
    for heading in ("said", "labels", "error", "corrected"):
        table.add_column(heading, no_wrap=True)
    table.add_column("in words")
    for window in judged:
        assessment = window.assessment
        assert isinstance(assessment, RegressionAssessment)  # noqa: S101 - the stream is a regressor's
        relation = assessment.relation
        after = relation.corrected_error if assessment.recalibration.apply else None
        table.add_row(
            window.injected.period.name,
            window.told,
            f"{relation.labels:,}",
            "" if relation.errors.error is None else f"{relation.errors.error:.2f}",
            "" if after is None else f"{after:.2f}",
            relation.test.description if relation.changed else "",
        )
    console.print(table)
    count_right(judged, console)

"""`shiftwatch demo --labels`: what events are called changes, and their labels come three windows late.

Inputs and scores stay as they were, so nothing can be seen without labels. Three in ten events get one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from connectors.synthetic import SyntheticOptions, write, write_labels
from connectors.worlds import Period, World
from monitor.commands.demo import WINDOW_EVENTS, JudgedWindow, cleared, farewell, watched
from monitor.labels import OutcomeResult
from monitor.reference import Reference
from monitor.service import Happening, OutcomeKnown

HOLD_OUT_EVENTS = 10_000
LABELLED = 0.3
DELAY = 3 * 180_000_000
"""Microseconds: three windows."""

CONFIGURATION = """\
# Written by `shiftwatch demo --labels`. Try: shiftwatch check shiftwatch.toml

[source]
url = "jsonl:events"          # events.jsonl, and labels.jsonl with labels that come nine minutes later

[sink]
url = "jsonl:results.jsonl"
recalibrations = "recalibrations.jsonl"
dead_letters = "dead-letters.jsonl"

[pace]
workers = 0

[streams.{stream}]
reference = "{stream}.ref"
window = {{ size = "3m", lateness = "5s" }}
labels = {{ wait = "10m" }}
"""


def story(events: int) -> tuple[Period, ...]:
    """Calm, and then half of what was a delivery is called a return."""
    return Period("calm", 5 * events), Period("renamed", 13 * events, relabelled={"delivery": ("returns", 0.5)})


def labels_demo(folder: Path, *, seed: int, fast: bool) -> int:
    """Make up the stream, watch it, and say how scores fared with and without the correction."""
    options = SyntheticOptions(world=World(seed=seed), periods=story(WINDOW_EVENTS))
    _prepare(folder, options)
    known: dict[str, OutcomeResult] = {}

    def listen(happening: Happening) -> None:
        if isinstance(happening, OutcomeKnown):
            known[happening.outcome.window] = happening.outcome

    judged = watched(folder, options, fast=fast, observers=[listen])
    _summarise(judged, known)
    farewell(folder)
    return 0


def _prepare(folder: Path, options: SyntheticOptions) -> None:
    console, world = Console(stderr=True), options.world
    cleared(folder, CONFIGURATION.format(stream=world.stream))
    console.print(f"drawing {HOLD_OUT_EVENTS:,} labelled events and building the reference ...", highlight=False)
    drawn = world.holdout(HOLD_OUT_EVENTS)
    Reference.fit(
        drawn.posteriors,
        drawn.labels,
        drawn.features,
        classes=world.classes,
        feature_names=world.features,
        stream=world.stream,
    ).save(folder / f"{world.stream}.ref")
    (folder / "events").mkdir()
    events = write(folder / "events" / "events.jsonl", options)
    labels = write_labels(folder / "events" / "labels.jsonl", options, LABELLED, DELAY)
    console.print(f"wrote {events:,} events and {labels:,} labels to {folder}, watching them ...", highlight=False)


def _summarise(judged: Sequence[JudgedWindow], known: Mapping[str, OutcomeResult]) -> None:
    console = Console()
    console.print("From `renamed` on half of what was a delivery is called a return. Inputs and scores do not move.")
    table = Table(title="What was said, and what labels showed three windows later", title_justify="left", box=None)
    for heading in ("injected", "said", "accuracy: estimated", "by labels", "Brier", "corrected"):
        table.add_column(heading, no_wrap=True)
    changed = []
    for window in judged:
        period, assessment = window.injected.period, window.assessment
        assert isinstance(period, Period)  # noqa: S101 - a classifier's world has no others
        outcome = known.get(assessment.key.id)
        if outcome is None or outcome.brier is None:
            continue  # its labels have not come by the end
        accuracy = outcome.performance["accuracy"]
        before = accuracy.estimated
        after = outcome.brier.after if outcome.applied else outcome.brier.before
        table.add_row(
            period.name,
            str(assessment.verdict),
            "withheld" if before is None else f"{before.estimate:.3f} ({before.lower:.3f}-{before.upper:.3f})",
            f"{accuracy.realised:.3f}",
            f"{outcome.brier.before:.3f}",
            f"{after:.3f}",
        )
        if period.relabelled:
            changed.append((outcome.brier.before, after))
    console.print(table)
    scored, corrected = (sum(scores) / max(len(changed), 1) for scores in zip(*changed or [(0.0, 0.0)], strict=True))
    console.print(
        f"Since then the Brier score is {scored:.3f} as scored, and {corrected:.3f} as corrected by earlier labels.",
        highlight=False,
    )

"""`shiftwatch check`: what a configuration would do, in words."""

import time
from math import log
from pathlib import Path

from rich.console import Console
from rich.table import Table

from monitor.commands.advice import advice
from monitor.commands.preview import first_of_file, first_of_source, preview
from monitor.commands.run import ENDING, configured
from monitor.commands.streams import decoder_of, opened
from monitor.errors import ConnectorError
from monitor.kinds import kind_of
from monitor.pages import some
from monitor.ports.options import duration_text
from monitor.reference import FiledReference
from monitor.service import EventReading
from monitor.settings import Config, StreamSettings
from monitor.shifts import windows_to_notice
from monitor.state import Budget


def check(path: Path, events: Path | None = None) -> int:
    """Print the plan; problems end it with all of them listed. `events` is a file with some records of the source."""
    config = configured(path)
    source, _, watched = opened(config, path.parent)
    console = Console(markup=False)  # brackets in paths and names are brackets
    console.print(f"{path}: fine. A run would", highlight=False)
    console.print(f"  read events from   {config.source['url']}", highlight=False)
    console.print(f"  write results to   {config.sink['url']}", highlight=False)
    letters = config.sink.get("dead_letters")
    console.print(f"  write rejects to   {letters or 'nowhere (set dead_letters in [sink])'}", highlight=False)
    table = Table(title="streams", title_justify="left")
    for heading in ("stream", "windows", "reference", "classes (prior) or relation", "features", "alarm"):
        table.add_column(heading)
    for name, stream in config.streams.items():
        reference = watched[name].reference
        features = some(feature.name for feature in reference.schema.features) or "none"
        facts = f"{reference.version[:12]}\n{reference.events:,} events"
        table.add_row(
            name,
            _windows(stream),
            facts,
            kind_of(reference).described(reference),
            features,
            _alarm(stream, config.budget(name), reference),
        )
    console.print(table)
    for name, stream in config.streams.items():
        for sentence in advice(name, stream, watched[name].reference, config.sink):
            console.print(f"  mind this  {name}: {sentence}", highlight=False, soft_wrap=True)
    try:
        first = first_of_file(events) if events is not None else first_of_source(source) if _at_hand(config) else None
    except ConnectorError as error:  # nothing is there yet
        console.print(f"  no events to show  {error}", highlight=False, soft_wrap=True)
        return 0
    if first is not None:
        schemas = {name: stream.reference.schema for name, stream in watched.items()}
        reading = EventReading(decoder_of(config, watched), config.join)
        for line in preview(reading, schemas, first, time.time_ns() // 1000):
            console.print(line, highlight=False, soft_wrap=True)
    return 0


def _at_hand(config: Config) -> bool:
    """Whether the source can be read and left as it is."""
    url = str(config.source["url"])
    return url.startswith(ENDING) and url != "jsonl:-"


def _windows(stream: StreamSettings) -> str:
    segments = f"\nalso by {', '.join(stream.segments)}" if stream.segments else ""
    labels = f"\nlabels of the last {duration_text(stream.evidence)}" if stream.evidence else ""
    awaited = f"\nlabels awaited for {duration_text(stream.labels.wait)}" if stream.labels else ""
    corrected = {"no": "", "window": "\nevents corrected", "live": "\nevents corrected live"}[stream.corrected]
    declared = "\nnothing but the class mix may change" if stream.may == "change-mix" else ""
    return stream.window.words + segments + labels + awaited + corrected + declared


def _alarm(stream: StreamSettings, budget: Budget | None, reference: FiledReference) -> str:
    """When an alarm is raised, and how often that happens without a shift."""
    alarm = stream.alarm
    says = [
        f"{alarm.windows} of {alarm.of} windows; without a shift {alarm.level:.2g} of the windows, "
        f"an alarm once in {1 / max(alarm.by_chance, 1e-12):,.0f}"
    ]
    says += [f"{name} may {rule.may}" for name, rule in alarm.classes.items() if rule.may is not None]
    if budget is not None:
        says.append(_noticed(budget.of_events("", awaiting=stream.labels is not None), reference))
    return "\n".join(says)


def _noticed(rate: float, reference: FiledReference) -> str:
    """What follows from a budget of false alarms: for a class of the whole stream, the reference being as it is."""
    series = 2 * max(1, len(reference.schema.classes) - (len(reference.schema.classes) == 2))
    groups = 2 + bool(reference.schema.features)
    threshold = groups * series / rate
    soon = ", ".join(f"{size:g} after {windows_to_notice(size, log(threshold)):.0f}" for size in (0.5, 1, 2, 3))
    return (
        f"evidence over windows: a false alarm at most once in {1 / rate:,.0f} windows; a share that moves by so many "
        f"standard errors is noticed {soon} windows"
    )

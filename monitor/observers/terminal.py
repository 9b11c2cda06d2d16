"""The live table that `run` and `demo` show in a terminal: for each stream its last windows, in words and colours."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from monitor.service import (
    BatchTaken,
    Happening,
    Listening,
    Observer,
    RecordsRejected,
    Turned,
    WindowAssessed,
    WindowPublished,
)

WINDOWS_SHOWN = 15


class LiveTable:
    """An observer that keeps what the table shows."""

    def __init__(self) -> None:
        self._rows: deque[tuple[Text, ...]] = deque(maxlen=WINDOWS_SHOWN)
        self._events = self._rejected = self._late = self._waiting = 0
        self._address = ""

    def __call__(self, happening: Happening) -> None:
        """Show a notice of the service in the table."""
        if isinstance(happening, WindowAssessed | WindowPublished):
            self._rows.append(_row(happening))
        if isinstance(happening, BatchTaken | RecordsRejected):
            self._rejected += sum(happening.rejected.values())
        if isinstance(happening, BatchTaken):
            self._events += sum(happening.events.values())
            self._late += sum(happening.late.values()) + sum(happening.late_after_idle.values())
        elif isinstance(happening, WindowPublished):
            self._events += happening.events
            self._late += happening.late
        elif isinstance(happening, Turned):
            self._waiting = happening.waiting_events
        elif isinstance(happening, Listening):
            self._address = f"\nstatus page: {happening.address}"

    def __rich__(self) -> Table:
        """The table as it is now."""
        table = Table(
            title="Shiftwatch",
            caption=f"{self._events:,} events, {self._waiting:,} in open windows, {self._late:,} late, "
            f"{self._rejected:,} rejected{self._address}",
            expand=True,
        )
        for heading, justify in (("window ends", "left"), ("stream", "left"), ("events", "right"), ("verdict", "left")):
            table.add_column(heading, justify=justify, no_wrap=True)  # type: ignore[arg-type]
        table.add_column("why", ratio=1)
        for row in self._rows:
            table.add_row(*row)
        return table


@contextmanager
def live_table() -> Iterator[Observer]:
    """Show the table on standard error while the block runs; results may go to standard output."""
    table = LiveTable()
    with Live(get_renderable=table.__rich__, console=Console(stderr=True), refresh_per_second=4):
        yield table


def _row(window: WindowAssessed | WindowPublished) -> tuple[Text, ...]:
    reading, key = window.reading, window.reading.key
    ends = datetime.fromtimestamp(key.end / 1e6, UTC)
    segment = f" {key.segment}" if key.segment else ""
    return (
        Text(f"{ends:%Y-%m-%d %H:%M:%S}Z"),
        Text(key.stream + segment),
        Text(f"{reading.events:,}"),
        Text(reading.verdict, style=reading.verdict.facts.dark_colour),
        Text("; ".join(reading.reasons)),
    )

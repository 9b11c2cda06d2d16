"""Who is told what the service does: metrics, log, terminal, history. The first and the third bring a library along."""

from monitor.observers.history import History
from monitor.observers.logs import Totals, log, logging_to_stderr
from monitor.observers.snapshot import Caps, Flow, Snapshot, StreamFacts, Track, facts

__all__ = [
    "Caps",
    "Flow",
    "History",
    "Snapshot",
    "StreamFacts",
    "Totals",
    "Track",
    "facts",
    "log",
    "logging_to_stderr",
]

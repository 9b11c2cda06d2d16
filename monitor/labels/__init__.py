"""Late labels: windows wait on disk until what their events really were has come, and then say how they had fared.

values            what waits, and what comes
store             both on disk, in SQLite, keyed by where they came from
rows              a window's columns as bytes
published_window  what is kept of a window and its segments
numbering         class numbers of one reference in those of another
joining           which label holds for which row
outcomes          how a window and its segments fared
outcome_message   what is published of that
trust             whether the last outcomes bear the estimates out
learning          what settled windows teach
concept           whether labels still follow the scores as on the hold-out

The store is imported by its own name: who only wants the values does without a database.
"""

from monitor.labels.outcome_message import LabelCounts, OutcomeResult, Realised, trusted
from monitor.labels.outcomes import Outcome, Settlement
from monitor.labels.values import Arrived, Awaited, LabelFlow, Waiting

__all__ = [
    "Arrived",
    "Awaited",
    "LabelCounts",
    "LabelFlow",
    "Outcome",
    "OutcomeResult",
    "Realised",
    "Settlement",
    "Waiting",
    "trusted",
]

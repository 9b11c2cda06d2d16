"""Late labels: windows wait on disk until what their events really were has come, and then say how they had fared.

values            what waits, and what comes
store             both on disk, in SQLite, keyed by where they came from
rows              a window's columns as bytes
published_window  what is kept of a window and its segments
numbering         class numbers of one reference in those of another
joining           which label holds for which row
outcome_rules     what each kind of stream has to say of its windows' labels
outcomes          how a window and its segments fared
outcome_message   what is published of that
regression_outcomes  how the predictions of a regressor fared
trust             whether the last outcomes bear the estimates out
learning          what settled windows teach
concept           whether labels still follow the scores as on the hold-out

The store is imported by its own name: who only wants the values does without a database.
"""

from monitor.labels.outcome_message import LabelCounts, OutcomeResult, Realised, trusted
from monitor.labels.outcome_rules import Outcome, OutcomeRules, Settlement
from monitor.labels.outcomes import CLASS_OUTCOMES
from monitor.labels.regression_outcome_message import RegressionOutcome
from monitor.labels.regression_outcomes import REGRESSION_OUTCOMES
from monitor.labels.values import Arrived, Awaited, LabelFlow, Waiting

__all__ = [
    "CLASS_OUTCOMES",
    "REGRESSION_OUTCOMES",
    "Arrived",
    "Awaited",
    "LabelCounts",
    "LabelFlow",
    "Outcome",
    "OutcomeResult",
    "OutcomeRules",
    "Realised",
    "RegressionOutcome",
    "Settlement",
    "Waiting",
    "trusted",
]

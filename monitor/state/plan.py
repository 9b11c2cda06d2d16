"""What a stream's settings say about what is to be known over its windows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from monitor.limits import WINDOWS_REMEMBERED
from monitor.performance import Limit
from monitor.state.budget import Budget


@dataclass(frozen=True, slots=True)
class StatePlan:
    """What the settings of one stream say about its states."""

    windows: int = 2
    """So many of the last `of` windows have to move for an alarm."""
    of: int = 3
    changes: str | None = None
    """What looks for changes of level, if anything does."""
    live: bool = False
    """Whether events are corrected as they come."""
    awaiting: bool = False
    """Whether labels come later, and say how the estimates fared."""
    budget: Budget | None = None
    """How many false alarms the evidence gathered over windows may bring; None: it is not gathered."""
    target: Literal["window", "smoothed"] = "window"
    """Which class mix the feed corrects towards."""
    limits: Mapping[str, Limit] = field(default_factory=dict)
    """By measure: how good the model has to be."""
    remembered: int = WINDOWS_REMEMBERED
    """Windows that the page and the API look back on."""

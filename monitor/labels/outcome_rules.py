"""What every kind of stream has to say of its windows' labels: what waits of a window, and what follows once they came.

When that is due, in which order and that it is published once is the same for all (`service.label_ledger`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from monitor.arrays import Labels, Matrix, Vector
    from monitor.labels.learning import Settled
    from monitor.labels.outcome_message import OutcomeResult
    from monitor.labels.values import Found, Stateless, Waiting
    from monitor.recalibration import Recalibration
    from monitor.windows import Window, WindowSummary


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A window whose labels have come: what is published of it, and of a classifier the events whose truth is known."""

    result: OutcomeResult
    posteriors: Matrix = field(default_factory=lambda: np.empty((0, 0)))
    """As they were scored."""
    labels: Labels = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Class numbers."""
    experts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """What each expert on the class mix had said."""


@dataclass(frozen=True, slots=True, eq=False)
class Settlement:
    """A window whose labels are taken to have come: what they can teach, which may be before its outcome is due."""

    stream: str
    start: int
    end: int
    reference: str
    """The version that it was compared with."""
    learned_from: Settled

    @property
    def place(self) -> tuple[int, str]:
        """Windows of a stream settle in the order of this."""
        return self.end, self.learned_from.window


class PublishedPart(Protocol):
    """A window, or a segment of one, as it was published."""

    @property
    def assessment(self) -> Any:
        """Of the stream's kind."""
        ...

    @property
    def window(self) -> WindowSummary: ...
    @property
    def recalibration(self) -> Recalibration:
        """As the feed has it."""
        ...

    @property
    def experts(self) -> Mapping[str, Vector]:
        """Estimates of the class mix that labels are to choose among."""
        ...


@dataclass(frozen=True, slots=True)
class OutcomeRules:
    """Those of one kind of stream."""

    result: type[OutcomeResult]
    """What is published."""
    waits: Callable[[Window, Sequence[PublishedPart], Any], tuple[bytes, bytes]]
    """What waits of a window that was compared with a reference, by what was published of the whole and its segments:
    `told` and `rows` of a `Waiting`."""
    outcomes: Callable[[Waiting, Found, Stateless, int, Sequence[str]], Iterator[Outcome]]
    """Of the whole window and then of its segments, by its labels and copies; so many labels are of no known event, and
    class numbers stand for these classes."""
    settlement: Callable[[Waiting, Found, Sequence[str]], Settlement] | None = None
    """What labels teach before that; None where nothing is learned from them."""

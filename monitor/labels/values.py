"""What waits for labels, and what comes: the values that the store keeps and the rest of the room works with."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from monitor.arrays import Labels, Matrix, Vector


@dataclass(frozen=True, slots=True)
class Awaited:
    """How long a stream's windows wait for labels, and where."""

    wait: int
    """Microseconds of event time, from a window's end."""
    most: int
    """Events on disk, and labels."""
    store: Path


@dataclass(frozen=True, slots=True)
class LabelFlow:
    """What waits for labels in one stream."""

    windows: int
    events: int
    labels: int
    evicted_windows: int
    """Whose events had to go because too many were waiting; since the start, as is the next one."""
    thinned_labels: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """A closed window that waits for its labels."""

    stream: str
    window: str
    """Its id."""
    start: int
    end: int
    closes: int
    """The event time at which it could close,"""
    deadline: int
    """and at which its outcome is due: a label that comes when its partition's clock has got there is too late."""
    events: int
    told: bytes
    """What was published of it, as its judge wants to find it again."""
    rows: bytes | None
    """Its columns (`rows.packed`); None when they had to go because too many events were waiting."""


@dataclass(frozen=True, slots=True, eq=False)
class Arrived:
    """Labels of one stream as they came in one batch of one partition."""

    offsets: Labels
    ids: Sequence[str | None]
    times: Labels
    """When each became known, by its own account; `NEVER` if it does not say."""
    marks: Labels
    """The partition's newest event time when it came, its own time included."""
    values: Vector
    """Class numbers, or a regressor's targets."""
    at: Labels | None = None
    """Event times of labelled copies of scored events; None for plain labels."""
    answers: Matrix | None = None
    """And what the model had said."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Labels for rows of a window, by row and then in the order in which they count: the last one holds."""

    rows: Labels
    values: Vector
    times: Labels
    marks: Labels


@dataclass(frozen=True, slots=True, eq=False)
class Stateless:
    """Labelled copies of events of a window, in an order of their own content."""

    ids: Sequence[str | None]
    values: Vector
    answers: Matrix


NO_COPIES = Stateless([], np.empty(0), np.empty((0, 0)))

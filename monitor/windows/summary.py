"""What is told of a window's events beside its assessment: small, so that whoever looks on need not have the events."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from monitor.arrays import UNLABELLED
from monitor.limits import SAMPLED_OF_WINDOW
from monitor.windows.origin import Origin
from monitor.windows.window import Window, WindowCounts, WindowKey


@dataclass(frozen=True, slots=True, eq=False)
class WindowSummary:
    """The events of one window, counted."""

    key: WindowKey
    events: int
    counts: WindowCounts
    closed_because: str
    origin: Origin
    labelled: int
    """Events that came with their truth."""
    class_counts: tuple[int, ...]
    """Of the labelled events of a classifier's stream, by class; empty without any."""

    @classmethod
    def of(cls, window: Window, classes: int = 0) -> Self:
        """The summary of a window whose stream has so many classes."""
        known = np.empty(0, dtype=np.int64) if window.labels is None else window.labels[window.labels != UNLABELLED]
        return cls(
            key=window.key,
            events=window.events,
            counts=window.counts,
            closed_because=window.closed_because,
            origin=window.origin,
            labelled=int(np.count_nonzero(window.labelled)),
            class_counts=tuple(np.bincount(known, minlength=classes).tolist()) if known.size else (),
        )


def spread_rows(window: Window) -> Window:
    """Some of the rows, evenly spaced: as rows stand in an order of their content, no batching changes which."""
    rows = np.linspace(0, window.events - 1, min(window.events, SAMPLED_OF_WINDOW)).astype(np.int64)
    return window.take(rows)

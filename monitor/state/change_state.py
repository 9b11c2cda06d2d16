"""What is known of changes of level, between one window and the next."""

import msgspec

from monitor.shifts import DetectorValue

OF_EVENTS = "prior-shift"
"""The detector that looks at events."""


class Change(msgspec.Struct, frozen=True):
    """Series have another level since about this window."""

    window: str
    start: int
    end: int
    series: tuple[str, ...]


class ChangeState(msgspec.Struct, frozen=True):
    """A detector for each series, 1.5 kB each at most, or for events four bytes a class for each of a thousand."""

    detector: str = ""
    """Its name; empty where nothing looks for changes."""
    made_by: str = ""
    """What the detectors' values hold for: where it is another, they begin anew."""
    detectors: dict[str, DetectorValue | None] = {}
    """By series; null after a change, when a detector starts over."""
    last: tuple[str, ...] = ()
    """The series that changed with the last window."""
    found: tuple[Change, ...] = ()
    """The latest windows with a change of level."""
    count: int = 0
    """Changes of level so far."""

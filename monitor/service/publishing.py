"""What a closed window says to the world: for the window and for each of its segments, an assessment and its messages.

Pure: it depends on the window and on the stream's settings alone, so it may run anywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from monitor.assessment import encode
from monitor.kinds import Assessed, kind_of
from monitor.labels import Awaited
from monitor.ports import Message
from monitor.reference.base import FiledReference
from monitor.service.corrected_events import Corrected, corrected_events
from monitor.shifts.outline import Outline
from monitor.windows import Plan, Window, WindowKey, by_segment


@dataclass(frozen=True, slots=True)
class Watched:
    """One stream: what it is compared with and how it is cut into windows."""

    reference: FiledReference
    plan: Plan
    most_segments: int = 20
    dead_letter_late: bool = False
    awaited: Awaited | None = None
    """Whether, and how long, windows wait for labels."""
    corrected: Corrected = "no"
    """Whether events are published once more with corrected posteriors: when their window closes, or as they come."""
    outline: Outline | None = None
    """Of the stream's model, where that is a versatile tree or forest: the feed carries its adapted thresholds."""

    @property
    def identified(self) -> bool:
        """Whether the ids of events are needed."""
        return self.awaited is not None or self.corrected != "no"


@dataclass(frozen=True, slots=True)
class Published:
    """The assessment of one window, or of one segment of it, and all that is published of it, in this order."""

    assessment: Assessed
    messages: tuple[Message, ...]


def parts(window: Window, watched: Watched) -> tuple[Window, ...]:
    """What is published of a window: the whole of it first, then its segments."""
    return (window, *by_segment(window, watched.most_segments))


def published(window: Window, watched: Watched) -> Iterator[Published]:
    """One for each of its `parts`."""
    for part in parts(window, watched):
        assessment = kind_of(watched.reference).assess(part, watched.reference, watched.outline)
        again = watched.corrected == "window" and not part.key.segment
        yield Published(
            assessment=assessment,
            messages=(
                Message("results", part.key.id.encode(), assessment.to_json()),
                Message("recalibrations", feed_key(part.key), encode(assessment.recalibration)),
                *(corrected_events(part, assessment.recalibration) if again else ()),
            ),
        )


def feed_key(window: WindowKey) -> bytes:
    """A compacted topic keeps the last message of each stream, and of each segment of it."""
    return f"{window.stream}/{window.segment}".rstrip("/").encode()

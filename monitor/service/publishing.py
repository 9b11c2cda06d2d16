"""What a closed window says to the world: for the window and for each of its segments, an assessment and its messages.

Pure: it depends on the window and on the stream's settings alone, so it may run anywhere.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from monitor.assessment import encode
from monitor.kinds import Declared, kind_of
from monitor.labels import Awaited
from monitor.limits import SEGMENTS_WATCHED
from monitor.ports import Message
from monitor.reference import FiledReference
from monitor.service.corrected_events import Corrected, corrected_events
from monitor.state import AnyConcern, StatePlan, WindowSeen, Written, concerns_of, examined
from monitor.windows import Plan, Window, WindowKey, WindowSummary, by_segment

Spread = Literal["refuse", "parts"]
"""What becomes of a window of which other members of a group have events: nothing, or its parts are published."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One stream: what it is compared with and how it is cut into windows."""

    reference: FiledReference
    plan: Plan
    most_segments: int = SEGMENTS_WATCHED
    dead_letter_late: bool = False
    spread: Spread = "refuse"
    awaited: Awaited | None = None
    """Whether, and how long, windows wait for labels."""
    corrected: Corrected = "no"
    """Whether events are published once more with corrected posteriors: when their window closes, or as they come."""
    declared: Declared = field(default_factory=Declared)

    states: StatePlan = field(default_factory=StatePlan)
    """How that is known which is known over its windows."""
    written: float | None = None
    """When the file of the reference was; wall clock, seconds."""

    @property
    def concerns(self) -> tuple[AnyConcern, ...]:
        """What is known over its windows."""
        plan = replace(self.states, live=self.corrected == "live", awaiting=self.awaited is not None)
        return concerns_of(plan, self.reference)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """In the order of a window's columns."""
        return tuple(feature.name for feature in self.reference.schema.features)

    @property
    def identified(self) -> bool:
        """Whether the ids of events are needed."""
        return self.awaited is not None or self.corrected != "no"


@dataclass(frozen=True, slots=True)
class Published:
    """The assessment of one window, or of one segment of it, and what is published of it."""

    window: WindowSummary
    written: Written
    examined: Mapping[str, Any]
    """What the stream's concerns have taken from the events."""
    corrected: tuple[Message, ...] = ()
    """The window's events."""


def published(window: Window, watched: Watched) -> Iterator[Published]:
    """One for the whole window, then one for each of its segments."""
    reference, kind = watched.reference, kind_of(watched.reference)
    concerns = watched.concerns
    for part in (window, *by_segment(window, watched.most_segments)):
        assessment = kind.assess(part, reference, watched.declared)
        again = watched.corrected == "window" and not part.key.segment
        yield Published(
            window=WindowSummary.of(part, len(reference.schema.classes)),
            written=Written(assessment, assessment.to_json(), encode(assessment.recalibration)),
            examined=examined(concerns, part, assessment),
            corrected=tuple(corrected_events(part, watched.feature_names, assessment.recalibration)) if again else (),
        )


def messages(published: Published, seen: WindowSeen, window: Window, watched: Watched) -> Iterator[Message]:
    """What is published of a window or a segment of it, as the concerns of its stream have left it."""
    key = published.window.key
    yield Message("results", key.id.encode(), seen.result_message)
    yield Message("recalibrations", feed_key(key), seen.recalibration_message)
    unchanged = seen.recalibration is published.written.assessment.recalibration
    if published.corrected and not unchanged:  # by what the worker did not know of
        yield from corrected_events(window, watched.feature_names, seen.recalibration)
    else:
        yield from published.corrected


def feed_key(window: WindowKey) -> bytes:
    """A compacted topic keeps the last message of each stream, and of each segment of it."""
    return (f"{window.stream}/{window.segment}".rstrip("/") + window.of_part).encode()

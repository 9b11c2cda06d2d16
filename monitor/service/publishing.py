"""What a closed window says to the world: for the window and for each of its segments, an assessment and its messages.

Pure: it depends on the window and on the stream's settings alone, so it may run anywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from monitor.assessment import encode
from monitor.kinds import Assessed, Declared, kind_of
from monitor.labels import Awaited
from monitor.limits import SEGMENTS_WATCHED
from monitor.ports import Message
from monitor.recalibration import Cause, withheld
from monitor.reference.base import FiledReference
from monitor.service.corrected_events import Corrected, corrected_events
from monitor.state import StatePlan
from monitor.windows import Plan, Window, WindowKey, WindowSummary, by_segment


@dataclass(frozen=True, slots=True)
class Watched:
    """One stream: what it is compared with and how it is cut into windows."""

    reference: FiledReference
    plan: Plan
    most_segments: int = SEGMENTS_WATCHED
    dead_letter_late: bool = False
    awaited: Awaited | None = None
    """Whether, and how long, windows wait for labels."""
    corrected: Corrected = "no"
    """Whether events are published once more with corrected posteriors: when their window closes, or as they come."""
    declared: Declared = field(default_factory=Declared)

    sampled: bool = False
    """Whether some of a window's events are told beside its assessment, for a detector that looks at events."""

    states: StatePlan = field(default_factory=StatePlan)
    """What is to be known over its windows."""

    @property
    def identified(self) -> bool:
        """Whether the ids of events are needed."""
        return self.awaited is not None or self.corrected != "no"


@dataclass(frozen=True, slots=True)
class Published:
    """The assessment of one window, or of one segment of it, and all that is published of it, in this order."""

    assessment: Assessed
    window: WindowSummary
    messages: tuple[Message, ...]


def published(window: Window, watched: Watched) -> Iterator[Published]:
    """One for the whole window, then one for each of its segments."""
    reference, kind = watched.reference, kind_of(watched.reference)
    for part in (window, *by_segment(window, watched.most_segments)):
        assessment = kind.assess(part, reference, watched.declared)
        sample = kind.sample(part, reference) if watched.sampled else None
        again = watched.corrected == "window" and not part.key.segment
        yield Published(
            assessment=assessment,
            window=WindowSummary.of(part, len(reference.schema.classes), sample),
            messages=(
                Message("results", part.key.id.encode(), assessment.to_json()),
                Message("recalibrations", feed_key(part.key), encode(assessment.recalibration)),
                *(corrected_events(part, assessment.recalibration) if again else ()),
            ),
        )


def messages(published: Published, doubt: str) -> Iterator[Message]:
    """What is published of a window; nothing is to be corrected by estimates that labels have shown to be off."""
    for message in published.messages:
        if message.channel == "recalibrations" and doubt:
            refused = withheld(published.assessment.recalibration, Cause.LABELS_DISAGREE, doubt)
            yield replace(message, value=encode(refused))
        else:
            yield message


def feed_key(window: WindowKey) -> bytes:
    """A compacted topic keeps the last message of each stream, and of each segment of it."""
    return f"{window.stream}/{window.segment}".rstrip("/").encode()

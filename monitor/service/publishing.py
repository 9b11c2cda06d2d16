"""What a closed window says to the world: for the window and for each of its segments, an assessment and its messages.

Pure: it depends on the window and on the stream's settings alone, so it may run anywhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from connectors.protocols import Message
from monitor.assessment.classifier import Assessment, assess
from monitor.assessment.message import encode
from monitor.assessment.regressor import RegressionAssessment, assess_regression
from monitor.labels.store import Awaited
from monitor.reference.loading import AnyReference
from monitor.reference.regressor import RegressionReference
from monitor.service.corrected_events import Corrected, corrected_events
from monitor.shifts.outline import Outline, follow
from monitor.windows.assembly import Plan
from monitor.windows.window import Window, WindowKey, by_segment

AnyAssessment = Assessment | RegressionAssessment


@dataclass(frozen=True, slots=True)
class Watched:
    """One stream: what it is compared with and how it is cut into windows."""

    reference: AnyReference
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

    assessment: AnyAssessment
    messages: tuple[Message, ...]


def parts(window: Window, watched: Watched) -> tuple[Window, ...]:
    """What is published of a window: the whole of it first, then its segments."""
    return (window, *by_segment(window, watched.most_segments))


def published(window: Window, watched: Watched) -> Iterator[Published]:
    """One for each of its `parts`."""
    for part in parts(window, watched):
        assessment = assessed(part, watched)
        again = watched.corrected == "window" and not part.key.segment
        yield Published(
            assessment=assessment,
            messages=(
                Message("results", part.key.id.encode(), assessment.to_json()),
                Message("recalibrations", feed_key(part.key), encode(assessment.recalibration)),
                *(corrected_events(part, assessment.recalibration) if again else ()),
            ),
        )


def assessed(window: Window, watched: Watched) -> AnyAssessment:
    """By the kind of the reference."""
    if isinstance(watched.reference, RegressionReference):
        return assess_regression(window, watched.reference)
    assessment = assess(window, watched.reference)
    if watched.outline is None:
        return assessment
    moved = {name: one for name, one in assessment.recalibration.inputs.items() if name in watched.outline.names}
    tree = follow(watched.outline, moved)
    return replace(assessment, recalibration=replace(assessment.recalibration, tree=tree))


def feed_key(window: WindowKey) -> bytes:
    """A compacted topic keeps the last message of each stream, and of each segment of it."""
    return f"{window.stream}/{window.segment}".rstrip("/").encode()

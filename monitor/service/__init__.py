"""The loop: source, windows, assessments, sink, and what is committed when."""

from monitor.service.corrected_events import Corrected
from monitor.service.dead_letters import DeadLetterLimits
from monitor.service.following import FollowedStates
from monitor.service.loop import Clock, Pace, Service
from monitor.service.making_parts import PartMaker
from monitor.service.memory import Shared, collect_garbage_rarely, give_back_freed_memory, keep_freed_memory
from monitor.service.merging_parts import PartMerger
from monitor.service.notices import (
    BatchTaken,
    Committed,
    Happening,
    Interrupted,
    LabelsWaiting,
    Listening,
    Observer,
    Opened,
    OutcomeKnown,
    Reassigned,
    RecordsRejected,
    Remembered,
    StateAdvanced,
    StreamsSpread,
    Turned,
    WindowAssessed,
    WindowPublished,
    WindowRefused,
)
from monitor.service.outages import through_outages
from monitor.service.publishing import Spread, Watched
from monitor.service.reading import EventReading
from monitor.service.workers import Workers

__all__ = [
    "BatchTaken",
    "Clock",
    "Committed",
    "Corrected",
    "DeadLetterLimits",
    "EventReading",
    "FollowedStates",
    "Happening",
    "Interrupted",
    "LabelsWaiting",
    "Listening",
    "Observer",
    "Opened",
    "OutcomeKnown",
    "Pace",
    "PartMaker",
    "PartMerger",
    "Reassigned",
    "RecordsRejected",
    "Remembered",
    "Service",
    "Shared",
    "Spread",
    "StateAdvanced",
    "StreamsSpread",
    "Turned",
    "Watched",
    "WindowAssessed",
    "WindowPublished",
    "WindowRefused",
    "Workers",
    "collect_garbage_rarely",
    "give_back_freed_memory",
    "keep_freed_memory",
    "through_outages",
]

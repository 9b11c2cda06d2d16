"""What is known over the windows of a stream, and how every window and outcome changes it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from monitor.kinds import Assessed
from monitor.reference import FiledReference
from monitor.state.alarm_message import AlarmEvent, OpenAlarm
from monitor.state.alarms import AlarmState, alarms
from monitor.state.budget import Budget
from monitor.state.change_state import Change, ChangeState
from monitor.state.changes import changes
from monitor.state.concept import ConceptState, concept_shift
from monitor.state.concern import Advanced, AnyConcern, Concern, Seen, SeenT, Whose, WindowSeen, Written, owner
from monitor.state.data_quality import QualityState, data_quality
from monitor.state.evidence import EvidenceState, evidence
from monitor.state.history import OUTCOMES, SKETCHES, WINDOWS, HistoryState, WindowSketches, outcomes, sketches, windows
from monitor.state.in_force import InForce, in_force
from monitor.state.known import NOTHING, Changed, Known, Ring, Step, advance, surplus
from monitor.state.learned import LearnedState, learned
from monitor.state.performance_limits import PerformanceState, performance_limits
from monitor.state.plan import StatePlan
from monitor.state.recent import recent
from monitor.state.recent_labels import RecentLabelsState, recent_labels
from monitor.state.records import StateRecords
from monitor.state.smoothed import SmoothedState, smoothed
from monitor.state.trust import TrustState, trust
from monitor.state.volume import volume
from monitor.windows import Window

__all__ = [
    "CONCERNS",
    "NOTHING",
    "OUTCOMES",
    "SKETCHES",
    "WINDOWS",
    "Advanced",
    "AlarmEvent",
    "AlarmState",
    "AnyConcern",
    "Budget",
    "Change",
    "ChangeState",
    "Changed",
    "ConceptState",
    "Concern",
    "EvidenceState",
    "HistoryState",
    "InForce",
    "Known",
    "LearnedState",
    "OpenAlarm",
    "PerformanceState",
    "QualityState",
    "RecentLabelsState",
    "Ring",
    "Seen",
    "SeenT",
    "SmoothedState",
    "StatePlan",
    "StateRecords",
    "Step",
    "TrustState",
    "Whose",
    "WindowSeen",
    "WindowSketches",
    "Written",
    "advance",
    "concerns_of",
    "examined",
    "owner",
    "surplus",
]

CONCERNS: tuple[Callable[[StatePlan, FiledReference], AnyConcern | None], ...] = (
    trust,
    recent,
    recent_labels,
    concept_shift,
    smoothed,
    learned,
    volume,
    alarms,
    evidence,
    performance_limits,
    data_quality,
    changes,
    in_force,
    windows,
    sketches,
    outcomes,
)
"""Every concern, None where a stream has no use for it, in the order in which they are shown a window: those that
change what is published come before those that look at it."""


def concerns_of(plan: StatePlan, reference: FiledReference) -> tuple[AnyConcern, ...]:
    """The concerns of a stream with these settings and this reference."""
    return tuple(concern for make in CONCERNS if (concern := make(plan, reference)) is not None)


def examined(concerns: Sequence[AnyConcern], window: Window, assessment: Assessed) -> Mapping[str, Any]:
    """What these concerns take from a window's events, by concern."""
    return {concern.name: concern.examine(window, assessment) for concern in concerns if concern.examine is not None}

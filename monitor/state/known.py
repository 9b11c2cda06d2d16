"""All that is known of a stream over its windows: the states of its concerns, advanced together. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, cast

from monitor.limits import SEGMENT_TRACKS
from monitor.ports import Message
from monitor.state.concern import AnyConcern, SeenT, StateT, Whose, WindowSeen, owner


@dataclass(frozen=True, slots=True)
class Ring:
    """The last entries of a concern; the newest is last."""

    entries: tuple[Any, ...] = ()
    count: int = 0
    """How many there have ever been: the newest has this number."""

    def plus(self, entry: Any, most: int) -> "Ring":
        """The ring with one more, and without what is too old."""
        return Ring((*self.entries[max(len(self.entries) - most + 1, 0) :], entry), self.count + 1)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one stream, or of one of its segments, after its last window."""

    reference: str = ""
    """The version that the last window was compared with."""
    until: int = 0
    """When the last window ended, microseconds."""
    states: Mapping[str, Any] = field(default_factory=dict)
    """By concern."""
    rings: Mapping[str, Ring] = field(default_factory=dict)
    """By concern, of those that remember windows one by one."""

    def entries(self, concern: str) -> tuple[Any, ...]:
        """What a concern remembers one by one; the newest is last."""
        return self.rings.get(concern, Ring()).entries

    def state(self, kind: type[StateT]) -> StateT:
        """The state of this type; as it begins, where there is none."""
        return next((state for state in self.states.values() if isinstance(state, kind)), kind())


NOTHING = Known()

Changed = dict[Whose, Known | None]
"""What is known of whom since something happened; None: nothing is to be known of it any more."""


@dataclass(frozen=True, slots=True)
class Step(Generic[SeenT]):
    """What one window or outcome has changed."""

    known: Known
    seen: SeenT
    """What is published of it: as concerns have left it."""
    messages: Sequence[Message]
    """What concerns have published because of it."""
    remembered: Sequence[str] = ()
    """The concerns whose rings have one entry more."""
    continuity: Mapping[str, str] = field(default_factory=dict)
    """With the first window under another reference: which concern goes on, and which begins anew."""


def surplus(segments: Mapping[str, Known]) -> str | None:
    """The segment to let go of where a stream has too many: the one whose last window is the oldest."""
    if len(segments) <= SEGMENT_TRACKS:
        return None
    return min(filter(None, segments), key=lambda name: (segments[name].until, name))


def advance(known: Known, concerns: Sequence[AnyConcern], seen: SeenT) -> Step[SeenT]:
    """Show a window or an outcome to every concern, to each as the one before has left it."""
    continuity: Mapping[str, str] = {}
    if isinstance(seen, WindowSeen):
        known, continuity = _under(seen.assessment.reference_version, known, concerns)
        known = replace(known, until=seen.window.key.end)
    states, rings, messages, remembered = dict(known.states), dict(known.rings), list[Message](), list[str]()
    for concern in concerns:
        state = states.get(concern.name)
        advanced = concern.advance(concern.state() if state is None else state, seen)
        states[concern.name] = advanced.state
        messages += advanced.messages
        seen = seen if advanced.seen is None else cast(SeenT, advanced.seen)
        most = concern.most(owner(seen)[1])
        if advanced.entry is not None and most:
            rings[concern.name] = rings.get(concern.name, Ring()).plus(advanced.entry, most)
            remembered.append(concern.name)
    return Step(replace(known, states=states, rings=rings), seen, messages, remembered, continuity)


def _under(reference: str, known: Known, concerns: Sequence[AnyConcern]) -> tuple[Known, Mapping[str, str]]:
    """What is left of it under this reference."""
    if reference == known.reference:
        return known, {}
    anew = {concern.name for concern in concerns if concern.new_reference == "begins anew"}
    states = {name: state for name, state in known.states.items() if name not in anew}
    rings = {name: Ring((), ring.count) if name in anew else ring for name, ring in known.rings.items()}
    continuity = {concern.name: concern.new_reference for concern in concerns} if known.reference else {}
    return replace(known, reference=reference, states=states, rings=rings), continuity

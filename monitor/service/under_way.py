"""What is under way, in order: the windows that are being assessed, and the turns of the loop that wait for them.

Windows are assessed while the loop goes on, so what a turn has to publish comes later than its checkpoint was taken. A
turn is published when nothing of it is missing and everything before it is published: never a part of one.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from monitor.ports import Message
from monitor.state import Changed
from monitor.windows import Window, WindowCheckpoint

AnswerT = TypeVar("AnswerT")


@dataclass(slots=True, eq=False)
class Turn:
    """One turn of the loop."""

    messages: list[Message] = field(default_factory=list)
    states: Changed = field(default_factory=dict)
    """What is known of streams whose windows it published."""
    windows: int = 0
    """How many were told of, segments apart."""
    checkpoint: WindowCheckpoint | None = None
    """How far it came; None while it goes on."""


@dataclass(frozen=True, slots=True, eq=False)
class PendingStep(Generic[AnswerT]):
    """What happens next in the order of event time: a window's answer, or the settlement at the end of a turn."""

    turn: Turn
    """That waits for it."""
    mark: int | None
    """How far event time had come."""
    window: Window | None = None
    """None: it is a settlement, which needs no answer."""
    answer: Callable[[float], AnswerT | None] = lambda _: None
    """The answer about the window, after at most so many seconds; None if it is not there."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Whole turns that may be published together, and what may be committed with them."""

    messages: Sequence[Message]
    states: Changed
    checkpoint: WindowCheckpoint
    windows: int
    """How many are published."""


class UnderWay(Generic[AnswerT]):
    """Turns in order, of which the last one is still open, and the steps that they wait for."""

    def __init__(self) -> None:
        self._turns = deque([Turn()])
        self._steps: deque[PendingStep[AnswerT]] = deque()

    @property
    def windows(self) -> int:
        """How many are being assessed."""
        return sum(step.window is not None for step in self._steps)

    @property
    def waiting(self) -> bool:
        """Whether some turn waits for something."""
        return bool(self._steps)

    @property
    def begun(self) -> bool:
        """Whether the open turn publishes anything."""
        return bool(self._turns[-1].messages) or self._waited_for(self._turns[-1])

    @property
    def empty(self) -> bool:
        """Whether nothing waits at all."""
        return len(self._turns) == 1 and not self.begun

    def put(self, messages: Iterable[Message]) -> None:
        """Add messages to the open turn, ahead of the results of its windows."""
        self._turns[-1].messages.extend(messages)

    def expect(self, mark: int | None, window: Window, answer: Callable[[float], AnswerT | None]) -> None:
        """A window of the open turn is being assessed."""
        self._steps.append(PendingStep(self._turns[-1], mark, window, answer))

    def settle(self, mark: int | None) -> None:
        """The open turn waits for what is due when all before it is answered."""
        self._steps.append(PendingStep(self._turns[-1], mark))

    def end_turn(self, checkpoint: WindowCheckpoint) -> None:
        """The open turn is over; `checkpoint` is how far it came."""
        self._turns[-1].checkpoint = checkpoint
        self._turns.append(Turn())

    def steps(self, timeout: float) -> Iterator[tuple[PendingStep[AnswerT], AnswerT | None]]:
        """Take out the steps at the front, as long as they are answered; wait at most so many seconds for the first."""
        while self._steps:
            step = self._steps[0]
            answer = step.answer(timeout)
            if answer is None and step.window is not None:
                return
            self._steps.popleft()
            timeout = 0.0 if step.window is not None else timeout
            yield step, answer

    def ready(self) -> Ready | None:
        """Take out the whole turns at the front that nothing is missing from."""
        messages: list[Message] = []
        states: Changed = {}
        checkpoint, windows = None, 0
        while self._turns[0].checkpoint is not None and not self._waited_for(self._turns[0]):
            turn = self._turns.popleft()
            messages += turn.messages
            states |= turn.states
            checkpoint = turn.checkpoint
            windows += turn.windows
        return None if checkpoint is None else Ready(messages, states, checkpoint, windows)

    def clear(self) -> None:
        """Nothing of it may be published any more."""
        self._turns = deque([Turn()])
        self._steps.clear()

    def _waited_for(self, turn: Turn) -> bool:
        return any(step.turn is turn for step in self._steps)

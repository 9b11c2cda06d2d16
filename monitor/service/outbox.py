"""What waits to be published, in order: turn by turn, each with the checkpoint that may be committed after it.

Windows are assessed while the loop goes on, so a turn's results come later than its checkpoint was taken. A turn is
published when all of its results are there and everything before it is published: never a part of one.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from monitor.ports import Checkpoint, Message


@dataclass(slots=True)
class _Turn:
    messages: list[Message] = field(default_factory=list)
    due: int = 0
    """Windows whose messages are still to come."""
    checkpoint: Checkpoint | None = None
    """None while the turn goes on."""


@dataclass(frozen=True, slots=True)
class Ready:
    """Whole turns that may be published together, and what may be committed with them."""

    messages: Sequence[Message]
    checkpoint: Checkpoint


class Outbox:
    """Turns in order; only the last one is still open."""

    def __init__(self) -> None:
        self._turns = deque([_Turn()])

    @property
    def begun(self) -> bool:
        """Whether the open turn publishes anything."""
        return bool(self._turns[-1].messages) or self._turns[-1].due > 0

    @property
    def empty(self) -> bool:
        """Whether nothing waits at all."""
        return len(self._turns) == 1 and not self.begun

    def put(self, messages: Iterable[Message]) -> None:
        """Add messages to the open turn, ahead of the results of its windows."""
        self._turns[-1].messages.extend(messages)

    def expect(self) -> None:
        """A window of the open turn is being assessed."""
        self._turns[-1].due += 1

    def fill(self, messages: Iterable[Message]) -> None:
        """The messages of the first window that is still expected."""
        turn = next(turn for turn in self._turns if turn.due)
        turn.messages.extend(messages)
        turn.due -= 1

    def end_turn(self, checkpoint: Checkpoint) -> None:
        """The open turn is over; `checkpoint` is how far it came."""
        self._turns[-1].checkpoint = checkpoint
        self._turns.append(_Turn())

    def ready(self) -> Ready | None:
        """Take out the whole turns at the front that nothing is missing from."""
        messages: list[Message] = []
        checkpoint = None
        while self._turns[0].checkpoint is not None and not self._turns[0].due:
            turn = self._turns.popleft()
            messages += turn.messages
            checkpoint = turn.checkpoint
        return None if checkpoint is None else Ready(messages, checkpoint)

    def clear(self) -> None:
        """Nothing of it may be published any more."""
        self._turns = deque([_Turn()])

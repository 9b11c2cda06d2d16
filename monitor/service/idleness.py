"""Which partitions no window waits for any more, because nothing has come from them and nothing waits there."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from monitor.ports import NEVER


@dataclass(slots=True)
class Idleness:
    """Since when partitions have been silent; all times are seconds that only ever go forward."""

    patience: float
    """After so many seconds a silent partition is idle. Zero: it never is."""
    _heard: dict[str, float] = field(default_factory=dict)
    _stood: dict[str, int] = field(default_factory=dict)
    """How far each partition's event time had come when it was last heard of."""

    def hear(self, partition: str, now: float, reached: int) -> None:
        """Something came from a partition, or it was taken up: its event time stands here."""
        self._heard[partition] = now
        self._stood[partition] = reached

    def forget(self, partition: str) -> None:
        """Somebody else reads it now."""
        self._heard.pop(partition, None)
        self._stood.pop(partition, None)

    def idle(self, partitions: Collection[str], now: float, waiting: Callable[[str], bool]) -> frozenset[str]:
        """Those that are: `waiting` says whether records are known to wait unread."""
        if not self.patience:
            return frozenset()
        since = now - self.patience
        return frozenset(
            partition
            for partition in partitions
            if self._heard.get(partition, since) < since and not waiting(partition)
        )

    def mark(self, partitions: Collection[str], now: float) -> int | None:
        """When nothing comes from anywhere, event time is taken to go on from where it stood, as fast as the clock does
        once the patience is over. It does not jump to the clock: in a file of past events it lies far behind, and what
        follows there continues it."""
        silent_since = now - self.patience
        return min(
            (
                self._stood[partition] + int((silent_since - self._heard[partition]) * 1e6)
                for partition in partitions
                if self._stood.get(partition, NEVER) != NEVER
            ),
            default=None,
        )

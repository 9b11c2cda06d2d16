"""What happens to records that are not taken: how a dead letter looks, and when there are too many of them."""

from collections.abc import Iterable
from dataclasses import dataclass

from connectors.protocols import Message, RawBatch
from monitor.errors import DeadLetterLimitError
from monitor.events import Rejected

LATE = "late"
LATE_AFTER_IDLE = "late-after-idle"


@dataclass(frozen=True, slots=True)
class DeadLetterLimits:
    """When to stop instead of throwing a broken deploy's records away. Zero switches a limit off."""

    consecutive: int = 10_000
    ratio: float = 0.5
    ratio_over: int = 20_000
    """The ratio is judged over this many records at a time: few enough to stop early, enough to mean something."""


class DeadLetterWatch:
    """Counts rejected records against the limits."""

    def __init__(self, limits: DeadLetterLimits) -> None:
        self._limits = limits
        self._in_a_row = 0
        self._rejected = 0
        self._records = 0

    def see(self, records: int, rejected: Iterable[Rejected]) -> None:
        """Count one batch; raises when a limit is passed."""
        worst, bad, last = None, 0, -1
        for one in rejected:
            if one.index == last:
                continue  # a further bad event of the same record
            self._in_a_row = self._in_a_row + 1 if one.index == last + 1 else 1
            worst, bad, last = one, bad + 1, one.index
            if self._limits.consecutive and self._in_a_row >= self._limits.consecutive:
                raise DeadLetterLimitError(
                    f"{self._in_a_row} records in a row were rejected (limit {self._limits.consecutive}), the last one "
                    f"as {one.reason}. Nothing of this was committed: mend the producer or the configuration and restart"
                )
        if last != records - 1:
            self._in_a_row = 0
        self._records += records
        self._rejected += bad
        if self._limits.ratio and self._records >= self._limits.ratio_over:
            if self._rejected > self._limits.ratio * self._records and worst is not None:
                raise DeadLetterLimitError(
                    f"{self._rejected} of the last {self._records} records were rejected (limit {self._limits.ratio:.0%}), "
                    f"the last one as {worst.reason}. Nothing since the last commit was committed: mend the producer or "
                    "the configuration and restart"
                )
            self._records = self._rejected = 0


def dead_letter(batch: RawBatch, index: int, reason: str, detail: str, raw: bytes | None, stream: str) -> Message:
    """The original bytes with the reason and the source position as headers."""
    offset = int(batch.offsets[index])
    return Message(
        channel="dead-letters",
        key=f"{batch.partition}@{offset}".encode(),
        value=raw or b"",
        headers=(
            ("reason", reason.encode()),
            ("detail", detail.encode(errors="replace")),
            ("stream", stream.encode(errors="replace")),
            ("partition", batch.partition.encode()),
            ("offset", str(offset).encode()),
        ),
    )

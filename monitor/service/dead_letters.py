"""What happens to records that are not taken: how a dead letter looks, and when there are too many of them."""

from collections.abc import Iterable
from dataclasses import dataclass

from monitor.errors import DeadLetterLimitError
from monitor.events import Rejected
from monitor.ports import Message, RawBatch


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
        for record in rejected:
            if record.index == last:
                continue  # a further bad event of the same record
            self._in_a_row = self._in_a_row + 1 if record.index == last + 1 else 1
            worst, bad, last = record, bad + 1, record.index
            if self._limits.consecutive and self._in_a_row >= self._limits.consecutive:
                raise _too_many(f"{self._in_a_row} records in a row", f"{self._limits.consecutive}", record)
        if last != records - 1:
            self._in_a_row = 0
        self._records += records
        self._rejected += bad
        if self._limits.ratio and self._records >= self._limits.ratio_over:
            if self._rejected > self._limits.ratio * self._records and worst is not None:
                raise _too_many(
                    f"{self._rejected} of the last {self._records} records", f"{self._limits.ratio:.0%}", worst
                )
            self._records = self._rejected = 0


def _too_many(what: str, limit: str, last: Rejected) -> DeadLetterLimitError:
    return DeadLetterLimitError(
        f"{what} were rejected (limit {limit}), the last one as {last.reason}. The last of them are not "
        "committed and will be read again: mend the producer or the configuration (or raise the limits under "
        "[dead_letters]), then start again"
    )


def dead_letter(batch: RawBatch, rejected: Rejected) -> Message:
    """The original bytes with the reason and the source position as headers."""
    offset = int(batch.offsets[rejected.index])
    return Message(
        channel="dead-letters",
        key=f"{batch.partition}@{offset}".encode(),
        value=rejected.raw or b"",
        headers=(
            ("reason", rejected.reason.encode()),
            ("detail", rejected.detail.encode(errors="replace")),
            ("stream", rejected.stream.encode(errors="replace")),
            ("partition", batch.partition.encode()),
            ("offset", str(offset).encode()),
        ),
    )

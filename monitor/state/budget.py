"""How many false alarms there may be: divided over streams, their segments, and the kinds of series of each."""

from dataclasses import dataclass

LABELS_PART = 0.25
"""The part of a whole stream's budget that what late labels say of the scores has, where a stream awaits them: one of
four groups of series, beside shares, features and the fit."""
QUALITY_PART = 0.1
"""The part of it that data quality has: faults are large, and so small a part delays their alarm by a window."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How many false alarms a window of one stream may bring on average."""

    whole: float
    """By the series of the whole stream, together."""
    segment: float
    """By those of one of its segments."""

    @classmethod
    def of(cls, rate: float, segments: int = 0) -> "Budget":
        """So many false alarms a window of a stream; where segments are watched, half of it is theirs."""
        return cls(rate / 2, rate / 2 / segments) if segments else cls(rate, 0.0)

    def of_events(self, segment: str, *, awaiting: bool) -> float:
        """The part of it that is for how events are distributed."""
        return self.segment if segment else self.whole * (1 - QUALITY_PART - LABELS_PART * awaiting)

    @property
    def of_labels(self) -> float:
        """The part of it that is for what late labels say of the scores, where a stream awaits them."""
        return self.whole * LABELS_PART

    @property
    def of_quality(self) -> float:
        """The part of it that is for data quality."""
        return self.whole * QUALITY_PART

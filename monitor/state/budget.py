"""How many false alarms there may be: divided over streams, their segments, and the kinds of series of each."""

from dataclasses import dataclass

LABELS_PART = 0.25
"""The part of a whole stream's budget that what late labels say of the scores has, where a stream awaits them: one of
four groups of series, beside shares, features and the fit."""


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

    def rate(self, segment: str) -> float:
        """Of a segment, or of a whole stream."""
        return self.segment if segment else self.whole

    def of_events(self, segment: str, *, awaiting: bool) -> float:
        """The part of it that is for what events show without labels."""
        return self.rate(segment) * (1 - LABELS_PART if awaiting and not segment else 1)

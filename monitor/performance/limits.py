"""How good a model has to be: limits of measures, and whether what is known of one lies beyond its limit."""

from collections.abc import Iterator
from dataclasses import dataclass

from monitor.performance.measure_value import MeasureValue
from monitor.tolerances import NORMAL_95


@dataclass(frozen=True, slots=True)
class Limit:
    """One end of what is good enough; the other may be open."""

    below: float | None = None
    """A value below this is too low,"""
    above: float | None = None
    """and one above this too high."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if self.below is None and self.above is None:
            yield "want `below` or `above`"

    def beyond(self, value: MeasureValue) -> float:
        """How far a value is beyond the limit, in its standard errors; 0 unless its whole interval is."""
        error = max((value.upper - value.lower) / (2 * NORMAL_95), 1e-12)
        if self.below is not None and value.upper < self.below:
            return (self.below - value.value) / error
        if self.above is not None and value.lower > self.above:
            return (value.value - self.above) / error
        return 0.0

    @property
    def words(self) -> str:
        """As it is said in an alarm."""
        ends = [("below", self.below), ("above", self.above)]
        return " or ".join(f"{word} {end:g}" for word, end in ends if end is not None)

"""The message about a regressor's window, or a segment of one, whose labels have come: the envelope of every outcome,
with the errors of predictions in place of classes."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from monitor.assessment import message as result
from monitor.labels.outcome_message import OutcomeResult, Performed

SCHEMA_ID = "shiftwatch.regression-outcome.v1"

Finding = Literal["helped", "harmed", "not-told-apart", "too-few-labels", "not-recommended"]
"""What labels say of a correction: the errors are smaller with it, larger, or may be either."""


class PredictionError(Performed, frozen=True, kw_only=True):
    """One measure of the errors, label minus prediction: `rmse`, `mae` or `bias`."""

    reference: float | None
    """On the hold-out events; null where an earlier release made the reference."""


class CorrectionOutcome(result.MessagePart, frozen=True):
    """The correction that was published for the window, held against its labels."""

    finding: Finding
    reason: str
    """The same in words, for people."""
    labels: int = 0
    """Labelled events that the window held: copies of others were not corrected by it."""
    error_without: float | None = None
    """Root mean square error of their predictions as they were,"""
    error_with: float | None = None
    """and corrected; null where nothing was recommended, or too few labels tell."""
    difference: float | None = None
    """The second minus the first: below 0 the correction helped. Its bounds are of the whole window, as far as the
    labels can tell: 95 %."""
    lower: float | None = None
    upper: float | None = None


class RegressionOutcome(OutcomeResult, frozen=True, kw_only=True):
    """One window of a regression stream whose labels have come, or will not be waited for any longer; what belongs to
    classes is empty."""

    performance: Mapping[str, PredictionError]
    """By measure. Empty where too few labels tell."""
    withheld: str
    """Why measures are missing; empty if none is."""
    correction: CorrectionOutcome

    def samples(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """The errors of the hold-out, and with and without the correction."""
        for measure, error in self.performance.items():
            if error.reference is not None:
                yield "realised_performance_reference", (measure,), error.reference
        done = self.correction
        parts = {
            "before": done.error_without,
            "after": done.error_with,
            "difference": done.difference,
            "difference_lower": done.lower,
            "difference_upper": done.upper,
        }
        for part, value in parts.items():
            if value is not None:
                yield f"outcome_prediction_error_{part}", (), value

    @property
    def logged(self) -> Mapping[str, Any]:
        """What the log says of it."""
        error = self.performance.get("rmse")
        return {"error": None if error is None else error.realised, "correction": self.correction.finding}


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of the message."""
    return result.schema_of(RegressionOutcome)

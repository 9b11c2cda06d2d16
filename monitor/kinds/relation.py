"""What is kept of a regressor's window: the error of its predictions, and what the labels say of the relation."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from monitor.assessment import RegressionAssessment
from monitor.kinds.reading import Sample
from monitor.recalibration import Recalibration
from monitor.reference import RegressionReference
from monitor.windows import WindowSummary


@dataclass(frozen=True, slots=True)
class RelationAnswer:
    """What the labels of a regression stream say, in one window."""

    tested: bool
    labels: int
    wanted: int
    error: float | None
    """Root mean square of label minus prediction; None without labels."""
    reference_error: float
    corrected_error: float | None
    description: str
    """What changed, in words; empty where nothing did."""
    residuals: tuple[float, float, float] | None = None
    """Label minus prediction: its 10 %, 50 % and 90 % quantiles; None without labels."""
    classes: ClassVar[tuple[str, ...]] = ()
    iterations: ClassVar[None] = None

    def metrics(self, _most: int) -> Iterator[Sample]:
        """Labels and errors."""
        yield "evidence_labels", (), self.labels
        yield "evidence_labels_wanted", (), self.wanted
        if self.error is not None:
            yield "prediction_error", (), self.error
        if self.corrected_error is not None:
            yield "prediction_error_corrected", (), self.corrected_error

    def stream_metrics(self, _most: int) -> Iterator[Sample]:
        """None: whole streams have no samples of their own."""
        yield from ()

    def summary(self) -> Mapping[str, Any]:
        """What the API says of it."""
        return {"relation": asdict(self)}

    def levels(self) -> Mapping[str, float]:
        """None beside those of the inputs."""
        return {}


@dataclass(frozen=True, slots=True)
class RegressorFacts:
    """What is known of a regressor before its stream's first window."""

    inputs: tuple[str, ...]
    wanted: int
    """Labels that the relation test wants."""
    error: float
    """Of the predictions, on the hold-out events."""
    classes: ClassVar[tuple[str, ...]] = ()
    estimator: ClassVar[str] = ""

    @classmethod
    def of(cls, reference: RegressionReference) -> "RegressorFacts":
        """What its reference says."""
        return cls(reference.input_names, reference.wanted, reference.error)

    def metrics(self, _most: int) -> Iterator[Sample]:
        """The error on the hold-out events."""
        yield "reference_prediction_error", (), self.error

    def summary(self) -> Mapping[str, Any]:
        """What the API says of it."""
        return {"relation": asdict(self)}


def read(
    assessment: RegressionAssessment, _window: WindowSummary, _recalibration: Recalibration, _smoothed: object
) -> RelationAnswer:
    """What is remembered of a window."""
    relation = assessment.relation
    return RelationAnswer(
        tested=relation.tested,
        labels=relation.labels,
        wanted=relation.wanted,
        error=relation.errors.error,
        reference_error=relation.errors.usual,
        corrected_error=relation.corrected_error,
        description=relation.test.description if relation.changed else "",
        residuals=relation.errors.quantiles,
    )

"""The message about a window, or a segment of one, whose labels have come: what is published of it."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from monitor.assessment import message as result

SCHEMA_ID = "shiftwatch.outcome.v1"


class LabelCounts(result.MessagePart, frozen=True):
    """What became of the labels."""

    joined: int
    """Events whose truth is known."""
    missing: int
    """Events of which no label came in time."""
    stateless: int
    """Labelled copies of events that the window did not hold; they are among the joined."""
    duplicate: int
    contradicting: int
    """The last label holds."""
    early: int
    """Known before their event, by their own time."""
    unknown: int
    """Labels that came while the window ran, and that no event has used so far. They are in no segment, as are the
    stateless ones."""


class Realised(result.MessagePart, frozen=True):
    """One class: what had been estimated, and what it was."""

    estimate: float
    lower: float
    upper: float
    realised: float
    """Share among the labelled events."""
    error: float
    """Estimate minus realised."""
    covered: bool
    """Whether the interval holds the truth, as far as the labels can tell."""


class Score(result.MessagePart, frozen=True):
    """Posteriors against labels: as they were scored, and corrected as the window implied.

    Of the class mix: the reference's shares, and the estimate.
    """

    before: float
    after: float


class Performed(result.MessagePart, frozen=True):
    """One measure of the model's scores, as they were said."""

    realised: float
    """Among the labelled events; weighted where these were no fair sample (`selective`)."""
    lower: float
    """Of the whole window, as far as the labels can tell: 95 %."""
    upper: float
    estimated: result.FigurePart | None
    """What had been estimated without labels; null where nothing had."""


class OutcomeResult(result.MessagePart, frozen=True):
    """One window whose labels have come, or will not be waited for any longer."""

    schema: str
    stream: str
    segment: str
    window: str
    start: str
    end: str
    verdict: str
    events: int
    """Events that the window was judged by."""
    kept: bool
    """False when too many events were waiting, and these had to go: only stateless labels could join."""
    labels: LabelCounts
    selective: bool
    """The labelled events do not look like the window: they cannot tell how good the estimate was."""
    classes: dict[str, Realised]
    """Empty without any label."""
    coverage: float | None
    """Share of the classes whose interval covers the truth."""
    applied: bool
    """Whether the recalibration was to be applied."""
    brier: Score | None
    log_loss: Score | None
    trusted: bool
    """Whether the last outcomes, this one included, bear the estimates out."""
    doubt: str
    """Why not."""
    versions: result.Versions
    performance: Mapping[str, Performed] = msgspec.field(default_factory=dict)
    """By measure, as in the window's result. Empty without any label."""
    labels_within: float | None = None
    """Seconds after its end within which nineteen in twenty labels of each class had come; null without any."""
    normalised_absolute_error: Score | None = None
    """Of the class mix among the labelled events: 0 best, 1 worst."""
    calibration_error: Score | None = None
    """Part of the Brier score over ten bins: how far posteriors are from how often they come true."""
    refinement_error: Score | None = None
    """Part of the Brier score over ten bins: how mixed the events are that got the same posterior."""
    expected_calibration_error: Score | None = None
    """How far a posterior is from how often it comes true, on average."""
    concept: str = ""
    """What labels up to these say against the scores, whatever the class mix, or why that is not tested; empty where
    they say nothing against them."""

    def samples(self) -> Iterator[tuple[str, tuple[str, ...], float]]:
        """What metrics say of outcomes of this kind of stream alone: name, labels after the stream's, and value."""
        yield "estimates_trusted", (), float(self.trusted)

    @property
    def logged(self) -> Mapping[str, Any]:
        """What the log says of it."""
        return {"coverage": self.coverage, "doubt": self.doubt}

    @property
    def ends(self) -> int:
        """When the window ended, microseconds since the epoch."""
        return int(np.datetime64(self.end.removesuffix("Z"), "us").astype(np.int64))


def trusted(found: OutcomeResult, doubt: str) -> OutcomeResult:
    """With what it and earlier outcomes say about the estimates: why not to trust them, or nothing."""
    return msgspec.structs.replace(found, trusted=not doubt, doubt=doubt)


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of the message."""
    return result.schema_of(OutcomeResult)

"""Why a record is no event."""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Why a record, or one event of a record, was rejected: one each."""

    EMPTY = "empty"  # a null value, a blank record, or an array without events
    TOO_LARGE = "too-large"  # more bytes, or more events in one array, than allowed
    NOT_JSON = "not-json"
    UNREADABLE = "unreadable"  # not of the format of the source, such as Avro, or of an unknown schema
    NOT_FINITE = "not-finite"  # NaN, infinite, or a number beyond any float
    TOO_DEEP = "too-deep"
    NOT_AN_EVENT = "not-an-event"  # JSON, but neither an object nor an array of objects
    UNKNOWN_STREAM = "unknown-stream"
    MISSING_POSTERIORS = "missing-posteriors"
    BAD_POSTERIORS = "bad-posteriors"  # not numbers
    WRONG_CLASSES = "wrong-classes"  # other names, or another number of them
    NEGATIVE = "negative"
    POSTERIOR_SUM = "posterior-sum"
    MISSING_PREDICTION = "missing-prediction"
    BAD_PREDICTION = "bad-prediction"
    MISSING_TIMESTAMP = "missing-timestamp"  # neither in the event nor with the record
    BAD_TIMESTAMP = "bad-timestamp"
    FUTURE_TIMESTAMP = "future-timestamp"
    BAD_LABEL = "bad-label"
    BAD_FEATURES = "bad-features"
    BAD_ID = "bad-id"
    BAD_SEGMENT = "bad-segment"
    AMBIGUOUS = "ambiguous"  # a field given twice, of which one does not fit
    UNMATCHED = "unmatched"  # a request or a response whose partner did not come within reach
    REPEATED = "repeated"  # a request or a response that came again
    LATE = "late"  # a good event, older than its partition's newest by more than the allowed lateness
    LATE_AFTER_IDLE = "late-after-idle"  # a good event whose window closed while its partition was idle, or not there


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong. The detail may quote the record: it goes where the record goes, never into a log."""

    reason: Reason
    detail: str
    stream: str = ""
    """Empty where it is not known."""

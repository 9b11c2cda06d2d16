"""From raw records to columns of events, or rejections with a named reason."""

from monitor.events.checks import Scored
from monitor.events.decoding import DecodedBatch, Decoder, LateLabels, Rejected
from monitor.events.extraction import segment_name, segment_values, whole_number
from monitor.events.generated import keyed_struct
from monitor.events.guessing import guess
from monitor.events.joining import Joiner, JoinRule, Place
from monitor.events.likely_scores import likely_scores, sum_tolerance
from monitor.events.mapping import OWN_SHAPE, EventMapping
from monitor.events.paths import FieldPath
from monitor.events.presets import JOINS
from monitor.events.reasons import Reason
from monitor.events.timestamps import LIKELY_SECONDS, NO_TIME, TimeReading, from_epoch, from_rfc3339

__all__ = [
    "JOINS",
    "LIKELY_SECONDS",
    "NO_TIME",
    "OWN_SHAPE",
    "DecodedBatch",
    "Decoder",
    "EventMapping",
    "FieldPath",
    "JoinRule",
    "Joiner",
    "LateLabels",
    "Place",
    "Reason",
    "Rejected",
    "Scored",
    "TimeReading",
    "from_epoch",
    "from_rfc3339",
    "guess",
    "keyed_struct",
    "likely_scores",
    "segment_name",
    "segment_values",
    "sum_tolerance",
    "whole_number",
]

"""From raw records to columns of events, or rejections with a named reason."""

from monitor.events.checks import Scored
from monitor.events.decoding import DecodedBatch, Decoder, LateLabels, Rejected
from monitor.events.extraction import segment_name, segment_values
from monitor.events.likely_scores import likely_scores
from monitor.events.timestamps import TimeReading
from monitor.events.wire import Reason, keyed_struct

__all__ = [
    "DecodedBatch",
    "Decoder",
    "LateLabels",
    "Reason",
    "Rejected",
    "Scored",
    "TimeReading",
    "keyed_struct",
    "likely_scores",
    "segment_name",
    "segment_values",
]

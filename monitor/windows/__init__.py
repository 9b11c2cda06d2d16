"""From columns of events to closed windows."""

from monitor.windows.assembly import Plan, Windowing
from monitor.windows.batch import LabelTimes, LeftOut, RejectedAt, StreamRows
from monitor.windows.by_count import CountPlan
from monitor.windows.by_time import TimePlan
from monitor.windows.frame import Column, Columns, is_frame, is_missing, plain_column
from monitor.windows.label_evidence import EvidencePlan
from monitor.windows.merging import PartWindows
from monitor.windows.origin import Gap, Origin, Stretch, faults
from monitor.windows.panes import Arrivals
from monitor.windows.parts import Part
from monitor.windows.progress import CountedWindows, PartitionProgress, WindowCheckpoint, from_stored
from monitor.windows.streams import Streams
from monitor.windows.summary import WindowSummary, spread_rows
from monitor.windows.tally import Tally, fixed_sums
from monitor.windows.window import OTHER_SEGMENTS, Segments, Window, WindowCounts, WindowKey, by_segment, sampled

__all__ = [
    "OTHER_SEGMENTS",
    "Arrivals",
    "Column",
    "Columns",
    "CountPlan",
    "CountedWindows",
    "EvidencePlan",
    "Gap",
    "LabelTimes",
    "LeftOut",
    "Origin",
    "Part",
    "PartWindows",
    "PartitionProgress",
    "Plan",
    "RejectedAt",
    "Segments",
    "StreamRows",
    "Streams",
    "Stretch",
    "Tally",
    "TimePlan",
    "Window",
    "WindowCheckpoint",
    "WindowCounts",
    "WindowKey",
    "WindowSummary",
    "Windowing",
    "by_segment",
    "faults",
    "fixed_sums",
    "from_stored",
    "is_frame",
    "is_missing",
    "plain_column",
    "sampled",
    "spread_rows",
]

"""From columns of events to closed windows."""

from monitor.windows.assembly import LabelTimes, LeftOut, Plan, RejectedAt, StreamRows, Windowing
from monitor.windows.by_count import CountPlan
from monitor.windows.by_time import TimePlan
from monitor.windows.frame import Column, Columns, is_frame, is_missing, plain_column
from monitor.windows.label_evidence import EvidencePlan
from monitor.windows.panes import Arrivals
from monitor.windows.summary import WindowSummary, spread_rows
from monitor.windows.window import Segments, Window, WindowCounts, WindowKey, by_segment, sampled

__all__ = [
    "Arrivals",
    "Column",
    "Columns",
    "CountPlan",
    "EvidencePlan",
    "LabelTimes",
    "LeftOut",
    "Plan",
    "RejectedAt",
    "Segments",
    "StreamRows",
    "TimePlan",
    "Window",
    "WindowCounts",
    "WindowKey",
    "WindowSummary",
    "Windowing",
    "by_segment",
    "is_frame",
    "is_missing",
    "plain_column",
    "sampled",
    "spread_rows",
]

"""What a source and a sink are, under the name by which connectors outside of this repository import it.

The page itself is `monitor.ports`: the monitor says what it needs, and connectors follow.
"""

from monitor.ports import (
    NEVER,
    Channel,
    Checkpoint,
    Intake,
    Joined,
    Marking,
    Message,
    PartitionReport,
    Progress,
    RawBatch,
    ReadBack,
    Reassignment,
    Report,
    Reporting,
    ReportingSink,
    SharedOut,
    Sink,
    SinkReport,
    Source,
    Translated,
)

__all__ = [
    "NEVER",
    "Channel",
    "Checkpoint",
    "Intake",
    "Joined",
    "Marking",
    "Message",
    "PartitionReport",
    "Progress",
    "RawBatch",
    "ReadBack",
    "Reassignment",
    "Report",
    "Reporting",
    "ReportingSink",
    "SharedOut",
    "Sink",
    "SinkReport",
    "Source",
    "Translated",
]

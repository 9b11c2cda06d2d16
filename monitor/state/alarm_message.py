"""The message of the channel `alarms`: an event that begins, goes on and ends."""

from typing import Any

from monitor.assessment import MessagePart
from monitor.assessment.message import schema_of

SCHEMA_ID = "shiftwatch.alarm.v1"


class AlarmEvent(MessagePart, frozen=True):
    """What is published when an alarm begins, goes on or ends; the last message of an id says how it stands."""

    schema: str
    id: str
    state: str
    """`raised`, `updated` (after 2, 4, 8 ... windows) or `resolved`."""
    stream: str
    segment: str
    series: str
    since: str
    """When the first window began that shows the change, as far as the evidence tells."""
    window: str
    """The window that the message was published with."""
    end: str
    """When it ended."""
    windows: int
    """Since the change."""
    size: float
    """Of the shift, in standard errors of a window, on average."""
    once_in: float
    """By chance so much evidence comes about once in so many windows."""
    reason: str
    """The same in words."""


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of the message."""
    return schema_of(AlarmEvent)

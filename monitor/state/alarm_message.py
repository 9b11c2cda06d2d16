"""The message of the channel `alarms`: an event that begins, goes on and ends."""

from shlex import quote
from typing import Any, Literal

import msgspec

from monitor.assessment import MessagePart, encode, rfc3339, schema_of
from monitor.ports import Message
from monitor.windows import WindowKey

SCHEMA_ID = "shiftwatch.alarm.v1"

Event = Literal["raised", "updated", "resolved"]


class OpenAlarm(msgspec.Struct, frozen=True):
    """An alarm that has begun and has not ended."""

    since: int
    windows: int
    total: float
    threshold: float
    """The evidence that raised it: by chance that comes about once in so many windows."""
    against: float = 0.0
    """The logarithm of the odds at which windows speak against it."""

    @property
    def size(self) -> float:
        """The shift, in standard errors of a window."""
        return self.total / self.windows


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
    silence_until: str
    """How long to be quiet about it where it is known: as long again as it has lasted, by when the next update comes.
    Empty where it is resolved."""
    silence: str
    """The command that silences its alert in Alertmanager until then; those who listen to this channel compare `id`."""


def alarm_message(
    key: WindowKey,
    state: Event,
    series: str,
    *,
    since: int,
    windows: int,
    size: float,
    once_in: float,
    reason: str,
    alert: str,
) -> Message:
    """What is published with the window of this key; `alert` is the rule in Prometheus that tells of the alarm."""
    of, began = f"{key.stream}/{key.segment}".rstrip("/"), rfc3339(since)
    lasts = state != "resolved"
    until = rfc3339(key.end + windows * (key.end - key.start)) if lasts else ""
    event = AlarmEvent(
        schema=SCHEMA_ID,
        id=f"{of}/{series}/{began}",
        state=state,
        stream=key.stream,
        segment=key.segment,
        series=series,
        since=began,
        window=key.id,
        end=rfc3339(key.end),
        windows=windows,
        size=size,
        once_in=once_in,
        reason=reason,
        silence_until=until,
        silence=silencing(alert, key.stream, key.segment, until) if lasts else "",
    )
    return Message("alarms", event.id.encode(), encode(event))


def silencing(alert: str, stream: str, segment: str, until: str) -> str:
    """The command for a shell; an alert of a whole stream has no segment, which the empty one matches."""
    labels = {"alertname": alert, "stream": stream, "segment": segment}
    matchers = (f"{name}={msgspec.json.encode(value).decode()}" for name, value in labels.items())
    return f"amtool silence add {' '.join(map(quote, matchers))} --end={until} --comment=known"


def json_schema() -> dict[str, Any]:
    """The published JSON Schema of the message."""
    return schema_of(AlarmEvent)

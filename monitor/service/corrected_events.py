"""Events once more, with corrected posteriors: what such an event looks like, and how they are written. Pure.

In `window` mode the correction is transductive: the class mix is estimated from the very events that it corrects. In
`live` mode (`correcting`) it comes from an earlier window. Where no recalibration is to be applied, posteriors come as
they were, and `corrected` says so.
"""

from collections.abc import Iterator
from functools import cache
from itertools import repeat
from typing import Literal

import msgspec
import numpy as np

from monitor.arrays import Matrix
from monitor.events import keyed_struct
from monitor.ports import Channel, Message
from monitor.recalibration import Recalibration, corrected_rows
from monitor.windows import Window

Corrected = Literal["no", "window", "live"]


class CorrectedEvent(msgspec.Struct, frozen=True, gc=False):
    """One event with its original and its corrected posteriors, as it is published."""

    stream: str
    id: str | None
    timestamp: str
    posteriors: msgspec.Struct
    """Corrected; by class."""
    original: msgspec.Struct
    """As they were scored, normalised."""
    corrected: bool
    window: str | None
    """The id of the window whose recalibration it is; in live mode null where none is applied."""


_CHANNEL: Channel = "events"
_ENCODER = msgspec.json.Encoder()


def corrected_events(window: Window, recalibration: Recalibration) -> Iterator[Message]:
    """One message for each event, in the order of the window; keyed by the event's id."""
    return messages(
        window,
        corrected_rows(window.posteriors, recalibration),
        stream=window.key.stream,
        classes=recalibration.classes,
        corrected=recalibration.corrects,
        window=window.key.id,
    )


def messages(
    rows: Window, after: Matrix, *, stream: str, classes: tuple[str, ...], corrected: bool, window: str | None
) -> Iterator[Message]:
    """One message for each row; `after` are its corrected posteriors."""
    times = np.datetime_as_string(rows.times.astype("datetime64[us]"), timezone="UTC").tolist()
    ids = [None] * rows.events if rows.ids is None else rows.ids.tolist()
    by_class = _by_class(classes)
    events = map(
        CorrectedEvent,
        repeat(stream),
        ids,
        times,
        map(by_class, *after.T.tolist()),
        map(by_class, *rows.posteriors.T.tolist()),
        repeat(corrected),
        repeat(window),
    )
    lines = _ENCODER.encode_lines(events).splitlines()  # JSON has no line feed of its own
    keys = [(name or stream).encode() for name in ids]
    return map(Message, repeat(_CHANNEL), keys, lines)


@cache
def _by_class(classes: tuple[str, ...]) -> type[msgspec.Struct]:
    return keyed_struct("Posteriors", classes, [float] * len(classes))

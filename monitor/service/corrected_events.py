"""Events once more, with corrected posteriors or predictions: what such an event looks like, and how they are written.

In `window` mode the correction is transductive: the class mix is estimated from the very events that it corrects. In
`live` mode (`correcting`) it comes from an earlier window. Where no recalibration is to be applied, posteriors come as
they were, and `corrected` says so.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import repeat
from typing import Any, Literal

import msgspec
import numpy as np

from monitor.arrays import Matrix, Vector
from monitor.events import keyed_struct
from monitor.ports import Channel, Message
from monitor.recalibration import Recalibration, corrected_rows
from monitor.recalibration.relation import corrected_by_columns
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


class CorrectedPrediction(msgspec.Struct, frozen=True, gc=False):
    """The same of a regressor's event."""

    stream: str
    id: str | None
    timestamp: str
    prediction: float
    original: float
    corrected: bool
    window: str | None


_CHANNEL: Channel = "events"
_ENCODER = msgspec.json.Encoder()


def corrected_events(window: Window, features: Sequence[str], recalibration: Recalibration) -> Iterator[Message]:
    """One message for each event, in the order of the window; keyed by the event's id."""
    corrected = recalibration.corrects
    return messages(
        window, features, recalibration, stream=window.key.stream, corrected=corrected, window=window.key.id
    )


def messages(
    rows: Window,
    features: Sequence[str],
    recalibration: Recalibration,
    *,
    stream: str,
    corrected: bool,
    window: str | None,
) -> Iterator[Message]:
    """One message for each row; `features` are their names."""
    times = np.datetime_as_string(rows.times.astype("datetime64[us]"), timezone="UTC").tolist()
    ids = [None] * rows.events if rows.ids is None else rows.ids.tolist()
    kind, before, after = (
        _posteriors(rows.posteriors, recalibration)
        if rows.predictions is None
        else _predictions(rows.predictions, rows.features, features, recalibration)
    )
    events = map(kind, repeat(stream), ids, times, after, before, repeat(corrected), repeat(window))
    lines = _ENCODER.encode_lines(events).splitlines()  # JSON has no line feed of its own
    keys = [(name or stream).encode() for name in ids]
    return map(Message, repeat(_CHANNEL), keys, lines)


BeforeAndAfter = tuple[type[msgspec.Struct], Iterable[Any], Iterable[Any]]
"""What an event is written as, what events said, and what that is corrected to."""


def _posteriors(said: Matrix, recalibration: Recalibration) -> BeforeAndAfter:
    by_class = _by_class(recalibration.classes)
    after = corrected_rows(said, recalibration)
    return CorrectedEvent, map(by_class, *said.T.tolist()), map(by_class, *after.T.tolist())


def _predictions(
    said: Vector, features: Matrix | None, names: Sequence[str], recalibration: Recalibration
) -> BeforeAndAfter:
    after = corrected_by_columns(said, features, names, recalibration)
    return CorrectedPrediction, said.tolist(), after.tolist()


@cache
def _by_class(classes: tuple[str, ...]) -> type[msgspec.Struct]:
    return keyed_struct("Posteriors", classes, [float] * len(classes))

"""A closed window's events once more, with posteriors corrected by what the window itself showed. Pure.

The correction is transductive: the class mix is estimated from the very events that it corrects. Where the
recalibration is not to be applied, posteriors come as they were, and `corrected` says so.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

from connectors.protocols import Message
from monitor.arrays import Matrix
from monitor.priors import bayes
from monitor.recalibration import Recalibration
from monitor.windows import Window


class CorrectedEvent(msgspec.Struct, frozen=True, gc=False):
    """One event."""

    stream: str
    id: str | None
    timestamp: str
    posteriors: dict[str, float]
    """Corrected."""
    original: dict[str, float]
    """As they were scored, normalised."""
    corrected: bool
    window: str
    """The id of the window whose recalibration it is."""


_ENCODER = msgspec.json.Encoder()


def corrected_events(window: Window, recalibration: Recalibration) -> Iterator[Message]:
    """One message for each event, in the order of the window; keyed by the event's id."""
    assert window.timestamps is not None  # noqa: S101 - the decoder fills them in
    classes, key = recalibration.classes, window.key
    times = np.datetime_as_string(window.timestamps.astype("datetime64[us]"), timezone="UTC").tolist()
    ids = [None] * window.events if window.ids is None else window.ids.tolist()
    rows = zip(ids, times, applied(window.posteriors, recalibration).tolist(), window.posteriors.tolist(), strict=True)
    for name, time, after, before in rows:
        event = CorrectedEvent(
            stream=key.stream,
            id=name,
            timestamp=time,
            posteriors=dict(zip(classes, after, strict=True)),
            original=dict(zip(classes, before, strict=True)),
            corrected=recalibration.apply,
            window=key.id,
        )
        yield Message("events", (name or key.stream).encode(), _ENCODER.encode(event))


def applied(posteriors: Matrix, recalibration: Recalibration) -> Matrix:
    """Posteriors as a scoring service should use them."""
    if not recalibration.apply:
        return posteriors
    return bayes.correct(posteriors, recalibration.source_priors, recalibration.target_priors)

"""What is kept of a regressor's published window, and of its segments, until its labels have come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from monitor.arrays import present
from monitor.labels.published_window import places
from monitor.labels.rows import packed
from monitor.recalibration.relation import corrected_by_columns

if TYPE_CHECKING:
    from monitor.labels.outcome_rules import PublishedPart
    from monitor.reference import RegressionReference
    from monitor.windows import Window


class PublishedPredictions(msgspec.Struct, frozen=True):
    """What was published of a window or a segment, as far as its outcome needs it."""

    segment: str
    window: str
    events: int
    verdict: str
    reference: str
    recommended: bool
    """Whether a correction was."""
    reason: str
    """Why, or why not."""


class PublishedRegression(msgspec.Struct, frozen=True):
    """A window with its segments."""

    task: str
    """Tells it from what was published of another kind of stream."""
    errors: dict[str, float | None]
    """By measure: on the hold-out events."""
    whole: PublishedPredictions
    segments: tuple[PublishedPredictions, ...] = ()


def what_waits(window: Window, parts: Sequence[PublishedPart], reference: RegressionReference) -> tuple[bytes, bytes]:
    """What was published of a window and of its segments, and the columns that its outcome needs.

    Corrected predictions are kept in the place of the inputs: `corrected` by the window's own correction, `apart` by
    that of each event's segment.
    """
    whole, *segments = map(_published, parts)
    errors = {"rmse": reference.error, "mae": reference.absolute_error, "bias": reference.bias}
    told = PublishedRegression("regression", errors, whole, tuple(segments))
    return msgspec.json.encode(told), _kept(window, parts, reference)


def _published(part: PublishedPart) -> PublishedPredictions:
    key, feed = part.window.key, part.recalibration
    return PublishedPredictions(
        segment=key.segment,
        window=key.id,
        events=part.window.events,
        verdict=str(part.assessment.verdict),
        reference=part.assessment.reference_version,
        recommended=feed.apply,
        reason=feed.reason,
    )


def _kept(window: Window, parts: Sequence[PublishedPart], reference: RegressionReference) -> bytes:
    whole, *segments = parts
    names = [feature.name for feature in reference.schema.features]
    columns: dict[str, Any] = {"times": window.times, "predictions": window.predictions}
    if window.targets is not None:
        columns["targets"] = window.targets
    columns |= places(window, [each.window.key.segment for each in segments])

    said = present(window.predictions, "predictions")
    if whole.recalibration.apply:
        columns["corrected"] = corrected_by_columns(said, window.features, names, whole.recalibration)
    if any(each.recalibration.apply for each in segments):
        columns["apart"] = said.copy()
        for place, each in enumerate(segments):
            rows = np.flatnonzero(columns["segments"] == place)
            features = None if window.features is None else window.features[rows]
            columns["apart"][rows] = corrected_by_columns(said[rows], features, names, each.recalibration)
    return packed(columns, None if window.ids is None else window.ids.tolist())

"""What a segment of a stream is held against: its own hold-out events, where there are enough of them.

Segments differ: of orders from one country another share is fraud, and their amounts have other distributions. Held
against the whole reference each of them would have moved, always. So a reference knows the segment of every row of its
sample, from the `segment` of the hold-out events or from a feature of the same name, and `of_segment` makes a reference
of the rows of one segment: its class shares, profiles, calibration and statistics.

A class with fewer than a handful of rows in the segment borrows rows from the whole, as many as the whole leads to
expect, and two at least. With fewer rows than `SEGMENT_ROWS` a segment has class shares and scores of its own, but no
profiles; with fewer than `SEGMENT_SHARES_ROWS` it is held against the whole, without the features that it fixes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor import calibration, priors
from monitor.arrays import Flags, Labels, Matrix, Vector, frozen_labels, frozen_matrix, frozen_vector
from monitor.calibration import Calibration
from monitor.errors import InputError
from monitor.events import segment_name, segment_values
from monitor.limits import RARELY_READY, REFERENCES_READY
from monitor.ports.schema import Feature
from monitor.priors import HoldOut
from monitor.shifts import FeatureProfile, profile_of, values_kept
from monitor.tolerances import SEGMENT_CLASS_ROWS, SEGMENT_ROWS, SEGMENT_SHARES_ROWS
from monitor.windows import OTHER_SEGMENTS, Columns, Segments, Window, is_missing, plain_column

if TYPE_CHECKING:
    from monitor.reference.classifier import Reference

Names = NDArray[np.object_]


class SegmentHoldOut(NamedTuple):
    """What a segment's window is held against, the window as that reference reads it, and what has to be said of it."""

    reference: "Reference"
    window: Window
    remarks: tuple[str, ...]


def of_segment(window: Window, reference: "Reference") -> SegmentHoldOut:
    """The reference of a segment's window, whose columns are in the reference's order."""
    own = _own(reference, _names(window))
    if own is not None:
        return SegmentHoldOut(own, window, _few(own, reference))
    fixed = _fixed(window, reference)
    names = ", ".join(reference.schema.features[j].name for j in fixed)
    said = f"the hold-out has too few events of {window.key.segment} to tell what is usual there: held against all"
    return SegmentHoldOut(
        _without(reference, fixed),
        window if window.features is None else replace(window, features=_columns(window.features, fixed)),
        (said + (f", without {names}, which the segment fixes" if fixed else ""),),
    )


def usual_in(segment: str, reference: "Reference") -> "Reference":
    """The reference of one segment; where the hold-out does not know it, the whole."""
    return _own(reference, frozenset({segment})) or reference if segment else reference


def _names(window: Window) -> frozenset[str]:
    """The segments that the events of a window belong to: one, or all those that are watched together."""
    if window.key.segment != OTHER_SEGMENTS or window.segments is None:
        return frozenset({window.key.segment})
    return frozenset(window.segments.names[code] for code in np.unique(window.segments.codes))


def _few(own: "Reference", whole: "Reference") -> tuple[str, ...]:
    if own.features or not whole.features:
        return ()
    return (
        f"the hold-out has {own.sample.labels.size} events of this segment: only scores and class mix are compared",
    )


@lru_cache(maxsize=REFERENCES_READY)
def _own(reference: "Reference", names: frozenset[str]) -> "Reference | None":
    """The reference of the rows of some segments; a tenth of a second, once."""
    inside = np.zeros(reference.sample.labels.size, dtype=np.bool_)
    for name in names:
        inside |= _rows(reference, segment_values(name))
    if inside.sum() < SEGMENT_SHARES_ROWS:
        return None
    return _of_rows(reference, _borrowed(reference, np.flatnonzero(inside)), int(inside.sum()) >= SEGMENT_ROWS)


def _rows(reference: "Reference", values: Mapping[str, str]) -> Flags:
    """The rows of the sample that have these values, by the fields of the hold-out's segments, else by features."""
    inside = np.ones(reference.sample.labels.size, dtype=np.bool_)
    names = {feature.name: j for j, feature in enumerate(reference.schema.features)}
    known = reference.segments
    of_name = [] if known is None else [segment_values(name) for name in known.names]
    for field, text in values.items():
        if known is not None and any(field in values for values in of_name):
            inside &= np.array([values.get(field) == text for values in of_name], dtype=np.bool_)[known.codes]
        elif field in names and reference.sample.features is not None:
            column = reference.sample.features[:, names[field]]
            inside &= column == _code(reference.schema.features[names[field]], text)
        else:
            inside[:] = False
    return inside


def _code(feature: Feature, text: str) -> float:
    """The number that stands for a text in a feature's column; NaN, which equals nothing, for none."""
    if feature.kind == "number":
        try:
            return float(text)
        except ValueError:
            return float("nan")
    return float(feature.categories.index(text)) if text in feature.categories else float("nan")


def _borrowed(reference: "Reference", own: Labels) -> Labels:
    """A segment's rows, and rows of the whole for classes of which it has too few."""
    labels = reference.sample.labels
    counts = np.bincount(labels[own], minlength=len(reference.classes))
    expected = np.rint(own.size * reference.source_priors)
    wanted = np.maximum(np.minimum(expected, SEGMENT_CLASS_ROWS), 2).astype(np.int64)
    added = []
    for y in np.flatnonzero(counts < wanted):
        others = np.setdiff1d(np.flatnonzero(labels == y), own)
        missing = min(int(wanted[y] - counts[y]), others.size)
        added.append(others[np.linspace(0, others.size - 1, missing).astype(np.int64)])
    return np.sort(np.concatenate([own, *added]))


def _of_rows(whole: "Reference", rows: Labels, profiled: bool) -> "Reference":
    """A reference of some rows of the sample, with the whole's way of calibrating and estimating."""
    sample, raw, classes = whole.sample, whole.raw[rows], len(whole.classes)
    labels = frozen_labels(sample.labels[rows], "labels")
    table = sample.features[rows] if profiled and sample.features is not None else None
    fitted, unseen = _calibrated(whole, raw, labels, profiled)
    held_out = HoldOut(
        frozen_matrix(unseen, "posteriors"),
        labels,
        None if table is None else frozen_matrix(table, "features"),
        sample.seed,
    )
    counts = np.bincount(labels, minlength=classes).astype(np.float64)
    needed = {*priors.CHEAP, *priors.kept_for(whole.estimator)} & whole.statistics.keys()
    chosen = {name: priors.ESTIMATORS[name] for name in needed}
    statistics = {
        name: estimator.summarise(held_out)
        for name, estimator in chosen.items()
        if estimator.applies_to(classes, table is not None)
    }
    features = whole.schema.features if profiled else ()
    return replace(
        whole,
        schema=replace(whole.schema, features=features),
        class_counts=frozen_vector(counts, "class counts"),
        calibration=fitted,
        statistics=statistics,
        features=profiles(features, labels, table, counts),
        sample=replace(held_out, posteriors=frozen_matrix(fitted(raw), "posteriors")),
        raw=frozen_matrix(raw, "posteriors"),
        estimator=whole.estimator if whole.estimator in statistics else priors.DEFAULT,
        blocks=None,
        segments=None,
    )


def _calibrated(whole: "Reference", raw: Matrix, labels: Labels, alone: bool) -> tuple[Calibration, Matrix]:
    """A map of the whole's kind for some rows, and their posteriors by folds that had no part in it; where they are too
    few to fit one alone, the whole's, balanced with their prevalence."""
    if alone:
        fitted = calibration.cross_fit(raw, labels, whole.calibration.method, whole.sample.seed)
        return fitted.calibration, fitted.posteriors
    balanced = calibration.rebalanced(whole.calibration, raw, labels)
    return balanced, balanced(raw)


def profiles(
    features: tuple[Feature, ...], labels: Labels, table: Matrix | None, counts: Vector
) -> tuple[FeatureProfile, ...]:
    """What is kept of each feature."""
    if table is None:
        return ()
    keep = values_kept(len(features))
    return tuple(
        profile_of(feature, table[:, j], labels, counts.size, keep=keep, sampled_from=counts)
        for j, feature in enumerate(features)
    )


def _fixed(window: Window, reference: "Reference") -> frozenset[int]:
    """The features that have one value in all events of the window, but more in the hold-out."""
    sample = reference.sample.features
    if window.features is None or sample is None or not window.events:
        return frozenset()
    first = window.features[0]
    alike = (window.features == first).all(axis=0) & (sample != first).any(axis=0)
    return frozenset(int(j) for j in np.flatnonzero(alike))


@lru_cache(maxsize=RARELY_READY)
def _without(reference: "Reference", columns: frozenset[int]) -> "Reference":
    """The same reference with some features never looked at."""
    if not columns:
        return reference
    kept = [j for j in range(len(reference.features)) if j not in columns]
    table = reference.sample.features
    return replace(
        reference,
        schema=replace(reference.schema, features=tuple(reference.schema.features[j] for j in kept)),
        features=tuple(reference.features[j] for j in kept),
        sample=replace(reference.sample, features=_columns(table, columns) if table is not None and kept else None),
        statistics={k: v for k, v in reference.statistics.items() if not priors.ESTIMATORS[k].needs_features},
        calendar=tuple(kept.index(j) for j in reference.calendar if j in kept),
        ignored=tuple(kept.index(j) for j in reference.ignored if j in kept),
        blocks=None,
    )


def _columns(table: Matrix, left_out: frozenset[int]) -> Matrix:
    kept = [j for j in range(table.shape[1]) if j not in left_out]
    return frozen_matrix(table[:, kept], "features")


def named_segments(table: object, rows: int) -> Names:
    """The name of each row's segment, from the columns of a data frame."""
    columns = Columns.of(table, "segments")
    if columns.names is None or columns.rows != rows:
        raise InputError(f"segments: want a data frame with a row for each of the {rows} events")
    return segment_names(columns.names, [plain_column(column).tolist() for column in columns.values])


def segment_names(fields: Sequence[str], values: Sequence[Sequence[Any]]) -> Names:
    """The name of each row's segment, from the values of each field."""
    present = ([None if is_missing(value) else value for value in row] for row in zip(*values, strict=True))
    return np.array([segment_name(fields, row) for row in present], dtype=object)


def of_names(names: Names) -> Segments:
    """The segment of every row, by name."""
    known, codes = np.unique(names.astype(str), return_inverse=True)
    frozen = codes.astype(np.int32)
    frozen.flags.writeable = False
    return Segments(frozen, tuple(known.tolist()))


def fields_of(segments: Segments) -> dict[str, int]:
    """The fields that tell segments apart, and how many values each has."""
    values: dict[str, set[str]] = {}
    for name in segments.names:
        for field, text in segment_values(name).items():
            values.setdefault(field, set()).add(text)
    return {field: len(texts) for field, texts in values.items()}

"""A window of data frames as a reference reads it: columns found by name, put in its order, and encoded by its kinds.

What a frame lacks is missing in all events, and what it has beside is left out, as with events that are sent as JSON.
Either is said: `remarks` are the first reasons of the assessment.
"""

from dataclasses import replace
from difflib import get_close_matches

import numpy as np

from monitor.arrays import Matrix, frozen_matrix
from monitor.errors import InputError
from monitor.ports.schema import Feature, StreamSchema
from monitor.reference.feature_columns import encode
from monitor.windows import Column, Columns, Window


def matched(window: Window, schema: StreamSchema) -> Window:
    """The same window with posteriors in the order of the classes, and features as a matrix."""
    unread = window.unread
    if unread is None:
        return window
    posteriors = _posteriors(window.posteriors, unread.classes, schema)
    features = window.features if unread.features is None else _matrix(unread.features, schema.features)
    return replace(window, posteriors=posteriors, features=features, unread=None)


def remarks(window: Window, features: tuple[Feature, ...]) -> tuple[str, ...]:
    """Which columns of the window's frame are missing, unknown, or of another kind than the reference's."""
    if features and window.events and window.features is not None and np.isnan(window.features).all():
        return ("no event has any of the features that the reference knows",)
    columns = None if window.unread is None else window.unread.features
    if columns is None or columns.names is None or not features:
        return ()
    known = {feature.name: feature for feature in features}
    absent = [name for name in known if name not in columns.names]
    unknown = [name for name in columns.names if name not in known]
    said = []
    if absent:
        said.append(f"the data frame has no column {', '.join(absent)}: taken as missing in all events")
    if unknown:
        meant = (f"{name}{_nearest(name, absent)}" for name in unknown)
        said.append(f"the reference does not know the columns {', '.join(meant)}: left out")
    for name, column in zip(columns.names, columns.values, strict=True):
        if name in known and (kind := _misfit(column, known[name])):
            said.append(f"{name} holds {kind} where the reference has a {known[name].kind}: taken as missing")
    return tuple(said)


def _posteriors(matrix: Matrix, names: tuple[str, ...] | None, schema: StreamSchema) -> Matrix:
    classes = schema.classes
    if names is None:
        if matrix.shape[1] == 1 and schema.positive is not None:  # a bare score
            score = matrix[:, 0]
            other = -score if schema.margins else 1.0 - score
            columns = [score if name == schema.positive else other for name in classes]
            return frozen_matrix(np.column_stack(columns), "posteriors")
        if matrix.shape[1] == 1:
            raise InputError(
                "posteriors: one number for each event, and the reference does not know of which class it speaks; want "
                f"a column for each of {list(classes)}, or a reference that was built with `positive`"
            )
        return matrix
    if set(names) != set(classes):
        raise InputError(f"posteriors: want columns named as the classes {list(classes)}, got {list(names)}")
    return frozen_matrix(matrix[:, [names.index(name) for name in classes]], "posteriors")


def _matrix(columns: Columns, features: tuple[Feature, ...]) -> Matrix:
    if columns.names is None:
        if len(columns.values) != len(features):
            raise InputError(f"features: want {len(features)} columns, got {len(columns.values)}")
        by_name = dict(zip((feature.name for feature in features), columns.values, strict=True))
    else:
        by_name = dict(zip(columns.names, columns.values, strict=True))
        if features and not by_name.keys() & {feature.name for feature in features}:
            raise InputError(
                f"features: the reference knows {[feature.name for feature in features]}, and none of these is a "
                f"column of the data frame: {list(columns.names)}"
            )
    nothing = np.full(columns.rows, np.nan)
    encoded = [_encoded(by_name.get(feature.name, nothing), feature) for feature in features]
    return frozen_matrix(np.column_stack(encoded) if encoded else np.empty((columns.rows, 0)), "features")


def _encoded(column: Column, feature: Feature) -> Column:
    return np.full(column.size, np.nan) if _misfit(column, feature) else encode(column, feature)


def _misfit(column: Column, feature: Feature) -> str:
    """What a column holds that the feature cannot; a category takes everything by its name."""
    if feature.kind == "category":
        return ""
    if column.dtype.kind == "O" and any(isinstance(value, str) for value in column):
        return "text"
    if feature.kind == "boolean" and column.dtype.kind == "f" and not np.isin(column[~np.isnan(column)], (0, 1)).all():
        return "numbers other than 0 and 1"
    return ""


def _nearest(name: str, absent: list[str]) -> str:
    close = get_close_matches(name, absent, n=1, cutoff=0.6)
    return f" (is it {close[0]}?)" if close else ""

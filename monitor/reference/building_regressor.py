"""From a regressor's hold-out file of any size to a reference, in bounded memory.

Rows are kept up to a bound, beyond it as the same kind of seeded reservoir that classifiers' files go through.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from monitor.arrays import Matrix, present
from monitor.errors import InputError
from monitor.limits import BUILD_CELLS, BUILD_ROWS
from monitor.ports.schema import StreamSchema
from monitor.reference.building import reservoir_places
from monitor.reference.holdout import Advance, Table, Wanted, infer_schema, notices, pieces, table_features
from monitor.reference.regressor import LineCount, RegressionReference
from monitor.windows import Window


def build_regression(
    path: Path,
    wanted: Wanted,
    *,
    seed: int = 0,
    lines: LineCount | None = None,
    facts: Mapping[str, Any] | None = None,
    advance: Advance = lambda _read: None,
) -> RegressionReference:
    """The reference of a hold-out file; `facts` (who, when) are kept with it."""
    schema = infer_schema(path, wanted)
    width = 2 + len(schema.features)
    kept, random, seen = np.empty((min(BUILD_ROWS, BUILD_CELLS // width), width)), np.random.default_rng(seed), 0
    for rows in pieces(path, schema, advance, _of_rows, _of_table, times=wanted.times):
        slots, inside = reservoir_places(random, seen, len(rows), len(kept))
        kept[slots[inside]] = rows[inside]
        seen += len(rows)
    table = kept[: min(seen, len(kept))]
    features = table[:, 2:] if schema.features else None
    return RegressionReference.reduce(
        schema,
        table[:, 0],
        table[:, 1],
        features,
        seed=seed,
        lines=lines,
        events=seen,
        facts=facts,
        notices=notices(path, wanted, schema),
    )


def _of_rows(rows: Window) -> Matrix:
    """Prediction, label, features."""
    features = [] if rows.features is None else [rows.features]
    return np.column_stack([present(rows.predictions, "predictions"), present(rows.targets, "labels"), *features])


def _of_table(table: Table, schema: StreamSchema, first_row: int) -> Matrix:
    columns = []
    for name in ("prediction", "label"):
        if name not in table:
            raise InputError(f"{name}: no event has one; a reference is built from labelled predictions")
        try:
            columns.append(np.array([*table[name]], dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise InputError(f"{name}: want a number in every event, got {error}") from error
    features = table_features(table, schema, first_row)
    return np.column_stack(columns if features is None else [*columns, features])

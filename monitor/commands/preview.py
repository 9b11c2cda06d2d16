"""The first events of a source, as they are understood: what `shiftwatch check` shows."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Vector
from monitor.events import DecodedBatch
from monitor.pages import some
from monitor.ports import RawBatch, Source
from monitor.ports.schema import Feature, StreamSchema
from monitor.service import EventReading
from monitor.windows import Window

FIRST = 10


def first_of_file(path: Path) -> RawBatch:
    """The first lines of a file, as one batch."""
    with path.open("rb") as file:
        records = [line.rstrip(b"\r\n") for line in islice(file, FIRST)]
    return RawBatch(str(path), records, np.arange(len(records)), len(records))


def first_of_source(source: Source) -> RawBatch | None:
    """The first records of a source that has an end; nothing of it is committed."""
    source.start(None)
    try:
        while not source.finished:
            for batch in source.poll(0.0):
                if len(batch.records):
                    times = None if batch.timestamps is None else batch.timestamps[:FIRST]
                    said = batch.records if batch.translated is None else batch.translated.records
                    records = [said[row] for row in range(min(FIRST, len(said)))]
                    return RawBatch(batch.partition, records, batch.offsets[: len(records)], batch.next_offset, times)
    finally:
        source.close()
    return None


def preview(reading: EventReading, schemas: Mapping[str, StreamSchema], batch: RawBatch, now: int) -> Iterator[str]:
    """A line for each event, and for each record that is none."""
    yield f"The first records of {batch.partition}, as they are understood:"
    rows = sorted(_rows(reading.decoded(batch, now)[1], schemas), key=lambda row: row[0])
    for record, facts in rows[:FIRST]:
        yield f"  {record + 1:>3}  " + "  |  ".join(fact for fact in facts if fact)


def _rows(decoded: DecodedBatch, schemas: Mapping[str, StreamSchema]) -> Iterator[tuple[int, Sequence[str]]]:
    for name, scored in decoded.scored.items():
        for row, record in enumerate(scored.index.tolist()):
            yield record, (name, *_event(schemas[name], scored.rows, row))
    for name, late in decoded.late_labels.items():
        for row, record in enumerate(late.index.tolist()):
            label = _label(schemas[name], late.labels, late.targets, row)
            yield record, (name, _text(late.ids, row), "a label of an earlier event", label)
    for rejected in decoded.rejected:
        yield rejected.index, (rejected.stream, f"rejected as {rejected.reason}: {rejected.detail}")


def _event(schema: StreamSchema, window: Window, row: int) -> Iterator[str]:
    yield _text(window.ids, row)
    yield str(np.datetime64(int(window.times[row]), "us")).removesuffix("000").removesuffix(".000") + "Z"
    if window.predictions is not None:
        yield f"prediction {window.predictions[row]:.6g}"
    else:
        yield some(f"{name} {score:.4g}" for name, score in zip(schema.classes, window.posteriors[row], strict=True))
    values = () if window.features is None else zip(schema.features, window.features[row].tolist(), strict=True)
    yield some(f"{feature.name} {_value(feature, value)}" for feature, value in values)
    yield _label(schema, window.labels, window.targets, row)
    yield "" if window.segments is None else str(window.segments.names[window.segments.codes[row]])


def _value(feature: Feature, value: float) -> str:
    if np.isnan(value):
        return "missing"
    if feature.kind != "category":
        return f"{value:.6g}"
    return feature.categories[int(value)] if value < len(feature.categories) else "new category"


def _label(schema: StreamSchema, labels: Labels | None, targets: Vector | None, row: int) -> str:
    if labels is not None and labels[row] >= 0:
        return f"label {schema.classes[labels[row]]}"
    return f"label {targets[row]:.6g}" if targets is not None and not np.isnan(targets[row]) else ""


def _text(ids: Sequence[object] | NDArray[np.object_] | None, row: int) -> str:
    return "" if ids is None or ids[row] is None else str(ids[row])

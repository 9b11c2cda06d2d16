"""Labelled hold-out files, read in pieces: everything that turns .jsonl, .csv and .parquet into columns of events.

All three carry the fields of a scored event. A table flattens them: `label`, `posteriors.<class>` (of margins
`scores.<class>`) or `score`, and features under `features.<name>` or under their own name. JSON and Parquet say of each
value whether it is text, and are believed; in a table of text (.csv) it is guessed. Nothing is guessed after the schema
has been inferred: a row that does not fit is an error that names it.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from monitor.arrays import Labels, Matrix, present
from monitor.errors import InputError
from monitor.events import LIKELY_SECONDS, NO_TIME, DecodedBatch, Decoder, TimeReading, from_epoch, from_rfc3339
from monitor.limits import PROBED_ROWS
from monitor.ports import RawBatch
from monitor.ports.schema import Feature, StreamSchema
from monitor.recalibration import ScoreKind
from monitor.reference.column_notices import column_notices
from monitor.reference.feature_columns import MISSING_MARKS, Kinds, describe, encode, guessed, most_frequent, texts_of
from monitor.reference.segments import Names, segment_names
from monitor.reference.table import checked_margins, checked_posteriors, class_names, class_numbers, positive_by_name
from monitor.windows import Column, Window, is_missing, plain_column

_Piece = TypeVar("_Piece")

ROWS = 10_000
"""Rows read at a time: a few megabytes."""

LINES = (".jsonl", ".ndjson")
TEXT = ".csv"
"""The format that says of no value what it is."""
FAR_AHEAD = 2**61
"""No event's time is later: when hold-out events happened does not matter."""

RESERVED = frozenset({"stream", "id", "timestamp", "label", "score", "prediction", "posteriors", "features"})
"""Columns of a table that are never features, as are those of the scores and under `segment.`"""
PARTS = ("posteriors", "scores")
"""Where events have a score for each class: posteriors, or margins."""

FLAT = ("label", "stream", "score", "prediction")
"""Fields of an event that are columns of a table as they are."""

Table = Mapping[str, Sequence[Any]]
Advance = Callable[[int], None]
"""Told how many bytes of the file have been read so far."""


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Consecutive labelled events as columns."""

    posteriors: Matrix
    labels: Labels
    features: Matrix | None
    segments: Names | None = None
    """The name of each event's segment."""
    moments: Labels | None = None
    """When each event was, microseconds; None where some do not say."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the caller says about the file, beyond what it says itself."""

    stream: str = ""
    classes: tuple[str, ...] = ()
    positive: str = ""
    kinds: Kinds = field(default_factory=Kinds)
    times: str = ""
    """How times are written that do not say it themselves, as in a stream's settings."""
    scores: ScoreKind | None = None
    """What scores are; by default posteriors, unless they stand under `scores`."""


def infer_schema(path: Path, wanted: Wanted) -> StreamSchema:
    """Classes, features and their kinds from the first rows; the categories from all of them."""
    first = next(_tables(path, PROBED_ROWS, lambda _read: None), None)
    if first is None:
        raise InputError(f"{path}: holds no events")
    classes = () if holds_predictions(path) else _classes(path, first, wanted)
    features = tuple(
        describe(name, column, wanted.kinds.of(name)) for name, column in _typed(path, first, wanted.kinds).items()
    )
    if any(feature.kind == "category" for feature in features):
        features = _with_all_categories(path, features)
    stream = wanted.stream or str(first.get("stream", [""])[0] or "")
    positive = wanted.positive or (_positive(first, classes) if len(classes) == 2 else None)
    return StreamSchema(stream, classes, features, positive, bool(classes) and _margins(path, first, wanted))


def notices(path: Path, wanted: Wanted, schema: StreamSchema) -> tuple[str, ...]:
    """What was guessed of the features and what was left out, for a person to confirm or to say otherwise."""
    first = next(_tables(path, PROBED_ROWS, lambda _read: None), {})
    columns = _typed(path, first, wanted.kinds)
    about = list(column_notices([columns[f.name] for f in schema.features], schema.features, wanted.kinds))
    about += [f"the column {name!r} is an index and no feature: left out" for name in first if _is_index(name)]
    about += _without_values(path, {f.name for f in schema.features} | set(wanted.kinds.ignore))
    if beside := _beside_features(path):
        about.append(f"left out, as features of an event stand under `features`: {', '.join(beside)}")
    if path.suffix == TEXT:
        about += _guesses(first, [f for f in schema.features if wanted.kinds.of(f.name) is None])
    return tuple(about)


def _guesses(first: Table, features: Sequence[Feature]) -> Iterator[str]:
    """What a file of text was taken to say."""
    for kind, plural in (("number", "numbers"), ("category", "categories"), ("boolean", "true or false")):
        if names := [f.name for f in features if f.kind == kind]:
            yield f"guessed from text: {', '.join(names)} {'is' if len(names) == 1 else 'are'} taken as {plural}"
    kinds = {f.name: f.kind for f in features}
    for column in _feature_columns(first):
        marks = [text for text in first[column] if text in MISSING_MARKS]
        if marks and kinds.get(_feature_name(column), "category") != "category":
            yield f"{_feature_name(column)}: {len(marks):,} values such as {marks[0]!r} are taken as missing"


def _beside_features(path: Path) -> list[str]:
    """Fields of JSON events that nobody reads."""
    if path.suffix not in LINES:
        return []
    with path.open("rb") as file:
        events = [msgspec.json.decode(line, type=dict[str, Any]) for line in islice(file, PROBED_ROWS)]
    known = RESERVED | {"scores", "segment"}
    return [field for field in dict.fromkeys(field for event in events for field in event) if field not in known]


class _FeaturesAlone(msgspec.Struct):
    features: Any = None


def _without_values(path: Path, known: Set[str]) -> Iterator[str]:
    """Features of JSON events that have no value in those which say what the features are."""
    if path.suffix not in LINES:
        return
    decode = msgspec.json.Decoder(_FeaturesAlone).decode
    later: dict[str, int] = {}
    with path.open("rb") as file:
        for number, given in enumerate((decode(line).features for line in file), start=1):
            if isinstance(given, dict) and not given.keys() <= known:
                for name in given.keys() - known:
                    later.setdefault(name, 0)
                    if given[name] is not None and not later[name]:
                        later[name] = number
    for name, number in sorted(later.items()):
        where = f"no value before line {number:,}" if number else "no value in any event"
        yield f"{name}: left out, as it has {where}"


def holds_predictions(path: Path) -> bool:
    """Whether the events are a regressor's: they carry predictions, and neither posteriors nor scores."""
    first = next(_tables(path, PROBED_ROWS, lambda _read: None), {})
    return "prediction" in first and "score" not in first and _part(first) is None


def _part(table: Table) -> str | None:
    """Which part of events has a score for each class; None where one number stands for two classes."""
    return next((p for p in PARTS if any(c == p or c.startswith(f"{p}.") for c in table)), None)


def _margins(path: Path, first: Table, wanted: Wanted) -> bool:
    """Whether scores are margins, by what is said or by where they stand."""
    part = _part(first)
    if part is not None and wanted.scores not in (None, "margin" if part == "scores" else "posterior"):
        instead = "scores" if part == "posteriors" else "posteriors"
        raise InputError(f"{path}: `{part}` holds no {wanted.scores}s: those stand under `{instead}`")
    return part == "scores" or wanted.scores == "margin"


def read(path: Path, schema: StreamSchema, advance: Advance, times: str = "") -> Iterator[Chunk]:
    """All events of a classifier's file, some thousands at a time; `times` as in `Wanted`."""
    return pieces(path, schema, advance, _of_rows, partial(_chunk, reading=TimeReading.of(times)), times=times)


def pieces(
    path: Path,
    schema: StreamSchema,
    advance: Advance,
    of_rows: Callable[[Window], _Piece],
    of_table: Callable[[Table, StreamSchema, int], _Piece],
    *,
    times: str = "",
) -> Iterator[_Piece]:
    """What `of_rows` makes of decoded events, or `of_table` of a table, the schema and the number of its first row."""
    if path.suffix in LINES:
        yield from map(of_rows, _decoded_lines(path, schema, advance, times))
        return
    row = 0
    for table in _tables(path, ROWS, advance):
        rows = _height(table)
        try:
            yield of_table(table, schema, row)
        except InputError as error:
            raise InputError(f"{path}: between rows {row + 1} and {row + rows}: {error}") from error
        row += rows


def _decoded_lines(path: Path, schema: StreamSchema, advance: Advance, times: str) -> Iterator[Window]:
    """LineCount are scored events, and held to the same contract as in production."""
    first = next(_tables(path, 1, lambda _read: None), {})
    stream = str(first.get("stream", [""])[0] or "")
    fields = _segment_fields(next(_tables(path, PROBED_ROWS, lambda _read: None), {}))
    segments = {stream: tuple(fields)} if fields else {}
    known = [replace(schema, stream=stream)]
    decoder, done = Decoder(known, segments=segments, times={stream: TimeReading.of(times)}), 0
    with path.open("rb") as file:
        while lines := list(islice(file, ROWS)):
            numbers = np.arange(done, done + len(lines))
            timestamps = np.zeros(len(lines), dtype=np.int64)
            batch = RawBatch(str(path), lines, numbers, done + len(lines), timestamps)
            yield _labelled(path, done, decoder.decode(batch, FAR_AHEAD), stream)
            done += len(lines)
            advance(file.tell())


def _labelled(path: Path, done: int, batch: DecodedBatch, stream: str) -> Window:
    if batch.rejected:
        rejected = batch.rejected[0]
        raise InputError(f"{path}: line {done + rejected.index + 1}: {rejected.reason.value}: {rejected.detail}")
    if batch.late_labels:
        first = int(batch.late_labels[stream].index[0])
        raise InputError(
            f"{path}: line {done + first + 1}: a label without posteriors or prediction; join labels to events first"
        )
    scored = batch.scored[stream]
    unlabelled = ~scored.rows.labelled
    if unlabelled.any():
        line = done + int(scored.index[int(unlabelled.argmax())]) + 1
        raise InputError(f"{path}: line {line}: no label; a reference is built from labelled events")
    return scored.rows


def _of_rows(rows: Window) -> Chunk:
    segments = None if rows.segments is None else np.array(rows.segments.names, dtype=object)[rows.segments.codes]
    moments = rows.times if rows.times.all() else None  # 0 is what a line without a time gets
    return Chunk(rows.posteriors, present(rows.labels, "labels"), rows.features, segments, moments)


def _chunk(table: Table, schema: StreamSchema, first_row: int, reading: TimeReading) -> Chunk:
    if "label" not in table:
        near = [column for column in table if column.strip().lower() == "label"]
        hint = f"; is it {near[0]!r}?" if near else ""
        raise InputError(f"label: no event has one; a reference is built from labelled events{hint}")
    labels = class_numbers(_labels(table), schema.classes, first_row + 1)
    fields = _segment_fields(table)
    segments = segment_names(list(fields), [table[column] for column in fields.values()]) if fields else None
    features = table_features(table, schema, first_row)
    return Chunk(_posteriors(table, schema, first_row), labels, features, segments, _moments(table, reading, first_row))


def _moments(table: Table, reading: TimeReading, first_row: int) -> Labels | None:
    """The column `timestamp`, in whatever way times may be written; a typed one comes as seconds."""
    column = table.get("timestamp")
    if column is None:
        return None
    values = list(column)
    try:
        numbers = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        times = from_rfc3339("\n".join(map(str, values)), reading.zone)
    else:
        times = from_epoch(numbers, reading)
        times = np.where(times == LIKELY_SECONDS, np.rint(numbers * 1e6).astype(np.int64), times)
    if (unread := times <= NO_TIME).any():
        row = int(unread.argmax())
        raise InputError(f"timestamp: row {first_row + row + 1} has {values[row]!r}, which is no time; see --times")
    return times


def _segment_fields(table: Table) -> dict[str, str]:
    """The columns of the fields that tell segments apart, by their names."""
    return {c.removeprefix("segment."): c for c in sorted(table) if c.startswith("segment.")}


def table_features(table: Table, schema: StreamSchema, first_row: int) -> Matrix | None:
    """The features of a table in the order of the schema; a column that is not there is missing everywhere."""
    columns = {_feature_name(column): column for column in _feature_columns(table)}
    empty = np.full(_height(table), np.nan)
    features = [
        encode(plain_column(table[columns[f.name]], f.name), f, first_row) if f.name in columns else empty
        for f in schema.features
    ]
    return np.column_stack(features) if features else None


def _posteriors(table: Table, schema: StreamSchema, first_row: int) -> Matrix:
    part = _part(table) or PARTS[schema.margins]
    try:
        if part in table:
            rows = np.array([*table[part]], dtype=np.float64)
        elif "score" in table and _part(table) is None:
            score = np.array([*table["score"]], dtype=np.float64)
            other = -score if schema.margins else 1 - score
            rows = np.column_stack([score if c == schema.positive else other for c in schema.classes])
        else:
            rows = np.column_stack([np.array([*table[f"{part}.{c}"]], dtype=np.float64) for c in schema.classes])
    except (TypeError, ValueError) as error:
        raise InputError(f"posteriors: want {len(schema.classes)} numbers in every event, got {error}") from error
    except KeyError as error:
        raise InputError(f"posteriors: no column {error}") from error
    if rows.ndim != 2 or rows.shape[1] != len(schema.classes):
        raise InputError(f"posteriors: want {len(schema.classes)} numbers in every event, got shape {rows.shape}")
    checked = checked_margins if schema.margins else checked_posteriors
    return checked(rows, least=1, first_row=first_row + 1)


def _classes(path: Path, first: Table, wanted: Wanted) -> tuple[str, ...]:
    part = _part(first)
    named = tuple(c.removeprefix(f"{part}.") for c in first if c.startswith(f"{part}."))
    if wanted.classes:
        if named and set(named) != set(wanted.classes):
            raise InputError(f"{path}: the classes of the posteriors are {list(named)}, not {list(wanted.classes)}")
        return wanted.classes
    if named:
        return named
    labels = [label for label in _labels(first) if not is_missing(label)]
    if part is not None:
        return class_names(labels, None, len(first[part][0] or ()))
    if "score" in first:
        names = class_names(labels, None, 2)
        positive = wanted.positive or positive_by_name(names)
        if positive is None:
            raise InputError(
                f"{path}: is `score` the probability of {names[0]} or of {names[1]}? Say --positive {names[0]} or "
                f"--positive {names[1]}"
            )
        return names if positive != names[0] else names[::-1]
    there = ", ".join(first)
    inside = ' (as in {"posteriors": {"a": 0.9, "b": 0.1}})' if path.suffix in (".jsonl", ".ndjson") else ""
    raise InputError(
        f"{path}: no scores: want `posteriors`{inside}, `scores`, `score` or `prediction` in every event; "
        f"there is {there}"
    )


def _labels(table: Table) -> list[Any]:
    """Each event's label; of text 1.0 is 1 again, which it was before a column had missing values."""
    return [
        label.removesuffix(".0") if isinstance(label, str) and re.fullmatch(r"-?\d+\.0", label) else label
        for label in table.get("label", ())
    ]


def _positive(first: Table, classes: tuple[str, ...]) -> str | None:
    """What a bare score is the probability of: where the file has scores the second class, else what names say."""
    return classes[1] if "score" in first else positive_by_name(classes)


def _typed(path: Path, table: Table, kinds: Kinds) -> dict[str, Column]:
    """The features of the first rows by name, as what their values are; a kind that is said needs no guess."""
    columns = {_feature_name(column): column for column in _feature_columns(table)}
    kinds.check(columns)
    return {
        name: guessed(table[column])
        if path.suffix == TEXT and kinds.of(name) is None
        else plain_column(table[column], name)
        for name, column in columns.items()
        if name not in kinds.ignore
    }


def _with_all_categories(path: Path, features: tuple[Feature, ...]) -> tuple[Feature, ...]:
    counts: dict[str, Counter[str | None]] = {f.name: Counter() for f in features if f.kind == "category"}
    for table in _tables(path, ROWS, lambda _read: None):
        for column in _feature_columns(table):
            if (name := _feature_name(column)) in counts:
                counts[name].update(texts_of(plain_column(table[column], name)))
    return tuple(
        Feature(f.name, f.kind, most_frequent(counts[f.name])) if f.kind == "category" else f for f in features
    )


def _feature_columns(table: Table) -> list[str]:
    part = _part(table)
    never = RESERVED if part is None else RESERVED | {part}
    return [c for c in table if c not in never and not c.startswith((f"{part}.", "segment.")) and not _is_index(c)]


def _is_index(column: str) -> bool:
    """What pandas writes for the index of a frame: a column without a name, or (Parquet) named by its place."""
    return column == "" or re.fullmatch(r"Unnamed: \d+|__index_level_\d+__", column) is not None


def _feature_name(column: str) -> str:
    return column.removeprefix("features.")


def _height(table: Table) -> int:
    return len(next(iter(table.values()), ()))


def _tables(path: Path, rows: int, advance: Advance) -> Iterator[Table]:
    readers = {**dict.fromkeys(LINES, _json_lines), ".csv": _csv_tables, ".parquet": _parquet_tables}
    if path.suffix not in readers:
        raise InputError(f"{path}: want a file that ends in one of {sorted(readers)}")
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    yield from readers[path.suffix](path, rows, advance)


def _json_lines(path: Path, rows: int, advance: Advance) -> Iterator[Table]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    with path.open("rb") as file:
        done = 0
        while lines := list(islice(file, rows)):
            events = []
            for number, line in enumerate(lines, start=done + 1):
                try:
                    events.append(decode(line))
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    hint = "; JSON has no NaN: write null for a missing value" if b"NaN" in line else ""
                    raise InputError(f"{path}: line {number}: not a JSON object: {error}{hint}") from error
            done += len(lines)
            advance(file.tell())
            yield _flattened(events)


def _flattened(events: list[dict[str, Any]]) -> Table:
    """One column per field, and per key of `posteriors` and `features`; None where an event lacks it.

    A key without any value is no column; a place in a list of features is one, or the others would move up.
    """
    places: list[str] = []
    table: dict[str, list[Any]] = {name: [e.get(name) for e in events] for name in FLAT}
    for part in (*PARTS, "features", "segment"):
        given = [event.get(part) for event in events]
        if any(isinstance(value, dict) for value in given):
            keys = dict.fromkeys(key for value in given if isinstance(value, dict) for key in value)
            for key in keys:
                table[f"{part}.{key}"] = [value.get(key) if isinstance(value, dict) else None for value in given]
        elif part == "features":
            width = max((len(value) for value in given if value), default=0)
            places = [f"features.x{j}" for j in range(width)]
            for j, place in enumerate(places):
                table[place] = [value[j] if value and j < len(value) else None for value in given]
        elif part != "segment":
            table[part] = given
    return {n: column for n, column in table.items() if n in places or any(value is not None for value in column)}


def _csv_tables(path: Path, rows: int, advance: Advance) -> Iterator[Table]:
    with path.open("rb") as binary, io.TextIOWrapper(binary, encoding="utf-8-sig", newline="") as text:
        lines = csv.reader(text)
        header = next(iter(_next_rows(path, lines, 1)), [])
        if len(header) == 1 and (other := next((mark for mark in ";\t|" if mark in header[0]), "")):
            raise InputError(f"{path}: want commas between columns, and dots in numbers; the header has {other!r}")
        if twice := sorted(name for name, times in Counter(header).items() if times > 1):
            raise InputError(f"{path}: want every column once, got {', '.join(twice)} more than once")
        while block := _next_rows(path, lines, rows):
            for offset, row in enumerate(block):
                if len(row) != len(header):
                    line = lines.line_num - len(block) + offset + 1
                    raise InputError(f"{path}: line {line}: want {len(header)} fields as in the header, got {len(row)}")
            advance(binary.tell())
            columns = ([value or None for value in column] for column in zip(*block, strict=True))
            yield dict(zip(header, columns, strict=True))


def _next_rows(path: Path, lines: Iterator[list[str]], rows: int) -> list[list[str]]:
    try:
        return list(islice(lines, rows))
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a table of comma-separated values in UTF-8: {error}") from error


def _parquet_tables(path: Path, rows: int, advance: Advance) -> Iterator[Table]:
    try:
        import pyarrow  # noqa: PLC0415 - an optional extra
        from pyarrow import parquet  # noqa: PLC0415 - as above
    except ImportError as error:
        raise InputError(f"{path}: reading Parquet needs pyarrow: pip install pyarrow") from error
    try:
        with parquet.ParquetFile(path) as file:
            done, size = 0, path.stat().st_size
            for batch in file.iter_batches(batch_size=rows):
                table = pyarrow.Table.from_batches([batch]).flatten()
                done += table.num_rows
                advance(size * done // max(1, file.metadata.num_rows))
                yield {name: _arrow_values(table[name]) for name in table.column_names}
    except pyarrow.ArrowException as error:
        raise InputError(f"{path}: not a readable Parquet file: {error}") from error


def _arrow_values(column: Any) -> Any:
    """Lists (of posteriors) as Python's own, anything else as a plain column."""
    return column.to_pylist() if str(column.type).startswith(("list", "fixed_size_list")) else plain_column(column)

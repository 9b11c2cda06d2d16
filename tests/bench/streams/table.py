"""A stream in time order as numbers: features, labels, and what was done to the file to get there.

Rows are taken in the order in which they stand. A column is a number, a date (seconds since the epoch) or a category;
an identifier is left out. Classes that the first two fifths hardly have are merged, or their rows left out.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from monitor.arrays import Labels, Matrix, Vector
from monitor.ports.schema import Feature, FeatureKind
from tests.bench.streams.text import Text, UnusableError, distinct_names, is_missing, number, read_text

ROWS = 500_000
CELLS = 15_000_000
"""The first so many rows are looked at, or as many as have so many fields,"""
COLUMNS = 60
"""and the first so many columns beside the target."""
LEAST_ROWS = 500
"""A fifth of them is the smallest hold-out that can be judged by."""
CLASSES = 8
"""The most frequent classes; the others are one."""
RARE_ROWS = 10
"""A class with fewer rows in the training part or in the hold-out is rare."""
CATEGORIES = 50
"""Categories told apart, the most frequent first."""
TARGETS = ("target", "class", "label", "y", "outcome")
MOSTLY = 0.95
"""A column is what this share of its values is."""
DATE = re.compile(r"\w{1,9}[-/. ]{1,2}\w{1,9}[-/., ]{1,2}\d{1,4}([ T]\d{1,2}:\d{2})?")
FORMATS = (
    *("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%d-%m-%Y", "%Y/%m/%d"),
    *("%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%b %d, %Y", "%B %d, %Y", "%d %b %Y", "%d-%b-%Y"),
)
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
"""A time of day, as seconds since midnight."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A labelled stream, oldest row first."""

    name: str
    features: tuple[Feature, ...]
    rows: Matrix
    """NaN is missing; categories are numbers."""
    labels: Labels
    classes: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    block: int | None = None
    """The length of a window that suits it, if one is known."""

    @property
    def fifth(self) -> int:
        """Rows to train on, and to hold out."""
        return int(self.labels.size // 5)

    @property
    def numbers(self) -> Labels:
        """The features that are numbers of some variety: those that can change their unit."""
        held_out = self.rows[self.fifth : 2 * self.fifth]
        return np.array(
            [
                j
                for j, feature in enumerate(self.features)
                if feature.kind == "number" and np.unique(held_out[~np.isnan(held_out[:, j]), j]).size > 10
            ],
            dtype=np.int64,
        )


def from_file(
    path: Path,
    target: str | None = None,
    *,
    cuts: Sequence[float] = (),
    ignore: Sequence[str] = (),
    name: str = "",
) -> Table:
    """The stream of a file; `target` is a column's name or number, `cuts` are where a number becomes classes."""
    text = read_text(path)
    wanted = _target(text.names, target)
    remarks = list[str]()
    left_out = {text.names.index(column) for column in ignore if column in text.names} | {wanted}
    columns = [j for j in range(len(text.names)) if j not in left_out]
    if len(columns) > COLUMNS:
        remarks.append(f"the first {COLUMNS} of {len(columns)} columns are looked at")
        columns = columns[:COLUMNS]
    fields, said = _columns(text)
    remarks += said
    answers = np.array(fields[wanted], dtype=object)
    known = np.array([not is_missing(answer) for answer in answers], dtype=np.bool_)
    remarks += [f"{int((~known).sum()):,} rows without a target are left out"] if not known.all() else []
    if known.sum() < LEAST_ROWS:
        raise UnusableError(f"{path.name}: want {LEAST_ROWS:,} rows with a target, got {int(known.sum()):,}")
    features, parts = list[Feature](), list[Vector]()
    for j in columns:
        column = _column(fields[j])
        if column is None:
            remarks.append(f"{text.names[j]} is left out: it says nothing, or names each row")
            continue
        categories, values = column
        if not categories and _counts_rows(values[known]):
            remarks.append(f"{text.names[j]} is left out: it rises or falls with the rows, as a time or a row's number")
            continue
        strays = 0 if categories else int((np.isnan(values) & ~np.array([is_missing(f) for f in fields[j]])).sum())
        if strays:
            remarks.append(f"{strays:,} values of {text.names[j]} are no numbers: they count as missing")
        kind: FeatureKind = "category" if categories else "number"
        features.append(Feature(text.names[j], kind, categories))
        parts.append(values[known])
    if not features:
        raise UnusableError(f"{path.name}: no column beside the target says anything")
    labels, classes, said = _classes(answers[known].tolist(), cuts)
    table = Table(name or path.stem, tuple(features), np.column_stack(parts), labels, classes, (*remarks, *said))
    try:
        return with_frequent_classes(table)
    except UnusableError as error:
        raise UnusableError(f"{error} (the target is {text.names[wanted]!r})") from error


def with_frequent_classes(table: Table) -> Table:
    """Without classes that the training or hold-out rows hardly have: merged where that makes one of size."""
    fifth, count = table.fifth, len(table.classes)
    train, held = (
        np.bincount(part, minlength=count) for part in (table.labels[:fifth], table.labels[fifth : 2 * fifth])
    )
    fewest = np.minimum(train, held)
    order = np.argsort(-fewest, kind="stable")
    frequent = [int(y) for y in order[:CLASSES] if fewest[y] >= RARE_ROWS]
    rare = [y for y in range(count) if y not in frequent]
    if not rare and count > 1:
        return table
    merged = min(int(train[rare].sum()), int(held[rare].sum())) >= RARE_ROWS and len(frequent) > 0
    kept = sorted(frequent)
    if len(kept) + merged < 2:
        raise UnusableError(
            f"{table.name}: fewer than two classes have {RARE_ROWS} rows in each of the first two fifths: a model is "
            "trained on one, its reference is built from the other"
        )
    number = np.full(count, len(kept) if merged else -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    labels = number[table.labels]
    rows = labels >= 0
    what = "merged into one" if merged else f"left out, with their {int((~rows).sum()):,} rows"
    remark = f"{len(rare)} rare classes are {what}"
    # Without some rows the fifths are others.
    names = [*(table.classes[y] for y in kept), *(("other",) if merged else ())]
    found = replace(
        table,
        rows=table.rows[rows],
        labels=labels[rows],
        classes=distinct_names(names),
        remarks=(*table.remarks, remark),
    )
    return found if merged else with_frequent_classes(found)


def _target(names: tuple[str, ...], target: str | None) -> int:
    if target is None:
        lower = [name.lower() for name in names]
        return next((lower.index(name) for name in TARGETS if name in lower), len(names) - 1)
    if target in names:
        return names.index(target)
    try:
        return range(len(names))[int(target)]
    except (ValueError, IndexError) as error:
        raise UnusableError(f"no column {target!r}; there are {', '.join(names)}") from error


def _columns(text: Text) -> tuple[list[Sequence[str]], list[str]]:
    """The fields of the rows that have one for every column, and what was left out."""
    width = len(text.names)
    most = min(ROWS, CELLS // width)
    rows, ragged, more = list[list[str]](), 0, False
    for row in text.rows():
        if len(row) != width:
            ragged += 1
        elif len(rows) == most:
            more = True
            break
        else:
            rows.append(row)
    remarks = [f"the first {most:,} rows are looked at"] if more else []
    remarks += [f"{ragged:,} rows with another number of fields are left out"] if ragged else []
    return list(zip(*rows, strict=True)) or [()] * width, remarks


def _column(fields: Sequence[str]) -> tuple[tuple[str, ...], Vector] | None:
    """A column's categories (none for numbers and dates) and values; None where it says nothing."""
    present = [field for field in fields if not is_missing(field)]
    if not present:
        return None
    probe = present[:: max(1, len(present) // 2_000)]
    if sum(number(field) is not None for field in probe) >= MOSTLY * len(probe):
        return (), _finite([number(field) for field in fields])
    if sum(_seconds(field) is not None for field in probe) >= MOSTLY * len(probe):
        return (), _finite([_seconds(field) for field in fields])
    if all(CLOCK.fullmatch(field) for field in probe):
        return (), _finite([_of_day(field) for field in fields])
    counts = Counter(present)
    if len(counts) > max(CATEGORIES, len(present) / 2):
        return None
    frequent = tuple(sorted(name for name, _ in counts.most_common(CATEGORIES)))
    codes = {name: float(code) for code, name in enumerate(frequent)}
    return frequent, np.array([np.nan if is_missing(f) else codes.get(f, float(len(frequent))) for f in fields])


def _counts_rows(values: Vector) -> bool:
    """Whether a column only ever rises, or falls, and hardly ever stays: it tells which row this is."""
    steps = np.diff(values[~np.isnan(values)])
    moving = steps[steps != 0]
    return bool(moving.size > steps.size / 2 and (np.all(moving > 0) or np.all(moving < 0)))


def _of_day(field: str) -> float | None:
    found = CLOCK.fullmatch(field)
    return (
        None
        if found is None
        else sum(float(part or 0) * unit for part, unit in zip(found.groups(), (3600, 60, 1), strict=True))
    )


def _finite(values: list[float | None]) -> Vector:
    found = np.array([np.nan if value is None else value for value in values])
    # What is beyond single precision is an error of somebody's, and no model takes it.
    found[~(np.abs(found) < float(np.finfo(np.float32).max))] = np.nan
    return found


def _seconds(field: str) -> float | None:
    """A date or a time as seconds since the epoch."""
    if not DATE.match(field):
        return None
    try:
        moment = datetime.fromisoformat(field)
    except ValueError:
        for form in FORMATS:
            for clock in CLOCKS:
                try:
                    return datetime.strptime(field, form + clock).replace(tzinfo=UTC).timestamp()
                except ValueError:
                    continue
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _classes(answers: list[str], cuts: Sequence[float]) -> tuple[Labels, tuple[str, ...], list[str]]:
    """Class numbers and names. A number of many values is cut: as said, or into thirds of the first two fifths."""
    distinct = sorted(set(answers))
    values = [number(answer) for answer in answers]
    numeric = all(value is not None for value in values)
    if not cuts and not (numeric and len(distinct) > 3 * CLASSES):
        place = {name: y for y, name in enumerate(distinct)}
        return np.array([place[answer] for answer in answers]), distinct_names(distinct), []
    if not numeric:
        raise UnusableError("the target is to be cut, and is not a number everywhere")
    found = np.array(values, dtype=np.float64)
    chosen = cuts or np.unique(np.quantile(found[: 2 * (found.size // 5)], [1 / 3, 2 / 3])).tolist()
    edges = [f"{cut:g}" for cut in chosen]
    names = (f"up to {edges[0]}", *(f"{low} to {high}" for low, high in pairwise(edges)))
    remark = f"the target is a number of {len(distinct):,} values: its classes are cut at {', '.join(edges)}"
    return np.searchsorted(chosen, found).astype(np.int64), (*names, f"above {edges[-1]}"), [remark]

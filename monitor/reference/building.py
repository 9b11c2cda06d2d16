"""From a hold-out file of any size to a reference, in bounded memory.

Class counts are exact over all events. Rows are kept up to a bound, beyond it as a uniform sample (reservoir) whose
random numbers depend on the seed and the row number alone, so that no way of cutting the file changes it.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from monitor.arrays import Flags, Labels, Matrix
from monitor.calibration import Selection
from monitor.errors import InputError
from monitor.limits import BUILD_CELLS, BUILD_ROWS
from monitor.ports.schema import StreamSchema
from monitor.priors import DEFAULT
from monitor.reference.blocks import Block, Cut, Seasonal, cut
from monitor.reference.classifier import Facts, Reference
from monitor.reference.holdout import Advance, Chunk, Wanted, infer_schema, notices, read
from monitor.reference.preflight import Report, measure
from monitor.reference.segments import Names
from monitor.reference.steps import BuildProgress, unseen
from monitor.reference.warnings import exchanged_classes
from monitor.tolerances import MINIMUM_EVENTS


class Reservoir:
    """A uniform sample of the rows that pass by, and the exact count of each class among all of them."""

    def __init__(self, schema: StreamSchema, seed: int, rows: int | None = None) -> None:
        columns = len(schema.classes) + len(schema.features)
        self.capacity = min(BUILD_ROWS, BUILD_CELLS // columns) if rows is None else rows
        self.class_counts = np.zeros(len(schema.classes), dtype=np.int64)
        self._random = np.random.default_rng(seed)
        self._posteriors = np.empty((self.capacity, len(schema.classes)))
        self._labels = np.empty(self.capacity, dtype=np.int64)
        self._numbers, self._moments = (np.zeros(self.capacity, dtype=np.int64) for _ in range(2))
        self.timed = True
        """Whether all events say when they were."""
        self._features = np.empty((self.capacity, len(schema.features))) if schema.features else None
        self._segments: Names | None = None

    @property
    def events(self) -> int:
        """All events that passed by."""
        return int(self.class_counts.sum())

    def add(self, chunk: Chunk) -> None:
        """numpy assigns repeated places in order, so the last of several rows for one place wins, as it should."""
        rows = chunk.labels.size
        slots, kept = reservoir_places(self._random, self.events, rows, self.capacity)
        self._posteriors[slots[kept]] = chunk.posteriors[kept]
        self._labels[slots[kept]] = chunk.labels[kept]
        if self._features is not None and chunk.features is not None:
            self._features[slots[kept]] = chunk.features[kept]
        if chunk.segments is not None:
            self._segments = np.full(self.capacity, "", dtype=object) if self._segments is None else self._segments
            self._segments[slots[kept]] = chunk.segments[kept]
        self._numbers[slots[kept]] = self.events + np.flatnonzero(kept)
        if chunk.moments is None:
            self.timed = False
        else:
            self._moments[slots[kept]] = chunk.moments[kept]
        self.class_counts += np.bincount(chunk.labels, minlength=self.class_counts.size)

    def columns(self) -> tuple[Matrix, Labels, Matrix | None]:
        """Posteriors, labels and features of the kept rows."""
        rows = min(self.events, self.capacity)
        features = None if self._features is None else self._features[:rows]
        return self._posteriors[:rows], self._labels[:rows], features

    @property
    def moments(self) -> Labels:
        """When the kept rows were, where all events say it."""
        return self._moments[: min(self.events, self.capacity)]

    @property
    def numbers(self) -> Labels:
        """Where the kept rows stood in the file."""
        return self._numbers[: min(self.events, self.capacity)]

    @property
    def segments(self) -> Names | None:
        """The segments of the kept rows, by name; None where none has one."""
        return None if self._segments is None else self._segments[: min(self.events, self.capacity)]


def _cut(block: Block, reservoir: Reservoir, season: Seasonal | None) -> Cut:
    """Blocks of the kept rows; of a sample they hold as large a part as it does of all events."""
    rows = min(reservoir.events, reservoir.capacity)
    if isinstance(block, int) and rows < reservoir.events:
        wanted, block = block, round(block * rows / reservoir.events)
        if block < MINIMUM_EVENTS <= wanted:
            raise InputError(
                f"block: of {reservoir.events:,} events {rows:,} are kept, {block} for {wanted:,}; "
                f"want blocks that keep {MINIMUM_EVENTS}"
            )
    if reservoir.timed:
        return cut(block, rows, reservoir.moments, season)
    if isinstance(block, str) or season is not None:
        return cut(block, rows, season=season)  # which says what is missing
    return replace(cut(block, rows, reservoir.numbers), timed=False)


def reservoir_places(random: np.random.Generator, seen: int, rows: int, capacity: int) -> tuple[Labels, Flags]:
    """Row number i goes to place i while there is room, then to a place drawn from [0, i] if that is inside."""
    number = np.arange(seen, seen + rows)
    drawn = np.floor(random.random(rows) * (number + 1)).astype(np.int64)
    slots = np.where(number < capacity, number, drawn)
    return slots, slots < capacity


def collect(chunks: Iterable[Chunk], schema: StreamSchema, seed: int, rows: int | None = None) -> Reservoir:
    """Run all chunks through a reservoir."""
    reservoir = Reservoir(schema, seed, rows)
    for chunk in chunks:
        reservoir.add(chunk)
    if reservoir.events < 2:
        raise InputError(f"hold-out: want at least two labelled events, got {reservoir.events}")
    return reservoir


def build(
    path: Path,
    wanted: Wanted,
    *,
    seed: int = 0,
    calibration: Selection = "auto",
    estimator: str = DEFAULT,
    facts: Facts | None = None,
    block: Block | None = None,
    season: Seasonal | None = None,
    advance: Advance = lambda _read: None,
    progress: BuildProgress = unseen,
) -> tuple[Reference, Report]:
    """The reference of a hold-out file, and what was measured on it; `facts` (who, when) are kept with it.

    `block` is the length of the windows to come, `season` what they follow, and `progress` is told of every
    step, as in `Reference.fit`.

    Classes that are told apart only after columns are exchanged are refused: calibration would hide the mistake.
    """
    schema = infer_schema(path, wanted)
    reservoir = collect(read(path, schema, advance, wanted.times), schema, seed)
    posteriors, labels, features = reservoir.columns()
    if exchanged := exchanged_classes(posteriors, labels, schema):
        raise InputError(f"{path}: {exchanged.text}. Say so with --classes or --positive, or name the columns right")
    reference = Reference.reduce(
        schema,
        posteriors,
        labels,
        features,
        seed=seed,
        calibration=calibration,
        estimator=estimator,
        class_counts=reservoir.class_counts.astype(np.float64),
        facts=facts,
        notices=notices(path, wanted, schema),
        segments=reservoir.segments,
        blocks=None if block is None else _cut(block, reservoir, season),
        progress=progress,
    )
    return reference, measure(reference, posteriors, labels)

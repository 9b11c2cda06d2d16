"""One model watched over one stream: the reference, every window's assessment, and calm blocks against the others.

The hold-out and the stream are cut into blocks of as many rows; nothing here looks at a label that a monitor would not
have, but to judge by.
"""

import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np

from monitor import calibration, quality
from monitor.arrays import Labels, Matrix, Vector
from monitor.assessment.classifier import Assessment, assess
from monitor.assessment.verdict import Verdict
from monitor.calibration import Calibration, Selection
from monitor.ports.schema import StreamSchema
from monitor.priors import DEFAULT, ESTIMATORS, em
from monitor.reference.blocks import cut
from monitor.reference.classifier import Reference
from monitor.shifts import ks
from monitor.tolerances import MINIMUM_EVENTS
from monitor.windows import Window
from tests.bench.streams.injected import INJECTED
from tests.bench.streams.models import Model
from tests.bench.streams.table import Table
from tests.estimators import QUICK

WINDOWS = 300
"""The first windows after the hold-out, at most."""
HELD_BLOCKS = 100
"""The last blocks before the stream, at most."""
SHIFTED = 30
"""Evenly spaced windows on which shifts are made."""
NESTED = 30
NESTED_ROWS = 600_000
"""Calm blocks, evenly spaced, each against a reference of its own: so many, and so many rows in all references."""
KS_LEVEL = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """A stream cut into windows, and one model's scores of it."""

    table: Table
    model: Model
    block: int
    scores: Matrix
    """Of all rows; those that were trained on are never used."""

    @classmethod
    def of(cls, table: Table, model: Model, block: int) -> "Watched":
        """Score the stream."""
        scores = np.full((table.labels.size, len(table.classes)), np.nan)
        begin = table.fifth
        scores[begin:] = model(table.rows[begin:])
        return cls(table, model, block, scores)

    @property
    def held(self) -> list[slice]:
        """The blocks of the hold-out, the newest last; whole ones only, but all of it where it is shorter than one."""
        end = 2 * self.table.fifth
        count = min(self.table.fifth // self.block, HELD_BLOCKS)
        if not count:
            return [slice(self.table.fifth, end)]
        return [slice(end - k * self.block, end - (k - 1) * self.block) for k in range(count, 0, -1)]

    @property
    def windows(self) -> list[slice]:
        """The windows of the stream."""
        begin = 2 * self.table.fifth
        count = min((self.table.labels.size - begin) // self.block, WINDOWS)
        return [slice(begin + k * self.block, begin + (k + 1) * self.block) for k in range(count)]

    def window(self, at: slice) -> Window:
        """As the service would have it."""
        return Window.of(self.scores[at], self.table.rows[at])

    def reference(self, blocks: Sequence[slice], estimator: str = DEFAULT, method: Selection = "auto") -> Reference:
        """Of these blocks."""
        rows = np.concatenate([np.arange(at.start, at.stop) for at in blocks])
        return Reference.reduce(
            StreamSchema("bench", self.table.classes, self.table.features),
            self.scores[rows],
            self.table.labels[rows],
            self.table.rows[rows],
            seed=0,
            estimator=estimator,
            calibration=method,
            blocks=cut(self.block, rows.size) if self.block >= MINIMUM_EVENTS else None,
        )

    def has_all_classes(self, blocks: Sequence[slice]) -> bool:
        """Whether these hold two events of each class: what a reference needs."""
        counts = sum(np.bincount(self.table.labels[at], minlength=len(self.table.classes)) for at in blocks)
        return bool(np.min(counts) >= 2)

    def plain_reference(self, blocks: Sequence[slice], method: Selection) -> Reference:
        """The same without the statistics of estimators that no verdict needs: they take longer than all the rest."""
        with patch.dict(ESTIMATORS, QUICK, clear=True):
            return self.reference(blocks, "em", method)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What is known of one window: what the monitor said, what others would say, and the truth."""

    assessment: Assessment
    truth: Vector
    """Shares of the classes."""
    brier: float
    pcc: Vector
    emq: Vector
    expected_brier: float
    """CBPE: of the model's scores, if the calibrated ones were true."""
    drifted: int
    """Features that a plain KS test calls drifted."""
    seconds: float


def followed(watched: Watched, reference: Reference) -> Iterator[Seen]:
    """Every window of the stream."""
    held = np.concatenate([np.arange(at.start, at.stop) for at in watched.held])
    scores, labels = watched.scores[held], watched.table.labels[held]
    corrected = calibration.fit(scores, labels, "bias-corrected-temperature")
    columns = [np.sort(column[~np.isnan(column)]) for column in watched.table.rows[held].T]
    for at in watched.windows:
        yield _seen(watched, at, reference, corrected, columns)


def _seen(watched: Watched, at: slice, reference: Reference, corrected: Calibration, columns: Sequence[Vector]) -> Seen:
    window, raw = watched.window(at), watched.scores[at]
    began = time.process_time()
    assessment = assess(window, reference)
    seconds = time.process_time() - began
    g = reference.calibrated(raw)
    labels = watched.table.labels[at]
    return Seen(
        assessment=assessment,
        truth=shares(labels, len(watched.table.classes)),
        brier=quality.brier(raw, labels),
        pcc=g.mean(axis=0),
        emq=em.maximum_likelihood(corrected(raw), reference.source_priors).priors,
        expected_brier=quality.expected_brier(raw, g),
        drifted=sum(
            ks.two_sample(held, column).p_value < KS_LEVEL
            for held, column in zip(columns, watched.table.rows[at].T, strict=True)
        ),
        seconds=seconds,
    )


def shares(labels: Labels, classes: int) -> Vector:
    """Of each class."""
    return np.bincount(labels, minlength=classes) / max(labels.size, 1)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, the features that it calls moved, and the one that was touched; the empty name for none."""

    verdict: Verdict
    moved: Collection[str]
    touched: str = ""

    @classmethod
    def of(cls, assessment: Assessment, touched: str = "") -> "Judgement":
        """Against the reference."""
        return cls(assessment.verdict, {name for name, one in assessment.features.items() if one.moved}, touched)


@dataclass(frozen=True, slots=True)
class Tally:
    """Verdicts on windows of one kind, and how often the feature that was touched is named as moved."""

    verdicts: dict[str, int]
    named: int

    @classmethod
    def of(cls, judged: Sequence[Judgement]) -> "Tally":
        """Count."""
        verdicts = Counter(str(one.verdict) for one in judged)
        return cls(dict(verdicts), sum(one.touched in one.moved for one in judged))

    @property
    def windows(self) -> int:
        """How many could be judged."""
        return sum(self.verdicts.values()) - self.verdicts.get(str(Verdict.INSUFFICIENT_DATA), 0)

    def share(self, *verdicts: Verdict) -> float | None:
        """Of those that could be judged."""
        return sum(self.verdicts.get(str(v), 0) for v in verdicts) / self.windows if self.windows else None

    @property
    def moved(self) -> float | None:
        """The share with a verdict that is not `stable`."""
        stable = self.share(Verdict.STABLE)
        return None if stable is None else 1 - stable


def nested(watched: Watched, reference: Reference) -> dict[str, Tally]:
    """Hold-out blocks against references of the others: as they are, and with each shift on top.

    What the whole hold-out shows to be a calendar is left out of these references too: without its last blocks a year
    may have no second value.
    """
    held, calendar = watched.held, [watched.table.features[j].name for j in reference.calendar]
    if len(held) < 3:
        return {}
    most = int(np.clip(NESTED_ROWS // (len(held) * watched.block), 6, NESTED))
    judged: dict[str, list[Judgement]] = {"as it is": [], **{name: [] for name in INJECTED}}
    for turn, k in enumerate(evenly(len(held), most)):
        left = [*held[:k], *held[k + 1 :]]
        if not watched.has_all_classes(left):
            continue
        others = watched.plain_reference(left, reference.calibration.method).ignoring(calendar)
        judged["as it is"].append(Judgement.of(assess(watched.window(held[k]), others)))
        for name, window, feature in shifted(watched, held[k], turn):
            judged[name].append(Judgement.of(assess(window, others), feature))
    return {name: Tally.of(each) for name, each in judged.items()}


@dataclass(frozen=True, slots=True, eq=False)
class ShiftedWindow:
    """A window of the stream with a shift on top, assessed."""

    number: int
    shift: str
    touched: str
    window: Window
    assessment: Assessment


def shifts_on_stream(watched: Watched, reference: Reference) -> Iterator[ShiftedWindow]:
    """Evenly spaced windows of the stream with each shift on top."""
    windows = watched.windows
    for turn, k in enumerate(evenly(len(windows), SHIFTED)):
        for name, window, feature in shifted(watched, windows[k], turn):
            yield ShiftedWindow(k, name, feature, window, assess(window, reference))


def shifted(watched: Watched, at: slice, turn: int) -> Iterator[tuple[str, Window, str]]:
    """A window with each shift that can be made of it, scored again by the model, and the feature that was touched."""
    for name, shift in INJECTED.items():
        found = shift(watched.table, at, turn)
        if found is not None:
            yield name, Window.of(watched.model(found.rows), found.rows), found.feature


def evenly(count: int, most: int) -> list[int]:
    """Positions, evenly spaced."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64)).tolist() if count else []

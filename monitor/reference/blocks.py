"""From hold-out rows and their times to blocks: everything that cuts a hold-out, and reduces what was cut.

`cut` says which row belongs to which block, `summarised` what is kept of them (`monitor.shifts.blocks.Blocks`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from monitor import quality
from monitor.arrays import Labels, Matrix, Vector
from monitor.errors import InputError
from monitor.events.timestamps import NO_TIME, from_epoch
from monitor.limits import BLOCKS_KEPT, LATEST_BLOCKS
from monitor.ports.options import duration, duration_text
from monitor.priors import HoldOut
from monitor.reference.block_columns import compared_blocks, seasonal_columns
from monitor.shifts import (
    Blocks,
    BlockSums,
    FeatureProfile,
    Prepared,
    Season,
    alike_neighbours,
    explained,
    mapped_rows,
    often_enough,
    phases_of_inputs,
)
from monitor.tolerances import (
    BLOCKS_ADVISED,
    CALENDAR,
    CALENDAR_CELLS,
    FEWEST_BLOCKS,
    FEWEST_OF_PHASE,
    FEWEST_SEASONS,
    FEWEST_STRETCHES,
    KNOWN_TIME,
    LEAST_EXPLAINED,
    MINIMUM_EVENTS,
    SHORT_BLOCK,
    SHORTEST_PART,
    STRETCHES_KEPT,
    WHOLE_BLOCKS,
)
from monitor.windows import Window

GOLDEN = (math.sqrt(5) - 1) / 2
"""Its multiples lie evenly between 0 and 1, however many there are."""

YEAR = 31_556_952_000_000
"""Microseconds of the calendar's mean year."""

Block = int | str
"""So many events, or a duration such as "1d"."""


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Which block each hold-out row belongs to, in time order."""

    length: str
    """Of a window, as it was said."""
    parts: int
    """Blocks in each window's length: 1 where the hold-out holds enough of them."""
    stretch: Labels
    """By block: those of one stretch are never held against each other. A window's length, and at most a third of the
    hold-out."""
    order: Labels
    """The rows in time order."""
    of_row: Labels
    """The block of each row; -1 for none."""
    starts: Labels
    """The first moment of each block in microseconds, or where there are no times the number of its first row."""
    ends: Labels
    """The last one."""
    timed: bool
    """Whether these are moments."""
    season: "SeasonCut | None" = None
    """Where the class mix is to follow a season."""

    @property
    def number(self) -> int:
        """K, the number of blocks."""
        return self.starts.size

    @property
    def windows(self) -> int:
        """How many windows' lengths they make up."""
        return -(-self.number // self.parts)

    def class_counts(self, labels: Labels, classes: int) -> Matrix:
        """n_ky: how many events of each class each block holds."""
        there = self.of_row >= 0
        cells = np.bincount(self.of_row[there] * classes + labels[there], minlength=self.number * classes)
        return cells.reshape(self.number, classes).astype(np.float64)


class Seasonal(NamedTuple):
    """What is to follow a season."""

    length: str
    """A duration, or 1y."""
    inputs: bool = False
    """Whether inputs and scores are held against the same time too, and not the class mix alone."""


class SeasonCut(NamedTuple):
    """Which window's length each hold-out row belongs to, those that are kept as no block among them."""

    length: int
    """Of the season, and"""
    window: int
    """of a window, in microseconds."""
    window_of_row: Labels
    """As a number since the epoch."""
    inputs: bool
    """Whether inputs and scores are to follow it too."""

    def phase(self, number: Labels) -> Labels:
        """Of inputs in windows' lengths, by their number since the epoch."""
        return phases_of_inputs(self.length, self.window).of(number * self.window + self.window // 2)

    def counted(self, labels: Labels, classes: int) -> Season:
        """The class mix by phase."""
        return Season.of(self.length, self.window, self.window_of_row, labels, classes)


def microseconds(times: ArrayLike, rows: int) -> Labels:
    """Times of rows: numpy's or pandas' datetimes, or numbers of epoch milliseconds as events have them."""
    given = np.asarray(times)
    if given.shape != (rows,):
        raise InputError(f"times: want one for each of the {rows} events, got shape {given.shape}")
    if given.dtype == object:
        given = _plain(given.tolist())
    if given.dtype.kind == "M":
        missing, micros_since = np.isnat(given), given.astype("datetime64[us]").astype(np.int64)
    elif given.dtype.kind in "iuf":
        missing, micros_since = ~np.isfinite(given), from_epoch(given.astype(np.float64))
    else:
        raise InputError(f"times: want datetimes or epoch milliseconds, got {given.dtype}")
    if missing.any():
        raise InputError(f"times: {int(missing.sum())} are missing, the first in row {int(missing.argmax())}")
    if given.dtype.kind != "M" and (unread := micros_since <= NO_TIME).any():
        row = int(unread.argmax())
        raise InputError(f"times: row {row} is {given[row]}, which is no time in milliseconds since the epoch")
    return micros_since


def _plain(values: list[Any]) -> NDArray[Any]:
    """Moments of Python or pandas as numpy has them, which knows no zones: in UTC. Numbers as numbers."""
    if all(isinstance(value, int | float) for value in values):
        return np.array(values, dtype=np.float64)
    if any(isinstance(value, str) for value in values):
        raise InputError("times: want datetimes or epoch milliseconds, got text; pandas.to_datetime reads it")
    moments = [
        value.astimezone(UTC).replace(tzinfo=None) if getattr(value, "tzinfo", None) is not None else value
        for value in values
    ]
    return np.array(moments, dtype="datetime64[us]")


def cut(block: Block, rows: int, times: Labels | None = None, season: Seasonal | None = None) -> Cut:
    """Blocks of so many consecutive events, or of the events of such a time, aligned as windows are.

    Of a hold-out with fewer than `FEWEST_BLOCKS` of these lengths blocks are parts of them, with at least
    `SHORTEST_PART` events each. A block by time that holds less than a quarter of what blocks usually do is of no use.
    Of very many blocks some are kept, spread evenly over the hold-out, and the latest; where inputs follow a season, as
    many of each of its phases.
    """
    seasons = None if season is None else _season(season, block, times)
    order = np.arange(rows) if times is None else np.argsort(times, kind="stable")
    if isinstance(block, int) and not isinstance(block, bool):
        if block < MINIMUM_EVENTS:
            raise InputError(f"block: want at least {MINIMUM_EVENTS} events, got {block}")
        windows = max(round(rows / block), 1)
        parts = _parts(windows, rows / windows)
        of_order, length = np.arange(rows) * windows * parts // rows, str(block)
    else:
        micro = duration(block, "block")
        if times is None:
            raise InputError(
                f"block: {block!r} is a duration, and not all events have times; give them, or a number of events"
            )
        of_order, parts, length = *_by_time(times[order], micro), duration_text(micro)
        if (of_order < 0).all():
            raise InputError(f"block: no {length} of the hold-out holds {MINIMUM_EVENTS} events; want a longer block")
    followed = seasons if seasons is not None and seasons.inputs else None
    if followed is not None and season is not None:
        _check_phases(followed, np.unique(of_order[of_order >= 0]), parts, season.length)
    of_order, stretch = _kept(of_order, parts, followed)
    of_row = np.empty(rows, dtype=np.int64)
    of_row[order] = of_order
    inside = np.flatnonzero(of_order >= 0)
    numbers = np.arange(of_order.max(initial=-1) + 1)
    first = inside[np.searchsorted(of_order[inside], numbers)]
    last = inside[np.searchsorted(of_order[inside], numbers, side="right") - 1]
    when = np.arange(rows) if times is None else times[order]
    return Cut(length, parts, stretch, order, of_row, when[first], when[last], times is not None, seasons)


def _season(season: Seasonal, block: Block, times: Labels | None) -> SeasonCut:
    """Which phase of the season each row has; InputError where the hold-out cannot know."""
    said = season.length
    if times is None or not isinstance(block, str):
        raise InputError(f"season: {said!r} wants times of all events, and a block that is a duration, such as 1h")
    length, window = _season_length(said), duration(block, "block")
    if length < 2 * window:
        raise InputError(f"season: want at least two blocks of {block} in it, got {said!r}")
    covered = int(times.max() - times.min()) / length
    if covered < FEWEST_SEASONS:
        raise InputError(
            f"season: the hold-out covers {covered:.2g} of {said}; want at least {FEWEST_SEASONS}, "
            "or nobody knows what is usual at which time"
        )
    return SeasonCut(length, window, times // window, season.inputs)


def _check_phases(season: SeasonCut, blocks: Labels, parts: int, said: str) -> None:
    """InputError where the hold-out cannot know what is usual of inputs."""
    phase = season.phase(blocks)
    known = often_enough(phase, blocks * season.window // season.length)
    if parts > 1 or known.mean() < KNOWN_TIME:
        seasons = np.unique(blocks // parts * season.window // season.length).size
        raise InputError(
            f"season_inputs: the hold-out has blocks of {seasons} times {said}; want at least {FEWEST_OF_PHASE} at "
            "each time of it, or nobody knows what is usual then"
        )


def _season_length(said: str) -> int:
    """A duration, or so many years: the mean of the calendar's."""
    years = said.removesuffix("y")
    return int(years) * YEAR if said.endswith("y") and years.isdecimal() else duration(said, "season")


def season_text(length: int) -> str:
    """How a season is said."""
    return f"{length // YEAR}y" if length % YEAR == 0 else duration_text(length)


def _parts(windows: int, events: float) -> int:
    """Into how many blocks each of so many windows' lengths with so many events is cut."""
    if windows >= WHOLE_BLOCKS:
        return 1
    parts = min(math.ceil(BLOCKS_ADVISED / windows), int(events / SHORTEST_PART))
    return parts if windows * parts >= FEWEST_BLOCKS else 1


def _by_time(times: Labels, micro: int) -> tuple[Labels, int]:
    """The block of each event, -1 where it holds too few, and into how many each of these times is cut."""
    windows = _enough(times // micro, MINIMUM_EVENTS)
    there = windows >= 0
    number = np.unique(windows[there]).size
    parts = _parts(number, there.sum() / number) if number else 1
    if parts == 1:
        return windows, 1
    blocks = _enough(times % micro * parts // micro + windows * parts, SHORTEST_PART)
    return np.where(there, blocks, -1), parts


def _enough(numbers: Labels, fewest: int) -> Labels:
    """The same where a number is frequent enough, -1 elsewhere."""
    _, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
    return np.where((counts >= max(SHORT_BLOCK * np.median(counts), fewest))[place], numbers, -1)


def _kept(of_order: Labels, parts: int, season: SeasonCut | None) -> tuple[Labels, Labels]:
    """The blocks numbered anew, without those that are one too many, and the stretch of each."""
    block_numbers = np.unique(of_order[of_order >= 0])
    stretch = np.unique(block_numbers // parts, return_inverse=True)[1]
    if parts > 1 and stretch[-1] + 1 < FEWEST_STRETCHES:
        stretch = np.arange(block_numbers.size) * FEWEST_STRETCHES // block_numbers.size
    if block_numbers.size > BLOCKS_KEPT:
        latest = np.arange(block_numbers.size - LATEST_BLOCKS, block_numbers.size)
        if season is None:
            even = np.linspace(0, block_numbers.size - 1, BLOCKS_KEPT - LATEST_BLOCKS).astype(np.int64)
        else:
            even = _of_each_phase(season.phase(block_numbers))
        block_numbers = block_numbers[np.union1d(even, latest)]
    numbers = np.searchsorted(block_numbers, of_order)
    kept = (of_order >= 0) & (block_numbers[np.minimum(numbers, block_numbers.size - 1)] == of_order)
    return np.where(kept, numbers, -1), stretch[: block_numbers.size]


def _of_each_phase(phase: Labels) -> Labels:
    """As many blocks of each phase, spread evenly over the hold-out; each phase begins on another day, so that not all
    are of the same ones."""
    each = [np.flatnonzero(phase == one) for one in np.unique(phase)]
    number = max(BLOCKS_KEPT // len(each), FEWEST_OF_PHASE)
    begins = np.arange(len(each)) * GOLDEN % 1
    places = [(np.arange(number) + begin) / number for begin in begins]
    return np.concatenate([
        members[np.unique((at * members.size).astype(np.int64))] for at, members in zip(places, each, strict=True)
    ])  # fmt: skip


def summarised(
    cut: Cut,
    reference: Prepared,
    rows: HoldOut,
    raw: Matrix,
    unseen: Matrix,
    *,
    sampled: Labels,
    estimate: Callable[[Window], Vector],
) -> Blocks:
    """All that is kept of the blocks, from all hold-out rows at the reference's own resolution.

    `rows` has the posteriors that windows are compared by, `raw` those of the same rows as the model says them,
    `unseen` those calibrated out of fold; `sampled` are the rows in the reference's sample; `estimate` tells the class
    mix of calibrated events.
    """
    classes, order = reference.class_counts.size, np.argsort(cut.of_row, kind="stable")
    edges = np.searchsorted(cut.of_row[order], np.arange(cut.number + 1))
    members = [order[low:high] for low, high in pairwise(edges)]
    counts = cut.class_counts(rows.labels, classes)
    sums = np.stack(
        [_by_class(mapped_rows(_taken(rows, each), reference), rows.labels[each], classes) for each in members]
    )
    season = None if cut.season is None else cut.season.counted(rows.labels, classes)
    plain = BlockSums(sums, counts, cut.stretch, whole_windows=cut.parts == 1)
    asked = season is not None and cut.season is not None and cut.season.inputs
    mates = season.mates(cut.starts, cut.stretch) if season is not None and asked else None
    share = None if mates is None else explained(reference.moments, plain, plain.in_phases(mates))
    if mates is None or share is None or share < LEAST_EXPLAINED:
        mates = None
    cut = _with_neighbours(cut, plain.in_phases(mates), reference)
    mates = None if mates is None else replace(mates, stretch=cut.stretch)
    columns = np.zeros((rows.labels.size, 0)) if rows.features is None else rows.features
    compared = [
        compared_blocks(columns[:, j], profile, rows.labels, cut, counts, mates=mates)
        for j, profile in enumerate(reference.features)
    ]
    scores = [
        compared_blocks(rows.posteriors[:, y], column, rows.labels, cut, counts, mates=mates)
        for y, column in enumerate(reference.posteriors)
    ]
    return Blocks(
        length=cut.length,
        parts=cut.parts,
        stretch=cut.stretch,
        timed=cut.timed,
        starts=cut.starts,
        ends=cut.ends,
        of_sample=cut.of_row[sampled],
        counts=counts,
        sums=sums,
        distances=np.array([each.apart for each in compared]).reshape(-1, cut.number).T,
        score_distances=np.array([each.apart for each in scores]).T,
        missing=np.array([each.absent for each in compared]).reshape(-1, cut.number).T,
        posteriors=np.stack([_by_class(unseen[each], rows.labels[each], classes) for each in members]),
        estimates=np.stack([estimate(Window(unseen[each], _taken(rows, each).features)) for each in members]),
        losses=np.array([quality.brier(raw[each], rows.labels[each]) for each in members]),
        expected_losses=np.array([quality.expected_brier(raw[each], unseen[each]) for each in members]),
        season=season,
        seasonal=None if mates is None else seasonal_columns(compared, scores, mates),
        inputs_explained=share,
    )


def _with_neighbours(cut: Cut, blocks: BlockSums, reference: Prepared) -> Cut:
    """The same with neighbouring blocks that vary as one in one stretch.

    Between its neighbours a block of a stream that drifts lies nearer to the others than any window after the hold-out
    will lie to all of them.
    """
    if cut.parts > 1 or cut.number < FEWEST_BLOCKS:
        return cut
    together = min(alike_neighbours(reference.moments, blocks), max(cut.number // STRETCHES_KEPT, 1))
    stretches = -(-cut.number // together)
    return replace(cut, stretch=np.arange(cut.number) * stretches // cut.number)


def calendar(cut: Cut, features: Matrix, profiles: Sequence[FeatureProfile]) -> dict[int, str]:
    """The features that tell when an event was and not what, in words.

    They only ever rise, or fall: a year, a counter. Or a block's values occur in no other block: a date, an identifier.
    Numbers are looked at in equally filled cells, a few for each block.
    """
    if cut.number < WHOLE_BLOCKS:
        return {}
    calendar = {j: _tells_when(cut, features[:, j], profile) for j, profile in enumerate(profiles)}
    return {
        j: f"{profiles[j].feature.name} tells when an event was, not what: {why}. It is left out of all tests: every "
        "window would differ by it some day. Say `--ignore` if it is no feature"
        for j, why in calendar.items()
        if why
    }


def _tells_when(cut: Cut, values: Vector, profile: FeatureProfile) -> str:
    """Why a feature is a calendar; empty for one that is none."""
    in_order = values[cut.order]
    steps = np.diff(in_order[~np.isnan(in_order)])
    if profile.feature.kind == "number" and steps.any() and ((steps >= 0).all() or (steps <= 0).all()):
        return f"it only ever {'rises' if steps.max() > 0 else 'falls'} over the hold-out"
    share = _alone(cut, values, profile)
    return f"{share:.0%} of the values in a block of the hold-out occur in no other block" if share > CALENDAR else ""


def _alone(cut: Cut, values: Vector, profile: FeatureProfile) -> float:
    there = (cut.of_row >= 0) & ~np.isnan(values)
    if not there.any():
        return 0.0
    block, known = cut.of_row[there], values[there]
    cells = np.unique(known, return_inverse=True)[1]
    if profile.feature.kind == "number":
        edges = np.unique(np.quantile(known, np.linspace(0, 1, CALENDAR_CELLS * cut.number + 1)[1:-1]))
        cells = np.searchsorted(edges, known, side="right")
    number = int(cells.max()) + 1
    own = np.bincount(block * number + cells, minlength=cut.number * number).reshape(cut.number, number)
    return float(np.where(own == own.sum(axis=0), own, 0).sum() / own.sum())


def _by_class(rows: Matrix, labels: Labels, classes: int) -> Matrix:
    return np.stack([rows[labels == y].sum(axis=0) for y in range(classes)])


def _taken(rows: HoldOut, members: Labels) -> HoldOut:
    features = None if rows.features is None else rows.features[members]
    return HoldOut(rows.posteriors[members], rows.labels[members], features, rows.seed)

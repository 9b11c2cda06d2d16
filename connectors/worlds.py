"""A population with known truth, the classifier that scores it, and a timetable of what happens to it.

Class k of the population is a unit Gaussian around its own mean; the classifier is the exact Bayes posterior under
the reference's class mix, so under that mix it is perfectly calibrated. What a period changes is therefore all that
changes: the mix, the inputs (the classifier sees them changed, as a real one would), or a class it never saw.

Everything is drawn in blocks of events from a generator seeded by (seed, block): any event can be made again alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from monitor.errors import InputError
from monitor.ports.schema import Feature, StreamSchema

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

UNKNOWN = -1
"""The label of an event whose class the reference never saw."""

BLOCK = 1_000

_EVENTS, _HOLDOUT = 0, 1  # streams of random numbers, apart from each other


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of events and what is different in it; by default nothing is."""

    name: str
    events: int
    priors: tuple[float, ...] = ()
    """The class mix; empty means the reference's."""
    linear: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By feature: alpha and beta; the input becomes alpha * value + beta."""
    monotone: tuple[str, ...] = ()
    """Features whose input becomes sinh(value): the order stays, the distances do not."""
    unknown: float = 0.0
    """Share of events of a class that the reference never saw."""
    missing: Mapping[str, float] = field(default_factory=dict)
    """By feature: the share of events in which it is null."""
    malformed: float = 0.0
    """Share of records that are no event."""
    relabelled: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """By class: what a share of its events is called instead, and the share. Inputs and scores stay as they are."""

    @property
    def verdict(self) -> str:
        """What a perfect monitor would say."""
        if self.relabelled:
            return "concept-shift"
        moved_inputs = bool(self.linear or self.monotone or self.missing)
        if self.unknown:
            return "unknown-class"
        if self.priors:
            return "prior-and-covariate-shift" if moved_inputs else "prior-shift"
        return "covariate-shift" if moved_inputs else "stable"


@dataclass(frozen=True, slots=True)
class World:
    """The population and its classifier."""

    stream: str = "demo"
    classes: tuple[str, ...] = ("billing", "delivery", "returns")
    priors: tuple[float, ...] = (0.6, 0.3, 0.1)
    features: tuple[str, ...] = ("x1", "x2", "x3", "x4")
    separation: float = 2.0
    """Distance of each class's mean from the origin, in standard deviations."""
    seed: int = 0

    @property
    def schema(self) -> StreamSchema:
        """What the stream's events look like."""
        return StreamSchema(self.stream, self.classes, tuple(Feature(name) for name in self.features))

    @property
    def means(self) -> Floats:
        """One row per class: along the axes, then against them, then further out; the last row is the unknown class."""
        axes = len(self.features)
        means = np.zeros((len(self.classes) + 1, axes))
        for number in range(len(self.classes)):
            turn, axis = divmod(number, axes)
            means[number, axis] = self.separation * (1 + turn // 2) * (-1) ** turn
        means[-1] = -1.5 * self.separation
        return means

    def posteriors(self, inputs: Floats) -> Floats:
        """Bayes' rule under the reference's mix; a missing input is left out, as independent features allow."""
        seen = np.isfinite(inputs)
        values = np.where(seen, inputs, 0.0)
        known = self.means[:-1]
        # The terms of -|x - mean|^2 / 2 that differ between classes.
        logs = values @ known.T - 0.5 * seen @ (known**2).T + np.log(self.priors)
        scores = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def holdout(self, rows: int) -> "Population":
        """Labelled events under the reference's mix: what a reference is built from."""
        generator = np.random.default_rng((self.seed, _HOLDOUT))
        labels = generator.choice(len(self.classes), size=rows, p=_shares(self.priors))
        inputs = generator.normal(size=(rows, len(self.features))) + self.means[labels]
        return Population(labels, inputs, self.posteriors(inputs))


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """Made-up events of a classifier, as columns, with their labels."""

    labels: Integers
    """Class numbers, or `UNKNOWN`."""
    features: Floats
    posteriors: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Consecutive events of a timetable."""

    numbers: Integers
    population: Population
    malformed: NDArray[np.bool_]
    jitter: Floats
    lot: Floats
    """Uniform on [0, 1), of no meaning here: for times out of order, and for who gets a label."""


class Timetable:
    """Periods one after the other, in one world."""

    def __init__(self, world: World, periods: Sequence[Period]) -> None:
        self.world = world
        self.periods = tuple(periods)
        for period in self.periods:
            _check(world, period)
        self._ends = np.cumsum([period.events for period in self.periods])
        known = [_shares(period.priors or world.priors) for period in self.periods]
        self._mixes = np.array(
            [[*(mix * (1 - period.unknown)), period.unknown] for mix, period in zip(known, self.periods, strict=True)]
        )
        features, shape = world.features, (len(self.periods), len(world.features))
        self._alpha, self._beta = np.ones(shape), np.zeros(shape)
        self._bent, self._missing = np.zeros(shape, dtype=np.bool_), np.zeros(shape)
        for row, period in enumerate(self.periods):
            for name, (alpha, beta) in period.linear.items():
                self._alpha[row, features.index(name)], self._beta[row, features.index(name)] = alpha, beta
            for name in period.monotone:
                self._bent[row, features.index(name)] = True
            for name, share in period.missing.items():
                self._missing[row, features.index(name)] = share
        self._malformed = np.array([period.malformed for period in self.periods])

    @property
    def events(self) -> int:
        """How many events there are in all."""
        return int(self._ends[-1])

    def spans(self) -> Iterator[tuple[Period, int, int]]:
        """Each period with the numbers of its first event and of the one after its last."""
        first = 0
        for period in self.periods:
            yield period, first, first + period.events
            first += period.events

    def block(self, number: int) -> Block:
        """Events number * BLOCK to (number + 1) * BLOCK, or to the end."""
        numbers = np.arange(number * BLOCK, min((number + 1) * BLOCK, self.events))
        period = np.searchsorted(self._ends, numbers, side="right")
        # Whole blocks are drawn even at the end: the numbers of an event do not depend on what comes after it.
        generator = np.random.default_rng((self.world.seed, _EVENTS, number))
        of_class, of_malformed, jitter, lot = (generator.random(BLOCK)[: numbers.size] for _ in range(4))
        noise = generator.normal(size=(BLOCK, len(self.world.features)))[: numbers.size]
        of_missing = generator.random((BLOCK, len(self.world.features)))[: numbers.size]
        bounds = np.cumsum(self._mixes, axis=1)[:, :-1]
        drawn = (of_class[:, None] >= bounds[period]).sum(axis=1)
        inputs = noise + self.world.means[drawn]
        inputs = np.where(self._bent[period], np.sinh(inputs), inputs)
        inputs = self._alpha[period] * inputs + self._beta[period]
        inputs[of_missing < self._missing[period]] = np.nan
        labels = np.where(drawn == len(self.world.classes), UNKNOWN, drawn)
        of_label = generator.random(BLOCK)[: numbers.size]
        labels = self._relabelled(labels, period, of_label)
        population = Population(labels, inputs, self.world.posteriors(inputs))
        return Block(numbers, population, of_malformed < self._malformed[period], jitter, lot)

    def _relabelled(self, labels: Integers, period: Integers, lot: Floats) -> Integers:
        """What events are called in their period."""
        renamed = labels.copy()
        for number in np.unique(period).tolist():
            for name, (other, share) in self.periods[number].relabelled.items():
                theirs = (period == number) & (labels == self.world.classes.index(name)) & (lot < share)
                renamed[theirs] = self.world.classes.index(other)
        return renamed


def _check(world: World, period: Period) -> None:
    strangers = {*period.linear, *period.monotone, *period.missing} - set(world.features)
    if strangers:
        raise InputError(f"period {period.name!r}: want features among {world.features}, got {sorted(strangers)}")
    if period.priors and len(period.priors) != len(world.classes):
        raise InputError(f"period {period.name!r}: want {len(world.classes)} priors, got {len(period.priors)}")
    if any(len(pair) != 2 for pair in period.linear.values()):
        raise InputError(f"period {period.name!r}: want alpha and beta for each linear feature, got {period.linear}")
    renamed = {*period.relabelled, *(name for name, _ in period.relabelled.values())} - set(world.classes)
    if renamed:
        raise InputError(f"period {period.name!r}: want classes among {world.classes}, got {sorted(renamed)}")
    if period.events < 1:
        raise InputError(f"period {period.name!r}: want at least one event, got {period.events}")


def _shares(weights: Sequence[float]) -> Floats:
    total = np.asarray(weights, dtype=np.float64)
    return np.asarray(total / total.sum())


Form = Literal["object", "list"]


def tour(events: int) -> tuple[Period, ...]:
    """One period of each kind, calm ones in between: what a demo shows."""
    return (
        Period("calm", 2 * events),
        Period("class mix moves", 2 * events, priors=(0.25, 0.35, 0.4)),
        Period("calm again", events),
        Period("an input's unit changes", events, linear={"x1": (1.6, 0.8)}),
        Period("an input is bent", events, monotone=("x2",)),
        Period("mix and input move", events, priors=(0.25, 0.35, 0.4), linear={"x1": (1.6, 0.8)}),
        Period("a class nobody knew", events, unknown=0.1),
        Period("values go missing", events, missing={"x3": 0.3}),
        Period("a broken producer", events, malformed=0.05),
        Period("calm at last", events),
    )

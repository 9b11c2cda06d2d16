"""A population with known truth, the regressor that predicts it, and a timetable of what happens to it.

The label is a mixture of two lines in the inputs; the regressor is the exact mean under the reference's relation, so
that its errors are those of the noise and of not knowing the component. What a period changes is all that changes.
Drawn in blocks, as the worlds of classifiers are.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from connectors.worlds import BLOCK, Floats, Integers
from monitor.errors import InputError
from monitor.ports.schema import Feature, StreamSchema

_EVENTS, _HOLDOUT = 2, 3  # streams of random numbers, apart from each other and from those of classifiers


@dataclass(frozen=True, slots=True)
class RegressionPeriod:
    """A stretch of events and what is different in it; by default nothing is."""

    name: str
    events: int
    slopes: float = 1.0
    """What every slope is multiplied by, and the noise with them."""
    intercepts: float = 1.0
    """What every intercept is multiplied by."""
    linear: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """By feature: alpha and beta; the input becomes alpha * value + beta, and the label follows it."""
    labelled: float = 0.05
    """Share of events that carry their label."""

    @property
    def verdict(self) -> str:
        """What a perfect monitor would say."""
        if self.slopes != 1.0 or self.intercepts != 1.0:
            return "relation-shift"
        return "covariate-shift" if self.linear else "stable"


@dataclass(frozen=True, slots=True)
class RegressionWorld:
    """The population and its regressor."""

    stream: str = "prices"
    features: tuple[str, ...] = ("area", "rooms", "age")
    weights: tuple[float, ...] = (0.7, 0.3)
    """How frequent each component is."""
    coefficients: tuple[tuple[float, ...], ...] = ((20.0, 6.0, 3.0, -2.0), (14.0, 8.0, 1.0, -4.0))
    """Of each component: intercept and slopes."""
    sigmas: tuple[float, ...] = (1.0, 1.5)
    seed: int = 0

    @property
    def schema(self) -> StreamSchema:
        """What the stream's events look like."""
        return StreamSchema(self.stream, (), tuple(Feature(name) for name in self.features))

    def predictions(self, inputs: Floats) -> Floats:
        """The mean label under the reference's relation."""
        betas = np.array(self.weights) @ np.array(self.coefficients)
        return np.asarray(betas[0] + inputs @ betas[1:])

    def holdout(self, rows: int) -> "Labelled":
        """Labelled events under the reference's relation: what a reference is built from."""
        generator = np.random.default_rng((self.seed, _HOLDOUT))
        inputs = generator.normal(size=(rows, len(self.features)))
        ones = np.ones(rows)
        targets = self.targets(inputs, generator.random(rows), generator.normal(size=rows), ones, ones)
        return Labelled(self.predictions(inputs), targets, inputs)

    def targets(self, inputs: Floats, lot: Floats, noise: Floats, slopes: Floats, intercepts: Floats) -> Floats:
        """Labels; `lot` picks each event's component, and factors say by how much the relation differs."""
        component = np.searchsorted(np.cumsum(self.weights)[:-1], lot, side="right")
        betas = np.array(self.coefficients)[component]
        means = betas[:, 0] * intercepts + (betas[:, 1:] * inputs).sum(axis=1) * slopes
        return np.asarray(means + np.array(self.sigmas)[component] * slopes * noise)


@dataclass(frozen=True, slots=True, eq=False)
class Labelled:
    """Made-up events of a regressor, as columns, with their labels."""

    predictions: Floats
    targets: Floats
    features: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RegressionBlock:
    """Consecutive events of a timetable."""

    numbers: Integers
    population: Labelled
    labelled: np.ndarray[tuple[int], np.dtype[np.bool_]]
    jitter: Floats
    """Uniform on [0, 1): for times out of order."""


class RegressionTimetable:
    """Periods one after the other, in one world."""

    def __init__(self, world: RegressionWorld, periods: Sequence[RegressionPeriod]) -> None:
        self.world = world
        self.periods = tuple(periods)
        for period in self.periods:
            _check(world, period)
        self._ends = np.cumsum([period.events for period in self.periods])
        shape = (len(self.periods), len(world.features))
        self._alpha, self._beta = np.ones(shape), np.zeros(shape)
        for row, period in enumerate(self.periods):
            for name, (alpha, beta) in period.linear.items():
                column = world.features.index(name)
                self._alpha[row, column], self._beta[row, column] = alpha, beta
        self._slopes = np.array([period.slopes for period in self.periods])
        self._intercepts = np.array([period.intercepts for period in self.periods])
        self._labelled = np.array([period.labelled for period in self.periods])

    @property
    def events(self) -> int:
        """How many events there are in all."""
        return int(self._ends[-1])

    def spans(self) -> Iterator[tuple[RegressionPeriod, int, int]]:
        """Each period with the numbers of its first event and of the one after its last."""
        first = 0
        for period in self.periods:
            yield period, first, first + period.events
            first += period.events

    def block(self, number: int) -> RegressionBlock:
        """Events number * BLOCK to (number + 1) * BLOCK, or to the end."""
        numbers = np.arange(number * BLOCK, min((number + 1) * BLOCK, self.events))
        period = np.searchsorted(self._ends, numbers, side="right")
        # Whole blocks are drawn even at the end: the numbers of an event do not depend on what comes after it.
        generator = np.random.default_rng((self.world.seed, _EVENTS, number))
        of_component, of_label, jitter = (generator.random(BLOCK)[: numbers.size] for _ in range(3))
        noise = generator.normal(size=BLOCK)[: numbers.size]
        drawn = generator.normal(size=(BLOCK, len(self.world.features)))[: numbers.size]
        inputs = self._alpha[period] * drawn + self._beta[period]
        targets = self.world.targets(inputs, of_component, noise, self._slopes[period], self._intercepts[period])
        population = Labelled(self.world.predictions(inputs), targets, inputs)
        return RegressionBlock(numbers, population, of_label < self._labelled[period], jitter)


def _check(world: RegressionWorld, period: RegressionPeriod) -> None:
    strangers = set(period.linear) - set(world.features)
    if strangers:
        raise InputError(f"period {period.name!r}: want features among {world.features}, got {sorted(strangers)}")
    if any(len(pair) != 2 for pair in period.linear.values()):
        raise InputError(f"period {period.name!r}: want alpha and beta for each linear feature, got {period.linear}")
    if period.events < 1:
        raise InputError(f"period {period.name!r}: want at least one event, got {period.events}")


def regression_tour(events: int) -> tuple[RegressionPeriod, ...]:
    """One period of each kind, calm ones in between: what a demo shows. Labels are scarce towards the end."""
    return (
        RegressionPeriod("calm", 2 * events),
        RegressionPeriod("an input moves", events, linear={"area": (1.0, 0.4)}),
        RegressionPeriod("calm again", events),
        RegressionPeriod("all slopes double", 2 * events, slopes=2.0),
        RegressionPeriod("back to calm", events),
        RegressionPeriod("intercepts halve", events, intercepts=0.5),
        RegressionPeriod("calm once more", events),
        RegressionPeriod("slopes x 1.5, few labels", 4 * events, slopes=1.5, labelled=0.01),
        RegressionPeriod("calm at last", events),
        RegressionPeriod("labels stop", events, labelled=0.0),
    )

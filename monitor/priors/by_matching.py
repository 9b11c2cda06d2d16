"""Registry entries that match means of feature maps: acc-qp (= BBSE+), pacc (= soft BBSE), dfm-*, each hard and soft.

The reference is reduced once. With A the class means in the map's coordinates and phi the map of an event,

    rows         rows of each class
    gram         A A'                (classes, classes)
    projection   A                   (classes, D): an event's inner products with the class means are A phi
    variances    V_ik                variance within class i of psi_k, psi = K A phi, K the constrained inverse of gram
    deficits     (2, classes)        per class, the variance of t = 1' G^-1 A phi, and the deficit that the noise of the
                                     class means alone brings about (erratum 5)
    covariances                      within class i, of psi_k and t: what the soft form's shares need

so a window costs one mean of phi, and its estimate and interval cost microseconds.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache

import numpy as np

from monitor.arrays import Labels, Matrix, Vector, column_sums, pseudo_inverse
from monitor.errors import InputError
from monitor.limits import KERNEL_ROWS, MAP_VALUES_KEPT, REFERENCES_READY
from monitor.priors import intervals, maps, matching
from monitor.priors.estimate import (
    Estimator,
    HoldOut,
    PriorEstimate,
    ReferenceView,
    Statistics,
    beside_rows,
    frozen,
    labelled_rows,
    no_events,
    nothing,
    row_blocks,
    sum_of,
    usable,
    usable_in,
)
from monitor.priors.maps import POSTERIORS, FeatureMap, Kept, Space
from monitor.priors.simplex import constrained_inverse, identifiable
from monitor.tolerances import SINGULAR
from monitor.windows import Window


def entries(name: str, feature_map: FeatureMap, space: Space, *, raw: bool = False) -> list[Estimator]:
    """The hard and the soft estimator of a map; they share statistics. `raw` maps see the posteriors as they are: they
    are the quick ones."""
    way = _Matching(name, feature_map, space, raw)
    needs_features = space != "posteriors"
    most_rows = None if raw else KERNEL_ROWS
    summed = feature_map if raw else None
    return [
        Estimator(
            name, way.summarise, way.hard,
            needs_features=needs_features, always=raw, most_rows=most_rows, summed=summed,
        ),
        Estimator(f"{name}-soft", nothing, way.soft, needs_features=needs_features),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Matching:
    name: str
    feature_map: FeatureMap
    space: Space
    raw: bool

    def summarise(self, hold_out: HoldOut) -> Statistics:
        g, labels, counts = labelled_rows(hold_out)
        features = None if hold_out.features is None else hold_out.features[hold_out.labels >= 0]
        if (features is None and self.space != "posteriors") or not (counts > 0).all():
            return {}
        scaling = {} if self.raw else maps.fit_inputs(self.space, g, features)
        x = g if self.raw else maps.inputs(scaling, self.space, g, features)
        kept = scaling | self.feature_map.fit(x, labels, np.random.default_rng(hold_out.seed))
        return kept | reduce(self.feature_map, kept, x, labels, counts)

    def hard(self, window: Window, reference: ReferenceView) -> PriorEstimate:
        return self._estimate(window, reference, soft=False)

    def soft(self, window: Window, reference: ReferenceView) -> PriorEstimate:
        return self._estimate(window, reference, soft=True)

    def _estimate(self, window: Window, reference: ReferenceView, soft: bool) -> PriorEstimate:
        method = f"{self.name}-soft" if soft else self.name
        kept = reference.statistics[self.name]
        if not kept:
            wanted = "rows of every class" + ("" if self.space == "posteriors" else ", with features,")
            raise InputError(f"{method}: want {wanted} in the reference")
        if self.space != "posteriors" and window.features is None:
            raise InputError(f"{method}: want features in the window, got none")
        g, dropped = usable_in(window)
        features = window.features
        if dropped and features is not None:
            features = features[usable(window.posteriors)]
        if g.shape[0] == 0:
            return no_events(method, reference.source_priors, dropped)
        more, events = beside_rows(window, self.feature_map.name) if self.raw else (0.0, 0)
        events += g.shape[0]
        images = (self.feature_map.values(kept, block) for block in self._blocks(kept, g, features))
        total = sum_of(window, self.feature_map) if self.raw else sum(map(column_sums, images))
        mean = self.feature_map.linear(kept, (total + more) / events)
        estimate = from_mean(_geometry(reference, self.name), mean, events, soft)
        return replace(estimate, method=method, dropped=dropped)

    def _blocks(self, kept: Kept, g: Matrix, features: Matrix | None) -> Iterator[Matrix]:
        """The map's input, a cache-sized block at a time."""
        for begin, end in row_blocks(g.shape[0], kept["projection"].shape[1]):
            part = None if features is None else features[begin:end]
            yield maps.inputs(kept, self.space, g[begin:end], part)


@dataclass(frozen=True, eq=False)
class Geometry:
    """What is kept of a reference, and all that follows from it alone."""

    kept: Kept

    @cached_property
    def inverse(self) -> Matrix:
        """K."""
        return constrained_inverse(self.kept["gram"])

    @cached_property
    def inverse_softly(self) -> Matrix:
        """G^-1, where noise may be among the classes."""
        return pseudo_inverse(self.kept["gram"], SINGULAR)

    @cached_property
    def told_apart(self) -> bool:
        """Whether different mixtures always have different means; and"""
        return identifiable(self.kept["gram"])

    @cached_property
    def told_apart_softly(self) -> bool:
        """whether mixtures with noise that maps to nothing do."""
        means = self.kept["projection"]
        return matching.lambda_min(means) > SINGULAR * float((means**2).sum())


@lru_cache(maxsize=REFERENCES_READY)
def _geometry(reference: ReferenceView, name: str) -> Geometry:
    return Geometry(reference.statistics[name])


def reduce(feature_map: FeatureMap, kept: Kept, x: Matrix, labels: Labels, counts: Vector) -> dict[str, Matrix]:
    """The reference's sufficient statistics, in three passes over its rows."""
    width = feature_map.apply(kept, x[:1]).shape[1]

    def mapped(b: int, e: int) -> Matrix:
        return feature_map.apply(kept, x[b:e])

    images = cache(mapped) if x.shape[0] * width <= MAP_VALUES_KEPT else mapped
    rows = MappedRows(images, width, members(labels, counts.size), counts)
    variances, softly = rows.variances, rows.softly
    return rows.means | {
        "variances": variances[:, :-1],
        "deficits": np.vstack([variances[:, -1], softly["deficits"]]),
        "covariances": softly["covariances"],
    }


def members(labels: Labels, classes: int) -> Matrix:
    """(classes, rows): 1 for the class of each row."""
    return np.asarray((labels == np.arange(classes)[:, None]).astype(np.float64))


@dataclass(frozen=True, eq=False)
class MappedRows:
    """Labelled rows of a reference under a map. What an answer needs of them, what its error does, and what else the
    soft form does is a pass each."""

    images: Callable[[int, int], Matrix]
    """From a row to another."""
    width: int
    member: Matrix
    counts: Vector

    @cached_property
    def means(self) -> dict[str, Matrix]:
        """`rows`, `gram` and `projection`."""
        sums = np.zeros((self.counts.size, self.width))
        for member, images in self._blocks():
            sums += member @ images
        means = sums / self.counts[:, None]
        return {"rows": self.counts, "gram": means @ means.T, "projection": means}

    @property
    def variances(self) -> Matrix:
        """V, and behind it the variances of t."""
        classes = self.counts.size
        first, second = np.zeros((classes, classes + 1)), np.zeros((classes, classes + 1))
        for member, images in self._blocks():
            effects = images @ self._influence.T
            first += member @ effects
            second += member @ effects**2
        return np.maximum((second - first**2 / self.counts[:, None]) / self._fewer, 0.0)

    @property
    def softly(self) -> dict[str, Matrix]:
        """`deficits` but for the variances of t, and `covariances`."""
        counts, classes = self.counts, self.counts.size
        first, mixed, norms = np.zeros((classes, classes + 1)), np.zeros((classes, classes)), np.zeros(classes)
        for member, images in self._blocks():
            effects = images @ self._influence.T
            first += member @ effects
            mixed += member @ (effects[:, :classes] * effects[:, classes:])
            norms += member @ (images**2).sum(axis=1)
        spread = np.maximum(norms / counts - np.diag(self.means["gram"]), 0.0) / counts
        return {
            "deficits": np.abs(self._shortfall) * spread,
            "covariances": (mixed - first[:, :classes] * first[:, classes:] / counts[:, None]) / self._fewer,
        }

    @cached_property
    def _shortfall(self) -> Vector:
        return np.asarray(pseudo_inverse(self.means["gram"], SINGULAR).sum(axis=0))

    @cached_property
    def _influence(self) -> Matrix:
        """What an image moves psi and t by."""
        means = self.means["projection"]
        return np.vstack([constrained_inverse(self.means["gram"]) @ means, self._shortfall @ means])

    @property
    def _fewer(self) -> Matrix:
        """n - 1: with few rows of a class the plain variance is too small, and so would be every interval."""
        return np.maximum(self.counts - 1.0, 1.0)[:, None]

    def _blocks(self) -> Iterator[tuple[Matrix, Matrix]]:
        for b, e in row_blocks(self.member.shape[1], self.width):
            yield self.member[:, b:e], self.images(b, e)


def from_mean(known: Geometry, mean: Vector, events: int, soft: bool) -> PriorEstimate:
    """The estimate and its interval from the window's mean of the map; soft priors are shares of what is explained."""
    if not soft:
        return with_errors(known, mean, nearest(known, mean, events))
    kept, scores = known.kept, known.kept["projection"] @ mean
    estimate = matching.match_products(kept["gram"], scores, soft, events, unique=known.told_apart_softly)
    explained = float(estimate.priors.sum())
    priors = estimate.priors / explained if explained > 0 else np.full(scores.size, 1.0 / scores.size)
    estimate = replace(estimate, priors=frozen(priors), deficit_error=_deficit_error(kept, priors, events))
    return _with_soft_interval(known, scores, estimate, explained) if estimate.unique and explained > 0 else estimate


def nearest(known: Geometry, mean: Vector, events: int) -> PriorEstimate:
    """The hard estimate without its interval: of the reference it takes the means alone."""
    kept = known.kept
    scores = kept["projection"] @ mean
    return matching.match_products(kept["gram"], scores, soft=False, events=events, unique=known.told_apart)


def with_errors(known: Geometry, mean: Vector, estimate: PriorEstimate) -> PriorEstimate:
    """The hard estimate with its interval, where there is one answer only."""
    if not estimate.unique:
        return estimate
    kept = known.kept
    errors = intervals.standard_errors(kept["variances"], estimate.priors, kept["rows"], estimate.events)
    return intervals.around(estimate, errors, _unconstrained(known, kept["projection"] @ mean))


def _with_soft_interval(known: Geometry, scores: Vector, estimate: PriorEstimate, explained: float) -> PriorEstimate:
    """The interval of the shares b / 1'b of what is explained, b = G^-1 A mean, and not that of the hard form, which
    noise moves.

    With u = G^-1 A phi and t = 1'u an event moves share k by (u_k - a_k t) / 1'b = (psi_k + (w_k - a_k) t) / 1'b,
    w = G^-1 1 / 1'G^-1 1. The noise maps to nothing: as many events count as are explained.
    """
    kept, inverse = known.kept, known.inverse_softly
    loads = inverse.sum(axis=0)
    lean = loads / loads.sum() - estimate.priors
    variances = kept["variances"] + 2.0 * lean * kept["covariances"] + lean**2 * kept["deficits"][0][:, None]
    events = max(round(explained * estimate.events), 1)
    errors = intervals.standard_errors(np.maximum(variances, 0.0), estimate.priors, kept["rows"], events)
    shares = inverse @ scores
    centre = shares / shares.sum() if shares.sum() > 0 else None
    return intervals.around(estimate, errors, centre)


def _unconstrained(known: Geometry, scores: Vector) -> Vector:
    """The best mixture without bounds: normally distributed even where the truth is on the border."""
    uniform = np.full(scores.size, 1.0 / scores.size)
    return np.asarray(uniform + known.inverse @ (scores - known.kept["gram"] @ uniform))


def _deficit_error(kept: Kept, priors: Vector, events: int) -> float:
    """Root mean square of the deficit that label shift alone would show: its variance, and its bias."""
    variances, biases = kept["deficits"]
    variance = float((priors**2 / kept["rows"]) @ variances + priors @ variances / events)
    return float(np.sqrt(variance + float(priors @ biases) ** 2))


PACC, PACC_SOFT = entries("pacc", POSTERIORS, "posteriors", raw=True)

"""What Dussap et al. measure: contaminated mixtures, a class that the source lacks, and how tight the bounds are."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression

from monitor.arrays import Labels, Matrix, Vector
from monitor.priors import counting, intervals, maps, matching
from monitor.priors.maps import FeatureMap
from monitor.priors.simplex import minimise
from tests.priors.papers import Contamination

EVENTS = 10_000
KINDS = ("background", "far", "middle")
SHARES = (0.0, 0.1, 0.2, 0.3)
METHODS = ("soft RFF", "RFF", "soft energy", "energy", "soft BBSE+", "BBSE+")
MAPS = ("RFF", "energy", "BBSE+")
ORACLES = ("B-perp RFF", "B-parallel RFF", "B-perp BBSE+", "B-parallel BBSE+")
CONFIDENCE = 0.95

Images = Callable[[Matrix], Matrix]


@dataclass(frozen=True, slots=True)
class Source:
    """Feature maps that were fitted to a labelled sample, and its classes' means under them."""

    images: dict[str, Images]
    means: dict[str, Matrix]
    counts: Vector

    @classmethod
    def of(cls, x: Matrix, labels: Labels, predict: Images, seed: int) -> "Source":
        """Random Fourier features of the bandwidth with the largest Delta_min, the energy kernel, and predictions."""
        rng, scale = np.random.default_rng(seed), maps.fit_inputs("features", x, x)
        inputs = maps.inputs(scale, "features", x, x)

        def fitted(feature_map: FeatureMap) -> Images:
            kept = feature_map.fit(inputs, labels, rng)
            return lambda rows: feature_map.apply(kept, maps.inputs(scale, "features", rows, rows))

        images: dict[str, Images] = {
            "RFF": fitted(maps.RFF),
            "energy": fitted(maps.ENERGY),
            "BBSE+": lambda rows: counting.predictions(predict(rows)),
        }
        counts = np.bincount(labels).astype(np.float64)
        means = {}
        for name, image in images.items():
            found = image(x)
            means[name] = np.array([found[labels == y].mean(axis=0) for y in range(counts.size)])
        return cls(images, means, counts)

    def estimate(self, name: str, mean: Vector, soft: bool) -> Vector:
        """Shares of all events: what soft matching leaves over belongs to no class."""
        return matching.match(self.means[name], mean, soft).priors


def contaminated(dimensions: int, repetition: int, events: int = EVENTS) -> Vector:
    """Figure 1, one mixture: (kinds of noise, shares, methods and oracles) in one row."""
    world = Contamination.draw(repetition, dimensions, events, [])
    source = Source.of(world.source, world.source_labels, world.model.predict_proba, repetition)
    clean = {name: image(world.window).mean(axis=0) for name, image in source.images.items()}
    rows = []
    for kind in KINDS:
        noise = world.noise(kind, round(events * SHARES[-1] / (1 - SHARES[-1])))
        images = {name: image(noise) for name, image in source.images.items()}
        for share in SHARES:
            some = round(events * share / (1 - share))
            means = {name: (clean[name] * events + images[name][:some].sum(axis=0)) / (events + some) for name in MAPS}
            errors = _errors(source, means, world.truth * (1 - share))
            rows.append([*errors, *_oracles(source, means, images, share)])
    return np.ravel(rows)


def _oracles(source: Source, means: dict[str, Vector], images: dict[str, Matrix], share: float) -> list[float]:
    found = []
    for name in ("RFF", "BBSE+"):
        noise = images[name].mean(axis=0) if share else np.zeros_like(means[name])
        found += [orthogonal(source.means[name], means[name]), parallel(source.means[name], noise)]
    return found


def orthogonal(class_means: Matrix, window_mean: Vector) -> float:
    """B-perp of Theorem 2 with the dummy class: the root of the distance from the hull of the class means and 0."""
    hull = np.vstack([class_means, np.zeros(class_means.shape[1])])
    nearest = minimise(hull @ hull.T, hull @ window_mean).point @ hull
    return math.sqrt(float(np.linalg.norm(window_mean - nearest)))


def parallel(class_means: Matrix, noise_mean: Vector) -> float:
    """B-parallel under contamination: how long the noise's image is in the span of the class means."""
    basis = np.linalg.qr(class_means.T)[0]
    return float(np.linalg.norm(basis.T @ noise_mean))


def corollary_1(source: Source, name: str, *, events: int, share: float, noise_mean: Vector) -> float:
    """Soft matching: |a - a*| <= (3 e_n + e_m + sqrt(2 a_0 e_n |Phi(Q_0)|) + |Pi Phi(Q_0)|) / sqrt(lambda_min).

    With the root where erratum 2 has it. e_n = C R_{c/delta} / sqrt(min n_i), e_m = C R_{1/delta} / sqrt(m),
    R_x = 2 + sqrt(2 ln 2x); C = 1, as no image of these maps is longer.
    """
    e_n, e_m = _sampling(source, events)
    away = math.sqrt(2 * share * e_n * float(np.linalg.norm(noise_mean))) + parallel(source.means[name], noise_mean)
    return (3 * e_n + e_m + away) / math.sqrt(matching.lambda_min(source.means[name]))


def theorem_2(source: Source, name: str, *, events: int, perp: float, along: float) -> float:
    """Hard matching: |a - a*| <= (3 e_n + e_m + sqrt(2 e_n) B-perp + B-parallel) / sqrt(Delta_min)."""
    e_n, e_m = _sampling(source, events)
    return (3 * e_n + e_m + math.sqrt(2 * e_n) * perp + along) / math.sqrt(matching.delta_min(source.means[name]))


def _sampling(source: Source, events: int) -> tuple[float, float]:
    def reach(x: float) -> float:
        return 2 + math.sqrt(2 * math.log(2 * x))

    delta = 1 - CONFIDENCE
    e_n = reach(source.counts.size / delta) / math.sqrt(source.counts.min())
    return e_n, reach(1 / delta) / math.sqrt(events)


def bounded(seed: int, events: int = 2_000) -> Vector:
    """Errors over bounds, (Theorem 1, Corollary 1, Theorem 2) by map RFF and BBSE+, and how loose Theorem 1 is.

    Corollary 1: a fifth of the window is a class far away. Theorem 2: every class has moved by half a deviation.
    What the bounds ask of the populations is read from five times as many events.
    """
    dimensions = 2 + seed % 5
    world = Contamination.draw(seed, dimensions, events, [])
    source = Source.of(world.source, world.source_labels, world.model.predict_proba, seed)
    moved = world.window + 0.5 * world.generator.normal(size=dimensions) / math.sqrt(dimensions)
    noise = world.noise("far", events * 5)
    shift = moved[0] - world.window[0]
    found = []
    for name in ("RFF", "BBSE+"):
        image, means = source.images[name], source.means[name]
        clean = image(world.window).mean(axis=0)
        bound_1 = intervals.error_bound(matching.delta_min(means), 1.0, source.counts, events, priors=world.truth)
        found.append(float(np.linalg.norm(source.estimate(name, clean, False) - world.truth)) / bound_1)
        some = round(events * 0.25)
        mixed = (clean * events + image(noise[:some]).sum(axis=0)) / (events + some)
        bound_c = corollary_1(source, name, events=events + some, share=0.2, noise_mean=image(noise).mean(axis=0))
        found.append(float(np.linalg.norm(source.estimate(name, mixed, True) - 0.8 * world.truth)) / bound_c)
        there = _populations(world, events * 5, shift, image)
        perp, along = perturbation(means, there, world.truth)
        bound_2 = theorem_2(source, name, events=events, perp=perp, along=along)
        estimate = source.estimate(name, image(moved).mean(axis=0), False)
        found.append(float(np.linalg.norm(estimate - world.truth)) / bound_2)
    return np.array(found)


def _populations(world: Contamination, events: int, shift: Vector, image: Images) -> Matrix:
    """The image of each class as it is in the target."""
    each = events // world.truth.size
    return np.array(
        [image(c + shift + world.generator.normal(size=(each, shift.size))).mean(axis=0) for c in world.centres]
    )


def perturbation(means: Matrix, moved: Matrix, truth: Vector) -> tuple[float, float]:
    """B-perp and B-parallel of Theorem 2: from the hull of the class means; and along their affine span."""
    target = truth @ moved
    nearest = minimise(means @ means.T, means @ target).point @ means
    basis = np.linalg.qr((means[1:] - means[0]).T)[0]
    onto = means[0] + (moved - means[0]) @ basis @ basis.T
    return math.sqrt(float(np.linalg.norm(target - nearest))), float(np.linalg.norm(means - onto, axis=1).max())


def left_out(x: Matrix, y: Labels, gone: int, seed: int) -> Vector:
    """Figure 2's design, half of the rows source and half target: one class, or none (-1), is not in the source.

    Errors of METHODS, and the share of that class in the target, where some classes are halved.
    """
    rng = np.random.default_rng(seed)
    order, halved = rng.permutation(y.size), rng.random(int(y.max()) + 1) < 0.5
    here, there = order[: y.size // 2], order[y.size // 2 :]
    there = there[~halved[y[there]] | (rng.random(there.size) < 0.5)]
    here = here[y[here] != gone]
    kinds, labels = np.unique(y[here], return_inverse=True)
    scaled = (x - x.mean(axis=0)) / x.std()
    model = LogisticRegression(max_iter=300).fit(scaled[here], labels)
    source = Source.of(scaled[here], labels, model.predict_proba, seed)
    truth = np.array([float(np.mean(y[there] == kind)) for kind in kinds])
    means = {name: image(scaled[there]).mean(axis=0) for name, image in source.images.items()}
    return np.array([*_errors(source, means, truth), 1 - truth.sum()])


def _errors(source: Source, means: dict[str, Vector], truth: Vector) -> list[float]:
    """Of METHODS, in their order."""
    pairs = ((name, soft) for name in MAPS for soft in (True, False))
    return [float(np.linalg.norm(source.estimate(name, means[name], soft) - truth)) for name, soft in pairs]

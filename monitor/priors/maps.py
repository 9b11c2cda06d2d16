"""Feature maps: what an event is turned into before means are matched. Everything that draws or chooses is done once,
on the reference, and kept as plain arrays; applying a map to a window is a pure function of those arrays.

    one-hot       the predicted class                                 (dussap, Proposition 1: BBSE)
    posteriors    the posteriors themselves                           (soft BBSE)
    rff           random Fourier features of the Gaussian kernel      (dussap, eq 10; eq 11 with `offsets`)
    gaussian      exp(-|x - y|^2 / 2 sigma^2) against landmarks       (dussap 2.1)
    energy        |x| + |y| - |x - y| against landmarks               (dussap 2.1)

A kernel map stands for its projection on the span of the landmarks: with every reference row a landmark it is exact.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from monitor.arrays import Labels, Matrix, Vector
from monitor.errors import InputError
from monitor.priors.counting import predictions
from monitor.priors.simplex import smallest_curvature
from monitor.tolerances import BANDWIDTH_ROWS, BANDWIDTHS, FARTHEST, FOURIER_FEATURES, LANDMARKS, SINGULAR

Space = Literal["posteriors", "features", "both"]
Kept = Mapping[str, "Vector | Matrix"]


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """`fit(rows, labels, generator)` is run on the reference, `apply(kept, rows)` on everything."""

    name: str
    fit: Callable[[Matrix, Labels, np.random.Generator], dict[str, Matrix]]
    values: Callable[[Kept, Matrix], Matrix]
    """The map but for the linear part that comes last in some."""
    bound: float
    """C of dussap's (A2): no image is longer; infinite where the kernel is unbounded."""

    def apply(self, kept: Kept, rows: Matrix) -> Matrix:
        """The image of each row."""
        return self.linear(kept, self.values(kept, rows))

    def linear(self, kept: Kept, values: Matrix) -> Matrix:
        """Images of values; of mean values the mean image, in a third of the time."""
        return np.asarray(values @ kept["whitening"]) if "whitening" in kept else values


def fit_inputs(space: Space, posteriors: Matrix, features: Matrix | None) -> dict[str, Vector]:
    """Centre and scale of the map's input columns. The centre is the reference's mean, which fixes the origin that soft
    energy matching depends on (erratum 4); each block of columns is scaled to a total variance of one.
    """
    kept: dict[str, Vector] = {}
    for name, block in _blocks(space, posteriors, features):
        present = np.isfinite(block)
        count = np.maximum(present.sum(axis=0), 1)
        centre = (np.where(present, block, 0.0) / count).sum(axis=0)
        away = np.where(present, block, centre) - centre
        # In units of the largest, whose square may be beyond the range of floats.
        largest = np.abs(away).max(axis=0, initial=0.0)
        away /= np.where(largest > 0, largest, 1.0)
        spread = largest * np.sqrt((away**2).sum(axis=0) / count)
        if name == "features":
            scale = np.where(spread > 0, spread, 1.0) * np.sqrt(block.shape[1])
        else:
            scale = np.full(block.shape[1], np.sqrt(max(float((spread**2).sum()), np.finfo(np.float64).tiny)))
        kept |= {f"{name}_centre": centre, f"{name}_scale": scale}
    return kept


def inputs(kept: Kept, space: Space, posteriors: Matrix, features: Matrix | None) -> Matrix:
    """The columns that the map works on; a missing value becomes the reference's mean, an absurd one is cut."""
    columns = [
        np.clip(np.nan_to_num((block - kept[f"{name}_centre"]) / kept[f"{name}_scale"], nan=0.0), -FARTHEST, FARTHEST)
        for name, block in _blocks(space, posteriors, features)
    ]
    return columns[0] if len(columns) == 1 else np.hstack(columns)


def bandwidth(rows: Matrix, labels: Labels, generator: np.random.Generator) -> float:
    """The Gaussian bandwidth of greatest Delta_min, the only part of the error bound that depends on it (dussap 3.1).

    Tried are multiples of the median distance between rows, on a stratified sample. For this choice alone a row is not
    compared with itself: that part of Delta_min is 1 / n_i at any bandwidth, and in twenty dimensions it made the
    smallest one win, under which no two events are alike and the soft form explains nothing.
    """
    chosen = stratified(labels, BANDWIDTH_ROWS, generator)
    some = np.ascontiguousarray(rows[chosen], dtype=np.float64)
    return _bandwidth(some.tobytes(), rows.shape[1], labels[chosen].astype(np.int64).tobytes())


@lru_cache(maxsize=3)  # spaces: posteriors, features, both
def _bandwidth(rows: bytes, columns: int, labels: bytes) -> float:
    """Of one sample. The maps of one space draw the same, and the choice is most of what their fit costs."""
    x, members = np.frombuffer(rows).reshape(-1, columns), _memberships(np.frombuffer(labels, dtype=np.int64))
    squares = _square_distances(x, x)
    above = squares[np.triu_indices_from(squares, 1)]
    typical = float(np.sqrt(np.median(above[above > 0]))) if (above > 0).any() else 1.0
    sizes = np.maximum(1.0 / members.max(axis=1), 2.0)
    scores = []
    for factor in BANDWIDTHS:
        gram = members @ np.exp(-squares / (2.0 * (factor * typical) ** 2)) @ members.T
        np.fill_diagonal(gram, (np.diag(gram) * sizes - 1.0) / (sizes - 1.0))
        scores.append(smallest_curvature(gram))
    return float(BANDWIDTHS[int(np.argmax(scores))]) * typical


def stratified(labels: Labels, size: int, generator: np.random.Generator) -> Labels:
    """Row numbers of a sample without replacement that holds as much of each class as it can get, evenly."""
    classes, counts = np.unique(labels, return_counts=True)
    share = max(size // max(classes.size, 1), 1)
    # Classes with less than an even share leave room for the others.
    for _ in range(classes.size):
        spare = size - np.minimum(counts, share).sum()
        larger = int((counts > share).sum())
        if spare < max(larger, 1) or larger == 0:
            break
        share += int(spare // larger)
    picked = [
        generator.choice(np.flatnonzero(labels == label), min(int(count), share), replace=False)
        for label, count in zip(classes, counts, strict=True)
    ]
    return np.sort(np.concatenate(picked)).astype(np.int64) if picked else np.zeros(0, dtype=np.int64)


def fourier(rows: Matrix, frequencies: Matrix, offsets: Vector | None = None) -> Matrix:
    """Random Fourier features of `rows`.

    Without offsets sqrt(2/D) [cos(w'x), sin(w'x)] over D/2 frequencies (eq 10), with them sqrt(2/D) cos(w'x + b) over
    D (eq 11), which the paper finds worse in variance and bound.

    With h the tangent of half the angle, which NumPy has many at once, the cosine is 2 / (1 + h^2) - 1 and the sine
    2 h / (1 + h^2), to the last bit or two and in a tenth of the time.
    """
    angles = rows @ frequencies.T
    if offsets is not None:
        angles += offsets
    angles *= 0.5
    tangents = np.tan(angles, out=angles)
    doubled = np.square(tangents)
    doubled += 1.0
    np.divide(2.0, doubled, out=doubled)
    if offsets is not None:
        doubled -= 1.0
        return np.asarray(np.sqrt(2.0 / offsets.size) * doubled)
    images = np.empty((rows.shape[0], 2 * frequencies.shape[0]))
    np.subtract(doubled, 1.0, out=images[:, : frequencies.shape[0]])
    np.multiply(tangents, doubled, out=images[:, frequencies.shape[0] :])
    images *= np.sqrt(1.0 / frequencies.shape[0])
    return images


def gaussian_kernel(rows: Matrix, others: Matrix, sigma: float) -> Matrix:
    """exp(-|x - y|^2 / (2 sigma^2))."""
    squares = _square_distances(rows, others)
    squares *= -0.5 / sigma**2
    return np.exp(squares, out=squares)


def energy_kernel(rows: Matrix, others: Matrix) -> Matrix:
    """|x| + |y| - |x - y|, with the origin where the caller centred its rows."""
    distances = _square_distances(rows, others)
    np.sqrt(distances, out=distances)
    np.subtract(np.linalg.norm(others, axis=1), distances, out=distances)
    distances += np.linalg.norm(rows, axis=1)[:, None]
    return distances


def _blocks(space: Space, posteriors: Matrix, features: Matrix | None) -> list[tuple[str, Matrix]]:
    blocks: list[tuple[str, Matrix]] = []
    if space in {"features", "both"}:
        if features is None:
            raise InputError(f"features: want them for matching on {space}, got none")
        blocks.append(("features", features))
    if space in {"posteriors", "both"}:
        blocks.append(("posteriors", posteriors))
    return blocks


def _memberships(labels: Labels) -> Matrix:
    """Row i averages over the rows of class i."""
    present = np.unique(labels)
    member = (labels == present[:, None]).astype(np.float64)
    return np.asarray(member / member.sum(axis=1, keepdims=True))


def _square_distances(rows: Matrix, others: Matrix) -> Matrix:
    """|x|^2 - 2 x'y + |y|^2, in one product."""
    left = np.column_stack([rows, np.einsum("ij,ij->i", rows, rows), np.ones(len(rows))])
    right = np.column_stack([-2.0 * others, np.ones(len(others)), np.einsum("ij,ij->i", others, others)])
    squares: Matrix = left @ right.T
    np.maximum(squares, 0.0, out=squares)
    return squares


def _fit_fourier(rows: Matrix, labels: Labels, generator: np.random.Generator) -> dict[str, Matrix]:
    sigma = bandwidth(rows, labels, generator)
    return {"frequencies": generator.normal(size=(FOURIER_FEATURES // 2, rows.shape[1])) / sigma}


def _fit_gaussian(rows: Matrix, labels: Labels, generator: np.random.Generator) -> dict[str, Matrix]:
    sigma = bandwidth(rows, labels, generator)
    landmarks = rows[stratified(labels, LANDMARKS, generator)]
    return whitened(landmarks, gaussian_kernel(landmarks, landmarks, sigma)) | {"sigma": np.array([sigma])}


def _fit_energy(rows: Matrix, labels: Labels, generator: np.random.Generator) -> dict[str, Matrix]:
    landmarks = rows[stratified(labels, LANDMARKS, generator)]
    return whitened(landmarks, energy_kernel(landmarks, landmarks))


def whitened(landmarks: Matrix, kernel: Matrix) -> dict[str, Matrix]:
    """Landmarks, and the matrix that turns kernel values against them into orthonormal coordinates of their span."""
    values, vectors = np.linalg.eigh(kernel)
    kept = values > SINGULAR**0.5 * max(float(values[-1]), np.finfo(np.float64).tiny)
    return {"landmarks": landmarks, "whitening": vectors[:, kept] / np.sqrt(values[kept])}


ONE_HOT = FeatureMap("one-hot", lambda _rows, _labels, _generator: {}, lambda _kept, rows: predictions(rows), 1.0)
POSTERIORS = FeatureMap("posteriors", lambda _rows, _labels, _generator: {}, lambda _kept, rows: rows, 1.0)
RFF = FeatureMap("rff", _fit_fourier, lambda kept, rows: fourier(rows, kept["frequencies"]), 1.0)
GAUSSIAN = FeatureMap(
    "gaussian",
    _fit_gaussian,
    lambda kept, rows: gaussian_kernel(rows, kept["landmarks"], float(kept["sigma"][0])),
    1.0,
)
ENERGY = FeatureMap("energy", _fit_energy, lambda kept, rows: energy_kernel(rows, kept["landmarks"]), np.inf)

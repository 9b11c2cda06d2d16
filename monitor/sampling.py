"""How events are drawn: folds, stratified samples, and the protocols that make test windows with a known class mix.

Everything here is seeded, and returns row numbers or prevalences: never copies of the events.
"""

import numpy as np

from monitor.arrays import Labels, Matrix, Vector
from monitor.errors import InputError


def stratified_folds(labels: Labels, folds: int, seed: int) -> Labels:
    """The fold of every event: each class dealt over the folds in seeded random order."""
    counts = np.bincount(labels)
    folds = max(2, min(folds, int(counts[counts > 0].min())))
    order = np.random.default_rng(seed).permutation(labels.size)
    order = order[np.argsort(labels[order], kind="stable")]
    fold = np.empty(labels.size, dtype=np.int64)
    fold[order] = np.arange(labels.size) % folds
    return fold


def stratified_sample(labels: Labels, size: int, seed: int) -> Labels:
    """Row numbers, ascending, of a seeded sample with each class in proportion, and at least two of each."""
    if labels.size <= size:
        return np.arange(labels.size)
    order = np.random.default_rng(seed).permutation(labels.size)
    order = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels)
    wanted = np.minimum(counts, np.maximum(2, np.floor(size * counts / labels.size).astype(np.int64)))
    rank = np.arange(labels.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(order[rank < np.repeat(wanted, counts)])


def uniform_simplex(classes: int, draws: int, rng: np.random.Generator) -> Matrix:
    """Prevalences drawn uniformly from the simplex (Kraemer): the gaps of sorted uniform numbers."""
    cuts = np.sort(rng.random((draws, classes - 1)), axis=1)
    edges = np.column_stack([np.zeros(draws), cuts, np.ones(draws)])
    return np.diff(edges, axis=1)


def near_simplex(source: Vector, draws: int, concentration: float, rng: np.random.Generator) -> Matrix:
    """Realistic shifts: Dirichlet prevalences around a source mix; the larger the concentration, the nearer."""
    drawn = rng.dirichlet(np.maximum(concentration * source, 1e-3), size=draws)
    return np.asarray(drawn)


def artificial_prevalences(classes: int, points: int) -> Matrix:
    """The artificial-prevalence protocol: every mix whose prevalences are multiples of 1 / (points - 1)."""
    total = points - 1
    grid = np.indices((points,) * (classes - 1)).reshape(classes - 1, -1).T
    grid = grid[grid.sum(axis=1) <= total]
    return np.column_stack([grid, total - grid.sum(axis=1)]) / total


def class_sizes(prevalence: Vector, size: int) -> Labels:
    """Whole numbers of events per class that add up to `size`, by largest remainders (ties to the first class)."""
    exact = prevalence * size
    sizes = np.floor(exact).astype(np.int64)
    order = np.argsort(sizes - exact, kind="stable")
    sizes[order[: size - int(sizes.sum())]] += 1
    return sizes


def draw(labels: Labels, prevalence: Vector, size: int, rng: np.random.Generator) -> Labels:
    """Row numbers of a window of `size` with a given class mix, with replacement inside each class."""
    rows = []
    for c, wanted in enumerate(class_sizes(prevalence, size)):
        members = np.flatnonzero(labels == c)
        if wanted and not members.size:
            raise InputError(f"draw: class {c} is wanted {wanted} times, but no event has it")
        if wanted:
            rows.append(members[rng.integers(0, members.size, size=wanted)])
    return np.concatenate(rows)


def natural(events: int, size: int, rng: np.random.Generator) -> Labels:
    """Row numbers of a window of the natural protocol: drawn with replacement whatever the classes."""
    return rng.integers(0, events, size=size)

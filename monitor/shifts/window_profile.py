"""A window in few numbers, such that windows can be held against each other: what their class mixes leave unexplained.

With A the classes' means in the reference, V the covariance of a window of a block's length (`variation`) and p^ the
matched class mix, r = b - A p^ is a linear function of the window's mean b: so are these, and differences of any two
windows need nothing else.

    whole     V^(-1/2) r, of all coordinates: its squared length is the statistic T of `fit`
    sampling  the same by the sampling covariance of one event: its squared length is the squared effect
    inputs    U^(-1/2) b_F of the features' own coordinates F
    apart     for each feature j Q_jj^(-1/2) (Q b_F)_j with Q = U^-1: by its squared length |inputs|^2 falls when j is
              left out
    alone     for each feature U_jj^(-1/2) b_j: how far it is by itself
    shares    p^

Of the features' own coordinates U = V_F + A_F V_p A_F', with V_p the covariance of the class mix between blocks, and
room for it to be twice as far off: with a free mix, what one feature did would pass for another mix and an opposite
move of another feature.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat

import numpy as np

from monitor.arrays import Labels, Matrix, Vector
from monitor.limits import REFERENCES_READY
from monitor.shifts import fit
from monitor.shifts.fit import BlockMatches
from monitor.shifts.moments import Moments, ridged_inverse
from monitor.shifts.prepared import Prepared, part

MIX_ROOM = 2.0
ROWS_WITHOUT_BLOCKS = 1_000.0
"""The length that windows are brought to where no block says how long they are; no result depends on it."""


@dataclass(frozen=True, slots=True, eq=False)
class WindowProfile:
    """One window, or the difference of two."""

    parts: Vector
    """All parts one behind the other, and"""
    ends: tuple[int, ...]
    """where each but the last ends."""
    of_feature: Labels
    """The feature of each entry of `apart` and `alone`."""
    rows: float
    """What the window counts for: with a reference that is finite too."""
    relative: float
    """How many times as much as a block it varies."""

    @property
    def whole(self) -> Vector:
        return self.parts[: self.ends[0]]

    @property
    def sampling(self) -> Vector:
        return self.parts[self.ends[0] : self.ends[1]]

    @property
    def inputs(self) -> Vector:
        return self.parts[self.ends[1] : self.ends[2]]

    @property
    def apart(self) -> Vector:
        return self.parts[self.ends[2] : self.ends[3]]

    @property
    def alone(self) -> Vector:
        return self.parts[self.ends[3] : self.ends[4]]

    @property
    def shares(self) -> Vector:
        return self.parts[self.ends[4] :]

    def less(self, other: Vector) -> "WindowProfile":
        """The difference from other parts."""
        return replace(self, parts=self.parts - other)


@dataclass(frozen=True, slots=True, eq=False)
class BlockProfile:
    """A block of the hold-out as if it were a window."""

    profile: WindowProfile
    mean: Vector
    weights: Matrix
    """V^-1 by the other blocks, and"""
    input_weights: Matrix | None
    """that of the features' own coordinates."""


@dataclass(frozen=True, slots=True, eq=False)
class Lens:
    """What makes profiles, worked out once for a reference."""

    matrix: Matrix
    """(all parts, coordinates)"""
    ends: tuple[int, ...]
    of_feature: Labels
    blocks: BlockMatches | None
    moments: Moments
    """Of all coordinates, and"""
    input_moments: Moments | None
    """of the features' own, which are"""
    inputs_at: Labels
    mix: Matrix
    """Covariance of the class mix between windows without a shift, with room."""
    rows: float
    """What a window of a block's length counts for."""

    def profile(self, mean: Vector, events: int, when: Vector | None = None) -> WindowProfile | None:
        """Of a window's mean of the map before scaling; None where it lacks some of it, or nobody knows when it was and
        its inputs follow a season."""
        usual = self.moments.usual(when)
        if usual is None and self.moments.blocks is not None and self.moments.blocks.mates is not None:
            return None
        if usual is None:
            return self._profile(mean, events, 0.0, 0.0)
        return self._profile(mean, min(events, round(usual.events)), usual.sampling, usual.between)

    def _profile(self, mean: Vector, events: int, sampling: float, between: float) -> WindowProfile | None:
        if mean.size != self.moments.scale.size or not np.isfinite(mean).all():
            return None
        pi = self.moments.source_priors
        parts = self.matrix @ (mean / self.moments.scale - pi @ self.moments.means)
        parts[-pi.size :] += pi
        rows = fit.comparable_rows(self.moments.class_counts, self.moments.source_priors, events, sampling)
        relative = self.relative(rows, 1.0 + between)
        return WindowProfile(parts.astype(np.float32), self.ends, self.of_feature, rows, relative)

    def of_blocks(self) -> Iterator["BlockProfile"]:
        """The blocks of the hold-out in their order; none where they are parts of windows, more alike than these."""
        if self.moments.blocks is None or not self.moments.blocks.whole_windows:
            return
        blocks, inputs = self.moments.blocks, self.input_moments
        means, events = blocks.seen, blocks.counts.sum(axis=1).astype(int).tolist()
        own = repeat(None, len(means)) if inputs is None else fit.weights_by_others(inputs)
        pairs = zip(means, events, *blocks.error_of_usual, fit.weights_by_others(self.moments), own, strict=True)
        for mean, number, sampling, between, weights, input_weights in pairs:
            profile = self._profile(mean, number, sampling, between)
            if profile is not None:
                yield BlockProfile(profile, mean / self.moments.scale, weights, input_weights)

    def statistic(self, difference: Vector, weights: Matrix) -> float:
        """T of the difference of two means, in the moments' scale, by these weights."""
        a = self.moments.means.T
        _, spread, _ = fit.least_squares(a, difference, weights @ a)
        residual = difference - a @ (spread @ difference)
        return float(residual @ weights @ residual)

    def input_statistic(self, difference: Vector, weights: Matrix) -> float:
        """|inputs|^2 of it."""
        assert self.input_moments is not None  # noqa: S101 - who has weights has moments
        own = difference[self.inputs_at]
        return float(own @ _with_mix(weights, self.input_moments, self.mix) @ own)

    def relative(self, rows: float, resting: float = 1.0) -> float:
        """How many times as much as a block a window that counts for so many rows varies."""
        varied = None if self.blocks is None else self.blocks.variation
        if self.blocks is None or varied is None:
            return self.rows / rows
        return varied.relative(rows * resting, self.moments.scale.size) * resting / self.blocks.resting


@lru_cache(maxsize=REFERENCES_READY)
def lens(reference: Prepared) -> Lens:
    """Of the whole map; some ten milliseconds."""
    moments, coordinates = reference.moments, reference.moments.scale.size
    blocks = fit.block_matches(moments)
    rows = ROWS_WITHOUT_BLOCKS if blocks is None else float(blocks.rows.mean())
    sampling, weights = _inverses(moments, blocks, rows)
    _, spread, _ = fit.least_squares(moments.means.T, moments.means[0], weights @ moments.means.T)
    residual = np.eye(coordinates) - moments.means.T @ spread
    parts = [_root(weights) @ residual, _root(sampling) @ residual]
    mix = MIX_ROOM**2 * _mix_covariance(moments, blocks, rows)
    own = [block for block in reference.blocks if block.kind == "feature"]
    at = np.concatenate([fit.positions(block) for block in own]) if own else np.zeros(0, dtype=np.int64)
    of_inputs = None
    if at.size > moments.class_counts.size:
        of_inputs = part(reference, tuple(at.tolist()))
        places = np.split(np.arange(at.size), np.cumsum([fit.positions(block).size for block in own])[:-1])
        _, own_weights = _inverses(of_inputs, fit.block_matches(of_inputs), rows)
        found = _of_inputs(_with_mix(own_weights, of_inputs, mix), places)
        parts += [_spread_out(each, at, coordinates) for each in found]
    else:
        own = []
        parts += [np.zeros((0, coordinates))] * 3
    return Lens(
        matrix=np.concatenate([*parts, spread]),
        ends=tuple(np.cumsum([len(each) for each in parts]).tolist()),
        of_feature=np.array([block.index for block in own for _ in fit.positions(block)], dtype=np.int64),
        blocks=blocks,
        moments=moments,
        input_moments=of_inputs,
        inputs_at=at,
        mix=mix,
        rows=rows,
    )


def _inverses(moments: Moments, blocks: BlockMatches | None, rows: float) -> tuple[Matrix, Matrix]:
    """Of the covariance of one event, and of a window of a block's length."""
    sampling = ridged_inverse(np.tensordot(moments.source_priors, moments.within, axes=1))
    varied = None if blocks is None else blocks.variation
    resting = 1.0 if blocks is None else blocks.resting
    return sampling, sampling * rows if varied is None else varied.inverse(sampling * rows, rows, resting)


def _mix_covariance(moments: Moments, blocks: BlockMatches | None, rows: float) -> Matrix:
    """Of the class mix between blocks, or of samples where there are none."""
    if blocks is not None:
        return np.asarray(blocks.gaps.T @ blocks.gaps / len(blocks.gaps))
    pi = moments.source_priors
    return np.asarray((np.diag(pi) - np.outer(pi, pi)) / rows)


def _with_mix(weights: Matrix, moments: Moments, mix: Matrix) -> Matrix:
    """(W^-1 + A V_p A')^-1 = W - W A V_p (1 + A' W A V_p)^-1 A' W."""
    seen = weights @ moments.means.T
    inner = np.eye(len(mix)) + moments.means @ seen @ mix
    return np.asarray(weights - seen @ mix @ np.linalg.solve(inner, seen.T))


def _of_inputs(weights: Matrix, places: list[Labels]) -> list[Matrix]:
    """`inputs`, `apart` and `alone`, from the features' own coordinates."""
    covariance, everything = _inverse(weights), np.eye(len(weights))
    apart = [_root(_inverse(weights[np.ix_(j, j)])) @ weights[j] for j in places]
    alone = [_root(_inverse(covariance[np.ix_(j, j)])) @ everything[j] for j in places]
    return [_root(weights), np.concatenate(apart), np.concatenate(alone)]


def _spread_out(rows: Matrix, at: Labels, coordinates: int) -> Matrix:
    """The same with columns for all coordinates."""
    full = np.zeros((len(rows), coordinates))
    full[:, at] = rows
    return full


def _inverse(matrix: Matrix) -> Matrix:
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def _root(matrix: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)

"""What has been normal lately: a window held against the windows before it, beside the reference.

A stream that drifts is some day no longer as it was in the reference, and then a monitor that knows nothing else says
so of every window. The recent normal forgets: it is an exponential mean of the profiles of windows (`window_profile`),
with the memory, of 2, 4, 8 or 16 windows, that has foretold the last twenty best. A window is not normal where the
statistic T of its difference from that mean is larger than those of the last twenty windows were, by Student's law of
their logarithms, and than those of about the last hundred: twenty windows may all have been quieter than usual. Its
class mix has moved where it is farther from the mean's than theirs were, by Hotelling's law; a feature where it is
farther by itself, by the law of F, and the whole looks suspicious too. The normal begins with the blocks of the
reference's hold-out, in their order; without blocks it has to see some windows.

Windows that are not normal take part too: what stays becomes normal after some windows, and the reference goes on
telling that it is not as it was there. Of a single such window no more is remembered than what would be as far off as
one window in ten thousand is by chance.

All of it is a value: `judged` gives what is said of a window, and the normal after it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import msgspec
import numpy as np
from scipy.special import fdtrc, fdtri

from monitor.arrays import Labels, Matrix, Vector
from monitor.assessment.baseline import Baseline
from monitor.assessment.classifier import Assessment
from monitor.assessment.classifier_view import AssessedReference
from monitor.assessment.reasons import NAMED, p_text
from monitor.assessment.verdict import Evidence, Verdict, decide
from monitor.limits import REFERENCES_READY
from monitor.shifts import Law, Lens, WindowProfile, cohen_w, holm, lens, prepare
from monitor.tolerances import (
    FEWEST_RECENT,
    FIT_FLOOR,
    LEAST_ROWS,
    MIX_FLOOR,
    RECENT_CAP,
    RECENT_INDEPENDENT,
    RECENT_LONG,
    RECENT_WINDOWS,
    SUSPICION,
    VERDICT_LEVEL,
)

_Item = TypeVar("_Item")

MEMORIES = (2.0, 4.0, 8.0, 16.0)
LEAST_SQUARE = 1e-300
"""Has a logarithm."""


class RecentNormal(msgspec.Struct, frozen=True):
    """What has been normal lately. Its size is bounded: some kilobytes."""

    windows: int = 0
    """That it has seen, blocks of the hold-out among them."""
    means: bytes = b""
    """Of profiles, by memory; single precision."""
    weights: tuple[float, ...] = ()
    """What each of them rests on, in windows."""
    misses: tuple[tuple[float, ...], ...] = ()
    """By memory: ln T of the last windows by it."""
    statistics: tuple[float, ...] = ()
    """ln T of the last windows by the best of them, and"""
    input_statistics: tuple[float, ...] = ()
    """of the features' own coordinates."""
    gaps: tuple[tuple[float, ...], ...] = ()
    """By what the class mix of each was off."""
    unknown: tuple[bool, ...] = ()
    """Whether it had an unknown class."""
    long: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """What many windows before say of ln T: what they are worth in windows, mean and variance."""
    features: tuple[float, ...] = ()
    """And of each feature by itself: the mean of its squared distance, 1 where it varied as in the hold-out."""

    @property
    def profiles(self) -> Matrix:
        """The means, a row for each memory."""
        return np.frombuffer(self.means, np.float32).reshape(len(MEMORIES), -1).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Examined:
    """What a window is held against others by; it knows the reference, and no other window."""

    profile: WindowProfile
    begun: RecentNormal
    """What was normal before the first window."""
    classes: tuple[str, ...]
    features: tuple[str, ...]


def against_recent(
    assessment: Assessment, reference: AssessedReference, normal: RecentNormal | None = None
) -> tuple[Assessment, RecentNormal]:
    """The assessment with what is said of it against the recent normal, and the normal with this window.

    Windows are to be given in their order, from the first after the hold-out on:

        normal = None
        for window in windows:
            found, normal = against_recent(assess(window, reference), reference, normal)
            print(found.verdict, found.baselines["recent"].verdict)
    """
    before, examined = normal or RecentNormal(), examined_by(reference)(assessment)
    if examined is None:
        return assessment, before
    baseline, after = judged(before, examined, assessment.verdict)
    return replace(assessment, recent=baseline), after


def examined_by(reference: AssessedReference) -> Callable[[Assessment], Examined | None]:
    """What windows are examined by; None for one with too few events or without features, or of a time of which it is
    not known what is usual of inputs that follow a season."""
    features = tuple(profile.feature.name for profile in reference.features)

    def examine(assessment: Assessment) -> Examined | None:
        key = assessment.key
        ready = prepare(reference.timed(key))
        ready = ready.seasonal or ready
        when = None if ready.hold_out is None else ready.hold_out.when(key.start, key.end)
        of_reference = lens(ready)
        profile = of_reference.profile(assessment.mean, assessment.events, when)
        return None if profile is None else Examined(profile, begun(of_reference), assessment.classes, features)

    return examine


@lru_cache(maxsize=REFERENCES_READY)
def begun(of_reference: Lens) -> RecentNormal:
    """The blocks of the hold-out, as if they had been windows.

    Each is held against those before it, by what the others vary: by its own share in that it would seem too near.
    """
    normal = RecentNormal()
    raw = np.zeros((len(MEMORIES), of_reference.moments.scale.size))
    for block in of_reference.of_blocks():
        if normal.windows:
            best = _best(normal)
            resting, away = 1 + 1 / normal.weights[best], block.mean - raw[best]
            statistic = _log(of_reference.statistic(away, block.weights) / resting)
            inputs = normal.input_statistics
            if block.input_weights is not None:
                own = of_reference.input_statistic(away, block.input_weights)
                inputs = _longer(inputs, _log(own / resting))
            gap = block.profile.less(normal.profiles[best])
            normal = msgspec.structs.replace(
                normal,
                statistics=_longer(normal.statistics, statistic),
                long=_with_log(normal.long, statistic),
                input_statistics=inputs,
                gaps=_longer(normal.gaps, tuple(gap.shares.tolist())),
                features=_with_features(normal, _alone(gap) / (gap.relative * resting)),
            )
        normal = _with_window(normal, _away(normal, block.profile)) if normal.windows else _first(block.profile)
        raw = raw + (block.mean - raw) / np.array(normal.weights)[:, None]
    return normal


def judged(
    normal: RecentNormal, examined: Examined, reference: Verdict, level: float = VERDICT_LEVEL
) -> tuple[Baseline | None, RecentNormal]:
    """What is said of a window, None while too few are known, and the normal with it.

    `reference` is the verdict against the reference: what lies where no class was, no other window can tell.
    """
    profile, normal = examined.profile, normal if normal.windows else examined.begun
    if not normal.windows or len(normal.means) != len(MEMORIES) * profile.parts.astype(np.float32).nbytes:
        return None, _first(profile)
    away, inputs = _away(normal, profile), normal.input_statistics
    statistic = _capped(away.statistic, away.law)
    after = msgspec.structs.replace(
        _with_window(normal, away, share=math.exp((statistic - away.statistic) / 2)),
        statistics=_longer(normal.statistics, statistic),
        long=_with_log(normal.long, statistic),
        input_statistics=_longer(inputs, _capped(away.inputs, _law(inputs))) if profile.inputs.size else (),
        gaps=_longer(normal.gaps, tuple(away.profile.shares.tolist())),
        features=_with_features(normal, _alone(away.profile) / away.unit),
        unknown=_longer(normal.unknown, reference is Verdict.UNKNOWN_CLASS),
    )
    return _baseline(normal, away, reference, examined, level), after


@dataclass(frozen=True, slots=True, eq=False)
class _Away:
    """How far a window is from the recent normal."""

    every: Matrix
    """The difference from the mean of each memory, and"""
    squares: Vector
    """the squared length of its `whole`."""
    profile: WindowProfile
    """The difference from the best of them."""
    mean: Vector
    """That mean itself."""
    law: Law | None
    """Of what was usual; None while too little is known."""
    statistic: float
    """ln T, in units of a window of a block's length, and"""
    inputs: float
    """of the features' own coordinates."""
    unit: float
    """What squares are divided by for that: how much a window of this length varies, and the mean with it."""
    resting: float
    """1 + 1 / n for a mean of n windows."""


def _away(normal: RecentNormal, profile: WindowProfile) -> _Away:
    best, means = _best(normal), normal.profiles
    every, resting = profile.parts - means, 1 + 1 / normal.weights[best]
    whole = every[:, : profile.ends[0]]
    squares, unit = np.einsum("ij,ij->i", whole, whole), profile.relative * resting
    away = replace(profile, parts=every[best])
    own = float(away.inputs @ away.inputs)
    return _Away(
        every=every,
        squares=squares,
        profile=away,
        mean=means[best],
        law=_law_beside(normal.statistics, normal.long),
        statistic=_log(float(squares[best]) / unit),
        inputs=_log(own / unit),
        unit=unit,
        resting=resting,
    )


def _baseline(normal: RecentNormal, away: _Away, reference: Verdict, named: Examined, level: float) -> Baseline | None:
    """The questions of `verdict`: does it fit, did a feature move, did the mix, does one feature explain it.

    Two thirds of the level are the fit's, a third is that of each of the next two.
    """
    if away.law is None:
        return None
    p_value, effect, by_feature = away.law.p_value(math.exp(away.statistic)), _effect(away), _by_feature(normal, away)
    if p_value < SUSPICION:
        p_value = min(p_value, 2 * float(by_feature.min(initial=1.0)))
    fits = not (p_value < 2 / 3 * level and effect >= FIT_FLOOR)
    mix_moved, mix = False, ""
    if _mix_p(away.profile.shares, np.array(normal.gaps)) < level / 3:
        shares = away.mean[away.profile.ends[-1] :]
        before, now = _simplex(np.stack([shares, shares + away.profile.shares]))
        mix_moved, mix = cohen_w(now, before) >= MIX_FLOOR, _mix_sentence(named.classes, before, now)
    moved, explained = ([], False) if fits else _moved(normal, away, by_feature, level)
    verdict = decide(
        Evidence(
            enough_events=True,
            label_shift_fits=fits,
            mix_moved=mix_moved,
            unknown_class=reference is Verdict.UNKNOWN_CLASS and sum(normal.unknown) <= len(normal.unknown) / 2,
            inputs_explain=explained or bool(moved) or (not fits and _inputs_differ(normal, away, level)),
        )
    )
    names = tuple(named.features[j] for j in moved)
    return Baseline(verdict, _reasons(verdict, p_value, effect, names, mix, explained=explained), names)


def _reasons(
    verdict: Verdict, p_value: float, effect: float, moved: Sequence[str], mix: str, *, explained: bool
) -> tuple[str, ...]:
    if verdict is Verdict.STABLE:
        return (f"as recent windows were (p {p_text(p_value)})",)
    if verdict is Verdict.PRIOR_SHIFT:
        return (mix, f"everything else is as in recent windows (p {p_text(p_value)})")
    misfit = f"not as recent windows were (p {p_text(p_value)}, {effect:.2f} sd apart)"
    which = ", ".join(moved[:NAMED]) + (f" and {len(moved) - NAMED} more" if len(moved) > NAMED else "")
    sentences = [misfit]
    if moved:
        sentences.append(f"{which} moved; all else is as it was" if explained else f"most in {which}")
    if verdict is Verdict.PRIOR_AND_COVARIATE_SHIFT:
        sentences.append(mix)
    if verdict is Verdict.UNKNOWN_CLASS:
        sentences.append("some events lie where no class of the reference was, which was not so lately")
    return tuple(sentences)


def _mix_sentence(classes: Sequence[str], before: Vector, now: Vector) -> str:
    y = int(np.argmax(now - before)) if len(classes) == 2 else int(np.argmax(np.abs(now - before)))
    way = "rose" if now[y] > before[y] else "fell"
    return f"{classes[y]} {way} from about {before[y]:.1%} lately to about {now[y]:.1%}"


def _alone(profile: WindowProfile) -> Vector:
    """The mean square of each feature's own coordinates."""
    features, sizes = np.unique(profile.of_feature, return_counts=True)
    return _squares(profile.alone, profile.of_feature, features) / sizes


def _by_feature(normal: RecentNormal, away: _Away) -> Vector:
    """A p-value for each feature, corrected for their number: F(h, N) of how far its h coordinates are by themselves.

    It is held against how the blocks of the hold-out varied, or against how much more windows have done since.
    """
    sizes = np.unique(away.profile.of_feature, return_counts=True)[1]
    if not sizes.size:
        return np.zeros(0)
    usual = np.maximum(normal.features or 1.0, 1.0)
    return holm(np.asarray(fdtrc(sizes, _worth(normal), _alone(away.profile) / away.unit / usual)))


def _with_features(normal: RecentNormal, alone: Vector) -> tuple[float, ...]:
    """The means with one window more, of which no more is remembered than what is as rare as the cap."""
    if not normal.features:
        return tuple(alone.tolist())
    means = np.array(normal.features)
    capped = np.minimum(alone, np.maximum(means, 1.0) * float(fdtri(1, _worth(normal), 1 - RECENT_CAP)))
    return tuple((means + (capped - means) / (normal.long[0] * (1 - 1 / RECENT_LONG) + 1)).tolist())


def _worth(normal: RecentNormal) -> float:
    """What the windows that are remembered know of a variance, in degrees of freedom."""
    return max(RECENT_INDEPENDENT * normal.long[0], LEAST_ROWS)


def _moved(normal: RecentNormal, away: _Away, by_feature: Vector, level: float) -> tuple[list[int], bool]:
    """Features that differ by themselves, and whether all is as it was without the first of them."""
    profile = away.profile
    features, sizes = np.unique(profile.of_feature, return_counts=True)
    law = _law(normal.input_statistics)
    if not features.size or law is None:
        return [], False
    drops = _squares(profile.apart, profile.of_feature, features) / away.unit
    worst = int(np.argmax(drops))
    # What is left is a sum over fewer coordinates than the statistics that it is held against.
    left = (math.exp(away.inputs) - drops[worst]) / max(profile.inputs.size - sizes[worst], 1)
    explained = law.p_value(left * profile.inputs.size) >= level
    moved = [int(features[k]) for k in np.argsort(by_feature, kind="stable") if by_feature[k] < level]
    if explained:
        first = int(features[worst])
        moved = [first, *(j for j in moved if j != first)]
    return moved, explained


def _inputs_differ(normal: RecentNormal, away: _Away, level: float) -> bool:
    """Whether the inputs differ together, whatever the scores do."""
    law = _law(normal.input_statistics)
    return law is not None and bool(away.profile.inputs.size) and law.p_value(math.exp(away.inputs)) < level


def _squares(values: Vector, of_feature: Labels, features: Labels) -> Vector:
    sums = np.bincount(of_feature, weights=values**2, minlength=int(features.max(initial=-1)) + 1)
    return np.asarray(sums[features], dtype=np.float64)


def _effect(away: _Away) -> float:
    """What differs beyond sampling error, in pooled standard deviations."""
    values, free = away.profile.sampling, away.profile.sampling.size - away.profile.shares.size + 1
    return math.sqrt(max(float(values @ values) - free * away.resting / away.profile.rows, 0.0))


def _mix_p(gap: Vector, gaps: Matrix) -> float:
    """(N - q) / (q N) g' S^-1 g ~ F(q, N - q): S is that of the last gaps, worth N, drawn to its diagonal for many
    classes."""
    number, free = len(gaps), gap.size - 1
    covariance = gaps[:, :-1].T @ gaps[:, :-1] / number
    own = covariance.diagonal().copy()
    ridge = 1e-10 * max(float(own.sum()), 1e-12)  # a class that never varies has no inverse
    if free > 1:
        drawn = free / (free + number)
        covariance *= 1 - drawn
        own *= drawn
        covariance.flat[:: free + 1] += own
    covariance.flat[:: free + 1] += ridge
    statistic = float(gap[:-1] @ np.linalg.solve(covariance, gap[:-1]))
    worth = RECENT_INDEPENDENT * number
    left = max(worth - free, LEAST_ROWS)
    return float(fdtrc(free, left, statistic * left / (free * worth)))


def _simplex(shares: Matrix) -> Matrix:
    cut = np.maximum(shares, 1e-6)
    return np.asarray(cut / cut.sum(axis=1, keepdims=True))


def _first(profile: WindowProfile) -> RecentNormal:
    """What is normal after one window."""
    means = np.tile(profile.parts.astype(np.float32), (len(MEMORIES), 1))
    return RecentNormal(1, means.tobytes(), (1.0,) * len(MEMORIES), ((),) * len(MEMORIES))


def _with_window(normal: RecentNormal, away: _Away, share: float = 1.0) -> RecentNormal:
    """One window more in the means, which go this share of the way to it, and how far it was from each of them."""
    weights = tuple(weight * (1 - 1 / memory) + 1 for weight, memory in zip(normal.weights, MEMORIES, strict=True))
    means = normal.profiles + away.every * (share / np.array(weights))[:, None]
    misses = map(_log, away.squares.tolist())
    return msgspec.structs.replace(
        normal,
        windows=normal.windows + 1,
        means=means.astype(np.float32).tobytes(),
        weights=weights,
        misses=tuple(_longer(past, latest) for past, latest in zip(normal.misses, misses, strict=True)),
    )


def _best(normal: RecentNormal) -> int:
    """The memory by which the last windows were nearest; the longest of equals."""
    if not normal.misses[0]:
        return len(MEMORIES) - 1
    misses = [sum(each) / len(each) for each in normal.misses]
    return max(range(len(MEMORIES)), key=lambda m: (-misses[m], m))


def _law(before: Sequence[float]) -> Law | None:
    """None while too few windows are known."""
    return Law.of_logs(before, RECENT_INDEPENDENT) if len(before) >= FEWEST_RECENT else None


def _law_beside(before: Sequence[float], long: tuple[float, float, float]) -> Law | None:
    """The law of the last windows, with no smaller mean and spread than many windows had before."""
    law, (_, mean, variance) = _law(before), long
    return None if law is None else replace(law, mean=max(law.mean, mean), spread=max(law.spread, math.sqrt(variance)))


def _with_log(long: tuple[float, float, float], log: float) -> tuple[float, float, float]:
    """Mean and variance with one value more; those of long ago are forgotten."""
    windows = long[0] * (1 - 1 / RECENT_LONG) + 1
    away = log - long[1]
    return windows, long[1] + away / windows, (1 - 1 / windows) * (long[2] + away**2 / windows)


def _capped(log: float, law: Law | None) -> float:
    return log if law is None else min(log, law.largest(RECENT_CAP))


def _longer(past: tuple[_Item, ...], one: _Item) -> tuple[_Item, ...]:
    """With one more, of the last ones."""
    return (*past, one)[-RECENT_WINDOWS:]


def _log(square: float) -> float:
    return math.log(max(square, LEAST_SQUARE))

"""Figures of one model on one stream, from what was seen of its windows: verdicts, prevalence, harm, cost."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from scipy.stats import rankdata

from monitor import quality
from monitor.arrays import Vector
from monitor.priors import DEFAULT, PriorEstimate
from monitor.reference.classifier import Reference
from tests.bench.streams import late
from tests.bench.streams.late import LATE
from tests.bench.streams.watched import Seen, Tally, Watched, shares

FEW = 8
"""Labelled blocks of a short memory."""
HARMED = 0.9
"""A model is worse where its Brier score is above this quantile of the hold-out's blocks."""
LEAST = 5
"""Windows of either kind, for an AUC."""


class Rule(msgspec.Struct, frozen=True):
    """How one rule estimates the shares of classes."""

    errors: tuple[float, ...]
    """Of each window, the mean absolute one over the classes."""
    coverage: float | None = None
    """Of its intervals, over windows and classes."""
    width: float | None = None

    @property
    def error(self) -> float:
        """Mean absolute error over windows and classes."""
        return float(np.mean(self.errors))


class Score(msgspec.Struct, frozen=True):
    """How a score goes with harm."""

    auc: float | None
    """For windows worse than the hold-out's 90 % block."""
    spearman: float | None
    """With the windows' Brier score."""


class Figures(msgspec.Struct, frozen=True):
    """Of one model on one stream, in windows of one length."""

    stream: str
    model: str
    rows: int
    classes: int
    features: int
    block: int
    held: int
    """Blocks of the hold-out."""
    windows: int
    remarks: tuple[str, ...]
    verdicts: dict[str, dict[str, int]]
    """By baseline and verdict: windows."""
    calm: dict[str, Tally]
    power: dict[str, dict[str, Tally]]
    """By baseline and shift."""
    without_labels: dict[str, Rule]
    with_labels: dict[str, Rule]
    harm: dict[str, Score]
    harmed: float
    """The share of windows worse than the hold-out's 90 % block."""
    window_ms: float
    reference_s: float


def without_labels(seen: Sequence[Seen], source: Vector) -> dict[str, Rule]:
    """What is published, label shift alone, and the simple rules."""
    return {
        "published": _published(seen),
        "reference share": _rule(seen, lambda _: source),
        "calibrated PCC": _rule(seen, lambda t: seen[t].pcc),
        "EMQ, BCTS": _rule(seen, lambda t: seen[t].emq),
        "label shift": _label_shift(seen),
    }


def with_labels(watched: Watched, reference: Reference, seen: Sequence[Seen]) -> dict[str, Rule]:
    """What is published, and the simple rules that know the labels of windows up to two before and of the hold-out."""
    source = reference.source_priors
    classes = len(watched.table.classes)
    before = [shares(watched.table.labels[at], classes) for at in watched.held]
    truths = np.array([*before, *(one.truth for one in seen)]) if before else np.array([one.truth for one in seen])
    errors = np.array([one.truth - one.pcc for one in seen])
    known = max(len(before), FEW)

    def recent(t: int, most: int) -> Vector:
        end = len(before) + t - LATE + 1
        return truths[max(end - most, 0) : end].mean(axis=0) if end > 0 else source

    def corrected(t: int) -> Vector:
        end = max(t - LATE + 1, 0)
        past = errors[max(end - FEW, 0) : end]
        return seen[t].pcc + (past.mean(axis=0) if len(past) else 0.0)

    return {
        "published": _interval(seen, list(late.published(watched, reference, seen))),
        "last labelled block": _rule(seen, lambda t: recent(t, 1)),
        f"mean of the last {FEW}": _rule(seen, lambda t: recent(t, FEW)),
        "mean of as many as the hold-out has": _rule(seen, lambda t: recent(t, known)),
        "PCC and its mean error": _rule(seen, corrected),
    }


def _rule(seen: Sequence[Seen], share: Callable[[int], Vector]) -> Rule:
    return Rule(tuple(float(np.abs(share(t) - one.truth).mean()) for t, one in enumerate(seen)))


def _published(seen: Sequence[Seen]) -> Rule:
    return _interval(seen, [one.assessment.prevalence for one in seen])


def _label_shift(seen: Sequence[Seen]) -> Rule:
    return _interval(seen, [one.assessment.estimates[DEFAULT] for one in seen])


def _interval(seen: Sequence[Seen], estimates: Sequence[PriorEstimate]) -> Rule:
    truths = np.array([one.truth for one in seen])
    priors, lower, upper = (
        np.array([getattr(one, name) for one in estimates]) for name in ("priors", "lower", "upper")
    )
    inside = (lower <= truths + 1e-12) & (truths <= upper + 1e-12)
    errors = np.abs(priors - truths).mean(axis=1)
    return Rule(tuple(errors.tolist()), float(inside.mean()), float((upper - lower).mean()))


def harm(watched: Watched, seen: Sequence[Seen]) -> tuple[dict[str, Score], float]:
    """Each score against the windows' Brier score, and the share of windows that are worse than the hold-out."""
    blocks = [quality.brier(watched.scores[at], watched.table.labels[at]) for at in watched.held]
    brier = np.array([one.brier for one in seen])
    if not blocks or not brier.size:
        return {}, float("nan")
    worse = brier > np.quantile(blocks, HARMED)
    scores: Mapping[str, Vector] = {
        "harm": np.array([np.nan if one.assessment.harm is None else one.assessment.harm.score for one in seen]),
        "fit effect": np.array([_effect(one) for one in seen]),
        "CBPE": np.array([one.expected_brier for one in seen]),
        "KS count": np.array([float(one.drifted) for one in seen]),
    }
    found = {name: Score(auc(score, worse), spearman(score, brier)) for name, score in scores.items()}
    return found, float(worse.mean())


def _effect(one: Seen) -> float:
    test = one.assessment.tests.get("label-shift-fit")
    return 0.0 if test is None else test.effect


def auc(score: Vector, worse: Vector) -> float | None:
    """P(score of a worse window > score of another) + half of the ties; None where there are too few of either."""
    flags = np.asarray(worse, dtype=np.bool_)
    bad, good = int(flags.sum()), int((~flags).sum())
    if min(bad, good) < LEAST or np.isnan(score).any():
        return None
    ranks = rankdata(score)
    return float((ranks[flags].sum() - bad * (bad + 1) / 2) / (bad * good))


def spearman(score: Vector, other: Vector) -> float | None:
    """The correlation of ranks; None where one side does not vary."""
    if score.size < LEAST or np.isnan(score).any() or np.ptp(score) == 0 or np.ptp(other) == 0:
        return None
    return float(np.corrcoef(rankdata(score), rankdata(other))[0, 1])

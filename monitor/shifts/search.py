"""Which features have to be left out before one class mix explains all the others.

A model reads its scores from all features, so one moved feature moves them all: posteriors take no part here. Where
one class mix explains all features without any left out, it is the scores that no longer go with them. The joint
behaviour of the remaining features takes part, through cosines that are blind to what is left out. The mix that comes
out is therefore one that the moved features have not touched.
"""

from dataclasses import dataclass

import numpy as np

from monitor.arrays import Vector
from monitor.shifts import fit
from monitor.shifts.fit import Match
from monitor.shifts.prepared import Prepared, part, without
from monitor.shifts.window_view import Looked
from monitor.tolerances import HOPELESS, LEFT_OUT, SUSPECTS, SUSPICION


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """The match on everything but the features left out."""

    left_out: frozenset[int]
    """None of them where the scores moved."""
    match: Match


def inputs_alone(looked: Looked, reference: Prepared) -> Rest | None:
    """The match on all inputs and no scores, where it fits well: nothing need be left out but the scores."""
    match = without_scores(looked, reference)
    return None if match is None or match.p_value < SUSPICION else Rest(frozenset(), match)


def without_scores(looked: Looked, reference: Prepared) -> Match | None:
    """The match on all inputs; None where these cannot tell the classes apart."""
    return _without(looked, reference, frozenset()) if looked.features is not None else None


def rest(looked: Looked, reference: Prepared, suspects: list[int], level: float) -> Rest | None:
    """The smallest set of suspects (worst first) without which the window fits; None if no small set does.

    Forward selection: the suspect whose absence makes the best fit goes first. A mix that the remaining features
    cannot identify is no answer.
    """
    suspects = suspects[:SUSPECTS]
    if not suspects or _hopeless(looked, reference, suspects):
        return None
    left_out: frozenset[int] = frozenset()
    for _ in range(min(LEFT_OUT, len(suspects))):
        tried = [left_out | {j} for j in suspects if j not in left_out]
        rests = [
            Rest(columns, fitted) for columns in tried if (fitted := _without(looked, reference, columns)) is not None
        ]
        if not rests:
            return None
        # Ties are real: many candidates may have a p-value of 0. The statistic per degree of freedom decides then.
        best = max(rests, key=lambda one: (one.match.p_value, -one.match.statistic / max(one.match.degrees, 1e-9)))
        if best.match.p_value >= level:
            return best
        left_out = best.left_out
    return None


def _hopeless(looked: Looked, reference: Prepared, suspects: list[int]) -> bool:
    """Whether features that nobody suspects contradict every class mix by far: they stay in whatever is left out, and
    more coordinates leave more unexplained. Where all features have moved this saves eighteen matches."""
    kept = [block for block in reference.blocks if block.kind == "feature" and block.index not in suspects]
    if not kept:
        return False
    at = np.concatenate([fit.positions(block) for block in kept])
    match = fit.match(part(reference, tuple(at.tolist())), looked.mean[at], looked.events, looked.when)
    return match.p_value < HOPELESS


def _without(looked: Looked, reference: Prepared, columns: frozenset[int]) -> Match | None:
    at, blind, moments = without(reference, columns)
    if not at.size or moments.scale.size < moments.class_counts.size:
        return None
    mean: Vector = looked.mean[at] * reference.moments.scale[at]
    if blind is not None and looked.standardised is not None and looked.joint is not None:
        mean = np.concatenate([mean, blind.mean(looked.standardised) if columns else looked.joint])
    match = fit.match(moments, mean / moments.scale, looked.events, looked.when)
    return match if match.identified else None

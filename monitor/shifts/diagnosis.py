"""From a window's columns to evidence: does one class mix explain it, if not what does, and is something unknown in it.

The order of questions is the order of this file. (1) Match everything with one class mix: if what is left over is no
more than sampling error and no feature moved beyond it, label shift explains the window. (2) Otherwise look whether it
does without the scores, or without a few features. (3) Map the moved features back by the line or percentiles that
explain them, and ask the whole window again. (4) Independently, count events that lie where no class ever was, and ask
whether the window fits without them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from monitor.arrays import Flags, Matrix, Vector, present
from monitor.shifts import covariates, fit, prepared, search
from monitor.shifts import feature_tests as moves
from monitor.shifts import window_view as looked
from monitor.shifts.covariates import Direction, Explanation
from monitor.shifts.feature_tests import Move
from monitor.shifts.fit import Match, Tested
from monitor.shifts.novelty import Novelty, between_blocks, novelty
from monitor.shifts.prepared import Prepared
from monitor.shifts.search import Rest
from monitor.shifts.season import UsualMix
from monitor.shifts.window_view import Looked
from monitor.tolerances import (
    DISTANCE_FLOOR,
    FIT_FLOOR,
    HIDING_OTHERS,
    LEAST_ERROR,
    MISFIT_LEFT,
    SUSPICION,
    UNKNOWN_CEILING,
    UNKNOWN_FLOOR,
    UNKNOWN_LEVEL,
)
from monitor.windows import Window


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """What the tests of one window say."""

    whole: Match
    """All coordinates, one class mix."""
    label_shift_fits: bool
    rest: Rest | None
    """The match without scores and the features that moved; None where it was not needed or not found."""
    mapped: Match | None
    """Features and their joint behaviour after the moved ones were mapped back."""
    features: tuple[Move, ...]
    posteriors: tuple[Move, ...]
    explanations: Mapping[int, Explanation]
    mix: Tested | None
    """Whether the class mix moved; None where nothing is left that could tell."""
    unknown: Novelty | None
    known: Match | None
    """The match of what lies where the classes were, where most of the misfit goes with the rest: with events of an
    unknown class, or with those that a fault threw out."""
    unknown_class: bool
    or_one_feature: bool
    """Whether a fault of the one feature without which the window fits may have thrown these events out as well."""
    explained: bool
    """Whether a shift of a few features, each explained, restores the rest."""
    inputs_differ: bool
    """Whether it is the inputs that differ by more than blocks of the hold-out do: one of them, or all together."""
    mean: Vector
    """Of the feature map before scaling, less what is usual at its time: windows are held against each other by it."""
    seasonal: bool
    """Whether inputs and scores were held against the same time of their season."""
    seen: Looked
    """What was counted of the window."""
    fit_events: int
    """The events that `whole` rests on, and"""
    mix_events: int
    """those that `mix` does: of a window of which only a sample is kept all or the sample's."""
    usual: UsualMix | None
    """The class mix of the hold-out at this time of its season; None where that of all of it is usual."""

    @property
    def scores_moved(self) -> bool:
        """Whether one class mix explains all inputs, and not the scores that came with them."""
        return self.rest is not None and not self.rest.left_out

    @property
    def priors(self) -> Vector:
        """The class mix that everything untouched by a moved feature agrees on."""
        return self.whole.priors if self.rest is None else self.rest.match.priors


def diagnose(window: Window, reference: Prepared, level: float) -> Diagnosis:
    """All the evidence, at this level for each family of tests.

    Of a window of which only a sample is kept all events are counted; what rows are needed for has the sample's.
    """
    left_out, window = window.left_out, window.alone()
    reference = prepared.at_time(reference, window.key.start, window.key.end)
    rows = looked.look(window, reference)
    seen = of_whole = rows if left_out is None else looked.look_at_all(window, rows, left_out, reference)
    whole = _matched(seen, reference)
    if _misfits(whole, level) and (strays := _strays(rows, reference)) is not None:
        of_whole = rows
        whole = _matched(looked.look(window.take(~strays), reference), reference)
    tested = moves.of_features(seen, reference, whole.priors, level)
    fits = not _misfits(whole, level) and not any(move.moved for move in tested)
    rest = None if fits else _rest(rows, reference, tested, whole, level)
    if rest is not None:
        tested = moves.of_features(seen, reference, rest.match.priors, level, rest.match.covariance)
        if not rest.left_out and whole.p_value >= SUSPICION:
            # No input moved beyond what is known of the mix, and all scores go with them.
            fits, rest = True, None
    if rest is not None and reference.hold_out is not None:
        tested = moves.with_left_out(tested, rest.left_out)
    priors = whole.priors if rest is None else rest.match.priors
    explanations: Mapping[int, Explanation] = {}
    mapped = None
    if not fits and window.features is not None:
        explanations, mapped = _explained(rows, window.features, reference, tested, priors, level=level)
    unknown = None
    if reference.landscape is not None and rows.distances is not None:
        unknown = novelty(reference.landscape, rows.distances, priors)
        # What is no more than sampling makes of it is not more than time does either: a millisecond saved.
        if (held := reference.hold_out) is not None and unknown.p_value < UNKNOWN_LEVEL:
            unknown = between_blocks(unknown, reference.landscape, reference.sample.labels, held.at_any_time)
    restored = mapped is not None and mapped.p_value >= level
    known, or_one_feature, unknown_class = None, False, False
    if not (fits or restored) and unknown is not None and is_class(unknown, UNKNOWN_LEVEL):
        known = _without_unknown(unknown, window, reference, whole, mapped, level=level)
        if known is not None:
            or_one_feature = _lies_with_one_feature(unknown, rest, rows, reference)
            unknown_class = not or_one_feature
            few = len(tested) <= HIDING_OTHERS + 1
            if few and or_one_feature and rest is not None and known.p_value >= level:
                unknown_class = _mixes_differ(known, unknown, rest.match, reference, level)
    of_mix = of_whole if rest is None else rows
    held_out = reference.hold_out
    usual = None if held_out is None else held_out.usual_at(window.key.start, window.key.end)
    return Diagnosis(
        whole=whole,
        label_shift_fits=fits,
        rest=rest,
        mapped=mapped,
        features=tested,
        posteriors=moves.of_posteriors(seen, reference, priors, level),
        explanations=explanations,
        mix=_mix(of_mix, whole, rest, reference, usual) if fits or rest is not None else None,
        unknown=unknown,
        known=known,
        unknown_class=unknown_class,
        or_one_feature=or_one_feature,
        explained=rest is not None and (restored or len(rest.left_out) == 1),
        inputs_differ=not fits and whole.natural and _inputs_differ(rows, reference, tested, level),
        mean=_mean(seen, reference),
        seasonal=seen.when is not None,
        seen=seen,
        fit_events=of_whole.events,
        mix_events=of_mix.events,
        usual=usual,
    )


def _mean(seen: Looked, reference: Prepared) -> Vector:
    """Before scaling, and without what the season makes of it."""
    moments = reference.moments
    usual = moments.usual(seen.when)
    away = seen.mean if usual is None else seen.mean - usual.beyond(moments.means, moments.scale)
    return np.asarray(away * moments.scale)


def one_mix_explains(window: Window, reference: Prepared, level: float) -> bool:
    """Whether one class mix explains all of a window together."""
    reference = prepared.at_time(reference, window.key.start, window.key.end)
    return not _misfits(_matched(looked.look(window, reference), reference), level)


def _matched(seen: Looked, reference: Prepared) -> Match:
    """The match on all coordinates that the window has."""
    known = _known(seen)
    return fit.match(prepared.part(reference, known), seen.mean[list(known)], seen.events, seen.when)


def _known(seen: Looked) -> tuple[int, ...]:
    return tuple(np.flatnonzero(np.isfinite(seen.mean)).tolist())


def _misfits(match: Match, level: float) -> bool:
    return match.p_value < level and match.effect >= FIT_FLOOR


def _strays(seen: Looked, reference: Prepared) -> Flags | None:
    """Events farther out than all of the reference's, where there are some and too few to count.

    No law of the fit can know them: one height of a thousand that was typed wrongly lies where the cosines of nearly
    collinear features hardly vary, and moved the match by seven standard deviations.
    """
    if reference.landscape is None or seen.distances is None:
        return None
    strays = seen.distances > reference.landscape.scores[-1]
    return strays if 0 < strays.sum() <= UNKNOWN_FLOOR * strays.size else None


def is_class(unknown: Novelty, level: float) -> bool:
    """Significant, large enough to matter, and no more than a part of the window."""
    return unknown.p_value < level and UNKNOWN_FLOOR <= unknown.mass <= UNKNOWN_CEILING


def _lies_with_one_feature(unknown: Novelty, rest: Rest | None, seen: Looked, reference: Prepared) -> bool:
    """Whether the one feature without which the window fits is also what sets most of the unknown events apart.

    A unit that changed in a column that is mostly zero throws a tenth of the events far out. The events of a new class
    lie elsewhere without any one of their features too.
    """
    if rest is None or len(rest.left_out) != 1 or seen.standardised is None:
        return False
    blind = prepared.blind_landscape(reference, next(iter(rest.left_out)))
    if blind is None:
        return True
    columns, landscape = blind
    distances = landscape.distances(np.ascontiguousarray(seen.standardised[:, columns]))
    seen_by_blind = novelty(landscape, distances, rest.match.priors)
    return seen_by_blind.mass < unknown.mass / 2


def _without_unknown(
    unknown: Novelty, window: Window, reference: Prepared, whole: Match, mapped: Match | None, *, level: float
) -> Match | None:
    """The match of what lies where the classes were, on both sides, if the misfit goes with the other events: if it
    fits, or if at most `MISFIT_LEFT` of the misfit's effect stays, and less than when moved inputs are mapped back.

    Events of a new class come in addition to classes that are what they were. Events that were thrown out of known
    classes left these deformed, and however far out and close together they lie, the rest does not fit either.
    """
    inside = prepared.inside(reference, unknown.threshold, varied=whole.natural)
    seen = looked.look(window.take(~unknown.beyond), reference)
    mean = seen.mean * reference.moments.scale / inside.scale
    at = np.flatnonzero(np.isfinite(mean))
    known = fit.match(inside.at(at), mean[at], seen.events, seen.when)
    fits = known.p_value >= level or known.effect <= MISFIT_LEFT * whole.effect
    return known if fits and (mapped is None or known.effect < mapped.effect) else None


def _mixes_differ(known: Match, unknown: Novelty, without_feature: Match, reference: Prepared, level: float) -> bool:
    """Whether the known events show another class mix than all events do by their other features.

    A fault of one feature throws out events of the known classes: both are the mix of these. What a new class adds to
    the other features makes them show a mix that is none.
    """
    inside = prepared.shares_inside(reference, unknown.threshold)
    scale = prepared.out_of_inside(known.priors, inside)
    variances = np.diag(known.covariance) * scale**2 + np.diag(without_feature.covariance)
    apart = np.abs(known.priors * scale - without_feature.priors) / np.sqrt(np.maximum(variances, LEAST_ERROR**2))
    return bool(2 * inside.size * ndtr(-apart.max()) < level)


def _suspects(tested: tuple[Move, ...]) -> list[int]:
    """The features that differ at all, worst first."""
    p_values = np.array([min(move.p_value, move.missing_p) for move in tested])
    sizes = np.array([max(move.distance, abs(move.missing_rate - move.expected_missing_rate)) for move in tested])
    return [int(j) for j in np.lexsort((-sizes, p_values)) if p_values[j] < SUSPICION]


def _rest(seen: Looked, reference: Prepared, tested: tuple[Move, ...], whole: Match, level: float) -> Rest | None:
    """What fits: all inputs without the scores if none of them moved, else the inputs but for a few."""
    alone = search.inputs_alone(seen, reference)
    if alone is not None:
        at_their_mix = moves.of_features(seen, reference, alone.match.priors, level, alone.match.covariance)
        if not any(move.moved for move in at_their_mix):
            return alone
    suspects = dict.fromkeys([*_suspects(tested), *_farthest_out(seen, reference, whole)])
    return search.rest(seen, reference, list(suspects), level)


def _inputs_differ(seen: Looked, reference: Prepared, tested: tuple[Move, ...], level: float) -> bool:
    """Whether an input has moved, or the inputs without the scores differ by more than blocks of the hold-out do.

    Where blocks differ, nature moves many inputs at once and bends how they go together: that no few of them restore
    the rest is no riddle there. Only a window whose inputs are as they were is one.
    """
    if any(move.distribution_moved or move.missing_moved for move in tested):
        return True
    match = search.without_scores(seen, reference)
    return match is not None and _misfits(match, level)


def _farthest_out(seen: Looked, reference: Prepared, whole: Match) -> list[int]:
    """The feature that sets events beyond all classes apart the most.

    A column that is 0 for 96 events of 100 may come in another unit without its distribution moving far: no test of
    its own sees that, but what is not 0 lies where nothing was.
    """
    if reference.landscape is None or reference.projections is None or seen.standardised is None:
        return []
    beyond = novelty(reference.landscape, present(seen.distances, "distances"), whole.priors).beyond
    if not beyond.any():
        return []
    apart = np.abs(np.median(seen.standardised[beyond], axis=0))
    return [int(reference.projections.columns[int(apart.argmax())])]


def _moved(tested: tuple[Move, ...]) -> list[int]:
    return [j for j, move in enumerate(tested) if move.moved]


def _explained(
    seen: Looked, table: Matrix, reference: Prepared, tested: tuple[Move, ...], priors: Vector, *, level: float
) -> tuple[dict[int, Explanation], Match | None]:
    """How the moved numbers moved, and how well the window fits once they are mapped back.

    One feature alone cannot say whether it was mirrored; all together can. A falling line with which the window does
    not fit is not believed, unless it fits better than what rises.
    """
    explanations = _explanations(table, reference, tested, priors, level=level, when=seen.when)
    mapped = _mapped(seen, table, reference, explanations)
    if mapped is None or mapped.p_value >= level or all(explanation.alpha > 0 for explanation in explanations.values()):
        return explanations, mapped
    rising = _explanations(table, reference, tested, priors, level=level, when=seen.when, direction="increasing")
    upright = _mapped(seen, table, reference, rising)
    falls = upright is not None and mapped.effect < upright.effect
    return (explanations, mapped) if falls else (rising, upright)


def _explanations(
    table: Matrix,
    reference: Prepared,
    tested: tuple[Move, ...],
    priors: Vector,
    *,
    level: float,
    when: Vector | None,
    direction: Direction | None = None,
) -> dict[int, Explanation]:
    """How each moved number moved, against the reference at this class mix and time of its season."""
    explanations, usual = {}, reference.usual_features(when)
    for j in _moved(tested):
        row = reference.features.row_of.get(j)
        if row is not None and tested[j].distribution_moved:
            column = reference.features.numbers[row]
            weights = column.weights(priors)
            explanations[j] = covariates.explain(
                column.exact,
                table[:, j],
                weights if usual is None else usual.weights(j, column, weights),
                level=level,
                floor=DISTANCE_FLOOR,
                direction=direction,
            )
    return explanations


def _mapped(seen: Looked, table: Matrix, reference: Prepared, explanations: Mapping[int, Explanation]) -> Match | None:
    """The match after moved features were mapped back; without posteriors, which cannot be mapped."""
    maps = {
        j: explanation.map(table[:, j])
        for j, explanation in explanations.items()
        if explanation.kind in {"linear", "monotone"}
    }
    if not maps or len(maps) < len(explanations):
        return None
    mean = looked.mean_with(seen, table, maps, reference)
    at = fit.coordinates(reference.blocks, "feature", "joint")
    return fit.match(prepared.part(reference, tuple(at.tolist())), mean[at], seen.events, seen.when)


def _mix(seen: Looked, whole: Match, rest: Rest | None, reference: Prepared, usual: UsualMix | None) -> Tested:
    """Whether the class mix moved, by all coordinates or by those that are left."""
    events, held = seen.events, reference.class_counts.sum()
    if rest is None:
        return fit.mix_moved(whole, prepared.part(reference, _known(seen)), held, events, usual)
    return fit.mix_moved(rest.match, prepared.without(reference, rest.left_out)[2], held, events, usual)

"""A verdict's reasons in words, with the numbers that a person on call needs to act."""

from collections.abc import Mapping, Sequence

import numpy as np

from monitor.arrays import Vector
from monitor.assessment.verdict import Verdict
from monitor.priors import PriorEstimate
from monitor.shifts import Blocks, Diagnosis, Explanation, Move, UnknownEvents, cohen_w
from monitor.tolerances import MINIMUM_EVENTS, MIX_FLOOR, WHOLE_BLOCKS

RARE = 0.05
"""Of two classes a rarer one is what people look for: its share is told, whether it rose or fell."""
NAMED = 3
"""Classes and features that are named one by one; a page of them would not be read."""


def too_few(events: int, unusable: int) -> tuple[str, ...]:
    """Why nothing can be said."""
    spoilt = f"; {unusable:,} more had unusable posteriors" if unusable else ""
    return (f"{events:,} usable events, {MINIMUM_EVENTS} are needed{spoilt}",)


def short_hold_out(blocks: Blocks | None) -> tuple[str, ...]:
    """Why a verdict other than `stable` is less sure than it looks: the hold-out is only some windows long."""
    if blocks is None or (blocks.parts == 1 and blocks.number >= WHOLE_BLOCKS):
        return ()
    length = (
        f"the hold-out is only {blocks.stretches} times as long as a window"
        if blocks.number > 2
        else ("the hold-out is hardly longer than a window")
    )
    return (f"{length}: what changes more slowly by nature was not in it, and this may be such a change",)


def season_of_inputs(blocks: Blocks | None, diagnosis: Diagnosis) -> tuple[str, ...]:
    """What inputs were held against, where they follow a season."""
    if blocks is None or blocks.seasonal is None:
        return ()
    if diagnosis.seasonal:
        return ("features and scores are held against what is usual of them at this time",)
    return ("what is usual of features and scores at this time is not known: they are held against the whole hold-out",)


def reasons(
    verdict: Verdict,
    diagnosis: Diagnosis,
    mix: tuple[str, ...],
    novel_features: str,
    exchanged: tuple[str, str] | None,
    *,
    unknown: UnknownEvents | None,
    mix_known: bool,
    mix_vague: bool,
    mix_usual: str,
) -> tuple[str, ...]:
    """The sentences, most important first, around what happened to the mix and where unknown events lie.

    `exchanged` are two classes whose scores would fit in each other's place. `mix_known` is false for a model whose
    posteriors cannot tell one class mix from another, `mix_vague` is true where the share of a class may be nearly
    anything. `mix_usual` is not empty where the mix of a stable window differs.
    """
    fit, moved = diagnosis.whole, moved_sentences(diagnosis.features, diagnosis.explanations) or _left_out(diagnosis)
    misfit = f"one class mix does not explain the window (fit p {p_text(fit.p_value)}, {fit.effect:.2f} sd left over)"
    if verdict is Verdict.STABLE:
        return _stable(diagnosis, mix_known, mix_usual)
    if verdict is Verdict.PRIOR_SHIFT:
        return (*mix, f"the new class mix explains the inputs (fit p {p_text(fit.p_value)})")
    if unknown is not None:
        where = f": {novel_features}" if novel_features else ""
        about = f"about {unknown.estimate:.1%} ({unknown.lower:.1%} to {unknown.upper:.1%})"
        lie = f"{about} of the events look like no known class{where}"
        return (lie, f"{misfit}; without these events most of that goes")
    if verdict is Verdict.COVARIATE_SHIFT:
        return (*(moved or (misfit,)), *_mix_beside_inputs(diagnosis, mix_vague))
    if verdict is Verdict.PRIOR_AND_COVARIATE_SHIFT:
        return (*moved, *mix)
    return (misfit, *_unexplained(diagnosis, moved, exchanged))


def _mix_beside_inputs(diagnosis: Diagnosis, mix_vague: bool) -> tuple[str, ...]:
    """What is known of the class mix where inputs moved."""
    if diagnosis.rest is None:
        together = "inputs differ together by more than blocks of the hold-out do, and not by a few of them alone"
        return (together, "whether the class mix moved cannot be told")
    unmoved = "the class mix that the other inputs show has not moved"
    return ("the other inputs hardly tell the class mix: it may have moved too" if mix_vague else unmoved,)


def _unexplained(diagnosis: Diagnosis, moved: tuple[str, ...], exchanged: tuple[str, str] | None) -> tuple[str, ...]:
    if diagnosis.rest is not None and diagnosis.scores_moved:
        return _scores_moved(diagnosis.rest.match.p_value, exchanged)
    unsure = () if diagnosis.rest is not None else ("whether the class mix moved cannot be told",)
    return (*moved, "no line or percentile map of the inputs explains it", *unsure)


def _stable(diagnosis: Diagnosis, mix_known: bool, mix_usual: str) -> tuple[str, ...]:
    compared = "every input" if diagnosis.features else "the scores"
    agreed = f"the class mix and {compared} agree" if mix_known else "everything that can be seen agrees"
    if mix_usual:
        agreed = f"but for the class mix, {compared} agree{'s' * bool(diagnosis.features)}"
    unseen = () if mix_known else ("the posteriors cannot tell what the class mix is",)
    fit = p_text(diagnosis.whole.p_value)
    return (f"{agreed} with the reference (fit p {fit})", *([mix_usual] if mix_usual else []), *unseen)


def mix_sentences(
    names: tuple[str, ...], source_priors: Vector, prevalence: PriorEstimate, *, seasonal: bool = False
) -> tuple[str, ...]:
    """The classes that changed the most; first those whose interval no longer holds the share that they had, or that is
    usual at this time of the season."""
    then = ", which is usual at this time," if seasonal else ""
    change = prevalence.priors - source_priors
    held = (prevalence.lower <= source_priors) & (source_priors <= prevalence.upper)
    # As in Cohen's w: a rare class that doubles stands out more than a frequent one that gives way.
    order = sorted(
        range(len(names)), key=lambda y: (bool(held[y]), -abs(float(change[y])) / float(source_priors[y]) ** 0.5, y)
    )
    # Of two classes one says all: the one that rose, unless the other is rare.
    shown = [_told_of_two(source_priors, change)] if len(names) == 2 else order[:NAMED]
    return tuple(
        f"{names[y]} {_change(float(change[y]), bool(held[y]))} from {_share(source_priors[y])}{then} "
        f"to {_share(prevalence.priors[y])} ({_share(prevalence.lower[y])} to {_share(prevalence.upper[y])})"
        for y in shown
    )


def usual_mix(names: tuple[str, ...], source_priors: Vector, prevalence: PriorEstimate) -> str:
    """What to say of a mix that is not the reference's, and that windows without a shift have too; else nothing.

    Where blocks of the hold-out differ, a class may be far from its share without being farther than by nature.
    """
    apart = np.maximum(source_priors - prevalence.upper, prevalence.lower - source_priors)
    if apart.max() <= 0 or cohen_w(prevalence.priors, source_priors) < MIX_FLOOR:
        return ""
    y = int((apart / np.sqrt(source_priors)).argmax())
    return (
        f"{names[y]} is {_share(prevalence.priors[y])} of the events and {_share(source_priors[y])} of the hold-out: "
        "blocks of the hold-out differ too much to call that a shift"
    )


def _change(by: float, held: bool) -> str:
    """The interval of a class that may not have changed holds the share that it had."""
    return ("may have risen" if by > 0 else "may have fallen") if held else ("rose" if by > 0 else "fell")


def _told_of_two(source_priors: Vector, change: Vector) -> int:
    rare = int(source_priors.argmin())
    return rare if source_priors[rare] < RARE else int(change.argmax())


def _share(value: float) -> str:
    """One decimal, and of less than a percent two digits."""
    return f"{value:.1%}" if value >= 0.01 or value < 1e-6 else f"{100 * value:.2g}%"


def moved_sentences(moves: Sequence[Move], explanations: Mapping[int, Explanation]) -> tuple[str, ...]:
    """The features that moved the most."""
    moved = [(j, move) for j, move in enumerate(moves) if move.moved]
    moved.sort(key=lambda pair: (-pair[1].distance, pair[0]))
    sentences = tuple(describe(move, explanations.get(j)) for j, move in moved[:NAMED])
    return sentences if len(moved) <= NAMED else (*sentences, f"and {len(moved) - NAMED} more features moved")


def _scores_moved(fit: float, exchanged: tuple[str, str] | None) -> tuple[str, str]:
    likely = "is it another model, or another calibration?"
    if exchanged is not None:
        likely = f"with the columns of {exchanged[0]} and {exchanged[1]} exchanged they would"
    alone = f"the inputs alone are as the reference leads to expect (fit p {p_text(fit)})"
    return (f"{alone}, the scores do not go with them", likely)


def _left_out(diagnosis: Diagnosis) -> tuple[str, ...]:
    """What has to be left out for a fit where no feature moved far enough by itself to be called moved."""
    if diagnosis.rest is None:
        return ()
    names = " and ".join(diagnosis.features[j].name for j in sorted(diagnosis.rest.left_out))
    whole, without = p_text(diagnosis.whole.p_value), p_text(diagnosis.rest.match.p_value)
    return (f"one class mix explains the window only without {names} (fit p {whole} with, {without} without)",)


def describe(move: Move, explanation: Explanation | None) -> str:
    """What happened to one moved feature."""
    if move.missing_moved:
        if move.missing_rate == 1:
            return f"{move.name} is missing in all events"
        expected = move.expected_missing_rate
        return f"{move.name} is missing in {move.missing_rate:.1%} of the events, expected {expected:.1%}"
    why = "the window fits only without it" if move.left_out else f"p {p_text(move.adjusted_p)}"
    return f"{move.name} {_how(explanation)} (distance {move.distance:.3f}, {why})"


def _how(explanation: Explanation | None) -> str:
    if explanation is None:
        return "has other shares of its values"
    if explanation.kind == "linear":
        sign = "minus" if explanation.beta < 0 else "plus"
        return f"is {explanation.alpha:.3g} times what it was, {sign} {abs(explanation.beta):.3g}"
    changes = {"monotone": "was stretched along a monotone curve", "shape": "changed its shape"}
    return changes.get(explanation.kind, "moved")


def p_text(value: float) -> str:
    """A p-value; far out, its digits mean nothing."""
    return "< 1e-12" if value < 1e-12 else f"{value:.2g}"

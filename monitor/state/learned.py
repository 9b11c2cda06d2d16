"""What late labels have taught, and the pool of corrections that the feed carries meanwhile (`labels.learning`).

Its multipliers are those of the class mix now (`smoothed`): what one window of some hundred events says by itself is so
noisy that correcting by it costs a still stream more than it gives.
"""

from dataclasses import replace
from typing import cast

import msgspec
import numpy as np

from monitor.assessment import Assessment, BasedOn
from monitor.labels import Settlement, learning
from monitor.labels.learning import Learned
from monitor.limits import DELAYS_REMEMBERED, LEARNED_CLASSES
from monitor.ports import NEVER
from monitor.recalibration import CalibrationMap, Expert, Recalibration, pooled_rows, towards
from monitor.recalibration.applying import experts_of_posteriors, pooled_thresholds
from monitor.reference import FiledReference, Reference
from monitor.state.concern import Advanced, Concern, Seen, WindowSeen
from monitor.state.plan import StatePlan


class LearnedState(msgspec.Struct, frozen=True):
    """Some numbers for each class, a matrix, and the weights of the windows that are under way."""

    known: Learned | None = None
    """None before the first label."""
    settled: tuple[int, str] = (NEVER, "")
    """The last window that has settled: its end and its id. Windows settle once, in this order."""
    delays: tuple[float, ...] = ()
    """Of the last outcomes: the seconds within which nearly all labels had come."""

    @property
    def wait(self) -> int | None:
        """How long labels take, microseconds; None before that is known: windows then settle with their outcomes."""
        return round(max(self.delays) * 1e6) if self.delays else None


def learned(plan: StatePlan, reference: FiledReference) -> Concern[LearnedState] | None:
    """The concern, for whole streams of classifiers that await labels."""
    if not plan.awaiting or not isinstance(reference, Reference) or len(reference.classes) > LEARNED_CLASSES:
        return None
    calibration, nothing = reference.calibration.to_map(), learning.nothing_learned(len(reference.classes))

    def advance(state: LearnedState, seen: Seen) -> Advanced[LearnedState]:
        known = state.known or nothing
        if isinstance(seen, WindowSeen):
            return _window(state, known, seen, calibration)
        if isinstance(seen, Settlement):
            if seen.reference == reference.version:
                known = learning.settled(known, seen.learned_from, calibration)
            return Advanced(msgspec.structs.replace(state, known=known, settled=seen.place))
        if seen.result.segment:
            return Advanced(state)
        within = seen.result.labels_within
        delays = state.delays if within is None else (*state.delays, within)[-DELAYS_REMEMBERED:]
        return Advanced(msgspec.structs.replace(state, delays=delays))

    return Concern(
        "learned",
        version=2,
        state=LearnedState,
        advance=advance,
        new_reference="begins anew",
        earlier={1: _of_version_1},
    )


def _of_version_1(text: bytes) -> LearnedState:
    """There nothing was pooled before the first label, and its silence was null."""
    table = msgspec.json.decode(text)
    if table.get("known") is not None:
        table["known"]["silence"] = table["known"].get("silence") or 0
    return msgspec.convert(table, LearnedState)


def multipliers_of(seen: WindowSeen, known: Learned) -> tuple[float, ...]:
    """Towards the class mix now; none where label shift does not explain the window, and where the mix may as well not
    have moved. Before any label can tell what they are worth, they are those that the feed would apply by itself."""
    if not known.taught:
        return seen.recalibration.multipliers if seen.recalibration.apply else ()
    assessment, mix = cast(Assessment, seen.assessment), seen.smoothed
    explained = assessment.evidence.label_shift_fits and assessment.based_on is BasedOn.LABEL_SHIFT
    if mix is None or not explained:
        return ()
    lower, upper = np.array(mix.lower), np.array(mix.upper)
    return towards(np.array(mix.priors), (upper - lower) / 2, assessment.source_priors)


def _window(
    state: LearnedState, known: Learned, seen: WindowSeen, calibration: CalibrationMap | None
) -> Advanced[LearnedState]:
    """The feed carries the pool; the result says what the window itself shows. Parts of windows recommend nothing."""
    unlearned, key = seen.recalibration, seen.window.key
    if key.segment or key.part or not unlearned.complete:
        return Advanced(state)
    known, pool = learning.corrected(known, key.id, multipliers_of(seen, known), calibration)
    if not pool:
        return Advanced(state)
    return Advanced(
        msgspec.structs.replace(state, known=known), seen=replace(seen, feed=_pooled(unlearned, pool, known))
    )


def _pooled(unlearned: Recalibration, pool: tuple[Expert, ...], known: Learned) -> Recalibration:
    raw, feed, taught = (f"{one.weight:.0%}" for one in pool)
    unfair = "; they are no fair sample, so that only their slope is used" if known.selection.selected else ""
    weigh = "labels of earlier windows weigh" if known.taught else "until labels come the weights are:"
    message = replace(
        unlearned,
        experts=pool,
        reason=(
            f"{unlearned.reason}; {weigh} the scores as they were {raw}, the correction "
            f"without labels {feed}, and what labels taught {taught}{unfair}"
        ),
    )
    posteriors = experts_of_posteriors(message)
    ys = range(len(message.classes))
    thresholds = pooled_thresholds(ys, 0.5, message.source_priors, lambda rows: pooled_rows(np.array(rows), posteriors))
    return replace(message, thresholds=dict(zip(message.classes, thresholds, strict=True)))

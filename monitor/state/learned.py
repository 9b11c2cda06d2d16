"""What late labels have taught, and the pool of corrections that the feed then carries (`labels.learning`)."""

from dataclasses import replace

import msgspec
import numpy as np

from monitor.labels import Settlement, learning
from monitor.labels.learning import Learned
from monitor.limits import DELAYS_REMEMBERED, LEARNED_CLASSES
from monitor.ports import NEVER
from monitor.recalibration import CalibrationMap, Expert, Recalibration, pooled_rows
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
        within = seen.result.labels_within
        delays = state.delays if within is None else (*state.delays, within)[-DELAYS_REMEMBERED:]
        return Advanced(msgspec.structs.replace(state, delays=delays))

    return Concern("learned", version=1, state=LearnedState, advance=advance, new_reference="begins anew")


def _window(
    state: LearnedState, known: Learned, seen: WindowSeen, calibration: CalibrationMap | None
) -> Advanced[LearnedState]:
    """The feed carries the pool; the result says what the window itself shows. Parts of windows recommend nothing."""
    unlearned, key = seen.recalibration, seen.window.key
    if key.segment or key.part or not unlearned.complete:
        return Advanced(state)
    known, pool = learning.corrected(known, key.id, seen.assessment.label_shift, calibration)
    if not pool:
        return Advanced(state)
    return Advanced(
        msgspec.structs.replace(state, known=known), seen=replace(seen, feed=_pooled(unlearned, pool, known))
    )


def _pooled(unlearned: Recalibration, pool: tuple[Expert, ...], known: Learned) -> Recalibration:
    raw, feed, taught = (f"{one.weight:.0%}" for one in pool)
    unfair = "; they are no fair sample, so that only their slope is used" if known.selection.selected else ""
    message = replace(
        unlearned,
        experts=pool,
        reason=(
            f"{unlearned.reason}; labels of earlier windows weigh the scores as they were {raw}, the correction "
            f"without labels {feed}, and what labels taught {taught}{unfair}"
        ),
    )
    posteriors = experts_of_posteriors(message)
    ys = range(len(message.classes))
    thresholds = pooled_thresholds(ys, 0.5, message.source_priors, lambda rows: pooled_rows(np.array(rows), posteriors))
    return replace(message, thresholds=dict(zip(message.classes, thresholds, strict=True)))

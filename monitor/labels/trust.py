"""Whether the last outcomes bear the estimates out. Pure.

Each class's interval should miss the truth once in twenty windows. Of the last windows with enough labels, drawn
without preference, the misses of a class are binomial; a class that misses more often than chance allows (Bonferroni
over the classes) means that the estimates are off, and that nothing should be corrected by them.
"""

from collections.abc import Sequence

import msgspec
from scipy.special import bdtrc

from monitor.labels.outcome_message import OutcomeResult
from monitor.tolerances import INTERVAL_MISSES, TRUST_LABELS, TRUST_LEVEL


class Shown(msgspec.Struct, frozen=True):
    """What is remembered of an outcome: which classes' intervals missed, and on which side."""

    judged: bool
    """Enough labels, and not selected."""
    missed: dict[str, float]
    """Estimate minus realised, of the classes that missed."""
    classes: int


def shown(outcome: OutcomeResult) -> Shown:
    """What to remember of an outcome."""
    enough = outcome.labels.joined >= TRUST_LABELS and not outcome.selective
    missed = {name: realised.error for name, realised in outcome.classes.items() if not realised.covered}
    return Shown(enough, missed if enough else {}, len(outcome.classes))


def judged(remembered: Sequence[Shown]) -> str:
    """Why the estimates are not to be trusted after these outcomes, the newest last; empty if they are."""
    looked = [outcome for outcome in remembered if outcome.judged]
    misses: dict[str, list[float]] = {}
    for outcome in looked:
        for name, error in outcome.missed.items():
            misses.setdefault(name, []).append(error)
    for name, errors in sorted(misses.items(), key=lambda item: (-len(item[1]), item[0])):
        p_value = float(bdtrc(len(errors) - 1, len(looked), INTERVAL_MISSES))
        if p_value < TRUST_LEVEL / max(outcome.classes for outcome in looked):
            mean = sum(errors) / len(errors)
            return (
                f"labels show that the estimate was off: the interval of {name} missed the truth in {len(errors)} of "
                f"the last {len(looked)} windows with labels, by {mean:+.3f} on average"
            )
    return ""

"""Everything that can turn evidence into a verdict lives here: the decision table, read from top to bottom.

Each row says what has to be true (yes), what must not be (no), and what does not matter (-). The first row that
applies gives the verdict; the last applies always.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Verdict(StrEnum):
    """What happened to the stream in a window."""

    INSUFFICIENT_DATA = "insufficient-data"  # too few usable events to say anything
    STABLE = "stable"  # nothing moved by more than chance and the floors
    PRIOR_SHIFT = "prior-shift"  # the class mix moved, and explains everything that moved
    COVARIATE_SHIFT = "covariate-shift"  # some inputs moved, the class mix did not
    PRIOR_AND_COVARIATE_SHIFT = "prior-and-covariate-shift"
    UNKNOWN_CLASS = "unknown-class"  # a part of the events lies where no class ever was, and the misfit with it
    RELATION_SHIFT = "relation-shift"  # labels no longer depend on the inputs as they did: regression streams only
    UNEXPLAINED = "unexplained"  # the window differs, and neither mix, inputs nor a new class explain how


@dataclass(frozen=True, slots=True)
class Evidence:
    """The five questions that a verdict rests on."""

    enough_events: bool
    label_shift_fits: bool
    """One class mix explains all features and posteriors."""
    mix_moved: bool
    """Significantly, and by more than the floor."""
    unknown_class: bool
    inputs_explain: bool
    """A few moved inputs, each explained, leave a rest that one class mix explains."""


Need = Literal["yes", "no", "-"]
Row = tuple[Need, Need, Need, Need, Need, Verdict]

TABLE: tuple[Row, ...] = (
    # enough  fits  mix moved  unknown  inputs explain
    ("no", "-", "-", "-", "-", Verdict.INSUFFICIENT_DATA),
    ("yes", "yes", "no", "-", "-", Verdict.STABLE),
    ("yes", "yes", "yes", "-", "-", Verdict.PRIOR_SHIFT),
    ("yes", "no", "-", "yes", "-", Verdict.UNKNOWN_CLASS),
    ("yes", "no", "no", "no", "yes", Verdict.COVARIATE_SHIFT),
    ("yes", "no", "yes", "no", "yes", Verdict.PRIOR_AND_COVARIATE_SHIFT),
    ("yes", "no", "-", "no", "no", Verdict.UNEXPLAINED),
)


def decide(evidence: Evidence) -> Verdict:
    """The verdict of the first row that applies."""
    answers = (
        evidence.enough_events,
        evidence.label_shift_fits,
        evidence.mix_moved,
        evidence.unknown_class,
        evidence.inputs_explain,
    )
    return _first(TABLE, answers)


@dataclass(frozen=True, slots=True)
class RegressionEvidence:
    """The three questions that the verdict on a regression stream rests on."""

    relation_changed: bool
    """Of the labels to the inputs: significantly, and by more than the floor. It takes labels, not events."""
    enough_events: bool
    inputs_moved: bool
    """Some input, or the predictions: significantly, and by more than the floor."""


REGRESSION_TABLE: tuple[tuple[Need, Need, Need, Verdict], ...] = (
    # relation  enough  moved
    ("yes", "-", "-", Verdict.RELATION_SHIFT),
    ("no", "no", "-", Verdict.INSUFFICIENT_DATA),
    ("no", "yes", "yes", Verdict.COVARIATE_SHIFT),
    ("no", "yes", "no", Verdict.STABLE),
)


def decide_regression(evidence: RegressionEvidence) -> Verdict:
    """The verdict of the first row that applies."""
    return _first(REGRESSION_TABLE, (evidence.relation_changed, evidence.enough_events, evidence.inputs_moved))


def verdicts(regression: bool) -> tuple[Verdict, ...]:
    """Those that a stream of either kind can get."""
    reached = {row[-1] for row in (REGRESSION_TABLE if regression else TABLE)}
    return tuple(verdict for verdict in Verdict if verdict in reached)


def _first(table: Sequence[tuple[str, ...]], answers: Sequence[bool]) -> Verdict:
    for *needs, verdict in table:
        if all(need == "-" or (need == "yes") == answer for need, answer in zip(needs, answers, strict=True)):
            return Verdict(verdict)
    raise AssertionError("the table covers every combination; a test enumerates them")

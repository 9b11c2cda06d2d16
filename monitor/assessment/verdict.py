"""Everything that can turn evidence into a verdict lives here: the decision tables, read from top to bottom.

Each row says what has to be true (yes), what must not be (no), and what does not matter (-). The first row that
applies gives the verdict; the last applies always. What a person is shown of a verdict stands here too, in `FACTS`:
status page, terminal, alarms and dashboards read it, and alert rules, runbook and README are checked against it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Gravity = Literal["silent", "calm", "warning", "critical"]
"""Silent says nothing for or against an alarm; from warning on something has moved, and an alert has that severity."""


@dataclass(frozen=True, slots=True)
class VerdictFacts:
    """What a person is shown of a verdict."""

    gravity: Gravity
    headline: str
    """As a heading and in alerts."""
    meaning: str
    advice: str
    mark: str
    """One character for those who cannot tell the colours apart."""
    colour: str
    dark_colour: str
    """The same on a dark page."""


class Verdict(StrEnum):
    """What happened to the stream in a window; a later one is graver."""

    INSUFFICIENT_DATA = "insufficient-data"
    STABLE = "stable"
    PRIOR_SHIFT = "prior-shift"
    COVARIATE_SHIFT = "covariate-shift"
    PRIOR_AND_COVARIATE_SHIFT = "prior-and-covariate-shift"
    UNKNOWN_CLASS = "unknown-class"
    RELATION_SHIFT = "relation-shift"
    CONCEPT_SHIFT = "concept-shift"
    UNEXPLAINED = "unexplained"

    @property
    def facts(self) -> VerdictFacts:
        """What a person is shown of it."""
        return FACTS[self]

    @property
    def silent(self) -> bool:
        """Whether it says nothing for or against an alarm."""
        return self.facts.gravity == "silent"

    @property
    def moved(self) -> bool:
        """Whether somebody has to know."""
        return self.facts.gravity in ("warning", "critical")

    @property
    def rank(self) -> int:
        """How grave it is among all, from 0."""
        return _RANKS[self]


_RANKS = {verdict: rank for rank, verdict in enumerate(Verdict)}


FACTS: Mapping[Verdict, VerdictFacts] = {
    Verdict.INSUFFICIENT_DATA: VerdictFacts(
        "silent",
        "Too few events to tell",
        "too few usable events to say anything",
        "Wait, or choose longer windows.",
        "…",
        "#a9aeb5",
        "#5d646e",
    ),
    Verdict.STABLE: VerdictFacts(
        "calm",
        "Nothing has moved",
        "nothing moved by more than chance and the smallest effect that counts",
        "No action is needed.",
        "✓",
        "#4f9d76",
        "#4b9a73",
    ),
    Verdict.PRIOR_SHIFT: VerdictFacts(
        "warning",
        "The class mix has moved",
        "the class mix moved, and that alone explains the window",
        "Apply the recalibration, and look for the cause if the new mix is a surprise.",
        "◐",
        "#d9982b",
        "#e0a63f",
    ),
    Verdict.COVARIATE_SHIFT: VerdictFacts(
        "warning",
        "Inputs have moved",
        "inputs moved beyond what any class mix explains",
        "Look at the features named here: a unit, an encoding, a new source. Scores may be off.",
        "▲",
        "#d5622c",
        "#e5763f",
    ),
    Verdict.PRIOR_AND_COVARIATE_SHIFT: VerdictFacts(
        "warning",
        "The class mix and inputs have moved",
        "both the class mix and inputs moved",
        "Mend the inputs first: the prevalence is less certain than its interval says.",
        "◮",
        "#b8433a",
        "#e0635a",
    ),
    Verdict.UNKNOWN_CLASS: VerdictFacts(
        "critical",
        "Some events look like no known class",
        "some events lie where no class of the reference was, and the rest fits",
        "Look at those events: the model has to learn the new class.",
        "?",
        "#8a55b5",
        "#ab7bd6",
    ),
    Verdict.RELATION_SHIFT: VerdictFacts(
        "warning",
        "Labels depend on the inputs in another way",
        "the labels of a regressor no longer depend on the inputs as they did",
        "Apply the correction where it is justified, and train the model anew on recent labels.",
        "⤢",
        "#2f7f9e",
        "#5fb2d0",
    ),
    Verdict.CONCEPT_SHIFT: VerdictFacts(
        "warning",
        "Labels follow the scores in another way",
        "labels that came later no longer follow a classifier's scores as they did, whatever the class mix",
        "Believe no scores that labels do not correct, and train the model anew on recent labels.",
        "⇄",
        "#1f5f4a",
        "#3fb58d",
    ),
    Verdict.UNEXPLAINED: VerdictFacts(
        "warning",
        "Moved, and no known shift says why",
        "the window differs, and neither mix, inputs nor a new class explain how",
        "Compare with a freshly labelled sample.",
        "!",
        "#7c2440",
        "#d0577f",
    ),
}


def table() -> str:
    """All verdicts as a Markdown table, the gravest last."""
    lines = ["| verdict | what happened | what to do |", "| --- | --- | --- |"]
    lines += [f"| `{verdict}` | {verdict.facts.meaning} | {verdict.facts.advice} |" for verdict in Verdict]
    return "\n".join(lines) + "\n"


def facts_by_name() -> Mapping[str, VerdictFacts]:
    """The same for whoever reads verdicts as text, the gravest last."""
    return {str(verdict): FACTS[verdict] for verdict in Verdict}


@dataclass(frozen=True, slots=True)
class Evidence:
    """The six questions that a verdict rests on."""

    enough_events: bool
    label_shift_fits: bool
    """One class mix explains all features and posteriors."""
    mix_moved: bool
    """Significantly, and by more than the floor."""
    unknown_class: bool
    inputs_explain: bool
    """A few moved inputs, each explained, leave a rest that one class mix explains."""
    concept_changed: bool = False
    """Labels of earlier windows no longer follow the scores as on the hold-out. It takes labels, not events."""


TOO_FEW = Evidence(
    enough_events=False, label_shift_fits=False, mix_moved=False, unknown_class=False, inputs_explain=False
)
"""Of a window that shows nothing."""

Need = Literal["yes", "no", "-"]
Row = tuple[Need, Need, Need, Need, Need, Need, Verdict]

TABLE: tuple[Row, ...] = (
    # enough  fits  mix moved  unknown  inputs explain  concept changed
    ("no", "-", "-", "-", "-", "-", Verdict.INSUFFICIENT_DATA),
    ("yes", "-", "-", "-", "-", "yes", Verdict.CONCEPT_SHIFT),
    ("yes", "yes", "no", "-", "-", "no", Verdict.STABLE),
    ("yes", "yes", "yes", "-", "-", "no", Verdict.PRIOR_SHIFT),
    ("yes", "no", "-", "yes", "-", "no", Verdict.UNKNOWN_CLASS),
    ("yes", "no", "no", "no", "yes", "no", Verdict.COVARIATE_SHIFT),
    ("yes", "no", "yes", "no", "yes", "no", Verdict.PRIOR_AND_COVARIATE_SHIFT),
    ("yes", "no", "-", "no", "no", "no", Verdict.UNEXPLAINED),
)


def decide(evidence: Evidence) -> Verdict:
    """The verdict of the first row that applies."""
    answers = (
        evidence.enough_events,
        evidence.label_shift_fits,
        evidence.mix_moved,
        evidence.unknown_class,
        evidence.inputs_explain,
        evidence.concept_changed,
    )
    return _first(TABLE, answers)


@dataclass(frozen=True, slots=True)
class RegressionEvidence:
    """The four questions that the verdict on a regression stream rests on."""

    relation_changed: bool
    """Of the labels to the inputs: significantly, and by more than the floor. It takes labels, not events."""
    enough_events: bool
    inputs_moved: bool
    """Some input, or the predictions: significantly, and by more than the floor."""
    errors_grown: bool = False
    """Those of the predictions: significantly, and by more than the floor."""


REGRESSION_TABLE: tuple[tuple[Need, Need, Need, Need, Verdict], ...] = (
    # relation  enough  moved  errors grown
    ("yes", "-", "-", "-", Verdict.RELATION_SHIFT),
    ("no", "no", "-", "-", Verdict.INSUFFICIENT_DATA),
    ("no", "yes", "yes", "-", Verdict.COVARIATE_SHIFT),
    ("no", "yes", "no", "yes", Verdict.UNEXPLAINED),
    ("no", "yes", "no", "no", Verdict.STABLE),
)


def decide_regression(evidence: RegressionEvidence) -> Verdict:
    """The verdict of the first row that applies."""
    answers = (evidence.relation_changed, evidence.enough_events, evidence.inputs_moved, evidence.errors_grown)
    return _first(REGRESSION_TABLE, answers)


def verdicts(regression: bool) -> tuple[Verdict, ...]:
    """The verdicts that a stream of either kind can get."""
    reached = {row[-1] for row in (REGRESSION_TABLE if regression else TABLE)}
    return tuple(verdict for verdict in Verdict if verdict in reached)


def _first(table: Sequence[tuple[str, ...]], answers: Sequence[bool]) -> Verdict:
    for *needs, verdict in table:
        if all(need == "-" or (need == "yes") == answer for need, answer in zip(needs, answers, strict=True)):
            return Verdict(verdict)
    raise AssertionError("the table covers every combination; a test enumerates them")

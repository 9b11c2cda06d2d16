"""What a kind of stream has to provide. Everything that differs between kinds is asked for here, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from monitor.arrays import Matrix
from monitor.assessment import AdaptBy, MixRule, Verdict
from monitor.kinds.assessed import Assessed
from monitor.performance import USUAL_DECISIONS, Decisions
from monitor.reference import FiledReference

if TYPE_CHECKING:
    from monitor.kinds.reading import Answer, ModelFacts, SmoothedMix
    from monitor.labels import OutcomeRules
    from monitor.recalibration import May, Recalibration
    from monitor.shifts import Outline
    from monitor.windows import Plan, Window, WindowSummary


@dataclass(frozen=True, slots=True)
class Declared:
    """What has been said of a stream's model and its inputs, which events cannot show."""

    outline: Outline | None = None
    """Of a model that is a versatile tree or forest: the feed then carries its adapted thresholds."""
    may: Mapping[str, May] = field(default_factory=dict)
    """How features may change without a change of what they mean, by name."""
    mix_rule: MixRule = field(default_factory=MixRule)
    """What counts as a move of the class mix."""
    adapt: AdaptBy = "bic"
    """How a regressor's relation of now is estimated."""
    decisions: Decisions = USUAL_DECISIONS
    """What is decided by the scores, and how that is to be measured."""
    only_mix: bool = False
    """Nothing but the class mix may change: inputs do not move by themselves."""
    sketches: bool = True
    """Whether results carry small sketches of the distributions."""


ReferenceT = TypeVar("ReferenceT", bound=FiledReference)
AssessedT = TypeVar("AssessedT", bound=Assessed)


@dataclass(frozen=True, slots=True)
class Kind(Generic[ReferenceT, AssessedT]):
    """A kind of stream."""

    name: str
    """What has such a stream: `classifier`."""
    reference: type[ReferenceT]
    settings: frozenset[str]
    """The stream's settings that are not for every kind: `setting`, or `setting = "value"`."""
    verdicts: tuple[Verdict, ...]
    """Those that its windows can get."""
    assess: Callable[[Window, ReferenceT, Declared], AssessedT]
    """The answer about one window."""
    plan: Callable[[Plan, ReferenceT, int | None], Plan]
    """The rules of the stream's windows, with what this kind gathers beside events; `evidence` in microseconds."""
    described: Callable[[ReferenceT], str]
    """What events are scored with, in words."""
    sample: Callable[[Window, ReferenceT], Matrix | None]
    """Some of the events' posteriors, for a detector of changes that looks at events; None where they have none."""
    facts: Callable[[ReferenceT], ModelFacts]
    """What is shown of the model before the first window."""
    answer: type[Answer]
    """What `read` makes."""
    outcomes: OutcomeRules
    """How its windows fare once their labels have come."""
    read: Callable[[AssessedT, WindowSummary, Recalibration, SmoothedMix | None], Answer]
    """What is remembered of a window beyond what is remembered of all; the recalibration is the published one, and the
    class mix that of all windows so far, where that is known."""


AnyKind = Kind[Any, Any]

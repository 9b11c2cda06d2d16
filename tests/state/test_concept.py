"""Concept shift over windows: it begins and ends with labels alone, as an alarm of the budget too."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from monitor.arrays import UNLABELLED
from monitor.assessment import Baseline, Verdict
from monitor.labels import Awaited, Outcome, Settlement
from monitor.labels.learning import Settled
from monitor.observers.history import History
from monitor.observers.metrics import families
from monitor.observers.snapshot import facts
from monitor.ports import Message
from monitor.reference.classifier import Reference
from monitor.service.loop import Clock
from monitor.service.publishing import Watched
from monitor.state import NOTHING, Budget, ConceptState, Known, Seen, StatePlan, WindowSeen, advance, concerns_of
from monitor.tolerances import CLASS_EVENTS
from monitor.web.page.document import document
from monitor.windows.by_count import CountPlan
from tests.service import streams
from tests.state.windows import Shown, outcome, seen

PLAN = StatePlan(awaiting=True, budget=Budget.of(1 / 500))


def labelled(number: int, flipped: float, reference: Reference | None = None) -> Settlement:
    """The window of that number with labels of half of its events, of which so many are of the other class."""
    posteriors, labels = streams.scores(400, 0.3, seed=500 + number)
    rng = np.random.default_rng(number)
    labels = np.where(rng.random(labels.size) < flipped, 1 - labels, labels)
    labels[::2] = UNLABELLED
    version = (reference or streams.reference()).version
    settled = Settled(f"s//{number}/{number + 1}", posteriors, labels, ())
    return Settlement("s", number, number + 1, version, settled)


def shown(what: Sequence[Seen], reference: Reference | None = None) -> tuple[Known, list[Seen], list[Message]]:
    """What is known after all of it, what was made of each, and what was published beside."""
    concerns = concerns_of(PLAN, reference or streams.reference())
    known, found, messages = NOTHING, list[Seen](), list[Message]()
    for each in what:
        step = advance(known, concerns, each)
        known = step.known
        found.append(step.seen)
        messages += step.messages
    return known, found, messages


def verdict(of: Seen) -> Verdict:
    assert isinstance(of, WindowSeen)
    return of.assessment.verdict


def test_a_shift_begins_with_labels_that_changed_and_ends_when_they_follow_the_scores_again() -> None:
    changed = [each for number in range(1, 5) for each in (labelled(number, 0.4), seen(number))]
    mended = [each for number in range(5, 15) for each in (labelled(number, 0.0), seen(number))]
    _, found, messages = shown([seen(0), *changed, *mended])
    verdicts = [verdict(each) for each in found if isinstance(each, WindowSeen)]
    assert verdicts[0] is Verdict.STABLE
    assert verdicts[4] is Verdict.CONCEPT_SHIFT
    assert verdicts[-1] is Verdict.STABLE
    events = [json.loads(message.value) for message in messages if message.channel == "alarms"]
    events = [event for event in events if event["series"] == "labels against scores"]
    assert [event["state"] for event in events] == ["raised", "resolved"]
    assert events[0]["id"] == events[1]["id"]
    assert events[0]["once_in"] == 4 * 500
    assert "less closely" in events[0]["reason"]


def test_metrics_and_page_tell_it() -> None:
    watched = Watched(streams.reference(), CountPlan(400), awaited=Awaited(1, 1, Path()))
    history = History({"s": facts("s", watched)}, clock=Clock(now=lambda: 10, elapsed=lambda: 0.0))
    to = Shown("s", watched.concerns, history)
    for what in (seen(0), *(labelled(number, 0.5) for number in range(1, 4)), seen(9)):
        to.show(what)
    samples = {
        (sample.name, sample.labels.get("verdict")): sample.value
        for family in families(history.snapshot, history.now())
        for sample in family.samples
    }
    assert samples["shiftwatch_verdict", "concept-shift"] == 1
    assert samples["shiftwatch_concept_significant", None] == 1
    weights = {
        sample.labels["estimator"]: sample.value
        for family in families(history.snapshot, history.now())
        for sample in family.samples
        if sample.name == "shiftwatch_expert_weight_ratio"
    }
    assert weights.keys() == {"raw", "label-shift", "learned"}
    assert sum(weights.values()) == pytest.approx(1)
    assert samples["shiftwatch_concept_effect", None] > samples["shiftwatch_concept_floor", None]
    page = document(history.snapshot, history.now())
    assert Verdict.CONCEPT_SHIFT.facts.headline in page
    assert "less closely" in page
    assert f"the scores as they were {weights['raw']:.0%}" in page


def test_neither_the_recent_normal_nor_a_prior_shift_excuses_a_changed_concept() -> None:
    moved = seen(9, 0.6)
    calm = replace(moved, assessment=replace(moved.assessment, recent=Baseline(Verdict.STABLE, ("as lately",))))
    _, found, _ = shown([seen(0), *(labelled(number, 0.5) for number in range(1, 4)), calm])
    last = found[-1]
    assert isinstance(last, WindowSeen)
    assert {one.verdict for one in last.assessment.baselines.values()} == {Verdict.CONCEPT_SHIFT}
    assert calm.assessment.reasons[0] in last.assessment.reasons
    assert moved.recalibration.apply
    assert not last.recalibration.apply
    assert not last.assessment.recalibration.apply


def test_a_window_with_too_few_events_stays_one() -> None:
    changed = [seen(0), *(labelled(number, 0.5) for number in range(1, 4))]
    _, found, _ = shown([*changed, seen(9, events=20)])
    assert verdict(found[-1]) is Verdict.INSUFFICIENT_DATA


def test_labels_of_windows_that_overlap_count_once() -> None:
    again = labelled(1, 0.5)
    once, twice = (shown([seen(0), again, *more])[0].state(ConceptState) for more in ([], [again]))
    assert once == twice
    assert once.windows == 1


def test_labels_of_windows_that_were_compared_with_another_reference_do_not_count() -> None:
    stranger = Reference.fit(*streams.scores(2_000, 0.3, seed=77), classes=["no", "yes"], stream="s")
    known, _, _ = shown([seen(0), labelled(1, 0.5, stranger)])
    assert known.state(ConceptState) == ConceptState()


def test_too_few_hold_out_events_of_a_class_are_asked_for_in_words() -> None:
    posteriors, labels = streams.scores(1_500, 0.04, seed=3)
    scarce = Reference.fit(posteriors, labels, classes=["no", "yes"], stream="s")
    known, found, _ = shown([*(labelled(number, 0.5, scarce) for number in range(1, 4)), outcome(0)], scarce)
    assert known.state(ConceptState) == ConceptState()
    last = found[-1]
    assert isinstance(last, Outcome)
    count = int(scarce.class_counts[1])
    assert count < CLASS_EVENTS
    assert last.result.concept == f"not tested: 100 hold-out events of each class are wanted; yes has {count}"

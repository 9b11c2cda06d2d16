"""Where labels come, the published class mix learns which estimates to believe."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from msgspec.structs import replace as changed

from monitor.assessment import BasedOn, assess
from monitor.labels import Outcome, Waiting, outcomes
from monitor.labels.published_window import kept, told
from monitor.labels.values import Found, Stateless
from monitor.limits import MIXES_KEPT
from monitor.state import RecentLabelsState, StatePlan, WindowSeen
from monitor.state.recent_labels import recent_labels
from monitor.tolerances import FEWEST_OUTCOMES
from monitor.windows import Window, WindowSummary
from tests.assessment import worlds
from tests.assessment.test_prevalence import BLOCK, reference, weeks

LATE = 2
NONE = np.zeros(0, dtype=np.int64)
PLAN = StatePlan(awaiting=True)


def concern(known=None):
    found = recent_labels(PLAN, known or reference())
    assert found is not None
    return found


def outcome(window: Window, seen: WindowSeen, labels: np.ndarray) -> Outcome:
    """What the labels of all events of a window show."""
    labelled = replace(window, labels=labels, timestamps=np.arange(labels.size))
    waiting = Waiting("s", "w", 0, 1, 1, 1, labels.size, told(seen.assessment, seen.experts), kept(labelled))
    none = Stateless((), NONE.astype(float), np.zeros((0, 3)))
    return outcomes.outcome(waiting, Found(NONE, NONE.astype(float), NONE, NONE), none, 0)


@cache
def followed(number=50, inputs=0.5, mix=0.3, known=None):
    """Windows as they are published, labels two windows late, with the true shares; and the last state."""
    known = known or reference()
    x, y = weeks(number, 3, inputs, mix)
    rule, state, waiting, found = concern(known), RecentLabelsState(), [], []
    for k in range(number):
        at = slice(k * BLOCK, (k + 1) * BLOCK)
        window = Window.of(worlds.posteriors(x[at]), x[at])
        if k >= LATE:
            state = rule.advance(state, waiting[k - LATE]).state
        summary = WindowSummary.of(window, 3)
        advanced = rule.advance(state, WindowSeen(assess(window, known), summary, 0.0))
        assert isinstance(advanced.seen, WindowSeen)
        waiting.append(outcome(window, advanced.seen, y[at]))
        found.append((advanced.seen, np.bincount(y[at], minlength=3) / BLOCK))
    return found, state


def test_with_labels_the_mix_is_at_least_as_good_as_the_best_simple_rule_and_its_interval_holds() -> None:
    found, _ = followed()
    said = [(seen.assessment.prevalence, truth) for seen, truth in found]
    published = np.mean([np.abs(mix.priors - truth) for mix, truth in said])
    rules = {
        name: np.mean([np.abs(seen.experts[name] - truth) for seen, truth in found]) for name in found[0][0].experts
    }
    assert published <= 1.05 * min(rules.values())
    covered = [(mix.lower <= truth + 1e-12) & (truth <= mix.upper + 1e-12) for mix, truth in said]
    assert np.mean(covered) >= 0.9


def test_the_result_says_that_it_rests_on_recent_labels_from_the_first_outcome_on() -> None:
    found, _ = followed()
    based = [seen.assessment.based_on for seen, _ in found]
    assert set(based[:LATE]) == {BasedOn.FAMILIAR_INPUTS}
    assert set(based[LATE:]) == {BasedOn.RECENT_LABELS}
    last = found[-1][0].assessment
    assert last.prevalence.method == "recent-labels"
    assert "the last 30 windows with labels and in blocks of the hold-out" in last.reasons[-1]
    assert not last.recalibration.apply


def test_what_is_remembered_is_bounded() -> None:
    _, state = followed()
    assert len(state.outcomes) == MIXES_KEPT
    assert state.outcomes[0].squares.keys() == state.outcomes[-1].squares.keys()


def test_a_mix_that_has_just_moved_and_that_label_shift_explains_is_not_held_back() -> None:
    known = reference(inputs=0.0, mix=0.0)
    _, state = followed(8, 0.0, 0.0, known)
    x, _ = worlds.draw(2_000, 5, np.array([0.1, 0.3, 0.6]))
    window = Window.of(worlds.posteriors(x), x)
    assessment = assess(window, known)
    advanced = concern(known).advance(state, WindowSeen(assessment, WindowSummary.of(window, 3), 0.0))
    assert assessment.verdict == "prior-shift"
    assert isinstance(advanced.seen, WindowSeen)
    assert advanced.seen.assessment is assessment


def test_few_or_selected_labels_and_those_of_another_reference_teach_nothing() -> None:
    found, _ = followed()
    seen, _ = found[-1]
    x, y = weeks(1, 9)
    whole = outcome(Window.of(worlds.posteriors(x), x), seen, y)
    rule, start = concern(), RecentLabelsState()
    assert rule.advance(start, whole).state.outcomes
    few = replace(whole, result=changed(whole.result, labels=changed(whole.result.labels, joined=20)))
    selected = replace(whole, result=changed(whole.result, selective=True))
    other = replace(whole, result=changed(whole.result, versions=changed(whole.result.versions, reference="another")))
    for useless in (few, selected, other, replace(whole, experts={})):
        assert rule.advance(start, useless).state == start


def test_it_is_for_classifiers_that_await_labels() -> None:
    assert recent_labels(StatePlan(), reference()) is None


def test_without_blocks_experts_are_weighed_from_the_third_outcome_on() -> None:
    found, _ = followed(12, known=reference(blocks=False))
    based = [seen.assessment.based_on for seen, _ in found]
    first = next(k for k, each in enumerate(based) if each is BasedOn.RECENT_LABELS)
    assert first >= FEWEST_OUTCOMES + LATE - 1


def weighed(squares: list[dict[str, float]], mix: float = 0.3) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """What is published of a window after outcomes with these errors, the oldest first, and what the experts say."""
    found, state = followed(mix=mix)
    seen, _ = found[-1]
    assert isinstance(seen, WindowSeen)
    names = list(seen.experts)
    given = [dict.fromkeys(names, 1.0) | each for each in squares]
    outcomes_ = tuple(changed(state.outcomes[-1], squares=each) for each in given)
    x, _ = weeks(1, 77)
    window = Window.of(worlds.posteriors(x), x)
    shown = WindowSeen(assess(window, reference()), WindowSummary.of(window, 3), 0.0)
    advanced = concern().advance(RecentLabelsState(outcomes_), shown)
    assert isinstance(advanced.seen, WindowSeen)
    return advanced.seen.assessment.prevalence.priors, dict(advanced.seen.experts)


def nearness(mix: np.ndarray, near: np.ndarray, far: np.ndarray) -> float:
    """How far towards one of two mixes another lies, 0 to 1."""
    return float((mix - far) @ (near - far) / ((near - far) @ (near - far)))


@pytest.mark.parametrize(
    ("since", "believed"), [(6, "calibrated scores"), (14, "the last labels"), (24, "the last labels")]
)
def test_who_was_right_of_late_is_believed_before_who_was_right_for_longer(since: int, believed: str) -> None:
    """Of thirty outcomes. Without forgetting the scores would be believed after fourteen too."""
    before, after = {"calibrated scores": 1e-6}, {"the last labels": 1e-6}
    mix, experts = weighed([before] * (30 - since) + [after] * since)
    other = {"calibrated scores", "the last labels"} - {believed}
    assert nearness(mix, experts[believed], experts[other.pop()]) > 0.8


def test_a_block_of_the_hold_out_counts_for_less_than_an_outcome() -> None:
    """In its blocks scores were much nearer than the last labels; in six windows since then these were."""
    mix, experts = weighed([{"the last labels": 0.004, "calibrated scores": 0.04}] * 6)
    assert nearness(mix, experts["the last labels"], experts["calibrated scores"]) > 0.7


def test_in_the_hold_out_too_labels_come_late_so_that_the_last_ones_are_no_better_than_they_will_be() -> None:
    """Weeks whose mix is drawn anew: a block that knew its own labels would be right by them."""
    names = followed()[0][-1][0].experts
    mix, experts = weighed([dict.fromkeys(names, 1e-3)])
    assert nearness(mix, experts["the last labels"], experts["calibrated scores"]) < 0.8


def test_blocks_of_another_length_than_windows_say_nothing_of_their_errors() -> None:
    _, state = followed()
    one = RecentLabelsState(state.outcomes[-1:])
    x, _ = weeks(4, 77)
    window = Window.of(worlds.posteriors(x), x)
    shown = WindowSeen(assess(window, reference()), WindowSummary.of(window, 3), 0.0)
    advanced = concern().advance(one, shown)
    assert isinstance(advanced.seen, WindowSeen)
    assert advanced.seen.assessment is shown.assessment

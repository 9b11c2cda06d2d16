"""The class mix now, on assessed windows: what moves it, what does not, and where it is published."""

import json
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest

from connectors.memory import MemoryLog
from monitor.assessment import Assessment, BasedOn, Verdict, WindowResult, assess
from monitor.assessment.message import encode
from monitor.kinds import SmoothedMix
from monitor.recalibration import Cause, retargeted
from monitor.reference.classifier import Reference
from monitor.state import Concern, SmoothedState, StatePlan, WindowSeen, concerns_of
from monitor.windows import Gap, Origin, Window, WindowKey, WindowSummary
from tests.service import streams
from tests.state.test_evidence import many
from tests.state.test_states import run, taken_up

LENGTH = 60_000_000
OWN = StatePlan()


def concern(reference: Reference, plan: StatePlan = OWN) -> Concern[SmoothedState]:
    (found,) = (one for one in concerns_of(plan, reference) if one.name == "smoothed")
    return found


def windows(
    mixes: Sequence[float], events: int = 100, reference: Reference | None = None, segment: str = ""
) -> list[WindowSeen]:
    found = []
    for number, positives in enumerate(mixes):
        posteriors, _ = streams.scores(events, positives, seed=3_000 + number + 10_000 * bool(segment))
        key = WindowKey("s", segment, number * LENGTH, (number + 1) * LENGTH)
        window = replace(Window.of(posteriors), key=key)
        found.append(WindowSeen(assess(window, reference or many(), only_mix=True), WindowSummary.of(window, 2), 0.0))
    return found


def shown(course: Sequence[WindowSeen], plan: StatePlan = OWN) -> list[WindowSeen]:
    """As the concern leaves them."""
    made = concern(many(), plan)
    state, found = made.state(), []
    for window in course:
        advanced = made.advance(state, window)
        state = advanced.state
        seen = advanced.seen or window
        assert isinstance(seen, WindowSeen)
        found.append(seen)
    return found


def share(seen: WindowSeen) -> float:
    assert seen.smoothed is not None
    return seen.smoothed.priors[1]


def width(seen: WindowSeen) -> float:
    assert seen.smoothed is not None
    return seen.smoothed.upper[1] - seen.smoothed.lower[1]


def test_small_windows_together_know_the_mix_better_than_each() -> None:
    course = shown(windows([0.3] * 60))[20:]
    own = np.array([seen.assessment.prevalence.priors[1] for seen in course]) - 0.3
    now = np.array([share(seen) for seen in course]) - 0.3
    assert np.sqrt((now**2).mean()) < 0.55 * np.sqrt((own**2).mean())
    assert width(course[-1]) < 0.7 * (
        course[-1].assessment.prevalence.upper[1] - course[-1].assessment.prevalence.lower[1]
    )


def test_a_large_jump_is_followed_with_the_next_window() -> None:
    course = shown(windows([0.3] * 30 + [0.8] * 2))
    assert share(course[29]) == pytest.approx(0.3, abs=0.1)
    assert share(course[30]) == pytest.approx(course[30].assessment.prevalence.priors[1], abs=0.05)


def changed(seen: WindowSeen, **facts: object) -> WindowSeen:
    return replace(seen, assessment=replace(seen.assessment, **facts))


UNTRUSTED = {
    "too few events": lambda seen: changed(seen, verdict=Verdict.INSUFFICIENT_DATA),
    "events of no known class": lambda seen: changed(seen, verdict=Verdict.UNKNOWN_CLASS),
    "incomplete": lambda seen: changed(seen, origin=Origin(gaps=(Gap.SKIPPED,))),
    "labels that no longer follow the scores": lambda seen: changed(seen, verdict=Verdict.CONCEPT_SHIFT),
    "not converged": lambda seen: changed(seen, prevalence=replace(seen.assessment.prevalence, converged=False)),
    "not unique": lambda seen: changed(seen, prevalence=replace(seen.assessment.prevalence, unique=False)),
}


@pytest.mark.parametrize("why", UNTRUSTED)
def test_a_window_that_may_not_be_trusted_moves_no_level_and_widens_the_interval(why: str) -> None:
    course = windows([0.3] * 20 + [0.9])
    before, after = shown([*course[:20], UNTRUSTED[why](course[20])])[-2:]
    assert share(after) == pytest.approx(share(before))
    assert width(after) > width(before)
    assert abs(share(shown(course)[-1]) - share(before)) > 0.3
    assert shown([UNTRUSTED[why](course[20])])[0].smoothed is None


def test_windows_of_which_label_shift_is_not_all_are_shown_as_they_are_and_move_no_level() -> None:
    course = windows([0.3] * 10 + [0.6, 0.3])
    course[10] = changed(course[10], based_on=BasedOn.FAMILIAR_INPUTS, label_shift=None)
    before, strange, after = shown(course)[-3:]
    own = strange.assessment.prevalence
    assert strange.smoothed == SmoothedMix(tuple(own.priors), tuple(own.lower), tuple(own.upper))
    assert abs(share(after) - share(before)) < 0.1


def test_what_leans_towards_the_reference_in_each_window_does_not_add_up_in_the_level() -> None:
    """A calm window shows the reference's shares, nearly; many of them together know better."""
    course = windows([0.3] * 20)
    leaning = [
        changed(seen, prevalence=replace(seen.assessment.prevalence, priors=seen.assessment.source_priors))
        for seen in course
    ]
    assert share(shown(leaning)[-1]) == share(shown(course)[-1])


def test_windows_that_overlap_move_the_level_once() -> None:
    course = windows([0.3] * 3)
    keys = [WindowKey("s", "", start * LENGTH, (start + 2) * LENGTH) for start in (0, 1, 2)]
    first, second, third = shown(
        [replace(seen, window=replace(seen.window, key=key)) for seen, key in zip(course, keys, strict=True)]
    )
    assert share(second) == share(first)
    assert share(third) != share(first)


@pytest.mark.parametrize("mix", [[0.0, 1.0], [1.0, 0.0]])
def test_an_absent_class_with_an_interval_of_no_width_is_a_level_like_others(mix: list[float]) -> None:
    seen = windows([0.3])[0]
    exact = np.array(mix)
    mix_of_it = replace(seen.assessment.prevalence, priors=exact, lower=exact, upper=exact)
    certain = changed(seen, prevalence=mix_of_it, label_shift=mix_of_it)
    later = [
        replace(certain, window=replace(certain.window, key=WindowKey("s", "", at * LENGTH, (at + 1) * LENGTH)))
        for at in range(5)
    ]
    for found in shown(later):
        assert found.smoothed is not None
        assert found.smoothed.priors == pytest.approx(mix)
        assert sum(found.smoothed.priors) == pytest.approx(1)


def test_the_reference_of_few_events_leaves_the_interval_wide_however_many_windows_come() -> None:
    posteriors, labels = streams.scores(300, 0.3, seed=9)
    few = Reference.fit(posteriors, labels, classes=["no", "yes"], stream="s")
    wide, narrow = shown(windows([0.3] * 60, reference=few))[-1], shown(windows([0.3] * 60))[-1]
    assert width(wide) > 1.3 * width(narrow)


def test_a_segment_is_shown_where_its_stream_stands() -> None:
    """Its own windows of a hundred events say little; the stream's of 5,000 tell that the mix has moved."""
    mixes = [0.3] * 20 + [0.42] * 4
    course = [
        seen for pair in zip(windows(mixes, 5_000), windows(mixes, segment="country=BE"), strict=True) for seen in pair
    ]
    concerns = [concern(many())]
    log = run(course, concerns)
    states = taken_up(log, concerns)[0]
    state = states.of("s", "country=BE").state(SmoothedState)
    whole = states.of("s").state(SmoothedState)
    assert len(state.means[0]) == 2 * len(whole.means[0])
    assert state.levels is not None
    alone = shown(windows(mixes, segment="country=BE"))[-1]
    assert abs(state.levels.estimate[0][0] - 0.42) <= abs(share(alone) - 0.42) + 0.01


def test_any_cut_gives_the_same_levels() -> None:
    course = [
        seen
        for pair in zip(windows([0.3] * 12, 1_000), windows([0.3] * 12, segment="a=b"), strict=True)
        for seen in pair
    ]
    concerns = concerns_of(StatePlan(), many())
    whole, cut = run(course, concerns), run(course, concerns, cuts=[5, 6, 17])

    def states(log: MemoryLog) -> dict[bytes, bytes]:
        return {message.key: message.value for message in log.messages if message.channel == "states"}

    assert states(whole) == states(cut)


def test_the_result_says_it_as_if_it_had_been_encoded_with_it() -> None:
    seen = shown(windows([0.3] * 2))[-1]
    result = msgspec.json.decode(seen.result_message, type=WindowResult)
    assert result.smoothed is not None
    assert result.smoothed["yes"].estimate == pytest.approx(share(seen))
    assert encode(result) == seen.result_message
    assert json.loads(seen.assessment.to_json())["smoothed"] is None


def test_the_feed_corrects_towards_the_smoothed_mix_where_it_is_told_to() -> None:
    course = windows([0.6] * 12, 1_000)
    own, told = shown(course)[-1], shown(course, StatePlan(target="smoothed"))[-1]
    assert own.recalibration is own.assessment.recalibration
    assert own.recalibration.apply
    assert told.recalibration.apply
    assert told.recalibration.target_priors[1] == pytest.approx(share(told))
    assert told.recalibration.multipliers[1] == pytest.approx(share(told) / own.recalibration.source_priors[1])
    assert told.recalibration.thresholds != own.recalibration.thresholds
    assert told.recalibration.reason.endswith("the target is the smoothed class mix")
    assert isinstance(told.assessment, Assessment)
    assert told.assessment.recalibration is own.assessment.recalibration


@pytest.mark.parametrize(
    ("priors", "half", "cause"),
    [
        ((0.68, 0.32), 0.001, Cause.TOO_SMALL),
        ((0.5, 0.5), 0.3, Cause.WITHIN_INTERVAL),
        ((0.5, 0.5), 0.1, Cause.PRIOR_SHIFT),
        ((1.0, 0.0), 0.1, Cause.PRIOR_SHIFT),
    ],
)
def test_nothing_is_corrected_towards_a_smoothed_mix_that_has_not_moved_enough(
    priors: tuple[float, float], half: float, cause: Cause
) -> None:
    applied = windows([0.6], 5_000)[0].recalibration
    assert applied.apply
    found = retargeted(applied, np.array(priors), np.array([half, half]))
    assert found.cause is cause
    assert found.apply == (cause is Cause.PRIOR_SHIFT)
    assert np.isfinite(found.log_multipliers).all()
    if not found.apply:
        assert found.multipliers == (1.0, 1.0)


def test_a_rare_class_whose_smoothed_share_nearly_doubled_is_corrected_for() -> None:
    applied = replace(windows([0.6], 5_000)[0].recalibration, source_priors=(0.997, 0.003))
    sure, unsure = (retargeted(applied, np.array([0.9945, 0.0055]), np.full(2, half)) for half in (0.001, 0.01))
    assert (sure.cause, unsure.cause) == (Cause.PRIOR_SHIFT, Cause.TOO_SMALL)

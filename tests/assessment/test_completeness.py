"""An incomplete window recommends nothing; a uniform sample is no fault, and recommends as far as its size carries."""

from dataclasses import replace

import numpy as np

from monitor import assess
from monitor.assessment import Verdict
from monitor.recalibration import Cause
from monitor.windows import Gap, Origin, Window, WindowCounts, sampled
from tests.assessment import worlds

MOVED = (0.15, 0.15, 0.7)
EVENTS, KEPT = 8_000, 2_000


def moved_window(*gaps: Gap) -> Window:
    return replace(worlds.window(EVENTS, priors=MOVED), origin=Origin(("a", "b"), gaps=gaps))


def test_a_uniform_sample_recommends_with_the_intervals_of_its_size_and_says_that_it_is_one() -> None:
    whole = assess(moved_window(), worlds.reference())
    some = assess(sampled(moved_window(Gap.SAMPLED), KEPT), worlds.reference())
    assert some.verdict is whole.verdict is Verdict.PRIOR_SHIFT
    assert (some.recalibration.apply, some.recalibration.complete) == (True, True)
    wider = (some.prevalence.upper - some.prevalence.lower) / (whole.prevalence.upper - whole.prevalence.lower)
    assert wider.min() > 1.2
    assert wider.max() < np.sqrt(EVENTS / KEPT) + 0.1
    assert ((some.prevalence.lower <= MOVED) & (some.prevalence.upper >= MOVED)).all()
    told = some.to_result()
    assert (told.complete, told.gaps) == (False, (Gap.SAMPLED,))
    assert "a uniform sample of them: 2,000 of 8,000" in told.reasons[-1]


def test_a_sample_of_a_window_that_lacks_events_otherwise_recommends_nothing() -> None:
    found = assess(sampled(moved_window(Gap.SAMPLED, Gap.SKIPPED), KEPT), worlds.reference())
    assert (found.recalibration.apply, found.recalibration.complete) == (False, False)
    assert found.recalibration.cause is Cause.INCOMPLETE
    assert [reason.partition(":")[0] for reason in found.reasons[-2:]] == [
        "there were more events than `max_events`, and the window is a uniform sample of them",
        "the window is incomplete",
    ]


def test_a_segment_of_a_sample_does_not_say_how_many_events_it_lacks() -> None:
    found = assess(replace(sampled(moved_window(Gap.SAMPLED), KEPT), counts=WindowCounts()), worlds.reference())
    assert found.reasons[-1].endswith("a uniform sample of them")
    assert found.recalibration.apply

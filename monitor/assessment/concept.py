"""What a concept shift does to the answer about a window. Pure."""

from dataclasses import replace

from monitor.assessment.classifier import Assessment
from monitor.assessment.verdict import decide
from monitor.assessment.window_tests import Test
from monitor.recalibration import Cause

CONCEPT = "concept"
"""The name of the test."""


def with_concept(assessment: Assessment, test: Test, why: str) -> Assessment:
    """The window with what labels of earlier ones say; `why` is empty where they say nothing against the scores.

    While the concept has changed neither the reference nor what was normal lately excuses a window, and what it implies
    without labels corrects nothing.
    """
    tested = replace(assessment, tests={**assessment.tests, CONCEPT: test})
    if not why:
        return tested
    verdict = decide(replace(assessment.evidence, concept_changed=True))
    recent, reasons = assessment.recent, (why, *assessment.reasons)
    return replace(
        tested.without_performance(why),
        verdict=verdict,
        reasons=reasons,
        recent=None if recent is None else replace(recent, verdict=verdict, reasons=(why, *recent.reasons)),
        recalibration=assessment.recalibration.withheld(Cause.OTHER_SHIFT, f"the verdict is {verdict}"),
    )

"""The decision table covers everything, and says what its rows say."""

from itertools import product

import pytest

from monitor.assessment.verdict import (
    REGRESSION_TABLE,
    TABLE,
    Evidence,
    RegressionEvidence,
    Verdict,
    decide,
    decide_regression,
    verdicts,
)


def test_every_combination_of_evidence_has_a_verdict_and_every_verdict_is_reached():
    reached = {decide(Evidence(*answers)) for answers in product([True, False], repeat=6)}
    assert reached == set(verdicts(regression=False))
    of_regression = {decide_regression(RegressionEvidence(*answers)) for answers in product([True, False], repeat=4)}
    assert of_regression == set(verdicts(regression=True))
    assert reached | of_regression == set(Verdict)


def test_no_two_verdicts_look_the_same():
    for part in ("headline", "meaning", "mark", "colour", "dark_colour"):
        assert len({getattr(verdict.facts, part) for verdict in Verdict}) == len(Verdict)


def test_only_two_verdicts_wake_nobody():
    assert [verdict for verdict in Verdict if not verdict.moved] == [Verdict.INSUFFICIENT_DATA, Verdict.STABLE]
    assert [verdict for verdict in Verdict if verdict.silent] == [Verdict.INSUFFICIENT_DATA]


@pytest.mark.parametrize("table", [TABLE, REGRESSION_TABLE])
def test_no_two_rows_of_the_table_overlap(table):
    for answers in product([True, False], repeat=len(table[0]) - 1):
        rows = [
            row
            for row in table
            if all(need == "-" or (need == "yes") == answer for need, answer in zip(row[:-1], answers, strict=True))
        ]
        assert len(rows) == 1


def test_labels_that_disagree_outrank_everything_in_a_regression_stream():
    for answers in product([True, False], repeat=3):
        assert decide_regression(RegressionEvidence(True, *answers)) is Verdict.RELATION_SHIFT


def test_labels_that_no_longer_follow_the_scores_outrank_all_that_events_show():
    for answers in product([True, False], repeat=4):
        assert decide(Evidence(True, *answers, concept_changed=True)) is Verdict.CONCEPT_SHIFT


def test_too_few_events_silence_everything_else():
    for answers in product([True, False], repeat=5):
        assert decide(Evidence(False, *answers)) is Verdict.INSUFFICIENT_DATA


def test_a_new_class_outranks_moved_inputs_but_not_a_fit():
    assert decide(Evidence(True, False, True, True, True)) is Verdict.UNKNOWN_CLASS
    assert decide(Evidence(True, True, False, True, True)) is Verdict.STABLE

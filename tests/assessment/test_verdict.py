"""The decision table covers everything, and says what its rows say."""

from itertools import product

from monitor.verdict import TABLE, Evidence, Verdict, decide


def test_every_combination_of_evidence_has_a_verdict_and_every_verdict_is_reached():
    reached = {decide(Evidence(*answers)) for answers in product([True, False], repeat=5)}
    assert reached == set(Verdict)


def test_no_two_rows_of_the_table_overlap():
    for answers in product([True, False], repeat=5):
        rows = [
            row
            for row in TABLE
            if all(need == "-" or (need == "yes") == answer for need, answer in zip(row[:5], answers, strict=True))
        ]
        assert len(rows) == 1


def test_too_few_events_silence_everything_else():
    for answers in product([True, False], repeat=4):
        assert decide(Evidence(False, *answers)) is Verdict.INSUFFICIENT_DATA


def test_a_new_class_outranks_moved_inputs_but_not_a_fit():
    assert decide(Evidence(True, False, True, True, True)) is Verdict.UNKNOWN_CLASS
    assert decide(Evidence(True, True, False, True, True)) is Verdict.STABLE

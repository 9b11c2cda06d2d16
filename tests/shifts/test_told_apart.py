"""The odds for a change of the class mix, against a real covariate shift that looks like one."""

from math import log

from hypothesis import given
from hypothesis import strategies as st

from monitor.shifts import fit, label_shift_odds, left_by_one_feature
from monitor.tolerances import COVARIATE_LEAVES, ONE_SCORE_LEAVES

DEGREES = 2.0


def left(p_value: float) -> fit.Tested:
    return fit.Tested(statistic=0.0, p_value=p_value, effect=0.0, degrees=DEGREES)


def test_the_more_the_mix_moved_without_leaving_anything_unexplained_the_better_the_odds():
    odds = [label_shift_odds(moved, left(0.5), ONE_SCORE_LEAVES) for moved in (0.0, 50.0, 200.0, 800.0)]
    assert odds == sorted(odds)
    assert (odds[0], odds[-1] > log(25)) == (0.0, True)


def test_what_is_left_unexplained_speaks_for_a_covariate_shift():
    assert (
        label_shift_odds(800.0, left(1e-6), ONE_SCORE_LEAVES) < 0 < label_shift_odds(800.0, left(0.5), ONE_SCORE_LEAVES)
    )


def test_one_score_alone_has_to_show_more_than_inputs():
    assert label_shift_odds(200.0, left(0.5), ONE_SCORE_LEAVES) < label_shift_odds(200.0, left(0.5), COVARIATE_LEAVES)


@given(st.floats(0.5, 1), st.floats(0.5, 1), st.floats(20, 1e4), st.sampled_from([ONE_SCORE_LEAVES, COVARIATE_LEAVES]))
def test_what_fits_too_well_is_no_sign_of_a_covariate_shift(p_value, better, moved, leaves):
    p_value, better = sorted((p_value, better))
    assert label_shift_odds(moved, left(better), leaves) >= label_shift_odds(moved, left(p_value), leaves) - 1e-9


def test_a_shift_of_the_inputs_leaves_least_in_one_score_and_most_where_features_are_seen():
    left_over = [left_by_one_feature(classes, alone=alone) for classes, alone in ((2, True), (3, True), (3, False))]
    assert left_over == sorted(set(left_over))

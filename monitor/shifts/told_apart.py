"""Can a change of the class mix be told from a real covariate shift that looks like one?

Where inputs move and p(y | x) stays, scores are as right as before, and a correction by the class mix would make them
wrong; but the estimates of the mix move all the same. What is different is that no class mix explains such a window.
As both grow with the events and with the square of the shift, what is left over goes with the evidence for another
mix: with G the likelihood ratio of the mix and T what the best mix leaves, h degrees,

    label shift       T ~ h             with a variance of 2 h
    covariate shift   T ~ h + rho G     with a variance of 2 h + 4 rho G

so that small windows and small shifts cannot be told apart, and large ones can. rho is what one moved feature leaves at
the least: a good part where there are features, little in the scores of several classes, and next to
nothing in one score.
"""

import numpy as np
from scipy.special import ndtri

from monitor.shifts.fit import Match, Tested
from monitor.shifts.prepared import Prepared
from monitor.shifts.window_view import Looked
from monitor.tolerances import COVARIATE_LEAVES, LEAST_P, ONE_SCORE_LEAVES, SCORES_LEAVE


def scores_alone(seen: Looked, reference: Prepared) -> bool:
    """Whether a window's match rests on nothing but scores."""
    inputs = (seen.mean[block.at] for block in reference.blocks if block.kind != "posterior")
    return not any(np.isfinite(means).any() for means in inputs)


def left_by_one_feature(classes: int, *, alone: bool) -> float:
    """What a real covariate shift leaves unexplained at the least; `alone` says that nothing but scores is seen."""
    if not alone:
        return COVARIATE_LEAVES
    return ONE_SCORE_LEAVES if classes == 2 else SCORES_LEAVE


def label_shift_odds(mix_statistic: float, fit: Tested | Match, leaves: float) -> float:
    """The logarithm of the odds for label shift, against a covariate shift that looks like it but for this part."""
    variance = 2.0 * max(fit.degrees, 1.0)
    left_over = -float(ndtri(np.clip(fit.p_value, LEAST_P, 1.0 - LEAST_P))) * np.sqrt(variance)
    # The odds are best at -h / 2, and the wider law would win again below: what fits too well is no sign of a shift.
    left_over = max(left_over, -variance / 4.0)
    expected = leaves * mix_statistic
    wider = variance + 4.0 * expected
    log_odds = (left_over - expected) ** 2 / wider - left_over**2 / variance + np.log(wider / variance)
    return float(log_odds) / 2.0

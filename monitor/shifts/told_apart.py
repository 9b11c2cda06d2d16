"""Can a change of the class mix be told from a real covariate shift that looks like one?

Where inputs move and p(y | x) stays, scores are as right as before, and a correction by the class mix would make them
wrong; but the estimates of the mix move all the same. What is different is that no class mix explains such a window.
As both grow with the events and with the square of the shift, what is left over goes with the evidence for another
mix: with G the likelihood ratio of the mix and T what the best mix leaves, h degrees,

    label shift       T ~ h             with a variance of 2 h
    covariate shift   T ~ h + rho G     with a variance of 2 h + 4 rho G

so that small windows and small shifts cannot be told apart, and large ones can. rho is what one moved feature leaves at
the least.
"""

import numpy as np
from scipy.special import ndtri

from monitor.shifts.fit import Match, Tested
from monitor.tolerances import COVARIATE_LEAVES, LEAST_P


def label_shift_odds(mix_statistic: float, fit: Tested | Match) -> float:
    """The logarithm of the odds for label shift, against a covariate shift that looks like it."""
    variance = 2.0 * max(fit.degrees, 1.0)
    left_over = -float(ndtri(np.clip(fit.p_value, LEAST_P, 1.0 - LEAST_P))) * np.sqrt(variance)
    expected = COVARIATE_LEAVES * mix_statistic
    wider = variance + 4.0 * expected
    log_odds = (left_over - expected) ** 2 / wider - left_over**2 / variance + np.log(wider / variance)
    return float(log_odds) / 2.0

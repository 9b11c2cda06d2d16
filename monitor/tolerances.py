"""Every tolerance and every default threshold, each with its reason."""

# Posteriors written with three decimals by a scoring service still sum to 1 within this; they are renormalised.
POSTERIOR_SUM = 1e-3

# Esuli et al. stop SLD at a mean absolute change of the priors below this, or at the cap. Neither certifies a
# maximum (see the certified gap below): they are kept because the papers' figures were made with them.
SLD_CHANGE = 1e-6
SLD_ITERATIONS = 1000

# Certified shortfall in mean log-likelihood, log(1 + gap). At a million events 1e-6 is one unit of total
# log-likelihood, below what a likelihood-ratio test can see.
LIKELIHOOD_GAP = 1e-6

# Scorers in single precision saturate at 1 - 6e-8; a posterior nearer to 0 or 1 than that carries no information,
# and an exact 0 has no logarithm. Log-odds are therefore cut at +-16.
POSTERIOR_FLOOR = 1e-7

# How far the mean calibrated posterior may stay from the class prevalence that EM takes as source prior: two
# orders below the sampling error of a prevalence over a million events.
BALANCE_ERROR = 1e-9

# A calibration map has a few parameters per class: beyond this many events its sampling error (0.7 %) is no longer
# what limits it, and a build should not wait for it.
CALIBRATION_ROWS = 20_000

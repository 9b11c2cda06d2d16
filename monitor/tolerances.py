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

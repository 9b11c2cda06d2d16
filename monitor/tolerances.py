"""Every tolerance and every default threshold, each with its reason."""

# Posteriors of an event sum to 1 within this; they are renormalised. A producer that writes three decimals moves each
# class by at most half of the last one, which is more where there are three classes and more; no sum is further off.
POSTERIOR_SUM = 1e-3
CLASS_ROUNDING = 5e-4
FARTHEST_SUM = 1e-2
# Of the arithmetic of such a sum: 1 - 0.999 is above 0.001 by a last bit.
SUM_ROUNDING = 1e-9

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

# A feature is explained only where it moved: the monitor's nominal level, per feature, before correction across them.
EXPLANATION_LEVEL = 0.01

# A shift of 0.025 standard deviations of a normal feature is a distance of 0.01: below it a million events are
# significant and no threshold of a model would notice.
EXPLANATION_FLOOR = 0.01

# The p-value under which "the feature kept its direction" is given up for a mirrored line. Far below any level,
# because mirroring by mistake sends every event to the wrong side of every threshold.
MIRROR_EVIDENCE = 1e-6

# One knot a percentile: 200 numbers a feature in the feed, and between two knots a hundredth of the events.
PERCENTILE_KNOTS = 100

# Newton's last step squares the error, so the solver goes on past the certified gap until the gap is rounding. This is
# what makes two solvers agree on the priors, and not only on the likelihood, to nine digits.
POLISHED_GAP = 1e-13

# Steps of the certified solver. Ten is usual, thirty was the worst seen on weak classifiers; past this it is a defect.
NEWTON_STEPS = 200

# A step counts as progress if it wins this share of what its own model promised (Armijo); textbook value.
SUFFICIENT_GAIN = 1e-4

# A large likelihood is first maximised on every eighth row, that one on every eighth of those, and so on down to this
# many: each optimum is one or two Newton steps from the next, and all of them cost less than one step over all rows.
WARM_START_ROWS = 16_384
THINNING = 8

# Curvature is borrowed from one row in this many: at a million rows of 37 classes it is then known to a few percent,
# each step leaves a few percent of the error, and forming it costs a quarter of the pass for the gradient.
BORROWED_SHARE = 16

# Certified gap to which a thinner problem is solved first: the optimum of all rows is farther away than that.
LENDER_GAP = 1e-4

# A Gram matrix whose smallest eigenvalue on the simplex is below this share of its largest says nothing about
# some direction: 1e-12 is what rounding leaves of an exact zero in sums of a million products.
SINGULAR = 1e-12

# A multiplier of the simplex program counts as violated above this share of the problem's scale: rounding of a dot
# product.
SIMPLEX_VIOLATION = 1e-13

# Two-sided level of every interval, per class.
INTERVAL_LEVEL = 0.95

# Pseudo-events of the shrunk likelihood, as a share of the events: one percent improved the mean absolute error on
# three of four problems with models as they come, whose posteriors are not exact.
SHRINKAGE = 0.01

# Bins of the posteriors of two classes and many events. With the sums kept per bin the error of the optimum falls with
# the fourth power of the width: 1e-7 at this size, far below any sampling error, in 64 KB.
HISTOGRAM_BINS = 4_096

# CDE-iterate settles after three loops in the thesis' example and within ten in its figure 5.1.
CDE_LOOPS = 100

# Mixtures of regressions. A coefficient below this share of the reference's largest is zero: no factor of it can be
# seen in any label, and dividing by it would give rounding noise.
ZERO_COEFFICIENT = 1e-12

# Ridge of the normal equations, as a share of each column's sum of squares, towards the reference: the directions
# that the labels do not determine stay where the reference has them, the others move by less than 1e-11 of a step.
PROXIMAL_RIDGE = 1e-12

# A component that holds less than this much of one label keeps its parameters during EM: its sums are 0/0.
EMPTY_COMPONENT = 1e-9

# A component below one label in total says nothing of its own; the reference speaks for it in the result.
SPOKEN_FOR = 1.0

# The likelihood of a mixture is unbounded where a component fits its points exactly. Sigma stops at this share of
# the reference's (a change of units by 1e4 still passes), and a fit that ends there is called collapsed.
SIGMA_FLOOR = 1e-6

# Where BIC chooses the number of components, each has to hold this many events for each of its p + 2 numbers: among
# 3,000 events of one line in 30 inputs BIC preferred five, four of them of 1 to 3 %, that ran through their events.
ROWS_PER_NUMBER = 5

# EM stops when the log-likelihood still to come (Aitken's extrapolation) is below this: far below what separates two
# models in any test or criterion, and the parameters of 200 labels are then within 1e-4 standard errors.
LIKELIHOOD_LEFT = 1e-8

# A number of lines has lost by BIC where even so many times the log-likelihood still to come, by Aitken, would not make
# it the best: extrapolation is too low where EM creeps before it finds something. In 36 mixtures of one to three lines
# (200 to 3,000 events) every choice and its fit are what they were without, in a sixth of the time.
OUT_OF_REACH = 100.0

# EM steps at most; mixtures that overlap need hundreds, and one that needs more says `converged: false`.
REGRESSION_STEPS = 1_000

# All starts run this many steps; then only the best few go on (em-EM, Biernacki 2004).
SCREENING_STEPS = 25
SCREENED_STARTS = 4

# Bisection of a predictive quantile halves its bracket this often: 1e-15 of the components' spread.
INTERVAL_BISECTIONS = 50

# A factor within 5 % of 2 is told as "doubled": words are for reading, and the number stands in the result.
FACTOR_IN_WORDS = 0.05

# The chi-square law needs about five expected events in a cell (Cochran 1954); rarer values share one.
EXPECTED_IN_CELL = 5.0

# From this harmonic size on, Vrbik's series and SciPy's law of the Kolmogorov-Smirnov distance agree to 3e-4 (at
# 1,000 to 2e-5): less than that law itself is off for two samples, and no level is told apart by so little.
VRBIK_SIZE = 50

# Slopes beyond this (or below its inverse) come from a column of 1e-300 or the like: feature values times them could
# leave the range of floats, and no unit of measurement differs by so much.
STEEPEST_SLOPE = 1e100

# Random Fourier features of the matching estimators: the kernel is met within about 1 / sqrt(500) (dussap, appendix C).
FOURIER_FEATURES = 1_000

# Landmarks of the kernel maps: the class means of 10,000 rows lie within the noise of their span (see tests/priors).
LANDMARKS = 256

# Rows on which the Gaussian bandwidth is chosen, and the multiples of the median distance that are tried.
BANDWIDTH_ROWS = 1_000
BANDWIDTHS = (0.125, 0.1875, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5, 2.0)

# Random cosines that see what no single feature shows. Rotations of two features in six are found with 64 at 5,000
# events; more cost time and dilute the test.
PROJECTIONS = 64

# Hold-out rows per cosine at least: below that the covariance of the map is noise.
ROWS_PER_COORDINATE = 20

# Standardised features are taken as they are up to about three standard deviations and by orders of magnitude
# beyond: one absurd value must not turn every cosine into noise, nor a long tail hide where a cluster lies.
LINEAR_UP_TO = 3.0

# With more classes than this the posteriors themselves are enough coordinates.
CLASSES_RANKED = 10

# A class's own correlations are worth as much as the pooled ones at this many rows, and its variances much sooner.
COVARIANCE_PRIOR_ROWS = 50.0
VARIANCE_PRIOR_ROWS = 5.0

# Share of the mean variance that is added to every direction's: directions that hardly vary in the hold-out sample
# would otherwise turn rounding and its sampling error into evidence.
FIT_RIDGE = 0.02

# A feature that differs from its usual value in a smaller share of the events is left out of the fit test. Its mean
# over a few hundred events has no normal law: beside two other flags, one in 500 or fewer made 31 of 360 calm windows
# of 300 a shift, and none since. It is tested by itself, by the law of a few events.
RARE_SHARE = 0.02

# Below this share of the largest curvature a direction among the class mixes counts as not seen at all.
IDENTIFIED_CURVATURE = 1e-6

# Tail shares of the reference at which unknown mass is looked for: far events show in the last, near ones in the first.
NOVELTY_LEVELS = (0.9, 0.95, 0.98, 0.99, 0.995, 0.999)

# Shares of the reference within the thresholds at which unknown events are counted once they are known to be there: of
# a class that lies between the others many are nearer than the tail that shows them best. Nearer still than the first
# hardly any error of the classes' shape is without consequence (2 dimensions: .42 where .30 is true).
UNKNOWN_LEVELS = (0.7, 0.8, 0.9, 0.95, 0.98)

# Standard deviations within a class that hidden events of an unknown class lie from what they are counted as, at most:
# the threshold of the landscape is some three away. Of 17 windows of Dussap's "middle" noise that do not fit without
# their far events, c is a fifth to a third of the effect that is left.
HIDDEN_DISTANCE = 4.0

# Other features, at most, behind which a new class may hide when one is left out: then the class mixes decide whether
# it is the feature or a class. Of many others some would show it, and a unit that changed in a column that is mostly
# zero shifts the mix of what is left too: it was called a class in 51 of 240 windows of 300 events.
HIDING_OTHERS = 2

# Share of a class that lies where the classes were, for its unknown events to be left out: below it the share of the
# class is mostly what the few of it that lie there are multiplied by.
LEAST_INSIDE = 0.5

# Events expected beyond a tail threshold: below ten the normal law of a count is too optimistic.
NOVELTY_TAIL = 10.0

# Chains have met when split R-hat is below this (Gelman et al., Bayesian Data Analysis, section 11.5).
R_HAT = 1.1

# Posterior draws that a predictive interval is formed from: each adds K normal curves, not one point, so that a few
# hundred give smooth tails; time and memory grow with draws times events.
INTERVAL_DRAWS = 200

# Relabelling is k-means over permutations: it settles in two or three rounds, and stops here if draws tie.
RELABELLING_ROUNDS = 20

# A link is tested from this many labels a parameter on: with fewer, the chi-square null of its likelihood ratio
# rejected a true null at 5 % in up to 61 % of simulated windows; from here on in 3 to 17 %, and in 1 to 7 % once
# corrected for all links (400 windows each of 20, 50 and 200 labels, one to three components, normal noise, known
# reference).
LABELS_PER_PARAMETER = 4

# Fewer labels than this are gathered over windows, not tested.
RELATION_LABELS = 8

# Level of the relation test: one false alarm in a hundred tested batches of labels.
RELATION_LEVEL = 0.01

# Resampled windows that the null of the relation test is measured on: its inflation is then known to 2-7 %.
RELATION_WINDOWS = 400

# A reference of less than this many windows' events shares its own sampling error with every window: at one window's
# size the false-alarm rate of single features ran from 0 to 29 % at a nominal 5 %, at ten from 1 to 9 %.
REFERENCE_WINDOWS = 10

# The level of Al-Otaibi et al. for each attribute of a tree; it is corrected across attributes by default, as at 20
# of them the chance of at least one false flag would be 64 %.
ATTRIBUTE_LEVEL = 0.05

# Labels turn an attribute's direction round only when its classes stand in the opposite order by this many standard
# errors: one attribute in 15,000 by chance.
DIRECTION_EVIDENCE = 4.0

# Values, spread evenly, at which a corrected window is looked at before all of it is: enough to see most wrong lines
# at a twentieth of the cost. What they miss the full test finds.
GLANCES = 500

# A coordinate that varies less than this within classes is constant but for rounding.
CONSTANT_SPREAD = 1e-9

# The nominal level of a window's verdict: at most this share of windows without a shift gets another verdict than
# `stable`. It is shared evenly by the three families of tests that a verdict rests on (mix, fit, features).
VERDICT_LEVEL = 0.01

# A window with fewer events says nothing worth an alarm: a share of one half is then only known to +-10 points.
MINIMUM_EVENTS = 100

# Distances between distribution functions below this do not count however significant: a feature that moved by 0.075
# standard deviations, or a category whose share changed by three points.
DISTANCE_FLOOR = 0.03

# Missing rates that change by less than a point do not count.
MISSING_FLOOR = 0.01

# Class mixes whose Cohen's w is below this do not count: 50 to 52.5 %, 2 to 2.7 %, 10 to 11.5 %. Half of what Cohen
# (1988) calls a small effect.
MIX_FLOOR = 0.05

# The share of a class that changed by more than this factor counts by itself, whatever it does to the whole mix.
MIX_FACTOR = 1.5

# Two estimates of one class mix differ by their errors: when their total variation is beyond this many standard errors
# of the differences of all classes together (one window in a hundred for two classes, fewer for more), or at least
# beyond what is worth a word, one of them is wrong.
DISAGREEMENT_ERRORS = 2.6
DISAGREEMENT_FLOOR = 0.02

# Of the likelihood ratio of another class mix, what a real covariate shift of one feature leaves unexplained by any
# mix: 0.3 and more in the worlds of tests/bench/feed.
COVARIATE_LEAVES = 0.25
# Of a share of which an interval of 95 % says from 0 to u, u over this is the mean: 3.0 = -log 0.05, by the exponential
# law. With the estimates themselves, often 0, windows of 300 whose rarest class stayed at 2 % lost .05 nats.
UNSEEN_SHARE = 3.0
# A class is corrected by itself where the hold-out has so many events of it: with 11 of them (0.8 %, abalone19 of KEEL)
# real covariate shifts passed for a rare class that has become common, and scores were ruined by it. Rarer classes are
# corrected together. Where even together they have fewer they are left alone, and so are all classes if the estimate
# has more than a tenth of the events in these.
FEWEST_OF_CLASS = 30
TOLD_SHARE = 0.9
# A correction by the class mix wants these odds against such a shift.
LABEL_SHIFT_ODDS = 3.0
# Where events carry no features such a shift leaves next to nothing in the one score of two classes, little in the
# scores of more, and greater odds are asked of both (figures for each of these: tests/bench/feed_tables).
ONE_SCORE_LEAVES = 0.05
SCORES_LEAVE = 0.1
SCORES_ALONE_ODDS = 30.0
# Beyond these p-values are as good as certain; normal quantiles stay finite.
LEAST_P = 1e-12

# A correction in force ends when windows that are not sure by themselves speak against it ten to one.
HYSTERESIS_ODDS = 10.0

# What the fit test leaves over, in pooled standard deviations, below which it does not count.
FIT_FLOOR = 0.05

# Unknown mass below one event in a hundred does not count.
UNKNOWN_FLOOR = 0.01

# Features that may be left out before the rest has to fit, and how many are tried for each: more than four moved
# features of a model are a different stream, and each trial costs a millisecond or two.
LEFT_OUT = 4
SUSPECTS = 6

# Where the features that are no suspects leave so improbable a misfit, no suspect left out can mend it: T is above 230
# then, and 150 coordinates may leave 200. Of 559 windows that fitted without some suspects 1.5e-4 was the least.
HOPELESS = 1e-50

# Unknown mass above one half is no class that came in addition: the stream itself is another one.
UNKNOWN_CEILING = 0.5

# Features below this p-value are tried when the reason for a misfit is searched. One that is not as in recent windows
# by itself counts where these differ together by this much: a Christmas that the hold-out lacks is one mark of many.
SUSPICION = 0.05

# "auto" lets itself be outdone by a simpler calibration when the difference of their log losses is within this many
# standard errors: the rule of one standard error of Breiman et al. (1984). On 24 small hold-outs the error of `em` is
# then 1.01 of that of the best published method; by two standard errors it was 1.03, by the lowest loss alone 1.00, but
# that takes the steps of an isotonic map where a line would do. The errors are no larger than the simpler one
# itself allows: with 200 events a naive Bayes model that is far too sure was left as it is in two of three hold-outs,
# and its class mixes were off by a third more.
SIMPLER_CALIBRATION = 1.0

# A chosen factor is told as "unchanged" only where its three digits would read 1.00: a small change is still a change.
FACTOR_UNCHANGED = 0.005

# Standard errors by which the mean posteriors may lead to another class mix than their likelihood before that counts as
# bias of the likelihood: by 1 the errors of one window would depend on chance, and what follows windows with them.
DOUBT = 2.0

# The least variance of that difference, as a share of the likelihood's own: standard errors are known no better.
LEAST_DOUBT = 0.1

# What a class keeps when posteriors are retargeted to a prior without it.
RETARGETING_SHARE = 0.1

# Simulated shifts: events per window, and hold-out rows at most. At 500 events and thousands of rows both kinds of
# noise matter, as they do in production.
SIMULATED_EVENTS = 500
SIMULATED_ROWS = 5_000

# Concentration of realistic shifts around the source priors: a class of 10 % moves by 4 points (one sd).
NEAR_SOURCE = 50.0

# A likelihood ratio is needed to two decimals, not to eight: a p-value moves by less than one part in a hundred.
RATIO_LEFT = 1e-3

# Light tails would make the relation test bolder than chi-square; by more than this it is not believed.
LEAST_INFLATION = 0.5

# A class with fewer labelled hold-out events: what its posteriors look like is known to 10 % at best.
CLASS_EVENTS = 100

# Hold-out events wanted for each event of a window. At 1 x the shared reference error drove the false-alarm rate of
# single features from 0 to 29 % (nominal 5), at 10 x from 1 to 9 %.
REFERENCE_PER_WINDOW = 10

# Mean distance of posteriors from the truth up to which a model counts as calibrated: at 20,000 events in 15 bins
# a perfect one shows 0.5 to 1 % by chance.
CALIBRATED = 0.02

# Delta_min of mean posteriors below which classes are nearly collinear: errors of counts grow by 1/sqrt of it, tenfold.
INDISTINCT = 0.01

# (q95 + q5 - 2 q50) / (q95 - q5), the lean of a feature: 0 for symmetric ones, 0.4 for a log-normal with sigma 0.5.
SKEWED = 0.3

# The smallest distance from a log-normal's origin that is told apart, in the feature's own unit.
BEHIND_ORIGIN = 1e-6

# Standardised values are cut here, infinite ones included: far beyond any data, far within single precision.
FARTHEST = 1e9

# Variance of a mean, in units of within-class variance, that stands for a map that does not vary at all.
SMALLEST_VARIANCE = 1e-12

# A share of a class with a standard error of 1 is no estimate: 1 / variance.
LEAST_CURVATURE = 1.0

# Cells of the table that finds a value's place, for each distinct reference value: at 4 a place is right at the first
# look for nineteen values in twenty; more cells leave the cache and gain nothing.
CELLS_PER_VALUE = 4

# Share of a column's distinct values on either side that may crowd into the outermost cells of its table: one absurd
# value must not make all cells too wide.
TABLE_TAIL = 0.001

# A feature that is missing in more of the hold-out events is no input of the relation: rows without it say nothing.
RELATION_MISSING = 0.2
# Standard errors by which parameters adapted to one half of the labels have to improve the other half's squared errors.
GAIN_ERRORS = 2.0
# The t at which a regressor's predictions say more of the labels than lines through its inputs do, so that the relation
# to watch is the one to the prediction. A linear regressor of a linear world reaches it once in 30,000 references.
PREDICTION_SAYS_MORE = 4.0

# Leaves, and rows in each, of the trees that look for bends in what lines leave: a parabola takes half a dozen.
BEND_LEAVES = 16
BEND_ROWS = 20

# Labels, or what those with inputs like the hold-out's are worth, before the mean of their squared errors counts.
ERROR_LABELS = 30
# Standard deviations beyond which a value counts as if it were there, when rows are weighted to look like the
# reference's: one extreme must not take all of the weight. And the penalty that keeps weights finite where none do.
BALANCE_REACH = 5.0
BALANCE_PENALTY = 1e-4

# How much of the relation's level the test of the errors has, and by what factor they have to grow to count: that is a
# fifth more of the squared error.
ERROR_SHARE = 0.2
ERROR_GROWTH = 1.1

# Labels beyond which a window's evidence is not looked for in older windows: slopes that grew by a tenth are found in
# 98 of 100 batches of this size, and the fewer windows back, the less of it lies before a change.
ENOUGH_LABELS = 100

# Mean log-likelihood in nats a label below which a change of the relation does not count: a mean that moved by a
# seventh of the noise's standard deviation.
RELATION_FLOOR = 0.01
# Half widths of 95 % intervals in standard errors.
NORMAL_95 = 1.959963984540054

# How often an interval may miss.
INTERVAL_MISSES = 0.05

# Labelled events are taken for a sample of the window unless a mean posterior lies this many standard errors off: one
# window in 16,000 by chance, for each class.
SELECTED_LABELS = 4.0

# Shifts in standard errors a window that the detectors of changes wait for, each 1.7 times the one before: one between
# two of them is found as soon as by its own. With .25, .5, 1, 2 and 3 shifts of .5 and 1 took 4 % longer.
EVIDENCE_SIZES = (0.3, 0.5, 0.8, 1.4, 2.6)

# Evidence up to which the windows are taken to be calm: one of a thousand would have it by chance in ten windows.
CALM_EVIDENCE = 10.0

# How well the null of a test is known, as a share of its variance: in windows of 100 events the fit's score is off by
# up to a quarter of a standard deviation, in all of them alike, which over windows would pass for a change.
NULL_ERROR = 0.1

# A p-value near 1 says that nothing moved, and no more: a score of minus infinity would be learned as the reference's.
LEAST_SCORE = -2.0

# Scores are cut off here: no window alone is worth more, and no model of one holds that far out.
SCORE_LIMIT = 8.0

# The odds at which windows have to speak against a shift before its alarm is over.
RESOLVED_ODDS = 100.0

# The exponents of bets against ranks being uniform: .3 is quickest where all windows stand above the past, .6 where one
# in three does. More of them cost a factor each and save no window (`python -m tests.bench.quality`).
RANK_BETS = (0.3, 0.6)

# Shares of rejected records, missing values and values that no hold-out event had which nobody acts upon: one in a
# thousand.
LEAST_QUALITY = 0.001

# What has lasted for so long is normal, in microseconds: a week has all that comes by hours and by days.
QUALITY_SETTLES = 7 * 86_400_000_000

# Outcomes by which estimates are judged, and the labels each must have: with 20 outcomes five misses of a class
# are too many (p = 0.003), with 100 labels a share is known to 10 points at worst.
TRUST_OUTCOMES = 20
TRUST_LABELS = 100

# The chance that estimates with right intervals are distrusted after an outcome.
TRUST_LEVEL = 0.01

# Share of the misfit that may stay when events of an unknown class are taken out. Of a class that came in addition 0 to
# 50 % stayed in trial worlds, of classes that were turned about their centres 64 to 97 %.
MISFIT_LEFT = 0.57

# Labelled rows with a number beyond this are no evidence: the squares of a few such leave the range of floats.
LARGEST_NUMBER = 1e100

# What calibration gets wrong at a class mix is worked out for mixes in steps of a hundredth: between two of them it
# changes by a hundredth of itself, and windows that are stable share one step or two.
MIX_GRID = 0.01

# Rows of a window whose labels are no fair sample are weighted by how often labels come at such a score, in this many
# strata: with 100 labels each has ten.
SELECTION_STRATA = 10

# So many labels of a window's events at least tell how good its model was; fewer only where the window has no more.
FEWEST_LABELS = 30

# A share with an interval of no width is known to this, for its distance from the reference in standard errors.
LEAST_ERROR = 1e-6

# A column that varies less than this has no common scale with others: differences of its values lose their digits.
NARROWEST = 1e-290

# A relation has not changed if it only seems so because of this share of the labels, those that the reference explains
# worst, and of one at least: an outlier beyond all that the hold-out events held is no relation.
RELATION_TRIM = 0.02

# How finely a column is written shows in so many of its values; with fewer than the second, a last decimal of 0 in all
# of them could be chance.
RESOLUTION_ROWS = 256
RESOLUTION_VALUES = 12

# Nobody rounds features to more decimals than this, and scores with more than six are told from single precision by
# nothing. Scores of one decimal are no scores any more: that is a change.
FINEST_DECIMALS = 12
FINEST_SCORES = 6
COARSEST_SCORES = 2

# From here on doubles are eighths apart: such numbers have no decimals to round.
DECIMALS_UP_TO = 1e15

# Steps of a rounded feature above this share of its spread are a change of the feature: they hide shifts of a quarter
# of a standard deviation.
COARSEST_STEP = 0.5

# Single precision is fine enough for a column if its error is below this share of the spread: a million events show
# distances of a thousandth. (Times in milliseconds since 1970 are not: they are compared as they come.)
SINGLE_ERROR = 1e-4

# Single precision merges scores where so many of them share one of its numbers and differ by more than a computation in
# another order makes of one number: then doubles are compared as they come.
SCORES_MERGED = 0.05
SAME_NUMBER = 2.0**-40

# What a score is worth that many events share is known from this many of the reference's; fewer would fit themselves.
SHARED_SCORE = 30

# A rounded score of 0 where the reference has no event was between 0 and half of the last decimal: the middle of that.
UNSEEN_ZERO = 0.25

# Scores have atoms where one value is held by at least this share of the events: a small tree's do, a network's do not.
ATOM_SHARE = 0.01

# Columns of posteriors count as exchanged when that orders events of two classes the wrong way round: one worthless
# model in ten thousand by chance, over all classes that would change places; and fewer than 48 in 100 pairs of events
# the right way, as a model that orders two classes no better than a coin may be a little below one half for good.
EXCHANGE_LEVEL = 1e-4
EXCHANGE_FLOOR = 0.02

# Log losses count as worse than that of the class shares above this many standard errors of their mean.
WORSE_THAN_SHARES = 3.0

# An interval of a class's share that is wider than this says hardly anything of the class mix: that it has not moved
# cannot be claimed.
VAGUE_MIX = 0.4

# A hold-out counts as sorted by label where the chance that two events of a block differ in class is below this share
# of the chance that any two do: sorted rows have next to none, blocks of one mix have all of it.
SORTED_BY_CLASS = 0.1

# Events whose random features are matched softly, where one class mix does not explain a window: an eighth of the cost
# of all 16,000, and the share that is missing is known to half a point.
SOFT_MATCH_EVENTS = 2_000

# With fewer hold-out rows than this for each column and class, what lies where no class was is judged by rows that took
# no part in saying where the classes are: 450 rows of 64 columns lay nearer than others; all windows had unknown mass.
ROWS_PER_DIRECTION = 100
LANDSCAPE_FOLDS = 10

# A class's own covariance says where it lies as well as that of all at this many rows: of hand-written digits with 50
# rows a class, one left out was told from the others in 94 of 100 pairs, by the pooled covariance in 88.
LANDSCAPE_PRIOR_ROWS = 25.0

# The level at which unknown mass is believed once one class mix does not explain a window: it is not `stable` in any
# case, and this only says why.
UNKNOWN_LEVEL = 0.05

# Hold-out rows of a segment from which on it has profiles of its own, and a class mix of its own: below them the fit
# test has no power, and a share of one half is known to 14 points at best.
SEGMENT_ROWS = 200
SEGMENT_SHARES_ROWS = 50

# Rows of a class that a segment has at least, if the whole leads to expect as many: a class without any has no share.
SEGMENT_CLASS_ROWS = 5

# Rows that a covariance keeps at least after its degrees of freedom are taken off: a law of F with fewer has no mean.
LEAST_ROWS = 3.0

# Equally filled cells on which distributions of a hold-out's blocks are compared: distances are known to 0.002.
BLOCK_CELLS = 512

# A block by time with less than this share of what blocks usually hold is no window's worth: night, or an outage.
SHORT_BLOCK = 0.25

# Blocks of a hold-out that differ by this many standard errors more than samples of independent events would are
# believed to differ: so are 3 to 9 in 100 references of independent events, which their blocks' own law holds for too.
EXCHANGEABLE = 2.5

# Blocks below which nothing is made of how they differ: of two or three windows' lengths as many parts are known.
FEWEST_BLOCKS = 6

# How much the logarithm of a statistic spreads between windows of real streams that nothing happened to (weather .47
# and .52, air quality .67 and .79; of single features' distances .23 to .72), and what that is worth beside fewer than
# ten windows of a stream's own, in degrees of freedom.
USUAL_SPREAD = 0.5
USUAL_SPREAD_WORTH = 4.0

# A hold-out of fewer windows' lengths is cut into parts of them, and every verdict but `stable` says that it is short.
WHOLE_BLOCKS = 10

# Windows that the recent normal has to have seen before it judges one: of six, one window in three was a false alarm.
FEWEST_RECENT = 10

# Where a hold-out holds few windows' lengths its blocks are parts of them, with at least so many events: in fewer a
# class mix is hardly known. A part is not held against its neighbours: it leaves out a window's length, and with fewer
# than three of them a third of the hold-out.
SHORTEST_PART = 30
FEWEST_STRETCHES = 3

# Neighbouring blocks that vary as one make up a stretch, but so many stretches stay: of a trend that lasts all through
# the hold-out all blocks would be one otherwise, and nothing be known.
STRETCHES_KEPT = 5

# A block is weighed by a covariance in which none of its rows has a part: of up to so many stretches each is left out
# by itself, as for a window, of more every thirtieth. With five folds a fifth of the other blocks was left out with it,
# varied by more than in the covariance of a window, and hid by how much it differs itself (in the indoor climate of a
# house blocks lay a third nearer than windows of the same days).
FOLDS = 30

# A feature of which so large a share of a block's values occurs in no other block is a calendar, a counter or an
# identifier: dates scored .76 to .90, features of real streams at most .02. Looked at in eight cells a block.
CALENDAR = 0.5
CALENDAR_CELLS = 8

# Windows that the recent normal is judged by: with forty the level lags behind a stream that drifts, and with ten a
# window has to be twice as far off to be told.
RECENT_WINDOWS = 20

# Windows over which it is remembered by how much windows differ at all: a storm a year is beyond the law of twenty calm
# weeks, and not beyond that of a hundred.
RECENT_LONG = 100.0

# Neighbouring windows are alike: twenty of them know how much windows vary as well as ten independent ones would. So
# three calm streams of four came below their level, and all of them had been above it.
RECENT_INDEPENDENT = 0.5

# Of a window that is not as recent ones were no more is remembered of how far off it was than one in so many has by
# chance: otherwise one mistake of a producer would blind the recent normal for twenty windows.
RECENT_CAP = 1e-4

# Estimates of the class mix by familiar inputs: twice the variance between the candidates is added to their errors in
# the blocks. Errors of scores count up to six times as much where inputs look strange: on seventeen streams the error
# is then at most 1.22 times that of the better of the reference's shares and calibrated scores (with a bound of three
# 1.37, without 1.91). The interval's variance grows up to 25 times. What the halves of the hold-out differ by counts
# eight times: as much as a walk adds within a hold-out and a half after its end.
CANDIDATE_DISAGREEMENT = 2.0
LEAST_FAMILIAR = 6.0
WIDEST = 25.0
ERRORS_GO_ON = 8.0

# The move of the shares counts up to three natural standard deviations in the harm score: a stream whose mix is
# somewhere else altogether would otherwise hide what the model's confidence says.
LARGEST_MOVE = 3.0

# A harm score above which a model is likely worse than on its hold-out: of the windows above it 65 % were worse than
# the hold-out's 90 % block, of all windows 28 % (11 real streams, 3 models each). The alert rule has the same number.
HARMED = 2.0

# What a window of labels leaves of what earlier ones have taught: half of it is gone after 23 windows. And how much is
# known before any label of the slope and of each intercept, in Fisher information. With 20 a few labels a window made
# scores of still streams worse by .0003 nats, with 40 by less than .0002 (tests/bench/labels).
LEARNED_MEMORY = 0.97
LEARNED_PRIOR = 40.0

# Newton steps a window, and the longest: they start where the last window ended, which is near.
LEARNED_STEPS = 2
LEARNED_STEP = 1.0

# Slopes outside of this are no recalibration: below it scores would be reversed, above it a few labels all agree.
LEARNED_SLOPES = (0.0, 5.0)

# How much the raw scores, the correction without labels, and the learned one are believed before any label. The first
# decides the bound: windows together never lose more than k ln(1 / 0.5), with labels k windows late.
PRIOR_WEIGHTS = (0.5, 0.25, 0.25)

# A pool multiplies by the class mix now where some class has moved by more than so many half-widths of its interval.
# With 1 still streams lost .0005 nats, with 2 less than .0002; scores under a walking mix gain .4 % less (.6 %).
POOLED_CHANGE = 2.0

# Labels are no fair sample above this many standard errors, with sums over windows that each forget a fiftieth. No
# window of eight streams with fair labels came above it (tests/bench/labels).
SELECTION_SCORE = 4.0
SELECTION_MEMORY = 0.98

# Windows in a row that settle without any label until corrections are no longer taken from what labels once taught. Of
# windows of a hundred events in which one in a hundred is labelled, so many in a row have a chance of 1e-13.
LEARNED_PATIENCE = 30

# How fast outcomes that weigh the experts are forgotten, in windows; and what a block of the hold-out counts for beside
# them. Of seventy-seven cells of twenty-seven streams five are more than 1.05 times as far off as their best simple
# rule; with weights by the square and without blocks twenty are. Half-lives of 8 to 40, a quarter to a twentieth and
# weights by the third power differ by a thousandth on average.
EXPERT_HALF_LIFE = 16.0
BLOCK_OUTCOME = 0.1
EXPERT_POWER = 4.0

# Outcomes and blocks together from which on experts are weighed: of fewer the last error decides.
FEWEST_OUTCOMES = 3

# By how many blocks labels come late, where those of the hold-out stand for outcomes.
BLOCKS_LATE = 2

# Half the variance between the experts is added to the square of past errors: intervals hold in 94 % on average on ten
# real streams with three models, and in at least 90 % on all but police stops, where label shift is believed in vain.
EXPERT_DISAGREEMENT = 0.5

# Labelled windows of the short memory, and those whose errors make the interval: of five their spread is known to a
# third; beyond twenty they are another season's.
FEW_MIXES = 8
FEWEST_ERRORS = 5
PUBLISHED_ERRORS = 20

# Seasons that a hold-out has to cover: of what came once nobody knows that it comes again.
FEWEST_SEASONS = 2

# Blocks that are advised: with twenty the covariance is known to a quarter, and one odd block does not decide.
BLOCKS_ADVISED = 20

# A block this many standard deviations of the others away is called odd: one in three hundred by chance.
ODD_BLOCK = 3.0

# The labels of a window are taken to have come when this share of those of each class has.
LABELS_COME = 0.95

# Labels have to follow the scores otherwise by more than this before a concept shift is looked for: a slope of .85
# instead of 1 moves a score of .9 to .87. A hold-out that knows its own slope less well, or whose parts have slopes of
# their own, tolerates so many standard errors of it; one that may as well have a slope near 0 tells nothing.
CONCEPT_EDGE = 0.15
CONCEPT_ERRORS = 2.6
CONCEPT_LARGEST = 0.9

# No change is looked for beyond this, and the place up to it is found by halving: to less than a thousandth.
CONCEPT_FARTHEST = 3.0
CONCEPT_BISECTIONS = 12

# Parts of the hold-out, as it stands: their spread is known to a sixth, and a part of 2,000 rows still has a hundred.
CONCEPT_PARTS = 20

# Changes beyond the edge on which stakes are laid: with all three a change of any size costs at most a few more labels.
CONCEPT_SIZES = (0.2, 0.4, 0.8)

# A concept shift by chance comes about at most once in so many windows with labels.
CONCEPT_ONCE_IN = 1_000.0

# No event is worth more evidence than this, in nats: a wrong label among scores that are sure is no concept.
CONCEPT_STRATUM = 1.0

# Scores below the inverse of its exponential, 5e-4, are not told apart: hold-outs of a few thousand cannot check them.
CONCEPT_LOG_ODDS = 7.6

# Events of the frequent class that a rare one is compared with: eight have 16/17 of the information of any number.
CONCEPT_CONTROLS = 8

# Newton steps of a fit in a few directions, from a start that is nearly right.
CONCEPT_STEPS = 6

# A bend that has less than this share of information of its own is another one's.
SINGULAR_BEND = 1e-3

# The level of a class over windows (`priors.smoothing`). How far it moves from window to window, as a share of the
# variance of a window: after long calm these average over 18, 5 and 2 windows, and the last follows each. Finer grids
# gain nothing; without the last a mix that differs from window to window is followed worse than by the windows alone.
LEVEL_MOVES = (0.003, 0.04, 0.4, 6.0)

# How often a level is held to jump, and how far, in shares. One window in ten is more than streams do: it is what it
# takes to be as right as the window itself in the five windows after any jump, and costs calm streams an error of .45
# of the window's own where .32 could be had (tests/bench/smoothing).
JUMPS = 0.1
JUMP_SIZE = 0.25

# What the filters' likelihoods keep of the past with each window, and what the noise of a window keeps.
LEVEL_MEMORY = 0.99
NOISE_MEMORY = 0.9

# Half the width of a level's interval in its standard deviations. Not 1.96: these hold jumps in one window of ten, and
# intervals of calm streams would hold 99 % of what is true.
LEVEL_REACH = 1.65

# The chance that all values of a window are the same, by the share of the commonest in the reference: below it, a
# column with one value only is called constant. A flag that is raised once in 10,000 events is not called so.
CONSTANT_BY_CHANCE = 1e-3

# Phases of a season at which something may be usual of inputs: of 100 blocks each has four then. What came on fewer
# days is not known well enough: a block is held against the others of its phase, and those are to be three.
INPUT_PHASES = 24
FEWEST_OF_PHASE = 4

# How much of a window's events have to lie at times of which it is known what is usual.
KNOWN_TIME = 0.9

# Of how much blocks differ by goes with the season: what is less is no season to speak of, and inputs are held against
# any time.
LEAST_EXPLAINED = 0.1

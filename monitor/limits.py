"""How much is kept, read or waited for: every bound of memory, work and time, with its reason.

What decides between numbers stands in `tolerances`.
"""

# A calibration map has a few parameters per class: beyond this many events its sampling error (0.7 %) is no longer
# what limits it, and a build should not wait for it.
CALIBRATION_ROWS = 20_000

# Categories of one feature that a reference tells apart, the most frequent first; the rest count as one value.
# A chi-square cell of a feature with more values than this would be empty in windows of a few thousand.
CATEGORIES_KEPT = 1_000

# Sorted values kept per numeric feature, and over all features of a reference (about 36 MB on disk). Up to there a
# distribution is exact; above, exact at evenly spaced quantiles of each class, with the largest error stated.
VALUES_KEPT = 100_000
VALUES_KEPT_IN_ALL = 4_000_000

# Hold-out rows kept as rows in a reference, for whatever needs them (2 MB for ten features).
SAMPLE_ROWS = 20_000

# Rows whose products are formed at once: 2,048 rows of 37 classes fill half of a 1 MB second-level cache.
BLOCK_ROWS = 2_048

# Rows whose cosines are taken at once: 64 of each fill 800 kB. Products of matrices are formed up to 24 rows at a time,
# and round a row that is left over otherwise: 3,072 leave none over, so that parts give the bits of the whole.
PROJECTED_ROWS = 3_072

# The longest record that is looked at: Kafka's own default for a message, 1 MiB.
RECORD_BYTES = 1_048_576

# Events in one record that is an array. Producers pack 10 to 100; the bound keeps one record's rejections small.
RECORD_EVENTS = 1_000

# How far ahead of now an event's time may lie, in microseconds. Clocks differ by seconds; the smallest error of a
# time zone is 15 minutes, and one event that far ahead would make all others of its partition late.
AHEAD = 14 * 60 * 1_000_000

# Segment values longer than this are not names of anything: they would be labels of metrics.
SEGMENT_LENGTH = 200

# Rows of a hold-out file from which classes, features and their kinds are inferred.
PROBED_ROWS = 10_000

# Rows by which it is judged how heavy the tails of the feature map are: a tenth of the time of its covariance.
KURTOSIS_ROWS = 4_000

# Hold-out events whose rows a build keeps in memory, and matrix cells at most (160 MB): beyond, a seeded uniform
# sample. A million rows leave a prevalence error of 0.05 % and a KS distance of 0.0014 at 5 %.
BUILD_ROWS = 1_000_000
BUILD_CELLS = 20_000_000

# Labelled rows that the weighted-precision stop is judged on: precision to half a percent.
STOPPING_ROWS = 5_000

# Values of a feature map that are computed at once: 1 MB, so that they are summed while still in cache.
MAP_BLOCK_VALUES = 131_072

# Rows of a window from which the spread of the maximum-likelihood priors is measured: a standard error to one percent.
SPREAD_ROWS = 65_536

# Features with coordinates of their own in the fit test. The test inverts a matrix of a few coordinates each: 40
# features take 2 ms, 1,000 would take a minute. All features are tested one by one whatever their number.
COLUMNS_IN_MAP = 40

# Categories of one feature that get a coordinate in the fit test; all categories are in its chi-square test.
CATEGORIES_IN_MAP = 5

# Features that the search for unknown mass works in; more are first projected onto this many random directions.
LANDSCAPE_COLUMNS = 64

# Values of a stream's last window stay exported for this many window lengths, and for this many seconds at least:
# one window may be empty or held up, three in a row are an outage; five minutes is Prometheus's own look-back.
STALE_WINDOWS = 3
STALE_AFTER = 300.0

# Events that were as old, in seconds, when their window was assessed, and older than so many windows, are told to be of
# the past: a log that is read anew says nothing about today.
PAST_AFTER = 86_400.0

# Windows that a segment's own history holds, and segments that have one: 16 MB a stream with 1,000 features.
SEGMENT_WINDOWS = 40
SEGMENT_TRACKS = 50

# How often a source is asked for its lag, in seconds: often enough for any scrape, rare enough to cost nothing.
REPORT_SECONDS = 1.0

# Hold-out rows that a kernel map is summarised from: at 10 to 30 microseconds a row and map, all of a million would
# take minutes, and beyond this the window, of at most a tenth, is what limits the estimate.
KERNEL_ROWS = 100_000

# Values of a hold-out's images that are kept between two passes over them, 128 MB; images of more are made twice.
MAP_VALUES_KEPT = 16_000_000

# Windows of two classes and so many events are binned before EM maximises their likelihood: some ten times as fast, and
# the answer moves by less than a thousandth of its standard error.
BINNED_EVENTS = 100_000

# Events that are binned at once: positions, values and bins together stay in a 1 MB second-level cache.
HISTOGRAM_BLOCK = 32_768

# Hold-out rows, evenly over the classes, on which retargeted counting looks up what corrected posteriors are on
# average: with 20,000 errors are no smaller in windows of 2,000 events.
RETARGETING_ROWS = 5_000

# The longest that a request for the next recalibration may wait, in seconds (proxies give up after 60), and how often
# it looks: a service hears of a new window within a quarter of a second.
LONGEST_WAIT = 50
WAITING_LOOKS = 0.25

# A client has this long for a whole request (seconds), and this many times as long to take an answer.
REQUEST_SECONDS = 10.0
BUSY_CHECKS = 7

# Connections beside those that wait for a recalibration: probes, scrapes, browsers. The longest silent one makes room.
CONNECTIONS_BESIDE = 50

# How often the settings of the server, its token and its certificate are read anew, in seconds.
RENEWAL_SECONDS = 15.0

# The longest request line and headers together, as in nginx and Apache.
HEADER_BYTES = 16_384

# Without a turn of the loop for this long the service is not ready, in seconds; the largest windows take a few.
PROGRESS_SECONDS = 60.0

# Values of a window that are placed among the reference's at once: half of a 2 MB second-level cache. Of small windows
# these are all columns, of large ones column after column.
VALUES_PLACED = 131_072

# Up to so many columns the largest number of each row is found column by column; of more the halves are compared first.
FEW_COLUMNS = 13

# Posteriors are checked this many rows at a time: what the check needs beside them stays small and in cache.
CHECKED_ROWS = 8_192

# Hold-out rows that a mixture of regressions is fitted to: up to five components with ten starts take 4 s there, and
# the reference's own error adds 1 % to the ratio of 100 labels.
RELATION_ROWS = 10_000

# Labelled rows that one relation test is made with, at most: 0.2 s when it finds something, and by then the floor
# below decides, not chance.
EVIDENCE_ROWS = 2_000

# Events of a window that the detector on events takes, evenly spaced, and how many of the last it tests together: four
# windows' worth, tested once a window, in a millisecond or two.
SAMPLED_OF_WINDOW = 250
SAMPLED_TOGETHER = 1_000

# Changes of level that are remembered of each stream, for those who look at them.
CHANGES_SHOWN = 20

# Events in open windows beyond which partitions that are ahead are held back: what a reader that catches up comes to
# use, at 40 to 180 bytes each (two classes; ten classes and ten features). A tenth of it cost no throughput.
MOST_WAITING = 1_000_000

# Events of many streams wait together, undivided, while no window of theirs may close; with so many for each stream it
# costs some .1 us an event to divide them, a fraction of decoding it.
UNDIVIDED_ROWS = 1_024

# Progress is committed at least this often while records arrive, in microseconds: what a restart reads again is as
# little.
COMMIT_EVERY = 5_000_000

# A partition with nothing to read for this long no longer holds windows open, in microseconds: longer than a consumer
# needs to move to another member, short beside the windows that people wait for.
IDLE_AFTER = 60_000_000

# Segments that are watched apart in each window, the biggest ones: each is assessed as the whole is.
SEGMENTS_WATCHED = 20

# Margins beyond it are refused: with any slope that a calibration may have, they stay numbers.
LARGEST_MARGIN = 1e100

# Of a stream's name, in bytes: with more, `check` says so.
NAME_BYTES = 200

# Features of a stream that become series in Prometheus, of each of its segments, and classes of either. A stream with
# 20 segments then has some ten thousand series, and a server holds millions.
FEATURE_SERIES = 1_000
SEGMENT_FEATURE_SERIES = 20
CLASS_SERIES = 100

REFERENCES_READY = 256
"""References, and segments of them, of which is kept what follows from them alone: 1.4 MB for 2,000 rows of two
features, 13 MB for 10,000 of ten. Sixty streams with two segments each have 180: with fewer ready than there are, each
window prepares its own anew, a tenth of a second of work."""

MAPPED_READY = 8
"""References whose mapped rows are kept, 7 MB of 10,000 rows and ten features: of streams with a class of their own."""

RARELY_READY = 64
"""What only some windows need of a reference, such as how it is without the columns that moved. Each keeps the whole of
what is ready of its reference from being let go, so these are few."""

SKETCHES_READY = 4_096
"""Columns of references whose sketch is kept as it is written: some tens of numbers each."""

# Windows of each stream that the page and the API look back on.
WINDOWS_REMEMBERED = 1_000

# Blocks of a hold-out that are kept one by one, the latest among them without a gap: covariances gain little from more,
# and a hundred of ten classes and 300 coordinates take 2.4 MB.
BLOCKS_KEPT = 100
LATEST_BLOCKS = 20

# Copies of a stream's learned weights: as many windows may be corrected by them before the first of them is settled.
LEARNED_COPIES = 256

# Features that are remembered as those by which a stream is not as in its reference: more are a page nobody reads.
FEATURES_SHOWN = 5

# Labelled windows whose class mix a stream remembers: enough for the mean of a season's part, 4 kB with ten classes.
MIXES_KEPT = 30

# Outcomes by which it is known how long labels take.
DELAYS_REMEMBERED = 20

# Classes up to which corrections are learned from labels: a matrix of so many squared is kept of each stream.
LEARNED_CLASSES = 50

# Labels of a window by which the relation of labels to scores is judged: they show a slope of .85 to a tenth of that.
CONCEPT_ROWS = 5_000

# After an outage of source or sink, seconds: from the first pause to the longest between two attempts; and how often
# the log tells of it.
OUTAGE_PAUSES = (1.0, 10.0)
OUTAGE_TOLD_EVERY = 60.0

# Cells of all sketches of a window together, each with four numbers of some six characters: 25 kB at the very most, a
# few for ten features. A column has at most as many as the eye can use; with more than 160 columns, those that moved
# least have none.
SKETCH_CELLS = 800
SKETCH_MOST = 20
SKETCH_FEWEST = 5

# Windows of each stream whose sketches are remembered for the page: some 30 MB for sixty streams of ten features.
SKETCHES_REMEMBERED = 100

# Features that a result names as having values which no hold-out event had: more are a new source.
FEATURES_OF_QUALITY = 20

# Days of each hour that a stream's volume is held against.
VOLUME_DAYS = 7

# The shortest patience with idle partitions, in microseconds, where an engine tells every second how far they reach.
SHORTEST_PATIENCE = 5 * 1_000_000

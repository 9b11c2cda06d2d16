"""The estimators that every window reports, and those that the default is built on: references with these alone are
built in a fraction of the time."""

from monitor.priors import CHEAP, DEFAULT, ESTIMATORS, kept_for

QUICK = {name: entry for name, entry in ESTIMATORS.items() if name in {*CHEAP, *kept_for(DEFAULT)}}

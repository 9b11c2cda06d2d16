"""Whether what a service takes stays level: the third quarter of a run against the last.

A broker that stays away for longer than a transaction lasts has the service begin anew, with a young worker that
fills with references again: for a moment little is open, and for a window's length little is resident. A quarter is
judged by what it shows for most of its time, and not by a line through all of it.
"""

from collections.abc import Sequence

import numpy as np

from tests.soak.footprint import Footprint

FIRST_NEEDED = 4
"""Descriptors or threads of connections that are made when they are first needed."""
FILLED = 0.9
"""The quantile of resident memory: a worker is young for less than all but a tenth of a quarter."""
AT_REST = 0.25
"""The quantile of what is open: refused connections of an outage stay open for a while."""


def growth_mb(quarters: tuple[Sequence[Footprint], Sequence[Footprint]]) -> float:
    """Of resident memory, over both quarters."""
    third, last = (np.quantile([one.loop_mb + one.workers_mb for one in each], FILLED) for each in quarters)
    return float(2 * (last - third))


def usual(quarters: tuple[Sequence[Footprint], Sequence[Footprint]], what: str) -> tuple[int, int]:
    """Descriptors or threads in either: what is left open raises them, what opens and closes does not."""
    third, last = (int(np.quantile([getattr(one, what) for one in each], AT_REST)) for each in quarters)
    return third, last


def faults(quarters: tuple[Sequence[Footprint], Sequence[Footprint]], allowed_mb: float) -> list[str]:
    """What is not level, in words."""
    found, growth = [], growth_mb(quarters)
    if growth > allowed_mb:
        found.append(f"memory grew by {growth:.1f} MB in the second half, {allowed_mb:.1f} MB allowed")
    for what in ("descriptors", "threads"):
        before, after = usual(quarters, what)
        if after > before + FIRST_NEEDED:
            found.append(f"{what} went from {before} to {after}")
    return found

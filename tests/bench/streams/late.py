"""What the monitor publishes of the same windows when labels come, two windows late."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from monitor.assessment import Assessment
from monitor.labels import Outcome, Waiting, outcomes
from monitor.labels.published_window import kept, told
from monitor.labels.values import Found, Stateless
from monitor.priors import PriorEstimate
from monitor.reference.classifier import Reference
from monitor.state import RecentLabelsState, StatePlan, WindowSeen, recent_labels
from monitor.windows import WindowSummary
from tests.bench.streams.watched import Seen, Watched

LATE = 2
"""Windows until labels come."""
NONE = np.zeros(0, dtype=np.int64)


def published(watched: Watched, reference: Reference, windows: Sequence[Seen]) -> Iterator[PriorEstimate]:
    """The class mix of every window."""
    concern = recent_labels(StatePlan(awaiting=True), reference)
    assert concern is not None
    state, waiting = RecentLabelsState(), list[Outcome]()
    for number, (at, one) in enumerate(zip(watched.windows, windows, strict=True)):
        if number >= LATE:
            state = concern.advance(state, waiting[number - LATE]).state
        shown = WindowSeen(one.assessment, WindowSummary.of(watched.window(at), len(one.truth)), 0.0)
        advanced = concern.advance(state, shown)
        seen = advanced.seen if isinstance(advanced.seen, WindowSeen) else shown
        waiting.append(_outcome(watched, at, seen))
        assert isinstance(seen.assessment, Assessment)
        yield seen.assessment.prevalence


def _outcome(watched: Watched, at: slice, seen: WindowSeen) -> Outcome:
    """All labels of a window."""
    labels = watched.table.labels[at]
    window = replace(watched.window(at), labels=labels, timestamps=np.arange(labels.size))
    assert isinstance(seen.assessment, Assessment)
    published = told(seen.assessment, seen.experts)
    waiting = Waiting("bench", f"{at.start}", at.start, at.stop, at.stop, at.stop, labels.size, published, kept(window))
    none = Stateless((), NONE.astype(np.float64), np.zeros((0, len(watched.table.classes))))
    return outcomes.outcome(waiting, Found(NONE, NONE.astype(np.float64), NONE, NONE), none, 0)

"""One run: a scored stream, labels so many windows late, of so many events; the pool as the service has it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from monitor import quality
from monitor.arrays import UNLABELLED, Labels
from monitor.labels import learning
from monitor.recalibration import Expert, corrected_rows, pooled_rows
from monitor.state.learned import multipliers_of
from tests.bench.labels.streams import Scored

DELAYS = (1, 4, 12)
RATES = (1.0, 0.1, 0.02)


@dataclass(frozen=True, slots=True)
class Run:
    """Mean scores over all events of all windows, whether labelled or not."""

    stream: str
    model: str
    delay: int
    rate: float
    brier: tuple[float, float]
    """As scored, and corrected by the pool."""
    log_loss: tuple[float, float]
    flagged: int
    """Windows in which the labels were said to be no fair sample."""

    @property
    def ratio(self) -> float:
        """Of the Brier scores."""
        return self.brier[1] / self.brier[0]

    @property
    def worse(self) -> tuple[float, float]:
        """By how much Brier score and log loss are higher than those of the scores as they were."""
        return self.brier[1] - self.brier[0], self.log_loss[1] - self.log_loss[0]


def run(one: Scored, delay: int, rate: float, often: float = 1.0) -> Run:
    """`often`: how many times as often as others events of the first class are labelled."""
    rng = np.random.default_rng([21, delay, round(100 * rate)])
    known = learning.nothing_learned(one.windows[0][0].shape[1])
    waiting: deque[tuple[int, Labels, tuple[Expert, ...]]] = deque()
    scores, flagged = [], 0
    for t, (posteriors, labels, seen) in enumerate(one.windows):
        while waiting and waiting[0][0] <= t - delay:
            late, came, pool = waiting.popleft()
            came_in = learning.Settled(f"{late}", one.windows[late][0], came, pool)
            known = learning.settled(known, came_in, one.calibration)
        flagged += known.selection.selected
        known, pool = learning.corrected(known, f"{t}", multipliers_of(seen, known), one.calibration)
        after = pooled_rows(posteriors, pool) if pool else corrected_rows(posteriors, seen.recalibration)
        scores.append(
            [score(each, labels) for score in (quality.brier, quality.log_loss) for each in (posteriors, after)]
        )
        chance = np.where(labels == 0, rate, rate / often)
        waiting.append((t, np.where(rng.random(labels.size) < chance, labels, UNLABELLED), pool))
    brier, brier_after, loss, loss_after = np.mean(scores, axis=0).tolist()
    return Run(one.stream, one.model, delay, rate, (brier, brier_after), (loss, loss_after), flagged)


def runs(one: Scored) -> Iterator[Run]:
    """Every delay and rate."""
    for delay in DELAYS:
        for rate in RATES:
            yield run(one, delay, rate)

"""Processor time, fairly: what is compared takes turns, so that whatever else the machine does hits all alike."""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Work = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Spent:
    """Processor seconds of the rounds of one piece of work, in the order in which they were run."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        """The least: other work can only add."""
        return min(self.seconds)

    def ratio(self, other: "Spent") -> str:
        """Best over best; in brackets the lowest and the highest ratio within one round."""
        each = np.divide(self.seconds, other.seconds)
        return f"{self.best / other.best:.2f} ({each.min():.2f} to {each.max():.2f})"


def interleaved(works: Mapping[str, Work], rounds: int) -> dict[str, Spent]:
    """Every piece of work once in each round, in turn, with the garbage of the one before out of the way."""
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            gc.collect()
            begun = time.process_time()
            work()
            spent[name].append(time.process_time() - begun)
    return {name: Spent(tuple(seconds)) for name, seconds in spent.items()}


def best_of(work: Work, times: int = 3) -> float:
    """Processor seconds of the quickest run."""
    return interleaved({"": work}, times)[""].best

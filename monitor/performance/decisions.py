"""What is decided by a model's scores, what mistakes cost, and what is to be measured: what events cannot show."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from monitor.arrays import Matrix
from monitor.performance.measures import Measure, Scores, measures


@dataclass(frozen=True, slots=True)
class Decisions:
    """By default the class with the highest score is decided for."""

    threshold: float | None = None
    """Of two classes: the positive one is decided for where its score is at least this."""
    false_positive: float = 0.0
    """What it costs to decide for the positive class where it was the other,"""
    false_negative: float = 0.0
    """and the other way round."""
    ranking: bool = False
    """Whether to sort the events for each class of more than two."""

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if min(self.false_positive, self.false_negative) < 0:
            yield f"want costs of at least 0, got {self.false_positive} and {self.false_negative}"

    @property
    def costs(self) -> bool:
        """Whether anybody has said what mistakes cost."""
        return bool(self.false_positive or self.false_negative)

    @property
    def of_two_classes(self) -> bool:
        """Whether only a model of two classes can be measured by this."""
        return self.threshold is not None or self.costs

    def measures(self, classes: int, positive: int) -> Mapping[str, Measure]:
        """What is measured, by name."""
        return measures(classes, positive, costs=self.costs, ranking=self.ranking)


USUAL_DECISIONS = Decisions()


def scores_of(said: Matrix, posteriors: Matrix, decisions: Decisions, positive: int) -> Scores:
    """Scores as the model says them, and as posteriors where that is something else."""
    decided = said.argmax(axis=1)
    if decisions.threshold is not None:
        decided = np.where(said[:, positive] >= decisions.threshold, positive, 1 - positive)
    costs = None
    if decisions.costs:
        costs = np.zeros((2, 2))
        costs[1 - positive, positive] = decisions.false_positive
        costs[positive, 1 - positive] = decisions.false_negative
    return Scores(posteriors, said, decided, costs)

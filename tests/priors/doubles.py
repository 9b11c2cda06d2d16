"""A reference without calibration, and problems whose posteriors are exact: what the laws are checked on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.arrays import Labels, Matrix, Vector
from monitor.priors import ESTIMATORS, CalibratedView
from monitor.priors.estimate import HoldOut


class PlainReference(CalibratedView):
    """Source priors are the class frequencies, posteriors are taken as they are."""

    @classmethod
    def of(
        cls,
        posteriors: Matrix,
        labels: Labels,
        features: Matrix | None = None,
        *,
        names: list[str] | None = None,
        seed: int = 0,
    ) -> "PlainReference":
        counts = np.bincount(labels, minlength=posteriors.shape[1]).astype(np.float64)
        hold_out = HoldOut(posteriors, labels, features, seed)
        wanted = ESTIMATORS if names is None else {name: ESTIMATORS[name] for name in names}
        kept = {name: estimator.summarise(hold_out) for name, estimator in wanted.items()}
        classes = tuple(f"class {k}" for k in range(counts.size))
        return cls(classes, counts / counts.sum(), counts, kept)


@dataclass(frozen=True)
class Problem:
    """One spherical Gaussian per class; the posteriors are the exact ones under `source_priors`."""

    centres: Matrix
    source_priors: Vector

    @classmethod
    def simple(cls, classes: int, separation: float) -> "Problem":
        """Classes on the corners of a simplex, all equally far apart."""
        return cls(separation * np.eye(classes), np.full(classes, 1.0 / classes))

    def draw(
        self, events: int, priors: NDArray[np.float64], generator: np.random.Generator, temperature: float = 1.0
    ) -> tuple[Matrix, Labels, Matrix]:
        """Posteriors, labels and features; a temperature above 1 sharpens the posteriors."""
        labels = generator.choice(priors.size, events, p=priors)
        x = self.centres[labels] + generator.normal(size=(events, self.centres.shape[1]))
        logits = x @ self.centres.T - (self.centres**2).sum(axis=1) / 2.0 + np.log(self.source_priors)
        g = np.exp(temperature * (logits - logits.max(axis=1, keepdims=True)))
        return g / g.sum(axis=1, keepdims=True), labels, x

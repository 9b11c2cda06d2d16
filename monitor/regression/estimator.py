"""MixtureOfRegressions: the reference mixture fitted by EM, in scikit-learn's conventions."""

from collections.abc import Mapping
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from monitor.arrays import Matrix, Vector
from monitor.errors import InputError
from monitor.regression.candidates import best_start
from monitor.regression.em import Climb, climb_from_many
from monitor.regression.links import MODELS
from monitor.regression.maximise import FitParameters, pose
from monitor.regression.mixture import Mixture
from monitor.regression.starts import random_lines
from monitor.tolerances import ROWS_PER_NUMBER, SINGULAR

_FREE = MODELS["pM5"]

RISES = 2
"""So many numbers of components beyond the best are tried: one more line than there are may wait for the next."""


class MixtureOfRegressions(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A mixture of K linear regressions (Bouveyron & Jacques 2014, eq 1.1-1.2), by EM from several seeded starts.

    Parameters
    ----------
    n_components : K, or None to choose it by BIC = -2 L + v ln n, v = K(p + 2) + K - 1.
    max_components : the largest K that BIC may choose. None larger is tried once two in a row were worse than the best.
    n_starts, random_state : how many starts, and their seed. The same seed gives the same model.

    Fitted: `mixture_` (the parameters as one value), `n_components_`, `bic_`, `bic_by_components_` (of numbers
    that had lost, as it was when they were given up), `log_likelihood_`, `converged_`, `n_iter_`, `gap_`
    (log-likelihood still to come), `collapsed_`.

    >>> import numpy as np
    >>> x = np.linspace(-3, 3, 60)[:, None]
    >>> y = np.where(np.arange(60) % 2, 1 + 2 * x[:, 0], 1 - 2 * x[:, 0]) + 0.1 * np.sin(7 * x[:, 0])
    >>> MixtureOfRegressions(n_components=2).fit(x, y).mixture_.coefficients[:, 1].round(1).tolist()
    [-2.0, 2.0]
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        max_components: int = 5,
        n_starts: int = 10,
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.max_components = max_components
        self.n_starts = n_starts
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the mixture; components come in the order of their slopes, then intercepts."""
        inputs, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        targets = np.asarray(targets, dtype=np.float64)
        wanted = range(1, self.max_components + 1) if self.n_components is None else [self.n_components]
        width = inputs.shape[1] + 1
        if min(wanted, default=0) < 1:
            raise InputError(f"n_components: want at least 1, got {self.n_components}")
        fits, table, best = {}, dict[int, float](), min(wanted)
        for k in wanted:
            # K components of p + 2 numbers each need more events than that; one component always has an answer.
            if k > min(wanted) and (k * (width + 2) > len(targets) or k > best + RISES):
                break
            fits[k] = self._fit(inputs, targets, k, table.get(best, np.inf))
            table[k] = fits[k][2]
            best = k if table[k] < table[best] else best
        self.mixture_, ended, self.bic_, self.collapsed_ = fits[best]
        self.n_components_, self.bic_by_components_ = best, table
        self.log_likelihood_ = float(ended.log_likelihood[0])
        self.converged_, self.gap_ = bool(ended.converged[0]), float(ended.gap[0])
        self.n_iter_ = int(ended.iterations[0])
        return self

    def _fit(
        self, inputs: Matrix, targets: Vector, components: int, bic_so_far: float
    ) -> tuple[Mixture, Climb, float, bool]:
        """K components: the mixture, where EM ended (one start, likelihood in the caller's units), BIC, collapsed.

        They are fitted to their end only as long as they may have a lower BIC than others had so far.
        """
        centre, scale = inputs.mean(axis=0), inputs.std(axis=0)
        scale[scale <= SINGULAR * np.abs(centre)] = 1.0
        middle, unit = float(targets.mean()), float(targets.std())
        unit = unit if unit > SINGULAR * abs(middle) else 1.0
        design = np.column_stack([np.ones(len(targets)), (inputs - centre) / scale])
        target = (targets - middle) / unit
        single, noise = _one_line(design, target)
        base = FitParameters(
            np.full((1, components), 1.0 / components),
            np.repeat(single[None, None], components, axis=1),
            np.full((1, components), noise),
        )
        starts = base if components == 1 else random_lines(base, design, target, self.n_starts, self.random_state)
        parameters = components * (design.shape[1] + 1) + components - 1
        penalty, in_units = parameters * float(np.log(len(targets))), len(targets) * float(np.log(unit))
        wanted = (penalty - bic_so_far) / 2 + in_units
        ended = climb_from_many(pose(design, target, base), _FREE, starts, None, wanted)
        # Where BIC chooses K, a component has to be more than a few events that many coefficients can fit.
        fewest = ROWS_PER_NUMBER * (design.shape[1] + 1) / len(targets) if self.n_components is None else 0.0
        start, collapsed = best_start(ended, base.sigmas[0], fewest=fewest if components > 1 else 0.0)
        betas = ended.state.coefficients[start] * unit / np.concatenate([[1.0], scale])
        betas[:, 0] += middle - betas[:, 1:] @ centre
        order = np.lexsort(np.column_stack([betas[:, 0], betas[:, :0:-1]]).T)
        weights = ended.state.weights[start]
        mixture = Mixture.of(
            (weights / weights.sum())[order], betas[order], ended.state.sigmas[start][order] * unit, len(targets)
        )
        likelihood = float(ended.log_likelihood[start]) - in_units
        bic = np.inf if collapsed and components > 1 else -2.0 * likelihood + penalty
        chosen = Climb(
            ended.state.take(slice(start, start + 1)),
            np.array([likelihood]),
            ended.iterations[start : start + 1],
            ended.gap[start : start + 1],
        )
        return mixture, chosen, bic, collapsed

    def predict(self, X: ArrayLike) -> Vector:
        """The mean of the label under the mixture."""
        return self._mixture().predict(self._inputs(X))

    def predict_components(self, X: ArrayLike) -> Matrix:
        """The mean of every component, (events, K)."""
        return self._mixture().component_means(self._inputs(X))

    def predict_interval(self, X: ArrayLike, level: float = 0.95) -> tuple[Vector, Vector]:
        """The central predictive interval of the mixture."""
        return self._mixture().interval(self._inputs(X), level)

    def responsibilities(self, X: ArrayLike, y: ArrayLike) -> Matrix:
        """Which component each event is from, as probabilities (eq 2.7), (events, K)."""
        return self._mixture().responsibilities(self._inputs(X), y)

    def to_dict(self) -> dict[str, Vector | Matrix]:
        """The fitted mixture as plain arrays: what a reference artefact holds instead of a pickle."""
        return self._mixture().to_arrays()

    @classmethod
    def from_dict(cls, arrays: Mapping[str, ArrayLike]) -> Self:
        """The fitted estimator that `to_dict` wrote; it predicts and adapts like the one that was fitted."""
        mixture = Mixture.from_arrays(arrays)
        model = cls(n_components=mixture.components)
        model.mixture_, model.n_components_ = mixture, mixture.components
        model.n_features_in_ = mixture.inputs
        return model

    def _mixture(self) -> Mixture:
        check_is_fitted(self, "mixture_")
        return self.mixture_

    def _inputs(self, inputs: ArrayLike) -> Matrix:
        return np.asarray(validate_data(self, inputs, dtype=np.float64, reset=False))


def _one_line(design: Matrix, target: Vector) -> tuple[Vector, float]:
    """The least-squares line (of least norm, where inputs are collinear) and its noise: what EM starts beside."""
    line = np.asarray(np.linalg.lstsq(design, target, rcond=None)[0], dtype=np.float64)
    noise = float(np.sqrt(np.mean((target - design @ line) ** 2)))
    return line, max(noise, 1e-6)

"""A fitted scikit-learn classifier whose posteriors come out corrected."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from monitor.recalibration.client import RecalibrationClient


class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Corrects what a fitted classifier predicts, as the client has it.

        client = RecalibrationClient("http://127.0.0.1:8080", stream="fraud-v3")
        with client:
            model = RecalibratedClassifier(fitted, client)
            model.predict_proba(X)

    Corrections find their columns by the names in `classes_`. Where the reference has other names for the classes,
    give the client `classes=`, the reference's names in the order of `classes_`.

    A classifier without `predict_proba` is asked for its `decision_function`: margins, of which the feed's calibration
    makes posteriors. Before the client has its first message there are none, and `predict_proba` says so.

    It is already fitted: `fit` changes nothing, and a clone is the same object, as of a FrozenEstimator.
    """

    def __init__(self, estimator: Any, client: RecalibrationClient) -> None:
        self.estimator = estimator
        self.client = client

    def fit(self, X: Any, y: Any = None, **_: Any) -> Self:  # noqa: ARG002 - as scikit-learn calls it
        """Nothing: the classifier is fitted, and has to be the one that the reference was made from."""
        check_is_fitted(self.estimator)
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """The classifier's."""
        return np.asarray(self.estimator.classes_)

    @property
    def n_features_in_(self) -> int:
        """The classifier's."""
        return int(self.estimator.n_features_in_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Corrected posteriors, in the order of `classes_`."""
        posteriors = self._corrected(X)
        if not hasattr(self.estimator, "predict_proba") and not self._calibrating():
            raise ValueError(f"margins cannot be calibrated yet: {self.client.status().reason}")
        return posteriors

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """The logarithms of the corrected posteriors."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest corrected posterior."""
        return np.asarray(self.classes_[self._corrected(X).argmax(axis=1)])

    def _corrected(self, X: Any) -> NDArray[np.float64]:
        self.client.expect(self.classes_)
        if hasattr(self.estimator, "predict_proba"):
            scores = self.estimator.predict_proba(X)
        else:
            margins = np.asarray(self.estimator.decision_function(X))
            scores = np.column_stack([-margins, margins]) if margins.ndim == 1 else margins
        corrected: NDArray[np.float64] = self.client.apply(scores)
        return corrected

    def _calibrating(self) -> bool:
        message = self.client.status().recalibration
        return message is not None and message.of_margins is not None

    def __sklearn_clone__(self) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        try:
            check_is_fitted(self.estimator)
        except (TypeError, ValueError):
            return False
        return True

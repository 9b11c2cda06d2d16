"""The wrapper around a fitted classifier: it behaves as one, and its posteriors are the client's."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks

from monitor.recalibration import RecalibratedClassifier, RecalibrationClient
from tests.recalibration.test_client import client_of, message

X, Y = make_classification(600, 6, n_informative=4, n_classes=3, random_state=1)
FITTED = LogisticRegression(max_iter=500).fit(X, np.array(["a", "b", "c"])[Y])


def wrapped(client: RecalibrationClient | None = None) -> RecalibratedClassifier:
    return RecalibratedClassifier(FITTED, client or client_of(message()))


def test_posteriors_are_corrected_and_the_largest_decides() -> None:
    model, client = wrapped(), client_of(message())
    np.testing.assert_array_equal(model.predict_proba(X), client.apply(FITTED.predict_proba(X)))
    assert (model.predict(X) == model.classes_[model.predict_proba(X).argmax(axis=1)]).all()
    assert (model.predict(X) != FITTED.predict(X)).any()


def test_corrections_find_their_columns_by_name_where_the_reference_has_another_order() -> None:
    turned = replace(
        message(),
        classes=("c", "b", "a"),
        **{name: getattr(message(), name)[::-1] for name in ("source_priors", "target_priors", "multipliers")},
    )
    np.testing.assert_allclose(wrapped(client_of(turned)).predict_proba(X), wrapped().predict_proba(X))
    other = client_of(replace(message(), classes=("x", "y", "z")))
    np.testing.assert_array_equal(wrapped(other).predict_proba(X), FITTED.predict_proba(X))
    assert "the service has ['a', 'b', 'c']" in other.status().reason


def test_without_a_correction_it_is_the_classifier_itself() -> None:
    model = wrapped(client_of(OSError("down")))
    np.testing.assert_array_equal(model.predict(X), FITTED.predict(X))
    np.testing.assert_array_equal(model.predict_proba(X), FITTED.predict_proba(X))


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_estimator_repr,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_mixin_order,
    ],
)
def test_scikit_learns_checks_that_fit_nothing_pass(check: object) -> None:
    check("RecalibratedClassifier", wrapped())  # type: ignore[operator]


def test_it_stands_in_a_pipeline_and_under_a_scorer_and_is_not_fitted_again() -> None:
    model = wrapped()
    assert is_classifier(model)
    assert clone(model) is model
    coefficients = FITTED.coef_.copy()
    labels = FITTED.classes_[Y]
    pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), model).fit(X, labels)
    assert 0 < get_scorer("neg_log_loss")(pipeline, X, labels) * -1 < 5
    np.testing.assert_array_equal(FITTED.coef_, coefficients)
    with pytest.raises(NotFittedError):
        RecalibratedClassifier(LogisticRegression(), client_of(message())).fit(X, labels)

"""An estimator that cannot be used with a model is refused when its reference is built, in words."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from monitor import Reference
from monitor.errors import InputError
from monitor.priors import counting


def scored(load) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    features, labels = load(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(features[::2], labels[::2])
    return model.predict_proba(features[1::2]), labels[1::2], features[1::2]


def test_a_method_for_two_classes_is_refused_for_three_kinds_of_wine() -> None:
    posteriors, labels, _ = scored(load_wine)
    with pytest.raises(InputError, match="cde: want two classes; the reference has 3"):
        Reference.fit(posteriors, labels, estimator="cde")


def test_the_same_method_is_taken_for_two_classes() -> None:
    posteriors, labels, _ = scored(load_breast_cancer)
    assert Reference.fit(posteriors, labels, estimator="cde").estimator == "cde"


@pytest.mark.parametrize("name", ["dfm-rff-features", "dfm-energy-features-soft", "dfm-gaussian-both-soft"])
def test_a_method_on_features_is_refused_where_the_hold_out_has_none(name: str) -> None:
    posteriors, labels, features = scored(load_wine)
    with pytest.raises(InputError, match=f"{name}: want features in the hold-out events"):
        Reference.fit(posteriors, labels, estimator=name)
    assert Reference.fit(posteriors, labels, features, estimator=name).estimator == name


def test_a_share_above_one_is_cut_to_one_before_the_rest_is_scaled() -> None:
    # Forman (2008) cuts each adjusted count to [0, 1]. Here the solution is (1.1, 0.05, -0.15).
    confusion = np.array([[60, 20, 20], [20, 60, 20], [20, 20, 60]])
    predicted = confusion.T / 100 @ [1.1, 0.05, -0.15]
    np.testing.assert_allclose(counting.adjusted(confusion, predicted * 1000).priors, [1 / 1.05, 0.05 / 1.05, 0])

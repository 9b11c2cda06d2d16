"""An estimator that cannot be used with a reference or a window says so, instead of answering something else."""

import numpy as np
import pytest

from monitor import Reference, Window
from monitor.errors import InputError
from monitor.priors import ESTIMATORS


@pytest.fixture(scope="module")
def reference() -> Reference:
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    posteriors = 0.8 * rng.dirichlet(np.ones(3), 300) + 0.2 * np.eye(3)[labels]
    return Reference.fit(posteriors, labels)


def test_a_method_for_two_classes_refuses_three(reference: Reference) -> None:
    with pytest.raises(InputError, match="cde: want two classes; the reference has 3"):
        ESTIMATORS["cde"](Window.of(np.full((10, 3), 1 / 3)), reference)


def test_a_method_on_features_refuses_a_window_without_any(reference: Reference) -> None:
    with pytest.raises(InputError, match="dfm-energy-features: want features in the window"):
        ESTIMATORS["dfm-energy-features"](Window.of(np.full((10, 3), 1 / 3)), reference)

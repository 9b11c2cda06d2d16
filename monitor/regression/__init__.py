"""Regression streams: what a regressor's labelled events say about its reference, and how to carry it over."""

from typing import TYPE_CHECKING, Any

from monitor.regression.adaptation import Adaptation, Note, adapt
from monitor.regression.bayes import BayesAdaptation, adapt_bayes
from monitor.regression.gibbs import Prior
from monitor.regression.mixture import Mixture
from monitor.regression.relation import (
    RelationNull,
    RelationStatus,
    RelationTest,
    calibrate_relation,
    labels_wanted,
    relation_test,
)

if TYPE_CHECKING:
    from monitor.regression.estimator import MixtureOfRegressions

__all__ = [
    "Adaptation",
    "BayesAdaptation",
    "Mixture",
    "MixtureOfRegressions",
    "Note",
    "Prior",
    "RelationNull",
    "RelationStatus",
    "RelationTest",
    "adapt",
    "adapt_bayes",
    "calibrate_relation",
    "labels_wanted",
    "relation_test",
]


def __getattr__(name: str) -> Any:
    """scikit-learn takes half a second to import: only who asks for the estimator waits for it."""
    if name == "MixtureOfRegressions":
        from monitor.regression.estimator import MixtureOfRegressions  # noqa: PLC0415 - see above

        return MixtureOfRegressions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

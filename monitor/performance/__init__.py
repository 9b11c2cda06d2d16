"""How good a model is: estimated without labels, and by labels that came later."""

from monitor.performance.decisions import USUAL_DECISIONS, Decisions, scores_of
from monitor.performance.drawn_back import drawn_back
from monitor.performance.estimated import CalibrationError, Expected, estimated, misfits
from monitor.performance.limits import Limit
from monitor.performance.measure_value import MeasureValue, with_interval
from monitor.performance.measures import Measure, Scores, measures
from monitor.performance.realised import realised, stratum_weights
from monitor.performance.regression_errors import PREDICTION_ERRORS, Gain, enough_labels, gain, prediction_errors

__all__ = [
    "PREDICTION_ERRORS",
    "USUAL_DECISIONS",
    "CalibrationError",
    "Decisions",
    "Expected",
    "Gain",
    "Limit",
    "Measure",
    "MeasureValue",
    "Scores",
    "drawn_back",
    "enough_labels",
    "estimated",
    "gain",
    "measures",
    "misfits",
    "prediction_errors",
    "realised",
    "scores_of",
    "stratum_weights",
    "with_interval",
]

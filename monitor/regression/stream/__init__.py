"""Regression streams from end to end: the reference, the assessment of a window, and the message that it becomes."""

from monitor.regression.stream.assessment import RegressionAssessment, assess_regression
from monitor.regression.stream.reference import RegressionReference

__all__ = ["RegressionAssessment", "RegressionReference", "assess_regression"]

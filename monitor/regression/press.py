"""PRESS: the leave-one-out error of every model, all left-out events side by side.

PRESS = sum_i (y_i - yhat_(i))^2, section 2.4 of Bouveyron & Jacques (2014). yhat is the mixture mean, which is what a
service predicts; or, as the paper reads "prediction" (section 4.1), that of the component that turns out nearest.
Leaving an event out is an event weight of zero, so that n* fits are n* starts of one EM, each from the full solution.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from monitor.regression.candidates import LinkFit, Task
from monitor.regression.em import climb
from monitor.regression.links import MODELS
from monitor.regression.maximise import FitParameters

Prediction = Literal["mean", "nearest"]


def with_press(task: Task, fits: Sequence[LinkFit], prediction: Prediction = "mean") -> tuple[LinkFit, ...]:
    """The fits with their PRESS; those that may not be chosen stay without."""
    return tuple(replace(fit, press=press(task, fit, prediction)) if fit.selectable else fit for fit in fits)


def press(task: Task, fit: LinkFit, prediction: Prediction = "mean") -> float:
    """The sum of squared leave-one-out errors, in the caller's units."""
    events = task.events
    problem = task.problem(1.0 - np.eye(events))
    start = FitParameters(
        np.repeat(fit.mixture.weights[None], events, axis=0),
        np.repeat((fit.mixture.coefficients * task.input_scale / task.target_scale)[None], events, axis=0),
        np.repeat((fit.mixture.sigmas / task.target_scale)[None], events, axis=0),
    )
    state = climb(problem, MODELS[fit.model], start).state
    lines = np.einsum("ikj,ij->ik", state.coefficients, task.design)
    if prediction == "mean":
        lines = np.sum(state.weights * lines, axis=1, keepdims=True)
    errors = ((task.target[:, None] - lines) * task.target_scale) ** 2
    return float(np.sum(errors.min(axis=1)))

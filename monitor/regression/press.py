"""PRESS: the leave-one-out error of every model, all left-out events side by side.

PRESS = sum_i (y_i - yhat_(i))^2, section 2.4 of Bouveyron & Jacques (2014), with the mixture mean as the prediction.
Leaving an event out is an event weight of zero, so that n* fits are n* starts of one EM, each from the full solution.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from monitor.regression.candidates import LinkFit, Task
from monitor.regression.em import climb
from monitor.regression.links import MODELS
from monitor.regression.maximise import FitParameters


def with_press(task: Task, fits: Sequence[LinkFit]) -> tuple[LinkFit, ...]:
    """The fits with their PRESS; those that may not be chosen stay without."""
    return tuple(replace(fit, press=press(task, fit)) if fit.selectable else fit for fit in fits)


def press(task: Task, fit: LinkFit) -> float:
    """The sum of squared leave-one-out errors, in the caller's units."""
    events = task.events
    problem = task.problem(1.0 - np.eye(events))
    start = FitParameters(
        np.repeat(fit.mixture.weights[None], events, axis=0),
        np.repeat((fit.mixture.coefficients * task.input_scale / task.target_scale)[None], events, axis=0),
        np.repeat((fit.mixture.sigmas / task.target_scale)[None], events, axis=0),
    )
    state = climb(problem, MODELS[fit.model], start).state
    means = np.einsum("ik,ikj,ij->i", state.weights, state.coefficients, task.design)
    return float(np.sum(((task.target - means) * task.target_scale) ** 2))

"""Does the reference still predict the labelled events? The likelihood ratio of M1 against the other links."""

from collections.abc import Sequence

import numpy as np

from monitor.arrays import Matrix
from monitor.regression.candidates import COLLAPSE
from monitor.regression.em import climb, expect
from monitor.regression.links import MODELS, Model
from monitor.regression.maximise import Problem, State
from monitor.tolerances import SIGMA_FLOOR

ALTERNATIVES = ("M2a", "M2b", "M2c", "M2d", "M3a", "M3b", "M3c", "M3d", "M4a", "M4b", "M5", "pM1")


def likelihood_ratios(problem: Problem, models: Sequence[Model], windows: int) -> Matrix:
    """2 (L_model - L_M1) of every window and model, each climbed from the best of the models nested in it.

    Wilks' theory is about the maximum next to the null value, so that no start but the reference is wanted.
    """
    base = problem.reference
    null = State(*(np.repeat(part, windows, axis=0) for part in (base.weights, base.coefficients, base.sigmas)))
    lowest = expect(problem, null)[1]
    solved = {"M1": (null, lowest)}
    ratios = np.zeros((windows, len(models)))
    for column, model in enumerate(models):
        below = [solved[name] for name in model.nested if name in solved] or [solved["M1"]]
        best = np.argmax([likelihood for _, likelihood in below], axis=0)
        start = State(
            *(
                np.stack([getattr(state, part) for state, _ in below])[best, np.arange(windows)]
                for part in ("weights", "coefficients", "sigmas")
            )
        )
        ended = climb(problem, model, start)
        solved[model.name] = (ended.state, ended.log_likelihood)
        collapsed = np.any(ended.state.sigmas <= COLLAPSE * SIGMA_FLOOR * base.sigmas, axis=1)
        ratios[:, column] = np.where(collapsed, 0.0, 2.0 * (ended.log_likelihood - lowest))
    return ratios

"""EM for a mixture linked to a reference, all starts at once: the climb, and when it is over."""

from dataclasses import dataclass

import numpy as np

from monitor.arrays import Flags, Labels, Vector
from monitor.regression.links import Model
from monitor.regression.maximise import Cube, FitParameters, FitProblem, maximise, product
from monitor.regression.mixture import HALF_LOG_TWO_PI
from monitor.tolerances import LIKELIHOOD_LEFT, OUT_OF_REACH, REGRESSION_STEPS, SCREENED_STARTS, SCREENING_STEPS


@dataclass(frozen=True, slots=True, eq=False)
class Climb:
    """Where EM ended, for every start: the parameters, the log-likelihood there, and how it stopped."""

    state: FitParameters
    log_likelihood: Vector
    iterations: Labels
    gap: Vector
    """Log-likelihood still to come, by Aitken's extrapolation of the last three values."""

    @property
    def converged(self) -> Flags:
        """True where the gap is below tolerance."""
        return np.asarray(self.gap <= LIKELIHOOD_LEFT)


def expect(problem: FitProblem, state: FitParameters) -> tuple[Cube, Vector]:
    """The E-step, eq 2.7, times the events' weights, (S, K, n); and the log-likelihood, eq 2.4, (S,)."""
    means = product(state.coefficients, problem.design.transpose(0, 2, 1))
    with np.errstate(divide="ignore"):  # a share that EM drove to zero stays there
        offset = np.log(state.weights) - np.log(state.sigmas) - HALF_LOG_TWO_PI
    logs = (problem.target - means) / state.sigmas[..., None]
    logs *= -0.5 * logs
    logs += offset[..., None]
    top = logs.max(axis=1, keepdims=True)
    shares = np.exp(logs - top)
    total = shares.sum(axis=1, keepdims=True)
    shares *= problem.event_weights / total
    return shares, np.sum((np.log(total) + top) * problem.event_weights, axis=(1, 2))


def step(problem: FitProblem, model: Model, state: FitParameters) -> tuple[FitParameters, Vector]:
    """One EM step, and the log-likelihood *before* it."""
    shares, likelihood = expect(problem, state)
    coefficients, sigmas = maximise(problem, model.link, shares, state)
    if model.free_proportions:
        counts = shares.sum(axis=2)
        total = counts.sum(axis=1, keepdims=True)
        weights = np.where(total > 0, counts / np.where(total > 0, total, 1.0), state.weights)  # eq 2.9
    else:
        weights = np.broadcast_to(problem.reference.weights, sigmas.shape)
    return FitParameters(weights, coefficients, sigmas), likelihood


def climb(
    problem: FitProblem,
    model: Model,
    start: FitParameters,
    max_iterations: int = REGRESSION_STEPS,
    enough: float = LIKELIHOOD_LEFT,
    *,
    wanted: float = -np.inf,
) -> Climb:
    """EM from every start until the likelihood still to come is at most `enough`. Starts that are done drop out.

    So do those that will not get to `wanted`, even if a hundred times as much is still to come as it looks.
    """
    size = start.weights.shape[0]
    final = FitParameters(start.weights.copy(), start.coefficients.copy(), start.sigmas.copy())
    iterations, gap = np.zeros(size, dtype=np.int64), np.full(size, np.inf)
    likelihood = np.full(size, -np.inf)
    active, state, part = np.arange(size), start, problem
    before, gain = np.full(size, -np.inf), np.full(size, np.inf)
    for number in range(max_iterations + 1):
        following, now = step(part, model, state)
        left, gain, before = _still_to_come(now, before, gain)
        done = (left <= enough) | (now + OUT_OF_REACH * left < wanted) | (number == max_iterations)
        if done.any():
            ended = active[done]
            final.weights[ended], final.coefficients[ended] = state.weights[done], state.coefficients[done]
            final.sigmas[ended], likelihood[ended] = state.sigmas[done], now[done]
            iterations[ended], gap[ended] = number, left[done]
            if done.all():
                break
            going = ~done
            active, part, following = active[going], part.take(going), following.take(going)
            before, gain = before[going], gain[going]
        state = following
    return Climb(final, likelihood, iterations, gap)


def _still_to_come(now: Vector, before: Vector, gain: Vector) -> tuple[Vector, Vector, Vector]:
    """Aitken's estimate of what a linearly converging likelihood has left: gain a / (1 - a), a = gain / last gain."""
    with np.errstate(invalid="ignore", divide="ignore"):
        new = now - before
        rate = np.clip(np.where(gain > 0, new / gain, 0.0), 0.0, 1.0 - 1e-9)
        left = np.where(np.isfinite(gain), np.abs(new) / (1.0 - rate), np.inf)
    return left, new, now


def climb_from_many(
    problem: FitProblem,
    model: Model,
    starts: FitParameters,
    nested: FitParameters | None,
    wanted: float = -np.inf,
) -> Climb:
    """em-EM: a short run from every start, a full one from the best of them.

    The solutions of nested models always run to the end: EM never goes down, so that a larger model is never
    less likely than the smaller ones inside it. Long runs that will not get to `wanted` are given up.
    """
    short = climb(problem, model, starts, SCREENING_STEPS)
    order = np.argsort(-short.log_likelihood, kind="stable")[:SCREENED_STARTS]
    chosen = short.state.take(order)
    if nested is not None:
        chosen = joined([chosen, nested])
    long = climb(problem, model, chosen, wanted=wanted)
    iterations = long.iterations.copy()
    iterations[: order.size] += SCREENING_STEPS
    return Climb(long.state, long.log_likelihood, iterations, long.gap)


def joined(states: list[FitParameters]) -> FitParameters:
    """The starts of several states, one after the other."""
    return FitParameters(
        np.concatenate([state.weights for state in states]),
        np.concatenate([state.coefficients for state in states]),
        np.concatenate([state.sigmas for state in states]),
    )

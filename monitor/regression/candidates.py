"""The 24 candidates: the labelled events in unit scale, and every model fitted to them.

Everything works on inputs and targets scaled to unit root mean square: the factors lambda do not notice, the normal
equations do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Flags, Matrix, Vector, frozen_matrix, frozen_vector
from monitor.errors import InputError
from monitor.regression.em import Climb, climb_from_many, expect, joined
from monitor.regression.links import Model
from monitor.regression.maximise import FitParameters, FitProblem, pose
from monitor.regression.mixture import Mixture, design_matrix
from monitor.regression.starts import guesses_from_reference, random_lines
from monitor.tolerances import SIGMA_FLOOR, SINGULAR, SPOKEN_FOR

COLLAPSE = 10.0
"""EM creeps towards the sigma floor by ever smaller steps: this many floors away it is there."""


class FitStatus(StrEnum):
    """Whether a model may be chosen, and if not, why."""

    OK = "ok"
    TOO_FEW_LABELS = "too-few-labels"
    """No more labels than parameters: not fitted."""
    NOT_IDENTIFIED = "not-identified"
    """Zero intercepts leave nothing to multiply: a smaller link says the same."""
    COLLAPSED = "collapsed"
    """A component fits its labels exactly: the likelihood is unbounded there and means nothing."""
    CONSTANT_TARGET = "constant-target"
    """All labels are equal: they carry no relation. Not fitted."""


@dataclass(frozen=True, slots=True, eq=False)
class LinkFit:
    """One of the 24 models, fitted to the labels."""

    model: str
    status: FitStatus
    mixture: Mixture
    factors: Matrix
    """lambda (K, p + 1); NaN where a zero coefficient of the reference became something else."""
    log_likelihood: float
    parameters: int
    bic: float
    """-2 L + v ln n*; infinite where the model may not be chosen."""
    iterations: int
    converged: bool
    gap: float
    empty: tuple[int, ...]
    """The components with less than one label."""
    press: float | None = None
    """Sum of squared leave-one-out errors, where asked for: of the mixture mean, or of the nearest component."""

    @property
    def selectable(self) -> bool:
        """True where the fit means something."""
        return self.status is FitStatus.OK


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """The labelled events in scaled units, and the way back."""

    reference: Mixture
    scaled: Mixture
    design: Matrix
    target: Vector
    input_scale: Vector
    """(p + 1,), 1 for the intercept."""
    target_scale: float
    rank: int
    row_space: Matrix
    """Projection of coefficients on the directions that the labels' inputs span."""
    constant: bool

    @property
    def events(self) -> int:
        """n*, the number of labelled events."""
        return int(self.target.size)

    def problem(self, event_weights: Matrix | None = None) -> FitProblem:
        """The EM problem of all events, or of one reweighting a start."""
        return pose(self.design, self.target, state_of(self.scaled), event_weights)

    def mixture(self, state: FitParameters, start: int) -> Mixture:
        """One start of a state in the caller's units."""
        return Mixture.of(
            state.weights[start] / state.weights[start].sum(),
            state.coefficients[start] * (self.target_scale / self.input_scale),
            state.sigmas[start] * self.target_scale,
            self.events,
        )


def labelled_task(reference: Mixture, inputs: ArrayLike, targets: ArrayLike) -> Task:
    """Check the labelled events and put them into unit scale."""
    design = design_matrix(inputs, reference.inputs)
    target = frozen_vector(targets, "targets", design.shape[0])
    if not target.size:
        raise InputError("targets: want at least one labelled event, got none")
    if not (np.all(np.isfinite(design)) and np.all(np.isfinite(target))):
        raise InputError("inputs and targets: want finite numbers; leave events with missing values out")
    input_scale = np.sqrt(np.mean(design**2, axis=0))
    input_scale[input_scale == 0.0] = 1.0
    target_scale = float(np.sqrt(np.mean(target**2))) or 1.0
    scaled = Mixture(
        reference.weights,
        reference.coefficients * (input_scale / target_scale),
        reference.sigmas / target_scale,
        reference.events,
    )
    _, spread, directions = np.linalg.svd(design / input_scale, full_matrices=False)
    kept = directions[spread > np.sqrt(SINGULAR) * spread[0]]
    constant = target.size > 1 and float(np.ptp(target)) <= SINGULAR * target_scale
    return Task(
        reference,
        scaled,
        design / input_scale,
        target / target_scale,
        input_scale,
        target_scale,
        kept.shape[0],
        kept.T @ kept,
        constant,
    )


def state_of(mixture: Mixture) -> FitParameters:
    """A mixture as the one start of a state."""
    return FitParameters(mixture.weights[None], mixture.coefficients[None], mixture.sigmas[None])


def fit_models(task: Task, models: Sequence[Model], starts: int, seed: int) -> tuple[LinkFit, ...]:
    """Fit the models, which come in order of complexity, each also from the solutions nested in it."""
    problem, base = task.problem(), state_of(task.scaled)
    guesses = guesses_from_reference(base, task.design, task.target, starts, seed)
    lines = random_lines(base, task.design, task.target, starts, seed) if starts > 1 else guesses
    solutions: dict[str, FitParameters] = {}
    fits = []
    for model in models:
        status = _before_fitting(task, model)
        if status is not FitStatus.OK:
            fits.append(_unfitted(task, model, status))
            continue
        first = joined([guesses, lines]) if model.link.shape == "free" and starts > 1 else guesses
        nested = [solutions[name] for name in model.nested if name in solutions]
        ended = climb_from_many(problem, model, first, joined(nested) if nested else None)
        fit, solutions[model.name] = _finished(task, problem, model, ended)
        fits.append(fit)
    return tuple(fits)


def _before_fitting(task: Task, model: Model) -> FitStatus:
    if model.name == "M1":
        return FitStatus.OK
    if task.constant:
        return FitStatus.CONSTANT_TARGET
    if task.events <= model.parameters(task.scaled):
        return FitStatus.TOO_FEW_LABELS
    return FitStatus.OK if model.link.identified(task.scaled) else FitStatus.NOT_IDENTIFIED


def _unfitted(task: Task, model: Model, status: FitStatus) -> LinkFit:
    """A model that was not fitted stands for the reference as it is."""
    likelihood = task.reference.log_likelihood(
        task.design[:, 1:] * task.input_scale[1:], task.target * task.target_scale
    )
    return LinkFit(
        model.name,
        status,
        replace(task.reference, events=task.events),
        frozen_matrix(np.ones_like(task.reference.coefficients), "factors"),
        likelihood,
        model.parameters(task.scaled),
        np.inf,
        0,
        False,
        np.inf,
        (),
    )


def _finished(task: Task, problem: FitProblem, model: Model, ended: Climb) -> tuple[LinkFit, FitParameters]:
    """The best start that did not collapse, cleaned of what the labels do not determine."""
    start, collapsed = best_start(ended, task.scaled.sigmas)
    state, empty = _spoken_for(task, problem, model, ended.state.take(slice(start, start + 1)))
    likelihood = float(expect(problem, state)[1][0]) - task.events * float(np.log(task.target_scale))
    parameters = model.parameters(task.scaled)
    mixture = task.mixture(state, 0)
    fit = LinkFit(
        model=model.name,
        status=FitStatus.COLLAPSED if collapsed else FitStatus.OK,
        mixture=mixture,
        factors=_factors(task.reference, mixture),
        log_likelihood=likelihood,
        parameters=parameters,
        bic=np.inf if collapsed else -2.0 * likelihood + parameters * float(np.log(task.events)),
        iterations=int(ended.iterations[start]),
        converged=bool(ended.converged[start]),
        gap=float(ended.gap[start]),
        empty=empty,
    )
    return fit, state


def collapsed_starts(state: FitParameters, reference_sigmas: Vector) -> Flags:
    """Which starts have a component that fits its labels exactly."""
    return np.asarray(np.any(state.sigmas <= COLLAPSE * SIGMA_FLOOR * reference_sigmas, axis=1))


def best_start(ended: Climb, reference_sigmas: Vector, *, fewest: float = 0.0) -> tuple[int, bool]:
    """The most likely start among those that did not collapse, and whether all of them did.

    So does, for some purposes, a start with a component of less than `fewest`, a share of the events.
    """
    collapsed = collapsed_starts(ended.state, reference_sigmas) | (ended.state.weights < fewest).any(axis=1)
    everywhere = bool(np.all(collapsed))
    ranking = ended.log_likelihood if everywhere else np.where(collapsed, -np.inf, ended.log_likelihood)
    return int(np.argmax(ranking)), everywhere


def _spoken_for(
    task: Task, problem: FitProblem, model: Model, state: FitParameters
) -> tuple[FitParameters, tuple[int, ...]]:
    """Directions without labels keep the reference's coefficients (M5), and so does a component without labels.

    Also the components with less than one label, by number.
    """
    base, coefficients = task.scaled, state.coefficients
    silent = expect(problem, state)[0].sum(axis=2) < SPOKEN_FOR
    empty = tuple(int(component) for component in np.flatnonzero(silent[0]))
    if not model.link.per_component:
        return state, empty
    if model.link.shape == "free":
        coefficients = base.coefficients + (coefficients - base.coefficients) @ task.row_space
    cleaned = FitParameters(
        state.weights,
        np.where(silent[..., None], base.coefficients, coefficients),
        np.where(silent, base.sigmas, state.sigmas),
    )
    return cleaned, empty


def _factors(reference: Mixture, adapted: Mixture) -> Matrix:
    """lambda_kj = beta*_kj / beta_kj; 1 where both are zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = adapted.coefficients / reference.coefficients
    zero = reference.coefficients == 0.0
    return frozen_matrix(np.where(zero, np.where(adapted.coefficients == 0.0, 1.0, np.nan), ratio), "factors")

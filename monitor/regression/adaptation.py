"""Choose the link between a reference mixture and a changed population, from a few labelled events."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from monitor.arrays import Matrix, Vector
from monitor.errors import InputError
from monitor.regression.candidates import LinkFit, Task, fit_models, labelled_task
from monitor.regression.links import MODELS, zero_coefficients
from monitor.regression.mixture import FittedMixture, Mixture, mixture_of
from monitor.regression.press import with_press
from monitor.regression.wording import describe

Criterion = Literal["bic", "press", "press-nearest"]


class Note(StrEnum):
    """What a reader of an adaptation has to know beside the numbers."""

    CONSTANT_TARGET = "constant-target"
    COLLINEAR_INPUTS = "collinear-inputs"
    """Some directions of the inputs do not vary in the labels: there the coefficients are the reference's."""
    EMPTY_COMPONENT = "empty-component"
    """A component holds less than one label: its parameters are the reference's."""
    ZERO_INTERCEPTS = "zero-intercepts"
    ZERO_SLOPES = "zero-slopes"
    """An input has zero slope in every component of the reference: M4's factor of it is 1 by convention."""
    NOT_CONVERGED = "not-converged"


@dataclass(frozen=True, slots=True, eq=False)
class Adaptation:
    """The chosen model, in numbers and in words, and all the candidates that it was chosen from."""

    model: str
    description: str
    criterion: str
    reference: Mixture
    chosen: LinkFit
    candidates: tuple[LinkFit, ...]
    events: int
    unique: bool
    """False where the labels leave some direction of the inputs undetermined."""
    notes: tuple[Note, ...]

    @property
    def mixture(self) -> Mixture:
        """The adapted mixture of regressions."""
        return self.chosen.mixture

    @property
    def factors(self) -> Matrix:
        """lambda (K, p + 1) of the chosen model."""
        return self.chosen.factors

    def predict(self, inputs: ArrayLike) -> Vector:
        """The adapted mixture mean."""
        return self.mixture.predict(inputs)

    def candidate(self, model: str) -> LinkFit:
        """The fit of one of the models, by its name."""
        for fit in self.candidates:
            if fit.model == model:
                return fit
        raise InputError(f"model: want one of {sorted(fit.model for fit in self.candidates)}, got {model!r}")


def adapt(
    reference: Mixture | FittedMixture | Any,
    inputs: ArrayLike,
    targets: ArrayLike,
    *,
    models: Sequence[str] = tuple(MODELS),
    criterion: Criterion = "bic",
    starts: int = 10,
    seed: int = 0,
    names: Sequence[str] | None = None,
) -> Adaptation:
    """Choose and estimate the link between a reference mixture and the population of labelled events.

    Bouveyron & Jacques (2014), sections 2.1-2.4: EM for each model from the reference, from seeded guesses and from
    the solutions of the models nested in it; then the smallest BIC (-2 L + v ln n*, L the log-likelihood) or PRESS, of
    the mixture mean or, as printed, of the nearest component.
    `names` are the inputs' names in the description.
    """
    source = mixture_of(reference)
    unknown = sorted(set(models) - set(MODELS))
    if unknown or not models:
        raise InputError(f"models: want some of {sorted(MODELS)}, got {unknown}")
    task = labelled_task(source, inputs, targets)
    wanted = [MODELS[name] for name in MODELS if name in set(models)]
    fits = fit_models(task, wanted, starts, seed)
    if criterion != "bic":
        fits = with_press(task, fits, "mean" if criterion == "press" else "nearest")
    chosen = choose(fits, criterion)
    return Adaptation(
        model=chosen.model,
        description=describe(MODELS[chosen.model], chosen.factors, chosen.mixture, source, names),
        criterion=criterion,
        reference=source,
        chosen=chosen,
        candidates=fits,
        events=task.events,
        unique=task.rank == source.inputs + 1 or MODELS[chosen.model].link.shape not in ("free", "inputs", "inputs+"),
        notes=_notes(task, chosen),
    )


def choose(fits: Sequence[LinkFit], criterion: Criterion) -> LinkFit:
    """The smallest criterion among the fits that mean something; the simpler model in a tie."""
    usable = [fit for fit in fits if fit.selectable] or [fit for fit in fits if fit.model == "M1"] or list(fits)
    if criterion != "bic":
        return min(usable, key=lambda fit: np.inf if fit.press is None else fit.press)
    return min(usable, key=lambda fit: fit.bic)


def _notes(task: Task, chosen: LinkFit) -> tuple[Note, ...]:
    zero = zero_coefficients(task.scaled)
    notes = {
        Note.CONSTANT_TARGET: task.constant,
        Note.COLLINEAR_INPUTS: task.rank < task.design.shape[1],
        Note.EMPTY_COMPONENT: bool(chosen.empty),
        Note.ZERO_INTERCEPTS: bool(np.all(zero[:, 0])),
        Note.ZERO_SLOPES: bool(np.any(np.all(zero[:, 1:], axis=0))),
        Note.NOT_CONVERGED: not chosen.converged,
    }
    return tuple(note for note, holds in notes.items() if holds)

"""Does the reference still predict the labelled events? The likelihood ratio of M1 against the other links.

M1 fixes every parameter at an interior point of each alternative, so that 2 (L - L_M1) is chi-square with as many
degrees as the alternative has parameters (Wilks). Three things keep that honest:
- few labels: an alternative takes part from four labels a parameter on. In simulated null windows single alternatives
  still rejected 3 to 17 % at 5 % there (worst: M4 with three components), up to 61 % below; the corrected decision
  over all of them 1 to 7 %;
- wrong noise: `RelationNull` measures, on windows resampled from the reference's own rows, by how much the ratio of
  each alternative exceeds chi-square (as Bartlett's factor does), and how many independent tests they amount to;
- an estimated reference: its own error inflates the ratio of n labels by 1 + n / N, N the events it was fitted to.
The decision is the smallest p-value over the alternatives, corrected for having looked at all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, chdtri

from monitor.arrays import Flags, Labels, Matrix, Vector, frozen_vector
from monitor.errors import ArtefactError, InputError
from monitor.regression.adaptation import Adaptation, adapt
from monitor.regression.candidates import collapsed_starts, labelled_task
from monitor.regression.em import climb, expect
from monitor.regression.links import MODELS, Model
from monitor.regression.maximise import FitParameters, FitProblem, pose
from monitor.regression.mixture import FittedMixture, Mixture, design_matrix, mixture_of
from monitor.tolerances import (
    LABELS_PER_PARAMETER,
    LEAST_INFLATION,
    RATIO_LEFT,
    RELATION_LABELS,
    RELATION_LEVEL,
    RELATION_WINDOWS,
)

_ALTERNATIVES = ("M1n", "M2a", "M2b", "M2c", "M2d", "M2n", "M3a", "M3b", "M3c", "M3d", "M4a", "M4b", "M5", "pM1")
_CALIBRATED_SIZES = (20, 60, 200)
_WITHOUT_FREE_NOISE = tuple(name for name in _ALTERNATIVES if name not in ("M1n", "M2n"))
"""The alternatives that references of earlier releases have measured."""


class RelationStatus(StrEnum):
    """Whether the labels could be tested."""

    TESTED = "tested"
    TOO_FEW_LABELS = "too-few-labels"
    CONSTANT_TARGET = "constant-target"


@dataclass(frozen=True, slots=True, eq=False)
class RelationNull:
    """How the ratios behave on the reference's own rows: by alternative and number of labels."""

    sizes: Vector
    inflation: Matrix
    """Mean ratio over its degrees, (sizes, alternatives)."""
    tests: Vector
    """How many independent tests the alternatives amount to, (sizes,)."""

    def at(self, events: int) -> tuple[Vector, float]:
        """Inflation and number of tests for so many labels: linear in 1/n, where Bartlett's expansion is."""
        order, reciprocal = np.argsort(1.0 / self.sizes), 1.0 / events
        where = 1.0 / self.sizes[order]
        inflation = np.array([np.interp(reciprocal, where, column) for column in self.inflation[order].T])
        return inflation, float(np.interp(reciprocal, where, self.tests[order]))

    def to_arrays(self) -> dict[str, Vector | Matrix]:
        """The plain arrays that a reference artefact holds."""
        return {"sizes": self.sizes, "inflation": self.inflation, "tests": self.tests}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, ArrayLike]) -> Self:
        """The null distribution again, from what `to_arrays` wrote."""
        try:
            sizes, inflation, tests = (np.asarray(arrays[name], float) for name in ("sizes", "inflation", "tests"))
        except (KeyError, ValueError) as problem:
            raise ArtefactError(f"relation null: {problem}") from problem
        if inflation.shape == (sizes.size, len(_WITHOUT_FREE_NOISE)):
            # Infinite where nothing was measured: such a link takes no part.
            known, measured = np.full((sizes.size, len(_ALTERNATIVES)), np.inf), inflation
            known[:, [_ALTERNATIVES.index(name) for name in _WITHOUT_FREE_NOISE]] = measured
            inflation = known
        if inflation.shape != (sizes.size, len(_ALTERNATIVES)) or tests.shape != sizes.shape:
            raise ArtefactError(f"relation null: want {len(_ALTERNATIVES)} alternatives a size, got {inflation.shape}")
        return cls(sizes, inflation, tests)


@dataclass(frozen=True, slots=True, eq=False)
class RelationTest:
    """What the labelled events of one or several windows say about the reference's relation."""

    status: RelationStatus
    model: str
    """The link that was chosen; M1 where the reference still holds."""
    description: str
    statistic: float
    """2 (L - L_M1) of the most telling alternative."""
    alternative: str
    degrees: int
    p_value: float
    """Corrected for the number of alternatives; 1 where nothing could be tested."""
    effect: float
    """Mean log-likelihood that the alternative gains, in nats a label: what significance alone does not say."""
    calibrated: bool
    """True where the null was measured on the reference's rows."""
    events: int
    dropped: int
    """Labelled events left out because an input or the label was missing."""
    adaptation: Adaptation | None
    """The adapted parameters, where something changed."""

    @property
    def changed(self) -> bool:
        """True where the reference no longer predicts the labels."""
        return self.adaptation is not None


def relation_test(
    reference: Mixture | FittedMixture | Any,
    inputs: ArrayLike,
    targets: ArrayLike,
    *,
    null: RelationNull | None = None,
    level: float = RELATION_LEVEL,
    criterion: Literal["bic", "press"] = "bic",
    starts: int = 10,
    seed: int = 0,
    names: Sequence[str] | None = None,
) -> RelationTest:
    """Test M1 on labelled events and, below `level`, say which link but M1 explains them best by the criterion."""
    source = mixture_of(reference)
    design, values = design_matrix(inputs, source.inputs), frozen_vector(targets, "targets")
    if values.size != design.shape[0]:
        raise InputError(f"targets: want one an event, {design.shape[0]}, got {values.size}")
    complete = np.isfinite(values) & np.all(np.isfinite(design), axis=1)
    rows, labels = design[complete, 1:], values[complete]
    dropped = int(values.size - labels.size)
    if labels.size < RELATION_LABELS:
        return _untested(RelationStatus.TOO_FEW_LABELS, labels.size, dropped)
    task = labelled_task(source, rows, labels)
    if task.constant:
        return _untested(RelationStatus.CONSTANT_TARGET, labels.size, dropped)
    ratios = likelihood_ratios(task.problem(), alternatives(), 1)[0]
    p_values, tests = _p_values(ratios[None], source, labels.size, null)
    decisive = int(np.argmin(p_values[0]))
    p_value = float(-np.expm1(tests * np.log1p(-min(float(p_values[0, decisive]), 1.0 - 1e-16))))
    adaptation = None
    if p_value < level:
        models = [name for name in MODELS if name != "M1"]
        adaptation = adapt(
            source, rows, labels, models=models, criterion=criterion, starts=starts, seed=seed, names=names
        )
    return RelationTest(
        status=RelationStatus.TESTED,
        model=adaptation.model if adaptation else "M1",
        description=adaptation.description if adaptation else "nothing changed",
        statistic=float(ratios[decisive]),
        alternative=_ALTERNATIVES[decisive],
        degrees=alternatives()[decisive].parameters(source),
        p_value=p_value,
        effect=float(ratios[decisive]) / (2.0 * labels.size),
        calibrated=null is not None,
        events=int(labels.size),
        dropped=dropped,
        adaptation=adaptation,
    )


def calibrate_relation(
    reference: Mixture | FittedMixture | Any,
    inputs: ArrayLike,
    targets: ArrayLike,
    *,
    windows: int = RELATION_WINDOWS,
    seed: int = 0,
) -> RelationNull:
    """Measure the null on `windows` windows a size, resampled from the rows that the reference was fitted to."""
    source = mixture_of(reference)
    task = labelled_task(source, inputs, targets)
    rng = np.random.default_rng(seed)
    base = FitParameters(task.scaled.weights[None], task.scaled.coefficients[None], task.scaled.sigmas[None])
    models = alternatives()
    degrees = np.array([model.parameters(source) for model in models])
    inflation, counts = np.ones((len(_CALIBRATED_SIZES), degrees.size)), np.ones(len(_CALIBRATED_SIZES))
    for step, size in enumerate(_CALIBRATED_SIZES):
        following = _CALIBRATED_SIZES[step + 1] if step + 1 < len(_CALIBRATED_SIZES) else np.inf
        used = np.flatnonzero((degrees > 0) & (LABELS_PER_PARAMETER * degrees < following) & (degrees < size))
        rows = rng.integers(task.events, size=(windows, size))
        problem = pose(task.design[rows], task.target[rows], base)
        ratios = likelihood_ratios(problem, [models[column] for column in used], windows)
        inflation[step, used] = _inflation(ratios, degrees[used])
        scaled = chdtrc(degrees[used], ratios / inflation[step, used])
        smallest = np.where(_taking_part(source, size)[used], scaled, 1.0).min(axis=1)
        # 5 % of the smallest p-values of `tests` independent tests lie below 1 - 0.95^(1 / tests).
        counts[step] = max(1.0, np.log(0.95) / np.log1p(-float(np.quantile(smallest, 0.05))))
    # A link that takes part only from the next size on was not measured here: the next size speaks for it.
    for step in reversed(range(len(_CALIBRATED_SIZES) - 1)):
        later = LABELS_PER_PARAMETER * degrees >= _CALIBRATED_SIZES[step + 1]
        inflation[step, later] = inflation[step + 1, later]
    return RelationNull(np.array(_CALIBRATED_SIZES, float), inflation, counts)


def _inflation(ratios: Matrix, degrees: Labels) -> Vector:
    """How far the ratios exceed chi-square: in the mean or, where noise has heavy tails, at the 95 % quantile."""
    mean = ratios.mean(axis=0) / degrees
    tail = np.quantile(ratios, 0.95, axis=0) / chdtri(degrees, 0.05)
    inflation: Vector = np.maximum(np.maximum(mean, tail), LEAST_INFLATION)
    return inflation


def labels_wanted(reference: Mixture | FittedMixture | Any) -> int:
    """How many labels to gather over windows before testing: enough for every link but the unconstrained one."""
    source = mixture_of(reference)
    parameters = max(model.parameters(source) for model in alternatives() if model.link.shape != "free")
    return max(_CALIBRATED_SIZES[0], LABELS_PER_PARAMETER * parameters)


def alternatives() -> list[Model]:
    """The links that M1 is tested against: each with the reference's proportions, and free proportions alone."""
    return [MODELS[name] for name in _ALTERNATIVES]


def likelihood_ratios(problem: FitProblem, models: Sequence[Model], windows: int) -> Matrix:
    """2 (L_model - L_M1) of every window and model, each climbed from the best of the models nested in it.

    Wilks' theory is about the maximum next to the null value, so that no start but the reference is wanted.
    """
    base = problem.reference
    null = FitParameters(*(np.repeat(part, windows, axis=0) for part in (base.weights, base.coefficients, base.sigmas)))
    lowest = expect(problem, null)[1]
    solved = {"M1": (null, lowest)}
    ratios = np.zeros((windows, len(models)))
    for column, model in enumerate(models):
        below = [solved[name] for name in model.nested if name in solved] or [solved["M1"]]
        best = np.argmax([likelihood for _, likelihood in below], axis=0)
        start = FitParameters(
            *(
                np.stack([getattr(state, part) for state, _ in below])[best, np.arange(windows)]
                for part in ("weights", "coefficients", "sigmas")
            )
        )
        ended = climb(problem, model, start, enough=RATIO_LEFT)
        solved[model.name] = (ended.state, ended.log_likelihood)
        ratio = 2.0 * (ended.log_likelihood - lowest)
        ratios[:, column] = np.where(collapsed_starts(ended.state, base.sigmas[0]), 0.0, np.maximum(ratio, 0.0))
    return ratios


def _p_values(ratios: Matrix, reference: Mixture, events: int, null: RelationNull | None) -> tuple[Matrix, float]:
    """The p-value of every alternative, 1 for those that take no part, and how many tests they amount to."""
    taking_part = _taking_part(reference, events)
    inflation, tests = null.at(events) if null else (np.ones(ratios.shape[1]), float(taking_part.sum()))
    if reference.events:
        inflation = inflation * (1.0 + events / reference.events)
    degrees = np.array([model.parameters(reference) for model in alternatives()])
    return np.where(taking_part, chdtrc(degrees, ratios / inflation), 1.0), max(tests, 1.0)


def _taking_part(reference: Mixture, events: int) -> Flags:
    """Enough labels, something to estimate, and with one component no second copy of the same link."""
    return np.array(
        [
            0 < LABELS_PER_PARAMETER * model.parameters(reference) <= events
            and model.link.identified(reference)
            and (reference.components > 1 or not model.link.name.startswith("M3"))
            for model in alternatives()
        ]
    )


def _untested(status: RelationStatus, events: int, dropped: int) -> RelationTest:
    reason = {
        RelationStatus.TOO_FEW_LABELS: f"{events} labels are too few to say",
        RelationStatus.CONSTANT_TARGET: "all labels are equal: they carry no relation",
    }[status]
    return RelationTest(status, "M1", reason, 0.0, "M1", 0, 1.0, 0.0, False, events, dropped, None)

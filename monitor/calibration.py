"""Post-hoc calibration of posteriors: everything that turns what a model says into what its labels support.

Every method is fitted on labelled hold-out events and is followed by *balancing*: class weights that make the mean
calibrated posterior equal to the class prevalence. EM takes that prevalence as its source prior, and its fixed
point on the reference is the reference only when the two agree (Saerens et al. 2002, eq 2.8 at convergence).

Margins, which are no posteriors, have methods of their own: the same ones, with the margin in the place of z and of the
log-odds (`MARGIN_METHODS`).

Notation: p the model's posteriors (events, classes), z = log p, q the calibrated posteriors.

1. Platt, J. (1999). Probabilistic outputs for support vector machines.
2. Guo, C. et al. (2017). On calibration of modern neural networks.
3. Alexandari, A., Kundaje, A., Shrikumar, A. (2020). Maximum likelihood with bias-corrected calibration.
4. Zadrozny, B., Elkan, C. (2002). Transforming classifier scores into accurate multiclass probability estimates.
5. Kull, M. et al. (2019). Beyond temperature scaling: Dirichlet calibration.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy
from scipy.special import expit, log_expit

from monitor.arrays import Flags, Labels, Matrix, Vector, row_maxima, row_sums
from monitor.errors import InputError
from monitor.limits import CALIBRATION_ROWS
from monitor.quality import log_loss, log_losses
from monitor.recalibration import CalibrationMap, CalibrationMethod, ScoreKind
from monitor.sampling import stratified_folds, stratified_sample
from monitor.tolerances import BALANCE_ERROR, POSTERIOR_FLOOR, SIMPLER_CALIBRATION

Parameters = Mapping[str, "Vector | Matrix"]
Selection = Literal[
    "auto",
    "none",
    "balanced",
    "temperature",
    "bias-corrected-temperature",
    "vector",
    "platt",
    "isotonic",
    "margin-platt",
    "margin-softmax",
]


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A fitted map from posteriors to calibrated posteriors; calling it applies it."""

    method: str
    parameters: Parameters
    log_weights: Vector
    """Added to the calibrated log-posteriors of each class: what balances their mean with the prevalence."""

    @property
    def of_margins(self) -> bool:
        """Whether what it takes are margins."""
        return self.method in MARGIN_METHODS

    def __call__(self, posteriors: Matrix) -> Matrix:
        if self.method == "none":
            return posteriors
        return _weighted(METHODS[self.method].apply(posteriors, self.parameters), self.log_weights)

    def to_map(self) -> CalibrationMap | None:
        """The same as plain numbers, which a scoring service applies; None where posteriors stay as they are."""
        if self.method == "none":
            return None
        form, numbers = METHODS[self.method].to_map(self.parameters, self.log_weights.size)
        weights = self.log_weights + numbers.pop("shifts", 0.0)
        scores: ScoreKind = "margin" if self.of_margins else "posterior"
        floor = numbers.pop("floor", POSTERIOR_FLOOR)
        return CalibrationMap(form, floor, tuple(weights.tolist()), **numbers, scores=scores)


@dataclass(frozen=True, slots=True)
class Method:
    """A registry entry: how the parameters are fitted, how they are applied, and how they are told."""

    fit: Callable[[Matrix, Labels], Parameters]
    apply: Callable[[Matrix, Parameters], Matrix]
    to_map: Callable[[Parameters, int], tuple[CalibrationMethod, dict[str, Any]]]
    """The numbers of a `CalibrationMap` for so many classes; `shifts` are added to its weights, and `floor` is its own
    where it is not `POSTERIOR_FLOOR`."""


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """A calibration, and what it does out of sample: each fold is calibrated by the map of the other folds."""

    calibration: Calibration
    posteriors: Matrix
    losses: Vector
    """Log loss of every event's out-of-sample calibrated posterior, in nats."""

    @property
    def log_loss(self) -> float:
        """The mean log loss of the calibrated posteriors, out of sample."""
        return float(self.losses.mean())


def identity(classes: int) -> Calibration:
    """No calibration at all."""
    return Calibration("none", {}, np.zeros(classes))


def fit(posteriors: Matrix, labels: Labels, method: str) -> Calibration:
    """The map of one method, fitted on these events and balanced with their prevalence."""
    if method not in METHODS:
        raise InputError(f"calibration: want one of {sorted(METHODS)}, got {method!r}")
    if method == "none":
        return identity(posteriors.shape[1])
    parameters = METHODS[method].fit(posteriors, labels)
    prevalence = np.bincount(labels, minlength=posteriors.shape[1]) / labels.size
    return Calibration(method, parameters, balance(METHODS[method].apply(posteriors, parameters), prevalence))


def rebalanced(calibration: Calibration, posteriors: Matrix, labels: Labels) -> Calibration:
    """The same map, balanced with the prevalence among other events."""
    if calibration.method == "none":
        return calibration
    prevalence = np.bincount(labels, minlength=posteriors.shape[1]) / labels.size
    unbalanced = METHODS[calibration.method].apply(posteriors, calibration.parameters)
    return replace(calibration, log_weights=balance(unbalanced, prevalence))


def cross_fit(posteriors: Matrix, labels: Labels, method: str, seed: int, folds: int = 5) -> CrossFit:
    """Fit on everything for later use, and on all folds but one for the posteriors of that one."""
    return _with_everything(posteriors, labels, method, seed, _out_of_sample(posteriors, labels, method, seed, folds))


def _out_of_sample(posteriors: Matrix, labels: Labels, method: str, seed: int, folds: int = 5) -> Matrix:
    """Each fold calibrated by the map of the other folds."""
    fold = stratified_folds(labels, folds, seed)
    out = np.empty_like(posteriors)
    for number in range(int(fold.max()) + 1):
        held = fold == number
        out[held] = fit(*_capped(posteriors, labels, ~held, seed), method)(posteriors[held])
    return out


def _with_everything(posteriors: Matrix, labels: Labels, method: str, seed: int, out: Matrix) -> CrossFit:
    everything = np.ones(labels.size, dtype=np.bool_)
    final = fit(*_capped(posteriors, labels, everything, seed), method)
    if method != "none" and labels.size > CALIBRATION_ROWS:
        prevalence = np.bincount(labels, minlength=posteriors.shape[1]) / labels.size
        unbalanced = METHODS[method].apply(posteriors, final.parameters)
        final = replace(final, log_weights=balance(unbalanced, prevalence))
    return CrossFit(final, out, log_losses(out, labels))


def choose(
    posteriors: Matrix, labels: Labels, method: str, seed: int, *, margins: bool = False
) -> tuple[CrossFit, dict[str, float]]:
    """The cross-fit of a method, and log losses by method.

    With "auto" it is the simplest method whose out-of-sample log loss is within one standard error of the lowest.
    """
    family = [name for name in METHODS if (name in MARGIN_METHODS) == margins]
    if method not in ("auto", *family):
        what = "margins" if margins else "posteriors"
        raise InputError(f"calibration: of {what} want auto or one of {sorted(family)}, got {method!r}")
    if method != "auto":
        chosen = cross_fit(posteriors, labels, method, seed)
        return chosen, {method: chosen.log_loss}
    rows, classes = _capped(posteriors, labels, np.ones(labels.size, dtype=np.bool_), seed)
    trials = {name: _out_of_sample(rows, classes, name, seed) for name in family if name != "none"}
    losses = {name: log_losses(out, classes) for name, out in trials.items()}
    best = min(losses, key=lambda name: float(losses[name].mean()))
    for name, each in losses.items():
        excess = each - losses[best]
        error = min(float(excess.std()), claimed_spread(trials[name], trials[best])) / np.sqrt(excess.size)
        if name == best or excess.mean() <= SIMPLER_CALIBRATION * error:
            break
    raw = {} if margins else {"none": log_loss(_floored(rows), classes)}
    whole = rows.shape[0] == labels.size
    out = trials[name] if whole else _out_of_sample(posteriors, labels, name, seed)
    chosen = _with_everything(posteriors, labels, name, seed, out)
    return chosen, raw | {name: float(each.mean()) for name, each in losses.items()}


def claimed_spread(simpler: Matrix, best: Matrix) -> float:
    """The standard deviation of the excess of an event's log loss, if the simpler posteriors q are right.

    With d_iy = log(best_iy / q_iy), the excess of event i if its class is y,

        mean_i ( sum_y q_iy d_iy^2 - (sum_y q_iy d_iy)^2 )

    is the variance of a score test: that of the hypothesis, not of the data. Posteriors that are too sure of themselves
    have few losses, and large ones, by whose spread nothing would ever refute them; they claim to have none.
    """
    q = _floored(simpler)
    excess = np.log(_floored(best)) - np.log(q)
    mean = row_sums(q * excess)
    return float(np.sqrt(np.maximum(row_sums(q * excess**2) - mean**2, 0.0).mean()))


def balance(posteriors: Matrix, prevalence: Vector) -> Vector:
    """Class log-weights w with mean_i softmax(log q_i + w) = prevalence, by damped Newton steps.

    The weights maximise sum_c prevalence_c w_c - mean_i log sum_c q_ic exp(w_c), which is concave: a step that
    does not improve it is halved. Where no weights balance (one class certain everywhere) the best are returned.
    """
    z = np.log(_floored(posteriors))

    def weighted(w: Vector) -> tuple[float, Matrix]:
        """The objective, and softmax(log q_i + w)."""
        top, total, q = _exponentials(z + w)
        return float(prevalence @ w - np.mean(top + np.log(total))), q

    w = np.zeros(prevalence.size)
    value, q = weighted(w)
    for _ in range(50):
        mean = q.mean(axis=0)
        gradient = prevalence - mean
        if np.abs(gradient).max() < BALANCE_ERROR:
            break
        curvature = np.diag(mean + BALANCE_ERROR) - q.T @ q / q.shape[0]
        step = np.linalg.lstsq(curvature, gradient, rcond=None)[0]
        step *= min(1.0, 5.0 / max(1e-300, float(np.abs(step).max())))
        for _ in range(30):
            candidate, there = weighted(w + step)
            if candidate >= value:
                break
            step = step / 2
        else:
            break
        w, value, q = w + step, candidate, there
    return np.asarray(w - w.mean())


def _capped(posteriors: Matrix, labels: Labels, keep: Flags, seed: int) -> tuple[Matrix, Labels]:
    """The kept rows, or a seeded stratified part of them: a map of a few parameters gains nothing from more."""
    rows = np.flatnonzero(keep)
    if rows.size > CALIBRATION_ROWS:
        rows = rows[stratified_sample(labels[rows], CALIBRATION_ROWS, seed)]
    return posteriors[rows], labels[rows]


def _floored(posteriors: Matrix) -> Matrix:
    return np.maximum(posteriors, POSTERIOR_FLOOR)


def _weighted(posteriors: Matrix, log_weights: Vector) -> Matrix:
    weighted = posteriors * np.exp(log_weights)
    return np.asarray(weighted / row_sums(weighted)[:, None])


def _fit_scaled(posteriors: Matrix, labels: Labels, shared_slope: bool, biased: bool) -> Parameters:
    return _fit_softmax(np.log(_floored(posteriors)), labels, shared_slope, biased)


def _fit_softmax(z: Matrix, labels: Labels, shared_slope: bool, biased: bool) -> Parameters:
    """Maximum likelihood of softmax(s z + b): temperature 1/s (ref 2), with b (ref 3), or s per class (vector).

    A unit normal prior on s - 1 and b in all, not per event: it matters only where the classes are separable
    and the maximum is at infinity.
    """
    n, k = z.shape
    slopes = 1 if shared_slope else k
    rows, scaled = np.arange(n), np.empty_like(z)

    def loss(theta: Vector) -> tuple[float, Vector]:
        s, b = theta[:slopes], theta[slopes:]
        np.multiply(z, s, out=scaled)
        nats, residual = _likelihood(np.add(scaled, b, out=scaled) if biased else scaled, labels)
        value = nats + 0.5 * (((s - 1) ** 2).sum() + (b**2).sum())
        residual[rows, labels] -= 1
        per_class = np.einsum("ik,ik->k", residual, z)
        slope = per_class.sum(keepdims=True) if shared_slope else per_class
        return value / n, np.concatenate([slope + s - 1, residual.sum(axis=0) + b if biased else b]) / n

    start = np.concatenate([np.ones(slopes), np.zeros(k if biased else 0)])
    bounds = [(1e-3, None)] * slopes + [(None, None)] * (start.size - slopes)
    theta = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return {
        "slopes": np.broadcast_to(theta[:slopes], k).copy(),
        "intercepts": theta[slopes:] if biased else np.zeros(k),
    }


@dataclass(frozen=True, slots=True, eq=False)
class Sharpness:
    """How sure posteriors are made, and of which classes: softmax(s log p + b)."""

    slope: float
    shifts: Vector

    def __call__(self, posteriors: Matrix) -> Matrix:
        return _softmax(self.slope * np.log(_floored(posteriors)) + self.shifts)


def sharpened(posteriors: Matrix, wanted: Matrix) -> Sharpness:
    """The map of posteriors p that comes nearest to others q of the same events: the s, b of the smallest

        - mean_i sum_c q_ic log softmax(s log p_i + b)_c,

    which is convex. Where p is q they are 1 and 0; at the minimum the mean of each class is that of q, as EM wants of
    posteriors (`balance`), and p is as sure as q bears out.
    """
    z, prevalence = np.log(_floored(posteriors)), wanted.mean(axis=0)

    def loss(theta: Vector) -> tuple[float, Vector]:
        u = z * theta[0] + theta[1:]
        aligned = row_sums(wanted * u)
        most, total, said = _exponentials(u)
        nats = float((most + np.log(total) - aligned).mean())
        slope = float(np.vdot(said - wanted, z)) / len(z)
        return nats, np.concatenate([[slope], said.mean(axis=0) - prevalence])

    start = np.concatenate([[1.0], np.zeros(prevalence.size)])
    bounds = [(1e-3, None), *[(None, None)] * prevalence.size]
    theta = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Sharpness(float(theta[0]), theta[1:])


def _likelihood(z: Matrix, labels: Labels) -> tuple[float, Matrix]:
    """-sum_i log q_i of the labels, and q = softmax(z), each exponential taken once; z is given up."""
    own = z[np.arange(labels.size), labels]
    most, total, q = _exponentials(z)
    return float((most + np.log(total) - own).sum()), q


def _softmax(z: Matrix) -> Matrix:
    """exp(z) with rows that sum to one; z is given up."""
    return _exponentials(z)[2]


def _exponentials(z: Matrix) -> tuple[Vector, Vector, Matrix]:
    """m, the largest number of each row, sum exp(z - m), and softmax(z) in place of z."""
    most = row_maxima(z)
    z -= most[:, None]
    np.exp(z, out=z)
    total = row_sums(z)
    z /= total[:, None]
    return most, total, z


def _apply_scaled(posteriors: Matrix, parameters: Parameters) -> Matrix:
    return _scaled(np.log(_floored(posteriors)), parameters)


def _scaled(z: Matrix, parameters: Parameters) -> Matrix:
    return _softmax(z * parameters["slopes"] + parameters["intercepts"])


def _logits(posteriors: Matrix) -> Matrix:
    return np.log(_floored(posteriors)) - np.log(_floored(1.0 - posteriors))


def _fit_matrix(posteriors: Matrix, labels: Labels) -> Parameters:
    """Maximum likelihood of softmax(z W + b), z centred by row (Dirichlet calibration, ref 5).

    A unit normal prior on W - 1 and b: k^2 parameters are more than small classes can support.
    """
    z = _centred_logs(posteriors)
    n, k = z.shape
    rows, identity, mapped = np.arange(n), np.eye(k), np.empty_like(z)

    def loss(theta: Vector) -> tuple[float, Vector]:
        w, b = theta[: k * k].reshape(k, k), theta[k * k :]
        nats, residual = _likelihood(np.add(np.matmul(z, w, out=mapped), b, out=mapped), labels)
        value = nats + 0.5 * (((w - identity) ** 2).sum() + (b**2).sum())
        residual[rows, labels] -= 1
        gradient = np.concatenate([(z.T @ residual + w - identity).ravel(), residual.sum(axis=0) + b])
        return value / n, gradient / n

    start = np.concatenate([identity.ravel(), np.zeros(k)])
    theta = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 100}).x
    return {"matrix": theta[: k * k].reshape(k, k), "intercepts": theta[k * k :]}


def _apply_matrix(posteriors: Matrix, parameters: Parameters) -> Matrix:
    return _softmax(_centred_logs(posteriors) @ parameters["matrix"] + parameters["intercepts"])


def _centred_logs(posteriors: Matrix) -> Matrix:
    z = np.log(_floored(posteriors))
    return np.asarray(z - z.mean(axis=1, keepdims=True))


def _fit_platt(posteriors: Matrix, labels: Labels) -> Parameters:
    return _fit_sigmoids(_logits(posteriors), labels)


def _fit_sigmoids(f: Matrix, labels: Labels) -> Parameters:
    """One sigmoid(a f + b) per class, of log-odds or margins f, on Platt's targets (ref 1; esuli, eq 14).

    The targets are (N+ + 1)/(N+ + 2) for the class's events and 1/(N- + 2) for the rest: no class is ever certain.
    """
    slopes, intercepts = np.empty(f.shape[1]), np.empty(f.shape[1])
    for c in range(f.shape[1]):
        positive = labels == c
        members = int(positive.sum())
        target = np.where(positive, (members + 1) / (members + 2), 1 / (labels.size - members + 2))
        slopes[c], intercepts[c] = _fit_sigmoid(f[:, c], target)
    return {"slopes": slopes, "intercepts": intercepts}


def _fit_sigmoid(f: Vector, target: Vector) -> tuple[float, float]:
    def loss(theta: Vector) -> tuple[float, Vector]:
        u = theta[0] * f + theta[1]
        value = -np.mean(target * log_expit(u) + (1 - target) * log_expit(-u))
        residual = expit(u) - target
        return float(value), np.array([np.mean(residual * f), np.mean(residual)])

    slope, intercept = scipy.optimize.minimize(loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B").x
    return float(slope), float(intercept)


def _apply_platt(posteriors: Matrix, parameters: Parameters) -> Matrix:
    return _sigmoids(_logits(posteriors), parameters)


def _sigmoids(f: Matrix, parameters: Parameters) -> Matrix:
    return _shares(expit(f * parameters["slopes"] + parameters["intercepts"]))


def _of_margins(fit_: Callable[[Matrix, Labels], Parameters]) -> Callable[[Matrix, Labels], Parameters]:
    """Fitted on margins around their middle, in units of their spread, whatever scale a model has; told in its own."""

    def fitted(margins: Matrix, labels: Labels) -> Parameters:
        low, middle, high = np.quantile(margins, (0.25, 0.5, 0.75), axis=0)
        unit = float((high - low).max()) or float(margins.std()) or 1.0
        parameters = fit_((margins - middle) / unit, labels)
        return {
            "slopes": parameters["slopes"] / unit,
            "intercepts": parameters["intercepts"] - parameters["slopes"] * middle / unit,
        }

    return fitted


def _shares(scores: Matrix) -> Matrix:
    """Per-class probabilities made to sum to one; a floor keeps every class possible and every row divisible."""
    floored = _floored(scores)
    return np.asarray(floored / floored.sum(axis=1, keepdims=True))


def _fit_isotonic(posteriors: Matrix, labels: Labels) -> Parameters:
    """One isotonic regression per class (ref 4), kept away from 0 and 1 by Platt's targets.

    A step of a few events says 0 or 1 exactly; one later event of the other class would then be impossible.
    """
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 - half a second that only a build should pay

    parameters: dict[str, Vector] = {}
    for c in range(posteriors.shape[1]):
        positive = labels == c
        members = int(positive.sum())
        low, high = 1 / (labels.size - members + 2), (members + 1) / (members + 2)
        steps = IsotonicRegression(y_min=low, y_max=high, out_of_bounds="clip").fit(posteriors[:, c], positive)
        parameters[f"x{c}"], parameters[f"y{c}"] = steps.X_thresholds_, steps.y_thresholds_
    return parameters


def _apply_isotonic(posteriors: Matrix, parameters: Parameters) -> Matrix:
    """What lies between two steps goes to the nearer one: the hold-out events have only ever seen steps, and answers
    between them would look like something that never was."""
    steps = []
    for c in range(posteriors.shape[1]):
        at, answers = parameters[f"x{c}"], parameters[f"y{c}"]
        steps.append(answers[np.searchsorted((at[1:] + at[:-1]) / 2, posteriors[:, c])])
    return _shares(np.column_stack(steps))


def _scaled_map(parameters: Parameters, _: int) -> tuple[CalibrationMethod, dict[str, Any]]:
    return "scaled", {"slopes": tuple(parameters["slopes"].tolist()), "shifts": parameters["intercepts"]}


def _matrix_map(parameters: Parameters, classes: int) -> tuple[CalibrationMethod, dict[str, Any]]:
    """Centring is linear as well: it goes into the matrix."""
    centred = (np.eye(classes) - 1 / classes) @ parameters["matrix"]
    return "matrix", {"matrix": tuple(map(tuple, centred.tolist())), "shifts": parameters["intercepts"]}


def _platt_map(parameters: Parameters, _: int) -> tuple[CalibrationMethod, dict[str, Any]]:
    return "platt", {name: tuple(parameters[name].tolist()) for name in ("slopes", "intercepts")}


def _isotonic_map(parameters: Parameters, classes: int) -> tuple[CalibrationMethod, dict[str, Any]]:
    """Edges at which the answer changes; those within a step say nothing."""
    edges, values = [], []
    for c in range(classes):
        at, answers = parameters[f"x{c}"], parameters[f"y{c}"]
        steps = np.flatnonzero(np.diff(answers))
        edges.append(tuple(((at[steps + 1] + at[steps]) / 2).tolist()))
        values.append((*answers[steps].tolist(), float(answers[-1])))
    return "isotonic", {"edges": tuple(edges), "values": tuple(values)}


_as_they_are = Method(
    lambda _posteriors, _labels: {},
    lambda posteriors, _parameters: posteriors,
    lambda _parameters, classes: ("scaled", {"slopes": (1.0,) * classes, "floor": float(np.finfo(np.float64).tiny)}),
)

METHODS: Mapping[str, Method] = {  # the simplest first: "auto" takes them in this order
    "none": _as_they_are,
    "balanced": _as_they_are,  # nothing but the class weights, which "none" goes without
    "temperature": Method(lambda p, y: _fit_scaled(p, y, True, False), _apply_scaled, _scaled_map),
    "bias-corrected-temperature": Method(lambda p, y: _fit_scaled(p, y, True, True), _apply_scaled, _scaled_map),
    "platt": Method(_fit_platt, _apply_platt, _platt_map),
    "vector": Method(lambda p, y: _fit_scaled(p, y, False, True), _apply_scaled, _scaled_map),
    "matrix": Method(_fit_matrix, _apply_matrix, _matrix_map),
    "isotonic": Method(_fit_isotonic, _apply_isotonic, _isotonic_map),
    "margin-platt": Method(_of_margins(_fit_sigmoids), _sigmoids, _platt_map),
    "margin-softmax": Method(_of_margins(lambda z, y: _fit_softmax(z, y, True, True)), _scaled, _scaled_map),
}
MARGIN_METHODS = frozenset({"margin-platt", "margin-softmax"})
"""Those whose scores are margins: one sigmoid for each class, as the second paper has it, or a softmax of all of them,
which is right where the margins of a row have a constant in common, as logits do."""

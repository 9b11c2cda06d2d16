"""Whether labels still follow the scores as they did on the hold-out: a sequential test, valid at any time. Pure.

Notation: c calibrated posteriors, w the class weights of a window, eta = log c_a - log c_b the scores' log odds of two
classes. Whatever the class mix of a window, and however often its labels are found by class, what is held to hold is

    P(y | x) ~ w_y exp(g_y),    g_a - g_b = base(eta)    where base(eta) is that of the hold-out, and nearly eta.

A stratum is one event of a class a and some of another class b. Which of its events is the one of class a has the
chances softmax(base(eta_i) + theta phi(eta_i)), in which the weights cancel: neither a prior shift nor labels that are
found more often for one class than for another move theta (conditional logistic regression, Breslow and Day 1980).

Directions phi: eta itself (labels follow the scores less or more closely), and two bends that are orthogonal to it in
the hold-out's Fisher information and have as much of it. Up to an edge t a theta is tolerated: .15, or where the
hold-out's likelihood is that of 2.6 standard errors, together with what differs between its own parts. For d > 0 the
likelihood ratio of t + d against t has a mean of at most 1 under every theta up to t, as the family has monotone
likelihood ratios, at any number of labels; cut off at one nat a stratum it has so still. Products of such ratios over
windows, begun anew whenever they fall below 1, are e-detectors, and so is their mean over directions, signs and sizes
(Shin, Ramdas and Rinaldo 2024): it passes a threshold A on average at most once in A windows.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp, softmax

from monitor.arrays import Labels, Matrix, Vector
from monitor.limits import CONCEPT_ROWS
from monitor.tolerances import (
    CONCEPT_BISECTIONS,
    CONCEPT_CONTROLS,
    CONCEPT_EDGE,
    CONCEPT_ERRORS,
    CONCEPT_FARTHEST,
    CONCEPT_LARGEST,
    CONCEPT_LOG_ODDS,
    CONCEPT_PARTS,
    CONCEPT_SIZES,
    CONCEPT_STEPS,
    CONCEPT_STRATUM,
    EXCHANGEABLE,
    LEAST_CURVATURE,
    LEAST_ERROR,
    SINGULAR_BEND,
)

SIGNS = (-1, 1)
Stakes = NDArray[np.float64]
"""What each stake has won, in nats: (directions, signs, sizes)."""
KNOTS = np.linspace(0.0, 1.0, 33)
"""The bends are polynomials of ranks, which the hold-out's log odds are interpolated to."""


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """One a row: the event of class a comes first."""

    log_odds: Matrix
    """Of class a against class b."""
    sign: Vector
    """1 where a has the higher number, else -1: bends are those of the log odds of the higher number."""


def strata(calibrated: Matrix, labels: Labels) -> Strata:
    """Disjoint strata of labelled events, drawn with a seed of their own; what is drawn depends on class counts alone.

    Rows are sorted by class, frequent ones first. Where one class has more than half, every other row gets some of it;
    else the first half is paired with the second: no run is so long that a row meets its own class.
    """
    order = np.random.default_rng(0).permutation(labels.size)[:CONCEPT_ROWS]
    counts = np.bincount(labels[order], minlength=calibrated.shape[1])
    rank = np.argsort(np.argsort(-counts, kind="stable"), kind="stable")
    order = order[np.argsort(rank[labels[order]], kind="stable")]
    most = int(counts.max())
    number = min(order.size // 2, order.size - most)
    if not number:
        return Strata(np.empty((0, 2)), np.empty(0))
    cases, width = order[-number:], min(max(most // number, 1), CONCEPT_CONTROLS)
    controls = order[: number * width].reshape(width, number).T
    a, b = labels[cases], labels[controls[:, 0]]
    z = np.log(np.maximum(calibrated, np.exp(-CONCEPT_LOG_ODDS)))
    members = np.column_stack([cases, controls])
    return Strata(z[members, a[:, None]] - z[members, b[:, None]], np.where(a > b, 1.0, -1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """How labels follow the scores on the hold-out."""

    knots: Vector
    """Log odds at the ranks `KNOTS`."""
    mixing: Matrix
    """From raw directions to orthogonal ones with the information of the slope, one a column."""
    base: Vector
    """The hold-out's theta in these directions: nearly 1 for the slope, nearly 0 for bends."""
    spread: Matrix
    """How far from it a theta may lie, below and above, by the hold-out's likelihood: (directions, signs)."""
    natural: Vector
    """By how much each differs between parts of the hold-out, beyond chance: a standard deviation."""

    @property
    def edges(self) -> Matrix:
        """How far from the base each theta is tolerated, below and above."""
        return np.maximum(CONCEPT_EDGE, np.hypot(self.spread, CONCEPT_ERRORS * self.natural[:, None]))

    @property
    def tells(self) -> bool:
        """Whether scores say enough of the hold-out's labels for a change to be told."""
        return float(self.spread[0, 0]) < CONCEPT_LARGEST

    def directions(self, some: Strata) -> Matrix:
        """What each direction says of each event: (directions, strata, events)."""
        return np.asarray(np.tensordot(self.mixing.T, _raw(some, self.knots), axes=1))


def as_usual(calibrated: Matrix, labels: Labels) -> Usual | None:
    """From the hold-out's events; None where its scores say nothing of its labels."""
    some = strata(calibrated, labels)
    if not some.sign.size or np.ptp(some.log_odds) < LEAST_ERROR:
        return None
    knots = np.quantile(some.sign[:, None] * some.log_odds, KNOTS)
    raw = _raw(some, knots)
    start = np.eye(len(raw))[0]
    theta, ridge = start, LEAST_CURVATURE * np.eye(len(raw))
    for _ in range(CONCEPT_STEPS):
        gradient, information = _derivatives(raw, theta)
        theta = theta + np.linalg.solve(information + ridge, gradient - ridge @ (theta - start))
    mixing = _orthogonal(_derivatives(raw, theta)[1])
    base = np.linalg.lstsq(mixing, theta, rcond=None)[0]
    spread = _spread(np.tensordot(mixing.T, raw, axes=1), base)
    whole = Usual(knots, mixing, base, spread, np.zeros(base.size))
    return replace(whole, natural=_natural(calibrated, labels, whole))


def _spread(phi: Matrix, base: Vector) -> Matrix:
    """Where the log-likelihood of the hold-out has fallen as far as a normal one has 2.6 standard errors off.

    A hold-out in which scores make no mistakes knows its slope badly, and yet that it is no small one.
    """
    scores = np.tensordot(base, phi, axes=1)
    most, fall = _first(scores).sum(), CONCEPT_ERRORS**2 / 2
    spread = np.empty((len(phi), len(SIGNS)))
    for j, direction in enumerate(phi):
        for k, sign in enumerate(SIGNS):
            near, far = 0.0, CONCEPT_FARTHEST
            for _ in range(CONCEPT_BISECTIONS):
                middle = (near + far) / 2
                within = most - _first(scores + sign * middle * direction).sum() < fall
                near, far = (middle, far) if within else (near, middle)
            spread[j, k] = far
    return spread


def _natural(calibrated: Matrix, labels: Labels, whole: Usual) -> Vector:
    """How much thetas differ between parts of the hold-out, as it stands: of rows in time order that is their drift.

    With the gradient g_j and information I_j of each of J parts at the whole's theta, Q = sum g_j^2 / I_j has mean
    J - 1 where parts are alike, and with the fourth cumulants k_j of the g_j, which are large where hardly an event is
    in doubt, variance 2 (J - 1) + sum k_j / I_j^2. Beyond chance the variance of the steps g_j / I_j is
    (Q - J + 1) / (S - sum I^2 / S), with the sum S of I (DerSimonian and Laird 1986). Parts that differ beyond chance
    in all directions together are believed to differ in each, as far as it shows: weeks that differ in one way do so in
    others.
    """
    steps, weights, fourths = [], [], []
    for rows in np.array_split(np.arange(labels.size), CONCEPT_PARTS):
        phi = whole.directions(strata(calibrated[rows], labels[rows]))
        gradient, information = _derivatives(phi, whole.base)
        weights.append(np.diag(information) + LEAST_CURVATURE)
        steps.append(gradient / weights[-1])
        fourths.append(_fourth_cumulants(phi, whole.base))
    theta, weight = np.array(steps), np.array(weights)
    total, free = weight.sum(axis=0), CONCEPT_PARTS - 1
    q = (weight * (theta - (weight * theta).sum(axis=0) / total) ** 2).sum(axis=0)
    chance = 2 * free + np.maximum(np.array(fourths) / weight**2, 0.0).sum(axis=0)
    variance = (q - free) / (total - (weight**2).sum(axis=0) / total)
    beyond = q - free > EXCHANGEABLE * np.sqrt(chance)
    together = (q - free).sum() > EXCHANGEABLE * np.sqrt(chance.sum())
    return np.asarray(np.sqrt(np.where(beyond | together, np.maximum(variance, 0.0), 0.0)))


@dataclass(frozen=True, slots=True)
class Stake:
    """A change on which stakes are laid."""

    direction: int
    sign: int
    """-1 or 1."""
    size: float
    """Beyond the edge."""

    def edge(self, usual: Usual) -> float:
        """Up to where nothing is staked."""
        return float(usual.edges[self.direction, SIGNS.index(self.sign)])

    def theta(self, usual: Usual) -> float:
        """How far from the hold-out's it is."""
        return self.sign * (self.edge(usual) + self.size)


def leading(logs: Stakes) -> tuple[Stake, tuple[int, ...]]:
    """The stake that has won most, and where it stands."""
    at = tuple(int(k) for k in np.unravel_index(int(logs.argmax()), logs.shape))
    return Stake(at[0], SIGNS[at[1]], CONCEPT_SIZES[at[2]]), at


def increments(some: Strata, usual: Usual) -> Stakes:
    """What each stake wins by these strata."""
    phi = usual.directions(some)
    base = np.tensordot(usual.base, phi, axes=1)
    edges = usual.edges
    won = np.empty((len(phi), len(SIGNS), len(CONCEPT_SIZES)))
    for j, direction in enumerate(phi):
        for k, sign in enumerate(SIGNS):
            tolerated = _first(base + sign * edges[j, k] * direction)
            steps = [_first(base + sign * (edges[j, k] + size) * direction) - tolerated for size in CONCEPT_SIZES]
            won[j, k] = np.minimum(steps, CONCEPT_STRATUM).sum(axis=1)
    return won


def total(logs: Stakes) -> float:
    """The logarithm of the evidence of all stakes: half of them are on the slope."""
    shares = np.full(len(logs), 0.5 / max(len(logs) - 1, 1))
    shares[0] = 1.0 - shares[1:].sum()
    return float(logsumexp(logs, b=np.broadcast_to(shares[:, None, None] / logs[0].size, logs.shape)))


def against(some: Strata, usual: Usual, stake: Stake) -> float:
    """By how many nats strata speak for the hold-out's theta against that of a stake."""
    phi = usual.directions(some)
    base = np.tensordot(usual.base, phi, axes=1)
    steps = _first(base) - _first(base + stake.theta(usual) * phi[stake.direction])
    return float(np.minimum(steps, CONCEPT_STRATUM).sum())


def _raw(some: Strata, knots: Vector) -> Matrix:
    """Log odds, and Legendre's second and third polynomials of their ranks in [-1, 1]."""
    odds, sign = some.log_odds, some.sign[:, None]
    u = 2 * np.interp(sign * odds, knots, KNOTS) - 1
    return np.stack([odds, sign * (3 * u**2 - 1) / 2, sign * (5 * u**3 - 3 * u) / 2])


def _first(scores: Matrix) -> Vector:
    """The log chance that the first event of each stratum is the one of class a."""
    return np.asarray(log_softmax(scores, axis=1)[:, 0])


def _derivatives(phi: Matrix, theta: Vector) -> tuple[Vector, Matrix]:
    """Gradient of the log-likelihood, and Fisher information."""
    q = softmax(np.tensordot(theta, phi, axes=1), axis=1)
    apart = phi - (q * phi).sum(axis=2, keepdims=True)
    return apart[:, :, 0].sum(axis=1), np.einsum("dse,se,fse->df", apart, q, apart)


def _fourth_cumulants(phi: Matrix, theta: Vector) -> Vector:
    """Of the gradient, in each direction: strata are independent, so that theirs add up."""
    q = softmax(np.tensordot(theta, phi, axes=1), axis=1)
    squares = (phi - (q * phi).sum(axis=2, keepdims=True)) ** 2
    variance, fourth = (q * squares).sum(axis=2), (q * squares**2).sum(axis=2)
    return np.asarray((fourth - 3 * variance**2).sum(axis=1))


def _orthogonal(information: Matrix) -> Matrix:
    """Gram-Schmidt in the metric of the information; directions that say nothing new are left out."""
    columns = [np.eye(len(information))[0]]
    for raw in np.eye(len(information))[1:]:
        new = raw - sum((raw @ information @ column) / information[0, 0] * column for column in columns)
        size = float(new @ information @ new)
        if size > SINGULAR_BEND * float(raw @ information @ raw):
            columns.append(new * (information[0, 0] / size) ** 0.5)
    return np.column_stack(columns)

"""Slow, obvious twins: one event, one component, one start at a time, straight from the equations."""

import math

import numpy as np
from scipy import optimize, stats

from monitor.regression.mixture import Mixture


def design(inputs):
    return np.column_stack([np.ones(len(inputs)), inputs])


def density(mixture, x, y):
    """Eq 1.2 for one event."""
    row = np.concatenate([[1.0], x])
    return sum(
        pi * stats.norm.pdf(y, row @ beta, sigma)
        for pi, beta, sigma in zip(mixture.weights, mixture.coefficients, mixture.sigmas, strict=True)
    )


def log_likelihood(mixture, inputs, targets):
    return sum(math.log(density(mixture, x, y)) for x, y in zip(inputs, targets, strict=True))


def responsibilities(mixture, inputs, targets):
    """Eq 2.7."""
    table = np.empty((len(targets), mixture.components))
    for i, (x, y) in enumerate(zip(inputs, targets, strict=True)):
        row = np.concatenate([[1.0], x])
        for k in range(mixture.components):
            table[i, k] = mixture.weights[k] * stats.norm.pdf(y, row @ mixture.coefficients[k], mixture.sigmas[k])
    return table / table.sum(axis=1, keepdims=True)


def unpack(name, parameters, betas, sigmas):
    """The coefficients and sigmas of a link by its definition in section 2.1; works for complex parameters too.

    Factors that also scale the noise, and sigmas, are given by their logarithms: they are positive.
    """
    components, width = betas.shape
    free = list(parameters)
    factors = np.ones((components, width), dtype=parameters.dtype)
    noise = sigmas.astype(parameters.dtype)

    def take(count):
        taken, free[:] = free[:count], free[count:]
        return np.array(taken)

    number, letter = name[1], name[2:]
    if letter == "n":
        if number == "2":
            factors[:, 1:] = take(1)
        noise = np.exp(take(components))
    elif number in "23":
        sets = 1 if number == "2" else components
        if letter == "a":
            high = np.broadcast_to(np.exp(take(sets)), components)
            factors[:, 1:], noise = high[:, None], high * sigmas
        elif letter == "b":
            factors[:, 0] = take(sets)
        elif letter == "c":
            high = np.broadcast_to(np.exp(take(sets)), components)
            factors[:, :], noise = high[:, None], high * sigmas
        else:
            factors[:, 0] = take(sets)
            high = np.broadcast_to(np.exp(take(sets)), components)
            factors[:, 1:], noise = high[:, None], high * sigmas
    elif number == "4":
        first = 1 if letter == "a" else 0
        factors[:, first:] = take(width - first)
        noise = np.exp(take(components))
    elif number == "5":
        return take(components * width).reshape(components, width), np.exp(take(components))
    return factors * betas, noise


def start_parameters(name, betas, sigmas):
    """The parameters of the identity."""
    components, width = betas.shape
    sets = 1 if name[1] == "2" else components
    return {
        "1n": np.log(sigmas), "2n": np.concatenate([[1.0], np.log(sigmas)]),
        "2a": np.zeros(1), "2b": np.ones(1), "2c": np.zeros(1), "2d": np.array([1.0, 0.0]),
        "3a": np.zeros(sets), "3b": np.ones(sets), "3c": np.zeros(sets), "3d": np.repeat([1.0, 0.0], sets),
        "4a": np.concatenate([np.ones(width - 1), np.log(sigmas)]),
        "4b": np.concatenate([np.ones(width), np.log(sigmas)]),
        "5": np.concatenate([betas.ravel(), np.log(sigmas)]),
    }[name[1:]]  # fmt: skip


def expected_log_likelihood(name, parameters, *, betas, sigmas, rows, targets, shares):
    """Q of eq 2.6 without the proportions; shares (K, n)."""
    coefficients, noise = unpack(name, parameters, betas, sigmas)
    total = 0.0
    for k in range(betas.shape[0]):
        error = targets - rows @ coefficients[k]
        total = total - np.sum(shares[k]) * np.log(noise[k]) - np.sum(shares[k] * error**2) / (2 * noise[k] ** 2)
    return total


def gradient(function, point):
    """Complex-step derivative: exact to rounding."""
    out = np.empty(point.size)
    for j in range(point.size):
        moved = point.astype(complex)
        moved[j] += 1e-30j
        out[j] = function(moved).imag / 1e-30
    return out


def maximiser(name, *, betas, sigmas, rows, targets, shares):
    """The maximiser of Q by a general optimiser, polished by solving for a zero gradient."""

    def q(parameters):
        return expected_log_likelihood(
            name, parameters, betas=betas, sigmas=sigmas, rows=rows, targets=targets, shares=shares
        )

    start = start_parameters(name, betas, sigmas)
    rough = optimize.minimize(lambda point: -q(point), start, jac=lambda point: -gradient(q, point), method="BFGS")
    exact = optimize.root(lambda point: gradient(q, point), rough.x, tol=1e-14).x
    return exact, q


def em(name, free, reference, inputs, targets, *, steps):
    """EM from the reference with the numerical M-step."""
    rows, betas, sigmas = design(inputs), np.array(reference.coefficients), np.array(reference.sigmas)
    current = reference
    for _ in range(steps):
        shares = responsibilities(current, inputs, targets).T
        if name == "M1":
            coefficients, noise = betas, sigmas
        else:
            best, _ = maximiser(name, betas=betas, sigmas=sigmas, rows=rows, targets=targets, shares=shares)
            coefficients, noise = unpack(name, best, betas, sigmas)
        weights = shares.mean(axis=1) if free else reference.weights
        current = Mixture.of(weights, coefficients, noise)
    return current


def effective_size(draws):
    """One quantity, (n, chains): the book's formula with loops over lags."""
    length, chains = draws.shape
    within = draws.var(axis=0, ddof=1).mean()
    between = draws.mean(axis=0).var(ddof=1) if chains > 1 else 0.0
    total = within * (length - 1) / length + between
    centred = draws - draws.mean(axis=0)

    def correlation(lag):
        if lag == 0:
            return 1.0
        covariance = np.mean([np.sum(c[lag:] * c[: length - lag]) / length for c in centred.T])
        return 1 - (within - covariance * length / (length - 1)) / total

    summed, smallest = 0.0, np.inf
    for pair in range(length // 2):
        value = correlation(2 * pair) + correlation(2 * pair + 1)
        if value <= 0:
            break
        smallest = min(smallest, value)
        summed += smallest
    return length * chains / (2 * summed - 1)

"""The slow and obvious twin of every algorithm in monitor.priors: loops over events, straight from the equations."""

import math

import numpy as np
from scipy.optimize import minimize


def correct(posteriors, source, target):
    rows = []
    for g in posteriors:
        weighted = [g[y] * target[y] / source[y] for y in range(len(g))]
        rows.append([w / sum(weighted) for w in weighted])
    return np.array(rows)


def sld(posteriors, source, tolerance, cap):
    """Esuli's Algorithm 1 with all priors computed before the posteriors are touched (erratum 3)."""
    priors, current = list(source), [list(g) for g in posteriors]
    step = 0
    while step < cap:
        step += 1
        fresh = [sum(g[y] for g in current) / len(current) for y in range(len(source))]
        current = correct(posteriors, source, fresh)
        change = sum(abs(a - b) for a, b in zip(fresh, priors, strict=True)) / len(source)
        priors = fresh
        if change < tolerance:
            break
    return np.array(priors), step


def stopped(posteriors, source, train, labels, cap=1000):
    """Weighted precision of the training rows under each step's priors; its first strict decrease ends it."""
    priors, best = np.array(source), None
    for _ in range(cap):
        predicted = correct(train, source, priors).argmax(axis=1)
        score = 0.0
        for y in range(len(source)):
            claimed = [labels[i] == y for i in range(len(labels)) if predicted[i] == y]
            score += source[y] * (sum(claimed) / len(claimed) if claimed else 0.0)
        fresh = correct(posteriors, source, priors).mean(axis=0)
        if best is not None and score < best:
            return fresh
        if np.abs(fresh - priors).mean() < 1e-6:
            return fresh
        priors, best = fresh, score
    return priors


def log_likelihood(posteriors, source, priors):
    total = 0.0
    for g in posteriors:
        total += math.log(sum(g[y] * priors[y] / source[y] for y in range(len(g))))
    return total / len(posteriors)


def adjusted(confusion, counts):
    size = len(counts)
    m = np.array([[confusion[j][i] / sum(confusion[j]) for j in range(size)] for i in range(size)])
    raw = np.linalg.inv(m) @ (np.array(counts) / sum(counts))
    clipped = np.array([max(value, 0.0) for value in raw])
    return clipped / clipped.sum()


def simplex_program(gram, linear):
    """Every set of free classes in turn; the best feasible stationary point is the minimum of a convex program."""
    size, best, value = len(linear), None, math.inf
    for code in range(1, 2**size):
        free = [k for k in range(size) if code >> k & 1]
        system = np.zeros((len(free) + 1, len(free) + 1))
        system[:-1, :-1] = gram[np.ix_(free, free)]
        system[-1, :-1] = system[:-1, -1] = 1.0
        solution = np.linalg.lstsq(system, np.append(linear[free], 1.0), rcond=None)[0][:-1]
        if (solution < -1e-12).any() or abs(solution.sum() - 1) > 1e-9:
            continue
        x = np.zeros(size)
        x[free] = solution
        if 0.5 * x @ gram @ x - linear @ x < value - 1e-15:
            best, value = x, 0.5 * x @ gram @ x - linear @ x
    return best, value


def convex_optimum(posteriors, source):
    """The likelihood's maximum by sequential quadratic programming of another library, from two starts."""
    ratios = np.asarray(posteriors) / source

    def loss(p):
        return -np.log(np.maximum(ratios @ p, 1e-300)).mean()

    def slope(p):
        return -(ratios / np.maximum(ratios @ p, 1e-300)[:, None]).mean(axis=0)

    best = None
    for start in (source, np.full(len(source), 1 / len(source))):
        found = minimize(
            loss,
            start,
            jac=slope,
            method="SLSQP",
            bounds=[(0, 1)] * len(source),
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like},
            options={"ftol": 1e-16, "maxiter": 1000},
        )
        if best is None or found.fun < best.fun:
            best = found
    return best.x, -best.fun


def cde(positives, rate, loops):
    ratio = rate / (1 - rate)
    cost, share = 1.0, rate
    for _ in range(loops):
        share = sum(1 for g in positives if g > (1 - g) * cost) / len(positives)
        if share in (0.0, 1.0):
            return share
        cost = ratio / (share / (1 - share))
    return share


def kernel_matching(kernel, reference, labels, window, classes):
    """Problem (P) with every inner product summed pair by pair (V-statistics): gram and scores."""
    groups = [reference[labels == k] for k in range(classes)]
    gram = np.array([[np.mean([[kernel(x, y) for y in b] for x in a]) for b in groups] for a in groups])
    scores = np.array([np.mean([[kernel(x, y) for y in window] for x in a]) for a in groups])
    return gram, scores

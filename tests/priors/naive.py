"""The slow and obvious twin of every algorithm in monitor.priors: loops over events, straight from the equations."""

import math

import numpy as np
from scipy.optimize import minimize, root


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
    """All steps q^(0), q^(1), ... first, and the weighted precision P_W^s of the training rows under each q^(s); then
    q^(s+1) for the last s before the first strict decrease (erratum 2)."""
    steps = [np.array(source)]
    while len(steps) <= cap:
        steps.append(correct(posteriors, source, steps[-1]).mean(axis=0))
        if np.abs(steps[-1] - steps[-2]).mean() < 1e-6:
            break
    precisions = []
    for priors in steps[:-1]:
        predicted = correct(train, source, priors).argmax(axis=1)
        score = 0.0
        for y in range(len(source)):
            claimed = [labels[i] == y for i in range(len(labels)) if predicted[i] == y]
            score += source[y] * (sum(claimed) / len(claimed) if claimed else 0.0)
        precisions.append(score)
    for s in range(len(precisions) - 1):
        if precisions[s + 1] < precisions[s]:
            return steps[s + 1]
    return steps[-1]


def log_likelihood(posteriors, source, priors):
    total = 0.0
    for g in posteriors:
        total += math.log(sum(g[y] * priors[y] / source[y] for y in range(len(g))))
    return total / len(posteriors)


def adjusted(confusion, counts):
    size = len(counts)
    m = np.array([[confusion[j][i] / sum(confusion[j]) for j in range(size)] for i in range(size)])
    raw = np.linalg.inv(m) @ (np.array(counts) / sum(counts))
    clipped = np.array([min(max(value, 0.0), 1.0) for value in raw])
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


def exact_optimum(posteriors, source):
    """The likelihood's maximum to rounding: the other library's support, and its roots of the stationary equations."""
    ratios = np.asarray(posteriors) / source
    start, _ = convex_optimum(posteriors, source)
    free = start > 1e-7
    for _ in range(4 * len(source)):
        columns = ratios[:, free]

        def slope(unknown, columns=columns):
            mixture = columns @ unknown
            return (columns / mixture[:, None]).mean(axis=0) - 1.0

        def bend(unknown, columns=columns):
            scaled = columns / (columns @ unknown)[:, None]
            return -scaled.T @ scaled / len(scaled)

        # At the optimum the multipliers are 1, and then the priors sum to one by themselves.
        found = root(slope, np.maximum(start[free], 1e-6), jac=bend, tol=1e-15).x
        point = np.zeros(len(source))
        point[free] = found
        if (found < 0).any():
            free[np.flatnonzero(free)[np.argmin(found)]] = False
            continue
        multipliers = (ratios / (ratios @ point)[:, None]).mean(axis=0)
        worst = int(np.argmax(np.where(free, -np.inf, multipliers)))
        if free.all() or multipliers[worst] <= 1:
            return point
        free[worst], start = True, np.where(free, np.maximum(point, 1e-6), 1e-6)
    raise AssertionError("no stationary point was found")


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


def classify_and_count(posteriors):
    """Each event votes for its largest posterior; a tie is a vote in parts."""
    votes = np.zeros(len(posteriors[0]))
    for g in posteriors:
        best = [k for k in range(len(g)) if g[k] == max(g)]
        for k in best:
            votes[k] += 1 / len(best)
    return votes / len(posteriors)


def confusion(posteriors, labels):
    return np.array(
        [classify_and_count(posteriors[labels == k]) * (labels == k).sum() for k in range(len(posteriors[0]))]
    )


def images(kind, kept, rows):
    """What a feature map turns rows into, one by one and straight from the formula."""
    return np.array([_image(kind, kept, row) for row in rows])


def _image(kind, kept, row):
    if kind == "one-hot":
        return classify_and_count([row])
    if kind == "posteriors":
        return row
    if kind == "rff":  # eq 10
        waves = kept["frequencies"]
        angles = [sum(w * v for w, v in zip(wave, row, strict=True)) for wave in waves]
        scale = math.sqrt(2 / (2 * len(waves)))
        return scale * np.array([math.cos(a) for a in angles] + [math.sin(a) for a in angles])
    values = []
    for landmark in kept["landmarks"]:
        apart = math.dist(row, landmark)
        if kind == "gaussian":
            values.append(math.exp(-(apart**2) / (2 * kept["sigma"][0] ** 2)))
        else:
            values.append(math.hypot(*row) + math.hypot(*landmark) - apart)
    return np.array(values) @ kept["whitening"]


def matched(reference_images, labels, window_images, classes, soft=False):
    """Problem (P), or (P2) with its class at the origin, over every set of free classes; soft shares are rescaled."""
    means = [np.mean(reference_images[labels == k], axis=0) for k in range(classes)]
    if soft:
        means.append(np.zeros_like(means[0]))
    means, target = np.array(means), np.mean(window_images, axis=0)
    point = simplex_program(means @ means.T, means @ target)[0][:classes]
    return point / point.sum()

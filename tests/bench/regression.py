"""Adaptive mixtures of regressions: the paper's studies again, the relation test's error rates, and the time it takes.

python -m tests.bench.regression [--runs 100]   writes tests/bench/reports/regression.md and regression.png

AMRp: links by EM (pM3c, as in the paper); AMRb: Gibbs; MR: a mixture fitted to the new labels alone. Errors are, as in
the paper, the smallest of the K squared errors of each of 5,000 validation events, in the mean.
"""

import numpy as np

from monitor.regression import (
    Mixture,
    MixtureOfRegressions,
    adapt,
    adapt_bayes,
    calibrate_relation,
    relation_test,
)
from tests.bench.options import REPORTS, options
from tests.bench.pictures import pyplot
from tests.bench.timing import interleaved

POPULATION = Mixture.of([0.5, 0.5], [[3.0, 0.0, -2.0], [-3.0, 0.0, 0.5]], [1.0, 0.75])
SIZES = (6, 10, 15, 20, 30, 50, 75, 100, 150, 200)
VALIDATION = 5_000

SCENARIOS = {
    "M2a": ([[1, 2, 2]], [2]),
    "M2b": ([[2, 1, 1]], [1]),
    "M2c": ([[2, 2, 2]], [2]),
    "M2d": ([[4, 2, 2]], [2]),
    "M3a": ([[1, 2, 2], [1, 4, 4]], [2, 4]),
    "M3b": ([[2, 1, 1], [4, 1, 1]], [1, 1]),
    "M3c": ([[2, 2, 2], [4, 4, 4]], [2, 4]),
    "M3d": ([[3, 2, 2], [5, 0.25, 0.25]], [2, 0.25]),
    "M4a": ([[1, 4, 2]], [1]),
    "M4b": ([[3, 2, 1.5]], [1]),
}
"""Section 4.2: factors of the coefficients, and of sigma as each link defines it (M4, where it is free: unchanged)."""


def inputs(events, rng, low=-3.0, high=3.0):
    x = rng.uniform(low, high, events)
    return np.column_stack([x, x**2])


def targets(mixture, x, rng, noise=None):
    component = rng.choice(mixture.components, size=len(x), p=mixture.weights)
    errors = rng.normal(size=len(x)) if noise is None else noise(len(x))
    return mixture.component_means(x)[np.arange(len(x)), component] + mixture.sigmas[component] * errors


def changed(factors, noise):
    return Mixture.of(
        POPULATION.weights, POPULATION.coefficients * np.array(factors), POPULATION.sigmas * np.array(noise)
    )


def error(mixture, x, y):
    return float(np.mean(np.min((y[:, None] - mixture.component_means(x)) ** 2, axis=1)))


def introductory_run(seed, events, noise=3):
    """One draw of section 4.1, with sigma times `noise`: the three errors, and whether the chains met."""
    rng = np.random.default_rng(seed)
    now = changed([[3, 3, 3]], [noise])
    old = inputs(1_000, rng)
    reference = MixtureOfRegressions(2, random_state=seed).fit(old, targets(POPULATION, old, rng))
    x = inputs(events, rng, low=0.0)
    y = targets(now, x, rng)
    fresh = inputs(VALIDATION, rng)
    truth = targets(now, fresh, rng)
    linked = adapt(reference, x, y, models=["pM3c"], seed=seed).mixture
    bayes = adapt_bayes(reference, x, y, seed=seed)
    alone = MixtureOfRegressions(2, random_state=seed).fit(x, y).mixture_
    return [error(one, fresh, truth) for one in (linked, bayes.mixture, alone)] + [bayes.converged]


def introductory(runs):
    table = np.array([introductory_run(seed, 20) for seed in range(runs)], float)
    rows = ["| | median | 10 % | 90 % | the one draw in print |", "|---|---|---|---|---|"]
    for name, column, printed in zip(("AMRp", "AMRb", "MR"), table.T[:3], (26.4, 45.2, 3704.4), strict=True):
        low, middle, high = np.quantile(column, [0.1, 0.5, 0.9])
        rows.append(f"| {name} | {middle:.1f} | {low:.1f} | {high:.1f} | {printed} |")
    first, second = np.mean(table[:, 0] < table[:, 1]), np.mean(table[:, 1] < table[:, 2])
    rows += [
        "",
        f"AMRp < AMRb in {first:.0%} of the runs, AMRb < MR in {second:.0%}; every split R-hat below 1.1 in "
        f"{table[:, 3].mean():.0%}. The median of MR depends on its starts (a better likelihood is a better line): "
        + ", ".join(f"{alone_median(runs, starts):.0f} with {starts}" for starts in (1, 3, 10))
        + ".",
    ]
    return rows


def alone_median(runs, starts):
    errors = []
    for seed in range(runs):
        rng = np.random.default_rng(1_000 + seed)
        now = changed([[3, 3, 3]], [3])
        x, fresh = inputs(20, rng, low=0.0), inputs(VALIDATION, rng)
        fitted = MixtureOfRegressions(2, random_state=seed, n_starts=starts).fit(x, targets(now, x, rng))
        errors.append(error(fitted.mixture_, fresh, targets(now, fresh, rng)))
    return float(np.median(errors))


def by_size(runs):
    """Errors (sizes, runs, 3), as in figures 5 and 6."""
    return np.array([[introductory_run(10_000 + seed, size)[:3] for seed in range(runs)] for size in SIZES])


def picture(errors, path):
    plt = pyplot()

    figure, axes = plt.subplots(figsize=(7, 4.2))
    for name, column, colour in zip(("AMRp", "AMRb", "MR"), range(3), ("tab:red", "tab:blue", "tab:gray"), strict=True):
        low, middle, high = np.quantile(errors[:, :, column], [0.1, 0.5, 0.9], axis=1)
        axes.plot(SIZES, middle, marker="o", label=name, color=colour)
        axes.fill_between(SIZES, low, high, alpha=0.15, color=colour)
    axes.set(xscale="log", yscale="log", xlabel="labelled events n*", ylabel="validation error (median, 10-90 %)")
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.minorticks_off()
    axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def size_rows(errors):
    rows = ["| n* | AMRp | AMRb | MR |", "|---|---|---|---|"]
    for size, part in zip(SIZES, np.median(errors, axis=1), strict=True):
        rows.append(f"| {size} | " + " | ".join(f"{value:.1f}" for value in part) + " |")
    return rows


def selection(runs, events):
    """Section 4.2: what BIC selects among the twelve links with fixed proportions, and the error of its choice."""
    names = ["M1", *SCENARIOS, "M5"]
    rows = [
        "| applied | " + " | ".join(names) + " | error of the chosen | of the applied link |",
        "|---" * (len(names) + 3) + "|",
    ]
    for place, (applied, (factors, noise)) in enumerate(SCENARIOS.items()):
        counts, errors, own = dict.fromkeys(names, 0), [], []
        for seed in range(runs):
            rng = np.random.default_rng([place, seed, events])
            old = inputs(500, rng)
            reference = MixtureOfRegressions(2, n_starts=4, random_state=seed).fit(old, targets(POPULATION, old, rng))
            # Components are ordered by the fit; the factors belong to the population's order.
            order = np.argsort([error_of(reference.mixture_, component) for component in range(2)])
            now = changed(factors, noise)
            x, fresh = inputs(events, rng), inputs(VALIDATION, rng)
            found = adapt(aligned(reference.mixture_, order), x, targets(now, x, rng), models=names, seed=seed)
            truth = targets(now, fresh, rng)
            counts[found.model] += 1
            errors.append(error(found.mixture, fresh, truth))
            own.append(error(found.candidate(applied).mixture, fresh, truth))
        told = " | ".join(f"**{counts[name]}**" if name == applied else str(counts[name]) for name in names)
        rows.append(f"| {applied} | {told} | {np.median(errors):.2f} | {np.median(own):.2f} |")
    return rows


def error_of(mixture, component):
    return float(np.sum((mixture.coefficients[component] - POPULATION.coefficients[0]) ** 2))


def aligned(mixture, order):
    return Mixture.of(mixture.weights[order], mixture.coefficients[order], mixture.sigmas[order], mixture.events)


def heavy(size, rng):
    """Student's t with 4 degrees of freedom, of variance 1."""
    return rng.standard_t(4, size) / np.sqrt(2.0)


def relation_rows(references, windows=20):
    """Error rates of the relation test: references of 2,000 events, Gaussian and heavy-tailed noise; then its power."""
    rows = ["| noise | labels | plain 5 % | plain 1 % | calibrated 5 % | calibrated 1 % | slopes x 1.1 found at 1 % |"]
    rows.append("|---|---|---|---|---|---|---|")
    sizes = (12, 20, 50, 100, 200)
    for name, tails in (("normal", None), ("Student t, 4 df", heavy)):
        p_values = {size: [] for size in sizes}
        for number in range(references):
            rng = np.random.default_rng([number, len(name)])
            noise = None if tails is None else lambda size, rng=rng, tails=tails: tails(size, rng)
            old = inputs(2_000, rng)
            values = targets(POPULATION, old, rng, noise)
            reference = MixtureOfRegressions(2, n_starts=4).fit(old, values)
            null = calibrate_relation(reference, old, values, seed=number)
            for size in np.repeat(sizes, windows):
                x = inputs(size, rng)
                y = targets(POPULATION, x, rng, noise)
                moved = targets(changed([[1, 1.1, 1.1]], [1.1]), x, rng, noise)
                cases = ((y, None), (y, null), (moved, null))
                p_values[size].append([relation_test(reference, x, z, null=n, level=0.0).p_value for z, n in cases])
        for size, found in p_values.items():
            plain, measured, power = np.array(found).T
            rates = [np.mean(p < level) for p in (plain, measured) for level in (0.05, 0.01)]
            rows.append(
                f"| {name} | {size} | " + " | ".join(f"{r:.1%}" for r in [*rates, np.mean(power < 0.01)]) + " |"
            )
    return rows


def timing_rows(rounds):
    """n* = 200, p = 5, K = 3; the best of the rounds."""
    rng = np.random.default_rng(1)
    reference = Mixture.of([0.3, 0.3, 0.4], 3 * rng.normal(size=(3, 6)), [0.5, 0.7, 1.0], 5_000)
    now = Mixture.of(reference.weights, reference.coefficients * np.array([1, 2, 2, 2, 2, 2]), reference.sigmas * 2)
    x = rng.normal(size=(200, 5))
    y = targets(now, x, rng)
    tasks = {
        "all 24 models, 10 starts, BIC": lambda: adapt(reference, x, y),
        "all 24 models, 10 starts, BIC and PRESS": lambda: adapt(reference, x, y, criterion="press"),
        "Gibbs, 1,000 sweeps, 4 chains, relabelling and diagnostics": lambda: adapt_bayes(reference, x, y),
        "relation test that finds nothing": lambda: relation_test(reference, x, targets(reference, x, rng), level=0.0),
        "calibration of the relation test (once a reference)": lambda: calibrate_relation(reference, x, y),
    }
    rows = ["| task | CPU seconds |", "|---|---|"]
    rows += [f"| {name} | {spent.best:.2f} |" for name, spent in interleaved(tasks, rounds).items()]
    return rows


def main():
    parser = options(__doc__, REPORTS / "regression.md")
    parser.add_argument("--runs", type=int, default=100)
    given = parser.parse_args()
    runs = 1 if given.quick else given.runs
    errors = by_size(max(runs // 3, 2))
    picture(errors, given.report.with_suffix(".png"))
    parts = [
        "# Adaptive mixtures of regressions",
        f"Made by `python -m tests.bench.regression --runs {runs}`.\n",
        "AMRp: the link pM3c by EM, as in the paper; AMRb: Gibbs; MR: a mixture fitted to the new labels alone."
        " Errors are, as in the paper, the smallest of the K squared errors of an event, in the mean of 5,000.\n",
        "## The introductory example\n",
        "Twenty labels on [0, 3] of a population whose coefficients and sigmas are three times the reference's;"
        " validation on [-3, 3].\n",
        *introductory(runs),
        "\n## Error against the number of labels\n",
        f"Medians of {max(runs // 3, 2)} runs.\n\n![error against labels](regression.png)\n",
        *size_rows(errors),
        "\n## What BIC selects\n",
        "The ten scenarios of section 4.2, noise as each link defines it, labels on [-3, 3]; number of selections.\n",
        "n* = 20:\n",
        *selection(max(runs // 2, 1), 20),
        "\nn* = 100:\n",
        *selection(max(runs // 4, 1), 100),
        "\nThe second coefficient of the population is zero but for the reference's error, so that M4a is M2a with its"
        " own noise, and M4b is M2d with its own noise.",
        "\n## Is the relation test's level what it says?\n",
        f"{max(runs // 10, 1)} references of 2,000 events, {20 * max(runs // 10, 1)} windows a row.\n",
        *relation_rows(max(runs // 10, 1)),
        "\n## Time\n",
        "n* = 200, p = 5, K = 3, one thread.\n",
        *timing_rows(1 if given.quick else 5),
    ]
    given.report.write_text("\n".join(parts) + "\n")
    print("\n".join(parts))


if __name__ == "__main__":
    main()

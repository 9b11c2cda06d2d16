"""The problems of tests.bench.priors, and QuaPy's times on them. Run by tests.bench.priors under QuaPy's interpreter.

Prints one JSON object. Imports nothing but NumPy until it is run, so that both sides draw the same events.
"""

import json
import sys
import time
import warnings

import numpy as np

EM_PROBLEMS = {
    "binary": (1_000_000, 2, 1.5),
    "10 classes": (1_000_000, 10, 2.0),
    "37 classes": (1_000_000, 37, 2.0),
    "37 classes, weak": (100_000, 37, 0.35),
}


def em_problems(quick):
    """The problems; their twentieth part to see quickly that all of it works."""
    return {name: (events // 20 if quick else events, *rest) for name, (events, *rest) in EM_PROBLEMS.items()}


def draw(events, classes, separation, seed=0):
    """Exact posteriors of Gaussian classes under equal source priors, and those priors."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(classes, events, p=rng.dirichlet(np.ones(classes)))
    x = rng.normal(size=(events, classes))
    x[np.arange(events), labels] += separation
    x *= separation
    x -= x.max(axis=1, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=1, keepdims=True)
    return x, np.full(classes, 1.0 / classes)


def confusion_problem():
    """Hold-out counts of ten classes, and the predictions of a window."""
    rng = np.random.default_rng(1)
    confusion = rng.integers(0, 20, (10, 10)) + 400.0 * np.eye(10)
    truth = rng.dirichlet(np.ones(10))
    return confusion, np.round(10_000 * truth @ (confusion / confusion.sum(axis=1, keepdims=True)))


def main():
    import quapy  # noqa: PLC0415 - see the docstring
    from quapy.method.aggregative import ACC, EMQ  # noqa: PLC0415

    warnings.simplefilter("ignore")

    def best_of(run, times):
        seconds = []
        for _ in range(times):
            begin = time.process_time()
            run()
            seconds.append(time.process_time() - begin)
        return min(seconds)

    found = {"version": {"quapy": quapy.__version__}}
    for name, (events, classes, separation) in em_problems("--quick" in sys.argv).items():
        g, source = draw(events, classes, separation)
        priors, _ = EMQ.EM(source, g)
        gap = np.log((1.0 / (g @ (priors / source)) @ g / (len(g) * source)).max())
        found[name] = {
            "seconds": best_of(lambda source=source, g=g: EMQ.EM(source, g), 3),
            "gap": float(gap),
        }
    confusion, counts = confusion_problem()
    rates, share = (confusion / confusion.sum(axis=1, keepdims=True)).T, counts / counts.sum()
    repeat = 20
    found["adjusted"] = {
        "seconds": best_of(
            lambda: [ACC.solve_adjustment(rates, share, "inversion", "minimize") for _ in range(repeat)], 3
        )
        / repeat
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()

"""Every estimator of the registry, from reference and window to priors, equals its slow and obvious twin."""

from functools import cache

import numpy as np
import pytest

from monitor.priors import ESTIMATORS
from monitor.tolerances import CDE_LOOPS, DOUBT, LEAST_DOUBT, RETARGETING_SHARE, SHRINKAGE
from monitor.windows.window import Window
from tests.priors import naive
from tests.priors.doubles import PlainReference, Problem

TRUTH = {2: np.array([0.3, 0.7]), 3: np.array([0.5, 0.2, 0.3])}


class World:
    """A small hold-out set, a smaller window, and what the registry keeps of the former."""

    def __init__(self, classes: int) -> None:
        rng = np.random.default_rng(classes)
        problem = Problem.simple(classes, 1.8)
        self.classes = classes
        self.g, self.labels, self.x = problem.draw(90, problem.source_priors, rng)
        self.window, _, self.features = problem.draw(60, TRUTH[classes], rng)
        self.reference = PlainReference.of(self.g, self.labels, self.x)
        self.source = self.reference.source_priors


@cache
def world(classes: int) -> World:
    return World(classes)


def matching(name: str, here: World) -> np.ndarray:
    base, soft = name.removesuffix("-soft"), name.endswith("-soft")
    kept = here.reference.statistics[base]
    kind = {"acc-qp": "one-hot", "pacc": "posteriors"}.get(base, base.split("-")[1] if "-" in base else "")
    columns = []
    for posteriors, features in ((here.g, here.x), (here.window, here.features)):
        parts = []
        if base.endswith(("-features", "-both")):
            parts.append((features - kept["features_centre"]) / kept["features_scale"])
        if base.startswith("dfm") and not base.endswith("-features"):
            parts.append((posteriors - kept["posteriors_centre"]) / kept["posteriors_scale"])
        columns.append(np.hstack(parts) if parts else posteriors)
    reference, window = (naive.images(kind, kept, rows) for rows in columns)
    return naive.matched(reference, here.labels, window, here.classes, soft)


def retargeted(here: World) -> np.ndarray:
    start = naive.exact_optimum(here.window, here.source)
    target = (1 - RETARGETING_SHARE) * start + RETARGETING_SHARE * here.source
    reference, window = (naive.correct(g, here.source, target) for g in (here.g, here.window))
    return naive.matched(reference, here.labels, window, here.classes)


def debiased(here: World) -> np.ndarray:
    """By the errors that both claim, and those of the second are no smaller than those of the first."""
    window = Window.of(here.window)
    em, second = (ESTIMATORS[name](window, here.reference) for name in ("em", "retargeted"))
    p, q = naive.exact_optimum(here.window, here.source), retargeted(here)
    own = [em.standard_errors[k] ** 2 - em.bias[k] ** 2 for k in range(here.classes)]
    others = [max(second.standard_errors[k] ** 2, own[k]) for k in range(here.classes)]
    chance = [max(others[k] - own[k], LEAST_DOUBT * own[k]) for k in range(here.classes)]
    beyond = max(sum((q[k] - p[k]) ** 2 - DOUBT**2 * chance[k] for k in range(here.classes)), 0.0)
    share = beyond / (beyond + sum(others))
    return np.array([p[k] + share * (q[k] - p[k]) for k in range(here.classes)])


def shrunk(here: World) -> np.ndarray:
    """The pseudo-events are events of certain class, SHRINKAGE of them in all for each event."""
    copies = 1000
    pseudo = np.repeat(np.eye(here.classes), np.round(here.source * 60 * copies * SHRINKAGE).astype(int), axis=0)
    return naive.exact_optimum(np.vstack([np.repeat(here.window, copies, axis=0), pseudo]), here.source)


def cde(here: World) -> np.ndarray:
    """Each class in turn is the positive one."""
    ends = [naive.cde(here.window[:, k], here.source[k], CDE_LOOPS) for k in (0, 1)]
    return np.array([1 - ends[1] + ends[0], ends[1] + 1 - ends[0]]) / 2


def twin(name: str, here: World) -> np.ndarray:
    g, pi = here.window, here.source
    twins = {
        "cc": lambda: naive.classify_and_count(g),
        "pcc": lambda: np.mean(g, axis=0),
        "acc": lambda: naive.adjusted(naive.confusion(here.g, here.labels), naive.classify_and_count(g) * len(g)),
        "cde": lambda: cde(here),
        "em": lambda: naive.exact_optimum(g, pi),
        "em-shrunk": lambda: shrunk(here),
        "em-sld": lambda: naive.sld(g, pi, 1e-6, 1000)[0],
        "em-stopped": lambda: naive.stopped(g, pi, here.g, here.labels),
        "retargeted": lambda: retargeted(here),
        "em-debiased": lambda: debiased(here),
    }
    return twins[name]() if name in twins else matching(name, here)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_the_estimate_is_that_of_the_twin(name: str) -> None:
    here = world(2 if ESTIMATORS[name].binary_only else 3)
    found = ESTIMATORS[name](Window.of(here.window, here.features), here.reference)
    np.testing.assert_allclose(found.priors, twin(name, here), atol=1e-5 if name == "em-shrunk" else 1e-8)

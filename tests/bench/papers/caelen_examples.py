"""The worked examples and the figures of Caelen's thesis, chapters 3 to 6."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from monitor.arrays import Labels, Matrix, Vector
from monitor.priors import bayes, counting, em
from monitor.priors.simplex import minimise
from tests.bench.papers.caelen_runs import refits
from tests.bench.papers.claims import Claim
from tests.priors.papers import one_dimension

STEPS = 30
DRAWS = 20  # of each figure: the thesis has one


def claims(draws: int = DRAWS) -> list[Claim]:
    """One line each."""
    return [*_arithmetic(), _thresholds(draws), *_cde(draws), *_em(draws), *_plane(draws)]


def _arithmetic() -> list[Claim]:
    counts = np.array([252, 24, 253, 247])
    alpha = np.array([-0.35057895, 1.1672324, 3.1596501, -3.97630355])
    confusion = [[248, 4, 0, 0], [4, 14, 7, 0], [0, 4, 241, 8], [0, 0, 12, 235]]
    shares = np.array([0.28, 0.18, 0.289, 0.251])
    rates = (np.array(confusion).T / np.sum(confusion, axis=1)).T
    transposed = minimise(rates.T @ rates, rates.T @ shares).point
    other = np.array(confusion, dtype=np.float64)
    other[1, 0] = 3  # so that the row sums to its 24 rows: the print has both
    solved = np.linalg.solve((other.T / other.sum(axis=1)).T, shares)
    wrong = f"the print solves the transposed system: it gives {_vector(solved)}; the truth is .25 each"
    wrong_program = f"the print solves the transposed program: it gives {_vector(transposed)}"
    rows = [
        (
            "3.3.1: intercepts after a known shift",
            [-0.61214988, 3.25703673, 2.89411877, -4.21783373],
            bayes.shift_intercepts(alpha, counts / counts.sum(), np.full(4, 0.25)),
            "",
        ),
        (
            "4.4: adjusted count, two classes",
            [0.91287, 0.08713],
            counting.adjusted([[889, 110], [115, 886]], [912, 197]).priors,
            "",
        ),
        (
            "4.5: adjusted count, four classes",
            [0.28288341, 0.1012286, 0.2934499, 0.24883235],
            counting.adjusted(confusion, shares * 1000).priors,
            wrong,
        ),
        (
            "4.5: the quadratic program",
            [0.2945241, 0.1385011, 0.3005869, 0.2663878],
            counting.adjusted_qp(confusion, shares * 1000).priors,
            wrong_program,
        ),
    ]
    return [
        Claim(what, _vector(printed), _vector(ours), bool(np.allclose(printed, ours, atol=5e-6)), why)
        for what, printed, ours, why in rows
    ]


def _vector(values: object) -> str:
    return ", ".join(f"{value:.4f}" for value in np.asarray(values))


def line(rng: np.random.Generator, size: int) -> tuple[Matrix, Labels]:
    """Section 3.3: x uniform on (-2, 2), class 1 where x + N(0, 1/4) > 0 (a variance, erratum 6)."""
    x = rng.uniform(-2, 2, size)
    return x[:, None], (x + rng.normal(0, 0.5, size) > 0).astype(np.int64)


def _thinned(y: Labels, rng: np.random.Generator) -> Labels:
    """All of class 0, and a tenth of class 1."""
    ones = np.flatnonzero(y == 1)
    return np.concatenate([np.flatnonzero(y == 0), rng.choice(ones, ones.size // 10, replace=False)])


def _thresholds(draws: int) -> Claim:
    """Figure 3.2: where the decision lies, as trained, after thinning, and after the correction."""
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        x, y = line(rng, 2_000)
        kept = _thinned(y, rng)
        whole, thin = LogisticRegression().fit(x, y), LogisticRegression().fit(x[kept], y[kept])
        source, target = np.bincount(y[kept]) / kept.size, np.bincount(y) / y.size
        moved = bayes.shift_intercepts(np.array([0.0, thin.intercept_[0]]), source, target)
        slope = thin.coef_[0, 0]
        ends = (-whole.intercept_[0] / whole.coef_[0, 0], -thin.intercept_[0] / slope, -(moved[1] - moved[0]) / slope)
        found.append(ends)
    before, thin_at, after = np.mean(found, axis=0)
    return Claim(
        "Figure 3.2: thinning moves the threshold to the right, the known shares bring it back to 0",
        "about 0, right, about 0",
        f"{before:.3f}, {thin_at:.3f}, {after:.3f} (mean of {draws} draws)",
        bool(abs(before) < 0.05 and thin_at > 0.3 and abs(after) < 0.1),
    )


def _cde(draws: int) -> list[Claim]:
    """Figure 5.1: trained on half and half, a tenth of class 1 in the target; cost-sensitive refits as printed."""
    paths, truths, thresholds = [], [], []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        x, y = line(rng, 2_000)
        target, labels = line(rng, 2_000)
        kept = _thinned(labels, rng)
        path = [y.mean(), *refits(lambda w, x=x, y=y: LogisticRegression().fit(x, y, w), y, target[kept])]
        paths.append(np.pad(path[:11], (0, max(0, 11 - len(path))), mode="edge"))
        truths.append(labels[kept].mean())
        g = LogisticRegression().fit(x, y).predict_proba(target[kept])
        thresholds.append(counting.cde_iterate(g[:, 1], float(y.mean())).priors[1])
    ends = np.array(paths)
    still = np.abs(np.diff(ends, axis=1)) < 0.005
    stable = float(np.mean([np.flatnonzero(~row)[-1] + 1 if (~row).any() else 0 for row in still]))
    mean, truth = ends[:, -1].mean(), float(np.mean(truths))
    return [
        Claim(
            "Figure 5.1: CDE starts near a half and is stable after step 3",
            "step 3",
            f"step {stable:.1f} in the mean of {draws} draws",
            bool(stable <= 4),
            f"shares in the mean of the draws {_vector(ends.mean(axis=0)[:7])}: each step thins them further "
            f"until none is "
            "left, so that the one draw in print stopped by luck of its noise",
        ),
        Claim(
            "Figure 5.1: CDE ends a little below the truth",
            "a little below",
            f"{mean:.3f}, truth {truth:.3f}; with the threshold moved instead {np.mean(thresholds):.3f}",
            bool(0.5 * truth < mean < truth),
            f"{np.mean(ends[:, -1] < 0.01):.0%} of the draws end below .01",
        ),
    ]


def _em(draws: int) -> list[Claim]:
    """Figures 6.1, 6.4, 6.7 and 6.8 and the text about them."""
    ends: dict[str, list[float]] = {"penalty": [], "stopped": [], "free": [], "forest": []}
    maxima, apart = [], []
    for seed in range(draws):
        train, labels, window, pi = one_dimension(seed, 1.0)
        ends["penalty"].append(_off(em.sld(window, pi, 0.0, STEPS).priors))
        ends["stopped"].append(_off(em.stopped(window, pi, train, labels).priors))
        maxima.append(int(np.argmax(precisions(train, labels, window, pi))))
        _, _, free, source = one_dimension(seed, 1e4)
        ends["free"].append(_off(em.sld(free, source, 0.0, STEPS).priors))
        ends["forest"].append(_off(_forest(seed)))
        apart.append(_bias_path(window, pi))
    off = {name: float(np.median(values)) for name, values in ends.items()}
    return [
        Claim(
            "6.1.2: EM does not converge to a quarter each",
            "no",
            f"largest error after {STEPS} steps {off['penalty']:.3f} (median of {draws} draws)",
            off["penalty"] > 0.1,
        ),
        Claim(
            "6.2: EM-stop ends much nearer",
            "much nearer",
            f"{off['stopped']:.3f}",
            off["stopped"] < 0.6 * off["penalty"],
        ),
        Claim(
            "(ours) It is the classifier's penalty: without it EM does arrive",
            "-",
            f"{off['free']:.3f}",
            off["free"] < 0.1,
        ),
        Claim(
            "Figure 6.4: with a random forest the priors come near a quarter",
            "near",
            f"{off['forest']:.3f}, logistic {off['penalty']:.3f}",
            off["forest"] < 0.5 * off["penalty"],
            "a forest that is grown out says 0 or 1 of its own noise: EM is off by as much as the forest's errors",
        ),
        Claim(
            "Figure 6.7: the weighted precision is largest at s = 2",
            "2",
            f"median {np.median(maxima):.0f}, from {min(maxima)} to {max(maxima)}",
            bool(np.median(maxima) == 2),
            f"{np.mean(np.array(maxima) == 2):.0%} of the draws have it at 2, "
            f"{np.mean(np.array(maxima) == 1):.0%} at 1: one draw"
            " in print",
        ),
        Claim(
            "Figure 6.8: EM on the intercepts takes the same path",
            "exactly the same",
            f"largest difference {max(apart):.1e}",
            max(apart) < 1e-12,
        ),
    ]


def _off(priors: Vector) -> float:
    return float(np.abs(priors - 0.25).max())


def precisions(train: Matrix, labels: Labels, window: Matrix, pi: Vector) -> list[float]:
    """P_W of section 6.2 along EM."""
    found = []
    for step in range(STEPS):
        priors = pi if step == 0 else em.sld(window, pi, 0.0, step).priors
        said = (train * (priors / pi)).argmax(axis=1)
        precise = [float((labels[said == y] == y).mean()) if (said == y).any() else 0.0 for y in range(pi.size)]
        found.append(float(pi @ precise))
    return found


def _forest(seed: int) -> Vector:
    """Figure 6.4, left: the same problem with a forest instead."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, 2_000)[:, None]
    y = np.clip(np.floor(x[:, 0] + rng.normal(0, 0.1, x.size)) + 2, 0, 3).astype(np.int64)
    first = np.arange(1_000)
    kept = np.concatenate([first[y[:1_000] != 1], first[y[:1_000] == 1][:24]])
    model = RandomForestClassifier(100, random_state=seed).fit(x[kept], y[kept])
    return em.sld(model.predict_proba(x[1_000:]), np.bincount(y[kept]) / kept.size, 0.0, STEPS).priors


def _bias_path(g: Matrix, pi: Vector) -> float:
    """Eq 6.3 beside eq 6.1: the softmax of logits whose intercepts move, and the mean of its posteriors."""
    logits, priors, worst = np.log(np.maximum(g, 1e-300)), pi, 0.0
    for step in range(1, STEPS + 1):
        moved = logits + bayes.shift_intercepts(np.zeros(pi.size), pi, priors)
        shares = np.exp(moved - moved.max(axis=1, keepdims=True))
        priors = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
        worst = max(worst, float(np.abs(priors - em.sld(g, pi, 0.0, step).priors).max()))
    return worst


def _plane(draws: int) -> list[Claim]:
    """Section 6.1.3: recall, precision and F1 of the thinned class before, after one step of EM, and at its end."""
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-2, 2, (10_000, 2))
        y = ((x + rng.normal(0, 0.1, x.shape)) > 0) @ np.array([1, 2])
        keep = np.concatenate([np.flatnonzero(y != 1), np.flatnonzero(y == 1)[:62]])
        model = LogisticRegression(max_iter=2_000).fit(x[keep], y[keep])
        g, source = model.predict_proba(x), np.bincount(y[keep]) / keep.size
        moved = (source, em.sld(g, source, 0.0, 1).priors, em.sld(g, source).priors)
        found.append([_scores(bayes.correct(g, source, priors), y) for priors in moved])
    mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
    printed = ((0.703, 1.0, 0.82), (0.954, 0.945, 0.949), (0.974, 0.919, 0.945))
    return [
        Claim(
            f"6.1.3: recall, precision, F1 of the thinned class {when}",
            ", ".join(f"{value:.3f}" for value in paper),
            ", ".join(f"{value:.3f}" for value in ours),
            bool(np.abs(ours - paper).max() < 0.05),
            f"standard deviations over the draws {_vector(off)}",
        )
        for when, paper, ours, off in zip(
            ("before EM", "after one step", "at its end"), printed, mean, spread, strict=True
        )
    ]


def _scores(posteriors: Matrix, labels: Labels) -> tuple[float, float, float]:
    said = posteriors.argmax(axis=1) == 1
    hits = float((said & (labels == 1)).sum())
    recall, precision = hits / float((labels == 1).sum()), hits / max(float(said.sum()), 1.0)
    return recall, precision, 2 * hits / float(said.sum() + (labels == 1).sum())

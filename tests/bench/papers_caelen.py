"""Caelen, "Quantification and learning algorithms to manage prior probability shift": examples and chapter 7 again.

    python -m tests.bench.papers_caelen [--quick] [--data FOLDER] [--loops 10] [--report FILE]

Errata of the print that matter here: example 4.5 solves a transposed system; "mse" is a sum of squares; text and
figures count the steps of EM-stop differently (we return the mean after the first fall of the weighted precision).
Tables 7.4, 7.8 and 7.10 are left out: they give an F1 without saying how it is averaged over the classes.
"""

from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from monitor.arrays import Labels, Matrix, Vector
from monitor.priors import bayes, counting, em
from tests.bench import papers_caelen_tables as chapter_7
from tests.bench.options import REPORTS, options
from tests.bench.pictures import pyplot
from tests.bench.tables import claims, markdown
from tests.priors.papers import one_dimension

STEPS = 30
FAR_FROM_CLOSE = 0.05


def printed_examples() -> str:
    """Arithmetic that stands in the thesis with its answer."""
    counts = np.array([252, 24, 253, 247])
    alpha = np.array([-0.35057895, 1.1672324, 3.1596501, -3.97630355])
    confusion = [[248, 4, 0, 0], [4, 14, 7, 0], [0, 4, 241, 8], [0, 0, 12, 235]]
    shares = np.array([0.28, 0.18, 0.289, 0.251])
    rows = [
        (
            "3.3.1: intercepts after a known shift",
            [-0.61214988, 3.25703673, 2.89411877, -4.21783373],
            bayes.shift_intercepts(alpha, counts / counts.sum(), np.full(4, 0.25)),
            "agrees",
        ),
        (
            "4.4: adjusted count, two classes",
            [0.91287, 0.08713],
            counting.adjusted([[889, 110], [115, 886]], [912, 197]).priors,
            "agrees",
        ),
        (
            "4.5: adjusted count, four classes",
            [0.28288341, 0.1012286, 0.2934499, 0.24883235],
            counting.adjusted(confusion, shares * 1000).priors,
            "the print solves the transposed system; its answer does not add up to 1",
        ),
        (
            "4.5: the quadratic program",
            [0.2945241, 0.1385011, 0.3005869, 0.2663878],
            counting.adjusted_qp(confusion, shares * 1000).priors,
            "as above; the right answer is nearer to the truth, .25 each",
        ),
    ]
    cells = [(what, _vector(printed), _vector(ours), said) for what, printed, ours, said in rows]
    return markdown(["example", "paper", "ours", ""], cells)


def _vector(values: object) -> str:
    return ", ".join(f"{value:.4f}" for value in np.asarray(values))


def paths() -> tuple[dict[str, Matrix], dict[str, Vector]]:
    """Figures 6.1, 6.7, 6.8: the priors along EM, and where EM-stop ends, under the default penalty and hardly any."""
    walked, stopped = {}, {}
    for name, penalty in (("the default L2 penalty", 1.0), ("hardly any penalty", 1e4)):
        train, labels, window, source = one_dimension(0, penalty)
        walked[name] = np.array([source, *(em.sld(window, source, 0.0, steps).priors for steps in range(1, STEPS + 1))])
        stopped[name] = em.stopped(window, source, train, labels).priors
    return walked, stopped


def picture(walked: dict[str, Matrix], path: Path) -> None:
    """As figure 6.1, left."""
    plt = pyplot()

    figure, axes = plt.subplots(1, len(walked), figsize=(9, 3.4), sharey=True, layout="constrained")
    for axis, (name, priors) in zip(axes, walked.items(), strict=True):
        for y, line in enumerate(priors.T):
            axis.plot(line, label=f"class {y}")
        axis.axhline(0.25, color="black", linestyle=":")
        axis.set(title=name, xlabel="step of EM")
    axes[0].set_ylabel("prior")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=90)


def two_dimensions(seed: int) -> list[tuple[str, float, float, float]]:
    """Section 6.1.3: recall, precision and F1 of the thinned class before, after one step of EM, and at its end."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (10_000, 2))
    y = ((x + rng.normal(0, 0.1, x.shape)) > 0) @ np.array([1, 2])
    keep = np.concatenate([np.flatnonzero(y != 1), np.flatnonzero(y == 1)[:62]])
    model = LogisticRegression(max_iter=2_000).fit(x[keep], y[keep])
    g, source = model.predict_proba(x), np.bincount(y[keep]) / keep.size
    moved = {"before": source, "one step": em.sld(g, source, 0.0, 1).priors, "converged": em.sld(g, source).priors}
    return [(name, *_scores(bayes.correct(g, source, priors), y)) for name, priors in moved.items()]


def _scores(posteriors: Matrix, labels: Labels) -> tuple[float, float, float]:
    said = posteriors.argmax(axis=1) == 1
    hits = float((said & (labels == 1)).sum())
    recall, precision = hits / float((labels == 1).sum()), hits / max(float(said.sum()), 1.0)
    return recall, precision, 2 * hits / float(said.sum() + (labels == 1).sum())


PRINTED_2D = {"before": (0.703, 1.0, 0.82), "one step": (0.954, 0.945, 0.949), "converged": (0.974, 0.919, 0.945)}


def examples_hold(
    walked: dict[str, Matrix], stopped: dict[str, Vector], plane: list[tuple[str, float, float, float]]
) -> str:
    """The text about the examples."""
    (_, penal), (_, free) = walked.items()
    stop = stopped["the default L2 penalty"]
    off = {name: float(np.abs(priors[-1] - 0.25).max()) for name, priors in walked.items()}
    at_stop = float(np.abs(stop - 0.25).max())
    f1 = [row[3] for row in plane]
    return claims(
        [
            (
                "6.1.2: EM does not converge to a quarter each",
                bool(np.abs(penal[-1] - 0.25).max() > FAR_FROM_CLOSE),
                f"largest error {off['the default L2 penalty']:.3f} after {STEPS} steps",
            ),
            (
                "6.2: EM-stop ends much nearer",
                at_stop < 0.6 * off["the default L2 penalty"],
                f"largest error {at_stop:.3f}",
            ),
            (
                "(not the paper's) It is the classifier's penalty: without it EM does arrive",
                bool(np.abs(free[-1] - 0.25).max() < FAR_FROM_CLOSE),
                f"largest error {off['hardly any penalty']:.3f}",
            ),
            (
                "6.1.3: one step of EM raises F1 of the rare class from .82 to .95",
                f1[1] > f1[0] + 0.05,
                f"{f1[0]:.3f} to {f1[1]:.3f}",
            ),
            ("... and going on to the end changes it little", abs(f1[2] - f1[1]) < 0.02, f"{f1[1]:.3f} to {f1[2]:.3f}"),
        ]
    )


def main() -> None:
    parser = options(__doc__, REPORTS / "papers_caelen.md")
    parser.add_argument("--data", type=Path, help="folder of UCI tables (CSV, class last)")
    parser.add_argument("--loops", type=int, default=10, help="splits of each data set; the paper took 100")
    given = parser.parse_args()
    walked, stopped = paths()
    plane = two_dimensions(0)
    rows = [
        [name, *(f"{ours:.3f} ({paper:.3f})" for ours, paper in zip(found, PRINTED_2D[name], strict=True))]
        for name, *found in plane
    ]
    text = "\n".join(
        [
            "# Prior probability shift: Caelen (2019)\n",
            f"Made by `python -m tests.bench.papers_caelen`.\n\nErrata{__doc__.partition('Errata')[2]}",
            "## Which statements about the examples hold here\n",
            examples_hold(walked, stopped, plane),
            "## Worked examples\n",
            printed_examples(),
            "## Figure 6.1, and what its divergence comes from\n",
            f"One class of four is thinned from 248 to 24 of 1,000 events.\n\n![EM]({given.report.stem}.png)\n",
            "## Section 6.1.3: the thinned class, ours (paper)\n",
            markdown(["", "recall", "precision", "F1"], rows),
            chapter_7.report(given.data, 1 if given.quick else given.loops, given.quick),
        ]
    )
    picture(walked, given.report.with_suffix(".png"))
    given.report.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

"""Caelen (2019), "Quantification and learning algorithms to manage prior probability shift": examples and chapter 7.

Algorithm 3 on the 16 of the 25 data sets that can be had, with as many splits as the tables below say (the thesis has
100), of no data set more than 2,000 rows. "Logistic" is what scikit-learn's default was in 2019, one model a class;
"softmax" is today's. Errata that matter: "mse" is a sum of squares, Algorithm 4 forgets to keep what it draws, EM-stop
gives the mean after the last step before the weighted precision falls first. The thesis does not say how F1 is averaged
over the classes: both ways are shown. A split in which a thinned class has a single row is left out: nothing can be
cross-validated on it. Forests take the unseen rows of each tree where the thesis cross-validates. "em, calibrated" is
ours: EM on posteriors that were calibrated on the training rows' unseen scores.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from scipy.stats import ttest_rel

from monitor import calibration
from monitor.priors import bayes, counting, em, likelihood
from tests.bench.papers import caelen_examples as examples
from tests.bench.papers import caelen_ranks, caelen_runs
from tests.bench.papers.caelen_print import ERRORS, SCORES
from tests.bench.papers.caelen_runs import BETAS, CLASSIFIERS, COLUMNS, KINDS, MAX_ROWS, QUANTIFIERS
from tests.bench.papers.claims import Claim, Given, Study
from tests.bench.papers.data import DataSet, of_caelen
from tests.bench.tables import markdown

SPLITS = {"logistic": 20, "softmax": 10, "random forest": 5}
PRINTED_KINDS = ("logistic", "random forest")
CODE = (caelen_runs, bayes, calibration, counting, em, likelihood)
LARGE = ("waveform", "abalone", "banknote_authentication", "segment", "letter", "magic", "penbased", "spambase")
QUICK = ("iris", "wine", "balance")

Found = dict[str, dict[str, np.ndarray]]


def measured(given: Given) -> Found:
    """By model and data set: (splits, intensities, columns)."""
    sets = list(_data_sets(given))
    found: Found = {}
    for kind in KINDS[: 2 if given.quick else None]:  # forests take most of the time
        rows = {
            (name, seed): given.cells.get(
                f"caelen {kind} {name} {seed}", CODE, partial(caelen_runs.split, x, y, kind, seed)
            )
            for seed in range(2 if given.quick else SPLITS[kind])
            for name, x, y in sets
        }
        found[kind] = {
            name: np.array([row for (one, _), row in rows.items() if one == name]).reshape(-1, len(BETAS), len(COLUMNS))
            for name, _, _ in sets
        }
    return found


def _data_sets(given: Given) -> Iterator[DataSet]:
    for name, x, y in of_caelen(given.data):
        if not given.quick or name in QUICK:
            rows = np.random.default_rng(0).permutation(y.size)[:MAX_ROWS]
            yield name, x[rows], np.unique(y[rows], return_inverse=True)[1]


def study(given: Given) -> Study:
    """The worked examples, the sentences of section 7.2, and its tables."""
    found = measured(given)
    said = examples.claims(4 if given.quick else examples.DRAWS)
    for kind in (kind for kind in PRINTED_KINDS if kind in found):
        said += _claims(kind, found[kind])
    return Study([*said, *_softmax(found)], _body(found))


def _means(tables: dict[str, np.ndarray]) -> np.ndarray:
    """(data sets, intensities, columns): over the splits that there are."""
    return np.array([np.nanmean(table, axis=0) for table in tables.values()])


def _mean(means: np.ndarray, column: str) -> np.ndarray:
    """By intensity, over the data sets that have it."""
    return np.asarray(np.nanmean(means[..., COLUMNS.index(column)], axis=0))


def _claims(kind: str, tables: dict[str, np.ndarray]) -> list[Claim]:
    means = _means(tables)
    errors = {name: _mean(means, f"{name}, priors") for name in QUANTIFIERS}
    source, base, plain, stop, qp, ours = (
        errors[name] for name in ("source", "base", "em", "em-stop", "acc-qp", "em, calibrated")
    )
    printed = ERRORS[kind]
    ratio = _mean(means, "source error per class") / source

    def claim(says: str, paper: str, figures: str, holds: object, why: str = "") -> Claim:
        return Claim(f"{kind}: {says}", paper, figures, bool(holds), why)

    def path(values: Sequence[float] | np.ndarray) -> str:
        return ", ".join(f"{value:.4f}" for value in values)

    logistic = kind == "logistic"
    low = slice(0, 5) if logistic else slice(0, 7)
    said = [
        claim(
            "Table 7.2, doing nothing costs the more, the harder the shift",
            path(printed["source"]),
            path(source),
            (np.diff(source) < 0).all(),
        ),
        claim(
            "Table 7.3, base (printed .37 to .40 of doing nothing at every intensity)",
            path(printed["base"]),
            path(base),
            np.abs(base / np.array(printed["base"]) - 1).max() < 0.5,
            f"base is not what is printed: the error of doing nothing, divided by the number of classes, is "
            f"{ratio.min():.2f} to {ratio.max():.2f} of that error here, as the printed base is of the printed error "
            f"({min(_ratios(printed)):.2f} to {max(_ratios(printed)):.2f}): the print averages the training "
            f"shares' errors"
            " over the classes",
        ),
        claim(
            "Table 7.3, base beats em and em-stop at .9",
            f"{printed['base'][-1]:.4f}; {printed['em'][-1]:.4f}, {printed['em-stop'][-1]:.4f}",
            f"{base[-1]:.4f}; {plain[-1]:.4f}, {stop[-1]:.4f}",
            base[-1] < min(plain[-1], stop[-1]),
            _paired(means, "base", "em-stop", -1)
            + f"; what is printed as base, the training shares' error over the classes, is {(source * ratio)[-1]:.4f} "
            "here and would beat both",
        ),
        claim(
            "em-stop beats base up to .5" if logistic else "em-stop beats base up to .7",
            "at every one",
            path(stop[low] - base[low]),
            (stop[low] < base[low]).all(),
            _paired(means, "em-stop", "base", low.stop - 1),
        ),
        claim(
            "em-stop beats em at every intensity" if logistic else "em-stop beats em from .3 on",
            path(np.array(printed["em-stop"]) - printed["em"]),
            path(stop - plain),
            (stop < plain)[0 if logistic else 2 :].all(),
            _where_em_wins(tables, means),
        ),
        *(
            []
            if logistic
            else [
                claim(
                    "em beats em-stop at .1",
                    f"{printed['em'][0]:.4f}, {printed['em-stop'][0]:.4f}",
                    f"{plain[0]:.4f}, {stop[0]:.4f}",
                    plain[0] < stop[0],
                    _paired(means, "em-stop", "em", 0),
                )
            ]
        ),
        claim(
            "Table 7.7, acc-qp is never the best of em-stop, base, acc-qp",
            "never",
            path(qp - np.minimum(stop, base)),
            (qp > np.minimum(stop, base)).all(),
            _where_acc_wins(tables),
        ),
        *_cde(kind, means, errors, claim),
        claim(
            "Figure 7.1, em-stop takes more steps, the smaller the shift",
            "rising",
            ", ".join(f"{value:.1f}" for value in _mean(means, "loops of em-stop")),
            _mean(means, "loops of em-stop")[-1] > _mean(means, "loops of em-stop")[0],
        ),
        *_scores(kind, means, claim),
        _failures(kind, tables),
        _clip_or_program(kind, tables),
        claim(
            "(ours) EM on calibrated posteriors beats em at every intensity",
            path(plain),
            path(ours),
            (ours < plain).all(),
            _by_size(tables, "em, calibrated", "em"),
        ),
        *caelen_ranks.claims(kind, means),
    ]
    return said


def _ratios(printed: dict[str, tuple[float, ...]]) -> list[float]:
    return [base / source for base, source in zip(printed["base"], printed["source"], strict=True)]


def _paired(means: np.ndarray, first: str, second: str, at: int) -> str:
    """The thesis' paired t-test over the data sets, at one intensity."""
    a, b = (means[:, at, COLUMNS.index(f"{name}, priors")] for name in (first, second))
    there = np.isfinite(a) & np.isfinite(b)
    p = ttest_rel(a[there], b[there]).pvalue
    return (
        f"paired t-test over {there.sum()} data sets at {BETAS[at]}: p = {p:.2g}, {first} better in "
        f"{np.mean(a[there] < b[there]):.0%}"
    )


def _where_em_wins(tables: dict[str, np.ndarray], means: np.ndarray) -> str:
    """At the intensities where em beats em-stop: the sets that decide it."""
    em, stop = (means[..., COLUMNS.index(f"{name}, priors")] for name in ("em", "em-stop"))
    gain = np.nanmean(stop - em, axis=1)
    order = np.argsort(-gain)[:3]
    names = list(tables)
    told = ", ".join(f"{names[i]} {gain[i]:+.4f}" for i in order)
    return (
        f"em is better most on {told} (mean over the intensities); em-stop is better on "
        f"{np.mean(gain < 0):.0%} of the data sets"
    )


def _by_size(tables: dict[str, np.ndarray], first: str, second: str) -> str:
    """What calibration costs where there is little to calibrate on."""
    gains = {True: [], False: []}
    for name, table in tables.items():
        a, b = (table[..., COLUMNS.index(f"{n}, priors")] for n in (first, second))
        gains[name in LARGE].append(float(np.nanmean(b - a)))
    return (
        f"gain in the mean over the intensities: {np.mean(gains[False] or [np.nan]):+.4f} on data sets of fewer than "
        f"1,000 rows, {np.mean(gains[True] or [np.nan]):+.4f} on the larger ones"
    )


def _windows(tables: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All splits and intensities in one column by name."""
    rows = np.concatenate([table.reshape(-1, len(COLUMNS)) for table in tables.values()])
    rows = rows[np.isfinite(rows[:, 0])]
    return {name: rows[:, i] for i, name in enumerate(COLUMNS)}


def _clip_or_program(kind: str, tables: dict[str, np.ndarray]) -> Claim:
    """Chapter 8 asks whether to clip the solution of ACC's system or to solve a program."""
    at = _windows(tables)
    singular, outside = at["singular"] > 0, at["outside of [0, 1]"] > 0

    def errors(where: np.ndarray) -> tuple[float, float]:
        clipped, program = (float(np.mean(at[f"{name}, priors"][where])) for name in ("acc", "acc-qp"))
        return clipped, program

    clipped, program = errors(outside)
    smallest, any_one = errors(singular)
    same, sound = errors(~singular & ~outside)
    return Claim(
        f"{kind}: (ours) chapter 8's question, clip or program: the program is better where the system has a solution "
        f"that is no distribution",
        "-",
        f"{outside.sum()} windows of {outside.size}: clipped {clipped:.3f}, program {program:.3f}; in {singular.sum()} "
        f"singular ones the smallest solution, clipped, {smallest:.3f}, program {any_one:.3f}; in all others both "
        f"{same:.3f}",
        program < clipped,
        f"the program is better in {np.mean((at['acc-qp, priors'] < at['acc, priors'])[outside]):.0%} of these "
        f"windows; with a distribution for a solution they agree: {same:.4f}, {sound:.4f}",
    )


def _softmax(found: Found) -> list[Claim]:
    """Beside the default of 2019."""
    old, new = (
        {name: _mean(_means(found[kind]), f"{name}, priors") for name in ("em", "em-stop")}
        for kind in ("logistic", "softmax")
    )

    def path(values: np.ndarray) -> str:
        return ", ".join(f"{value:.4f}" for value in values)

    return [
        Claim(
            "softmax: (ours) EM's errors are those of one model a class: with a softmax they are less than half at "
            "every intensity",
            path(np.array(ERRORS["logistic"]["em"])),
            f"{path(new['em'])}; one model a class {path(old['em'])}",
            bool((new["em"] < 0.5 * old["em"]).all()),
            f"less at {np.sum(new['em'] < old['em'])} of {len(BETAS)} intensities",
        ),
        Claim(
            "softmax: em-stop beats em at every intensity",
            path(np.array(ERRORS["logistic"]["em-stop"])),
            f"{path(new['em-stop'])}; em {path(new['em'])}",
            bool((new["em-stop"] < new["em"]).all()),
            f"better at {', '.join(f'{b}' for b, w in zip(BETAS, new['em-stop'] < new['em'], strict=True) if w)}: "
            f"stopping early keeps near the training shares, near the truth where the shift is light; with one model a "
            f"class better at {np.sum(old['em-stop'] < old['em'])} of {len(BETAS)}",
        ),
    ]


def _where_acc_wins(tables: dict[str, np.ndarray]) -> str:
    """When ACC wins (chapter 8): by whether its system is sound, and how good the classifier is."""
    at = _windows(tables)
    best = at["acc-qp, priors"] < np.minimum(at["em-stop, priors"], at["base, priors"])
    good, sound = at["oracle, F1 macro"] > 0.9, at["singular"] == 0
    inside = sound & (at["outside of [0, 1]"] == 0)
    return (
        f"of single windows acc-qp is best in {best.mean():.0%}; where the system is singular "
        f"{best[~sound].mean():.0%}, where its "
        f"solution is a distribution {best[inside].mean():.0%}, there with F1 of the oracle above .9 "
        f"{best[inside & good].mean():.0%}"
    )


def _cde(kind: str, means: np.ndarray, errors: dict[str, np.ndarray], claim: Callable[..., Claim]) -> list[Claim]:
    binary = means[np.isfinite(means[:, -1, COLUMNS.index("cde, priors")])]
    if not len(binary):
        return []
    moved, stop, base = (_mean(binary, f"{name}, priors") for name in ("cde", "em-stop", "base"))
    refitted = errors["cde refitted"]
    figures = ", ".join(f"{value:.4f}" for value in moved)
    again = f"; refitted {', '.join(f'{v:.4f}' for v in refitted)}" if np.isfinite(refitted).any() else ""
    printed = ", ".join(f"{value:.4f}" for value in ERRORS[kind]["cde"])
    return [
        claim(
            f"Table 7.9, cde loses to em-stop at every intensity ({len(binary)} data sets)",
            printed,
            figures + again,
            (moved > stop).all(),
            f"em-stop {', '.join(f'{v:.4f}' for v in stop)}",
        ),
        claim(
            "Table 7.9, cde beats base where the shift is hard (.1)",
            f"{ERRORS[kind]['cde'][0]:.3f} against .148",
            f"{moved[0]:.4f}{f' (refitted {refitted[0]:.4f})' if again else ''} against {base[0]:.4f}",
            min(moved[0], np.nan_to_num(refitted[0], nan=np.inf)) < base[0],
            f"cde is pulled to 0 or 1, which absorb: at .1 it ends within .001 of them in "
            f"{_absorbed(binary):.0%} of the data sets; and the printed base is the error of the training "
            f"shares (above)",
        ),
    ]


def _absorbed(binary: np.ndarray) -> float:
    """The share of data sets whose error is at least the square of what is left when a class is gone."""
    return float(np.mean(binary[:, 0, COLUMNS.index("cde, priors")] > 0.1))


def _scores(kind: str, means: np.ndarray, claim: Callable[..., Claim]) -> list[Claim]:
    said = []
    for average in ("macro", "weighted"):
        score = {name: _mean(means, f"{name}, F1 {average}") for name in CLASSIFIERS}
        printed = SCORES[kind]
        said += [
            claim(
                f"Table 7.4, oracle is best, oracle-bayes next, at every intensity (F1 {average})",
                f".1: {printed['oracle'][0]:.3f}, {printed['oracle-bayes'][0]:.3f}, em-stop "
                f"{printed['em-stop'][0]:.3f}",
                f".1: {score['oracle'][0]:.3f}, {score['oracle-bayes'][0]:.3f}, em-stop {score['em-stop'][0]:.3f}",
                all((score["oracle"] + 0.002 >= score["oracle-bayes"]).tolist())
                and bool((score["oracle-bayes"] + 0.002 >= np.maximum(score["em"], score["em-stop"])).all()),
                "oracle - oracle-bayes "
                + ", ".join(f"{v:+.3f}" for v in score["oracle"] - score["oracle-bayes"])
                + "; oracle-bayes - em-stop "
                + ", ".join(f"{v:+.3f}" for v in score["oracle-bayes"] - score["em-stop"])
                + ": the Bayes rule of true shares is made for accuracy, not for F1 over classes",
            ),
            claim(
                f"Table 7.4, em-stop beats em at every intensity{'' if kind == 'logistic' else ' but .1'} (F1 "
                f"{average})",
                ", ".join(f"{a - b:+.3f}" for a, b in zip(printed["em-stop"], printed["em"], strict=True)),
                ", ".join(f"{v:+.3f}" for v in score["em-stop"] - score["em"]),
                (score["em-stop"] > score["em"])[0 if kind == "logistic" else 1 :].all(),
                f"mean gain {np.mean(score['em-stop'] - score['em']):+.4f}; calibrated posteriors take em itself to "
                + ", ".join(f"{v:.3f}" for v in score["em, calibrated"]),
            ),
            claim(
                f"Table 7.8, acc-qp has lower F1 than em-stop at every intensity (F1 {average})",
                ", ".join(f"{a - b:+.3f}" for a, b in zip(printed["acc-qp"], printed["em-stop"], strict=True)),
                ", ".join(f"{v:+.3f}" for v in score["acc-qp"] - score["em-stop"]),
                (score["acc-qp"] < score["em-stop"]).all(),
                f"mean {np.mean(score['acc-qp'] - score['em-stop']):+.4f}",
            ),
            claim(
                f"Table 7.10, cde has lower F1 than em-stop at every intensity (F1 {average}, two classes)",
                ", ".join(f"{v:.3f}" for v in printed["cde"]),
                ", ".join(f"{v:.3f}" for v in score["cde"]),
                (score["cde"] < _two_classes(means, f"em-stop, F1 {average}")).all(),
                "em-stop " + ", ".join(f"{v:.3f}" for v in _two_classes(means, f"em-stop, F1 {average}")),
            ),
        ]
    return said


def _two_classes(means: np.ndarray, column: str) -> np.ndarray:
    return _mean(means[np.isfinite(means[:, -1, COLUMNS.index("cde, priors")])], column)


def _failures(kind: str, tables: dict[str, np.ndarray]) -> Claim:
    rows = {name: np.nanmean(table, axis=0) for name, table in tables.items()}
    singular = np.mean([row[:, COLUMNS.index("singular")] for row in rows.values()], axis=0)
    outside = np.mean([row[:, COLUMNS.index("outside of [0, 1]")] for row in rows.values()], axis=0)
    clean = [name for name, row in rows.items()
             if not row[:, [COLUMNS.index("singular"), COLUMNS.index("outside of [0, 1]")]].any()]  # fmt: skip
    return Claim(
        f"{kind}: Table 7.6, ACC's system is singular the more often, the harder the shift; Banknote never fails",
        "singular 44 % at .1 to 5 % at .9 (logistic)" if kind == "logistic" else "singular 45 % at .1 to 4 % at .9",
        f"singular {', '.join(f'{v:.0%}' for v in singular)}; no distribution "
        f"{', '.join(f'{v:.0%}' for v in outside)}; "
        f"never fails on {', '.join(clean) or 'none'}",
        bool(
            singular[0] > singular[-1] and ("banknote_authentication" in clean or "banknote_authentication" not in rows)
        ),
        "failures on banknote_authentication by intensity "
        + ", ".join(f"{v:.0%}" for v in rows.get("banknote_authentication", np.zeros((1, len(COLUMNS))))[:, -2])
        + ": 2,000 rows at most and five folds leave few errors to count",
    )


def _body(found: Found) -> str:
    parts = []
    for kind, tables in found.items():
        means = _means(tables)
        splits = len(next(iter(tables.values())))
        parts.append(
            f"## {kind.capitalize()}: {splits} splits of {len(tables)} data sets ({', '.join(tables)}), ours (paper)\n"
        )
        for what, names, printed in (
            ("priors", QUANTIFIERS, ERRORS),
            ("F1 macro", CLASSIFIERS, SCORES),
            ("F1 weighted", CLASSIFIERS, SCORES),
        ):
            rows = [
                [
                    f"{beta:.1f}",
                    *(
                        _beside(_mean(means, f"{name}, {what}")[b], printed.get(kind, printed["logistic"]).get(name), b)
                        for name in names
                    ),
                ]
                for b, beta in enumerate(BETAS)
            ]
            parts += [f"### {what}\n", markdown(["beta", *names], rows)]
        parts.append(f"When ACC wins (chapter 8): {_where_acc_wins(tables)}.\n")
        failed = [
            [name, *(f"{a:.0%} {b:.0%}" for a, b in zip(*np.nanmean(table, axis=0)[:, -3:-1].T, strict=True))]
            for name, table in tables.items()
        ]
        parts += [
            "### Table 7.6: singular, no distribution\n",
            markdown(["data set", *(f"{b:.1f}" for b in BETAS)], failed),
        ]
    return "\n".join(parts)


def _beside(ours: float, printed: tuple[float, ...] | None, at: int) -> str:
    shown = f"{ours:.4f}" if np.isfinite(ours) else "-"
    return shown if printed is None else f"{shown} ({printed[at]:.4f})"

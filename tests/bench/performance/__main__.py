"""How right is the performance that is estimated without labels?

    python -m tests.bench.performance --data FOLDER --state FILE --report tests/bench/reports/performance.md

Real data sets in random order, four models each. A model is trained on a quarter of the rows, the reference is built
from another quarter (at most 2,000 rows), and windows of 1,000 (digits: 450) are drawn from the rest: as it is, and
each under a class mix of its own (.7 of a draw from a Dirichlet distribution of 2, .3 of the hold-out's shares). What
the windows' labels show is the truth. Windows that get another verdict than `stable` and `prior-shift` are left out, as
nothing is published of them; CBPE is judged by the same windows.

The figures of one split hang together by its hold-out events, so there are many splits and few windows of each. Two
seeds do not tell a coverage of .95 from one of .98. Without a shift accuracy is held a little more often than in .95:
the interval allows for a class mix that has moved by less than a window shows, and it has not moved.
"""

import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from monitor import Reference, Window, assess
from monitor.performance import Decisions, Scores, measures
from tests.bench import tables
from tests.bench.kept import Kept
from tests.bench.options import options, pythons
from tests.bench.performance.cbpe import Peer, formula, nannyml
from tests.bench.performance.problems import DATA, MODELS, unit, windows

WINDOWS = 5
CLAIMED = ("accuracy", "roc_auc", "macro_roc_auc")

Row = tuple[str, str, bool, str, float, float, float, float, float, float, float]
"""Data, model, shifted, measure; truth; ours with interval; CBPE with interval."""


def judged(name: str, model: str, folder: Path, seed: int, cbpe: Peer) -> list[Row | None]:
    """Every measure of every window of one split; None for a window of which nothing is published."""
    one = unit(name, model, folder, seed)
    classes = one.hold_out.shape[1]
    names = tuple(map(str, range(classes)))
    reference = Reference.fit(one.hold_out, one.labels, classes=names)
    every = measures(classes, 1, costs=False, ranking=True)
    claimed = [measure for measure in every if measure in CLAIMED]
    drawn = [(shifted, *each) for shifted in (False, True) for each in windows(one, shifted, WINDOWS, seed)]
    peer = cbpe(one.hold_out, one.labels, [p for _, p, _ in drawn], claimed)
    rows = list[Row | None]()
    for (shifted, p, y), theirs in zip(drawn, peer, strict=True):
        found = assess(Window.of(p), reference, decisions=Decisions(ranking=True)).performance
        if found.withheld:
            rows.append(None)
            continue
        scores = Scores(p, p, p.argmax(axis=1))
        for measure, ours in found.figures.items():
            truth = every[measure].of(scores, np.eye(classes)[y])[0]
            other = theirs.get(measure, (float("nan"),) * 3)
            rows.append((name, model, shifted, measure, truth, ours.value, ours.lower, ours.upper, *other))
    return rows


def summary(rows: list[Row], by: tuple[int, ...]) -> str:
    """Coverage, width and mean absolute error of every group of rows."""
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[at] for at in by), []).append(row)
    lines = []
    for key, members in sorted(groups.items(), key=str):
        truth, ours, low, high, theirs, their_low, their_high = np.array([row[4:] for row in members]).T
        held = np.mean((low <= truth) & (truth <= high))
        told = np.isfinite(their_low)
        their_held = np.mean(((their_low <= truth) & (truth <= their_high))[told]) if told.any() else float("nan")
        cells = [f"{held:.3f}", f"{np.mean(high - low):.4f}", f"{np.abs(ours - truth).mean():.4f}"]
        theirs_off = float(np.abs(theirs - truth).mean())
        cells += [f"{np.mean(ours - truth):+.4f}", "" if np.isnan(theirs_off) else f"{theirs_off:.4f}"]
        cells += ["" if np.isnan(their_held) else f"{their_held:.3f}"]
        words = ["prior shift" if part is True else "no shift" if part is False else str(part) for part in key]
        lines.append([*words, str(len(members)), *cells])
    heads = [("data", "model", "shift", "measure")[at] for at in by]
    columns = [*heads, "windows", "coverage", "width", "error", "bias", "CBPE error", "CBPE coverage"]
    return tables.markdown(columns, lines)


def claims(seeds: list[list[Row]]) -> str:
    """What has to hold; coverage with its standard error, as the splits of each seed show it."""
    stated = []
    for shifted in (False, True):
        for measure, names in (("accuracy", ("accuracy",)), ("ROC AUC", CLAIMED[1:])):
            some = [[row for row in rows if row[2] is shifted and row[3] in names] for rows in seeds]
            truth, ours, low, high, theirs = np.array([row[4:9] for rows in some for row in rows]).T
            inside = (low <= truth) & (truth <= high)
            held = float(inside.mean())
            by_seed = [part.mean() for part in np.split(inside, np.cumsum([len(rows) for rows in some])[:-1])]
            spread = float(np.std(by_seed, ddof=1) / np.sqrt(len(seeds))) if len(seeds) > 1 else float("nan")
            error, other = float(np.abs(ours - truth).mean()), float(np.abs(theirs - truth).mean())
            where = f"{measure}, {'prior shift' if shifted else 'no shift'}"
            figure = f"{held:.3f} of {inside.size:,}, give or take {spread:.3f}"
            stated.append((f"{where}: coverage .93 to .97", 0.93 <= held <= 0.97, figure))
            stated.append((f"{where}: error at most CBPE's", error <= other, f"{error:.4f}, {other:.4f}"))
    return tables.claims(stated)


def page(seeds: list[list[Row]], missing: int, command: str, peer: str) -> str:
    """The report."""
    rows = [row for each in seeds for row in each]
    known = [row for row in rows if row[3] in CLAIMED]
    return "\n".join(
        [
            "# How right the performance is that is estimated without labels",
            "",
            f"Made by `{command}`.",
            "",
            *(__doc__ or "").split("\n\n", 2)[2].strip().splitlines(),
            "",
            f"CBPE is {peer}. Of {missing} further windows nothing was published.",
            "",
            claims(seeds),
            "## Accuracy and ROC AUC, by data set",
            "",
            summary(known, (3, 2, 0)),
            "## By model",
            "",
            summary(known, (3, 2, 1)),
            "## Every measure",
            "",
            summary(rows, (3, 2)),
        ]
    )


def main() -> None:
    """Do what is not in the state file, and write the page of what is."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of weather.csv, phoneme.csv and streams/")
    parser.add_argument("--state", type=Path, help="a file of JSON lines: what it holds is not done again")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--peer", action="append", default=[], help="nannyml=PYTHON")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")
    python = pythons(given.peer).get("nannyml")
    cbpe = nannyml(python) if python else formula
    kept = Kept(given.state)
    seeds, missing = list[list[Row]](), 0
    for seed in range(1 if given.quick else given.seeds):
        units = [
            kept.answer((name, model, seed), partial(judged, name, model, given.data, seed, cbpe))
            for name in DATA
            for model in MODELS
        ]
        seeds.append([tuple(row) for rows in units for row in rows if row is not None])
        missing += sum(row is None for rows in units for row in rows)
    peer = "NannyML's, of the interpreter given" if python else "its published formula, on isotonic calibration"
    text = page(seeds, missing, " ".join(["python -m tests.bench.performance", *sys.argv[1:]]), peer)
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

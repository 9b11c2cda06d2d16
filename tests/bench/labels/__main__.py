"""Does the correction that is learned from late labels make scores better, and never worse?

    python -m tests.bench.labels --data FOLDER --report tests/bench/reports/labels.md
    python -m tests.bench.labels --csv FILE --target COLUMN --block N

Real streams in time order and made-up ones, each scored by five models. A model is trained on
the first fifth, the reference is built from the second, and the rest comes in windows; a part of the events is labelled
so many windows later. Brier score and log loss are those of all events, labelled or not, before and after the pool of
corrections, from the first window on.

A model whose scores are all right (Brier score below a thousandth) has no ratio. What is bounded for any labels is the
log loss. A model that is certain and wrong can pay for that by its Brier score: Gaussian naive Bayes without smoothing,
certain of 98 % and right in 86 % of Luxembourg, got a lower log loss and a Brier score higher by up to .07.
"""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.bench import tables
from tests.bench.labels import concept
from tests.bench.labels.streams import MADE_UP, MODELS, Scored, made_up, real, scored
from tests.bench.labels.study import DELAYS, RATES, Run, run, runs
from tests.bench.options import options
from tests.bench.streams.cells import usual_block
from tests.bench.streams.table import from_file
from tests.bench.streams.text import UnusableError

PERFECT = 1e-3
OFTEN = 3.0
"""How many times as often one class is labelled where labels are selected."""


def ratio(found: Sequence[Run]) -> float:
    """The mean over runs."""
    return float(np.mean([one.ratio for one in found if one.brier[0] > PERFECT] or [np.nan]))


def worst(found: Sequence[Run], score: int) -> str:
    """The largest increase, and where."""
    if not found:
        return "no runs"
    most = max(found, key=lambda one: one.worse[score])
    return f"{most.worse[score]:+.4f} ({most.stream}, {most.model}, {most.delay} windows late, {most.rate:.0%})"


def claims(found: Sequence[Run]) -> str:
    """What has to hold."""
    made = [one for one in found if one.stream in MADE_UP]
    natural = [one for one in found if one.stream not in MADE_UP]
    walking, still = ([one for one in made if one.stream == name] for name in ("walking mix", "still"))
    stated = [
        (
            f"{name}: at most + .001 against the scores as they were",
            max(o.worse[k] for o in found) <= 0.001,
            worst(found, k),
        )
        for k, name in enumerate(("Brier score", "log loss"))
    ]
    if natural:
        stated.append(("Brier ratio at most .80 on real streams", ratio(natural) <= 0.8, f"{ratio(natural):.3f}"))
    if made:
        stated.append(("Brier ratio at most .75 under a walking mix", ratio(walking) <= 0.75, f"{ratio(walking):.3f}"))
        calm = max(max(one.worse) for one in still)
        stated.append(("still streams: at most + .0002", calm <= 0.0002, f"{calm:+.5f}"))
    return tables.claims(stated)


def by_stream(found: Sequence[Run]) -> str:
    """The Brier ratio by delay and rate."""
    columns = [(delay, rate) for delay in DELAYS for rate in RATES]
    rows = []
    for stream, model in dict.fromkeys((one.stream, one.model) for one in found):
        cells = {(one.delay, one.rate): one for one in found if (one.stream, one.model) == (stream, model)}
        before = next(iter(cells.values())).brier[0]
        ratios = [f"{cells[at].ratio:.3f}" if before > PERFECT else "-" for at in columns]
        rows.append([stream, model, f"{before:.4f}", *ratios])
    return tables.markdown(["stream", "model", "Brier", *(f"{d} / {r:.0%}" for d, r in columns)], rows)


def selected(every: Sequence[Scored]) -> str:
    """Where one class is labelled three times as often: is it seen, and what does it cost?"""
    rows = []
    for one in every:
        fair, unfair = run(one, 1, 0.3), run(one, 1, 0.3, OFTEN)
        flags = [f"{each.flagged} of {len(one.windows)}" for each in (fair, unfair)]
        rows.append([one.stream, one.model, *flags, f"{fair.worse[0]:+.4f}", f"{unfair.worse[0]:+.4f}"])
    return tables.markdown(["stream", "model", "fair: flagged", "selected: flagged", "fair", "selected"], rows)


def page(every: Sequence[Scored], missing: Sequence[str], command: str) -> str:
    """The report."""
    found = [each for one in every for each in runs(one)]
    lines = [
        "# What labels that come late do to scores",
        "",
        f"Made by `{command}`.",
        "",
        *(__doc__ or "").split("\n\n", 2)[2].strip().splitlines(),
        "",
        *(f"Missing: {each}." for each in missing),
        "",
        claims(found),
        "## Brier score after, as a share of before",
        "",
        "Columns: windows until labels come / share of the events that are labelled.",
        "",
        by_stream(found),
        "## Labels that are no fair sample",
        "",
        f"Three in ten events of the first class are labelled, {OFTEN:.0f} times as many as of the others, one window",
        "late. Windows in which labels were said to be no fair sample, and the change of the Brier score.",
        "",
        selected([one for one in every if one.model == "logistic"]),
        *concept.page(every),
    ]
    return "\n".join(lines)


def main() -> None:
    """Do the study, and write the page."""
    parser = options(__doc__)
    parser.add_argument("--csv", type=Path, help="a table in time order: any delimiter, with a header or without")
    parser.add_argument("--target", help="the column of the class, by name or number; else `target` or the last")
    parser.add_argument("--block", type=int, help="rows of a window; else a thirtieth of the hold-out")
    parser.add_argument("--data", type=Path, help="the folder of weather.csv and streams/")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")
    missing: list[str] = []
    if given.csv:
        try:
            table = from_file(given.csv, given.target)
        except UnusableError as error:
            raise SystemExit(f"this file cannot be used: {error}") from error
        streams = [(table, max(given.block or usual_block(table), 1))]
    else:
        streams, missing = real(given.data)
        streams += [(table, table.block or 1) for table in map(made_up, MADE_UP)]
    models = list(MODELS)[:1] if given.quick else list(MODELS)
    every = [scored(table, block, model) for table, block in streams for model in models]
    text = page(every, missing, " ".join(["python -m tests.bench.labels", *sys.argv[1:]]))
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

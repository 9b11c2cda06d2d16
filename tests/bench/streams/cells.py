"""The streams that are there, and one cell of the study: a stream, a length of windows, and a model."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from monitor.tolerances import FEWEST_BLOCKS, MINIMUM_EVENTS
from tests.bench.streams import measures, rolling, watched
from tests.bench.streams.injected import INJECTED
from tests.bench.streams.made import KINDS, made_up
from tests.bench.streams.measures import Figures
from tests.bench.streams.models import MODELS, trained
from tests.bench.streams.table import Table, from_file
from tests.bench.streams.watched import Judgement, ShiftedWindow, Tally, Watched

LEAST_BLOCK = 100
MOST_BLOCK = 5_000
"""Windows of fewer events are not judged; longer ones are rarely wanted."""
BLOCKS = 30
"""Of the hold-out, where no length is asked for."""


@dataclass(frozen=True, slots=True)
class Known:
    """A file of the data folder."""

    name: str
    path: str
    target: str
    blocks: tuple[int, ...]
    cuts: tuple[float, ...] = ()
    ignore: tuple[str, ...] = ()


KNOWN = (
    Known("weather", "weather.csv", "target", (120, 365)),
    Known("PM2.5", "streams/pm25.csv", "pm2.5", (168, 720), (35, 75, 150), ("No",)),
    Known("Luxembourg", "streams/luxembourg.csv", "target", (100,)),
)


def known(folder: Path | None) -> tuple[list[tuple[Table, int]], list[str]]:
    """The streams of the data folder with the lengths of their windows, and what is missing of them."""
    found, missing = [], []
    for one in KNOWN:
        path = None if folder is None else folder / one.path
        if path is None or not path.is_file():
            missing.append(f"{one.name}: {'no data folder was given (--data FOLDER)' if path is None else 'not in it'}")
            continue
        table = from_file(path, one.target, cuts=one.cuts, ignore=one.ignore, name=one.name)
        found += [(table, block) for block in one.blocks]
    return found, missing


def made() -> list[tuple[Table, int]]:
    """The made-up streams with the length of their own blocks."""
    return [(table, table.block or LEAST_BLOCK) for table in map(made_up, KINDS)]


def usual_block(table: Table) -> int:
    """The length of windows that gives the hold-out thirty blocks, within what is wanted of a window."""
    return int(np.clip(table.fifth // BLOCKS, LEAST_BLOCK, MOST_BLOCK))


def cell(table: Table, block: int, name: str) -> Figures:
    """All figures of one model on one stream in windows of one length."""
    over = Watched.of(table, trained(MODELS[name], table), block)
    began = time.process_time()
    reference = over.reference(over.held)
    built = time.process_time() - began
    seen = list(watched.followed(over, reference))
    scores, harmed = measures.harm(over, seen)
    shifted = list(watched.shifts_on_stream(over, reference))
    against = {"reference": Tally.of([Judgement.of(one.assessment) for one in seen])}
    power = {"reference": _by_shift(shifted)}
    if (lately := rolling.judged(over, reference, seen, shifted)) is not None:
        against["recent"], power["recent"] = lately
    return Figures(
        stream=table.name,
        model=name,
        rows=table.labels.size,
        classes=len(table.classes),
        features=len(table.features),
        block=block,
        held=len(over.held),
        windows=len(seen),
        remarks=(*table.remarks, *_remarks(over)),
        verdicts={name: tally.verdicts for name, tally in against.items()},
        calm=watched.nested(over, reference),
        power=power,
        without_labels=measures.without_labels(seen, reference.source_priors) if seen else {},
        with_labels=measures.with_labels(over, reference, seen) if seen else {},
        harm=scores,
        harmed=harmed,
        window_ms=1000 * float(np.median([one.seconds for one in seen])) if seen else float("nan"),
        reference_s=built,
    )


def _by_shift(shifted: list[ShiftedWindow]) -> dict[str, Tally]:
    judged = {
        name: [Judgement.of(one.assessment, one.touched) for one in shifted if one.shift == name] for name in INJECTED
    }
    return {name: Tally.of(each) for name, each in judged.items()}


def _remarks(over: Watched) -> Iterator[str]:
    blocks, windows = over.table.fifth // over.block, (over.table.labels.size - 2 * over.table.fifth) // over.block
    if blocks > len(over.held):
        yield f"the last {len(over.held)} of {blocks} blocks of the hold-out are used"
    if windows > len(over.windows):
        yield f"the first {len(over.windows)} of {windows:,} windows are looked at"
    if over.block < MINIMUM_EVENTS:
        yield f"windows of {over.block} events are not judged: they need {MINIMUM_EVENTS}"
    elif not over.windows:
        yield "there is no whole window after the hold-out"
    elif blocks < FEWEST_BLOCKS:
        yield f"the hold-out has {blocks} blocks; {FEWEST_BLOCKS} are needed to know how much they differ"

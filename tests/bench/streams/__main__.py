"""Is the monitor right on real streams? Any table in time order, three models each, and made-up streams.

    python -m tests.bench.streams --csv FILE [--target COLUMN] [--block N]
    python -m tests.bench.streams --data FOLDER --state cells.jsonl --report tests/bench/reports/streams.md

Rows are taken in the order in which they stand in the file. A model is trained on the first fifth, the reference is
built from the second, and the rest comes in windows of N rows. Without `--csv` weather, PM2.5 and Luxembourg are taken
from the data folder, and made-up streams whose blocks differ in a known way are added: not at all (`exchangeable`), as
a walk, by season, or until a regime changes.

Bounds: the first 500,000 rows, or 15 million fields; models are trained on at most 20,000 evenly spaced rows; the last
100 blocks of the hold-out; the first 300 windows; shifts are made on 30 evenly spaced windows; at most 30 evenly spaced
calm blocks are held against a reference of the others. Each cell that is finished stands in the state file, and is not
done again.
"""

import sys
import warnings
from pathlib import Path

import msgspec
from threadpoolctl import threadpool_limits

from monitor.errors import ShiftwatchError
from tests.bench.options import options
from tests.bench.streams.cells import cell, known, made, usual_block
from tests.bench.streams.measures import Figures
from tests.bench.streams.models import MODELS
from tests.bench.streams.page import page
from tests.bench.streams.table import Table, from_file
from tests.bench.streams.text import UnusableError


def study(streams: list[tuple[Table, int]], models: list[str], state: Path | None) -> list[Figures]:
    """Every cell, those of the state file as they were."""
    done: dict[tuple[str, int, str], Figures] = {}
    if state is not None and state.exists():
        cells = (msgspec.json.decode(line, type=Figures) for line in state.read_bytes().splitlines())
        done = {(one.stream, one.block, one.model): one for one in cells}
    found = []
    for table, block in streams:
        for name in models:
            figures = done.get((table.name, block, name))
            if figures is None:
                print(f"{table.name}, windows of {block}, {name} ...", file=sys.stderr, flush=True)
                figures = cell(table, block, name)
                if state is not None:
                    with state.open("ab") as file:
                        file.write(msgspec.json.encode(figures) + b"\n")
            found.append(figures)
    return found


def main() -> None:
    """Do the study, and write the page."""
    parser = options(__doc__)
    parser.add_argument("--csv", type=Path, help="a table in time order: any delimiter, with a header or without")
    parser.add_argument("--target", help="the column of the class, by name or number; else `target` or the last")
    parser.add_argument("--block", type=int, help="rows of a window; else a thirtieth of the hold-out")
    parser.add_argument("--cut", help="where a target that is a number becomes classes: 35,75,150; else thirds")
    parser.add_argument("--ignore", default="", help="columns that are no features, separated by commas")
    parser.add_argument("--data", type=Path, help="the folder of weather.csv and streams/")
    parser.add_argument("--state", type=Path, help="JSON lines: the cells that are done")
    given = parser.parse_args()
    warnings.filterwarnings("ignore", module="sklearn")
    missing: list[str] = []
    if given.csv:
        cuts = tuple(float(cut) for cut in given.cut.split(",")) if given.cut else ()
        try:
            table = from_file(given.csv, given.target, cuts=cuts, ignore=given.ignore.split(","))
        except UnusableError as error:
            raise SystemExit(f"this file cannot be used: {error}") from error
        streams = [(table, max(given.block or usual_block(table), 1))]
    else:
        streams, missing = known(given.data)
        streams += made()
    models = list(MODELS)[:1] if given.quick else list(MODELS)
    with threadpool_limits(1):
        try:
            found = study(streams[:1] if given.quick else streams, models, given.state)
        except ShiftwatchError as error:
            raise SystemExit(f"this stream cannot be judged: {error}") from error
    said = [Path(each).name for each in sys.argv[1:]]  # where files lie on this machine is nobody's business
    text = page(found, " ".join(["python -m tests.bench.streams", *said]), missing, _law())
    print(text)
    if given.report:
        given.report.write_text(text, encoding="utf-8")


def _law() -> str:
    return (__doc__ or "").split("\n\n", 2)[2].strip()


if __name__ == "__main__":
    main()

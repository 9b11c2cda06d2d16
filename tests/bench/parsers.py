"""Whether another JSON parser than msgspec would bring lines to columns sooner.

    python -m tests.bench.parsers [--events 50000] [--rounds 9]

Others stop where their values are there: they check nothing, and most would still have to be made into columns. Those
that are not installed (`pip install pysimdjson orjson`) are left out.
"""

import io
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from monitor.events.decoding import Decoder
from monitor.service.memory import keep_freed_memory
from tests.bench.ingest import LATER, PLAN, Case, each, read, windows
from tests.bench.options import REPORTS, options
from tests.bench.tables import markdown
from tests.bench.timing import interleaved

HEAD = """# JSON parsers

Made by `python -m tests.bench.parsers --events {events} --rounds {rounds}`.

Nanoseconds of processor time an event, one thread, the best round of each. *Typed*: msgspec's bare decode of lines that
lie ready in memory into a struct of exactly these fields. *Ours*: from the file to checked columns, and to closed
windows. *Arrow*: its reader with the schema given, and the numbers as arrays. *simdjson*: its bindings for Python, with
the fields of each event taken out. *orjson*: each line as a dict. The last three check nothing.

"""
COLUMNS = ("classes", "features", "form", "typed", "ours, columns", "ours, windows", "Arrow", "simdjson", "orjson")


Vectors = Mapping[str, Sequence[str]]


def vectors(case: Case) -> Vectors:
    """The fields that hold several numbers, and their names."""
    return {"posteriors": case.world.classes, **({"features": case.world.features} if case.features else {})}


def by_arrow(case: Case, data: bytes) -> None:
    """Columns of one text."""
    inside_of = vectors(case)
    fields = [(name, pa.string()) for name in ("stream", "id", "timestamp")]
    number = pa.float64()
    for name, names in inside_of.items():
        inside = pa.list_(number) if case.form == "list" else pa.struct([(each_name, number) for each_name in names])
        fields.append((name, inside))
    parsing = arrow_json.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore")
    reading = arrow_json.ReadOptions(use_threads=False, block_size=2 << 20)
    table = arrow_json.read_json(io.BytesIO(data), reading, parsing)
    for name in inside_of:
        columns = table[name].combine_chunks().flatten()
        if case.form == "list":
            columns.to_numpy()
        else:
            np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])


def by_simdjson(case: Case, lines: list[bytes]) -> None:
    """The values of each line."""
    parser, inside_of = import_module("simdjson").Parser(), vectors(case)
    for line in lines:
        _take(case.form, inside_of, parser.parse(line))


def _take(form: str, inside_of: Vectors, event: Any) -> None:
    """A parsed event has to be let go before its parser takes the next one."""
    _ = event["stream"], event["timestamp"]
    for name, names in inside_of.items():
        vector = event[name]
        if form == "list":
            vector.as_buffer(of_type="d")
        else:
            for inside in names:
                _ = vector[inside]


def works(case: Case, path: Path) -> Iterator[tuple[str, Callable[[], object]]]:
    """By the columns of the table."""
    bare, decoder = case.bare(), Decoder([case.schema])
    data = path.read_bytes()
    lines = data.splitlines()
    yield "typed", lambda: [bare(line) for line in lines]
    yield "ours, columns", lambda: each(read(path), lambda batch: decoder.decode(batch, LATER))
    yield "ours, windows", lambda: windows(path, decoder, PLAN)
    yield "Arrow", lambda: by_arrow(case, data)
    if find_spec("simdjson"):
        yield "simdjson", lambda: by_simdjson(case, lines)
    if find_spec("orjson"):
        yield "orjson", partial(each, lines, import_module("orjson").loads)


def main() -> None:
    parser = options(__doc__, REPORTS / "parsers.md")
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    if given.quick:
        given.events, given.rounds = 10_000, 3
    keep_freed_memory()
    pa.set_cpu_count(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in (Case(c, f, form) for form in ("list", "object") for c, f in ((2, 0), (2, 10), (10, 10))):
            spent = interleaved(dict(works(case, case.write(given.events, Path(folder)))), given.rounds)
            times = {name: f"{one.best / given.events * 1e9:.0f}" for name, one in spent.items()}
            rows.append([case.classes, case.features, case.form, *(times.get(name, "") for name in COLUMNS[3:])])
    page = HEAD.format(events=given.events, rounds=given.rounds) + markdown(COLUMNS, rows)
    print(page)
    given.report.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()

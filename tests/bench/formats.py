"""What it costs to read Avro and Protobuf from a registry's serializers, beside the bare reader of the same library.

python -m tests.bench.formats [--events 20000] [--rounds 9]
"""

import io
import json
from collections.abc import Callable

import fastavro
import numpy as np

from connectors.formats import FormatSettings, Translator
from connectors.formats.registry import RegistrySettings
from monitor.events import Decoder
from monitor.ports import RawBatch
from monitor.service.memory import collect_garbage_rarely, keep_freed_memory
from tests.bench.options import REPORTS, options
from tests.bench.tables import markdown
from tests.bench.timing import interleaved
from tests.events.shop import NOW
from tests.formats.messages import AVRO, SCORED, SHOP, events, written
from tests.formats.registry import registry

AT_ONCE = 10_000
HEAD = """# Events from Avro and Protobuf

Made by `python -m tests.bench.formats --events {events} --rounds {rounds}`.

{events:,} records of a stream, an id, a time, two posteriors and two features, as confluent-kafka's serializers write
them. Nanoseconds of processor time a record, the best round of each; the ratio is the speed beside the bare reader in
the same rounds (lowest and highest), which makes Python's values of each record and drops them. *Read* ends with all
records read; *events* with checked columns.

"""


def main() -> None:
    parser = options(__doc__, REPORTS / "formats.md")
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=9)
    given = parser.parse_args()
    if given.quick:
        given.events, given.rounds = 5_000, 3
    keep_freed_memory()
    collect_garbage_rarely()
    some = events(given.events)
    figures = []
    with registry() as known:
        for kind in ("avro", "protobuf"):
            records, _ = written(kind, some, known.url)
            translator = Translator(FormatSettings(kind, RegistrySettings(known.url)))  # type: ignore[arg-type]
            works = {
                "bare": bare_avro(records) if kind == "avro" else bare_protobuf(records),
                "read": lambda records=records, translator=translator: read(translator, records),
                "events": lambda records=records, translator=translator: decoded(translator, records),
            }
            spent = interleaved(works, given.rounds)
            for name in works:
                nanoseconds = f"{spent[name].best / given.events * 1e9:.0f}"
                figures.append((f"{kind}, {name}", nanoseconds, spent["bare"].ratio(spent[name])))
    page = HEAD.format(events=given.events, rounds=given.rounds) + markdown(("records", "ns", "ratio"), figures)
    print(page)
    given.report.write_text(page, encoding="utf-8")


def read(translator: Translator, records: list[bytes]) -> None:
    for first in range(0, len(records), AT_ONCE):
        some = records[first : first + AT_ONCE]
        assert not translator.translated(some, [None] * len(some)).faults


def decoded(translator: Translator, records: list[bytes]) -> None:
    decoder = Decoder([SHOP], identified=["shop"])
    for first in range(0, len(records), AT_ONCE):
        some = records[first : first + AT_ONCE]
        said = translator.translated(some, [None] * len(some))
        assert not decoder.decode(RawBatch("p", some, np.arange(len(some)), len(some), translated=said), NOW).rejected


def bare_avro(records: list[bytes]) -> Callable[[], None]:
    schema = fastavro.parse_schema(json.loads(json.dumps(AVRO)))

    def work() -> None:
        for record in records:
            fastavro.schemaless_reader(io.BytesIO(record[5:]), schema, None)

    return work


def bare_protobuf(records: list[bytes]) -> Callable[[], None]:
    """Each field is asked for once: a message that is only parsed holds no values yet."""

    def work() -> None:
        for record in records:
            message = SCORED.FromString(record[7:])
            _ = (message.stream, message.id, message.timestamp.seconds, message.timestamp.nanos)
            _ = (message.posteriors["legit"], message.posteriors["fraud"])
            _ = (message.features.HasField("amount"), message.features.amount, message.features.country)

    return work


if __name__ == "__main__":
    main()

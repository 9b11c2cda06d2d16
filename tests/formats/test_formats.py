"""Avro, Protobuf and JSON with the schemas of a registry, and without: the same events as in our own shape.

Records are written by the serializers of confluent-kafka; the registry is the one of `tests/formats/registry.py`.
"""

import io
import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import msgspec
import numpy as np
import pytest
from confluent_kafka.schema_registry import header_schema_id_serializer
from google.protobuf import descriptor_pb2, message_factory, timestamp_pb2
from google.protobuf.descriptor_pool import DescriptorPool
from hypothesis import given
from hypothesis import strategies as st

from connectors.formats import FormatSettings, Headers, Translator
from connectors.formats.registry import RegisteredSchema, Registry, RegistrySettings, WrongSchemaError
from connectors.kafka.settings import source_settings
from monitor.errors import ConfigurationError, ConnectorError, OutageError
from monitor.events import DecodedBatch, Decoder
from monitor.events.mapping import EventMapping
from monitor.ports import RawBatch
from tests.events.shop import NOW
from tests.formats.messages import AVRO, SHOP, Event, answers_file, events, message, plain, scored_file, written
from tests.formats.registry import LoopbackRegistry, registry

KINDS = ("avro", "protobuf", "json-schema")
SOME = events(50)


@pytest.fixture(scope="module")
def known() -> Iterator[LoopbackRegistry]:
    with registry() as known:
        yield known


def translator(kind: Any, url: str = "", **settings: Any) -> Translator:
    return Translator(
        FormatSettings(kind, RegistrySettings(url) if url and kind != "json-schema" else None, **settings)
    )


def decoded(
    translator: Translator, records: Sequence[bytes | None], headers: Sequence[Headers | None] | None = None
) -> DecodedBatch:
    return Decoder([SHOP], identified=["shop"]).decode(batch(translator, records, headers), NOW)


def batch(translator: Translator, records: Sequence[bytes | None], headers: Any = None) -> RawBatch:
    offsets = np.arange(len(records))
    said = translator.translated(records, headers or [None] * len(records))
    return RawBatch("p", records, offsets, len(records), translated=said)


def native(some: Sequence[Event]) -> DecodedBatch:
    records = [msgspec.json.encode(event) for event in some]
    raw = RawBatch("p", records, np.arange(len(records)), len(records))
    return Decoder([SHOP], identified=["shop"]).decode(raw, NOW)


def assert_same(one: DecodedBatch, other: DecodedBatch) -> None:
    assert one.rejected == other.rejected == ()
    mine, theirs = one.scored["shop"], other.scored["shop"]
    assert mine.index.tolist() == theirs.index.tolist()
    for field in ("posteriors", "features", "times"):
        assert getattr(mine.rows, field).tobytes() == getattr(theirs.rows, field).tobytes()
    assert list(mine.rows.ids) == list(theirs.rows.ids)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_registrys_serializers_write_is_the_same_event_as_in_our_own_shape(
    known: LoopbackRegistry, kind: str
) -> None:
    records, _ = written(kind, SOME, known.url)
    known.asked.clear()
    reading = translator(kind, known.url)
    assert_same(decoded(reading, records), native(SOME))
    assert_same(decoded(reading, records[:7]), native(SOME[:7]))
    assert len(known.asked) == (kind != "json-schema")  # each schema once


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_may_be_named_in_a_header(known: LoopbackRegistry, kind: str) -> None:
    records, headers = written(kind, SOME, known.url, header_schema_id_serializer)
    assert all(headers)
    assert_same(decoded(translator(kind, known.url), records, headers), native(SOME))


@pytest.mark.parametrize("kind", ["avro", "protobuf"])
def test_columns_say_what_each_record_says_by_itself(known: LoopbackRegistry, kind: str) -> None:
    records, _ = written(kind, SOME, known.url)
    said = translator(kind, known.url).translated(records, [None] * len(records)).records
    one_by_one = RawBatch("p", list(said), np.arange(len(said)), len(said))
    assert_same(Decoder([SHOP], identified=["shop"]).decode(one_by_one, NOW), native(SOME))


def test_avro_and_protobuf_are_read_without_a_registry(tmp_path: Path) -> None:
    (tmp_path / "s.avsc").write_text(json.dumps(AVRO))
    schema = fastavro.parse_schema(AVRO)
    records = []
    for event in SOME:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, schema, event)
        records.append(file.getvalue())
    assert_same(decoded(translator("avro", schema=tmp_path / "s.avsc"), records), native(SOME))
    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    files.file.append(scored_file())
    (tmp_path / "s.desc").write_bytes(files.SerializeToString())
    reading = translator("protobuf", schema=tmp_path / "s.desc", message="shop.Scored")
    assert_same(decoded(reading, [message(event).SerializeToString() for event in SOME]), native(SOME))


def test_answers_of_the_open_inference_protocol_are_read_as_protobuf_too(tmp_path: Path) -> None:
    pool = DescriptorPool()
    pool.AddSerializedFile(answers_file().SerializeToString())
    answer = message_factory.GetMessageClass(pool.FindMessageTypeByName("inference.ModelInferResponse"))(id="q")
    answer.outputs.add(shape=[2, 2], datatype="FP64").contents.fp64_contents.extend([0.25, 0.75, 1.0, 0.0])
    files = descriptor_pb2.FileDescriptorSet(file=[answers_file()])
    (tmp_path / "v2.desc").write_bytes(files.SerializeToString())
    reading = translator("protobuf", schema=tmp_path / "v2.desc", message="inference.ModelInferResponse")
    mapping = EventMapping(preset="seldon-core-2", posteriors="outputs.0.contents.fp64_contents|rows.*")
    raw = replace(batch(reading, [answer.SerializeToString()]), timestamps=np.array([NOW]))
    found = Decoder([SHOP], identified=["shop"], mapping=mapping).decode(raw, NOW)
    assert found.rejected == ()
    assert found.scored["shop"].rows.posteriors.tolist() == [[0.25, 0.75], [1.0, 0.0]]
    assert list(found.scored["shop"].rows.ids) == ["q/0", "q/1"]


def test_records_of_several_schemas_are_read_as_the_readers(known: LoopbackRegistry, tmp_path: Path) -> None:
    fields = [field for field in AVRO["fields"] if field["name"] != "id"]  # type: ignore[index]
    newer = {**AVRO, "fields": [*fields, {"name": "id", "type": "string", "default": "none"}]}
    (tmp_path / "reader.avsc").write_text(json.dumps(newer))
    number = known.register("older", {"schema": json.dumps({**AVRO, "fields": fields})})
    file = io.BytesIO(b"")
    fastavro.schemaless_writer(file, fastavro.parse_schema({**AVRO, "fields": fields}), SOME[0])
    older = b"\0" + number.to_bytes(4, "big") + file.getvalue()
    records, _ = written("avro", SOME[:3], known.url)
    reading = translator("avro", known.url, schema=tmp_path / "reader.avsc")
    found = decoded(reading, [records[0], older, records[2]])
    assert_same(found, native([SOME[0], SOME[0] | {"id": "none"}, SOME[2]]))


def test_schemas_that_need_others_are_put_together(known: LoopbackRegistry) -> None:
    inputs = AVRO["fields"][4]["type"] | {"namespace": "shop"}  # type: ignore[index, operator]
    known.register("inputs", {"schema": json.dumps(inputs)})
    fields = [*AVRO["fields"][:4], {"name": "features", "type": "shop.Inputs"}]  # type: ignore[index]
    needs = [{"name": "shop.Inputs", "subject": "inputs", "version": 1}]
    number = known.register("whole", {"schema": json.dumps({**AVRO, "fields": fields}), "references": needs})
    records, _ = written("avro", SOME[:3], known.url)
    renumbered = [b"\0" + number.to_bytes(4, "big") + record[5:] for record in records]
    assert_same(decoded(translator("avro", known.url), renumbered), native(SOME[:3]))


def test_a_bad_record_costs_no_good_one_and_is_kept_as_it_came(known: LoopbackRegistry) -> None:
    (first, second), _ = written("avro", SOME[:2], known.url)
    other = known.register("p", {"schema": "bm9uZQ==", "schemaType": "PROTOBUF"})
    wrong = b"\0" + other.to_bytes(4, "big") + first[5:]
    bad: list[bytes | None] = [b"", b"\1\2\3\4\5\6", first[:-2], first + b"x", wrong, None, b"x" * 2_000_000]
    found = decoded(translator("avro", known.url), [first, *bad, second])
    assert [list(found.scored["shop"].index)] == [[0, 8]]
    assert [(each.index, each.raw) for each in found.rejected] == list(enumerate(bad, 1))
    assert {str(each.reason) for each in found.rejected} == {"unreadable"}
    assert "not AVRO" in found.rejected[4].detail


def test_events_that_do_not_fit_are_kept_as_they_came(known: LoopbackRegistry) -> None:
    records, _ = written("avro", [SOME[0], SOME[1] | {"posteriors": {"legit": 2.0, "fraud": 0.0}}], known.url)
    (rejected,) = decoded(translator("avro", known.url), [b"?", *records]).rejected[1:]
    assert (rejected.index, rejected.reason, rejected.raw) == (2, "posterior-sum", records[1])


def test_an_unknown_identifier_waits_for_the_registry_and_is_then_wrong(known: LoopbackRegistry) -> None:
    now = [0.0]
    learned = len(known.schemas) + 1

    def pause(seconds: float) -> None:
        now[0] += seconds
        if now[0] == 3:
            known.register("late", {"schema": '"string"'})

    asking = Registry(RegistrySettings(known.url), clock=lambda: now[0], pause=pause)
    assert asking.schema(learned) == RegisteredSchema('"string"')
    for number in (99_999, 99_999, 99_998):
        with pytest.raises(WrongSchemaError, match="knows no such schema"):
            asking.schema(number)
    assert now[0] == 13  # waited for once, whatever numbers are made up
    known.asked.clear()
    now[0] += 60
    with pytest.raises(WrongSchemaError):
        asking.schema(99_999)
    assert len(known.asked) > 1  # it may have come meanwhile


def test_a_registry_that_is_away_is_an_outage_and_nothing_is_rejected(known: LoopbackRegistry) -> None:
    records, _ = written("avro", SOME[:1], known.url)
    known.away = True
    try:
        with pytest.raises(OutageError, match="answers 503"):
            decoded(translator("avro", known.url), records)
    finally:
        known.away = False
    with pytest.raises(OutageError, match="does not answer"):
        decoded(translator("avro", "http://127.0.0.1:9"), records)


def test_a_registry_with_tls_and_a_login(tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    with registry("monitor:secret", (str(certificate), str(key))) as known:
        number = known.register("s", {"schema": '"string"'})
        options = {
            "bootstrap": "b:1",
            "topics": "t",
            "format": {
                "kind": "avro",
                "registry": {"url": known.url, "username": "monitor", "password": "secret", "ca_file": "c.pem"},
            },
        }
        said = source_settings(options, tmp_path).format
        assert said is not None
        assert said.registry is not None
        assert "secret" not in repr(said)
        assert Registry(said.registry).schema(number).schema == '"string"'
        with pytest.raises(ConnectorError, match="refuses us: 401"):
            Registry(RegistrySettings(known.url, ca_file=certificate)).schema(number)
        with pytest.raises(OutageError, match="CERTIFICATE_VERIFY_FAILED"):
            Registry(RegistrySettings(known.url)).schema(number)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"kind": "avro"}, "want a `registry`, or the `schema`"),
        ({"kind": "avro", "schema": "none.avsc"}, "No such file"),
        ({"kind": "protobuf", "schema": "none.desc", "message": "a.B"}, "has no type 'a.B'"),
        ({"kind": "protobuf", "schema": "none.desc"}, "want `message`"),
        ({"kind": "avro", "registry": {"url": "registry:8081"}}, "want `registry.url` as http"),
        ({"kind": "cloudevents", "message": "x"}, "cloudevents needs no"),
        ({"kind": "xml"}, "want one of 'avro', 'protobuf'"),
    ],
)
def test_settings_that_cannot_be_are_told(tmp_path: Path, said: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        Translator(source_settings({"bootstrap": "b:1", "topics": "t", "format": said}, tmp_path).format)  # type: ignore[arg-type]


def test_a_cloud_event_in_binary_mode_is_the_record_that_it_is_in_structured_mode() -> None:
    event = plain(SOME[0])
    body = {key: event[key] for key in ("posteriors", "features")}
    attributes = {"specversion": "1.0", "id": event["id"], "source": "s", "type": "t", "time": event["timestamp"]}
    headers = [(f"ce_{name}", value.encode()) for name, value in attributes.items()]
    headers.append(("content-type", b"application/json"))
    mapping = EventMapping(stream="", timestamp="time", posteriors="data.posteriors", features="data.features")
    structured = json.dumps(attributes | {"data": body}).encode()
    records = [json.dumps(body, indent=1).encode(), structured]
    given = batch(translator("cloudevents"), records, [headers, None])
    found = Decoder([SHOP], identified=["shop"], mapping=mapping).decode(given, NOW)
    assert_same(found, native([SOME[0], SOME[0]]))


@given(
    kind=st.sampled_from(["avro", "protobuf"]),
    tail=st.binary(max_size=40),
    place=st.integers(0, 60),
    cut=st.integers(0, 60),
)
def test_whatever_bytes_come_are_events_or_rejected_by_name(
    known: LoopbackRegistry, kind: str, tail: bytes, place: int, cut: int
) -> None:
    if (kind, known.url) not in READY:
        READY[kind, known.url] = written(kind, SOME[:1], known.url)[0][0], translator(kind, known.url)
    record, reading = READY[kind, known.url]
    odd = record[: 5 + place] + tail + record[5 + place + cut :]
    found = decoded(reading, [odd, record])
    assert len(found.rejected) + sum(len(set(each.index.tolist())) for each in found.scored.values()) >= 2
    assert 1 not in [each.index for each in found.rejected]


READY: dict[tuple[str, str], tuple[bytes, Translator]] = {}

"""Records in other formats than JSON: Avro and Protobuf, plain or with the schemas of a registry, JSON after the
number of its schema, and CloudEvents whose attributes stand in headers.

    [source.format]
    kind = "avro"
    registry = { url = "https://registry:8081", token = "${file:/run/secrets/registry}" }
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from connectors import cloudevents
from connectors.formats.registry import Registry, RegistrySettings, WrongSchemaError, unframed
from monitor.errors import ConfigurationError
from monitor.limits import RECORD_BYTES
from monitor.ports import Translated

Headers = Sequence[tuple[str, bytes]]
_ATTRIBUTE = "ce_"
_NONE: Mapping[str, bytes] = {}


@dataclass(frozen=True, slots=True)
class FormatSettings:
    """How records are written that are not JSON."""

    kind: Literal["avro", "protobuf", "json-schema", "cloudevents"]
    registry: RegistrySettings | None = None
    """Whose serializers wrote the records: each carries the identifier of its schema."""
    schema: Path | None = None
    """Without a registry: a file with the schema of all records, of Avro, or a set of descriptors of Protobuf
    (`protoc --include_imports --descriptor_set_out=FILE`). With one: the schema that Avro records are read as."""
    message: str = ""
    """Of Protobuf without a registry: the full name of the message type."""
    max_record_bytes: int = RECORD_BYTES

    def problems(self) -> Iterator[str]:
        """What the types cannot say."""
        if self.registry is not None and not self.registry.url.startswith(("http://", "https://")):
            yield f"want `registry.url` as http:// or https://, got {self.registry.url!r}"
        if self.kind in ("avro", "protobuf") and self.registry is None and self.schema is None:
            yield f"want a `registry`, or the `schema` of all {self.kind} records"
        if self.kind == "protobuf" and (self.registry is None) == (not self.message):
            yield "want `message`, the name of a type in `schema`, where there is no `registry`"
        if self.kind == "protobuf" and self.registry is not None and self.schema is not None:
            yield "`schema` has no effect beside a `registry` of Protobuf"
        if self.kind in ("json-schema", "cloudevents") and (self.registry or self.schema or self.message):
            yield f"{self.kind} needs no `registry`, `schema` or `message`"

    def under(self, base: Path) -> "FormatSettings":
        """With its files in a folder."""
        registry = None if self.registry is None else self.registry.under(base)
        return replace(self, registry=registry, schema=None if self.schema is None else base / self.schema)


class RecordFormat(Protocol):
    """One way in which records are written."""

    def row(self, record: bytes, headers: Mapping[str, bytes], /) -> Any:
        """What a record says; raises ValueError or WrongSchemaError."""
        ...

    def rows(self, records: Sequence[Any], /) -> Sequence[bytes]:
        """What several of them say, together."""
        ...


class _JsonAfterId:
    """JSON that follows the identifier of its schema. The schema says no more of it than what the events have to be."""

    def row(self, record: bytes, headers: Mapping[str, bytes]) -> bytes:
        framed = unframed(record, headers)
        return framed.rest if framed.value is None else framed.value

    def rows(self, records: Sequence[bytes]) -> Sequence[bytes]:
        return records


class _CloudEvents(_JsonAfterId):
    """CloudEvents in binary mode, as in structured mode; what has no such headers is taken as it is."""

    def row(self, record: bytes, headers: Mapping[str, bytes]) -> bytes:
        if _ATTRIBUTE + cloudevents.SPECIFICATION not in headers:
            return record
        attributes = {
            name.removeprefix(_ATTRIBUTE): value.decode()
            for name, value in headers.items()
            if name.startswith(_ATTRIBUTE)
        }
        return cloudevents.structured(attributes, headers.get("content-type", b"").decode(), record)


class Translator:
    """Reads records in a format."""

    def __init__(self, settings: FormatSettings) -> None:
        """Raises ConfigurationError."""
        self._longest = settings.max_record_bytes
        self._format = _format(settings)

    def translated(self, records: Sequence[bytes | None], headers: Sequence[Headers | None]) -> Translated:
        """What some records say."""
        rows: list[Any] = []
        index: list[int] = []
        faults: dict[int, str] = {}
        row = self._format.row
        for number, (record, named) in enumerate(zip(records, headers, strict=True)):
            if record is None or len(record) > self._longest:
                faults[number] = "no value" if record is None else f"more than {self._longest} bytes"
                continue
            try:
                rows.append(row(record, dict(named) if named else _NONE))
            except (ValueError, WrongSchemaError) as error:
                faults[number] = str(error)
            else:
                index.append(number)
        return Translated(self._format.rows(rows) if rows else (), np.array(index, np.int64), faults)


def _format(settings: FormatSettings) -> RecordFormat:
    try:
        if settings.kind == "avro":
            from connectors.formats.avro import AvroReader  # noqa: PLC0415 - optional extra

            return AvroReader(settings.schema, _registry(settings))
        if settings.kind == "protobuf":
            from connectors.formats.protobuf import ProtobufReader  # noqa: PLC0415 - optional extra

            return ProtobufReader(settings.schema, settings.message, _registry(settings, "?format=serialized"))
    except ImportError as error:
        raise ConfigurationError([f"source.format: {error}"]) from error
    return _CloudEvents() if settings.kind == "cloudevents" else _JsonAfterId()


def _registry(settings: FormatSettings, query: str = "") -> Registry | None:
    return None if settings.registry is None else Registry(settings.registry, query)

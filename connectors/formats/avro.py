"""Avro records, of one schema or of those of a registry; read as the reader's schema has them, where there is one."""

import io
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from connectors.formats.registry import HEAD_BYTES, RegisteredSchema, Registry, WrongSchemaError, unframed
from connectors.formats.rows import DecodedRows
from monitor.errors import ConfigurationError

try:
    import fastavro
    from fastavro.schema import SchemaParseException
except ImportError as error:
    raise ImportError("reading Avro needs fastavro: pip install 'shiftwatch[avro]'") from error

UNREADABLE = (ValueError, LookupError, TypeError, ArithmeticError, EOFError, struct.error, RecursionError)
"""What fastavro raises at bytes that are not of the schema."""
_DEEPEST = 20
"""Schemas that need schemas that need schemas: more are a circle."""

Parsed = Any


class AvroReader:
    """Makes a row of each record."""

    def __init__(self, schema: Path | None, registry: Registry | None) -> None:
        """With a registry `schema` is the reader's; without one it is that of all records."""
        self._reader_schema = None if schema is None else _of_file(schema)
        self._registry = registry
        self._parsed: dict[int | UUID, Parsed] = {}
        self._by_head: dict[bytes, Parsed] = {}

    @staticmethod
    def rows(records: Sequence[Mapping[str, Any]]) -> Sequence[bytes]:
        """These together."""
        return DecodedRows(records)

    def row(self, record: bytes, headers: Mapping[str, bytes]) -> Mapping[str, Any]:
        """Raises ValueError or WrongSchemaError."""
        written: Parsed = self._reader_schema
        reader_schema, start = None, 0
        if self._registry is not None:
            # Most records begin like the one before: what follows from that is looked up at once.
            head, reader_schema, start = record[:HEAD_BYTES], self._reader_schema, HEAD_BYTES
            written = None if headers else self._by_head.get(head)
            if written is None:
                framed = unframed(record, headers)
                if framed.schema not in self._parsed:
                    self._parsed[framed.schema] = self._of_registry(self._registry, framed.schema)
                written = self._parsed[framed.schema]
                start = 0 if framed.value is not None else len(record) - len(framed.rest)
                if start == HEAD_BYTES:
                    self._by_head[head] = written
        file = io.BytesIO(record)
        file.seek(start)
        try:
            row = fastavro.schemaless_reader(file, written, reader_schema)
        except UNREADABLE as error:
            raise ValueError(f"not of its Avro schema: {error or type(error).__name__}") from None
        if file.tell() != len(record):
            raise ValueError(f"not of its Avro schema: {len(record) - file.tell()} bytes are left over")
        if type(row) is not dict:
            raise ValueError(f"want an Avro record, got {type(row).__name__}")
        return row

    def _of_registry(self, registry: Registry, identifier: int | UUID) -> Parsed:
        known: dict[str, Parsed] = {}

        def parsed(schema: RegisteredSchema, depth: int) -> Parsed:
            if schema.schemaType != "AVRO" or depth > _DEEPEST:
                raise WrongSchemaError(f"schema {identifier} is of type {schema.schemaType}, not AVRO")
            for reference in schema.references:
                if reference.name not in known:
                    parsed(registry.referenced(reference), depth + 1)
            return _parsed(schema.schema, known)

        try:
            return parsed(registry.schema(identifier), 0)
        except (SchemaParseException, *UNREADABLE) as error:
            raise WrongSchemaError(f"schema {identifier}: {error}") from None


def _of_file(path: Path) -> Parsed:
    try:
        return _parsed(path.read_text(encoding="utf-8"), {})
    except (OSError, SchemaParseException, *UNREADABLE) as error:
        raise ConfigurationError([f"source.format.schema: {path}: {error}"]) from error


def _parsed(text: str, known: dict[str, Parsed]) -> Parsed:
    return fastavro.parse_schema(msgspec.json.decode(text), known)

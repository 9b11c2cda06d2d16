"""Protobuf records, of one message type or of those of a registry.

Types are made from descriptors: of a file as `protoc --include_imports --descriptor_set_out` writes it, or as the
registry gives them. Nothing is compiled, and no code of anybody's runs.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from connectors.formats.registry import HEAD_BYTES, RegisteredSchema, Registry, WrongSchemaError, unframed
from connectors.formats.rows import ColumnarRows, DecodedRows, as_column, at
from monitor.errors import ConfigurationError
from monitor.ports import Column

try:
    from google.protobuf import (
        any_pb2,
        descriptor_pb2,
        duration_pb2,
        empty_pb2,
        field_mask_pb2,
        json_format,
        message_factory,
        struct_pb2,
        timestamp_pb2,
        wrappers_pb2,
    )
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError
except ImportError as error:
    raise ImportError("reading Protobuf needs protobuf: pip install 'shiftwatch[protobuf]'") from error

UNUSABLE = (ValueError, TypeError, LookupError, DecodeError)
"""What protobuf raises at descriptors that are none, or need others."""
_MODULES = (any_pb2, duration_pb2, empty_pb2, field_mask_pb2, struct_pb2, timestamp_pb2, wrappers_pb2)
_DEEPEST = 20
"""Messages in messages of which a type is picked, and schemas that need schemas: more are a circle."""
_HEADS = 1_000
"""Beginnings of records that are known: there are as many as types, unless somebody writes numbers in odd ways."""
_TIME = timestamp_pb2.Timestamp.DESCRIPTOR.full_name
_WRAPPERS = frozenset(each.full_name for each in wrappers_pb2.DESCRIPTOR.message_types_by_name.values())
_FREE = frozenset(each.full_name for each in struct_pb2.DESCRIPTOR.message_types_by_name.values())


class ProtobufReader:
    """Makes a message of each record."""

    def __init__(self, schema: Path | None, message: str, registry: Registry | None) -> None:
        """A registry says of each record of which type it is; else it is `message` of the descriptors in `schema`."""
        self._registry = registry
        self._type = None if schema is None else _of_file(schema, message)
        self._pools: dict[int | UUID, tuple[Any, Any]] = {}
        self._types: dict[tuple[int | UUID, tuple[int, ...]], Any] = {}
        self._by_head: dict[bytes, Any] = {}
        self._head = HEAD_BYTES
        """How many bytes of the last record that was taken apart say of which type it is."""

    @staticmethod
    def rows(records: Sequence[Any]) -> Sequence[bytes]:
        """These together."""
        types = {id(record.DESCRIPTOR) for record in records}
        return MessageRows(records) if len(types) == 1 else DecodedRows([_object(record) for record in records])

    def row(self, record: bytes, headers: Mapping[str, bytes]) -> Any:
        """Raises ValueError or WrongSchemaError."""
        kind, data = self._type, record
        if self._registry is not None:
            # Most records begin like the one before: with the schema's number, and with which of its types it is.
            kind, data = None if headers else self._by_head.get(record[: self._head]), record[self._head :]
            if kind is None:
                framed = unframed(record, headers)
                indexes, rest = _indexes(framed.rest)
                data = rest if framed.value is None else framed.value
                kind = self._types.get((framed.schema, indexes))
                if kind is None:
                    kind = self._of_registry(self._registry, framed.schema, indexes)
                    self._types[framed.schema, indexes] = kind
                if framed.value is None and len(self._by_head) < _HEADS:
                    self._head = len(record) - len(rest)
                    self._by_head[record[: self._head]] = kind
        try:
            return kind.FromString(data)  # type: ignore[union-attr]
        except DecodeError as error:
            raise ValueError(f"not of its Protobuf type: {error}") from None

    def _of_registry(self, registry: Registry, identifier: int | UUID, indexes: tuple[int, ...]) -> Any:
        try:
            if identifier not in self._pools:
                pool = DescriptorPool()
                self._pools[identifier] = pool, _add(pool, registry, registry.schema(identifier), str(identifier), 0)
            _, file = self._pools[identifier]
            kinds = list(file.message_types_by_name.values())
            kind = kinds[indexes[0]]
            for index in indexes[1:]:
                kind = kind.nested_types[index]
            return message_factory.GetMessageClass(kind)
        except UNUSABLE as error:
            raise WrongSchemaError(f"schema {identifier}: {error}") from None


def _add(pool: Any, registry: Registry, schema: RegisteredSchema, name: str, depth: int) -> Any:
    """A registered file and those that it imports, in a pool."""
    if schema.schemaType != "PROTOBUF" or depth > _DEEPEST:
        raise WrongSchemaError(f"schema {name} is of type {schema.schemaType}, not PROTOBUF")
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(schema.schema, validate=True))
    for reference in schema.references:
        if reference.name not in WELL_KNOWN and not _has(pool, reference.name):
            _add(pool, registry, registry.referenced(reference), reference.name, depth + 1)
    for known in WELL_KNOWN.keys() & set(file.dependency):
        if not _has(pool, known):
            pool.AddSerializedFile(WELL_KNOWN[known])
    # The registry names it after its subject, if at all.
    file.name = file.name if depth == 0 and file.name else name
    return pool.AddSerializedFile(file.SerializeToString()) or pool.FindFileByName(file.name)


def _has(pool: Any, name: str) -> bool:
    try:
        pool.FindFileByName(name)
    except KeyError:
        return False
    return True


WELL_KNOWN = {module.DESCRIPTOR.name: module.DESCRIPTOR.serialized_pb for module in _MODULES}
"""The files that come with protobuf, which no registry has to have."""


def _of_file(path: Path, message: str) -> Any:
    pool = DescriptorPool()
    try:
        for file in descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes()).file:
            pool.Add(file)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(message))
    except (OSError, *UNUSABLE) as error:
        raise ConfigurationError(
            [f"source.format: {path} has no type {message!r}, or is no set of descriptors: {error}"]
        ) from error


def _indexes(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Which message of the file it is, and what follows: zigzag numbers after their count; a zero is the first one."""
    count, at_byte = _number(data, 0)
    if not 0 <= count <= _DEEPEST:
        raise ValueError(f"want up to {_DEEPEST} indexes of a message type, got {count}")
    indexes = []
    for _ in range(count):
        index, at_byte = _number(data, at_byte)
        if index < 0:
            raise ValueError(f"want an index of a message type, got {index}")
        indexes.append(index)
    return tuple(indexes) or (0,), data[at_byte:]


def _number(data: bytes, first: int) -> tuple[int, int]:
    value = 0
    for shift, byte in enumerate(data[first : first + 5]):
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), first + shift + 1
    raise ValueError("want the indexes of a message type after the number of the schema")


class MessageRows(ColumnarRows):
    """Messages of one type: columns straight from them."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self._messages = messages

    def __len__(self) -> int:
        return len(self._messages)

    def column(self, steps: Sequence[str | int]) -> Column | None:
        return _column(self._messages, self._messages[0].DESCRIPTOR, list(steps))

    def objects(self) -> Iterable[object]:
        return map(_object, self._messages)


def _column(messages: Sequence[Any], kind: Any, steps: list[str | int]) -> Column | None:
    if not steps:
        columns = {field.name: _column(messages, kind, [field.name]) for field in kind.fields}
        return None if any(column is None for column in columns.values()) else columns
    field, further = kind.fields_by_name.get(steps[0]), steps[1:]
    if field is None:
        return None
    present = [message.HasField(field.name) for message in messages] if field.has_presence else [True]
    if not all(present):
        there = zip(messages, present, strict=True)
        values = [_plain(field, getattr(each, field.name)) if has else None for each, has in there]
        return as_column(at(values, further)) if any(present) else None
    return _of_all(field, [getattr(message, field.name) for message in messages], further)


def _of_all(field: Any, values: list[Any], steps: list[str | int]) -> Column | None:
    """A field that every message has."""
    inner = field.message_type
    if inner is not None and not field.is_repeated:
        if inner.full_name == _TIME and not steps:
            return np.array([each.seconds * 1_000_000 + each.nanos // 1_000 for each in values], "datetime64[us]")
        if not _special(inner):
            return _column(values, inner, steps)
    if inner is not None or field.enum_type is not None or field.is_repeated:
        values = [_plain(field, value) for value in values]
    return as_column(at(values, steps))


def _special(kind: Any) -> bool:
    return kind.full_name == _TIME or kind.full_name in _WRAPPERS or kind.full_name in _FREE


def _object(message: Any) -> dict[str, Any]:
    """A message by the names of its fields; one that is not there, and could be, has no member."""
    return {
        field.name: _plain(field, getattr(message, field.name))
        for field in message.DESCRIPTOR.fields
        if not field.has_presence or message.HasField(field.name)
    }


def _plain(field: Any, value: Any) -> Any:
    """As Python's own values."""
    if not field.is_repeated:
        return _single(field, value)
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        of = kind.fields_by_name["value"]
        names = kind.fields_by_name["key"]
        if of.message_type is None and of.enum_type is None and names.type == names.TYPE_STRING:
            return dict(value)
        return {str(key): _single(of, each) for key, each in value.items()}
    return [_single(field, each) for each in value]


def _single(field: Any, value: Any) -> Any:
    kind = field.message_type
    if kind is None and field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    if kind is None:
        return value
    if kind.full_name == _TIME:
        return value.ToDatetime(UTC)
    if kind.full_name in _WRAPPERS:
        return value.value
    return json_format.MessageToDict(value) if kind.full_name in _FREE else _object(value)

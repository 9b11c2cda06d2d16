"""`shiftwatch guess`: from some records to a proposal for [source.event]."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from monitor.errors import InputError
from monitor.events import EventMapping, FieldPath, guess

_RECORDS = 200
_SHOWN = 60
"""Characters of a value."""


def guessed(path: Path) -> int:
    """Print the table, each path with what stands there in the first record."""
    records = list(islice(_records(path), _RECORDS))
    if not records:
        raise InputError(f"{path}: there is no record in it")
    mapping = guess(records)
    print("# What stands where, as far as names and values tell; correct it, and see what `check` makes of it.")
    for line in _lines(mapping, records[0]):
        print(line)
    there = _there(mapping, records[0])
    if not {"posteriors", "score", "prediction"} & there:
        print("# Nothing looks like scores: say where `posteriors`, a `score` or a `prediction` stand.")
    if "timestamp" not in there:
        print("# No time stands in these records. Those of a topic have times of their own; lines of a file have none.")
    return 0


def _there(mapping: EventMapping, record: Any) -> set[str]:
    """The fields that are found in a record; of a preset all that it names."""
    located = mapping.located.items()
    if mapping.preset:
        return {field for field, _ in located}
    return {field for field, path in located if isinstance(path, Mapping) or path.look(record) is not None}


def _records(path: Path) -> Iterator[Any]:
    """The objects in a file, a record each line."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                record = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise InputError(f"{path}: line {number} is no JSON: {error}") from error
            yield from (each for each in (record if type(record) is list else [record]) if type(each) is dict)


def _lines(mapping: EventMapping, record: Any) -> Iterator[str]:
    yield "[source.event]"
    for field in fields(mapping):
        written = getattr(mapping, field.name)
        if isinstance(written, Mapping):
            parts = ", ".join(f"{json.dumps(name)} = {json.dumps(path)}" for name, path in written.items())
            yield f"{field.name} = {{ {parts} }}"
        elif written and field.name == "preset":
            yield f"preset = {json.dumps(written)}"
        elif written:
            value = json.dumps(FieldPath.of(written).look(record))
            yield f"{field.name} = {json.dumps(written)}    # {value[:_SHOWN]}{'...' if len(value) > _SHOWN else ''}"

"""The two stages as PyFlink's functions with keyed state."""

import time
from collections.abc import Iterator, MutableMapping
from typing import Any

from pyflink.common import Row, Types
from pyflink.datastream import KeyedProcessFunction, OutputTag, RuntimeContext
from pyflink.datastream.state import MapStateDescriptor, ValueStateDescriptor

from connectors.flink.frames import ENDS, PARTS, RECORDS, partition_ends, raw_batch
from connectors.flink.stages import Stages
from monitor.ports import Progress

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
MADE = Types.ROW([Types.STRING(), BYTES])
"""A stream, and a frame for its second stage."""
DEAD_LETTERS = OutputTag("dead-letters", BYTES)


class MakeParts(KeyedProcessFunction):
    """By partition."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages

    def open(self, runtime_context: RuntimeContext) -> None:
        self._progress = runtime_context.get_state(ValueStateDescriptor("progress", Types.STRING()))

    def process_element(self, value: bytes, _: Any) -> Iterator[Any]:
        if value[:1] == RECORDS:
            batch, stored = raw_batch(value), self._progress.value()
            made = self._stages.maker.take(batch, None if stored is None else _progress(stored), time.time_ns() // 1000)
            self._progress.update(f"{made.progress.offset} {made.progress.state}")
            for frame in self._stages.frames(made.dead_letters):
                yield DEAD_LETTERS, frame
            for stream, parts in made.parts.items():
                yield Row(stream, PARTS + parts)
        else:
            for stream in self._stages.streams:
                yield Row(stream, value)


class MergeParts(KeyedProcessFunction):
    """By stream."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages

    def open(self, runtime_context: RuntimeContext) -> None:
        self._parts, self._known = (
            _StateTable(runtime_context.get_map_state(MapStateDescriptor(name, Types.STRING(), BYTES)))
            for name in ("parts", "known")
        )

    def process_element(self, value: Row, _: Any) -> Iterator[bytes]:
        stream, frame = value
        tables, merger, now = (self._parts, self._known), self._stages.merger, time.monotonic()
        if frame[:1] == ENDS:
            messages = merger.told(stream, partition_ends(frame), *tables, now)
        else:
            messages = merger.take(stream, frame[1:], *tables, now)
        yield from self._stages.frames(messages)


class _StateTable(MutableMapping[str, bytes]):
    """The map state of the current key."""

    def __init__(self, state: Any) -> None:
        self._state = state

    def __getitem__(self, key: str) -> bytes:
        value = self._state.get(key)
        if value is None:
            raise KeyError(key)
        return bytes(value)

    def __setitem__(self, key: str, value: bytes) -> None:
        self._state.put(key, value)

    def __delitem__(self, key: str) -> None:
        self._state.remove(key)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._state.keys()))

    def __len__(self) -> int:
        return len(list(iter(self)))


def _progress(stored: str) -> Progress:
    offset, _, state = stored.partition(" ")
    return Progress(int(offset), state)

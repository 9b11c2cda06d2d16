"""Streams that are read alike are decoded together, and give what each would give alone."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.events import EventMapping
from monitor.events.decoding import DecodedBatch, Decoder
from monitor.ports.schema import Feature, StreamSchema
from tests.events.shop import NOW, NOW_TEXT, raw

ALIKE = [StreamSchema(name, ("no", "yes"), (Feature("x"),), positive="yes") for name in ("b", "a", "c")]
OTHERS = [StreamSchema(name, ("r", "s", "t")) for name in ("d", "e")]
DECODERS = {
    "all alike": (ALIKE, {}),
    "two kinds": (ALIKE + OTHERS, {}),
    "segments in one": (ALIKE, {"segments": {"a": ["country"]}, "identified": ["a", "b"]}),
    "records that are unfolded": (ALIKE, {"mapping": EventMapping(id="id|json")}),
}

fields: dict[str, st.SearchStrategy[Any]] = {
    "stream": st.sampled_from(["a", "b", "c", "d", "e", "nobody"]),
    "timestamp": st.sampled_from([NOW_TEXT, NOW // 1_000, "yesterday", "2026-11-18T09:00:00Z\n", 3, None]),
    "posteriors": st.sampled_from([[0.25, 0.75], {"yes": 0.5, "no": 0.5}, [0.2, 0.3, 0.5], [0.9, 0.3], "x", None]),
    "features": st.sampled_from([[1.5], {"x": 2}, {}, None]),
    "label": st.sampled_from(["yes", "no", "maybe", None]),
    "id": st.sampled_from(["one", "two", None]),
    "segment": st.sampled_from([{"country": "BE"}, None]),
}
events = st.fixed_dictionaries({}, optional=fields)
records = st.lists(st.one_of(events, st.lists(events, max_size=3)), max_size=12)


def plain(value: Any) -> Any:
    """Arrays as bytes, so that they can be compared."""
    return (value.dtype.str, value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value


def said_of(decoded: DecodedBatch, stream: str) -> list[Any]:
    """All that a batch holds of a stream."""
    said: list[Any] = []
    if stream in decoded.scored:
        scored = decoded.scored[stream]
        labels = np.full(scored.rows.events, -1) if scored.rows.labels is None else scored.rows.labels
        ids = None if scored.rows.ids is None else scored.rows.ids.tolist()
        segments = scored.rows.segments
        named = None if segments is None else [segments.names[code] for code in segments.codes]
        columns = (scored.index, scored.rows.posteriors, scored.rows.features, scored.rows.timestamps, labels)
        said += [*map(plain, columns), ids, named]
    if stream in decoded.late_labels:
        late = decoded.late_labels[stream]
        said += [*map(plain, (late.index, late.timestamps, late.labels)), None if late.ids is None else list(late.ids)]
    said += [(each.index, each.reason, each.detail, each.raw) for each in decoded.rejected if each.stream == stream]
    return said


@pytest.mark.parametrize("kind", DECODERS)
@settings(max_examples=100)
@given(some=records)
def test_streams_together_are_as_each_alone(kind: str, some: list[Any]) -> None:
    schemas, how = DECODERS[kind]
    batch = raw([msgspec.json.encode(record) for record in some], [NOW // 1_000] * len(some))
    together = Decoder(schemas, **how).decode(batch, NOW)
    for schema in schemas:
        others = [replaced(each, schema) for each in schemas]
        assert said_of(together, schema.stream) == said_of(Decoder(others, **how).decode(batch, NOW), schema.stream)


def replaced(each: StreamSchema, alone: StreamSchema) -> StreamSchema:
    """A schema like no other, so that the one that is left alone is read by itself."""
    if each is alone:
        return each
    return StreamSchema(each.stream, (*each.classes, f"only {each.stream}"), each.features)

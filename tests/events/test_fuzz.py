"""Whatever the bytes: an event as the slow twin reads it, or a rejection with a reason. Never an exception."""

import random
import tracemalloc

import msgspec
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.events.decoding import Decoder, Reason
from monitor.ports.schema import Feature, StreamSchema
from tests.events import naive
from tests.events.shop import NOW, NOW_TEXT, raw

CLASSES, FEATURES = ("legit", "fraud"), ("amount", "age")
NUMBERS = StreamSchema("shop", CLASSES, tuple(Feature(name) for name in FEATURES))
OTHER = StreamSchema("other", ("a", "b", "c"), (Feature("k", "category", ("x",)),), None)
DECODER = Decoder([NUMBERS])
SEVERAL = Decoder(
    [NUMBERS, OTHER, StreamSchema("prices", ())],
    segments={"shop": ["country"], "other": ["country", "plan"]},
    identified=["shop", "other", "prices"],
)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
names = st.sampled_from(
    ["stream", "id", "timestamp", "posteriors", "features", "label", "segment", "prediction", "score"]
)
known = st.sampled_from(["shop", "other", "legit", "fraud", "amount", "age", "country", NOW_TEXT])
values = st.recursive(
    scalars | known,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names | known | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(names, values, max_size=7)
plausible = st.fixed_dictionaries(
    {},
    optional={
        "stream": st.sampled_from(["shop", "other"]) | values,
        "id": values,
        "timestamp": st.sampled_from([NOW_TEXT, NOW // 1000]) | values,
        "posteriors": st.sampled_from([[0.5, 0.5], {"legit": 1, "fraud": 0}, [0.2, 0.3, 0.5]]) | values,
        "features": st.sampled_from([[1, 2], {"amount": None}, ["x"]]) | values,
        "label": st.sampled_from(["legit", "a"]) | values,
        "segment": st.sampled_from([{"country": "BE"}]) | values,
    },
)


def accounted_for(records: list, decoder: Decoder, times: list[int] | None = None) -> None:
    """Each record is scored, a label, or rejected with a reason, and columns are what they promise to be."""
    decoded = decoder.decode(raw(records, times), NOW)
    seen: set[int] = {one.index for one in decoded.rejected}
    assert all(one.reason in Reason for one in decoded.rejected)
    for scored in decoded.scored.values():
        seen |= set(scored.index.tolist())
        posteriors = scored.rows.posteriors
        assert np.isfinite(posteriors).all()
        assert (posteriors >= 0).all()
        assert scored.rows.timestamps is not None
        if posteriors.shape[1]:
            np.testing.assert_allclose(posteriors.sum(axis=1), 1.0, rtol=1e-12)
        if scored.rows.features is not None:
            assert not np.isinf(scored.rows.features).any()
    for labels in decoded.late_labels.values():
        seen |= set(labels.index.tolist())
    assert seen == set(range(len(records)))


@given(st.lists(st.none() | st.binary(max_size=60), max_size=8))
def test_any_bytes_are_accounted_for(records: list) -> None:
    accounted_for(records, SEVERAL)


@settings(max_examples=60)
@given(st.lists(objects | plausible | st.lists(plausible, max_size=4) | values, max_size=8), st.booleans())
def test_any_json_is_accounted_for(events: list, recorded: bool) -> None:
    # NaN, which JSON has not, is written as null.
    records = [msgspec.json.encode(event) for event in events]
    times = [NOW] * len(records) if recorded else None
    accounted_for(records, SEVERAL, times)
    accounted_for(records, DECODER, times)


def mutants(count: int, seed: int = 0) -> list[bytes]:
    """Good records with one to three random wounds."""
    chance = random.Random(seed)
    seeds = [
        msgspec.json.encode(event)
        for event in (
            {"stream": "shop", "timestamp": NOW_TEXT, "posteriors": [0.25, 0.75], "features": [1.5, None]},
            {"timestamp": NOW // 1000, "posteriors": {"legit": 0.5, "fraud": 0.5}, "label": "fraud"},
            {"timestamp": "2026-11-18T08:59:59.25+00:00", "posteriors": [1, 0], "features": {"age": -3e5}},
            [{"timestamp": NOW_TEXT, "posteriors": [0.25, 0.75]}, {"timestamp": NOW_TEXT, "posteriors": [0.5, 0.5]}],
        )
    ]
    tokens = [
        b"NaN",
        b"1e999",
        b"null",
        b"-",
        b'"',
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b":",
        b"\\ud800",
        b"\xff",
        b"0",
        b"9" * 30,
    ]
    records = []
    for _ in range(count):
        record = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 3)):
            start = chance.randrange(len(record) + 1)
            kind = chance.randrange(4)
            if kind == 0:
                record[start : start + 1] = bytes([chance.randrange(256)])
            elif kind == 1:
                del record[start : start + chance.randint(1, 6)]
            elif kind == 2:
                record[start:start] = chance.choice(tokens)
            else:
                end = chance.randrange(len(record) + 1)
                record[start:start] = record[min(start, end) : max(start, end)]
        records.append(bytes(record))
    return records


def test_a_hundred_thousand_mutants_are_accounted_for() -> None:
    records = mutants(100_000)
    for first in range(0, len(records), 2_000):
        accounted_for(records[first : first + 2_000], DECODER)


def comparable(record: bytes) -> bool:
    """Not an array; and no text in which msgspec and Python differ (msgspec leaves unread what does not matter)."""
    try:
        text = record.decode()
    except UnicodeDecodeError:
        return False
    return not text.lstrip().startswith("[") and "\\ud800" not in text


def test_mutants_decode_as_the_slow_twin_reads_them() -> None:
    records = [record for record in mutants(10_000, seed=1) if comparable(record)]
    decoded = DECODER.decode(raw(records), NOW)
    index, window = decoded.scored["shop"].index.tolist(), decoded.scored["shop"].rows
    assert window.features is not None
    assert window.timestamps is not None
    assert window.labels is not None
    fast = zip(window.posteriors, window.features, window.timestamps, window.labels, strict=True)
    scored = dict(zip(index, fast, strict=True))
    horizon = NOW + DECODER.limits.ahead
    ambiguous = {one.index for one in decoded.rejected if one.reason == Reason.AMBIGUOUS}
    for number, record in enumerate(records):
        slow = naive.decode(record, CLASSES, FEATURES, horizon)
        if slow is naive.BAD:
            assert number not in scored, record
        elif number not in ambiguous:  # of a field given twice, Python takes the last without a word
            posteriors, features, time, label = scored[number]
            np.testing.assert_allclose(posteriors, slow[0], rtol=1e-12)
            assert np.array_equal(features, slow[1], equal_nan=True)
            assert (time, label) == slow[2:]


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([b"[", b'{"a":', b"[1,", b'"', b"9", b"[{},", b"\\", b"[[],", b'{"features":[']))
def test_memory_is_bounded_by_a_small_multiple_of_the_record(piece: bytes) -> None:
    record = (piece * (1 << 20))[: 1 << 20]
    closed = record[: record.rindex(b",")] + b"]" if piece.endswith(b",") else record
    tracemalloc.start()
    try:
        for one in (record, closed):
            DECODER.decode(raw([one]), NOW)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 64 * len(record)

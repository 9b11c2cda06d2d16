"""Records that lie in one text give what the same records give one by one."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from connectors.jsonl import JsonlSource
from monitor.events.decoding import DecodedBatch, Decoder
from monitor.ports import Joined
from monitor.ports.schema import StreamSchema
from tests.events.shop import NOW, NOW_TEXT

DECODER = Decoder([StreamSchema("shop", ("legit", "fraud"), ()), StreamSchema("other", ("a", "b"), ())])


def event(score: float, stream: str = "shop") -> bytes:
    return msgspec.json.encode({"stream": stream, "timestamp": NOW_TEXT, "posteriors": [1 - score, score]})


GOOD = event(0.25)
FRAGMENTS = (
    *(GOOD, event(0.5, "other"), b"[" + GOOD + b"," + event(0.125) + b"]", GOOD + GOOD, GOOD + b" " + GOOD),
    *(b"", b" ", b"\r", b"{", b"}", b"[", b"]", b"1", b"null", b'"', b'{"stream":"shop",', GOOD[:-1], GOOD + b"\r"),
    *(b"{}", b"[]", b"[[" + GOOD + b"]]", b"\xef\xbb\xbf" + GOOD, GOOD + b",", b"{" * 2000 + b"}" * 2000),
)
fragments = st.sampled_from(FRAGMENTS)


def plain(decoded: DecodedBatch) -> tuple[object, ...]:
    scored = {
        name: (one.index.tolist(), one.rows.posteriors.tolist(), np.asarray(one.rows.timestamps).tolist())
        for name, one in decoded.scored.items()
    }
    labels = {name: one.index.tolist() for name, one in decoded.late_labels.items()}
    return scored, labels, decoded.rejected


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("joined") / "events.jsonl"


@settings(max_examples=300, deadline=None)
@given(st.lists(fragments | st.binary(max_size=20), max_size=12))
@example([GOOD + GOOD, b"", GOOD])  # as many values as lines, but not one in each
@example([b"[" + GOOD, b"," + GOOD + b"]", GOOD + GOOD])  # a value that reaches into the next line
@example([b'{"stream":"shop","timestamp":{}', GOOD + GOOD])
def test_lines_of_a_file_decode_as_they_would_one_by_one(path: Path, records: list[bytes]) -> None:
    path.write_bytes(b"\n".join(records))
    source = JsonlSource(path)
    source.start(None)
    for batch in source.poll(0):
        apart = replace(batch, records=list(batch.records))
        assert plain(DECODER.decode(batch, NOW)) == plain(DECODER.decode(apart, NOW))


def test_a_deeply_nested_record_is_judged_the_same_in_any_company(path: Path) -> None:
    tail = GOOD.replace(b'{"stream":"shop"', b"")
    for depth in range(700, 1_010):  # where a decoder gives up depends on who called it
        deep = b'{"stream":"shop","other":' + b"[" * depth + b"]" * depth + tail
        path.write_bytes(b"\n".join([GOOD, deep, GOOD, b""]))
        source = JsonlSource(path)
        source.start(None)
        [batch] = source.poll(0)
        apart = replace(batch, records=list(batch.records))
        assert plain(DECODER.decode(batch, NOW)) == plain(DECODER.decode(apart, NOW)), depth


def test_good_lines_are_taken_as_one_text_and_a_bad_one_costs_no_good_one(path: Path) -> None:
    path.write_bytes(b"\n".join([GOOD] * 700 + [b"{broken}"] + [GOOD] * 700) + b"\n")
    source = JsonlSource(path)
    source.start(None)
    [batch] = source.poll(0)
    assert isinstance(batch.records, Joined)
    assert batch.records.joined(0, 700) == b"\n".join([GOOD] * 700)
    decoded = DECODER.decode(batch, NOW)
    assert decoded.scored["shop"].index.tolist() == [*range(700), *range(701, 1401)]
    assert [one.index for one in decoded.rejected] == [700]

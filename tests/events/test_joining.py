"""Requests and responses that come as two records: the same events as if they came as one, whatever lies in between."""

import json
import re
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.events import Decoder, Joiner, JoinRule, Place, Reason
from monitor.ports import NEVER, RawBatch, Translated
from monitor.ports.options import Duration
from tests.events.shop import NOW, SHOP

SECOND = 1_000_000
RULE = JoinRule(("id",), "kind", "asked", "answered", "at", Duration(5 * SECOND), max_bytes=6_000)  # ten records or so
OVERHEAD = 512


@dataclass(frozen=True)
class Said:
    """A record."""

    id: int
    part: str
    second: int

    @property
    def record(self) -> bytes:
        return json.dumps({"id": self.id, "kind": self.part, "at": NOW // 1000 + 1000 * (self.second - 60)}).encode()


records = st.lists(
    st.builds(Said, st.integers(0, 5), st.sampled_from(["asked", "answered"]), st.integers(0, 30)), max_size=60
)
Outcomes = list[tuple[int, str, bytes]]
"""Where something came of a record, what, and what it says."""


def batch(said: Sequence[Said], first: int, stop: int) -> RawBatch:
    some = [each.record for each in said[first:stop]]
    return RawBatch("p", some, np.arange(first, first + len(some)) * 10, 10 * (first + len(some)))


def outcomes(joiner: Joiner, said: Sequence[Said], first: int, sizes: Sequence[int], stop: int) -> Outcomes:
    found: Outcomes = []
    turn = 0
    while first < stop:
        here = batch(said, first, min(first + sizes[turn % len(sizes)], stop))
        out, rejected = joiner.join(here, NOW)
        assert out.translated is not None
        joined = zip(out.translated.index, out.translated.records, strict=True)
        here_found = [(int(out.offsets[row]), "joined", record or b"") for row, record in joined]
        here_found += [(int(out.offsets[bad.index]), str(bad.reason), bad.raw or b"") for bad in rejected]
        found += sorted(here_found)
        first, turn = first + len(here.records), turn + 1
    return found


def by_definition(said: Sequence[Said]) -> Outcomes:
    """What comes of each record, by looking at all pairs."""
    read = np.cumsum([len(each.record) + OVERHEAD for each in said])
    newest = np.maximum.accumulate([SECOND * each.second for each in said])

    def reaches(later: int, earlier: int) -> bool:
        near = bool(newest[later] - newest[earlier] <= RULE.within)
        return near and bool(read[later] - read[earlier] < RULE.max_bytes)

    def same(later: int, first: int = 0) -> list[int]:
        return [row for row in range(first, later) if said[row].id == said[later].id]

    found: Outcomes = []
    waits = {row for row in range(len(said)) if not any(reaches(row, other) for other in same(row))}
    partner = {}
    for row, each in enumerate(said):
        for first in same(row) if row not in waits else ():
            only = {said[other].part for other in same(row, first)} == {said[first].part}
            if first in waits and reaches(row, first) and only and each.part != said[first].part:
                partner[row] = first
    for row, each in enumerate(said):
        if row in partner:
            both = {each.part: each.record, said[partner[row]].part: said[partner[row]].record}
            found.append((row * 10, "joined", b'{"request":%b,"response":%b}' % (both["asked"], both["answered"])))
        elif row not in waits:
            found.append((row * 10, "repeated", each.record))
        elif row not in partner.values():
            beyond = [later for later in range(row + 1, len(said)) if not reaches(later, row)]
            found += [(later * 10, "unmatched", each.record) for later in beyond[:1]]
    return sorted(found)


@settings(max_examples=150, deadline=None)
@given(said=records, sizes=st.lists(st.integers(1, 20), min_size=1, max_size=5))
def test_what_comes_of_each_record_is_what_the_definition_says_whatever_the_batches(
    said: list[Said], sizes: list[int]
) -> None:
    assert sorted(outcomes(Joiner(RULE), said, 0, sizes, len(said))) == by_definition(said)


@settings(max_examples=150, deadline=None)
@given(said=records, data=st.data())
def test_a_restart_goes_on_as_if_nothing_had_happened(said: list[Said], data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
    whole = by_definition(said)
    joiner, first, committed = Joiner(RULE), 0, 0
    for _ in range(3):
        killed = data.draw(st.integers(first, len(said)))
        outcomes(joiner, said, first, sizes, killed)
        offset = data.draw(st.integers(committed, max(committed, killed))) * 10  # windows may need events of long ago
        place = joiner.reread("p", offset)
        if place is None:
            continue
        joiner.committed("p", offset)
        assert joiner.reread("p", offset) == place
        joiner = Joiner(RULE)
        joiner.begin("p", offset, place)
        first, committed = place.offset // 10, offset // 10
    went_on = outcomes(joiner, said, first, sizes, len(said))
    assert went_on == sorted(each for each in whole if each[0] >= committed * 10)


def test_records_read_again_say_nothing_of_what_was_said_before() -> None:
    said = [Said(n, part, n) for n in range(4) for part in ("asked", "answered")]
    joiner = Joiner(RULE)
    joiner.begin("p", 60, Place(0, NEVER))
    out, rejected = joiner.join(batch(said, 0, 4), NOW)
    assert out.next_offset == 60
    assert out.translated is not None
    assert (list(out.translated.records), list(rejected)) == ([], [])


@pytest.mark.parametrize("record", [None, b"", b"{", b"[1]", b'{"kind": "other", "id": 1}', b'{"id": 1}', b"7"])
def test_what_is_neither_a_request_nor_a_response_is_handed_on(record: bytes | None) -> None:
    out, rejected = Joiner(RULE).join(RawBatch("p", [record], np.array([0]), 1), NOW)
    assert out.translated is not None
    assert (list(out.translated.records), list(rejected)) == ([record], [])


@pytest.mark.parametrize("id", [None, True, 1.5, [], {}])
def test_a_request_without_an_id_is_rejected(id: object) -> None:
    record = json.dumps({"kind": "asked", "id": id}).encode()
    out, rejected = Joiner(RULE).join(RawBatch("p", [record], np.array([0]), 1), NOW)
    assert [(bad.reason, bad.raw) for bad in rejected] == [(Reason.BAD_ID, record)]
    assert out.translated is not None
    assert list(out.translated.records) == []


odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just(10**400) | st.just([1])
halves = st.fixed_dictionaries(
    {"kind": st.sampled_from(["asked", "answered"]) | odd, "id": st.sampled_from([1, "a"]) | odd, "at": odd}
)


@settings(max_examples=150)
@given(st.lists(st.none() | st.binary(max_size=30) | halves, max_size=12))
def test_whatever_comes_waits_is_handed_on_or_is_rejected_by_name(given: list[Any]) -> None:
    some = [json.dumps(each).encode() if isinstance(each, dict) else each for each in given]
    out, rejected = Joiner(RULE).join(RawBatch("p", some, np.arange(len(some)), len(some)), NOW)
    assert {bad.reason for bad in rejected} <= {Reason.BAD_ID, Reason.REPEATED, Reason.UNMATCHED}
    if some:
        decoded = Decoder([SHOP]).decode(out, NOW)
        assert out.translated is not None
        seen = {bad.index for bad in decoded.rejected} | {int(row) for each in decoded.together for row in each.index}
        assert seen == set(out.translated.index.tolist())


def test_records_of_another_format_are_joined_as_what_they_say() -> None:
    said = [Said(1, "asked", 1), Said(1, "answered", 2)]
    translated = Translated([each.record for each in said], np.array([0, 2]), {1: "no such schema"})
    out, rejected = Joiner(RULE).join(RawBatch("p", [b"a", b"b", b"c"], np.arange(3), 3, None, 0, translated), NOW)
    assert out.translated is not None
    joined = b'{"request":%b,"response":%b}' % (said[0].record, said[1].record)
    assert list(out.translated.records) == [joined]
    assert out.translated.index.tolist() == [2]
    assert out.translated.faults == {1: "no such schema"}
    assert list(out.records) == [b"a", b"b", joined]  # what a dead letter would hold
    assert not rejected


def test_a_time_in_the_far_future_separates_nothing() -> None:
    said = [Said(1, "asked", 1), Said(2, "asked", 2_000_000), Said(1, "answered", 2)]
    assert [each[:2] for each in outcomes(Joiner(RULE), said, 0, [9], 3)] == [(20, "joined")]


def test_what_waits_takes_no_more_memory_than_is_allowed() -> None:
    joiner = Joiner(JoinRule(("id",), "kind", "asked", "answered", within=Duration(SECOND), max_bytes=4 << 20))
    tracemalloc.start()
    for first in range(0, 4_000, 200):
        some = [Said(n, "asked", 0).record + b" " * 4_000 for n in range(first, first + 200)]
        joiner.join(RawBatch("p", some, np.arange(first, first + 200), first + 200), NOW)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * (4 << 20)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"id": ()}, "want `id`"),
        ({"response": "asked"}, "told apart"),
        ({"max_bytes": 10}, "max_bytes"),
        ({"part": "a.*"}, "without \\*"),
        ({"time": ".."}, "want a path"),
    ],
)
def test_a_rule_that_joins_nothing_is_a_problem(changed: dict[str, Any], said: str) -> None:
    rule = replace(JoinRule(("id",), "kind", "asked", "answered"), **changed)
    assert re.search(said, "\n".join(rule.problems()))

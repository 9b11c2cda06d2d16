"""Every reason for which a record is rejected, and that it costs nothing but itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.events.decoding import Decoder, Reason
from tests.events.shop import GOOD, NOW, OTHER, PRICES, SHOP, SMALL, decode, encoded, raw

# Windows tell the first two, other formats the next, and records that are halves the last.
LATER = (Reason.LATE, Reason.LATE_AFTER_IDLE, Reason.UNREADABLE, Reason.UNMATCHED, Reason.REPEATED)

SEVERAL = Decoder([SHOP, OTHER, PRICES], segments={"shop": ["country"]}, identified=["shop"], limits=SMALL)
ROOMY = Decoder([SHOP, OTHER, PRICES])  # records may be as large as by default

FAR = "2999-01-01T00:00:00Z"
PRICE = {"stream": "prices", "timestamp": NOW // 1000, "prediction": 1.0}

CASES: list[tuple[Reason, object]] = [
    (Reason.EMPTY, None),
    (Reason.EMPTY, b""),
    (Reason.EMPTY, b" \r\n"),
    (Reason.EMPTY, []),
    (Reason.TOO_LARGE, b'"' + b"x" * 500 + b'"'),
    (Reason.TOO_LARGE, {**GOOD, "note": "x" * 500}),
    (Reason.TOO_LARGE, [1, 2, 3, 4]),
    (Reason.TOO_LARGE, [{"stream": "shop"}] * 4),
    (Reason.NOT_JSON, b"nope"),
    (Reason.NOT_JSON, encoded(GOOD)[0][:-1]),
    (Reason.NOT_JSON, encoded(GOOD)[0] * 2),
    (Reason.NOT_JSON, b'{"stream": "shop", "note": "\\ud800"}'),
    (Reason.NOT_JSON, b'{"stream": "NaN" '),
    (Reason.NOT_JSON, b"\xef\xbb\xbf{}"),
    (Reason.NOT_JSON, b"[{}, {}"),
    (Reason.NOT_FINITE, b'{"stream": "shop", "posteriors": [NaN, 1]}'),
    (Reason.NOT_FINITE, b'{"stream": "shop", "posteriors": [-Infinity, 1]}'),
    (Reason.NOT_FINITE, b'{"stream": "shop", "posteriors": [1e999, 0]}'),
    (Reason.NOT_FINITE, b'{"stream": "shop", "posteriors": [0.5, 0.5], "features": {"amount": 1e999}}'),
    (Reason.NOT_FINITE, b'{"stream": "shop", "posteriors": [' + b"9" * 400 + b", 0]}"),
    (Reason.TOO_DEEP, b'{"note":' + b"[" * 100_000),
    (Reason.TOO_DEEP, b'{"note":' * 100_000),
    (Reason.NOT_AN_EVENT, b"null"),
    (Reason.NOT_AN_EVENT, b"7"),
    (Reason.NOT_AN_EVENT, b'"text"'),
    (Reason.NOT_AN_EVENT, [[GOOD]]),
    (Reason.UNKNOWN_STREAM, {**GOOD, "stream": "strange"}),
    (Reason.UNKNOWN_STREAM, {**GOOD, "stream": None}),
    (Reason.UNKNOWN_STREAM, {**GOOD, "stream": 7}),
    (Reason.UNKNOWN_STREAM, {"posteriors": [0.5, 0.5]}),
    (Reason.MISSING_POSTERIORS, {**GOOD, "posteriors": None}),
    (Reason.MISSING_POSTERIORS, {"stream": "shop"}),
    (Reason.MISSING_POSTERIORS, {"stream": "other", "score": 0.5}),
    (Reason.BAD_POSTERIORS, {**GOOD, "posteriors": "high"}),
    (Reason.BAD_POSTERIORS, {**GOOD, "posteriors": ["a", "b"]}),
    (Reason.BAD_POSTERIORS, {**GOOD, "posteriors": [0.5, None]}),
    (Reason.BAD_POSTERIORS, {**GOOD, "posteriors": [True, False]}),
    (Reason.BAD_POSTERIORS, {"stream": "shop", "score": "high"}),
    (Reason.WRONG_CLASSES, {**GOOD, "posteriors": [1.0]}),
    (Reason.WRONG_CLASSES, {**GOOD, "posteriors": []}),
    (Reason.WRONG_CLASSES, {**GOOD, "posteriors": [0.5, 0.25, 0.25]}),
    (Reason.WRONG_CLASSES, {**GOOD, "posteriors": {"legit": 1.0}}),
    (Reason.WRONG_CLASSES, {**GOOD, "posteriors": {"legit": 0.5, "fraud": 0.5, "?": 0.0}}),
    (Reason.NEGATIVE, {**GOOD, "posteriors": [-0.1, 1.1]}),
    (Reason.NEGATIVE, {"stream": "shop", "timestamp": NOW // 1000, "score": 1.5}),
    (Reason.POSTERIOR_SUM, {**GOOD, "posteriors": [0.5, 0.502]}),
    (Reason.POSTERIOR_SUM, {**GOOD, "posteriors": [0.0, 0.0]}),
    (Reason.MISSING_PREDICTION, {"stream": "prices"}),
    (Reason.BAD_PREDICTION, {**PRICE, "prediction": "high"}),
    (Reason.MISSING_TIMESTAMP, {"stream": "shop", "posteriors": [0.5, 0.5]}),
    (Reason.BAD_TIMESTAMP, {**GOOD, "timestamp": "yesterday"}),
    (Reason.BAD_TIMESTAMP, {**GOOD, "timestamp": "2026-11-18T09:00:00"}),
    (Reason.BAD_TIMESTAMP, {**GOOD, "timestamp": ""}),
    (Reason.BAD_TIMESTAMP, {**GOOD, "timestamp": 1e300}),
    (Reason.BAD_TIMESTAMP, {**GOOD, "timestamp": []}),
    (Reason.FUTURE_TIMESTAMP, {**GOOD, "timestamp": FAR}),
    (Reason.FUTURE_TIMESTAMP, {"stream": "shop", "id": "x", "label": "fraud", "timestamp": FAR}),
    (Reason.BAD_LABEL, {**GOOD, "label": "neither"}),
    (Reason.BAD_LABEL, {**GOOD, "label": 1}),
    (Reason.BAD_LABEL, {**GOOD, "label": ["fraud"]}),
    (Reason.BAD_LABEL, {"stream": "shop", "id": "x", "label": "neither"}),
    (Reason.BAD_LABEL, {**PRICE, "label": "high"}),
    (Reason.BAD_FEATURES, {**GOOD, "features": [1.0]}),
    (Reason.BAD_FEATURES, {**GOOD, "features": {"amount": "much"}}),
    (Reason.BAD_FEATURES, {**GOOD, "features": {"gift": 2}}),
    (Reason.BAD_FEATURES, {**GOOD, "features": {"country": ["BE"]}}),
    (Reason.BAD_FEATURES, {**GOOD, "features": 1}),
    (Reason.BAD_ID, {**GOOD, "id": 1.5}),
    (Reason.BAD_ID, b'{"stream": "shop", "id": "\xff\xfe"}'),
    (Reason.BAD_ID, {"stream": "shop", "label": "fraud"}),
    (Reason.BAD_SEGMENT, {**GOOD, "segment": "BE"}),
    (Reason.BAD_SEGMENT, {**GOOD, "segment": {"country": {}}}),
    (Reason.BAD_SEGMENT, {**GOOD, "segment": {"country": "x" * 300}}),
    (Reason.AMBIGUOUS, b'{"stream": "shop", "posteriors": "high", "posteriors": [0.5, 0.5]}'),
]


@pytest.mark.parametrize(("reason", "event"), CASES)
def test_a_bad_record_is_rejected_with_its_reason_and_costs_no_other(reason: Reason, event: object) -> None:
    decoded = decode(GOOD, event, GOOD, decoder=ROOMY if reason == Reason.TOO_DEEP else SEVERAL)
    assert [(one.index, one.reason) for one in decoded.rejected] == [(1, reason)]
    assert decoded.scored["shop"].index.tolist() == [0, 2]
    assert decoded.late_labels == {}


def test_every_reason_has_a_case() -> None:
    assert {reason for reason, _ in CASES} == set(Reason) - set(LATER)


def test_a_rejection_keeps_the_original_bytes() -> None:
    records = [b'{"stream": "strange"}', b"nope", None]
    decoded = Decoder([SHOP]).decode(raw(records), NOW)
    assert [one.raw for one in decoded.rejected] == records


def test_a_bad_event_of_an_array_costs_only_itself_and_keeps_only_its_own_bytes() -> None:
    bad_shape, bad_sum = b'{"posteriors":  [1]}', b'{"timestamp": 1e12, "posteriors":  [0.5, 0.6]}'
    good = encoded(GOOD)[0]
    decoded = decode(b"[" + b", ".join([good, bad_shape, good, bad_sum, b"7", good]) + b"]", GOOD)
    assert decoded.scored["shop"].index.tolist() == [0, 0, 0, 1]
    assert {(one.index, one.reason, one.raw) for one in decoded.rejected} == {
        (0, Reason.WRONG_CLASSES, bad_shape),
        (0, Reason.POSTERIOR_SUM, bad_sum),
        (0, Reason.NOT_AN_EVENT, b"7"),
    }


def test_an_array_that_is_good_json_but_holds_a_bad_sum_keeps_only_that_event_s_bytes() -> None:
    bad = b'{"timestamp": 1e12, "posteriors": [0.5, 0.6]}'
    decoded = decode(b"[" + encoded(GOOD)[0] + b"," + bad + b"]")
    assert [(one.reason, one.raw) for one in decoded.rejected] == [(Reason.POSTERIOR_SUM, bad)]


def test_the_stream_of_a_rejection_is_named_when_it_is_known() -> None:
    decoded = decode({**GOOD, "posteriors": 1}, {**GOOD, "label": "?"}, {**GOOD, "stream": "?"}, decoder=ROOMY)
    assert [one.stream for one in decoded.rejected] == ["shop", "shop", ""]


def test_details_are_short_and_rejections_in_record_order() -> None:
    strange = {**GOOD, "stream": "x" * 10_000}
    decoded = decode(GOOD, {**GOOD, "label": "?"}, strange, {**GOOD, "posteriors": [0, 0]}, b"?")
    assert [one.index for one in decoded.rejected] == [1, 2, 3, 4]
    assert max(len(one.detail) for one in decoded.rejected) <= 200


def test_a_time_just_within_the_allowance_is_taken_and_just_beyond_it_is_not() -> None:
    ahead = Decoder([SHOP]).limits.ahead
    decoded = decode({**GOOD, "timestamp": (NOW + ahead) / 1000}, {**GOOD, "timestamp": (NOW + ahead) / 1000 + 1})
    assert decoded.scored["shop"].index.tolist() == [0]
    assert decoded.rejected[0].reason == Reason.FUTURE_TIMESTAMP


def test_a_record_without_a_time_is_told_from_one_of_the_epoch() -> None:
    untimed = {"stream": "shop", "posteriors": [0.5, 0.5]}
    decoded = decode(untimed, untimed, timestamps=[0, -1])
    assert decoded.scored["shop"].rows.timestamps.tolist() == [0]
    assert decoded.rejected[0].reason == Reason.MISSING_TIMESTAMP


def test_a_broken_batch_is_a_batch_of_rejections() -> None:
    decoded = decode(*[b"nope"] * 1000)
    assert len(decoded.rejected) == 1000
    assert decoded.scored == {}


@given(
    st.lists(st.sampled_from([event for _, event in CASES if event is not None] + [GOOD] * 20), max_size=30), st.data()
)
def test_any_batching_gives_the_same_rows_and_rejections(events: list, data: st.DataObject) -> None:
    records = [event if isinstance(event, bytes) else encoded(event)[0] for event in events if event != b""]
    records = [record for record in records if len(record) < 10_000]
    cut = data.draw(st.integers(0, len(records)))
    whole = SEVERAL.decode(raw(records), NOW)
    parts = [SEVERAL.decode(raw(some), NOW) for some in (records[:cut], records[cut:])]
    rejected = [
        (one.index + shift, one.reason, one.detail, one.raw)
        for shift, part in zip((0, cut), parts, strict=True)
        for one in part.rejected
    ]
    assert [(one.index, one.reason, one.detail, one.raw) for one in whole.rejected] == rejected
    for stream, scored in whole.scored.items():
        of_parts = [part.scored[stream].rows for part in parts if stream in part.scored]
        assert np.concatenate([one.posteriors for one in of_parts]).tobytes() == scored.rows.posteriors.tobytes()

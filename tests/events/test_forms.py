"""All the ways in which an event may be written say the same."""

import numpy as np
import pytest

from monitor.errors import InputError
from monitor.events.decoding import Decoder, Reason
from monitor.events.timestamps import NO_TIME
from monitor.ports.schema import Feature, StreamSchema
from monitor.windows.window import Window
from tests.events.shop import GOOD, NOW, NOW_TEXT, OTHER, PRICES, SHOP, decode, encoded, rows


def same(one: Window, two: Window) -> bool:
    return all(
        np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True)
        for name in ("posteriors", "features", "timestamps")
    )


def test_lists_and_objects_of_posteriors_and_features_are_the_same() -> None:
    listed = {**GOOD, "features": [12.5, "FR", True]}
    keyed = {
        **GOOD,
        "posteriors": {"fraud": 0.1, "legit": 0.9},
        "features": {"gift": True, "amount": 12.5, "country": "FR", "unheard": [1]},
    }
    for mixture in ([listed, listed], [keyed, keyed], [listed, keyed], [keyed, listed]):
        assert same(rows(decode(*mixture)), rows(decode(listed, listed)))


@pytest.mark.parametrize("classes", [2, 3])
def test_rows_lie_in_memory_alike_however_they_are_written(classes: int) -> None:
    """Sums over a column depend in their last bits on how it lies in memory."""
    names = tuple("abc"[:classes])
    decoder = Decoder([StreamSchema("shop", names, tuple(Feature(name) for name in names))])
    numbers = [1.0, 0.0, 0.0][:classes]
    listed = {**GOOD, "posteriors": numbers, "features": numbers}
    keyed = {**GOOD, "posteriors": dict(zip(names, numbers, strict=True)), "features": dict.fromkeys(names, 0.5)}
    for mixture in ([listed] * 4, [keyed] * 4, [keyed, listed] * 2, [{**keyed, "features": {}}] * 4):
        found = rows(decode(*mixture, decoder=decoder))
        assert found.posteriors.flags.c_contiguous
        assert found.features is not None
        assert found.features.flags.c_contiguous


def test_an_array_of_events_is_its_events_with_the_array_s_record_index() -> None:
    apart = decode(GOOD, GOOD, GOOD)
    together = decode([GOOD, GOOD], GOOD)
    assert same(rows(apart), rows(together))
    assert together.scored["shop"].index.tolist() == [0, 0, 1]


def test_a_score_is_the_posterior_of_the_positive_class() -> None:
    scored = {"stream": "shop", "timestamp": NOW_TEXT, "score": 0.25}
    assert rows(decode(scored)).posteriors.tolist() == [[0.75, 0.25]]
    assert rows(decode(scored, GOOD)).posteriors.tolist() == [[0.75, 0.25], [0.9, 0.1]]
    first_positive = Decoder([StreamSchema("shop", ("fraud", "legit"), positive="fraud")])
    assert rows(decode(scored, decoder=first_positive)).posteriors.tolist() == [[0.25, 0.75]]


def test_posteriors_win_over_a_score() -> None:
    assert rows(decode({**GOOD, "score": 0.7})).posteriors.tolist() == [[0.9, 0.1]]


def test_times_are_text_or_epoch_milliseconds_or_the_record_s_own() -> None:
    untimed = {"posteriors": [0.5, 0.5]}
    decoded = decode(
        {**untimed, "timestamp": NOW_TEXT},
        {**untimed, "timestamp": NOW // 1000},
        {**untimed, "timestamp": NOW / 1000 + 0.25},
        untimed,
        {**untimed, "timestamp": None},
        timestamps=[1, 1, 1, NOW - 7, NOW - 8],
    )
    assert rows(decoded).timestamps.tolist() == [NOW, NOW, NOW + 250, NOW - 7, NOW - 8]


def test_missing_features_are_nan_however_they_are_missing() -> None:
    events = [
        GOOD,
        {**GOOD, "features": None},
        {**GOOD, "features": {}},
        {**GOOD, "features": [None, None, None]},
        {**GOOD, "features": {"amount": None}},
    ]
    for several in (events, events[3:4], events[4:]):
        assert np.isnan(rows(decode(*several)).features).all()


def test_categories_and_booleans_become_codes_and_a_strange_category_one_past_the_end() -> None:
    decoded = decode(
        {**GOOD, "features": [1, "BE", False]},
        {**GOOD, "features": [2, "FR", 1]},
        {**GOOD, "features": [3, "NL", 0]},
        {**GOOD, "features": [4, 7, None]},
    )
    assert np.array_equal(rows(decoded).features, [[1, 0, 0], [2, 1, 1], [3, 2, 0], [4, 2, np.nan]], equal_nan=True)


def test_a_null_among_numbers_is_missing() -> None:
    numbers = Decoder([StreamSchema("shop", ("legit", "fraud"), (Feature("a"), Feature("b")))])
    decoded = decode({**GOOD, "features": [1, None]}, {**GOOD, "features": [2, 3]}, decoder=numbers)
    assert np.array_equal(rows(decoded).features, [[1, np.nan], [2, 3]], equal_nan=True)


def test_posteriors_within_a_thousandth_of_one_are_renormalised_and_three_thirds_pass() -> None:
    three = Decoder([OTHER])
    event = {"stream": "other", "timestamp": NOW_TEXT, "posteriors": [0.333, 0.333, 0.333]}
    np.testing.assert_allclose(rows(decode(event, decoder=three), "other").posteriors, [[1 / 3] * 3], rtol=1e-15)
    np.testing.assert_allclose(
        rows(decode({**GOOD, "posteriors": [0.5, 0.501]})).posteriors, [[500 / 1001, 501 / 1001]]
    )


def test_labels_are_class_numbers_and_none_when_no_event_has_one() -> None:
    decoded = decode({**GOOD, "label": "fraud"}, GOOD, {**GOOD, "label": None})
    assert rows(decoded).labels.tolist() == [1, -1, -1]
    assert rows(decode(GOOD)).labels is None


def test_classes_named_by_numbers_may_be_written_as_numbers() -> None:
    digits = Decoder([StreamSchema("shop", ("0", "1"))])
    decoded = decode({**GOOD, "label": 1}, {**GOOD, "label": "0"}, decoder=digits)
    assert rows(decoded).labels.tolist() == [1, 0]


def test_whole_numbers_that_became_fractions_beside_missing_ones_are_classes_again() -> None:
    digits = Decoder([StreamSchema("shop", ("0", "1"))])
    decoded = decode({**GOOD, "label": 1.0}, {**GOOD, "label": "0.0"}, {**GOOD, "label": None}, decoder=digits)
    assert rows(decoded).labels.tolist() == [1, 0, -1]
    bad = decode({**GOOD, "label": 0.5}, {**GOOD, "label": "1.00"}, decoder=digits)
    assert [one.reason for one in bad.rejected] == [Reason.BAD_LABEL] * 2
    named = Decoder([StreamSchema("shop", ("1", "1.0"))])
    assert rows(decode({**GOOD, "label": "1.0"}, {**GOOD, "label": 1.0}, decoder=named)).labels.tolist() == [1, 0]


def test_a_label_event_comes_apart_from_the_scored_ones() -> None:
    decoder = Decoder([SHOP], identified=["shop"])
    label = {"stream": "shop", "id": 81, "label": "fraud"}
    decoded = decode({**GOOD, "id": "tx"}, label, {**label, "timestamp": NOW_TEXT}, decoder=decoder)
    assert rows(decoded).ids.tolist() == ["tx"]
    late = decoded.late_labels["shop"]
    assert (late.index.tolist(), late.labels.tolist(), late.ids.tolist()) == ([1, 2], [1, 1], ["81", "81"])
    assert late.timestamps.tolist() == [NO_TIME, NOW]


def test_a_label_event_with_posteriors_is_a_labelled_scored_event() -> None:
    decoded = decode({**GOOD, "id": "tx", "label": "fraud"})
    assert decoded.late_labels == {}
    assert rows(decoded).labels.tolist() == [1]


def test_ids_are_left_unread_unless_asked_for() -> None:
    decoded = decode({**GOOD, "id": {"not": "an id"}}, {"id": "x", "label": "legit"})
    assert rows(decoded).ids is None
    assert decoded.late_labels["shop"].ids is None


def test_segments_are_named_by_the_configured_fields() -> None:
    decoder = Decoder([SHOP], segments={"shop": ["country", "plan"]})
    decoded = decode(
        {**GOOD, "segment": {"country": "BE", "plan": "a,b", "x": 1}},
        {**GOOD, "segment": {"country": True}},
        GOOD,
        decoder=decoder,
    )
    segments = rows(decoded).segments
    assert [segments.names[code] for code in segments.codes] == [
        "country=BE,plan=a\\,b",
        "country=true,plan=",
        "country=,plan=",
    ]


def test_a_regression_event_carries_a_prediction_and_its_label_is_a_number() -> None:
    decoder = Decoder([PRICES])
    event = {"stream": "prices", "timestamp": NOW_TEXT, "prediction": 3.5, "features": [1]}
    decoded = decode(event, {**event, "label": 4}, {"id": "x", "label": 2.5}, decoder=decoder)
    window = rows(decoded, "prices")
    assert window.predictions.tolist() == [3.5, 3.5]
    assert np.array_equal(window.targets, [np.nan, 4.0], equal_nan=True)
    assert window.posteriors.shape == (2, 0)
    assert decoded.late_labels["prices"].targets.tolist() == [2.5]


def test_several_streams_share_a_batch_and_each_keeps_its_order() -> None:
    decoder = Decoder([SHOP, OTHER, PRICES])
    other = {"stream": "other", "timestamp": NOW_TEXT, "posteriors": [0.2, 0.3, 0.5]}
    price = {"stream": "prices", "timestamp": NOW_TEXT, "prediction": 1}
    decoded = decode(other, GOOD, [price, other], GOOD, decoder=decoder)
    index = {stream: scored.index.tolist() for stream, scored in decoded.scored.items()}
    assert index == {"shop": [1, 3], "other": [0, 2], "prices": [2]}


def test_without_a_stream_an_event_belongs_to_the_only_one() -> None:
    assert rows(decode({"timestamp": NOW_TEXT, "posteriors": [0.9, 0.1]})).events == 1


def test_unknown_fields_are_ignored_whatever_they_hold() -> None:
    assert rows(decode({**GOOD, "trace": {"deep": [[], {}, None, "\u0000"]}})).events == 1


def test_the_rows_cannot_be_written_to() -> None:
    window = rows(decode(GOOD))
    for column in (window.posteriors, window.features, window.timestamps):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


def test_class_and_feature_names_may_be_any_printable_text() -> None:
    odd = Decoder([StreamSchema("shop", ("class", "élan vital"), (Feature("__init__"), Feature("a b")))])
    event = {"timestamp": NOW_TEXT, "posteriors": {"class": 1, "élan vital": 0}, "features": {"__init__": 1, "a b": 2}}
    assert rows(decode(event, decoder=odd)).features.tolist() == [[1, 2]]


def test_a_decoder_wants_streams_with_different_names() -> None:
    for schemas in ([], [SHOP, SHOP]):
        with pytest.raises(InputError, match="schemas: want"):
            Decoder(schemas)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"classes": ("a", "a")}, "every name once"),
        ({"classes": ("a", 'b"')}, "without quotes"),
        ({"classes": ("a", "b", "c"), "positive": "a"}, "one of two classes"),
        ({"classes": ("a", "b"), "positive": "c"}, "one of two classes"),
        ({"classes": ("a", "b"), "features": (Feature("x"), Feature("x"))}, "features: want every name once"),
    ],
)
def test_a_schema_that_no_event_could_follow_is_refused(fields: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        StreamSchema("shop", **fields)


def test_an_empty_batch_decodes_to_nothing() -> None:
    decoded = decode()
    assert (decoded.scored, decoded.late_labels, decoded.rejected) == ({}, {}, ())


def test_encoded_is_what_decode_takes() -> None:
    assert rows(decode(*encoded(GOOD))).events == 1

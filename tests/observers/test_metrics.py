"""What Prometheus sees: the catalogue and nothing else, whole from the start, gone when stale, bounded in number."""

import time
from typing import Any

import numpy as np
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from monitor.assessment.verdict import Verdict, verdicts
from monitor.events.reasons import Reason
from monitor.observers.metric_catalogue import CATALOGUE
from monitor.observers.metrics import LATE, families, registry
from monitor.observers.snapshot import Caps
from monitor.windows import OTHER_SEGMENTS
from tests.service import regression_streams as streams
from tests.web.made_up import MINUTE, Lagging, Story, Transacting

ALLOWED = {"stream", "segment", "class", "feature", "estimator", "verdict", "reason", "topic", "partition", "measure"}


def samples(story: Story, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """The samples of one series name by their labels."""
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in families(story.history.snapshot, story.history.now())
        for sample in family.samples
        if sample.name == name
    }


def value(story: Story, name: str, **labels: str) -> float:
    return samples(story, name)[tuple(sorted(labels.items()))]


def full_story() -> Story:
    story = Story(source=Lagging(), sink=Transacting(), changes="adwin")
    story.busy(rejected=2)
    story.window(Verdict.PRIOR_SHIFT, labels=np.array([0, 1, 2, 0, 1, 2, 0, 0, 0, 0]), apply=True)
    story.window(segment="country=BE")
    story.outcome()
    return story


def test_an_outcome_shows_what_was_and_whether_estimates_are_to_be_trusted() -> None:
    story = full_story()
    of_class = {"stream": "made-up", "segment": "", "class": "class_0"}
    assert value(story, "shiftwatch_outcome_realised_ratio", **of_class) == 1
    assert value(story, "shiftwatch_estimates_trusted", stream="made-up", segment="") == 1
    assert value(story, "shiftwatch_outcome_labels_total", stream="made-up", reason="joined") == 10
    assert value(story, "shiftwatch_outcome_labels_total", stream="made-up", reason="unknown") == 3
    assert value(story, "shiftwatch_labels_waiting_events", stream="made-up") == 300
    story.outcome(trusted=False)
    assert value(story, "shiftwatch_estimates_trusted", stream="made-up", segment="") == 0
    assert value(story, "shiftwatch_outcomes_total", stream="made-up") == 2


def test_a_segment_has_its_outcome_beside_that_of_its_stream_until_a_newer_window_has_none_of_it() -> None:
    story = full_story()
    story.outcome(trusted=False, segment="country=BE")
    trusted = {
        dict(labels)["segment"]: value for labels, value in samples(story, "shiftwatch_estimates_trusted").items()
    }
    assert trusted == {"": 1, "country=BE": 0}
    assert value(story, "shiftwatch_outcomes_total", stream="made-up") == 1
    story.window()
    story.outcome()
    assert {dict(labels)["segment"] for labels in samples(story, "shiftwatch_estimates_trusted")} == {""}


def test_everything_exported_is_in_the_catalogue_and_all_of_the_catalogue_can_be() -> None:
    story = full_story()
    window = streams.window(factors=streams.DOUBLED)
    numbers = streams.story(window, labels=[window.targets])
    exported = {
        sample.name
        for history in (story.history, numbers)
        for family in families(history.snapshot, 0.0)
        for sample in family.samples
    }
    declared = {name for spec in CATALOGUE for name in spec.series}
    optional = {
        name
        for name in declared
        if name.startswith(
            (
                "shiftwatch_recent_verdict",  # of a reference that knows time: tests/state/test_recent.py
                "shiftwatch_reference_left",
                "shiftwatch_concept",  # of streams whose labels have come: tests/state/test_concept.py
                "shiftwatch_expert",
                "shiftwatch_class_mix",
                "shiftwatch_class_share",
                "shiftwatch_mapped",
                "shiftwatch_soft",
                "shiftwatch_features_",
                "shiftwatch_reference_file",  # of one that was read from a file,
                "shiftwatch_certificate",  # and of a server that has one: tests/web/test_http.py
                "shiftwatch_realised_performance",  # from 30 labels on: tests/performance
                "shiftwatch_volume",  # from the second day on: tests/state/test_volume.py
            )
        )
    }
    assert exported <= declared
    assert declared - exported <= optional | {"shiftwatch_disagreement_p_value"}


def test_names_units_and_labels_follow_the_contract() -> None:
    assert len({spec.name for spec in CATALOGUE}) == len(CATALOGUE)
    for spec in CATALOGUE:
        assert spec.full_name.startswith("shiftwatch_")
        assert spec.help.endswith(".")
        assert set(spec.labels) <= ALLOWED | ({"version"} if spec.kind == "info" else set()), spec
        assert not spec.name.endswith(("_ms", "_milliseconds", "_percent", "_total", "_count"))


def test_both_formats_can_be_parsed_back_with_the_same_values() -> None:
    story = full_story()
    own = registry(story.history)
    plain = {
        (s.name, *sorted(s.labels.items())): s.value for f in parse(generate_latest(own).decode()) for s in f.samples
    }
    open_ = {
        (s.name, *sorted(s.labels.items())): s.value
        for f in parse_openmetrics(generate_openmetrics(own).decode())
        for s in f.samples
    }
    wanted = [key for key in plain if "process" not in key[0]]
    assert {key: plain[key] for key in wanted} == {key: open_[key] for key in wanted}


def test_before_the_first_window_every_counter_is_there_at_zero() -> None:
    story = Story()
    assert {
        dict(labels)["verdict"]: n for labels, n in samples(story, "shiftwatch_windows_total").items()
    } == dict.fromkeys(map(str, verdicts(regression=False)), 0)
    assert set(samples(story, "shiftwatch_rejected_total").values()) == {0}
    assert {dict(labels)["reason"] for labels in samples(story, "shiftwatch_rejected_total")} == {
        str(reason) for reason in Reason if reason not in LATE
    }
    assert len(samples(story, "shiftwatch_late_events_total")) == 2
    assert value(story, "shiftwatch_assessment_duration_seconds_count", stream="made-up") == 0
    assert not samples(story, "shiftwatch_prevalence_ratio")


def test_the_verdict_is_a_set_of_states_of_which_one_holds() -> None:
    story = Story()
    for verdict in verdicts(regression=False):
        story.window(verdict)
        states = {dict(labels)["verdict"]: n for labels, n in samples(story, "shiftwatch_verdict").items()}
        assert states == {str(one): float(one == verdict) for one in verdicts(regression=False)}


def test_a_window_shows_its_prevalence_with_bounds_and_its_correction() -> None:
    story = Story(classes=2)
    story.window(Verdict.PRIOR_SHIFT, priors=(0.4, 0.6), apply=True)
    where = {"stream": "made-up", "segment": "", "class": "class_1"}
    assert value(story, "shiftwatch_prevalence_ratio", **where) == 0.6
    assert value(story, "shiftwatch_prevalence_lower_ratio", **where) == 0.54
    assert value(story, "shiftwatch_prevalence_upper_ratio", **where) == 0.66
    assert value(story, "shiftwatch_multiplier_ratio", **where) == 1.8
    assert value(story, "shiftwatch_recalibration_applied", stream="made-up", segment="") == 1
    assert value(story, "shiftwatch_source_prior_ratio", stream="made-up", **{"class": "class_1"}) == 0.3333


def test_values_of_a_stale_window_disappear_and_when_it_was_stays() -> None:
    story = full_story()
    end = story.now / 1e6
    assert samples(story, "shiftwatch_verdict")
    story.now += 10 * MINUTE
    for gone in ("verdict", "prevalence_ratio", "estimator_ratio", "feature_effect", "prior_shift_p_value"):
        assert not samples(story, f"shiftwatch_{gone}")
    assert value(story, "shiftwatch_last_window_end_timestamp_seconds", stream="made-up") == end
    assert sum(samples(story, "shiftwatch_windows_total").values()) == 1


def test_a_segment_that_the_last_window_does_not_hold_disappears_at_once() -> None:
    story = full_story()
    assert {dict(labels)["segment"] for labels in samples(story, "shiftwatch_window_events")} == {"", "country=BE"}
    story.window()
    assert {dict(labels)["segment"] for labels in samples(story, "shiftwatch_window_events")} == {""}


def test_what_moved_most_is_exported_and_the_rest_is_counted() -> None:
    story = Story(features=50, classes=6, caps=Caps(features=5, segment_features=2, classes=4))
    story.window(moved={7: 0.5, 31: 0.4})
    story.window(segment="country=BE", moved={40: 0.3})
    features = [dict(labels) for labels in samples(story, "shiftwatch_feature_effect")]
    assert {"feature_7", "feature_31"} < {one["feature"] for one in features if not one["segment"]}
    assert len([one for one in features if not one["segment"]]) == 5
    assert len([one for one in features if one["segment"]]) == 2
    assert "feature_40" in {one["feature"] for one in features if one["segment"]}
    assert len(samples(story, "shiftwatch_prevalence_ratio")) == 8
    assert value(story, "shiftwatch_series_dropped_total", stream="made-up") == (45 + 2) + (48 + 2)


def test_windows_with_more_segments_than_are_watched_apart_are_counted() -> None:
    story = Story()
    for _ in range(2):
        story.window()
        story.window(segment="country=BE")
    assert value(story, "shiftwatch_segments_capped_windows_total", stream="made-up") == 0
    story.window()
    story.window(segment=OTHER_SEGMENTS)
    assert value(story, "shiftwatch_segments_capped_windows_total", stream="made-up") == 1


def test_lag_and_positions_come_from_the_source() -> None:
    story = full_story()
    where = {"topic": "t", "partition": "t-0"}
    assert value(story, "shiftwatch_lag_records", **where) == 100
    assert value(story, "shiftwatch_commit_lag_records", **where) == 250
    assert value(story, "shiftwatch_position_offset", **where) == 900
    assert value(story, "shiftwatch_rebalances_total") == 2
    assert value(story, "shiftwatch_fetch_errors_total") == 5


def test_transactions_come_from_the_sink() -> None:
    story = full_story()
    assert value(story, "shiftwatch_transactions_committed_total") == 40
    assert value(story, "shiftwatch_transactions_aborted_total") == 1


def test_of_the_certificates_of_source_and_sink_the_first_to_expire_is_told() -> None:
    assert value(full_story(), "shiftwatch_connector_certificate_expires_timestamp_seconds") == 1.9e9


def test_what_the_last_windows_say_together_is_told() -> None:
    story = Story(changes="adwin")
    where = {"stream": "made-up", "segment": ""}
    for _ in range(40):
        story.window()
    assert value(story, "shiftwatch_alarm", **where) == 0
    for _ in range(40):
        story.window(Verdict.PRIOR_SHIFT, priors=(0.1, 0.1, 0.8))
    assert value(story, "shiftwatch_alarm", **where) == 1
    assert value(story, "shiftwatch_alarm_windows", **where) == 3
    assert value(story, "shiftwatch_change_points_total", **where) >= 1


def test_the_age_of_the_last_event_is_measured_by_partition() -> None:
    story = full_story()
    assert value(story, "shiftwatch_watermark_delay_seconds", partition="t-0") == 60.0


def test_rejects_of_no_known_stream_are_counted_too() -> None:
    story = Story()
    story.busy(rejected=4, reason="unknown-stream", stream="")
    assert value(story, "shiftwatch_rejected_total", stream="", reason="unknown-stream") == 4


def test_windows_and_times_carry_the_id_of_a_window_as_exemplar() -> None:
    story = full_story()
    text = generate_openmetrics(registry(story.history)).decode()
    (counted,) = [line for line in text.splitlines() if line.startswith("shiftwatch_windows_total") and "#" in line]
    assert 'verdict="prior-shift"' in counted
    assert f'# {{window="made-up//{story.now - MINUTE}/{story.now}"}}' in counted
    assert (
        len([line for line in text.splitlines() if "assessment_duration_seconds_bucket" in line and "# {" in line]) == 1
    )
    assert all("window" not in dict(s.labels) for f in families(story.history.snapshot, 0) for s in f.samples)


def test_a_thousand_features_stay_under_200_kilobytes_and_50_milliseconds() -> None:
    """Of processor time: the machine of a test may be busy with others."""
    features = 1_000
    story = Story(features=features, stream="fraud-v3")
    story.window(moved={number: 0.1 + number / 10_000 for number in range(0, features, 2)})
    own: Any = registry(story.history)
    size, seconds = 0, []
    for _ in range(7):
        started = time.thread_time()
        size = len(generate_latest(own))
        seconds.append(time.thread_time() - started)
    assert size < 200_000
    assert min(seconds) < 0.05

"""What is shown of a regression stream: metrics, page, API, table, log. Nothing of classes, which it has not."""

import logging
from functools import cache

import httpx
import jsonschema
import numpy as np

from monitor.assessment.regressor_message import json_schema
from monitor.observers.logs import log
from monitor.observers.metrics import families
from monitor.observers.terminal import LiveTable
from monitor.service import OutcomeKnown
from monitor.settings.config import ServerSettings
from monitor.web.page import document
from monitor.web.page.choice import Choice
from monitor.web.page.stream import stream
from monitor.web.server import serving
from monitor.windows.summary import WindowSummary
from tests.service import regression_streams as streams


def samples(history):
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families(history.snapshot, history.now())
        for sample in family.samples
    }


def of(history, name, **labels):
    return samples(history)[(f"shiftwatch_{name}", *sorted(labels.items()))]


def page_of_stream(history):
    """What its panels show."""
    return stream(history.snapshot, history.now(), Choice(stream="prices"))["stream"]["panels"]


@cache
def moved():
    """A stable window, and one in which all slopes had doubled."""
    return streams.story(streams.window(), streams.window(factors=streams.DOUBLED, labelled=0.2))


def test_metrics_tell_the_error_the_labels_and_the_test():
    history = moved()
    stream = {"stream": "prices", "segment": ""}
    assert of(history, "prediction_error", **stream) > 1.5 * of(history, "reference_prediction_error", stream="prices")
    assert of(history, "evidence_labels", **stream) == of(history, "window_labelled_events", **stream) > 300
    assert of(history, "relation_significant", **stream) == 1
    assert of(history, "verdict", **stream, verdict="relation-shift") == 1
    assert of(history, "windows_total", stream="prices", verdict="stable") == 1


def test_metrics_have_nothing_of_classes():
    names = {name for name, *_ in samples(moved())}
    assert not {name for name in names if "prevalence" in name or "estimat" in name or "multiplier" in name}
    verdicts = {dict(labels)["verdict"] for name, *labels in samples(moved()) if name == "shiftwatch_verdict"}
    assert verdicts == {"stable", "covariate-shift", "relation-shift", "unexplained", "insufficient-data"}


def test_the_page_shows_the_error_over_time_and_says_what_changed():
    history = moved()
    page = document(history.snapshot, history.now())
    assert "Labels depend on the inputs in another way" in page
    assert "All slopes doubled; intercepts unchanged" in page
    assert "The predictions are to be corrected:" in page
    assert 'data-shows="error"' in page
    assert 'data-shows="spread:predictions"' in page
    assert 'data-shows="spread:label minus prediction"' in page
    assert "How much of each class" not in page
    assert "by each estimator" not in page


def test_the_page_does_without_labels():
    history = streams.story(streams.window(labelled=0.0))
    page = document(history.snapshot, history.now())
    assert "No labels in the windows shown" in page
    assert "Label minus prediction" not in page
    assert 'data-shows="spread:predictions"' in page
    assert "data-shows=" in page


def test_residuals_and_predictions_are_drawn_by_their_quantiles():
    history = moved()
    (*_, reading) = history.snapshot.tracks["prices"][""].readings
    low, middle, high = reading.answer.residuals
    shown = page_of_stream(history)["residuals"]["values"]["spread:label minus prediction"]
    assert shown[-1] == [float(f"{value:.4g}") for value in (low, middle, high)]
    assert low < -2 < 2 < high  # the slopes have doubled
    window = streams.window()
    tenths = page_of_stream(streams.story(window))["predictions"]["values"]["spread:predictions"][0]
    assert np.allclose(tenths, np.quantile(window.predictions, [0.1, 0.5, 0.9]), atol=0.05 * np.ptp(tenths))


def test_segments_stand_on_the_page_with_their_errors():
    history = streams.story(streams.window(), segment="country=BE")
    page = document(history.snapshot, history.now())
    assert "country=BE" in page
    assert '<th scope="col">error</th>' in page


def test_a_stream_that_waits_for_its_first_window_has_a_page():
    history = streams.story()
    assert "Waiting for the first window" in document(history.snapshot, history.now())
    assert of(history, "reference_prediction_error", stream="prices") > 0


def test_the_api_tells_the_relation_and_its_messages_fit_their_published_schemas():
    with serving(ServerSettings(port=0), moved()) as url, httpx.Client(base_url=url) as client:
        stream = client.get("/api/streams/prices").json()
        assert stream["reference"]["relation"]["inputs"] == ["area", "age"]
        assert stream["latest"]["relation"]["description"] == "all slopes doubled; intercepts unchanged"
        assert "prevalence" not in stream["latest"]
        result = client.get("/api/streams/prices/result").json()
        feed = client.get("/api/streams/prices/recalibration").json()
        schemas = client.get("/api/openapi.json").json()["components"]["schemas"]
    jsonschema.Draft202012Validator(json_schema()).validate(result)
    assert feed["relation"] == result["recalibration"]["relation"]
    assert {"RegressionResult", "RegressionRecalibration"} <= set(schemas)


def test_the_live_table_and_the_log_take_a_regressors_windows(caplog):
    from monitor.service.notices import WindowAssessed  # noqa: PLC0415

    window = streams.window(factors=streams.DOUBLED)
    assessment = streams.assess_regression(window, streams.reference())
    table = LiveTable()
    table(WindowAssessed(assessment, WindowSummary.of(window), 0.1))
    assert table.__rich__().row_count == 1
    with caplog.at_level(logging.INFO, "shiftwatch"):
        log(WindowAssessed(assessment, WindowSummary.of(window), 0.1))
    (record,) = caplog.records
    assert record.facts["verdict"] == "relation-shift"


@cache
def afterwards():
    """Two windows, and then the labels of all of their events: in the second all slopes had doubled."""
    windows = (streams.window(labelled=0.2), streams.window(factors=streams.DOUBLED, labelled=0.2))
    labels = (streams.columns(2_000, 1)[1], streams.columns(2_000, 1, factors=streams.DOUBLED)[1])
    half = np.arange(2_000) % 2 == 0
    return streams.story(*windows, labels=[np.where(half, values, np.nan) for values in labels])


def test_metrics_tell_what_labels_said_afterwards():
    history, stream = afterwards(), {"stream": "prices", "segment": ""}
    (first, second) = history.snapshot.tracks["prices"][""].outcomes
    assert (first.correction.finding, second.correction.finding) == ("not-recommended", "helped")
    for part, value in (("", "realised"), ("_lower", "lower"), ("_upper", "upper"), ("_reference", "reference")):
        for measure, error in second.performance.items():
            told = of(history, f"realised_performance{part}", **stream, measure=measure)
            assert told == float(f"{getattr(error, value):.4g}")
    assert of(history, "outcome_prediction_error_difference_upper", **stream) < 0
    before, after = (of(history, f"outcome_prediction_error_{when}", **stream) for when in ("before", "after"))
    assert after < 0.6 * before
    assert of(history, "outcomes_total", stream="prices") == 2
    assert of(history, "outcome_labels_total", stream="prices", reason="joined") == 2_000
    assert not {name for name, *_ in samples(history) if "estimat" in name}


def test_the_page_shows_what_labels_said_afterwards_over_time_and_of_one_window():
    history = afterwards()
    (first, second) = history.snapshot.tracks["prices"][""].outcomes
    page = document(history.snapshot, history.now())
    assert "What labels said afterwards" in page
    assert "The correction helped: error " in page
    assert 'data-shows="measure:rmse"' in page
    panel = page_of_stream(history)["outcomes"]
    assert [row[1] for row in panel["rows"]] == ["1,000 of 2,000"] * 2
    assert [row[-1] for row in panel["rows"]] == ["helped", ""]
    assert panel["holdout"][0] == "hold-out"
    assert panel["values"]["measure"]["rmse"][-1][0] == float(f"{second.performance['rmse'].realised:.4g}")
    earlier = stream(history.snapshot, history.now(), Choice(stream="prices", window=first.ends))["stream"]["panels"]
    assert [row[-1] for row in earlier["outcomes"]["rows"]] == [""]
    assert earlier["outcomes"]["last"].correction.reason.startswith("nothing was recommended")


def test_the_page_has_no_such_part_without_outcomes():
    assert "outcomes" not in page_of_stream(moved())


def test_the_api_and_the_log_tell_outcomes(caplog):
    history = afterwards()
    with serving(ServerSettings(port=0), history) as url, httpx.Client(base_url=url) as client:
        found = client.get("/api/streams/prices/outcomes").json()
        schemas = client.get("/api/openapi.json").json()["components"]["schemas"]
    assert [one["correction"]["finding"] for one in found] == ["helped", "not-recommended"]
    schema = {"$ref": "#/components/schemas/RegressionOutcome", "components": {"schemas": schemas}}
    jsonschema.Draft202012Validator(schema).validate(found[0])
    with caplog.at_level(logging.INFO):
        for outcome in history.snapshot.tracks["prices"][""].outcomes:
            log(OutcomeKnown(outcome))
    assert [record.facts["correction"] for record in caplog.records] == ["not-recommended", "helped"]

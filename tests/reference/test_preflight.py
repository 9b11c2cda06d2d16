"""The report says what is wrong with a model that has something wrong with it."""

import json
from html.parser import HTMLParser

import numpy as np
import pytest

from monitor.assessment.classifier import assess
from monitor.priors import ESTIMATORS
from monitor.reference.classifier import Reference
from monitor.reference.preflight import measure, rise_seen
from monitor.web.preflight_page import page
from monitor.windows import Window
from tests.assessment.test_prevalence import reference
from tests.reference.worlds import CLASSES, world


def report_of(rows, sharpness=1.0, seed=0, **how):
    posteriors, labels, features = world(rows, seed, sharpness)
    reference = Reference.fit(posteriors, labels, features, classes=CLASSES, stream="<fraud>", **how)
    return measure(reference, posteriors, labels)


@pytest.fixture(scope="module")
def report():
    return report_of(2000, 3.0)


def verdicts(report):
    return {one["title"]: one["verdict"] for one in report["advice"]}


def test_it_is_plain_json(report):
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_calibration_helps_a_model_that_is_too_sure(report):
    before, after = report["calibration"]["before"], report["calibration"]["after"]
    assert after["expected_calibration_error"] < 0.5 * before["expected_calibration_error"]
    assert after["log_loss"] < before["log_loss"]


def test_calibration_is_judged_on_events_that_its_map_has_not_seen():
    report = report_of(150, calibration="isotonic")["calibration"]
    assert report["after"]["log_loss"] == pytest.approx(report["log_loss_by_method"]["isotonic"])


def test_intervals_shrink_with_the_window_and_the_reference_is_weighed_against_it(report):
    widths = [window["interval_width"]["dispute"] for window in report["windows"]]
    assert widths == sorted(widths, reverse=True)
    assert [window["reference_per_window"] for window in report["windows"]] == [2.0, 0.2, 0.02]
    assert not any(window["reference_is_enough"] for window in report["windows"])
    assert verdicts(report)["Largest safe window"] == "mind"


def test_a_rise_of_the_rarest_class_that_is_said_to_be_named_is_named_and_half_of_it_is_not_always(report):
    posteriors, labels, _ = world(2000, 0, 3.0)
    reference = Reference.fit(posteriors, labels, classes=CLASSES)
    before, size = float(reference.source_priors.min()), 1_000
    rise = rise_seen(reference, size) - before
    rarest = int(np.argmin(reference.source_priors))
    rows, truth, _ = world(60_000, 1, 3.0)
    rng = np.random.default_rng(2)

    def named(share: float) -> int:
        mix = np.where(np.arange(3) == rarest, share, reference.source_priors * (1 - share) / (1 - before))
        chances = (mix / np.bincount(truth))[truth]
        windows = (rng.choice(truth.size, size, p=chances / chances.sum()) for _ in range(40))
        return sum(assess(Window.of(rows[at]), reference).verdict.value == "prior-shift" for at in windows)

    assert named(before + rise) >= 35
    assert named(before + rise / 2) <= 30
    rises = [window["rise_seen"] for window in report["windows"]]
    assert rises == sorted(rises, reverse=True)
    assert f"{rises[0]:.2%}" in page(report)


def test_where_weeks_differ_by_nature_no_rise_is_promised_to_be_named():
    varying, alike = (weeks_of(mix) for mix in (0.5, 0.0))
    said = [{each["title"]: each["text"] for each in found["advice"]} for found in (varying, alike)]
    assert ["is named in 95 of 100" in each["Smallest visible shift"] for each in said] == [False, True]
    assert "Visible beside natural change" in said[0]
    assert ["named in 95 of 100" in page(found) for found in (varying, alike)] == [False, True]


def weeks_of(mix):
    known = reference(inputs=mix, mix=mix)
    return measure(known, known.raw, known.sample.labels)


def test_where_scores_say_nothing_no_rise_is_promised_to_be_named():
    rng = np.random.default_rng(5)
    posteriors, labels = rng.dirichlet([20.0, 20.0], 1500), rng.integers(0, 2, 1500)
    reference = Reference.fit(posteriors, labels, classes=["no", "yes"], calibration="temperature")
    advice = {each["title"]: each["text"] for each in measure(reference, posteriors, labels)["advice"]}
    assert "is sure to be named" in advice["Smallest visible shift"]


def test_theorem_1_bounds_what_counts_can_be_off_by_and_says_nothing_with_too_few_events(report):
    labels = np.random.default_rng(0).integers(0, 3, 3000)
    posteriors = np.where(np.eye(3)[labels] > 0, 0.98, 0.01)
    reference = Reference.fit(posteriors, labels, classes=CLASSES, estimator="pacc", calibration="balanced")
    sharp = measure(reference, posteriors, labels)
    bounds = [window["error_bound"] for window in sharp["windows"]]
    assert bounds == sorted(bounds, reverse=True)
    assert 0 < bounds[-1] < 2**0.5
    assert f"{bounds[0]:.2f}" in page(sharp)
    assert [window["error_bound"] for window in report["windows"]] == [None] * 3
    assert "says nothing" in page(report)


def test_a_class_of_twenty_events_is_a_problem():
    report = report_of(200)
    assert report["small_classes"] == ["fraud", "dispute"]
    assert verdicts(report)["Classes too small to estimate"] == "bad"


def test_classes_that_look_alike_are_noticed():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 1500)
    first = np.where(labels == 0, 0.8, 0.2)
    posteriors = np.column_stack([first, (1 - first) / 2, (1 - first) / 2])
    reference = Reference.fit(posteriors, labels, classes=CLASSES, calibration="balanced")
    assert verdicts(measure(reference, posteriors, labels))["Classes look alike"] == "mind"


@pytest.mark.parametrize("estimator", ["em", "pacc"])
def test_the_estimator_is_held_against_counting_and_averaging_on_simulated_shifts(estimator):
    report = report_of(600, estimator=estimator)
    errors = report["simulated"]["mean_absolute_error"]
    assert list(errors) == [estimator, "cc", "pcc"]
    assert errors[estimator] < 0.5 * min(errors["cc"], errors["pcc"])
    assert len(report["simulated"]["true"]) == len(report["simulated"]["estimated"]) == report["simulated"]["windows"]
    assert verdicts(report)[f"Estimator: {estimator}"] == "good"
    assert "follow the truth" in page(report)


def test_an_estimator_that_counting_beats_is_to_be_minded():
    assert verdicts(report_of(600, estimator="pcc"))["Estimator: pcc"] == "mind"


@pytest.mark.parametrize("name", [name for name, each in ESTIMATORS.items() if each.applies_to(3, True)])
def test_every_estimator_has_a_report(name):
    assert report_of(200, estimator=name)["estimator"] == name


def test_for_an_estimator_that_has_to_see_features_no_shift_is_simulated():
    report = report_of(600, estimator="dfm-energy-features")
    assert report["simulated"] is None
    assert "follow the truth" not in page(report)


def test_the_page_is_well_formed_and_needs_nothing_else(report):
    class Balanced(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open = []

        def handle_starttag(self, tag, attrs):
            assert tag not in {"script", "link", "img", "iframe"}
            assert not {"src", "href"} & {name for name, _ in attrs}
            if tag not in {"meta", "br"}:
                self.open.append(tag)

        def handle_startendtag(self, tag, attrs):
            pass

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    html = page(report)
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    assert "&lt;fraud&gt;" in html
    assert "<fraud>" not in html
    assert "nan" not in html.lower().replace("finance", "")

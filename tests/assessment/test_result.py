"""The published message of a window, and its schema."""

import json
import subprocess
import sys
import time

import jsonschema
import pytest

import monitor
from monitor.assessment.classifier import assess
from monitor.assessment.message import json_schema, rfc3339
from tests.assessment import worlds


def test_the_schema_is_a_schema_and_a_message_fits_it():
    jsonschema.Draft202012Validator.check_schema(json_schema())
    message = json.loads(assess(worlds.window(500, 1), worlds.reference()).to_json())
    jsonschema.Draft202012Validator(json_schema()).validate(message)
    assert set(message["prevalence"]) == {"a", "b", "c"}
    assert set(message["features"]) == {"x0", "x1", "x2", "x3"}


def test_a_message_with_anything_unknown_does_not_fit():
    message = json.loads(assess(worlds.window(500, 1), worlds.reference()).to_json())
    message["events"]["lost"] = 3
    assert not jsonschema.Draft202012Validator(json_schema()).is_valid(message)


def test_every_test_says_what_it_was_held_against():
    found = assess(worlds.window(1000, 2), worlds.reference())
    assert {"prior-shift", "label-shift-fit", "class-mix", "features", "unknown-mass", "disagreement"} <= set(
        found.tests
    )
    for test in found.tests.values():
        assert test.meaning
        assert 0 < test.level <= 1
        assert test.events == 1000


@pytest.mark.parametrize(
    ("microseconds", "text"), [(0, "1970-01-01T00:00:00.000000Z"), (-1, "1969-12-31T23:59:59.999999Z")]
)
def test_times_are_written_to_the_microsecond(microseconds, text):
    assert rfc3339(microseconds) == text


def test_public_names_are_what_can_be_imported():
    for name in monitor.__all__:
        assert getattr(monitor, name) is not None
    assert dir(monitor) == sorted(monitor.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = monitor.nothing


def test_importing_the_package_costs_no_numeric_library():
    code = "import sys, monitor; assert 'numpy' not in sys.modules"
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    assert time.perf_counter() - started < 5

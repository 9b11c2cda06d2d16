"""The published message of an outcome: its schema comes from the code, and the committed copy is that schema."""

import json
import os
from pathlib import Path

import jsonschema

from monitor.labels.outcomes import json_schema
from tests.labels.streams import Feedback
from tests.labels.test_outcomes import outcomes_in, results

COMMITTED = Path(__file__).parents[2] / "deploy" / "schemas" / "outcome.schema.json"


def test_the_committed_schema_is_the_codes() -> None:
    text = json.dumps(json_schema(), indent=2, sort_keys=True) + "\n"
    if os.environ.get("SHIFTWATCH_WRITE_SCHEMA"):
        COMMITTED.write_text(text, encoding="utf-8")
    assert text == COMMITTED.read_text(encoding="utf-8")


def test_what_is_published_fits_it() -> None:
    found = outcomes_in(results(Feedback(events=100).together))
    assert found
    for one in found:
        jsonschema.Draft202012Validator(json_schema()).validate(one)

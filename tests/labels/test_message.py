"""The published message of an outcome fits its schema."""

import jsonschema

from monitor.labels.outcome_message import json_schema
from tests.labels.streams import Feedback
from tests.labels.test_outcomes import outcomes_in, results


def test_what_is_published_fits_it() -> None:
    found = outcomes_in(results(Feedback(events=100).together))
    assert found
    for one in found:
        jsonschema.Draft202012Validator(json_schema()).validate(one)

"""The schemas in deploy/schemas are made from the code: `SHIFTWATCH_WRITE_SCHEMA=1 pytest tests/test_schemas.py`."""

import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from monitor.assessment import feed_schema, message, regressor_message
from monitor.labels import outcome_message, regression_outcome_message
from monitor.state import alarm_message

FOLDER = Path(__file__).parents[1] / "deploy" / "schemas"
PUBLISHED = {
    "alarm": alarm_message,
    "outcome": outcome_message,
    "recalibration": feed_schema,
    "regression-outcome": regression_outcome_message,
    "regression-window": regressor_message,
    "window": message,
}


@pytest.mark.parametrize(("name", "module"), PUBLISHED.items(), ids=PUBLISHED)
def test_the_committed_schema_is_the_codes(name: str, module: ModuleType) -> None:
    file = FOLDER / f"{name}.schema.json"
    text = json.dumps(module.json_schema(), indent=2, sort_keys=True) + "\n"
    if os.environ.get("SHIFTWATCH_WRITE_SCHEMA"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_every_published_schema_is_checked() -> None:
    assert {path.name.removesuffix(".schema.json") for path in FOLDER.iterdir()} == set(PUBLISHED)

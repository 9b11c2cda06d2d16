"""Evidently's data drift preset on the same table, window by window, as its documentation has it."""

from collections.abc import Iterator
from typing import Any

WINDOW = 1_000


def watch(hold_out: Any, events: Any, inputs: list[str]) -> Iterator[Any]:
    """The report about each window."""
    from evidently import Report  # noqa: PLC0415 - one of these three is installed
    from evidently.presets import DataDriftPreset  # noqa: PLC0415

    columns = [*inputs, "fraud"]
    for start in range(0, len(events), WINDOW):
        window = events[start : start + WINDOW]
        yield Report([DataDriftPreset()]).run(window[columns], hold_out[columns]).dict()


def told(report: Any) -> dict[str, Any]:
    """What it says of a window, in short: by default a window has drifted where half of its columns have."""
    drifted = []
    for metric in report["metrics"]:
        config = metric["config"]
        if config["type"].endswith("ValueDrift"):
            limit, value = config["threshold"], metric["value"]
            if (value < limit) if "p_value" in config["method"] else (value >= limit):
                drifted.append(config["column"])
    return {
        "flagged": bool(drifted),
        "words": f"{len(drifted)} columns drifted",
        "inputs": [name for name in drifted if name != "fraud"],
        "share": None,
        "auc": None,
    }

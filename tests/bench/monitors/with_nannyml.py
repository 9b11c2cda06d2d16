"""NannyML's univariate drift and estimated performance on the same table, as its documentation has it."""

from collections.abc import Iterator
from typing import Any

WINDOW = 1_000


def watch(hold_out: Any, events: Any, inputs: list[str]) -> Iterator[Any]:
    """The rows of its results about each window."""
    import nannyml  # noqa: PLC0415 - one of these three is installed

    for table in (hold_out, events):
        table["decided"] = (table["fraud"] > 0.5).astype(int)
    hold_out["target"] = (hold_out["label"] == "fraud").astype(int)
    drift = nannyml.UnivariateDriftCalculator(column_names=[*inputs, "fraud"], chunk_size=WINDOW).fit(hold_out)
    performance = nannyml.CBPE(
        y_pred_proba="fraud",
        y_pred="decided",
        y_true="target",
        metrics=["roc_auc"],
        problem_type="classification_binary",
        chunk_size=WINDOW,
    ).fit(hold_out)
    drifts = drift.calculate(events).filter(period="analysis").to_df()
    estimates = performance.estimate(events).filter(period="analysis").to_df()
    for number in range(len(drifts)):
        yield drifts.iloc[number], estimates.iloc[number]


def told(rows: Any) -> dict[str, Any]:
    """What they say of a window, in short."""
    drift, performance = rows
    alarmed = sorted({key[0] for key, value in drift.items() if key[-1] == "alert" and value})
    worse = bool(performance["roc_auc", "alert"])
    return {
        "flagged": bool(alarmed) or worse,
        "words": f"{len(alarmed)} columns drifted" + (", performance alert" if worse else ""),
        "inputs": [name for name in alarmed if name != "fraud"],
        "share": None,
        "auc": float(performance["roc_auc", "value"]),
    }

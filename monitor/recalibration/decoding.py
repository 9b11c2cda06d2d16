"""A recalibration from its JSON, of either version: what is not a whole message with usable numbers gets no further."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from monitor.recalibration.calibration_map import calibration_map
from monitor.recalibration.causes import Cause
from monitor.recalibration.experts import experts_in
from monitor.recalibration.first_version import cause_of, tree_of
from monitor.recalibration.message import InputCorrection, Recalibration, Validity
from monitor.recalibration.numbers import finite
from monitor.recalibration.relation import of_regression


def parsed(raw: bytes) -> dict[str, Any]:
    """The object that some JSON is; ValueError if it is none."""
    try:
        table = json.loads(raw)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(table, dict):
        raise ValueError(f"want an object, got {type(table).__name__}")
    return table


def decoded(table: Mapping[str, Any]) -> Recalibration:
    """A message from its JSON; ValueError if it is none, or has numbers that nobody can apply."""
    try:
        classes = tuple(table["classes"])
        vectors = {
            name: finite(table[name], len(classes))
            for name in ("source_priors", "target_priors", "multipliers", "log_multipliers")
        }
        if not all(0 < p < 1 for p in vectors["source_priors"]):
            raise ValueError(f"source_priors: want all between 0 and 1, got {list(vectors['source_priors'])}")
        if min((*vectors["target_priors"], *vectors["multipliers"]), default=0) < 0:
            raise ValueError("target_priors, multipliers: want none below 0")
        calibration = table.get("calibration")
        plain = Recalibration(
            classes=classes,
            **vectors,
            thresholds=dict(table["thresholds"]),
            inputs={name: _input(correction) for name, correction in table["inputs"].items()},
            validity=Validity(**table["validity"]),
            apply=bool(table["apply"]),
            cause=Cause(table["cause"]) if "cause" in table else cause_of(table),
            reason=str(table["reason"]),
            target_errors=finite(table["target_errors"]) if "target_errors" in table else (),
            against=finite((table.get("against", 0.0),))[0],
            experts=experts_in(table.get("experts", ()), len(classes)),
            calibration=None if calibration is None else calibration_map(calibration, len(classes)),
            tree=tree_of(table),
            complete=bool(table.get("complete", True)),
        )
        return of_regression(plain, table["relation"]) if "relation" in table else plain
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise ValueError(f"not a recalibration message: {error!r}") from error


def _input(table: Mapping[str, Any]) -> InputCorrection:
    window = finite(table["window"])
    alpha, beta = finite((table["alpha"], table["beta"]))
    return InputCorrection(
        kind=str(table["kind"]),
        alpha=alpha,
        beta=beta,
        window=window,
        reference=finite(table["reference"], len(window)),
        apply=bool(table.get("apply")),
        reason=str(table.get("reason", "")),
    )

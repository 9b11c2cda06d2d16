"""What can be trusted with this model: facts measured on its own hold-out events, and the advice that follows.

The conditions are those of Esuli et al. (2020): is the model calibrated, are there few classes, is the shift large
enough? Here each is a measured number of this model, not a rule of thumb.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import ndtri

from monitor import priors, quality
from monitor.arrays import Labels, Matrix, Vector
from monitor.calibration import cross_fit
from monitor.limits import SAMPLE_ROWS
from monitor.priors import PriorEstimate
from monitor.priors.intervals import error_bound
from monitor.priors.simplex import smallest_curvature
from monitor.reference import time_report
from monitor.reference.atoms import atoms_sentence, largest_atom
from monitor.reference.classifier import Reference
from monitor.reference.simulated_shifts import simulated
from monitor.reference.warnings import ReferenceWarning
from monitor.sampling import stratified_sample
from monitor.tolerances import (
    CALIBRATED,
    CLASS_EVENTS,
    INDISTINCT,
    MIX_FACTOR,
    MIX_FLOOR,
    NORMAL_95,
    REFERENCE_PER_WINDOW,
    VERDICT_LEVEL,
)
from monitor.windows import Window

UNIT_MAPS = ("acc-qp", "pacc")
WINDOW_SIZES = (1_000, 10_000, 100_000)
BINS = 12
RISE_STEPS = 2
"""The error at the reference's share, and at the one that it says is seen."""

Report = dict[str, Any]


def measure(reference: Reference, posteriors: Matrix, labels: Labels) -> Report:
    """Everything that the report says, as plain JSON, from the columns that the reference was built from."""
    rows = stratified_sample(labels, SAMPLE_ROWS, reference.sample.seed)
    raw, truth = posteriors[rows], labels[rows]
    # The reference's own sample went through the final map, which saw its labels: it would flatter the calibration.
    unseen = cross_fit(raw, truth, reference.calibration.method, reference.sample.seed).posteriors
    curves = {"after": unseen} if reference.margins else {"before": raw, "after": unseen}
    over_time = time_report.measured(reference)
    varies = over_time is not None and bool(over_time.get("varies"))
    report: Report = {
        "stream": reference.schema.stream,
        "version": reference.version,
        "classes": list(reference.classes),
        "events": int(reference.facts["events"]),
        "class_events": dict(zip(reference.classes, reference.class_counts.tolist(), strict=True)),
        "source_priors": _by_class(reference, reference.source_priors),
        "calibration": {
            "method": reference.calibration.method,
            "log_loss_by_method": reference.facts["log_loss"],
            "before": None if reference.margins else _quality(raw, truth),
            "after": _quality(unseen, truth),
        },
        "delta_min": _delta_min(reference),
        "estimator": reference.estimator,
        "simulated": _simulated(reference, raw, truth),
        "windows": [_window(reference, size, varies=varies) for size in WINDOW_SIZES],
        "atoms": {"share": round(largest_atom(reference), 4), "sentence": atoms_sentence(reference)},
        "small_classes": [
            name for name, n in zip(reference.classes, reference.class_counts, strict=True) if n < CLASS_EVENTS
        ],
        "reliability": {name: _reliability(curves, truth, c) for c, name in enumerate(reference.classes)},
        "scores": {name: _scores(unseen, truth, c) for c, name in enumerate(reference.classes)},
    }
    if over_time is not None:
        report["blocks"] = over_time
    report["advice"] = [*map(_on_warning, reference.warnings), *advice(report)]
    return report


def advice(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Each condition with its verdict (good, mind, bad), and what to do about it."""
    return [
        _on_calibration(report),
        _on_indistinct_classes(report),
        _on_small_classes(report),
        _on_reference_size(report),
        _advice("good", "Scores may be rounded", report["atoms"]["sentence"]),
        _on_detectable_shift(report),
        *_on_estimator(report),
        *(_advice(*each) for each in time_report.advice(report.get("blocks", {}))),
    ]


def _quality(posteriors: Matrix, labels: Labels) -> dict[str, float]:
    parts = quality.brier_parts(posteriors, labels)
    return {
        "expected_calibration_error": quality.expected_calibration_error(posteriors, labels),
        "log_loss": quality.log_loss(posteriors, labels),
        "brier": parts.brier,
        "brier_calibration": parts.calibration,
        "brier_refinement": parts.refinement,
        "brier_within_bins": parts.within_bins,
    }


def _delta_min(reference: Reference) -> dict[str, float]:
    """How well mixtures of the classes can be told apart, by feature map (dussap, Definition 1)."""
    return {
        name: smallest_curvature(np.asarray(statistics["gram"]))
        for name, statistics in sorted(reference.statistics.items())
        if "gram" in statistics
    }


def _window(reference: Reference, size: int, *, varies: bool) -> Report:
    """The interval of every class for a window of that size that has not shifted.

    Where windows vary by nature no rise is foretold: what one window shows beside that is in `time_report`.
    """
    random = np.random.default_rng(reference.sample.seed)
    rows = random.integers(0, reference.sample.labels.size, size)
    estimate = _estimated(reference, rows)
    ratio = float(reference.facts["events"]) / size
    return {
        "events": size,
        "error_bound": _error_bound(reference, size),
        "interval_width": _by_class(reference, estimate.upper - estimate.lower),
        "rise_seen": None if varies else rise_seen(reference, size),
        "reference_per_window": ratio,
        "reference_is_enough": ratio >= REFERENCE_PER_WINDOW,
    }


def rise_seen(reference: Reference, size: int) -> float:
    """The share that the rarest class has to rise to, for 95 in 100 windows of so many events to say that it moved; 1
    where none does.

    The estimate then has to lie two quantiles from the reference's share, of the level and of 95 %, in errors of a
    window in which it has risen: those grow with the share. It also has to be a move that counts, by Cohen's w or by
    its factor.
    """
    pi, source = reference.source_priors, reference.sample
    rarest = int(np.argmin(pi))
    share = float(pi[rarest])
    counts = min((MIX_FACTOR - 1) * share, MIX_FLOOR * math.sqrt(share * (1 - share)))
    seen = share
    for _ in range(RISE_STEPS):
        mix = np.where(np.arange(pi.size) == rarest, seen, pi * (1 - seen) / (1 - share))
        rows = _drawn(source.labels, mix, size, np.random.default_rng(source.seed))
        estimate = _estimated(reference, rows)
        half = float(estimate.upper[rarest] - estimate.lower[rarest]) / 2
        error = math.hypot(half / NORMAL_95, math.sqrt(share * (1 - share) / reference.class_counts.sum()))
        # A third of the level is the mix's, and half of that a rise's.
        seen = min(share + max(float(ndtri(1 - VERDICT_LEVEL / 6) + ndtri(0.95)) * error, counts), 1.0)
    return seen


def _estimated(reference: Reference, rows: Labels) -> PriorEstimate:
    """Of a window of these rows of the sample."""
    sample = reference.sample
    window = Window.of(sample.posteriors[rows])
    if sample.features is not None:
        window = replace(window, features=sample.features[rows])
    return priors.ESTIMATORS[reference.estimator].estimate(window, reference)


def _drawn(labels: Labels, mix: Vector, size: int, random: np.random.Generator) -> Labels:
    """Rows of a sample with this class mix."""
    chances = (mix / np.bincount(labels, minlength=mix.size))[labels]
    return random.choice(labels.size, size, p=chances / chances.sum())


def _error_bound(reference: Reference, size: int) -> float | None:
    """How far from the truth, as a distance between mixes, matched counts can be with 95 % (dussap, Theorem 1).

    The least over the maps whose images are no longer than 1: predictions and posteriors. None where it is as large as
    the distance between any two mixes, and so says nothing.
    """
    curvatures = _delta_min(reference)
    bounds = [
        error_bound(curvatures[name], 1.0, reference.class_counts, size) for name in UNIT_MAPS if name in curvatures
    ]
    least = min(bounds, default=math.inf)
    return least if least < math.sqrt(2) else None


def _by_class(reference: Reference, values: Any) -> dict[str, float]:
    return dict(zip(reference.classes, np.asarray(values, dtype=np.float64).tolist(), strict=True))


def _reliability(posteriors_when: Mapping[str, Matrix], labels: Labels, c: int) -> Report:
    curves: Report = {}
    for name, posteriors in posteriors_when.items():
        curve = quality.reliability(posteriors, labels, c, BINS, "isomeric")
        curves[name] = {
            "said": curve.said.round(5).tolist(),
            "came_true": curve.came_true.round(5).tolist(),
            "events": curve.events.tolist(),
        }
    return curves


def _scores(calibrated: Matrix, labels: Labels, c: int) -> Report:
    """Histograms of the class's calibrated posterior, among its own events and among the others."""
    score = calibrated[:, c]
    edges = np.linspace(0, 1, 2 * BINS + 1)
    own, other = (np.histogram(score[labels == c], edges)[0], np.histogram(score[labels != c], edges)[0])
    return {"edges": edges.tolist(), "own": _shares(own), "others": _shares(other)}


def _shares(counts: Labels) -> list[float]:
    return [round(int(count) / max(1, int(counts.sum())), 6) for count in counts]


_TITLES = {
    "classes-exchanged": "Classes exchanged",
    "decisions": "Decisions in place of probabilities",
    "worse-than-class-shares": "Worse than the class shares",
    "sorted-by-class": "Rows sorted by label",
    "one-block": "Too few blocks",
    "features": "How features were read",
}


def _on_warning(warning: ReferenceWarning) -> dict[str, str]:
    return _advice(
        "bad" if warning.cause in {"classes-exchanged", "sorted-by-class"} else "mind",
        _TITLES[warning.cause],
        warning.text,
    )


def _on_calibration(report: Mapping[str, Any]) -> dict[str, str]:
    before, after, method = (report["calibration"][key] for key in ("before", "after", "method"))
    after = after["expected_calibration_error"]
    facts = f"Scores are margins. Posteriors that '{method}' makes of them are off by {after:.2%} on average."
    if before is not None:
        said = before["expected_calibration_error"]
        facts = f"A posterior is off by {said:.2%} on average as the model says it, by {after:.2%} after '{method}'."
    if after <= CALIBRATED:
        return _advice("good", "Calibrated", facts + " Methods that rely on posteriors, such as EM, can be trusted.")
    todo = " EM alone is biased: rely on em-debiased, retargeted or adjusted counts, and hold out more labelled events."
    return _advice("mind", "Not well calibrated", facts + todo)


def _on_indistinct_classes(report: Mapping[str, Any]) -> dict[str, str]:
    delta, classes = report["delta_min"].get("pacc", 0.0), len(report["classes"])
    facts = f"Delta_min of the posteriors is {delta:.2g} over {classes} classes (1 is perfect separation, 0 none)."
    if delta >= INDISTINCT:
        return _advice("good", "Classes can be told apart", facts)
    todo = " Some mixture of classes looks almost like another: intervals will be wide. Consider merging classes."
    return _advice("mind", "Classes look alike", facts + todo)


def _on_small_classes(report: Mapping[str, Any]) -> dict[str, str]:
    small = report["small_classes"]
    if not small:
        fewest = min(report["class_events"].values())
        return _advice("good", "Every class has enough events", f"The rarest class has {fewest:,.0f} labelled events.")
    named = ", ".join(f"{name} ({report['class_events'][name]:,.0f})" for name in small)
    todo = f"Fewer than {CLASS_EVENTS} labelled events: {named}. What they look like is guesswork; add labelled events."
    return _advice("bad", "Classes too small to estimate", todo)


def _on_reference_size(report: Mapping[str, Any]) -> dict[str, str]:
    largest = report["events"] // REFERENCE_PER_WINDOW
    facts = (
        f"With {report['events']:,} labelled events, windows of up to {largest:,} events are compared safely: every "
        "window shares the reference's own sampling error, which larger windows would take for drift, every time."
    )
    return _advice("good" if largest >= WINDOW_SIZES[0] else "mind", "Largest safe window", facts)


def _on_detectable_shift(report: Mapping[str, Any]) -> dict[str, str]:
    widths = {w["events"]: max(w["interval_width"].values()) / 2 for w in report["windows"]}
    said = ", ".join(f"{half:.2%} at {events:,} events" for events, half in widths.items())
    facts = f"The prevalence of the least certain class is known to +-{said}. A smaller shift cannot be seen."
    facts += _rise(report)
    return _advice("good" if widths[WINDOW_SIZES[1]] < 0.05 else "mind", "Smallest visible shift", facts)


def _rise(report: Mapping[str, Any]) -> str:
    """Which rise of the rarest class is named, where windows do not vary by nature."""
    rarest = min(report["source_priors"], key=report["source_priors"].get)
    known = [window for window in report["windows"] if window["rise_seen"] is not None]
    rises = [f"{each['rise_seen']:.2%} of {each['events']:,} events" for each in known if each["rise_seen"] < 1]
    if not rises:
        return f" No rise of {rarest} is sure to be named." if known else ""
    return (
        f" A rise of {rarest}, from {report['source_priors'][rarest]:.2%}, is named in 95 of 100 windows once it makes "
        f"up {', '.join(rises)}."
    )


def _simulated(reference: Reference, posteriors: Matrix, labels: Labels) -> Report | None:
    """None for an estimator that has to see features: mixes are simulated by scores alone."""
    if priors.ESTIMATORS[reference.estimator].needs_features:
        return None
    return simulated(posteriors, labels, reference.calibration.method, reference.estimator, reference.sample.seed)


def _on_estimator(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """The reference's own first: the others are what it is held against."""
    shifts = report["simulated"]
    if not shifts:
        return []
    errors = shifts["mean_absolute_error"]
    said = ", ".join(f"{name} {error:.2%}" for name, error in errors.items())
    facts = (
        f"Mean absolute error over {shifts['windows']} simulated shifts of {shifts['events']} events: {said}. "
        "(cc counts predictions, pcc averages scores: what one would do without a method.)"
    )
    verdict = "good" if min(errors, key=errors.__getitem__) == report["estimator"] else "mind"
    return [_advice(verdict, f"Estimator: {report['estimator']}", facts)]


def _advice(verdict: str, title: str, text: str) -> dict[str, str]:
    return {"verdict": verdict, "title": title, "text": text}

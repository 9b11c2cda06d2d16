"""A reference in words: what it holds, and how it differs from another one."""

from itertools import zip_longest

import numpy as np

from monitor.arrays import Vector
from monitor.reference.base import FiledReference
from monitor.reference.classifier import Reference
from monitor.reference.regressor import RegressionReference
from monitor.reference.segments import fields_of
from monitor.shifts import FeatureProfile


def explain(reference: FiledReference) -> str:
    """What somebody who was handed the file should know."""
    facts = reference.facts
    made = [
        f"from {facts['source']}" if "source" in facts else "",
        f"at {facts['created']}" if "created" in facts else "",
    ]
    lines = [
        f"  version      {reference.version} {' '.join(part for part in made if part)}".rstrip(),
        f"  stream       {reference.schema.stream or '(any)'}",
        f"  events       {facts['events']:,} labelled"
        + (f", of which {facts['rows']:,} were kept as a sample" if facts["rows"] < facts["events"] else ""),
    ]
    match reference:
        case RegressionReference():
            lines += _relation(reference)
        case Reference():
            lines += _classes(reference)
    if reference.features:
        lines.append("  features")
        width = max(len(p.feature.name) for p in reference.features)
        lines += [f"    {p.feature.name:<{width}}  {_feature(p)}" for p in reference.features]
    return "\n".join(lines)


def _classes(reference: Reference) -> list[str]:
    lines = [
        f"  scores       {'margins' if reference.margins else 'posteriors'}",
        f"  calibration  {reference.calibration.method}",
        f"  estimator    {reference.estimator}, of {len(reference.statistics)}",
    ]
    if reference.segments is not None:
        fields = (f"{field} ({values} values)" for field, values in fields_of(reference.segments).items())
        lines.append(f"  segments     {', '.join(fields)}")
    lines.append("  classes")
    width = max(map(len, reference.classes))
    for name, count, prior in zip(reference.classes, reference.class_counts, reference.source_priors, strict=True):
        lines.append(f"    {name:<{width}}  {prior:8.3%}  {count:,.0f} events")
    return lines


def _further(reference: RegressionReference) -> str:
    """What is known of the errors beside: references of earlier releases do not have it."""
    if reference.absolute_error is None:
        return ""
    return f"; mean size {reference.absolute_error:.4g}, mean {reference.bias:+.4g}"


def _relation(reference: RegressionReference) -> list[str]:
    """What the labels depend on, and how."""
    lines = [
        f"  prediction   {_feature(reference.prediction)}",
        f"  error        {reference.error:.4g} (root mean square of label minus prediction{_further(reference)})",
        f"  relation     of the label to {', '.join(reference.input_names)}; tested from {reference.wanted} labels on",
    ]
    return lines + [f"    {component}" for component in _components(reference)]


def _components(reference: RegressionReference) -> list[str]:
    """Each line of the mixture."""
    mixture, names = reference.mixture, reference.input_names
    lines = []
    for weight, (intercept, *slopes), sigma in zip(mixture.weights, mixture.coefficients, mixture.sigmas, strict=True):
        terms = "".join(f" {slope:+.4g} {name}" for slope, name in zip(slopes, names, strict=True))
        lines.append(f"{weight:.1%}  {intercept:.4g}{terms}, noise {sigma:.4g}")
    return lines


def _feature(p: FeatureProfile) -> str:
    missing = float(np.average(p.missing, weights=np.maximum(p.class_counts, 1)))
    absent = f", {missing:.2%} missing" if missing > 0 else ""
    if p.feature.kind != "number":
        return f"{p.feature.kind} of {len(p.feature.categories)} values{absent}"
    if p.values.size == 0:
        return f"number without any value{absent}"
    # Values that occurred: half-way between two of the largest floats there is no number.
    low, median, high = np.quantile(p.values, (0.01, 0.5, 0.99), method="inverted_cdf")
    exact = "exact" if p.error == 0 else f"to {p.error:.1e}"
    return f"number, {low:.4g} | {median:.4g} | {high:.4g} (1 %, median, 99 %), {exact}{absent}"


def differences(old: FiledReference, new: FiledReference) -> list[str]:
    """What changed, most important first; empty when the content is the same."""
    if old.version == new.version:
        return []
    lines = [f"version: {old.version} -> {new.version}"]
    match old, new:
        case RegressionReference(), RegressionReference():
            return lines + _regression_differences(old, new)
        case Reference(), Reference():
            return lines + _classifier_differences(old, new)
    return [*lines, "one is of a classifier, the other of a regression stream"]


def _classifier_differences(old: Reference, new: Reference) -> list[str]:
    lines = []
    for name, before, after in (
        ("stream", old.schema.stream, new.schema.stream),
        ("classes", ", ".join(old.classes), ", ".join(new.classes)),
        ("margins", str(old.margins), str(new.margins)),
        ("calibration", old.calibration.method, new.calibration.method),
        ("estimator", old.estimator, new.estimator),
        ("events", f"{old.facts['events']:,}", f"{new.facts['events']:,}"),
    ):
        if before != after:
            lines.append(f"{name}: {before} -> {after}")
    priors = dict(zip(new.classes, new.source_priors, strict=True))
    for name, before in zip(old.classes, old.source_priors, strict=True):
        if name in priors and not np.isclose(before, priors[name], rtol=1e-9):
            lines.append(f"prior of {name}: {before:.3%} -> {priors[name]:.3%}")
    return lines + _feature_differences(old.features, new.features, old.source_priors, new.source_priors)


def _regression_differences(old: RegressionReference, new: RegressionReference) -> list[str]:
    weight = np.ones(1)
    lines = [
        f"{name}: {before} -> {after}"
        for name, before, after in (
            ("stream", old.schema.stream, new.schema.stream),
            ("events", f"{old.events:,}", f"{new.events:,}"),
            ("error", f"{old.error:.4g}", f"{new.error:.4g}"),
            ("inputs of the relation", ", ".join(old.input_names), ", ".join(new.input_names)),
        )
        if before != after
    ]
    for before, after in zip_longest(_components(old), _components(new), fillvalue="nothing"):
        if before != after:
            lines.append(f"component: {before} -> {after}")
    return lines + _feature_differences(old.features, new.features, weight, weight)


def _feature_differences(
    old: tuple[FeatureProfile, ...], new: tuple[FeatureProfile, ...], old_priors: Vector, new_priors: Vector
) -> list[str]:
    before = {p.feature.name: p for p in old}
    after = {p.feature.name: p for p in new}
    lines = [f"feature {name}: gone" for name in before if name not in after]
    lines += [f"feature {name}: new" for name in after if name not in before]
    for name in before.keys() & after.keys():
        first, then = before[name], after[name]
        if first.feature != then.feature:
            lines.append(f"feature {name}: {_feature(first)} -> {_feature(then)}")
        elif (
            first.values.size and then.values.size and (distance := _distance(first, old_priors, then, new_priors)) > 0
        ):
            lines.append(f"feature {name}: the distributions are {distance:.4f} apart (Kolmogorov-Smirnov)")
    return sorted(lines)


def _distance(one: FeatureProfile, old_priors: Vector, other: FeatureProfile, new_priors: Vector) -> float:
    """The largest difference of the two distribution functions, each under its own class mix."""
    at = np.union1d(one.values, other.values)

    def distribution(p: FeatureProfile, priors: Vector) -> Vector:
        cumulated = np.concatenate([[0.0], np.cumsum(p.weights(priors))])
        return cumulated[np.searchsorted(p.values, at, side="right")]

    return float(np.abs(distribution(one, old_priors) - distribution(other, new_priors)).max())

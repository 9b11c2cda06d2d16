"""Streams of a regressor: events carry a prediction, and the few labels say whether the relation still holds."""

from dataclasses import replace

from monitor.assessment import assess_regression, verdicts
from monitor.kinds.kind import Kind
from monitor.kinds.relation import RegressorFacts, RelationAnswer, read
from monitor.labels import REGRESSION_OUTCOMES
from monitor.reference import RegressionReference
from monitor.windows import EvidencePlan, Plan, TimePlan


def _plan(plan: Plan, reference: RegressionReference, evidence: int | None) -> Plan:
    """Windows by time gather labels: of one window, or as far back as `evidence` says."""
    if not isinstance(plan, TimePlan):
        return plan
    return replace(plan, evidence=EvidencePlan(evidence or plan.size, reference.enough))


def _described(reference: RegressionReference) -> str:
    inputs = ", ".join(reference.input_names)
    return f"label on {inputs}\nerror {reference.error:.3g}, {reference.wanted} labels wanted"


REGRESSOR = Kind(
    name="regressor",
    reference=RegressionReference,
    settings=frozenset({"evidence", "adapt", "performance"}),
    verdicts=verdicts(regression=True),
    assess=lambda window, reference, declared: assess_regression(
        window, reference, by=declared.adapt, sketches=declared.sketches
    ),
    plan=_plan,
    described=_described,
    sample=lambda _window, _reference: None,
    facts=RegressorFacts.of,
    answer=RelationAnswer,
    outcomes=REGRESSION_OUTCOMES,
    read=read,
)

"""The published table of metrics is the catalogue."""

from pathlib import Path

from monitor.observers.metric_catalogue import CATALOGUE, TESTS, metric_of_test, table
from monitor.priors import CHEAP
from tests.service.streams import reference, scores

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_the_table_in_deploy_is_the_catalogue() -> None:
    """Run `python -c "from monitor.observers import metric_catalogue; print(metric_catalogue.table(), end='')"`."""
    assert (DEPLOY / "METRICS.md").read_text(encoding="utf-8").endswith("\n\n" + table())


def test_every_test_of_an_assessment_has_its_metrics() -> None:
    from monitor import Window, assess  # noqa: PLC0415

    posteriors, _ = scores(2_000, 0.6, seed=5)
    names = {spec.name for spec in CATALOGUE}
    assessment = assess(Window.of(posteriors), reference())
    assert set(assessment.tests) <= set(TESTS)
    assert all(metric_of_test(test, part) in names for test in TESTS for part in ("statistic", "p_value", "effect"))
    assert CHEAP

"""An interval that grew because matched means contradict `em` does not hide that they do."""

import numpy as np

from monitor.assessment import assess
from monitor.reference.classifier import Reference
from monitor.windows import Window
from tests.priors.test_doubt import MIX, SOURCE, scored


def test_estimates_that_disagree_are_told_of_and_nothing_is_corrected() -> None:
    g, labels = scored(20_000, SOURCE, 0.9, 1)
    reference = Reference.fit(g, labels, classes=["a", "b", "c"], calibration="none")
    found = assess(Window.of(scored(5_000, MIX, 0.9, 2)[0]), reference, only_mix=True)
    em, matched = found.estimates["em"], found.estimates["pacc"]
    assert np.abs(em.priors - matched.priors).sum() / 2 > 0.05
    assert ((em.lower <= matched.priors) & (matched.priors <= em.upper)).all()
    assert found.tests["disagreement"].significant
    assert not found.recalibration.apply

"""Any finite labels get an answer: no warning (they are errors here), no stray exception, no NaN."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.regression import Mixture, adapt, adapt_bayes, relation_test
from monitor.regression.gibbs import Prior


def scene(seed, events, target):
    """A reference and labels with coefficients, noise, units and offsets over many orders of magnitude."""
    rng = np.random.default_rng(seed)
    components, inputs = rng.integers(1, 4), rng.integers(1, 4)
    betas = rng.normal(size=(components, inputs + 1)) * 10 ** rng.uniform(-3, 4)
    if rng.random() < 0.3:
        betas[rng.random(betas.shape) < 0.4] = 0.0
    weights = np.eye(components)[0] if rng.random() < 0.2 else rng.dirichlet(np.ones(components))
    noise = 10 ** rng.uniform(-4, 3, size=components)
    reference = Mixture.of(weights, betas, noise, int(rng.choice([0, 100])))
    x = rng.normal(size=(events, inputs)) * 10 ** rng.uniform(-6, 6) + rng.choice([0.0, 1e3, 1e6])
    y = {
        "ordinary": lambda: rng.normal(size=events),
        "zero": lambda: np.zeros(events),
        "exact": lambda: 2.0 * x[:, 0],
        "wild": lambda: 1e6 * rng.standard_cauchy(events),
        "binary": lambda: rng.integers(0, 2, events).astype(float),
    }[target]()
    return reference, x, y


@given(
    seed=st.integers(0, 2**31 - 1),
    events=st.sampled_from([1, 2, 3, 8, 20, 40]),
    target=st.sampled_from(["ordinary", "zero", "exact", "wild", "binary"]),
    criterion=st.sampled_from(["bic", "press", "press-nearest"]),
)
@settings(max_examples=15, deadline=None)
def test_every_way_of_adapting_answers(seed, events, target, criterion):
    reference, x, y = scene(seed, events, target)
    models = ["M1", "M2d", "M3b", "pM3d", "M4b", "pM5"]
    found = adapt(reference, x, y, models=models, starts=2, criterion=criterion)
    assert np.all(np.isfinite(found.predict(x)))
    assert found.description
    posterior = adapt_bayes(reference, x, y, sweeps=20, burn_in=5, prior=Prior.relative(reference, x))
    assert np.all(np.isfinite(posterior.interval(x)))
    tested = relation_test(reference, x, y, level=0.5, starts=2)
    assert 0.0 <= tested.p_value <= 1.0
    assert tested.statistic >= 0.0

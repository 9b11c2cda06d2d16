"""Each M-step is the maximiser, found again by a general optimiser that knows only the definition of Q."""

import numpy as np
import pytest

from monitor.regression.candidates import state_of
from monitor.regression.links import LINKS
from monitor.regression.maximise import maximise, pose, positive_root
from tests.regression import naive, worlds

NAMES = [name for name in LINKS if name != "M1"]


@pytest.fixture(params=[(1, 2), (2, 2), (3, 3)], ids=["K1", "K2", "K3"])
def scene(request):
    components, inputs = request.param
    reference = worlds.random_mixture(components, inputs, seed=components)
    now = worlds.moved(reference, 1.5)
    x = worlds.normal(60, inputs, seed=4)
    y = worlds.draw(now, x, seed=5)
    shares = np.random.default_rng(6).dirichlet(np.ones(components), size=60).T
    return reference, x, y, shares


@pytest.mark.parametrize("name", NAMES)
def test_the_derived_step_equals_the_numerical_maximiser(name, scene):
    reference, x, y, shares = scene
    rows, betas, sigmas = naive.design(x), np.array(reference.coefficients), np.array(reference.sigmas)
    problem = pose(rows, y, state_of(reference))
    coefficients, noise = maximise(problem, LINKS[name], shares[None], state_of(reference), cycles=2_000)

    exact, q = naive.maximiser(name, betas=betas, sigmas=sigmas, rows=rows, targets=y, shares=shares)
    expected, expected_noise = naive.unpack(name, exact, betas, sigmas)

    np.testing.assert_allclose(coefficients[0], expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(noise[0], expected_noise, rtol=1e-9, atol=1e-9)
    nearby = np.random.default_rng(7)
    for _ in range(20):
        assert q(exact * (1 + 0.05 * nearby.normal(size=exact.size))) <= q(exact) + 1e-9


@pytest.mark.parametrize("name", ["M2d", "M3d"])
def test_the_closed_form_of_both_factors_is_where_the_papers_alternation_ends(name, scene):
    reference, x, y, shares = scene
    betas, sigmas = np.array(reference.coefficients), np.array(reference.sigmas)
    weight = shares / sigmas[:, None] ** 2
    base, slopes = betas[:, :1] * np.ones_like(shares), betas[:, 1:] @ x.T
    axis = None if name == "M2d" else 1
    count = shares.sum(axis=axis)
    low = high = np.ones_like(count)
    for _ in range(5_000):

        def spread(factor):
            return factor if name == "M2d" else factor[:, None]

        low = np.sum(weight * base * (y - spread(high) * slopes), axis=axis) / np.sum(weight * base**2, axis=axis)
        rest = y - spread(low) * base
        cross, square = np.sum(weight * slopes * rest, axis=axis), np.sum(weight * rest**2, axis=axis)
        high = (-cross + np.sqrt(cross**2 + 4 * count * square)) / (2 * count)
    coefficients, noise = maximise(
        pose(naive.design(x), y, state_of(reference)), LINKS[name], shares[None], state_of(reference)
    )
    np.testing.assert_allclose(coefficients[0][:, 0] / betas[:, 0], np.broadcast_to(low, len(betas)), rtol=1e-9)
    np.testing.assert_allclose(noise[0] / sigmas, np.broadcast_to(high, len(betas)), rtol=1e-9)


def test_one_cycle_of_m4_raises_q_and_never_lowers_it():
    reference = worlds.random_mixture(2, 3, seed=1)
    x = worlds.normal(40, 3, seed=2)
    y = worlds.draw(worlds.moved(reference, 2.0), x, seed=3)
    shares = np.random.default_rng(4).dirichlet(np.ones(2), size=40).T
    rows = naive.design(x)
    problem, state = pose(rows, y, state_of(reference)), state_of(reference)

    def q(coefficients, noise):
        errors = y - coefficients @ rows.T
        return np.sum(shares * (-np.log(noise)[:, None] - errors**2 / (2 * noise[:, None] ** 2)))

    last = q(state.coefficients[0], state.sigmas[0])
    for cycles in range(1, 8):
        coefficients, noise = maximise(problem, LINKS["M4b"], shares[None], state, cycles)
        now = q(coefficients[0], noise[0])
        assert now >= last - 1e-10
        last = now


def test_the_root_keeps_its_digits_when_the_cross_term_is_huge():
    # (sqrt(b^2 + 4 n c) - b) / 2n loses half its digits here; 2c / (b + sqrt(b^2 + 4 n c)) loses none.
    root = positive_root(np.array([[1.0]]), np.array([[1e3]]), np.array([[1.0]]))
    assert root[0, 0] == pytest.approx(2.0 / (1e3 + np.sqrt(1e6 + 4.0)), rel=1e-14)

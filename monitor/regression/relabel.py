"""Undo label switching: give every draw the permutation of components that brings it nearest to its cluster.

Section 3.3 of Bouveyron & Jacques (2014) reorders the chain by k-means (Celeux, Hurn & Robert 2000); here all draws at
once, until no draw changes. Which cluster is which component is then decided by the prior, which is not symmetric.
"""

from dataclasses import replace

import numpy as np
import scipy

from monitor.arrays import Flags, Labels, Matrix
from monitor.regression.gibbs import Chains, Prior
from monitor.regression.maximise import Cube
from monitor.tolerances import RELABELLING_ROUNDS


def relabel(chains: Chains, prior: Prior) -> tuple[Chains, int]:
    """The chains with consistent components, and how many draws were changed."""
    draws, count, components, width = chains.coefficients.shape
    if components == 1:
        return chains, 0
    points = np.concatenate([chains.coefficients, np.log(chains.sigmas)[..., None]], axis=3).reshape(
        draws * count, components, width + 1
    )
    points = points / np.maximum(points.std(axis=(0, 1)), np.finfo(float).tiny)
    orders = _cluster(points, int(np.argmax(chains.log_posterior)))
    taken = _take(chains, orders)
    orders = orders[:, _prior_order(taken, prior)]
    changed = np.any(orders != np.arange(components), axis=1)
    # When every draw moved alike nothing was switched: the clusters were named the other way round.
    switched = int(min(changed.sum(), np.sum(np.any(orders != _most_common(orders), axis=1))))
    return _take(chains, orders), switched


def _cluster(points: Cube, first: int) -> Labels:
    """k-means over permutations, from the draw of highest posterior: orders (draws, K)."""
    count, components, _ = points.shape
    orders = np.tile(np.arange(components), (count, 1))
    centre: Matrix = points[first]
    for _ in range(RELABELLING_ROUNDS):
        cost = ((points[:, None, :, :] - centre[None, :, None, :]) ** 2).sum(axis=3)
        new = _assign(cost)
        settled = bool(np.all(new == orders))
        orders = new
        centre = np.take_along_axis(points, orders[..., None], axis=1).mean(axis=0)
        if settled:
            break
    return orders


def _assign(cost: Cube) -> Labels:
    """The component with the smallest total cost for cluster j of every draw, each used once."""
    nearest: Labels = cost.argmin(axis=2)
    components = cost.shape[1]
    clear: Flags = np.all(np.sort(nearest, axis=1) == np.arange(components), axis=1)
    for draw in np.flatnonzero(~clear):
        nearest[draw] = scipy.optimize.linear_sum_assignment(cost[draw])[1]
    return nearest


def _prior_order(chains: Chains, prior: Prior) -> Labels:
    """The order of the clusters that the prior finds most likely, component by component of their means."""
    coefficients = chains.coefficients.mean(axis=(0, 1))
    variance = (chains.sigmas**2).mean(axis=(0, 1))
    weights = chains.weights.mean(axis=(0, 1))
    distance = (coefficients[None] - prior.coefficients[:, None]) ** 2 / prior.spread[:, None] / variance[None, :, None]
    cost = 0.5 * distance.sum(axis=2) - (prior.alpha[:, None] - 1.0) * np.log(weights)[None]
    order: Labels = scipy.optimize.linear_sum_assignment(cost)[1]
    return order


def _take(chains: Chains, orders: Labels) -> Chains:
    order = orders.reshape(*chains.weights.shape)
    return replace(
        chains,
        weights=np.take_along_axis(chains.weights, order, axis=2),
        coefficients=np.take_along_axis(chains.coefficients, order[..., None], axis=2),
        sigmas=np.take_along_axis(chains.sigmas, order, axis=2),
    )


def _most_common(orders: Labels) -> Labels:
    kinds, counts = np.unique(orders, axis=0, return_counts=True)
    common: Labels = kinds[int(np.argmax(counts))]
    return common

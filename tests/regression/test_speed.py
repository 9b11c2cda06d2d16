"""Carrying a reference over is cheap enough for every window that has labels. CPU time: the machine may be busy."""

import time

from monitor.regression import adapt, adapt_bayes
from tests.regression import worlds

REFERENCE = worlds.random_mixture(3, 5, seed=1)
X = worlds.normal(200, 5, seed=2)
Y = worlds.draw(worlds.moved(REFERENCE, 1.5, 1.5), X, seed=3)


def cpu_seconds(task):
    begin = time.process_time()
    task()
    return time.process_time() - begin


def test_all_24_models_with_ten_starts_take_less_than_two_seconds():
    assert cpu_seconds(lambda: adapt(REFERENCE, X, Y, starts=10)) < 2.0


def test_a_thousand_sweeps_take_less_than_a_second():
    assert cpu_seconds(lambda: adapt_bayes(REFERENCE, X, Y, sweeps=1_000)) < 1.0

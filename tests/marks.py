"""Marks that tests of several rooms use."""

import pytest


def in_chaos(*values: object):
    """A case of a parametrised test that is too long to run every time."""
    return pytest.param(*values, marks=pytest.mark.chaos)

"""Matplotlib for the reports."""

from typing import Any


def pyplot() -> Any:
    """Without a screen. An extra, and imported only where a picture is drawn: the tables do not need it."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    return plt

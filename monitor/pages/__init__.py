"""What people look at: drawings, words and templates of the status page and of reports.

The engine of the templates is imported by its own name: who only draws does without it.
"""

from monitor.pages.distributions import Distribution, distribution
from monitor.pages.plots import DrawnPath, Frame
from monitor.pages.words import moment, number, p_value, percent, seconds, sentence, some, span

__all__ = [
    "Distribution",
    "DrawnPath",
    "Frame",
    "distribution",
    "moment",
    "number",
    "p_value",
    "percent",
    "seconds",
    "sentence",
    "some",
    "span",
]

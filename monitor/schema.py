"""What a stream's events look like: the classes and features that a reference was built with."""

from dataclasses import dataclass
from typing import Literal

FeatureKind = Literal["number", "category", "boolean"]


@dataclass(frozen=True, slots=True)
class Feature:
    """One input column. A category is stored as its number in `categories`; one past the end is a value never seen."""

    name: str
    kind: FeatureKind = "number"
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """The classes, in the order of every posterior vector, and the features, in the order of every row."""

    stream: str
    classes: tuple[str, ...]
    features: tuple[Feature, ...] = ()
    positive: str | None = None
    """The class that a bare `score` is the probability of; only for two classes."""

"""What a stream's events look like: the classes and features that a reference was built with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from monitor.errors import InputError

FeatureKind = Literal["number", "category", "boolean"]


@dataclass(frozen=True, slots=True)
class Feature:
    """One input column. A category is stored as its number in `categories`; one past the end is a value never seen. An
    empty text is no category but a missing value: a file of text cannot tell the two apart."""

    name: str
    kind: FeatureKind = "number"
    categories: tuple[str, ...] = ()

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> Self:
        """The feature that a file's header describes."""
        return cls(described["name"], described["kind"], tuple(described["categories"]))


PREDICTION = Feature("prediction")
"""What a regressor says, described and tested as its inputs are."""


def category_text(value: Any) -> str:
    """A category's name, whatever type it is sent as: true for a boolean, 5411 for 5411 and 5411.0."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


@dataclass(frozen=True, slots=True)
class StreamSchema:
    """The classes, in the order of every posterior vector, and the features, in the order of every row."""

    stream: str
    classes: tuple[str, ...]
    """Empty for a regression stream, whose events carry a prediction instead of posteriors."""
    features: tuple[Feature, ...] = ()
    positive: str | None = None
    """The class that a bare `score` speaks of; only for two classes."""
    margins: bool = False
    """Whether scores are margins: numbers that rise with the probability of their class, and are none themselves. Of
    two classes one is enough: the positive one's, of which the other's is the negative."""

    def __post_init__(self) -> None:
        _check_names("classes", self.classes)
        _check_names("features", [feature.name for feature in self.features])
        if self.positive is not None and (len(self.classes) != 2 or self.positive not in self.classes):
            raise InputError(f"positive: want one of two classes, got {self.positive!r} with classes {self.classes}")


def _check_names(what: str, names: Sequence[str]) -> None:
    """Names are keys of JSON objects: each once, and writable without escapes."""
    if len(set(names)) != len(names):
        raise InputError(f"{what}: want every name once, got {tuple(names)}")
    for name in names:
        if '"' in name or "\\" in name or not name.isprintable():
            raise InputError(f"{what}: want printable names without quotes or backslashes, got {name!r}")

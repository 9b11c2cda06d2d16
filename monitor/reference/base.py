"""What references of every kind have in common: a schema, profiles of the features, and one versioned file."""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from monitor.errors import ArtefactError
from monitor.ports.schema import Feature, StreamSchema
from monitor.recalibration import CalibrationMap
from monitor.reference import artefact, by_name
from monitor.reference.warnings import ReferenceWarning
from monitor.shifts import FeatureProfile
from monitor.version import __version__
from monitor.windows import Window

Header = dict[str, Any]
Arrays = dict[str, artefact.Array]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FiledReference(ABC):
    """Hold-out events, reduced once and never changed."""

    task: ClassVar[str | None]
    """What the header of the file says, by which its kind is known; the header of a classifier's says nothing."""
    schema: StreamSchema
    features: tuple[FeatureProfile, ...]
    facts: Mapping[str, Any]
    """How it was made: events, rows, seed, software, and what the build measured."""
    version: str
    """The hash of the content."""

    @property
    @abstractmethod
    def events(self) -> int:
        """All labelled events that it was made from."""

    @property
    def margin_map(self) -> CalibrationMap | None:
        """What makes posteriors of scores that are margins; None where there are none."""
        return None

    @property
    def warnings(self) -> tuple[ReferenceWarning, ...]:
        """What should be looked at before the reference is believed."""
        empty = [p.feature.name for p in self.features if np.all(p.missing >= 1)]
        said = [ReferenceWarning(**warning) for warning in self.facts.get("warnings", ())]
        if empty:
            text = "no hold-out event has a value, so that those of windows cannot be compared"
            said.append(ReferenceWarning("features", f"{', '.join(empty)}: {text}"))
        return tuple(said)

    def __repr__(self) -> str:
        kind, schema = type(self).__name__, self.schema
        classes = f"{len(schema.classes)} classes, " if schema.classes else ""
        held = f"{classes}{len(schema.features)} features, {self.facts['events']:,} events, version {self.version}"
        said = "".join(f"\n  WARNING ({warning.cause}): {warning.text}" for warning in self.warnings)
        return f"<{kind} of {schema.stream or 'any stream'}: {held}{said}>"

    @property
    def segment_fields(self) -> frozenset[str]:
        """The fields of which it knows what is usual in each segment."""
        return frozenset()

    def ignoring(self, names: Collection[str]) -> Self:  # noqa: ARG002 - a regressor tests each input by itself
        """The same, with these features in no test."""
        return self

    def matched(self, window: Window) -> Window:
        """The window with the columns of its data frames found by name; any other window as it is."""
        return by_name.matched(window, self.schema)

    def remarks(self, window: Window) -> tuple[str, ...]:
        """What `matched` could not do as it was meant, in words."""
        return by_name.remarks(window, self.schema.features)

    def sealed(self) -> Self:
        """The same reference under the version that its content has."""
        return replace(self, version=artefact.content_hash(self._content(), self._placed()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one versioned, hashed file without pickle; readers see the old file or the new one, never half."""
        header = {"software": __version__, "version": self.version, "facts": dict(self.facts), **self._content()}
        artefact.save(path, header, self._placed())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file back; whatever is wrong with it is an `ArtefactError` that says so."""
        return cls.read(path, *artefact.load(path))

    @classmethod
    def read(cls, path: str | os.PathLike[str], header: Header, arrays: Arrays) -> Self:
        """What `load` found in a file."""
        if header.get("task") != cls.task:
            kinds = [f"a {task} stream" if task else "a classifier" for task in (header.get("task"), cls.task)]
            raise ArtefactError(f"{path}: is the reference of {kinds[0]}, not of {kinds[1]}")
        try:
            described = header["features"]
            features = tuple(Feature.of(feature) for feature in described)
            return cls(
                features=tuple(
                    FeatureProfile.from_arrays(feature, described[j]["error"], artefact.under(arrays, f"features/{j}"))
                    for j, feature in enumerate(features)
                ),
                facts=header["facts"],
                version=header["version"],
                **cls.fields_of(header, arrays, features),
            )
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ArtefactError(f"{path}: the reference lacks or misstates {error}") from error

    def _content(self) -> Header:
        """What of the header belongs to the content, as plain JSON."""
        described = {"stream": self.schema.stream, "features": [p.described() for p in self.features]}
        return described | ({"task": self.task} if self.task else {}) | self.header()

    def _placed(self) -> Arrays:
        """Every array under its place in the file."""
        arrays = self.arrays()
        for j, p in enumerate(self.features):
            arrays |= artefact.placed(f"features/{j}", p.to_arrays())
        return arrays

    @abstractmethod
    def header(self) -> Header:
        """What this kind of reference adds to the header."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """The arrays of this kind of reference, under their places in the file."""

    @classmethod
    @abstractmethod
    def fields_of(cls, header: Header, arrays: Arrays, features: tuple[Feature, ...]) -> dict[str, Any]:
        """The constructor's further arguments from a file."""

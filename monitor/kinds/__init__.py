"""The kinds of stream: a module for each, and the registry that finds a stream's kind by its reference."""

import os

from monitor.kinds.assessed import Assessed
from monitor.kinds.class_mix import ClassMixAnswer
from monitor.kinds.classifier import CLASSIFIER
from monitor.kinds.kind import AnyKind, Declared, Kind
from monitor.kinds.reading import Answer, AnswerT_co, AnyReading, ModelFacts, Reading, Sample, SmoothedMix, reading_of
from monitor.kinds.regressor import REGRESSOR
from monitor.kinds.relation import RelationAnswer
from monitor.reference import FiledReference, artefact

__all__ = [
    "KINDS",
    "Answer",
    "AnswerT_co",
    "AnyReading",
    "Assessed",
    "ClassMixAnswer",
    "Declared",
    "Kind",
    "ModelFacts",
    "Reading",
    "RelationAnswer",
    "Sample",
    "SmoothedMix",
    "kind_of",
    "load_reference",
    "reading_of",
]

KINDS: dict[str | None, AnyKind] = {kind.reference.task: kind for kind in (CLASSIFIER, REGRESSOR)}
"""By what the header of a reference's file calls its task."""


def kind_of(whose: FiledReference | Assessed) -> AnyKind:
    """The kind of stream that a reference is for, or an assessment is of."""
    return KINDS[whose.task]


def load_reference(path: str | os.PathLike[str]) -> FiledReference:
    """The reference in a file, of the kind that the file says; whatever is wrong with it is an `ArtefactError`."""
    header, arrays = artefact.load(path)
    kind: type[FiledReference] = KINDS.get(header.get("task"), CLASSIFIER).reference
    return kind.read(path, header, arrays)

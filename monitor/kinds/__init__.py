"""The kinds of stream: a module for each, and the registry that finds a stream's kind by its reference."""

import os

from monitor.kinds.classifier import CLASSIFIER
from monitor.kinds.kind import AnyKind, Assessed, Kind
from monitor.kinds.regressor import REGRESSOR
from monitor.reference import artefact
from monitor.reference.base import FiledReference

__all__ = ["KINDS", "Assessed", "Kind", "kind_of", "load_reference"]

KINDS: dict[str | None, AnyKind] = {one.reference.task: one for one in (CLASSIFIER, REGRESSOR)}
"""By what the header of a reference's file calls its task."""


def kind_of(reference: FiledReference) -> AnyKind:
    """The kind of stream that a reference is for."""
    return KINDS[reference.task]


def load_reference(path: str | os.PathLike[str]) -> FiledReference:
    """The reference in a file, of the kind that the file says; whatever is wrong with it is an `ArtefactError`."""
    header, arrays = artefact.load(path)
    kind: type[FiledReference] = KINDS.get(header.get("task"), CLASSIFIER).reference
    return kind.read(path, header, arrays)

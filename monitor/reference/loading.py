"""A reference from a file, of whatever kind the file says it is."""

import os

from monitor.reference import artefact
from monitor.reference.classifier import Reference
from monitor.reference.regressor import RegressionReference

AnyReference = Reference | RegressionReference


def load_reference(path: str | os.PathLike[str]) -> AnyReference:
    """Read a file back; whatever is wrong with it is an `ArtefactError` that says so."""
    header, arrays = artefact.load(path)
    kind = RegressionReference if header.get("task") == RegressionReference.task else Reference
    return kind.read(path, header, arrays)

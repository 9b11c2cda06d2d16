"""The file format of a reference: everything that turns a header and named arrays into one checked file, and back.

A plain zip, stored uncompressed: `header.json` first, then one `.npy` member per array, so `unzip` and `numpy.load`
(with `allow_pickle=False`) read it without this package. The header lists the SHA-256 of every member and its own,
so a truncated or edited file is refused before an array is parsed. A hash is not a signature: it finds damage and
careless edits, not a forger. Nothing in the file can run code.
"""

import hashlib
import io
import json
import os
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.errors import ArtefactError

FORMAT = 1
"""Raised when a file of this version could not be understood by older software."""

KIND = "shiftwatch reference"
HEADER = "header.json"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip can hold: the same content gives the same bytes."""

Array = NDArray[Any]


def content_hash(facts: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    """What identifies a reference: the hash of the facts and of every array, whatever the file around them."""
    members = {name: _sha256(_npy(array)) for name, array in arrays.items()}
    return _sha256(_canonical({"facts": facts, "members": members}))[:16]


def save(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write the file beside its place and move it there: readers see the old one or the new one, never half."""
    members = {f"{name}.npy": _npy(array) for name, array in sorted(arrays.items())}
    full = {**header, "kind": KIND, "format": FORMAT, "members": {name: _sha256(b) for name, b in members.items()}}
    full["sha256"] = _sha256(_canonical(full))
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with zipfile.ZipFile(scratch, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(zipfile.ZipInfo(HEADER, EPOCH), json.dumps(full, indent=1, sort_keys=True))
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name, EPOCH), content)
        scratch.replace(target)
    except OSError as error:
        raise ArtefactError(f"{target}: cannot be written: {error}") from error
    finally:
        scratch.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the read-only arrays of a file, or an `ArtefactError` that says what is wrong with it."""
    try:
        with zipfile.ZipFile(path) as archive:
            # Nothing that this module writes is compressed or encrypted: a file that says so is never unpacked.
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise ArtefactError(f"{path}: damaged or not a reference: its members are not stored as they are")
            header = _checked_header(path, archive)
            arrays = {name.removesuffix(".npy"): _member(path, archive, header, name) for name in header["members"]}
    except FileNotFoundError as error:
        raise ArtefactError(f"{path}: no such file") from error
    except (zipfile.BadZipFile, EOFError, RuntimeError, ValueError, struct.error) as error:
        # Beside BadZipFile: what zipfile makes of a directory that names unknown versions, passwords or encodings.
        raise ArtefactError(f"{path}: truncated, damaged or not a reference ({error})") from error
    except OSError as error:
        raise ArtefactError(f"{path}: cannot be read: {error}") from error
    return header, arrays


def placed(place: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays under a place in the file; `under` takes them out again."""
    return {f"{place}/{name}": array for name, array in arrays.items()}


def under(arrays: Mapping[str, Array], place: str) -> dict[str, Array]:
    """The arrays under a place in the file, by their names there."""
    return {name[len(place) + 1 :]: array for name, array in arrays.items() if name.startswith(f"{place}/")}


def _checked_header(path: str | os.PathLike[str], archive: zipfile.ZipFile) -> dict[str, Any]:
    try:
        header = json.loads(archive.read(HEADER))
    except (KeyError, ValueError, RecursionError) as error:
        raise ArtefactError(f"{path}: not a reference: no readable {HEADER}") from error
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise ArtefactError(f"{path}: not a reference: {HEADER} does not say that it is a {KIND}")
    made_by = header.get("format")
    if not isinstance(made_by, int) or made_by < 1:
        raise ArtefactError(f"{path}: the format number is {made_by!r}; want a whole number from 1")
    if made_by > FORMAT:
        raise ArtefactError(
            f"{path}: format {made_by}, made by shiftwatch {header.get('software', '?')}; "
            f"this version reads up to {FORMAT}: upgrade shiftwatch, or build the reference again"
        )
    claimed = header.pop("sha256", None)
    if claimed != _sha256(_canonical(header)):
        raise ArtefactError(f"{path}: {HEADER} was changed after the reference was built (its hash does not match)")
    return header


def _member(path: str | os.PathLike[str], archive: zipfile.ZipFile, header: dict[str, Any], name: str) -> Array:
    try:
        content = archive.read(name)
    except KeyError as error:
        raise ArtefactError(f"{path}: {name} is missing") from error
    if _sha256(content) != header["members"][name]:
        raise ArtefactError(f"{path}: {name} was changed after the reference was built (its hash does not match)")
    buffer = io.BytesIO(content)
    try:
        if np.lib.format.read_magic(buffer) != (1, 0):
            raise ArtefactError(f"{path}: {name} is not version 1.0 of the npy format")
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(buffer)
        if fortran or dtype.hasobject:
            raise ArtefactError(
                f"{path}: {name} holds {dtype} (Fortran order: {fortran}); want plain C-ordered numbers"
            )
        return np.frombuffer(content, dtype=dtype, offset=buffer.tell()).reshape(shape)
    except ValueError as error:
        raise ArtefactError(f"{path}: {name} is not a readable array: {error}") from error


def _npy(array: Array) -> bytes:
    buffer = io.BytesIO()
    plain = np.ascontiguousarray(array).reshape(np.shape(array))
    np.lib.format.write_array(buffer, plain.astype(plain.dtype.newbyteorder("<")), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def _canonical(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

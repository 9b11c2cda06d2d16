"""A reference file that is not what was written is refused by name."""

import contextlib
import hashlib
import io
import itertools
import json
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.errors import ArtefactError
from monitor.reference import artefact
from monitor.reference.classifier import Reference
from tests.reference.worlds import world


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("ref") / "x.ref"
    Reference.fit(*world(60)).save(path)
    return path


def rewritten(file, tmp_path, change):
    """The same zip with its members changed, and the header's own hash made right again."""
    path = tmp_path / "changed.ref"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(path, "w") as new:
        members = {name: old.read(name) for name in old.namelist()}
        header = json.loads(members["header.json"])
        change(header, members)
        header.pop("sha256")
        header["sha256"] = sha256(json.dumps(header, sort_keys=True, separators=(",", ":")).encode())
        members["header.json"] = json.dumps(header).encode()
        for name, content in members.items():
            new.writestr(name, content)
    return path


def test_a_truncated_file_is_refused(file, tmp_path):
    content = file.read_bytes()
    for size in (0, 10, len(content) // 2, len(content) - 1):
        path = tmp_path / "short.ref"
        path.write_bytes(content[:size])
        with pytest.raises(ArtefactError, match=r"short\.ref: .*(truncated|damaged)"):
            Reference.load(path)


@given(place=st.floats(0, 0.999), bit=st.integers(0, 7))
@settings(max_examples=60, deadline=None)
def test_any_flipped_bit_is_refused_or_changes_nothing(file, tmp_path_factory, place, bit):
    content = bytearray(file.read_bytes())
    content[int(place * len(content))] ^= 1 << bit
    path = tmp_path_factory.mktemp("flip") / "x.ref"
    path.write_bytes(content)
    with contextlib.suppress(ArtefactError):
        # What loads nevertheless had a bit flipped in the zip's own bookkeeping, which nobody reads.
        assert Reference.load(path).sealed().version == Reference.load(file).version


def test_any_damage_to_the_directory_of_the_file_is_refused_or_changes_nothing(file, tmp_path):
    content = file.read_bytes()
    start = content.index(b"PK\x01\x02")
    version = Reference.load(file).version
    for place, change in itertools.product(range(start, start + 46), (0x08, 0x41, 0xFF)):
        damaged = bytearray(content)
        damaged[place] ^= change
        path = tmp_path / "x.ref"
        path.write_bytes(damaged)
        with contextlib.suppress(ArtefactError):
            assert Reference.load(path).version == version


def test_a_changed_array_is_refused(file, tmp_path):
    def change(_header, members):
        members["class_counts.npy"] = members["class_counts.npy"][:-8] + np.float64(7).tobytes()

    with pytest.raises(ArtefactError, match=r"class_counts\.npy was changed"):
        Reference.load(rewritten(file, tmp_path, change))


def test_a_changed_header_is_refused(file, tmp_path):
    path = tmp_path / "x.ref"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b'"estimator": "em-debiased"', b'"estimator": "cc"'))
    with pytest.raises(ArtefactError, match=r"header\.json was changed"):
        Reference.load(path)


def test_a_missing_member_is_named(file, tmp_path):
    with pytest.raises(ArtefactError, match=r"class_counts\.npy is missing"):
        Reference.load(rewritten(file, tmp_path, lambda _header, members: members.pop("class_counts.npy")))


def test_a_newer_format_says_who_made_it_and_what_to_do(file, tmp_path):
    def change(header, _members):
        header |= {"format": artefact.FORMAT + 1, "software": "9.9"}

    with pytest.raises(ArtefactError, match=r"format 2, made by shiftwatch 9\.9; .*upgrade"):
        Reference.load(rewritten(file, tmp_path, change))


def test_a_pickled_array_is_not_even_looked_at(file, tmp_path):
    def change(header, members):
        buffer = io.BytesIO()
        np.save(buffer, np.array([{"evil": 1}], dtype=object), allow_pickle=True)
        members["class_counts.npy"] = buffer.getvalue()
        header["members"]["class_counts.npy"] = sha256(buffer.getvalue())

    with pytest.raises(ArtefactError, match="holds object"):
        Reference.load(rewritten(file, tmp_path, change))


def test_a_header_that_lacks_a_field_is_refused(file, tmp_path):
    with pytest.raises(ArtefactError, match="lacks or misstates 'classes'"):
        Reference.load(rewritten(file, tmp_path, lambda header, _members: header.pop("classes")))


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04"])
def test_some_other_file_is_refused(tmp_path, content):
    path = tmp_path / "other.ref"
    path.write_bytes(content)
    with pytest.raises(ArtefactError, match="truncated, damaged or not a reference"):
        Reference.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ArtefactError, match="no such file"):
        Reference.load(tmp_path / "nowhere.ref")


def test_anybody_can_read_the_arrays_with_numpy_alone(file):
    with np.load(file, allow_pickle=False) as arrays:
        assert arrays["class_counts"].sum() == 60


def test_a_failed_save_leaves_the_old_file(file, tmp_path):
    reference = Reference.load(file)
    reference.save(tmp_path / "x.ref")
    with pytest.raises(ArtefactError, match="cannot be written"):
        reference.save(tmp_path / "nowhere" / "x.ref")
    assert [path.name for path in tmp_path.iterdir()] == ["x.ref"]

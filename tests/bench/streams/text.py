"""Any table of delimited text as names and rows of fields: what separates them, and whether the first row is a header.

Nothing about a file is taken for granted: encodings, comment lines, ragged rows and columns of the same name have all
been seen. What was done to a file is said in remarks.
"""

import csv
import gzip
import io
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DELIMITERS = (",", ";", "\t", "|")
MISSING = frozenset({"", "?", "-", "na", "n/a", "nan", "null", "none", "#n/a", "missing", "nil", "."})
PROBED = 200
"""Rows that decide about delimiter and header."""
FIELD = 1_000_000
"""The longest field, in characters."""
ODD = 0.02
"""A file with a larger share of characters that cannot be printed is no text."""
COMMENT = re.compile(r"\s*([#%@]|sep=)")
GROUPED = re.compile(r"[-+]?\d{1,3}(,\d{3})+\.\d+|[-+]?\d{1,3}(,\d{3}){2,}|[-+]?\d{1,3}(\.\d{3})+,\d+")
"""A number in groups of three: 1,234.5 or 1,234,567 or 1.234,5; but 1,234 is taken for 1.234."""
UNITS = "$€£¥% "
NUMERIC = 0.95
"""A column with so large a share of numbers has a name that is none."""


class UnusableError(Exception):
    """A file from which no stream can be made, and why."""


@dataclass(frozen=True, slots=True)
class Text:
    """A table of text; its rows can be gone through as often as one likes."""

    content: str
    delimiter: str | None
    """None: white space."""
    skipped: int
    """Lines before the first row: comments, and the header."""
    names: tuple[str, ...]

    def rows(self) -> Iterator[list[str]]:
        """All rows as they stand, ragged ones too."""
        return _rows(self.content, self.delimiter, self.skipped)


def read_text(path: Path) -> Text:
    """The table of a file, plain or compressed by gzip."""
    if not path.is_file():
        raise UnusableError(f"{path}: no such file")
    content = _decoded(_unpacked(path))
    odd = sum(not (c.isprintable() or c.isspace()) for c in content[:FIELD])
    if odd > ODD * min(len(content), FIELD):
        raise UnusableError(f"{path}: want a table of text, got something else")
    comments = _comments(content)
    delimiter = _delimiter(content, comments)
    first: list[list[str]] = []
    for row in _rows(content, delimiter, comments):
        first.append(row)
        if len(first) > PROBED:
            break
    if not first:
        raise UnusableError(f"{path}: the file holds no rows")
    width = Counter(map(len, first)).most_common(1)[0][0]
    header = len(first[0]) == width and _is_header(first[0], [row for row in first[1:] if len(row) == width])
    names = distinct_names(first[0]) if header else tuple(f"x{j}" for j in range(width))
    return Text(content, delimiter, comments + header, names)


def is_missing(text: str) -> bool:
    """Whether a field says that there is no value."""
    return text.strip().lower() in MISSING


def number(text: str) -> float | None:
    """A field as a number, with a unit of money or percent or without; a comma may stand for the point.

    None where it is none.
    """
    try:
        return float(text)
    except ValueError:
        pass
    bare = text.strip(UNITS)
    if GROUPED.fullmatch(bare):
        point = max(bare.rfind("."), bare.rfind(",")) if "." in bare else len(bare)
        bare = re.sub("[.,]", "", bare[:point]) + "." + bare[point + 1 :]
    try:
        return float(bare.replace(",", ".")) if bare.count(",") <= 1 else None
    except ValueError:
        return None


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """Each name once and printable; what has none, or another's, is known by its position as well."""
    found = list[str]()
    for j, name in enumerate(names):
        told = "".join(c for c in name if c.isprintable() and c not in '"\\').strip() or f"x{j}"
        while told in found:
            told = f"{told} ({j})"
        found.append(told)
    return tuple(found)


def _unpacked(path: Path) -> bytes:
    """The bytes of a file, or of what is packed in it: known by how it begins, whatever it is called."""
    content = path.read_bytes()
    try:
        if content.startswith(b"\x1f\x8b"):
            return gzip.decompress(content)
        if content.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
                if len(names) == 1:
                    return archive.read(names[0])
            raise UnusableError(f"{path}: want a table of text, got an archive of {len(names)} files")
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
        raise UnusableError(f"{path}: packed, and broken ({error})") from error
    return content


def _decoded(content: bytes) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", errors="replace")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")


def _comments(content: str) -> int:
    """Lines at the head of the file that are comments or empty."""
    number = 0
    for line in io.StringIO(content):
        if line.strip() and not COMMENT.match(line):
            break
        number += 1
    return number


def _rows(content: str, delimiter: str | None, skipped: int) -> Iterator[list[str]]:
    """Fields without the white space around them; empty lines are no rows."""
    lines = io.StringIO(content)
    for _ in range(skipped):
        lines.readline()
    if delimiter is None:
        yield from (line.split() for line in lines if line.strip())
        return
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    while True:
        usual = csv.field_size_limit(FIELD)  # it holds for the whole process
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            continue
        finally:
            csv.field_size_limit(usual)
        if any(field.strip() for field in row):
            yield [field.strip() for field in row]


def _delimiter(content: str, comments: int) -> str | None:
    """The one that cuts most of the first rows into the same number of fields, the most fields first."""
    best: tuple[float, int] = (0.0, 1)
    found: str | None = ","
    for delimiter in (*DELIMITERS, None):
        widths = Counter[int]()
        for row, _ in zip(_rows(content, delimiter, comments), range(PROBED), strict=False):
            widths[len(row)] += 1
        if not widths:
            continue
        width, times = widths.most_common(1)[0]
        score = (round(times / widths.total(), 1) if width > 1 else 0.0, width if delimiter is not None else 1)
        if score > best:
            best, found = score, delimiter
    return found


def _is_header(first: list[str], others: list[list[str]]) -> bool:
    """Whether names stand in the first row: above a column of numbers one that is none, or none that is a value.

    Names that are numbers count the columns, from 0 or 1.
    """
    numbers = [name for name in first if number(name) is not None]
    counted = len(numbers) > 2 and any(numbers == [str(j + k) for j in range(len(numbers))] for k in (0, 1))
    if not others or is_missing("".join(first)):
        return False
    columns = list(zip(*others, strict=True))
    for name, column in zip(first, columns, strict=True):
        present = [text for text in column if not is_missing(text)]
        numeric = sum(number(text) is not None for text in present)
        if not is_missing(name) and number(name) is None and present and numeric >= NUMERIC * len(present):
            return True
    words = [(name, column) for name, column in zip(first, columns, strict=True) if number(name) is None]
    return (counted or not numbers) and not any(name in column for name, column in words)

"""What an installed package consists of, held against the lock file, with its licences and the faults that are known.

    python .ci/contents.py FOLDER FAULTS

FOLDER has the bill of materials and the licences, FAULTS is what pip-audit wrote. Ends with 1 where the bill is another
one than the lock file's, a licence is not known, or a package has a known fault.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

OWN = {"shiftwatch", "pip", "setuptools"}
"""What an environment has beside what is locked."""


def locked(path: Path) -> set[str]:
    """What is to be installed on this system, as NAME==VERSION."""
    lines = path.read_text(encoding="utf-8").splitlines()
    wanted = [Requirement(line.rstrip(" \\")) for line in lines if line[:1].isalnum()]
    return {
        f"{canonicalize_name(one.name)}{one.specifier}" for one in wanted if one.marker is None or one.marker.evaluate()
    }


def problems(folder: Path, faults: Path) -> list[str]:
    """In words; says on standard output what there is."""
    bill = json.loads((folder / "shiftwatch.cdx.json").read_text(encoding="utf-8"))
    parts = {canonicalize_name(one["name"]): one["version"] for one in bill["components"] if one["name"] not in OWN}
    want, have = locked(Path("deploy/locks/run.txt")), {f"{name}=={version}" for name, version in parts.items()}
    found = [f"not what is locked: {name}" for name in sorted(want ^ have)]

    rows = (folder / "licences.md").read_text(encoding="utf-8").splitlines()[2:]
    licences = {cells[1].strip(): cells[3].strip() for cells in (row.split("|") for row in rows)}
    found += [f"no licence is known of {name}" for name, licence in licences.items() if licence == "UNKNOWN"]
    print(f"{len(have)} packages beside our own; licences:")
    for licence, times in Counter(licences.values()).most_common():
        print(f"  {times:3} {licence}")

    asked = json.loads(faults.read_text(encoding="utf-8"))["dependencies"] if faults.exists() else []
    known = [one for one in asked if "vulns" in one]
    found += [f"{one['name']} {one['version']}: {fault['id']}" for one in known for fault in one["vulns"]]
    print(f"known faults: asked of {len(known)} of {len(have)} packages; of others there is no data here")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]), Path(sys.argv[2]))
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(bool(wrong))

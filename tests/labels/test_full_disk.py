"""A label store that cannot grow any more, in a process of its own whose files have a limit."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import resource, sys
import numpy as np
from pathlib import Path
from monitor.labels import Arrived
from monitor.labels.store import LabelStore

store = LabelStore(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    for number in range(100):
        here = np.arange(1_000) + 1_000 * number
        ids = [f"tx-{each}" for each in here]
        store.arrived("s", "p", Arrived(offsets=here, ids=ids, values=here * 1.0, times=here, marks=here))
        store.flush()
finally:
    store.close()
"""


def test_a_store_that_cannot_grow_says_so_and_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "labels.sqlite"
    done = subprocess.run([sys.executable, "-c", PROGRAM, path], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert f"{path}: the store of late labels: the disk is full" in last
    assert "Make room there" in last
    assert "no transaction is active" not in done.stderr

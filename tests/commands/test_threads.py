"""A command works on one thread, unless somebody says otherwise."""

import os
import subprocess
import sys

import pytest

CODE = """
from monitor.commands.cli import main
main(["estimators"])
from threadpoolctl import threadpool_info
print("threads", *sorted({pool["num_threads"] for pool in threadpool_info()}))
"""


@pytest.mark.parametrize(("said", "threads"), [({}, "1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2")])
def test_matrices_are_worked_on_by_as_many_threads_as_were_asked_for(said: dict[str, str], threads: str) -> None:
    others = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", CODE], env=others | said, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == f"threads {threads}"

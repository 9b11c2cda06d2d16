"""Runs one of the monitors where it is installed: `PYTHON run_one.py MODULE HOLD_OUT.csv EVENTS.csv`; prints JSON.

Knows nothing of this repository, which is not installed there.
"""

import contextlib
import importlib
import io
import json
import logging
import sys
import time
import warnings
from pathlib import Path


def main(module: str, hold_out: str, events: str) -> None:
    """What is said of each window, and how long that takes, the import of the library included."""
    warnings.simplefilter("ignore")
    logging.disable()
    import pandas as pd  # noqa: PLC0415 - not before its time is taken by whoever imports it

    sys.path.insert(0, str(Path(__file__).parent))
    monitor = importlib.import_module(module)
    tables = [pd.read_csv(path) for path in (hold_out, events)]
    inputs = [name for name in tables[1].columns if name not in ("legit", "fraud")]
    started = time.process_time()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        answers = monitor.watch(*tables, inputs)
        said = [next(answers)]
        first = time.process_time() - started
        said += answers
        seconds = time.process_time() - started
        told = [monitor.told(answer) for answer in said]
    print(json.dumps({"told": told, "first": first, "seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])

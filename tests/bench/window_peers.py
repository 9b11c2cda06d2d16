"""Times one peer on the same two tables, in an environment of its own: `PYTHON window_peers.py PEER DATA.npz`.

Knows nothing of Shiftwatch, which need not be installed there. Prints the least CPU milliseconds of several windows
and the peer's version, as JSON. What a peer can do once for many windows is not timed.
"""

import contextlib
import io
import json
import logging
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

TIMES = 5


def evidently(reference: Any, window: Any) -> Callable[[], object]:
    """Its drift report, with KS for every column."""
    from evidently import Report  # noqa: PLC0415 - only one of the peers is installed
    from evidently.presets import DataDriftPreset  # noqa: PLC0415

    import pandas as pd  # noqa: PLC0415 # isort: skip

    old, new = (pd.DataFrame(x, columns=[f"x{j}" for j in range(x.shape[1])]) for x in (reference, window))
    return lambda: Report([DataDriftPreset(num_method="ks")]).run(new, old).dict()


def nannyml(reference: Any, window: Any) -> Callable[[], object]:
    """Its univariate calculator, with KS for every column."""
    import nannyml  # noqa: PLC0415
    import pandas as pd  # noqa: PLC0415

    names = [f"x{j}" for j in range(window.shape[1])]
    old, new = (pd.DataFrame(x, columns=names) for x in (reference, window))
    calculator = nannyml.UnivariateDriftCalculator(
        column_names=names, continuous_methods=["kolmogorov_smirnov"], chunk_size=len(window)
    ).fit(old)
    return lambda: calculator.calculate(new)


def alibi_detect(reference: Any, window: Any) -> Callable[[], object]:
    """Its KS detector."""
    from alibi_detect.cd import KSDrift  # noqa: PLC0415

    detector = KSDrift(reference, p_val=0.05)
    return lambda: detector.predict(window)


PEERS = {"evidently": evidently, "nannyml": nannyml, "alibi-detect": alibi_detect}


def main(peer: str, data: str) -> None:
    """Time it."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    tables = np.load(data)
    least = np.inf
    with contextlib.redirect_stdout(io.StringIO()):
        work = PEERS[peer](tables["reference"], tables["window"])
        work()
        for _ in range(TIMES):
            begun = time.process_time()
            work()
            least = min(least, time.process_time() - begun)
    print(json.dumps({"version": version(peer), "ms": least * 1e3}))


if __name__ == "__main__":
    main(*sys.argv[1:])

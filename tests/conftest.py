"""One thread for each process of the tests and for those they start: they run side by side, and cores are few."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before numpy is imported, which reads it once

from hypothesis import settings  # noqa: E402 - it may import numpy

# How long an example takes depends on what else runs beside it; what the suite takes in all is looked at instead.
# In CI the examples are the same in every run: a change is not refused by another one's luck.
settings.register_profile("shiftwatch", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("shiftwatch")

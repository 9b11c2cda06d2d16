"""One thread for each process of the tests and for those they start: they run side by side, and cores are few."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before numpy is imported, which reads it once

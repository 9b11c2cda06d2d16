"""How the process keeps its memory: one setting, for processes that decode batch after batch."""

import numpy as np

# The largest block that glibc may move its thresholds for is 32 MiB.
_LARGEST = 31 << 20


def keep_freed_memory() -> None:
    """Have the C library reuse freed arrays instead of handing them back to the system and asking again.

    glibc takes the size of the largest block that was ever freed as the sign of what to keep (mallopt(3),
    M_MMAP_THRESHOLD): one block is enough. Without it a fifth of the time of decoding goes into page faults. It keeps
    at most twice that block, and does nothing where the C library is another.
    """
    block = np.empty(_LARGEST, dtype=np.uint8)
    del block

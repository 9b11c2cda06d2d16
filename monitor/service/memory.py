"""How the process keeps its memory: settings for processes that decode batch after batch."""

import gc

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


def collect_garbage_rarely() -> None:
    """Have the cycle collector leave alone what start-up made, and look at the rest a hundred times less often.

    A client library makes an object per record, and none of them is part of a cycle: by default the collector walks
    through them after every 700. A tenth of the time of reading a topic goes into that.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(70_000, 10, 10)

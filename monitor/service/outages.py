"""Going on through outages: whatever happens on the other side of a source or a sink, and for however long.

What was under way is dropped, as by a kill, and read again with fresh connections once the other side answers. A
refused password, a missing permission or a topic that is not there is no outage: those end the process at once.
"""

import time
from collections.abc import Callable

from monitor.errors import OutageError
from monitor.limits import OUTAGE_PAUSES, OUTAGE_TOLD_EVERY
from monitor.service.notices import Interrupted

_LOOK_SECONDS = 0.1
"""How often a pause looks whether to stop."""


def through_outages(
    attempt: Callable[[], None],
    stop: Callable[[], bool],
    tell: Callable[[Interrupted], None],
    elapsed: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Make attempts until one comes to its end, or a stop is asked for; tell of an outage once in a while."""
    shortest, longest = OUTAGE_PAUSES
    pause, last_told = shortest / 2, float("-inf")
    while not stop():
        began = elapsed()
        try:
            attempt()
        except OutageError as error:
            now = elapsed()
            pause = shortest if now - began > OUTAGE_TOLD_EVERY else min(2 * pause, longest)
            if now - last_told >= OUTAGE_TOLD_EVERY:
                last_told = now
                tell(Interrupted(str(error)))
            while elapsed() - now < pause and not stop():
                sleep(_LOOK_SECONDS)
        else:
            return

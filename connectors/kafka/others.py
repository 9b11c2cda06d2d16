"""What the other members of the group get: when they are asked, and whether our windows have to wait for the answer."""

import logging
import time
from collections.abc import Callable, Collection

from connectors.kafka.driver import Partition, Reader
from connectors.kafka.progress import Span
from connectors.kafka.settings import SourceSettings
from connectors.kafka.sharing import Sharing
from monitor.errors import ConnectorError

log = logging.getLogger(__name__)

# How often what other members have noted is looked at, which takes a request for each of their partitions; and how
# often at most while windows wait for the answer.
_COMPARE_SECONDS = 10.0
_COMPARE_SOON = 1.0
# How often it is asked whether the topics have more partitions than before.
_COUNT_SECONDS = 60.0


class Others:
    """Whoever has those partitions that are not ours; each question says which are."""

    def __init__(self, settings: SourceSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self.sharing = Sharing(settings.session_timeout / 1e6)
        self.everything: frozenset[Partition] = frozenset()
        """All partitions of the topics."""
        self._asked: float | None = None
        """Since when windows wait for it to be known what others get."""
        self._counted = float("-inf")

    def count(self, reader: Reader) -> None:
        """Ask how many partitions the topics have."""
        self.everything = frozenset(
            Partition(topic, each) for topic in self._settings.topics for each in reader.partitions(topic)
        )

    def none(self, ours: Collection[Partition]) -> bool:
        """Whether there are no others: every partition is ours."""
        return self.everything <= frozenset(ours)

    def known(self, reader: Reader, ours: Collection[Partition]) -> bool:
        """Whether it is known what others get, by a look since windows have begun to wait for it: what it was when
        their events were still to come says nothing of them."""
        if self.none(ours):
            return True
        now = self._clock()
        if self._asked is None:
            self._asked = now
        if self.sharing.looked < self._asked or not self.sharing.known(now):
            self._look(reader, ours, _COMPARE_SOON)
        known = self.sharing.looked >= self._asked and self.sharing.known(now)
        if known:
            self._asked = None
        return known

    def spread(self, ours: Collection[Partition]) -> frozenset[str]:
        """Streams of which both we and others get events just now."""
        return frozenset() if self.none(ours) else self.sharing.spread(self._clock())

    def elsewhere(self, ours: Collection[Partition], stream: str, span: Span) -> bool:
        """Whether others get events of a stream from this time."""
        return not self.none(ours) and self.sharing.elsewhere(stream, span, self._clock())

    def look(self, reader: Reader, ours: Collection[Partition]) -> None:
        """See what others have noted of the streams that they get, once in a while."""
        self._look(reader, ours, _COMPARE_SECONDS if self.sharing.known(self._clock()) else _COMPARE_SOON)

    def shared_out_anew(self, ours: Collection[Partition]) -> None:
        """Others have other partitions than before, and the topics may have more of them."""
        self.everything |= frozenset(ours)
        self.sharing.assigned(self._clock())
        self._counted = float("-inf")

    def _look(self, reader: Reader, ours: Collection[Partition], after: float) -> None:
        """An answer that does not come does no harm: what is not known stays so."""
        now = self._clock()
        if now - self.sharing.looked < after:
            return
        try:
            if now - self._counted > _COUNT_SECONDS:
                self._counted = now
                self.count(reader)
            self.sharing.look(reader, self.everything - frozenset(ours), now)
        except ConnectorError as error:
            log.debug("cannot see what other members get: %s", error)

"""A Kafka topic as a Source: which partitions are ours, where each begins, and what may be handed on.

That nobody else has owned a partition in between is proven by what is committed, not by callbacks: whenever the group
has a new generation, every partition that we seem to have kept is compared with the group's commit. If that reads as
we left it, our open windows stand; otherwise the partition begins again. So no unnoticed rebalance can do harm.
"""

import logging
import os
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from connectors.formats import Translator
from connectors.kafka.beginnings import Beginnings
from connectors.kafka.driver import CommittedOffset, Fetched, Partition, PositionLostError, Reader
from connectors.kafka.others import Others
from connectors.kafka.progress import Notes, Span, hashed
from connectors.kafka.settings import SourceSettings
from connectors.kafka.statistics import PartitionStatistics, SourceStatistics
from connectors.kafka.watchdog import Guard, Stalls
from monitor.errors import ConnectorError, OutageError
from monitor.ports import Checkpoint, PartitionReport, Progress, RawBatch, Reassignment, Report
from monitor.ports.certificates import CertificatesOnDisk
from monitor.ports.options import duration_text

log = logging.getLogger(__name__)

# A poll returns within its timeout, or it hangs for ever; only a rebalance may hold it for a while.
_HUNG_AFTER = 120.0


class KafkaSource:
    """A `Source` over some topics: over all their partitions, or over a group member's share."""

    def __init__(
        self,
        settings: SourceSettings,
        connect: Callable[[SourceSettings], Reader],
        guard: Guard,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._connect = connect
        self._guard = guard
        self._clock = clock
        self._stalls = Stalls(settings.stall_timeout / 1e6)
        self._next: dict[Partition, int] = {}
        """The partitions that the service knows of, and the next record that it wants from each."""
        self._beginnings = Beginnings(settings)
        self._others = Others(settings, clock)
        self._doubtful: frozenset[Partition] = frozenset()
        self._held: frozenset[Partition] = frozenset()
        self._membership: object | None = None
        self._member_since = self._watched = clock()
        self._statistics = SourceStatistics(last_poll=clock())
        self._certificates = CertificatesOnDisk(*settings.certificates)
        self._translator = None if settings.format is None else Translator(settings.format)

    @cached_property
    def _reader(self) -> Reader:
        return self._connect(self.settings)

    def start(self, checkpoint: Checkpoint | None) -> Collection[str]:
        """Join the group, or take all partitions; either way `reassigned` announces them."""
        self._beginnings.checkpoint = checkpoint
        self._others.count(self._reader)
        self._member_since = self._clock()
        if self.settings.joins:
            self._reader.subscribe(self.settings.topics)
        else:
            self._reader.assign(self._pinned() if self.settings.partitions else self._others.everything)
        return ()

    def reassigned(self, settle: Callable[[], None]) -> Reassignment | None:
        if not self._reader.changed() and not self._doubtful:
            return None
        # In the old generation: it succeeds as long as nobody else can have begun to read our partitions.
        settle()
        changes = self._reader.changes()
        before = frozenset(self._next)
        ours, gone = set(before), set(self._doubtful)
        for change in changes:
            self._count(change.kind, len(change.partitions))
            if change.kind == "assigned":
                ours |= change.partitions
            else:
                ours -= change.partitions
                gone |= change.partitions & before
        gone |= self._beginnings.moved(self._reader, (ours & before) - gone)
        self._next = {partition: self._next[partition] for partition in before - gone}
        for partition in gone:
            self._others.sharing.forget(partition)
            self._beginnings.forget(partition)
        # What was fetched while the change was pending was dropped: the partitions that stay read it again.
        self._reader.seek(self._next)
        came = self._begin(ours - (before - gone))
        self._others.shared_out_anew(self._next)
        self._doubtful = frozenset()
        self._membership = self._reader.membership() if self.settings.joins else self._reader.outsider()
        log.debug("partitions gone: %s; came: %s", sorted(p.name for p in gone), sorted(came))
        if self.settings.joins and not self._next:
            log.warning("this member of group %s has no partitions: are there more members?", self.settings.group)
        return Reassignment(gone=frozenset(partition.name for partition in gone), came=came)

    def poll(self, timeout: float, held: Collection[str] = ()) -> Sequence[RawBatch]:
        self._hold(frozenset(partition for partition in self._next if partition.name in held))
        with self._guard.limit("a poll of Kafka", timeout + _HUNG_AFTER):
            fetched = self._fetch(timeout)
        now = self._clock()
        self._statistics = replace(self._statistics, polls=self._statistics.polls + 1, last_poll=now)
        if self.settings.joins:
            self._check_membership(now)
        self._watch(now)
        if self._reader.changed() or self._doubtful:
            return ()
        if self.settings.group is not None and not self._joining:
            self._others.look(self._reader, self._next)
        gone = self._beginnings.gone(self._next)
        return [*gone, *(batch for each in fetched if (batch := self._wanted(each)) is not None)]

    def partitions(self) -> Sequence[str]:
        return [partition.name for partition in sorted(self._next)]

    def waiting(self, partition: str) -> bool:
        """Unknown counts as waiting: only a partition that is known to be empty may be set aside."""
        known = self.by_name().get(partition)
        if known is None:
            return False
        position, end = self._reader.position(known), self._reader.highwater(known)
        return position is None or end is None or position < end

    @property
    def finished(self) -> bool:
        return False

    def close(self) -> None:
        if "_reader" in self.__dict__:
            self._reader.close()
        self._guard.close()

    @property
    def member(self) -> str:
        """The name of a static member; of any other, its process."""
        return self.settings.instance or f"{socket.gethostname()}/{os.getpid()}"

    def saw(self, partition: str, streams: Mapping[str, tuple[int, int]]) -> None:
        """The service says which streams a batch held: a stream should not come to several members."""
        known = self.by_name().get(partition)
        if known is not None:
            spans = {stream: _seconds(*times) for stream, times in streams.items()}
            self._others.sharing.saw(known, spans, self._clock())

    def brings(self, streams: Collection[str]) -> Collection[str]:
        """The streams that our partitions have brought, here or before they came to us."""
        noted = frozenset[int]().union(*(self.notes(partition).streams for partition in self._next))
        return [stream for stream in streams if hashed(stream) in noted]

    def notes(self, partition: Partition) -> Notes:
        """What is to be noted beside the commit of a partition of ours."""
        read = max(self._next.get(partition, -1), self._reader.position(partition) or -1)
        return self._others.sharing.notes(partition, read)

    @property
    def known(self) -> bool:
        """Whether it is known what other members get."""
        return not self._joining and self._others.known(self._reader, self._next)

    @property
    def spread(self) -> frozenset[str]:
        """Streams of which both we and others get events just now."""
        return self._others.spread(self._next)

    def elsewhere(self, stream: str, start: int, end: int) -> bool:
        """Whether others get events of a stream from this time."""
        return self._others.elsewhere(self._next, stream, _seconds(start, end - 1))

    @property
    def membership(self) -> object | None:
        """Proof of the generation in which our partitions were last known to be ours; None while in doubt."""
        return self._membership

    def commit(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        """Commit to the group without a transaction."""
        self._reader.commit(offsets)

    def committed(self, offsets: Mapping[Partition, CommittedOffset]) -> None:
        """The sink says: this is what the group's commit says now."""
        self._beginnings.committed(offsets)

    def refused(self) -> None:
        """The sink says: a commit was refused. Everything begins again where the group's commit says."""
        self._doubtful = frozenset(self._next)
        self._membership = None
        self._statistics = replace(self._statistics, restarted=self._statistics.restarted + 1)

    def by_name(self) -> Mapping[str, Partition]:
        """The partitions that the service knows of, by name."""
        return {partition.name: partition for partition in self._next}

    @property
    def statistics(self) -> SourceStatistics:
        """A snapshot, for metrics."""
        partitions = {
            partition: self._partition_statistics(partition, at) for partition, at in sorted(self._next.items())
        }
        return replace(
            self._statistics,
            partitions=partitions,
            skipped=self._beginnings.skipped,
            alone=self._others.none(self._next),
        )

    def report(self) -> Report:
        """The same for whoever knows nothing about Kafka."""
        now = self.statistics
        return Report(
            partitions=tuple(
                PartitionReport(partition.name, partition.topic, figures.position, figures.lag, figures.commit_lag)
                for partition, figures in now.partitions.items()
            ),
            rebalances=now.rebalances,
            lost=now.lost,
            skipped=now.skipped,
            spread=tuple(sorted(self.spread)),
            fetch_errors=self._reader.errors,
            unassigned=self._unassigned(),
            stalled=self._stalls.longest(self._lagging(), self._clock()),
            certificate_expires=self._certificates.expires(),
        )

    def _unassigned(self) -> float:
        settled = not self.settings.joins or self._reader.membership() is not None
        return 0.0 if settled else self._clock() - self._member_since

    def _lagging(self) -> dict[Partition, int]:
        """Where reading stands in the partitions in which records are known to wait."""
        ends = {partition: self._reader.highwater(partition) for partition in self._next if partition not in self._held}
        at = {partition: self._reader.position(partition) for partition in ends}
        return {
            partition: position
            for partition, end in ends.items()
            if end is not None and (position := at[partition]) is not None and position < end
        }

    def _partition_statistics(self, partition: Partition, position: int) -> PartitionStatistics:
        committed = self._beginnings.commit_of(partition)
        return PartitionStatistics(
            position=self._reader.position(partition) or position,
            committed=None if committed is None else committed.offset,
            end=self._reader.highwater(partition),
            held=partition in self._held,
        )

    @property
    def _joining(self) -> bool:
        """Whether it is being settled who has what: nobody is asked meanwhile, as the answers would not hold, and a
        loop that waits for them joins late."""
        return self.settings.joins and self._membership is None

    def _check_membership(self, now: float) -> None:
        """Without changes, a new generation still means that we may have been out of the group in between."""
        membership = self._reader.membership()
        if membership is None:
            if now - self._member_since > self.settings.assignment_timeout / 1e6:
                raise OutageError(
                    f"no member of group {self.settings.group} for {duration_text(self.settings.assignment_timeout)}:"
                    " the group does not come to rest, or its coordinator does not answer"
                )
            return
        self._member_since = now
        if membership != self._membership and not self._reader.changed() and not self._doubtful:
            self._doubtful = self._beginnings.moved(self._reader, frozenset(self._next))
            self._membership = None if self._doubtful else membership
            self._others.shared_out_anew(self._next)

    @property
    def handed_out(self) -> bool:
        """Whether other members have partitions, and may get ours."""
        return self.settings.joins and bool(self._next) and not self._others.none(self._next)

    def _pinned(self) -> frozenset[Partition]:
        """The partitions that the settings name; an error names those that are none."""
        named = {Partition(topic, each) for topic in self.settings.topics for each in self.settings.partitions}
        if strangers := named - self._others.everything:
            raise ConnectorError(
                f"`partitions` in [source]: there is no {', '.join(each.name for each in sorted(strangers))}"
            )
        return frozenset(named)

    def _begin(self, partitions: Collection[Partition]) -> dict[str, Progress]:
        """Where each partition goes on; reading is sent there."""
        progress = self._beginnings.progress(self._reader, partitions)
        for partition in progress:
            committed = self._beginnings.commit_of(partition)
            if committed is not None:
                self._others.sharing.begin(partition, committed.metadata)
        positions = self._beginnings.positions(self._reader, progress)
        self._reader.seek(positions)
        self._next |= positions
        return {partition.name: progress[partition] for partition in sorted(progress)}

    def _fetch(self, timeout: float) -> Sequence[Fetched]:
        try:
            return self._reader.poll(timeout)
        except PositionLostError as error:
            ours = {partition: at for partition, at in error.positions.items() if partition in self._next}
            positions = self._beginnings.overtaken(ours, self._reader.earliest(ours))
            self._reader.seek(positions)
            self._next |= positions
            return ()

    def _wanted(self, fetched: Fetched) -> RawBatch | None:
        """The records that the service has not had, of the partitions that it knows."""
        wanted = self._next.get(fetched.partition)
        if wanted is None or fetched.offsets[-1] < wanted:
            return None
        first = int(fetched.offsets.searchsorted(wanted))
        records = fetched.records[first:] if first else fetched.records
        translated = None
        if self._translator is not None:
            translated = self._translator.translated(records, fetched.headers()[first:])
        self._next[fetched.partition] = int(fetched.offsets[-1]) + 1
        self._statistics = replace(
            self._statistics,
            records=self._statistics.records + len(records),
        )
        return RawBatch(
            partition=fetched.partition.name,
            records=records,
            offsets=fetched.offsets[first:],
            next_offset=self._next[fetched.partition],
            timestamps=fetched.timestamps[first:],
            translated=translated,
        )

    def _hold(self, partitions: frozenset[Partition]) -> None:
        if partitions or self._held:
            self._reader.hold(partitions)
        self._held = partitions

    def _watch(self, now: float) -> None:
        """End the process when a partition that has records waiting brings none (see `Stalls`)."""
        if now - self._watched < self.settings.stall_timeout / 16e6:
            return
        self._watched = now
        positions = {
            partition: self._reader.position(partition) for partition in self._next if partition not in self._held
        }
        suspects = self._stalls.suspects(positions, now)
        try:
            ends = self._reader.latest(suspects) if suspects else {}
        except ConnectorError as error:
            log.warning("cannot ask how far partitions go: %s", error)
            ends = {}
        stalled = self._stalls.stalled({partition: ends.get(partition) for partition in suspects}, now)
        if stalled:
            raise OutageError(
                f"no record from {', '.join(partition.name for partition in sorted(stalled))} for"
                f" {duration_text(self.settings.stall_timeout)} although records wait there, or the brokers are silent"
            )

    def _count(self, kind: str, many: int) -> None:
        now = self._statistics
        self._statistics = replace(
            now,
            assigned=now.assigned + many * (kind == "assigned"),
            revoked=now.revoked + many * (kind == "revoked"),
            lost=now.lost + many * (kind == "lost"),
            rebalances=now.rebalances + (kind == "assigned" and self.settings.joins),
        )


def _seconds(oldest: int, newest: int) -> Span:
    return Span(oldest // 1_000_000, newest // 1_000_000)

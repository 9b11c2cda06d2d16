"""A Kafka topic as a Source: which partitions are ours, where each begins, and what may be handed on.

That nobody else has owned a partition in between is proven by what is committed, not by callbacks: whenever the group
has a new generation, every partition that we seem to have kept is compared with the group's commit. If that reads as
we left it, our open windows stand; otherwise the partition begins again. So no unnoticed rebalance can do harm.
"""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from connectors.kafka.driver import CommittedOffset, Fetched, Place, PositionLostError, Reader
from connectors.kafka.progress import from_metadata, shared_with
from connectors.kafka.settings import SourceSettings, start_time
from connectors.kafka.statistics import PlaceStatistics, SourceStatistics
from connectors.kafka.watchdog import Guard, Stalls
from monitor.errors import ConnectorError
from monitor.ports import Checkpoint, PartitionReport, Progress, RawBatch, Reassignment, Report
from monitor.ports.options import duration_text

log = logging.getLogger(__name__)

# How soon it shows that a stream is spread over members: a matter of minutes, for one request per foreign partition.
_COMPARE_SECONDS = 60.0
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
        self._next: dict[Place, int] = {}
        """The partitions that the service knows of, and the next record that it wants from each."""
        self._committed: dict[Place, CommittedOffset] = {}
        """What the group's commit says of each, as far as we know."""
        self._streams: dict[Place, set[str]] = {}
        """The streams that each has brought."""
        self._spread: frozenset[str] = frozenset()
        self._doubtful: frozenset[Place] = frozenset()
        self._held: frozenset[Place] = frozenset()
        self._everything: frozenset[Place] = frozenset()
        self._checkpoint: Checkpoint | None = None
        self._membership: object | None = None
        self._member_since = self._watched = self._compared = clock()
        self._statistics = SourceStatistics(last_poll=clock())

    @cached_property
    def _reader(self) -> Reader:
        return self._connect(self.settings)

    def start(self, checkpoint: Checkpoint | None) -> Collection[str]:
        """Join the group, or take all partitions; either way `reassigned` announces them."""
        self._checkpoint = checkpoint
        topics = self.settings.topics
        self._everything = frozenset(Place(topic, each) for topic in topics for each in self._reader.partitions(topic))
        self._member_since = self._clock()
        if self.settings.group is not None:
            self._reader.subscribe(topics)
        else:
            self._reader.assign(self._everything)
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
            self._count(change.kind, len(change.places))
            if change.kind == "assigned":
                ours |= change.places
            else:
                ours -= change.places
                gone |= change.places & before
        gone |= self._moved((ours & before) - gone)
        self._next = {place: self._next[place] for place in before - gone}
        self._streams = {place: streams for place, streams in self._streams.items() if place not in gone}
        # What was fetched while the change was pending was dropped: the partitions that stay read it again.
        self._reader.seek(self._next)
        came = self._begin(ours - (before - gone))
        self._doubtful = frozenset()
        self._membership = self._reader.membership()
        log.debug("partitions gone: %s; came: %s", sorted(p.name for p in gone), sorted(came))
        if self.settings.group is not None and not self._next:
            log.warning("this member of group %s has no partitions: are there more members?", self.settings.group)
        return Reassignment(gone=frozenset(place.name for place in gone), came=came)

    def poll(self, timeout: float, held: Collection[str] = ()) -> Sequence[RawBatch]:
        self._hold(frozenset(place for place in self._next if place.name in held))
        with self._guard.limit("a poll of Kafka", timeout + _HUNG_AFTER):
            fetched = self._fetch(timeout)
        now = self._clock()
        self._statistics = replace(self._statistics, polls=self._statistics.polls + 1, last_poll=now)
        if self.settings.group is not None:
            self._check_membership(now)
        self._watch(now)
        if now - self._compared > _COMPARE_SECONDS:
            self._compare_streams(now)
        if self._reader.changed() or self._doubtful:
            return ()
        return [batch for each in fetched if (batch := self._wanted(each)) is not None]

    def partitions(self) -> Sequence[str]:
        return [place.name for place in sorted(self._next)]

    def waiting(self, partition: str) -> bool:
        """Unknown counts as waiting: only a partition that is known to be empty may be set aside."""
        place = next((place for place in self._next if place.name == partition), None)
        if place is None:
            return False
        position, end = self._reader.position(place), self._reader.highwater(place)
        return position is None or end is None or position < end

    @property
    def finished(self) -> bool:
        return False

    def close(self) -> None:
        if "_reader" in self.__dict__:
            self._reader.close()
        self._guard.close()

    def saw(self, partition: str, streams: Collection[str]) -> None:
        """The service says which streams a batch held: a stream should not come to several members."""
        place = self.places().get(partition)
        if place is not None:
            self._streams.setdefault(place, set()).update(streams)

    def streams(self, place: Place) -> Collection[str]:
        """The streams that a partition of ours has brought."""
        return self._streams.get(place, ())

    @property
    def membership(self) -> object | None:
        """Proof of the generation in which our partitions were last known to be ours; None while in doubt."""
        return self._membership

    def commit(self, offsets: Mapping[Place, CommittedOffset]) -> None:
        """Commit to the group without a transaction."""
        self._reader.commit(offsets)

    def committed(self, offsets: Mapping[Place, CommittedOffset]) -> None:
        """The sink says: this is what the group's commit says now."""
        self._committed |= offsets

    def refused(self) -> None:
        """The sink says: a commit was refused. Everything begins again where the group's commit says."""
        self._doubtful = frozenset(self._next)
        self._membership = None
        self._statistics = replace(self._statistics, restarted=self._statistics.restarted + 1)

    def places(self) -> Mapping[str, Place]:
        """The partitions that the service knows of, by name."""
        return {place.name: place for place in self._next}

    @property
    def statistics(self) -> SourceStatistics:
        """A snapshot, for metrics."""
        places = {place: self._place_statistics(place, at) for place, at in sorted(self._next.items())}
        return replace(self._statistics, places=places, alone=self._everything <= frozenset(self._next))

    def report(self) -> Report:
        """The same for whoever knows nothing about Kafka."""
        now = self.statistics
        return Report(
            partitions=tuple(
                PartitionReport(place.name, place.topic, one.position, one.lag, one.commit_lag)
                for place, one in now.places.items()
            ),
            rebalances=now.rebalances,
            lost=now.lost,
            skipped=now.skipped,
            spread=tuple(sorted(self._spread)),
            fetch_errors=self._reader.errors,
            unassigned=self._unassigned(),
            stalled=self._stalls.longest(self._lagging(), self._clock()),
        )

    def _unassigned(self) -> float:
        settled = self.settings.group is None or self._reader.membership() is not None
        return 0.0 if settled else self._clock() - self._member_since

    def _lagging(self) -> dict[Place, int]:
        """Where reading stands in the partitions in which records are known to wait."""
        ends = {place: self._reader.highwater(place) for place in self._next if place not in self._held}
        at = {place: self._reader.position(place) for place in ends}
        return {
            place: position
            for place, end in ends.items()
            if end is not None and (position := at[place]) is not None and position < end
        }

    def _place_statistics(self, place: Place, position: int) -> PlaceStatistics:
        committed = self._committed.get(place)
        return PlaceStatistics(
            position=self._reader.position(place) or position,
            committed=None if committed is None else committed.offset,
            end=self._reader.highwater(place),
            held=place in self._held,
        )

    def _check_membership(self, now: float) -> None:
        """Without changes, a new generation still means that we may have been out of the group in between."""
        membership = self._reader.membership()
        if membership is None:
            if now - self._member_since > self.settings.assignment_timeout / 1e6:
                raise ConnectorError(
                    f"no member of group {self.settings.group} for {duration_text(self.settings.assignment_timeout)}:"
                    " the group does not come to rest, or its coordinator does not answer"
                )
            return
        self._member_since = now
        if membership != self._membership and not self._reader.changed() and not self._doubtful:
            self._doubtful = self._moved(frozenset(self._next))
            self._membership = None if self._doubtful else membership

    def _compare_streams(self, now: float) -> None:
        """A stream that comes to several members has its windows published in parts: say so, and say it loudly."""
        self._compared = now
        foreign = self._everything - frozenset(self._next)
        ours = frozenset[str]().union(*self._streams.values())
        if self.settings.group is None or not foreign or not ours:
            self._spread = frozenset()
            return
        found = self._reader.committed(foreign)
        spread = frozenset[str]().union(*(shared_with(each.metadata, ours) for each in found.values()))
        for stream in sorted(spread - self._spread):
            log.error(
                "stream %s also comes through partitions that other members of group %s read: each of them publishes"
                " windows of its own part. Key the topic by stream, or watch the stream with one member",
                stream,
                self.settings.group,
            )
        self._spread = spread

    def _moved(self, places: Collection[Place]) -> frozenset[Place]:
        """Those that somebody else has committed since we did."""
        if self.settings.group is None:
            return frozenset()
        found = self._reader.committed(places)
        return frozenset(place for place in places if found.get(place) != self._committed.get(place))

    def _begin(self, places: Collection[Place]) -> dict[str, Progress]:
        """Where each partition goes on: at its commit, or where the settings say; reading is sent there."""
        progress = self._known_progress(places)
        progress |= {
            place: Progress(offset)
            for place, offset in self._starts([place for place in places if place not in progress]).items()
        }
        earliest = self._reader.earliest(places)
        overtaken = {place: each.offset for place, each in progress.items() if each.offset < earliest[place]}
        for place, offset in self._overtaken(overtaken, earliest).items():
            progress[place] = replace(progress[place], offset=offset)
        positions = {place: each.offset for place, each in progress.items()}
        self._reader.seek(positions)
        self._next |= positions
        return {place.name: progress[place] for place in sorted(progress)}

    def _known_progress(self, places: Collection[Place]) -> dict[Place, Progress]:
        if self.settings.group is None:
            known = self._checkpoint.progress if self._checkpoint is not None else {}
            return {place: known[place.name] for place in places if place.name in known}
        found = self._reader.committed(places)
        self._committed = {place: each for place, each in self._committed.items() if place not in places} | dict(found)
        return {place: from_metadata(place.name, each.offset, each.metadata) for place, each in found.items()}

    def _starts(self, places: Collection[Place]) -> Mapping[Place, int]:
        start = self.settings.start
        moment = start_time(start)
        if moment is not None:
            return self._reader.at_time(places, moment)
        return self._reader.earliest(places) if start == "earliest" else self._reader.latest(places)

    def _overtaken(self, positions: Mapping[Place, int], earliest: Mapping[Place, int]) -> dict[Place, int]:
        """Retention has deleted what should be read next: stop, or go on where records begin, as configured."""
        if not positions:
            return {}
        lost = "; ".join(
            f"{place.name}: wanted {at}, the topic now begins at {earliest[place]}"
            for place, at in sorted(positions.items())
        )
        if self.settings.overtaken == "stop":
            raise ConnectorError(
                f"records were deleted before they were read ({lost}). Give the topic a longer retention; to go on"
                ' without them, set overtaken = "skip"'
            )
        log.error("records were deleted before they were read, going on without them: %s", lost)
        skipped = sum(max(0, earliest[place] - at) for place, at in positions.items())
        self._statistics = replace(self._statistics, skipped=self._statistics.skipped + skipped)
        return {place: earliest[place] for place in positions}

    def _fetch(self, timeout: float) -> Sequence[Fetched]:
        try:
            return self._reader.poll(timeout)
        except PositionLostError as error:
            ours = {place: at for place, at in error.positions.items() if place in self._next}
            positions = self._overtaken(ours, self._reader.earliest(ours))
            self._reader.seek(positions)
            self._next |= positions
            return ()

    def _wanted(self, fetched: Fetched) -> RawBatch | None:
        """The records that the service has not had, of the partitions that it knows."""
        wanted = self._next.get(fetched.place)
        if wanted is None or fetched.offsets[-1] < wanted:
            return None
        first = int(fetched.offsets.searchsorted(wanted))
        records = fetched.records[first:] if first else fetched.records
        self._next[fetched.place] = int(fetched.offsets[-1]) + 1
        self._statistics = replace(
            self._statistics,
            records=self._statistics.records + len(records),
        )
        return RawBatch(
            partition=fetched.place.name,
            records=records,
            offsets=fetched.offsets[first:],
            next_offset=self._next[fetched.place],
            timestamps=fetched.timestamps[first:],
        )

    def _hold(self, places: frozenset[Place]) -> None:
        if places or self._held:
            self._reader.hold(places)
        self._held = places

    def _watch(self, now: float) -> None:
        """End the process when a partition that has records waiting brings none (see `Stalls`)."""
        if now - self._watched < self.settings.stall_timeout / 16e6:
            return
        self._watched = now
        positions = {place: self._reader.position(place) for place in self._next if place not in self._held}
        suspects = self._stalls.suspects(positions, now)
        try:
            ends = self._reader.latest(suspects) if suspects else {}
        except ConnectorError as error:
            log.warning("cannot ask how far partitions go: %s", error)
            ends = {}
        stalled = self._stalls.stalled({place: ends.get(place) for place in suspects}, now)
        if stalled:
            raise ConnectorError(
                f"no record from {', '.join(place.name for place in sorted(stalled))} for"
                f" {duration_text(self.settings.stall_timeout)} although records wait there, or the brokers are silent"
            )

    def _count(self, kind: str, places: int) -> None:
        now = self._statistics
        self._statistics = replace(
            now,
            assigned=now.assigned + places * (kind == "assigned"),
            revoked=now.revoked + places * (kind == "revoked"),
            lost=now.lost + places * (kind == "lost"),
            rebalances=now.rebalances + (kind == "assigned" and self.settings.group is not None),
        )

"""Avro behind a registry on Apache Kafka: members that come, go and are killed say what an undisturbed one says of the
same events as JSON."""

import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.formats.registry import registry
from tests.kafka.apache import Cluster
from tests.kafka.topics import Broker, unique
from tests.kafka.world import Feed, World, compare, setup_of, uninterrupted

SCHEMA = {
    "type": "record",
    "name": "Scored",
    "fields": [
        {"name": "stream", "type": "string"},
        {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "posteriors", "type": {"type": "array", "items": "double"}},
    ],
}
ODD = b"?"
"""What is no event in either format."""


@dataclass(frozen=True)
class OddWorld(World):
    """A world whose bad records are bad in any format."""

    @cached_property
    def plain(self) -> World:
        return World(self.owners, self.events, self.window, self.poisoned, self.seed)

    @cached_property
    def records(self) -> Mapping[int, list[bytes]]:  # type: ignore[override]
        return {
            partition: [ODD if record.endswith(b'"half"]}') else record for record in records]
            for partition, records in self.plain.records.items()
        }

    @property
    def poison(self) -> int:
        return self.plain.poison

    @cached_property
    def windows(self) -> Mapping[str, int]:  # type: ignore[override]
        return self.plain.windows


@dataclass(frozen=True)
class AvroWorld(OddWorld):
    """The same events as Avro, by the serializer of confluent-kafka."""

    registry: str = ""

    @cached_property
    def records(self) -> Mapping[int, list[bytes]]:  # type: ignore[override]
        given = OddWorld(self.owners, self.events, self.window, self.poisoned, self.seed).records
        with SchemaRegistryClient({"url": self.registry}) as client:
            serializer = AvroSerializer(client, json.dumps(SCHEMA))
            context = SerializationContext("scored", MessageField.VALUE)
            return {
                partition: [ODD if record == ODD else serializer(json.loads(record), context) for record in records]
                for partition, records in given.items()
            }


EVENTS, WINDOW = 300_000, "250s"
KILLS, SECONDS = 6, 36.0


@pytest.mark.chaos
@pytest.mark.timeout(1_800)
def test_killed_members_that_read_avro_say_what_one_says_of_json(apache_kafka: Cluster, tmp_path: Path) -> None:
    broker, rng = Broker(apache_kafka), random.Random(4)
    world = OddWorld(["s0", "s1", "s2", "s3"], EVENTS, WINDOW)
    native = setup_of(broker, world, tmp_path)
    Feed(broker, native.topic, world, 0.0).finish()
    expected, _ = uninterrupted(replace(native, name=unique("json")))
    with registry() as known:
        avro = AvroWorld(world.owners, EVENTS, WINDOW, registry=known.url)
        more = f'[source.format]\nkind = "avro"\nregistry = {{ url = "{known.url}" }}'
        setup = replace(setup_of(broker, avro, tmp_path), more=more)
        feed, members = Feed(broker, setup.topic, avro, SECONDS), [setup.member("m0")]
        for number in range(1, KILLS + 1):
            members.append(setup.member(f"m{number}"))  # a rebalance, and another one with the kill
            members[-1].wait_until_reading()
            time.sleep(rng.uniform(0.0, SECONDS / KILLS))
            members.pop(rng.randrange(len(members))).kill()
        feed.finish()
        compare(setup, members)
        assert windows(setup.published()) == windows(expected)


def windows(found: Mapping[bytes, list[bytes]]) -> Mapping[bytes, list[bytes]]:
    """Without the member that said it, and its partitions, whose names are the topics'."""
    return {key: [json.dumps(whole(value)).encode() for value in values] for key, values in found.items()}


def whole(value: bytes) -> Mapping[str, object]:
    return {name: said for name, said in json.loads(value).items() if name not in ("member", "partitions")}

"""The same events as JSON, Avro and Protobuf, the latter two by the serializers of confluent-kafka."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient, prefix_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, message_factory, timestamp_pb2
from google.protobuf.descriptor_pool import DescriptorPool

from monitor.ports.schema import Feature, StreamSchema

SHOP = StreamSchema("shop", ("legit", "fraud"), (Feature("amount"), Feature("country", "category", ("BE", "FR"))))
BEGIN = datetime(2026, 11, 18, 8, tzinfo=UTC)

Event = dict[str, Any]
Headers = list[tuple[str, bytes]]


def events(count: int) -> list[Event]:
    """In our own shape; some lack a feature."""
    return [
        {
            "stream": "shop",
            "id": f"e{number}",
            "timestamp": BEGIN + timedelta(milliseconds=number),
            "posteriors": {"legit": 1 - number % 8 / 8, "fraud": number % 8 / 8},
            "features": {"amount": None if number % 5 == 4 else number / 4, "country": "BE" if number % 3 else "FR"},
        }
        for number in range(count)
    ]


AVRO = {
    "type": "record",
    "name": "Scored",
    "namespace": "shop",
    "fields": [
        {"name": "stream", "type": "string"},
        {"name": "id", "type": "string"},
        {"name": "timestamp", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "posteriors", "type": {"type": "map", "values": "double"}},
        {
            "name": "features",
            "type": {
                "type": "record",
                "name": "Inputs",
                "fields": [
                    {"name": "amount", "type": ["null", "double"], "default": None},
                    {"name": "country", "type": {"type": "enum", "name": "Country", "symbols": ["BE", "FR"]}},
                ],
            },
        },
    ],
}

JSON_SCHEMA = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Scored", "type": "object"}


def scored_file() -> descriptor_pb2.FileDescriptorProto:
    """scored.proto: a message beside the one that is used, whose inputs lie inside it."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="scored.proto", package="shop", syntax="proto3", dependency=["google/protobuf/timestamp.proto"]
    )
    file.enum_type.add(name="Country").value.extend(
        descriptor_pb2.EnumValueDescriptorProto(name=name, number=number) for number, name in enumerate(("BE", "FR"))
    )
    file.message_type.add(name="Other").field.add(name="x", number=1, type=field.TYPE_DOUBLE, label=1)
    scored = file.message_type.add(name="Scored")
    inputs = scored.nested_type.add(name="Inputs")
    inputs.field.add(name="amount", number=1, type=field.TYPE_DOUBLE, label=1, proto3_optional=True, oneof_index=0)
    inputs.oneof_decl.add(name="_amount")
    inputs.field.add(name="country", number=2, type=field.TYPE_ENUM, type_name=".shop.Country", label=1)
    entry = scored.nested_type.add(name="PosteriorsEntry")
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=field.TYPE_DOUBLE, label=1)
    entry.options.map_entry = True
    scored.field.add(name="stream", number=1, type=field.TYPE_STRING, label=1)
    scored.field.add(name="id", number=2, type=field.TYPE_STRING, label=1)
    stamp = ".google.protobuf.Timestamp"
    scored.field.add(name="timestamp", number=3, type=field.TYPE_MESSAGE, type_name=stamp, label=1)
    posteriors = ".shop.Scored.PosteriorsEntry"
    scored.field.add(name="posteriors", number=4, type=field.TYPE_MESSAGE, type_name=posteriors, label=3)
    scored.field.add(name="features", number=5, type=field.TYPE_MESSAGE, type_name=".shop.Scored.Inputs", label=1)
    return file


def answers_file() -> descriptor_pb2.FileDescriptorProto:
    """What is needed of the open inference protocol's file for its answers."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="answers.proto", package="inference", syntax="proto3")
    contents = file.message_type.add(name="InferTensorContents")
    contents.field.add(name="fp32_contents", number=6, type=field.TYPE_FLOAT, label=3)
    contents.field.add(name="fp64_contents", number=7, type=field.TYPE_DOUBLE, label=3)
    answer = file.message_type.add(name="ModelInferResponse")
    tensor = answer.nested_type.add(name="InferOutputTensor")
    tensor.field.add(name="name", number=1, type=field.TYPE_STRING, label=1)
    tensor.field.add(name="datatype", number=2, type=field.TYPE_STRING, label=1)
    tensor.field.add(name="shape", number=3, type=field.TYPE_INT64, label=3)
    inside = ".inference.InferTensorContents"
    tensor.field.add(name="contents", number=5, type=field.TYPE_MESSAGE, type_name=inside, label=1)
    answer.field.add(name="model_name", number=1, type=field.TYPE_STRING, label=1)
    answer.field.add(name="id", number=3, type=field.TYPE_STRING, label=1)
    tensors = ".inference.ModelInferResponse.InferOutputTensor"
    answer.field.add(name="outputs", number=5, type=field.TYPE_MESSAGE, type_name=tensors, label=3)
    return file


def _pool() -> DescriptorPool:
    pool = DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(scored_file().SerializeToString())
    return pool


SCORED = message_factory.GetMessageClass(_pool().FindMessageTypeByName("shop.Scored"))


def message(event: Event) -> Any:
    """An event as Protobuf."""
    made = SCORED(stream=event["stream"], id=event["id"], posteriors=event["posteriors"])
    made.timestamp.FromDatetime(event["timestamp"])
    made.features.country = ("BE", "FR").index(event["features"]["country"])
    if event["features"]["amount"] is not None:
        made.features.amount = event["features"]["amount"]
    return made


def written(
    kind: str, some: Sequence[Event], url: str, by: Callable[..., bytes] = prefix_schema_id_serializer, login: str = ""
) -> tuple[list[bytes], list[Headers]]:
    """Records and their headers, as the serializers of confluent-kafka write them."""
    records, headers = [], []
    with SchemaRegistryClient({"url": url} | ({"basic.auth.user.info": login} if login else {})) as client:
        conf = {"schema.id.serializer": by}
        serializer: Any = {
            "avro": lambda: AvroSerializer(client, json.dumps(AVRO), conf=conf),
            "protobuf": lambda: ProtobufSerializer(SCORED, client, conf),
            "json-schema": lambda: JSONSerializer(json.dumps(JSON_SCHEMA), client, conf=conf),
        }[kind]()
        values = {"avro": lambda each: each, "protobuf": message, "json-schema": plain}[kind]
        for each in some:
            named: Headers = []
            records.append(serializer(values(each), SerializationContext("scored", MessageField.VALUE, named)))
            headers.append(named)
    return records, headers


def plain(event: Event) -> Event:
    """As JSON has it."""
    return {**event, "timestamp": event["timestamp"].isoformat()}

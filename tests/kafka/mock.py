"""librdkafka's mock cluster: Kafka's wire protocol in this process, through the C functions that the
confluent-kafka wheel exports. No replication, no real transactions: at-least-once and hermetic tests only.
"""

import ctypes
import time
from pathlib import Path

import confluent_kafka

API_VERSION = (2, 1)
"""What kafka-python has to be told when it talks to the mock: its version probe does not understand the answer."""

# A call right after another one is often not noticed by the mock's thread until it next looks, once a second.
_PAUSE_SECONDS = 0.01

_POINTER, _TEXT, _INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
_SIGNATURES = {
    "rd_kafka_conf_new": (_POINTER, ()),
    "rd_kafka_conf_set": (_INT, (_POINTER, _TEXT, _TEXT, _TEXT, ctypes.c_size_t)),
    "rd_kafka_new": (_POINTER, (_INT, _POINTER, _TEXT, ctypes.c_size_t)),
    "rd_kafka_destroy": (None, (_POINTER,)),
    "rd_kafka_mock_cluster_new": (_POINTER, (_POINTER, _INT)),
    "rd_kafka_mock_cluster_destroy": (None, (_POINTER,)),
    "rd_kafka_mock_cluster_bootstraps": (_TEXT, (_POINTER,)),
    "rd_kafka_mock_topic_create": (_INT, (_POINTER, _TEXT, _INT, _INT)),
    "rd_kafka_mock_broker_set_down": (_INT, (_POINTER, ctypes.c_int32)),
    "rd_kafka_mock_broker_set_up": (_INT, (_POINTER, ctypes.c_int32)),
    "rd_kafka_mock_broker_set_rtt": (_INT, (_POINTER, ctypes.c_int32, _INT)),
    "rd_kafka_mock_partition_set_leader": (_INT, (_POINTER, _TEXT, ctypes.c_int32, ctypes.c_int32)),
    "rd_kafka_mock_coordinator_set": (_INT, (_POINTER, _TEXT, _TEXT, ctypes.c_int32)),
    "rd_kafka_mock_partition_delete_records": (_INT, (_POINTER, _TEXT, ctypes.c_int32, ctypes.c_int64)),
    "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, (_POINTER, ctypes.c_int32)),
}


def _library() -> ctypes.CDLL:
    wheel = Path(confluent_kafka.__file__).parents[1]
    path = next((wheel / "confluent_kafka.libs").glob("librdkafka-*.so*"))
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class MockCluster:
    """A cluster of mock brokers; every call here is the C function of the same name."""

    def __init__(self, brokers: int = 1) -> None:
        self._library = _library()
        error = ctypes.create_string_buffer(512)
        settings = self._library.rd_kafka_conf_new()
        # The client that carries the cluster has no brokers of its own, and would complain about that.
        self._library.rd_kafka_conf_set(settings, b"log_level", b"0", error, 512)
        self._client = self._library.rd_kafka_new(0, settings, error, 512)
        assert self._client, error.value
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._client, brokers)
        assert self._cluster, "librdkafka refused to start a mock cluster"
        self.bootstrap: str = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        self._library.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)

    def _call(self, name: str, *arguments: object) -> None:
        time.sleep(_PAUSE_SECONDS)
        answer = getattr(self._library, f"rd_kafka_mock_{name}")(self._cluster, *arguments)
        assert answer == 0, f"{name}{arguments}: error {answer}"

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        self._call("topic_create", topic.encode(), partitions, 1)

    def broker_down(self, broker: int) -> None:
        self._call("broker_set_down", broker)

    def broker_up(self, broker: int) -> None:
        self._call("broker_set_up", broker)

    def answer_after(self, broker: int, milliseconds: int) -> None:
        self._call("broker_set_rtt", broker, milliseconds)

    def set_leader(self, topic: str, partition: int, broker: int) -> None:
        self._call("partition_set_leader", topic.encode(), partition, broker)

    def set_transaction_coordinator(self, transactional_id: str, broker: int) -> None:
        self._call("coordinator_set", b"transaction", transactional_id.encode(), broker)

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        self._call("partition_delete_records", topic.encode(), partition, before)

    def close(self) -> None:
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._client)

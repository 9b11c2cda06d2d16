"""Kafka connectors against real parts: librdkafka's mock cluster, and Apache Kafka itself."""

"""Apache Flink between two ends in Kafka: the two stages of parts on many machines. Only `job` imports PyFlink.

PyFlink is no dependency: it pins numpy and others, and lives in an environment of its own (`deploy/flink`).
"""

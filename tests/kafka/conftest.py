"""Brokers for tests: the mock starts in milliseconds; Apache Kafka is started once a session, when first asked for."""

import os
from collections.abc import Iterator

import pytest

from tests.kafka import apache
from tests.kafka.certificates import Authority
from tests.kafka.mock import MockCluster
from tests.kafka.world import Member


@pytest.fixture(autouse=True)
def no_member_outlives_its_test() -> Iterator[None]:
    yield
    while Member.started:
        Member.started.pop().kill()


@pytest.fixture(scope="session")
def mock_cluster() -> Iterator[MockCluster]:
    """One for the session: whoever uses it makes topics of his own, and leaves the brokers up."""
    cluster = MockCluster()
    yield cluster
    cluster.close()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Who signed the broker's certificate."""
    return Authority(tmp_path_factory.mktemp("tls") / "authority").create()


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[apache.Cluster]:
    """One real broker for the session; skipped with the reason where it cannot run, except in CI, where it must.

    Who comes by its plain listener may do everything; the others ask for a password, and one of them speaks TLS.
    """
    require_apache()
    security = apache.Security(
        users={"admin": "right", "nobody": "right"},
        certificate=authority.signed("broker", "subjectAltName=IP:127.0.0.1"),
        trusted=authority.certificate,
        superusers=("ANONYMOUS", "admin"),
    )
    cluster = apache.Cluster(tmp_path_factory.mktemp("kafka"), security=security)
    yield cluster
    cluster.close()


def require_apache() -> None:
    reason = apache.unavailable()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(f"Apache Kafka has to run in CI: {reason}")
        pytest.skip(f"Apache Kafka cannot run here: {reason}")

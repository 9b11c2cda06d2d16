"""Passwords, permissions and certificates on Apache Kafka: who may come in does, who may not is told why at once."""

import time
from contextlib import closing
from pathlib import Path

import pytest

from connectors.kafka import open_pair, sink_settings, source_settings
from monitor.errors import ConnectorError
from monitor.ports import Report, SinkReport
from tests.connectors.harness import nothing
from tests.kafka.apache import Cluster
from tests.kafka.certificates import Authority
from tests.kafka.topics import Broker, read, unique
from tests.marks import in_chaos

LOGIN = {"mechanism": "PLAIN", "username": "admin", "password": "right", "connect_timeout": "1s"}


@pytest.fixture(scope="module")
def guarded(apache_kafka: Cluster) -> Cluster:
    """A broker with passwords, permissions and a certificate."""
    Broker(apache_kafka).create("events", "results")
    return apache_kafka


LOCKED_OUT: list[tuple[dict[str, object], str]] = [
    ({"username": "admin", "password": "wrong"}, "the user name or the password is (probably )?wrong"),
    ({"username": "nobody"}, "topic (events|results) must not be seen by nobody"),
    ({"topics": "evnts", "results": "rslts"}, "topic (evnts|rslts) does not exist"),
]
LOCKED_OUT_OTHERWISE: list[tuple[dict[str, object], str]] = [
    ({"mechanism": "SCRAM-SHA-512", "password": "wrong"}, "the password is (probably )?wrong"),
    ({"tls": True}, "does not speak TLS"),
    ({"mechanism": None, "username": None, "password": None}, "perhaps this port wants TLS or SASL"),
    ({"bootstrap": "127.0.0.1:1"}, "nobody listens there"),
    ({"driver": "fast", "password": "wrong"}, "the password is (probably )?wrong"),
]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [*LOCKED_OUT, *(in_chaos(*each) for each in LOCKED_OUT_OTHERWISE)],
)
def test_who_is_locked_out_is_told_why_at_the_start(guarded: Cluster, given: dict[str, object], complaint: str) -> None:
    assert_locked_out({"bootstrap": guarded.secure_bootstrap, **LOGIN, **given}, complaint)


@pytest.mark.parametrize("driver", ["python", in_chaos("fast")])
def test_a_certificate_of_another_authority_is_refused_in_words(guarded: Cluster, tmp_path: Path, driver: str) -> None:
    other = Authority(tmp_path / "other").create().certificate
    options = {"bootstrap": guarded.tls_bootstrap, **LOGIN, "tls": True, "ca_file": str(other), "driver": driver}
    assert_locked_out(options, "the broker's certificate is not signed by the given ca_file")


def test_a_certificate_of_another_host_is_refused_in_words(
    guarded: Cluster, tmp_path: Path, authority: Authority
) -> None:
    """The certificate is for 127.0.0.1, and the name that leads there is another."""
    options = {"bootstrap": guarded.tls_bootstrap.replace("127.0.0.1", "localhost"), **LOGIN}
    options |= {"tls": True, "ca_file": str(authority.certificate)}
    assert_locked_out(options, "the broker's certificate is for another host")


def assert_locked_out(options: dict[str, object], complaint: str) -> None:
    options = {key: value for key, value in options.items() if value is not None}
    only_source, only_sink = {"results"}, {"topics"}
    source, sink = open_pair(
        source_settings({"topics": "events", "group": "g"} | {k: options[k] for k in options.keys() - only_source}),
        sink_settings({"results": "results"} | {k: options[k] for k in options.keys() - only_sink}),
    )
    with pytest.raises(ConnectorError, match=complaint):
        sink.recover()
    with pytest.raises(ConnectorError, match=complaint):
        source.start(None)
    source.close()
    sink.close()


@pytest.mark.parametrize("driver", ["python", "fast"])
@pytest.mark.parametrize("mechanism", [in_chaos("PLAIN"), in_chaos("SCRAM-SHA-256"), "SCRAM-SHA-512"])
@pytest.mark.parametrize("tls", [in_chaos(False), True])
def test_who_knows_the_password_gets_in(
    guarded: Cluster, authority: Authority, mechanism: str, driver: str, tls: bool
) -> None:
    options: dict[str, object] = {**LOGIN, "driver": driver, "mechanism": mechanism}
    options["bootstrap"] = guarded.tls_bootstrap if tls else guarded.secure_bootstrap
    if tls:
        options |= {"tls": True, "ca_file": str(authority.certificate)}
    source, sink = open_pair(
        source_settings({"topics": "events", "group": unique("g"), **options}),
        sink_settings({"results": "results", **options}),
    )
    sink.recover()
    source.start(None)
    deadline = time.monotonic() + 90
    while source.reassigned(nothing) is None:
        assert time.monotonic() < deadline
        source.poll(0.1)
    source.close()
    sink.close()
    assert read(guarded.bootstrap, "results") == []


@pytest.mark.parametrize("driver", ["python", in_chaos("fast")])
def test_it_is_told_when_the_certificate_expires_that_brokers_are_shown(
    guarded: Cluster, tmp_path: Path, authority: Authority, driver: str
) -> None:
    shown = {
        days: authority.signed(f"client-{driver}-{days}", "extendedKeyUsage=clientAuth", days=days) for days in (3, 9)
    }
    ours = tmp_path / "ours.pem"
    ours.write_bytes(shown[3].read_bytes())
    options = {**LOGIN, "bootstrap": guarded.tls_bootstrap, "driver": driver, "tls": True}
    options |= {"ca_file": str(authority.certificate), "certificate_file": str(ours), "key_file": str(ours)}
    source, sink = open_pair(
        source_settings({"topics": "events", "group": unique("g"), **options}),
        sink_settings({"results": "results", **options}),
    )
    with closing(source), closing(sink):
        sink.recover()
        source.start(None)
        assert days_left(source.report()) == days_left(sink.report()) == 3
        ours.write_bytes(shown[9].read_bytes())
        assert days_left(source.report()) == days_left(sink.report()) == 9


def test_a_certificate_that_the_brokers_authority_did_not_sign_is_refused_in_words(
    guarded: Cluster, tmp_path: Path, authority: Authority
) -> None:
    """So the broker does look at what it is shown."""
    strange = Authority(tmp_path / "other").create().signed("client", "extendedKeyUsage=clientAuth")
    options = {**LOGIN, "bootstrap": guarded.tls_bootstrap, "tls": True, "ca_file": str(authority.certificate)}
    options |= {"certificate_file": str(strange), "key_file": str(strange)}
    assert_locked_out(options, "the broker refuses our certificate_file")


def days_left(report: Report | SinkReport) -> int:
    assert report.certificate_expires is not None
    return round((report.certificate_expires - time.time()) / 86_400)

"""Settings: what is accepted, every problem at once, and secrets that do not show."""

from pathlib import Path

import pytest

from connectors.kafka import SinkSettings, SourceSettings, open_pair, pair, sink_settings, source_settings
from connectors.kafka.cluster import client_options
from monitor.errors import ConfigurationError


def test_a_source_needs_only_brokers_and_topics() -> None:
    settings = source_settings({"bootstrap": "a:1, b:2", "topics": ["x", "y"]}, {})
    assert settings.connection.bootstrap == ("a:1", "b:2")
    assert settings.topics == ("x", "y")
    assert settings.connection.protocol == "PLAINTEXT"


def test_every_problem_is_listed_at_once() -> None:
    options = {
        "group": 3,
        "isolaton": "read_committed",
        "driver": "swift",
        "session_timeout": -1,
        "username": "me",
        "start": "yesterday",
        "ca_file": "nowhere.pem",
        "password_env": "NOT_SET",
        "broker_version": "new",
    }
    with pytest.raises(ConfigurationError) as caught:
        source_settings(options, {})
    text = str(caught.value)
    assert len(caught.value.problems) == 12
    assert "isolaton: unknown setting; did you mean isolation?" in text
    assert "driver: want one of python, fast, got 'swift'" in text
    for key in ("bootstrap", "topics", "group", "session_timeout", "mechanism", "start", "ca_file", "password_env"):
        assert f"{key}: " in text


@pytest.mark.parametrize(
    "options", [{"password_env": "KAFKA_PASSWORD"}, {"password_file": "secret"}, {"password": "p4ss"}]
)
def test_a_secret_is_used_and_never_shown(tmp_path: Path, options: dict[str, object]) -> None:
    (tmp_path / "secret").write_text("p4ss\n")
    given = {"bootstrap": "a:1", "topics": "x", "mechanism": "SCRAM-SHA-512", "username": "me", **options}
    settings = source_settings(given, {"KAFKA_PASSWORD": "p4ss"}, tmp_path)
    assert "p4ss" not in repr(settings) + str(settings) + str(settings.connection.password)
    assert client_options(settings.connection)["sasl_plain_password"] == "p4ss"
    assert settings.connection.protocol == "SASL_PLAINTEXT"


def test_only_one_way_to_give_a_secret() -> None:
    given = {
        "bootstrap": "a:1",
        "topics": "x",
        "mechanism": "PLAIN",
        "username": "me",
        "password": "a",
        "password_env": "B",
    }
    with pytest.raises(ConfigurationError, match="password and password_env: give one of them"):
        source_settings(given, {"B": "b"})


def test_tls_files_are_found_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    settings = source_settings({"bootstrap": "a:1", "topics": "x", "tls": True, "ca_file": "ca.pem"}, {}, tmp_path)
    assert client_options(settings.connection)["ssl_cafile"] == str(tmp_path / "ca.pem")
    assert settings.connection.protocol == "SSL"


def test_a_start_time_needs_a_zone() -> None:
    given = {"bootstrap": "a:1", "topics": "x"}
    source_settings({**given, "start": "2026-11-18T09:00:00Z"}, {})
    with pytest.raises(ConfigurationError, match="start: want"):
        source_settings({**given, "start": "2026-11-18T09:00:00"}, {})


def test_a_pair_has_to_fit_together() -> None:
    source = source_settings({"bootstrap": "a:1", "topics": "x", "isolation": "read_uncommitted"}, {})
    sink = sink_settings({"bootstrap": "b:1", "results": "r", "driver": "fast"}, {})
    with pytest.raises(ConfigurationError) as caught:
        open_pair(source, sink)
    keys = {problem.split(":")[0] for problem in caught.value.problems}
    assert keys == {"source.group", "sink.bootstrap", "sink.driver", "source.isolation"}


def test_problems_of_both_ends_are_listed_together() -> None:
    with pytest.raises(ConfigurationError) as caught:
        pair(("//a:1", {}), ("//a:1/r", {"delivry": "at-least-once"}), Path())
    assert [problem.split(":")[0] for problem in caught.value.problems] == ["source.topics", "sink.delivry"]


def test_the_url_names_brokers_and_topics_and_options_win() -> None:
    source, sink = pair(
        ("//a:1,b:2/x,y", {"group": "g"}), ("//a:1,b:2/r", {"results": "other", "dead_letters": "bad"}), Path()
    )
    assert isinstance(source.settings, SourceSettings)
    assert source.settings.topics == ("x", "y")
    assert isinstance(sink.settings, SinkSettings)
    assert sink.settings.topics == ("other", "bad")
    source.close()
    sink.close()

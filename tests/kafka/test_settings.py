"""Settings: what is accepted, every problem at once, and secrets that do not show."""

from pathlib import Path

import pytest

from connectors.kafka import SinkSettings, SourceSettings, open_pair, pair, sink_settings, source_settings
from connectors.kafka.cluster import client_options
from monitor.errors import ConfigurationError


def test_a_source_needs_only_brokers_and_topics() -> None:
    settings = source_settings({"bootstrap": "a:1, b:2", "topics": ["x", "y"]})
    assert settings.connection.bootstrap == ("a:1", "b:2")
    assert settings.topics == ("x", "y")
    assert settings.connection.protocol == "PLAINTEXT"


def test_every_problem_is_listed_at_once() -> None:
    options = {
        "group": 3,
        "isolaton": "read_committed",
        "pasword": "p4ss",
        "driver": "swift",
        "session_timeout": -1,
        "ca_file": "nowhere.pem",
    }
    with pytest.raises(ConfigurationError) as caught:
        source_settings(options)
    assert list(caught.value.problems) == [
        "source.pasword: there is no such setting (did you mean 'password'?)",
        "source.bootstrap: is missing",
        "source.driver: want one of 'python', 'fast', got 'swift'",
        "source.isolaton: there is no such setting (did you mean 'isolation'?)",
        "source.topics: is missing",
        "source.group: want a string, got 3",
        'source.session_timeout: want a duration like "30s", "5m" or "1h", got -1',
    ]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"bootstrap": ""}, "want `bootstrap` to name the brokers"),
        ({"topics": "x,,y"}, "want `topics` to name"),
        ({"username": "me"}, "want a `mechanism` beside `username`"),
        ({"mechanism": "PLAIN", "username": "me"}, "PLAIN needs `username` and `password`"),
        ({"mechanism": "PLAIN", "username": "me", "password": ""}, "PLAIN needs `username` and `password`"),
        ({"start": "yesterday"}, "want `start` as earliest, latest or a time"),
        ({"tls": True, "ca_file": "nowhere.pem"}, "`ca_file`: there is no file nowhere.pem"),
        ({"ca_file": "nowhere.pem"}, "`ca_file` has no effect without `tls = true`"),
        ({"tls": True, "key_file": "pyproject.toml"}, "want `certificate_file` and `key_file` together"),
        ({"broker_version": "new"}, "want `broker_version` as 2.8, got 'new'"),
        ({"instance": "one"}, "want a `group` beside `instance`"),
        ({"session_timeout": "0s"}, "want `session_timeout` above zero"),
        ({"connect_timeout": "0s"}, "want `connect_timeout` above zero"),
        ({"poll_records": 0}, "want `poll_records` from 1 to 1000000"),
        ({"poll_records": 1_000_001}, "want `poll_records` from 1 to 1000000"),
    ],
)
def test_what_types_cannot_say_is_said_in_words(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        source_settings({"bootstrap": "a:1", "topics": "x", **options})
    (problem,) = caught.value.problems
    assert problem.startswith(f"source: {complaint}")


def test_a_secret_is_used_and_never_shown() -> None:
    given = {"bootstrap": "a:1", "topics": "x", "mechanism": "SCRAM-SHA-512", "username": "me", "password": "p4ss"}
    settings = source_settings(given)
    assert "p4ss" not in repr(settings) + str(settings) + repr(settings.connection)
    assert client_options(settings.connection)["sasl_plain_password"] == "p4ss"
    assert settings.connection.protocol == "SASL_PLAINTEXT"


def test_tls_files_are_found_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("")
    settings = source_settings({"bootstrap": "a:1", "topics": "x", "tls": True, "ca_file": "ca.pem"}, tmp_path)
    assert client_options(settings.connection)["ssl_cafile"] == str(tmp_path / "ca.pem")
    assert settings.connection.protocol == "SSL"


def test_a_start_time_needs_a_zone() -> None:
    given = {"bootstrap": "a:1", "topics": "x"}
    source_settings({**given, "start": "2026-11-18T09:00:00Z"})
    with pytest.raises(ConfigurationError, match="want `start`"):
        source_settings({**given, "start": "2026-11-18T09:00:00"})


def test_a_pair_has_to_fit_together() -> None:
    source = source_settings({"bootstrap": "a:1", "topics": "x", "isolation": "read_uncommitted"})
    sink = sink_settings({"bootstrap": "b:1", "results": "r", "driver": "fast"})
    with pytest.raises(ConfigurationError) as caught:
        open_pair(source, sink)
    keys = {problem.split(":")[0] for problem in caught.value.problems}
    assert keys == {"source.group", "sink.bootstrap", "sink.driver", "source.isolation"}


def test_states_have_a_topic_of_their_own() -> None:
    given = {"bootstrap": "a:1", "results": "r", "recalibrations": "r"}
    sink_settings({**given, "states": "s"})
    with pytest.raises(ConfigurationError) as caught:
        sink_settings({**given, "states": "r", "dead_letters": "d"})
    alone = "sink: want a topic for `states` alone, they are read back by key"
    assert [*caught.value.problems] == [f"{alone}: `results` has r, too", f"{alone}: `recalibrations` has r, too"]


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

"""The configuration: read once, every problem listed at once, secrets from outside."""

from pathlib import Path

import pytest

from monitor.commands.run import configured
from monitor.errors import ConfigurationError
from monitor.ports.options import duration_text, substituted
from monitor.settings.config import Config, load
from monitor.windows.by_count import CountPlan
from monitor.windows.by_time import TimePlan

GOOD = """
[source]
url = "jsonl:events.jsonl"

[sink]
url = "jsonl:results.jsonl"

[streams.fraud]
reference = "fraud.ref"
window = { size = "5m", lateness = "30s" }
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "shiftwatch.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(written(folder, text))
    return list(caught.value.problems)


def test_a_configuration_becomes_frozen_values_with_paths_relative_to_it(tmp_path: Path) -> None:
    config = load(written(tmp_path, GOOD))
    assert isinstance(config, Config)
    stream = config.streams["fraud"]
    assert stream.reference == tmp_path / "fraud.ref"
    assert stream.window.plan == TimePlan(300_000_000, 300_000_000, 30_000_000, 1_000_000)


def test_sketches_are_switched_off_by_one_setting(tmp_path: Path) -> None:
    text = GOOD.replace("[streams.fraud]\n", "[streams.fraud]\nsketches = false\n")
    assert load(written(tmp_path, GOOD)).streams["fraud"].sketches
    assert not load(written(tmp_path, text)).streams["fraud"].sketches


def test_count_windows_need_nothing_but_a_count(tmp_path: Path) -> None:
    text = GOOD.replace('{ size = "5m", lateness = "30s" }', "{ count = 5000 }")
    assert load(written(tmp_path, text)).streams["fraud"].window.plan == CountPlan(5000)


def test_every_problem_is_listed_at_once_with_the_nearest_valid_name(tmp_path: Path) -> None:
    text = """
[sorce]
url = "jsonl:x"

[sink]
url = "jsonl:y"

[streams.fraud]
referense = "fraud.ref"
window = { size = "5 minutes", latenes = "30s" }

[log]
format = "jsn"
"""
    found = problems(tmp_path, text)
    assert any("sorce" in one and "'source'" in one for one in found)
    assert any("streams.fraud.referense" in one and "'reference'" in one for one in found)
    assert any("streams.fraud.window.latenes" in one and "'lateness'" in one for one in found)
    assert any("streams.fraud.window.size" in one and '"5m"' in one for one in found)
    assert any("log.format" in one and "'json'" in one for one in found)
    assert any(one == "streams.fraud.reference: is missing" for one in found)
    assert any(one == "source: is missing" for one in found)


def test_a_stream_that_is_no_table_hides_no_problem_of_another(tmp_path: Path) -> None:
    text = GOOD.replace("[streams.fraud]", "[streams]\nother = 3\n[streams.fraud]").replace('"5m"', '"5"')
    assert problems(tmp_path, text) == [
        "streams.other: want a table, got 3",
        'streams.fraud.window.size: want a duration like "30s", "5m" or "1h", got \'5\'',
    ]


def test_what_connectors_and_references_lack_is_listed_with_the_rest(tmp_path: Path) -> None:
    text = GOOD.replace('"5m"', '"5"').replace('events.jsonl"', 'events.jsonl"\nfolow = true')
    with pytest.raises(ConfigurationError) as caught:
        configured(written(tmp_path, text))
    assert caught.value.problems == (
        'streams.fraud.window.size: want a duration like "30s", "5m" or "1h", got \'5\'',
        "source.folow: there is no such setting (did you mean 'follow'?)",
        f"{tmp_path / 'fraud.ref'}: no such file",
    )


def test_ends_that_miss_a_secret_are_not_complained_of_twice(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        configured(written(tmp_path, GOOD.replace("jsonl:events.jsonl", "${NO_SUCH_VARIABLE}")))
    assert caught.value.problems == (
        "source.url: the environment has no variable 'NO_SUCH_VARIABLE'",
        f"{tmp_path / 'fraud.ref'}: no such file",
    )


def test_no_problem_hides_another_nor_comes_twice(tmp_path: Path) -> None:
    stream = '[streams.{0}]\nreference = "{1}.ref"\nwindow = {{ size = "5m", lateness = "0s" }}\n'
    text = GOOD.replace("events.jsonl", 'events.jsonl"\nfolow = "true') + "[sourceful]\n"
    with pytest.raises(ConfigurationError) as caught:
        configured(written(tmp_path, text + stream.format("a", "fraud") + stream.format("b", "${NO_SUCH_VARIABLE}")))
    assert caught.value.problems == (
        "streams.b.reference: the environment has no variable 'NO_SUCH_VARIABLE'",
        "sourceful: there is no such setting (did you mean 'source'?)",
        "source.folow: there is no such setting (did you mean 'follow'?)",
        f"{tmp_path / 'fraud.ref'}: no such file",
    )


def test_null_characters_are_named_where_they_stand(tmp_path: Path) -> None:
    text = GOOD.replace("events.jsonl", "a\\u0000b").replace("fraud.ref", "${file:a\\u0000b}")
    with pytest.raises(ConfigurationError) as caught:
        configured(written(tmp_path, text))
    first, second = caught.value.problems
    assert first == "source.url: no text here may hold a null character"
    assert second.startswith("streams.fraud.reference: cannot read ${file:a")


@pytest.mark.parametrize("text", ["a = " + "[" * 5_000, "a." * 5_000 + "a = 1"])
def test_toml_that_is_nested_too_deeply_is_a_clear_error(tmp_path: Path, text: str) -> None:
    assert "is not TOML" in problems(tmp_path, text)[0]


@pytest.mark.parametrize(
    ("window", "complaint"),
    [
        ("{ }", "either `size`"),
        ('{ size = "5m" }', "lateness"),
        ('{ size = "5m", lateness = "0s", count = 5 }', "either `size`"),
        ('{ size = "5m", slide = "2m", lateness = "0s" }', "multiple of `slide`"),
        ('{ size = "0s", lateness = "0s" }', "above zero"),
        ('{ size = "36501d", lateness = "0s" }', "at most 36500d"),
        ('{ size = "' + "9" * 400 + 'd", lateness = "0s" }', "at most 36500d"),
        ("{ count = 0 }", "at least 1"),
        ('{ size = "5m", lateness = "0s", max_events = 0 }', "max_events"),
        ('{ size = "5m", lateness = "0s", seed = -1 }', "want `seed` from 0"),
        ("{ count = true }", "a whole number"),
    ],
)
def test_windows_that_cannot_be_cut_are_named(tmp_path: Path, window: str, complaint: str) -> None:
    found = problems(tmp_path, GOOD.replace('{ size = "5m", lateness = "30s" }', window))
    assert any(complaint in one for one in found)


def test_a_configuration_that_is_not_toml_or_not_there_is_a_clear_error(tmp_path: Path) -> None:
    assert "is not TOML" in problems(tmp_path, "[source")[0]
    with pytest.raises(ConfigurationError, match="cannot read the configuration"):
        load(tmp_path / "absent.toml")


def test_secrets_come_from_the_environment_or_from_files(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("s3cret\n", encoding="utf-8")
    found: list[str] = []
    table = {"sink": {"user": "${USER_NAME}", "password": f"${{file:{secret}}}", "more": ["${GONE}"]}}
    assert substituted(table, "", found, {"USER_NAME": "ann"}) == {
        "sink": {"user": "ann", "password": "s3cret", "more": [""]}
    }
    assert found == ["sink.more: the environment has no variable 'GONE'"]


def test_a_complaint_shows_where_a_secret_comes_from_and_not_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "hush")
    assert problems(tmp_path, GOOD + '[server]\ntoken = ["${TOKEN}"]\nport = "8${TOKEN}"\n') == [
        "server.port: want a whole number, got '8${TOKEN}'",
        "server.token: want a string, got ['${TOKEN}']",
    ]


def test_a_secret_file_that_cannot_be_read_is_a_problem_and_not_an_empty_secret() -> None:
    found: list[str] = []
    substituted({"password": "${file:/nowhere/at/all}"}, "", found, {})
    assert len(found) == 1
    assert "cannot read ${file:/nowhere/at/all}" in found[0]


@pytest.mark.parametrize(
    ("microseconds", "text"), [(0, "0s"), (300_000_000, "5m"), (90_000_000, "90s"), (250_000, "250ms"), (500, "0.5ms")]
)
def test_durations_are_written_as_they_are_read(microseconds: int, text: str) -> None:
    assert duration_text(microseconds) == text

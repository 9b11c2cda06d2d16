"""What stands on standard error: one format for the service, its connectors and the libraries below them."""

import json
import logging
from dataclasses import replace

import pytest

from monitor.observers.logs import Totals, log, logging_to_stderr
from monitor.observers.terminal import LiveTable
from monitor.service.notices import BatchTaken, Listening, Reassigned, RecordsRejected, WindowPublished
from tests.web.made_up import Story


def said(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_what_connectors_warn_of_comes_in_the_format_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr("json", "info"):
        logging.getLogger("connectors.kafka.topic_sink").warning("topic %s is not compacted", "feed")
        logging.getLogger("monitor.service.workers").debug("not at this level")
    (line,) = said(capsys)
    assert (line["level"], line["message"]) == ("warning", "topic feed is not compacted")


def test_a_library_that_repeats_itself_is_quoted_once_in_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    library = logging.getLogger("kafka.net.manager")
    with logging_to_stderr("json", "info"):
        for second in range(0, 150, 6):
            record = library.makeRecord(library.name, logging.ERROR, "", 0, "connection refused", (), None)
            record.created = float(second)
            library.handle(record)
    assert [(line["message"], line["library"], line["left_out"]) for line in said(capsys)] == [
        ("connection refused", "kafka.net.manager", 0),
        ("connection refused", "kafka.net.manager", 9),
        ("connection refused", "kafka.net.manager", 9),
    ]


def test_where_the_server_listens_is_said_in_log_and_live_table(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr("json", "info"):
        log(Listening("http://127.0.0.1:8321"))
    (line,) = said(capsys)
    assert (line["message"], line["address"]) == ("listening", "http://127.0.0.1:8321")
    table = LiveTable()
    assert "status page" not in str(table.__rich__().caption)
    table(Listening("http://127.0.0.1:8321"))
    assert str(table.__rich__().caption).endswith("status page: http://127.0.0.1:8321")


def test_a_refused_commit_is_a_warning_that_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to_stderr("json", "info"):
        log(Reassigned(refused="the group moved on"))
    (line,) = said(capsys)
    assert (line["level"], line["message"], line["reason"]) == ("warning", "commit refused", "the group moved on")


def test_afterwards_the_loggers_are_as_they_were(capsys: pytest.CaptureFixture[str]) -> None:
    loggers = [logging.getLogger(name) for name in ("shiftwatch", "monitor", "connectors", "kafka")]
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    with logging_to_stderr("text", "debug"):
        assert all(logger.handlers for logger in loggers)
    assert [(logger.level, list(logger.handlers)) for logger in loggers] == before


def test_the_last_line_counts_what_no_window_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    totals = Totals()
    with logging_to_stderr("json", "info"):
        for _ in range(2):
            totals(BatchTaken("p", 9, {"s": 6}, {("s", "not-json"): 3}, {"s": 4}, {"s": 1}, 0))
        totals.log()
    (line,) = said(capsys)
    del line["time"]
    counts = {"events": 12, "windows": 0, "late": 10, "rejected": 6, "not-json": 6}
    assert line == {"level": "info", "message": "ended"} | counts


def test_what_others_publish_is_counted_by_the_last_line_and_the_live_table(capsys: pytest.CaptureFixture[str]) -> None:
    story, totals, table = Story(), Totals(), LiveTable()
    story.window()
    whole = WindowPublished(story.last.reading)
    story.window(segment="be")
    segment = WindowPublished(replace(whole.reading, key=replace(story.key, segment="be")))
    happenings = [whole, segment, RecordsRejected({("made-up", "not-json"): 3})]
    for happening in happenings:
        totals(happening)
        table(happening)
    with logging_to_stderr("json", "info"):
        totals.log()
    (line,) = said(capsys)
    del line["time"]
    events, late = whole.reading.events + whole.reading.sampled_out, whole.reading.late
    counts = {"events": events, "windows": 2, "late": late, "rejected": 3, "not-json": 3}
    assert line == {"level": "info", "message": "ended"} | counts
    assert events > 0
    assert f"{events:,} events, 0 in open windows, {late:,} late, 3 rejected" in str(table.__rich__().caption)


@pytest.mark.parametrize(("rejected", "late", "level"), [(3, 0, "warning"), (0, 2, "warning"), (0, 0, "info")])
def test_a_run_in_which_no_event_found_its_window_ends_with_a_warning(
    capsys: pytest.CaptureFixture[str], rejected: int, late: int, level: str
) -> None:
    totals = Totals()
    with logging_to_stderr("json", "info"):
        totals(BatchTaken("p", 9, {"s": late}, {("", "unknown-stream"): rejected}, {"s": late}, {}, 0))
        totals.log()
    assert said(capsys)[0]["level"] == level

"""Watchdogs: a hanging call and a stalled partition are noticed, a quiet one is not."""

import threading

import pytest

from connectors.kafka.driver import Partition
from connectors.kafka.watchdog import Guard, Stalls, within

A, B = Partition("t", 0), Partition("t", 1)


def test_a_call_that_does_not_come_back_is_reported() -> None:
    reported, heard = [], threading.Event()

    def on_hang(message: str) -> None:
        reported.append(message)
        heard.set()

    guard = Guard(on_hang, period=0.01)
    with guard.limit("a poll", 0.02):
        assert heard.wait(5)
    guard.close()
    assert reported == ["a poll did not return within 0 s: ending the process; a restart goes on where it stood"]


def test_a_call_that_comes_back_is_not() -> None:
    reported: list[str] = []
    now = [0.0]
    guard = Guard(reported.append, clock=lambda: now[0], period=0.01)
    with guard.limit("a poll", 10):
        now[0] = 9.0
    now[0] = 1000.0
    guard.close()
    assert not reported


def test_a_call_has_so_much_time_to_answer_or_to_fail() -> None:
    assert within(5, lambda: 1) == 1
    with pytest.raises(ZeroDivisionError):
        within(5, lambda: 1 // 0)
    never = threading.Event()
    with pytest.raises(TimeoutError):
        within(0.01, never.wait)
    never.set()


def test_a_partition_with_records_that_does_not_move_is_stalled() -> None:
    stalls = Stalls(patience=10)
    assert stalls.suspects({A: 5, B: 5}, now=0) == []
    assert stalls.suspects({A: 5, B: 6}, now=6) == [A]
    assert stalls.stalled({A: 9}, now=6) == []
    assert stalls.suspects({A: 5, B: 7}, now=11) == [A]
    assert stalls.stalled({A: 9}, now=11) == [A]


def test_a_partition_at_its_end_waits_for_nothing() -> None:
    stalls = Stalls(patience=10)
    stalls.suspects({A: 5}, now=0)
    assert stalls.suspects({A: 5}, now=11) == [A]
    assert stalls.stalled({A: 5}, now=11) == []
    assert stalls.suspects({A: 5}, now=13) == []


def test_silence_about_the_end_counts_as_stalled() -> None:
    stalls = Stalls(patience=10)
    stalls.suspects({A: None}, now=0)
    assert stalls.suspects({A: None}, now=11) == [A]
    assert stalls.stalled({A: None}, now=11) == [A]


def test_a_partition_that_went_away_is_forgotten() -> None:
    stalls = Stalls(patience=10)
    stalls.suspects({A: 5}, now=0)
    stalls.suspects({}, now=5)
    assert stalls.suspects({A: 5}, now=11) == []


def test_how_long_records_have_waited_begins_anew_with_every_record_that_is_read() -> None:
    stalls = Stalls(patience=10)
    assert stalls.longest({A: 5, B: 5}, now=0) == 0
    assert stalls.longest({A: 5, B: 6}, now=4) == 4
    assert stalls.longest({A: 6, B: 6}, now=6) == 2
    assert stalls.longest({A: 6}, now=9) == 3
    assert stalls.longest({}, now=11) == 0
    assert stalls.longest({A: 6}, now=20) == 0

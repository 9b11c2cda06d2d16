"""The contract, on every connector that needs nothing but this machine's files and memory."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.connectors.contract import SinkContract, SourceContract, assert_published
from tests.connectors.harness import SINKS, SOURCES, SinkCase, SourceCase


class TestSources(SourceContract):
    @pytest.fixture(params=SOURCES)
    def source(self, request: pytest.FixtureRequest, tmp_path: Path) -> SourceCase:
        return SOURCES[request.param](tmp_path)


class TestSinks(SinkContract):
    @pytest.fixture(params=SINKS)
    def sink(self, request: pytest.FixtureRequest, tmp_path: Path) -> SinkCase:
        return SINKS[request.param](tmp_path)


@pytest.mark.parametrize("kind", SINKS)
def test_any_course_of_writes_commits_and_crashes_publishes_what_was_committed(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    @settings(max_examples=25, deadline=None)
    @given(st.text("wwcx", max_size=25))
    def follow(course: str) -> None:
        assert_published(SINKS[kind](tmp_path_factory.mktemp("course")), course)

    follow()

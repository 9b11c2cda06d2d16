"""The guard of speed says what became slower, and keeps quiet about noise."""

from tests.bench.options import REPORTS
from tests.bench.ratios import MEASURES, beyond, read


def test_only_what_is_worse_beyond_noise_is_said() -> None:
    kept = {"sort": 2.0, "decode": 4.0, "gone": 1.0}
    assert beyond({"sort": 2.5, "decode": 3.0, "new": 9.0}, kept) == {}
    assert list(beyond({"sort": 2.7, "decode": 4.1}, kept).values()) == ["sort: 2.70, 2.00 in the last report"]


def test_the_report_has_every_ratio_that_is_measured_of_streams() -> None:
    names = [what for what, *_ in MEASURES[1](1)]
    assert set(names) <= read(REPORTS / "ratios.md").keys()

"""How right the monitor is on streams in time order, real and made up; `python -m tests.bench.streams`."""

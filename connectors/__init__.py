"""Sources and sinks: what feeds the monitor, and where its answers go.

A connector is one module with `source` and `sink` functions (or one of them), and an entry point of the group
`shiftwatch.connectors` that gives it the scheme of its URLs. Those of this package have their lines in pyproject.toml.
"""

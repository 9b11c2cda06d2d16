"""Sources and sinks: what feeds the monitor, and where its answers go."""

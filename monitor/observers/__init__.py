"""Who is told what the service does: metrics, log, terminal, history, alarms."""

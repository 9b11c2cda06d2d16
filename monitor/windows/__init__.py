"""From columns of events to closed windows."""

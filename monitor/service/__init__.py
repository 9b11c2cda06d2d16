"""The loop: source, windows, assessments, sink, and what is committed when."""

"""Late labels: windows wait on disk until what their events really were has come, and then say how they had fared.

values     what waits, and what comes
store      both on disk, in SQLite, keyed by where they came from
rows       a window's columns as bytes
numbering  class numbers of one reference in those of another
joining    which label holds for which row
outcomes   the message about a window whose labels have come
trust      whether the last outcomes bear the estimates out
"""

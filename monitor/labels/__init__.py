"""Late labels: windows wait on disk until what their events really were has come, and then say how they had fared.

store      what waits, in SQLite: windows and labels, keyed by where they came from
rows       a window's columns as bytes
numbering  class numbers of one reference in those of another
joining    which label holds for which row
outcomes   the message about a window whose labels have come
trust      whether the last outcomes bear the estimates out
ledger     the part of the service's loop that labels take
"""

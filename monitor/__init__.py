"""Shiftwatch: has the class mix of a scored stream moved, how far, and what to do about it."""

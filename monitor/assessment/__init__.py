"""From a window and a reference to a verdict, its reasons and its message."""

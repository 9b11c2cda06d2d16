"""From raw records to columns of events, or rejections with a named reason."""

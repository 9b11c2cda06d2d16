"""What the model looked like on labelled hold-out data: built, saved, loaded, described."""

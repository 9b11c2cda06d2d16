"""One typed configuration."""

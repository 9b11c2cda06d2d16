"""HTTP: metrics, health, API, status page."""

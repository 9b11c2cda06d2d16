"""One typed configuration."""

from monitor.settings.config import Config, ServerSettings, StreamSettings, load

__all__ = [
    "Config",
    "ServerSettings",
    "StreamSettings",
    "load",
]

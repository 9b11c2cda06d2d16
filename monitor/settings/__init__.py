"""One typed configuration."""

from monitor.settings.config import Config, PerformanceSettings, StreamSettings, load
from monitor.settings.looking_on import OtlpSettings, ServerSettings

__all__ = [
    "Config",
    "OtlpSettings",
    "PerformanceSettings",
    "ServerSettings",
    "StreamSettings",
    "load",
]

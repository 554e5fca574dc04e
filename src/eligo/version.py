"""The version, alone, so that `eligo --version` and the build read it without importing anything."""

__version__ = "0.1.0"

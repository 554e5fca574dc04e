"""The version, alone, so that `eligo --version` and the build read it without importing anything."""

__version__ = "0.1.0"

#: of the JSON documents that the command prints: increased if a key is removed or changes its meaning
SCHEMA = 2

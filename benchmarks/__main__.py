"""Run every benchmark, or those named: `python -m benchmarks foundation`."""

import sys
from importlib import import_module

from eligo.cli import version

EVERY = ("foundation", "planner", "formats", "batches", "clusters", "policies")

print(version().strip())
for name in sys.argv[1:] or EVERY:
    import_module(f"benchmarks.{name}").run()

"""Run every benchmark, or those named: `python -m benchmarks foundation`."""

import sys
from importlib import import_module

from eligo.cli.output import version_line

EVERY = (
    "foundation",
    "planner",
    "verifying",
    "formats",
    "batches",
    "clusters",
    "live",
    "finishing",
    "policies",
    "space",
    "running",
    "stores",
    "serving",
    "serving_postgres",
    "serving_memory",
    "serving_many",
    "leaves",
    "slow_clients",
    "stalls",
    "locality",
    "space_limit",
)

print(version_line().strip())
for name in sys.argv[1:] or EVERY:
    import_module(f"benchmarks.{name}").run()

"""Snakemake's own schedulers beside eligo's plug-in: the cost of a choice, and how long rehearsed workflows take.

Needs Snakemake in the environment that runs it: `python -m benchmarks.plugins_snakemake choices` and
`... workflows FILE ...`.

Choices are measured in a real run of Snakemake, with its own graph and its own jobs. A stand-in for the requested scheduler
passes its input to each contestant in turn, and then ends the run before any job starts. So a figure is the time of one
call of `select_jobs` with one core free, as when a job has ended. It is CPU time, because other programs may run on the
machine, too.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import plugins_turns as turns
from benchmarks.timing import heading, row, verdict
from eligo.formats import read
from eligo.workflow import Workflow

SAMPLES = 10_000  # of five jobs each, one of which is ready
MOST_SECONDS = 0.005
CALLS = {"eligo": 50, "greedy": 5, "ilp": 1}
CORES = 8
LONGEST = 900
ROUNDS = 3
WHOLE = 15.0  # seconds for which all cores would be busy

FIVE = f"""
rule all:
    input: expand("e/{{i}}", i=range({SAMPLES}))
rule a:
    output: "a/{{i}}"
rule b:
    input: "a/{{i}}"
    output: "b/{{i}}"
rule c:
    input: "a/{{i}}"
    output: "c/{{i}}"
rule d:
    input: "b/{{i}}", "c/{{i}}"
    output: "d/{{i}}"
rule e:
    input: "d/{{i}}"
    output: "e/{{i}}"
"""
MEASURING = """
from snakemake_interface_scheduler_plugins.base import SchedulerBase
from benchmarks.plugins_snakemake import compare
class Scheduler(SchedulerBase):
    def select_jobs(self, selectable_jobs, remaining_jobs, available_resources, input_sizes):
        compare(self, selectable_jobs, remaining_jobs, dict(available_resources), input_sizes)
        raise KeyboardInterrupt
"""


def compare(here: Any, ready: set[Any], remaining: list[Any], free: dict[str, int], sizes: dict[Any, int]) -> None:
    """The time of each contestant for the same choices, measured within Snakemake."""
    from snakemake.scheduling import greedy, milp

    import snakemake_scheduler_plugin_eligo as eligo_plugin

    widths = (8, 10, 14, 14, 14)
    columns = ("", "calls", "first, ms", "median, ms", "most, ms")
    heading(f"a choice among {len(ready):,} ready of {len(remaining):,} jobs", columns, widths)
    for name, module in {"eligo": eligo_plugin, "greedy": greedy, "ilp": milp}.items():
        scheduler = module.Scheduler(here.dag, module.SchedulerSettings(), here.logger)
        first, *times = list(_timed(scheduler, set(ready), list(remaining), free | {"_cores": 1}, sizes, CALLS[name]))
        later = times or [first]
        row((name, len(times), first * 1e3, statistics.median(later) * 1e3, max(later) * 1e3), widths)
        if name == "eligo":
            print(f"at most {MOST_SECONDS * 1e3:g} ms a call after the first: {verdict(max(later) <= MOST_SECONDS)}")


def _timed(  # noqa: PLR0913, PLR0917
    scheduler: Any, ready: set[Any], remaining: list[Any], free: dict[str, int], sizes: dict[Any, int], calls: int
) -> Iterator[float]:
    """The seconds of the first call and of each later one, without the job chosen before and with two new ones."""
    later = [ready.pop() for _ in range(2 * calls + 2)]
    for _ in range(calls + 1):
        ready.update((later.pop(), later.pop()))
        now = set(ready)  # as Snakemake makes it every time
        begin = _cpu()
        chosen = scheduler.select_jobs(now, remaining, free, sizes) or []
        yield _cpu() - begin
        ready.difference_update(chosen)
        gone = set(chosen)
        remaining = [job for job in remaining if job not in gone]


def _cpu() -> float:
    """The CPU seconds of this process and of those that it has waited for, such as a solver."""
    spent = os.times()
    return time.process_time() + spent.children_user + spent.children_system


def choices() -> None:
    """Run Snakemake on fifty thousand jobs as far as its first choice."""
    with tempfile.TemporaryDirectory() as place:
        plugin = Path(place, "snakemake_scheduler_plugin_measuring", "__init__.py")
        plugin.parent.mkdir()
        plugin.write_text(MEASURING, "utf-8")
        Path(place, "Snakefile").write_text(FIVE, "utf-8")
        paths = os.pathsep.join([place, os.getcwd(), os.environ.get("PYTHONPATH", "")])
        _snakemake(place, "--scheduler", "measuring", "--cores", "1", "--quiet", "all", PYTHONPATH=paths)


def workflows(*files: str) -> None:
    """Run real workflows as sleeps under every scheduler; eligo also with their run times."""
    ways = {"ilp": ("ilp",), "greedy": ("greedy",), "eligo": ("eligo",),
            "eligo, times": ("eligo", "--scheduler-eligo-history", "took.csv")}  # fmt: skip
    flows = {Path(file).name: read(file) for file in files}
    runs = [(name, len(flow), lambda way, flow=flow: rehearsed(flow, ways[way])) for name, flow in flows.items()]
    turns.compare(f"Snakemake, {CORES} cores, {WHOLE:g} s of work each", runs, list(ways), ROUNDS)


def rehearsed(flow: Workflow, words: tuple[str, ...]) -> float:
    """The seconds from the start of the first job to the end of the last."""
    with tempfile.TemporaryDirectory() as place:
        seconds = {name: flow.task(name).seconds or 0.0 for name in flow.dag.tasks}
        scale = WHOLE * CORES / sum(seconds.values())
        Path(place, "Snakefile").write_text(snakefile(flow, {t: s * scale for t, s in seconds.items()}), "utf-8")
        told = "".join(f"r{i},{s * scale}\n" for i, s in enumerate(seconds.values()))
        Path(place, "took.csv").write_text(f"kind,seconds\n{told}", "utf-8")
        _snakemake(place, "--cores", str(CORES), "--quiet", "all", "--latency-wait", "1", "--scheduler", *words)
        times = [float(line) for line in Path(place, "times").read_text("utf-8").split()]
    return max(times) - min(times)


def snakefile(flow: Workflow, seconds: dict[Any, float]) -> str:
    """A Snakefile with a rule for every task, which sleeps and records its start and end."""
    number = {name: i for i, name in enumerate(flow.dag.tasks)}
    rules = [f"rule all:\n    input: {', '.join(repr(f'done/{i}') for i in number.values())}\n"]
    for name, i in number.items():
        needed = "".join(f"'done/{number[parent]}', " for parent in flow.dag.parents(name))
        shell = f"date +%s.%N >> times; sleep {seconds[name]:.3f}; touch {{output}}; date +%s.%N >> times"
        rules.append(f"rule r{i}:\n    input: {needed or '[]'}\n    output: 'done/{i}'\n    shell: '{shell}'\n")
    return "".join(rules)


def _snakemake(place: str, *words: str, **env: str) -> None:
    command = [sys.executable, "-m", "snakemake", *words]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(command, cwd=place, env=os.environ | {"PATH": path} | env, timeout=LONGEST, check=False)


if __name__ == "__main__":
    {"choices": choices, "workflows": workflows}[sys.argv[1]](*sys.argv[2:])

"""Running: the cost of a command that does nothing, on this machine beside other runners, and on Dask, Ray and Parsl.

Also the cost of a Python function that does nothing.

Every figure comes from a process of its own. CPU is that of the runner and all that it starts; what a bare loop of spawns
takes in the same minute is taken off. Others may run on the machine too: compare columns, not absolute times.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.timing import heading, peak_kilobytes, row, verdict
from eligo import families
from eligo.allocating import allocator
from eligo.dag import Dag
from eligo.engines import Command, Job
from eligo.engines.job_run import perform
from eligo.engines.registry import engine_on
from eligo.execution import Execution
from eligo.running import run as run_functions
from eligo.running.commands import Commands
from eligo.running.folder import LOGS, RunFolder
from eligo.running.loop import Runner
from eligo.workflow import Task, Workflow

TASKS, FEWER, REMOTE, FUNCTIONS = 10_000, 1_500, 500, 100_000
ROUNDS = 4  # on other engines, of which the best counts, of either side
SLOTS = 2
LAYER = 10
MOST_CPU, MOST_MEGABYTES, MOST_REMOTE, MOST_FUNCTION = 0.15, 100, 0.3, 0.03
MOST_RATIO, MOST_IDLE = 1.6, 2.0
TRUE = "/bin/true"
LONGEST = 120  # seconds for one figure


def shapes(n: int) -> dict[str, Dag]:
    """Three workflows of about n tasks."""
    side = round(n**0.5)
    chains = [(f"c{i}.{j}", f"c{i}.{j + 1}") for i in range(side) for j in range(side - 1)]
    return {
        "independent": Dag.from_arcs([], [f"t{i}" for i in range(side * side)]),
        "chains": Dag.from_arcs(chains),
        "layered": families.random_layered(side, side, seed=1),
    }


# What is measured, each in a process of its own


def spawns(shape: str, n: int) -> dict[str, float]:
    """A bare loop of spawns: the minimum for any runner."""

    def loop() -> None:
        out = 0
        for _ in range(n):
            if out == SLOTS:
                os.wait()
                out -= 1
            os.posix_spawn(TRUE, [TRUE], os.environ)
            out += 1
        for _ in range(out):
            os.wait()

    return _measured(loop, n)


def local(shape: str, n: int) -> dict[str, float]:
    """Durable, as `eligo run` does it: a folder with a journal and logs."""
    dag = shapes(n)[shape]
    flow = Workflow(dag, {name: Task(name=name, command=TRUE) for name in dag.tasks})
    with tempfile.TemporaryDirectory() as place:
        folder = RunFolder(Path(place) / "run")
        folder.begin(flow, resumed := folder.resume(flow))
        game = resumed.execution
        commands = Commands(flow, os.getcwd(), folder.logs)
        commands.make_folders()
        engine = engine_on("local", SLOTS, scratch=f"{folder.logs}/{LOGS}")
        runner = Runner(game, allocator("finish", flow, game, rules=None), engine, commands, folder.store)
        found = _measured(runner.run, len(dag))
        engine.close()
        folder.close()
    assert len(game.executed) == len(dag)
    return found


def function(shape: str, n: int) -> dict[str, float]:
    """Python functions that do nothing, in threads; and the part of planning in their CPU time."""
    dag = shapes(n)[shape]
    planning = _measured(lambda: allocator("finish", dag, rules=None), len(dag))["cpu"]
    return {**_measured(lambda: run_functions(dag, lambda task: None, workers=SLOTS), len(dag)), "planning": planning}


def _measured(work: Callable[[], object], n: int) -> dict[str, float]:
    def cpu() -> float:
        kinds = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(used.ru_utime + used.ru_stime for used in kinds)

    first, before, begin = peak_kilobytes() / 1e3, cpu(), time.perf_counter()
    work()
    wall = time.perf_counter() - begin
    used = (cpu() - before) / n * 1e3
    return {"wall": wall / n * 1e3, "cpu": used, "peak": peak_kilobytes() / 1e3, "first": first}


def remote(name: str, n: int) -> dict[str, float]:
    """The same commands on an engine's own cluster: handed over all at once by the engine's own calls, and run here."""
    name, _, joined = name.partition("=")
    own: Any = engine_on(name, SLOTS)
    engine: Any = engine_on(f"{name}={own.address}", SLOTS) if joined else own
    works = (Command((TRUE,), "/"),)
    dag = shapes(n)["independent"]
    bare: dict[str, Callable[[], object]] = {
        "dask": lambda: engine._client.gather(
            [engine._client.submit(perform, works, None, pure=False) for _ in range(n)]
        ),
        "ray": lambda: engine._ray.get([engine._remote(1.0, 0.0).remote((works, None)) for _ in range(n)]),
        "parsl": lambda: [future.result() for future in [engine._app((works, None, ""), "/nobody") for _ in range(n)]],
    }

    def ours() -> None:
        game = Execution(dag)
        runner = Runner(game, allocator("finish", dag, game, rules=None), engine, lambda task, attempt: works[0])
        runner.run()
        assert len(game.executed) == len(dag)

    for _ in range(20):  # until the workers are there and warm
        engine.start(Job(0, engine.asks()[0].client, ("a",), works))
        engine.wait(None)
    rounds = [(_measured(bare[name], n)["wall"], _measured(ours, len(dag))["wall"]) for _ in range(ROUNDS)]
    for each in {engine, own}:
        each.close()
    return {"bare": min(each[0] for each in rounds), "ours": min(each[1] for each in rounds)}


# Peers, where they are installed


def make_words(dag: Dag, folder: Path) -> list[str]:
    """A Makefile, and how it is run."""
    rules = "".join(f"{task}:{_needed(dag, task)}\n\t@{TRUE}\n" for task in dag.tasks)
    everything = " ".join(map(str, dag.tasks))
    folder.joinpath("Makefile").write_text(f".PHONY: all {everything}\nall: {everything}\n{rules}", "utf-8")
    return ["make", "-s", f"-j{SLOTS}", "all"]


def ninja_words(dag: Dag, folder: Path) -> list[str]:
    """A build.ninja, and how it is run; it always starts a shell."""
    lines = [f"build {task}: r{_needed(dag, task)}\n" for task in dag.tasks]
    folder.joinpath("build.ninja").write_text(f"rule r\n  command = {TRUE}\n{''.join(lines)}", "utf-8")
    return ["ninja", "--quiet", f"-j{SLOTS}"]


def _needed(dag: Dag, task: Any) -> str:
    return "".join(f" {parent}" for parent in dag.named(dag.parents_of(dag.number(task))))


PEERS: dict[str, Callable[[Dag, Path], list[str]]] = {"make": make_words, "ninja": ninja_words}


def peer(name: str, shape: str, n: int) -> dict[str, float]:
    """The cost of another runner."""
    dag = shapes(n)[shape]
    with tempfile.TemporaryDirectory() as place:
        words = PEERS[name](dag, Path(place))
        peak = [0.0]

        def watched() -> None:
            with subprocess.Popen(words, cwd=place, stdout=subprocess.DEVNULL) as process:
                while process.poll() is None:
                    peak[0] = max(peak[0], _peak_of(process.pid))
                    time.sleep(0.02)
            assert process.returncode == 0

        found = _measured(watched, len(dag))
    return {**found, "peak": peak[0]}


def _peak_of(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return max([0.0, *(int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM"))])


# The command as a whole


def whole(layers: int) -> dict[str, float]:
    """`eligo run` of layers of ten tasks, with all that it starts and writes, beside xargs, in turns."""
    names = [[f"t{layer}.{place}" for place in range(LAYER)] for layer in range(layers)]
    rows = [
        {"name": name, "run": TRUE, "after": names[layer - 1] if layer else []}
        for layer, row in enumerate(names)
        for name in row
    ]
    words = "\n".join(name for row in names for name in row).encode()
    bare, ours = [], []
    for _ in range(ROUNDS):
        bare.append(_cpu_of(["xargs", f"-P{SLOTS}", "-n1", TRUE], input=words))
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "flow.json")
            path.write_text(json.dumps({"tasks": rows}), "utf-8")
            ours.append(_cpu_of(_eligo_words(path)))
    return {"bare": min(bare), "ours": min(ours)}


def finished(n: int) -> dict[str, float]:
    """`eligo run` of a run in which nothing is left to do; its tasks are done by the shell's null command, in no time."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place, "flow.json")
        path.write_text(json.dumps({"tasks": [{"name": f"t{i}", "run": ":"} for i in range(n)]}), "utf-8")
        _cpu_of(_eligo_words(path))
        return {"ours": min(_cpu_of(_eligo_words(path)) for _ in range(ROUNDS))}


def _eligo_words(path: Path) -> list[str]:
    return [sys.executable, "-m", "eligo", "run", str(path), "-q", "-j", str(SLOTS)]


def _cpu_of(words: Sequence[str], input: bytes = b"") -> float:
    """The seconds of CPU of a command and all that it starts."""

    def cpu() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    before, environment = cpu(), {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # an installed package is compiled once
    subprocess.run(
        words, input=input, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return cpu() - before


# The tables


def run() -> None:
    """Print the figures."""
    command()
    here()
    functions()
    elsewhere()


def command() -> None:
    """The command as a whole, from its start to its report."""
    widths = (44, 12, 12, 9, 8)
    heading("CPU of the whole command", ("what", "xargs s", "eligo s", "ratio", ""), widths)
    layers = fresh("whole", 100)
    ratio = layers["ours"] / layers["bare"]
    row(("1,000 tasks in layers of 10", layers["bare"], layers["ours"], ratio, verdict(ratio <= MOST_RATIO)), widths)
    idle = fresh("finished", 100_000)["ours"]
    row(("nothing left to do in 100,000 tasks", "", idle, "", verdict(idle <= MOST_IDLE)), widths)
    print(f"targets: at most {MOST_RATIO} times xargs, and {MOST_IDLE} s")


def here() -> None:
    """Commands on this machine."""
    widths = (12, 16, 7, 14, 8, 14, 10, 10, 8)
    columns = ("shape", "runner", "tasks", "wall ms a task", "CPU ms", "CPU ms beyond", "planned MB", "peak MB", "")
    heading(f"Commands that do nothing, {SLOTS} at a time", columns, widths)
    bare = ("spawns", "independent", FEWER)
    for shape in shapes(100):
        before, ours, after = (fresh(*words) for words in (bare, ("local", shape, TASKS), bare))
        floor = min(before, after, key=lambda each: each["cpu"])
        row((shape, "bare spawns", FEWER, floor["wall"], floor["cpu"], "", "", "", ""), widths)
        beyond = ours["cpu"] - floor["cpu"]
        met = verdict(beyond <= MOST_CPU and ours["peak"] <= MOST_MEGABYTES)
        figures = (ours["wall"], ours["cpu"], beyond, ours["first"], ours["peak"])
        row((shape, "eligo, durable", TASKS, *figures, met), widths)
        for name in filter(shutil.which, PEERS):
            other = fresh("peer", name, shape, FEWER)
            beyond = other["cpu"] - floor["cpu"]
            row((shape, name, FEWER, other["wall"], other["cpu"], beyond, "", other["peak"], ""), widths)
    print(f"targets: at most {MOST_CPU} ms CPU a task beyond the spawn, and {MOST_MEGABYTES} MB")


def functions() -> None:
    """Python functions in threads of this process."""
    widths = (12, 8, 14, 8, 16, 10, 8)
    columns = ("shape", "tasks", "wall ms a task", "CPU ms", "CPU ms planning", "peak MB", "")
    heading("Python functions that do nothing", columns, widths)
    for shape in shapes(100):
        found = fresh("function", shape, FUNCTIONS)
        met = verdict(found["cpu"] - found["planning"] <= MOST_FUNCTION)
        row((shape, FUNCTIONS, found["wall"], found["cpu"], found["planning"], found["peak"], met), widths)
    print(f"target: at most {MOST_FUNCTION} ms CPU a task beyond planning")


def elsewhere() -> None:
    """Commands on other engines' workers, beside those engines' own calls; each in a network that has only loopback."""
    widths = (12, 8, 16, 16, 12, 9)
    heading("On other engines", ("engine", "tasks", "bare wall ms", "eligo wall ms", "beyond", ""), widths)
    for name in ("dask", "dask=joined", "ray", "parsl"):
        try:
            found = fresh("remote", name, REMOTE, alone=True)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            print(f"{name}: not measured: {str(error).splitlines()[-1][:100]}")
            continue
        beyond = found["ours"] - found["bare"]
        row((name, REMOTE, found["bare"], found["ours"], beyond, verdict(beyond <= MOST_REMOTE)), widths)
    print(f"target: at most {MOST_REMOTE} ms a task beyond handing over all at once, which leaves no order to choose")


ALONE = (
    "unshare",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "sh",
    "-c",
    'ip link set lo up; exec "$@"',
    "",
)


def fresh(*words: object, alone: bool = False) -> dict[str, float]:
    """A figure, measured in a separate process."""
    command = [*(ALONE if alone else ()), sys.executable, "-m", "benchmarks.running", *map(str, words)]
    said = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=LONGEST, stdin=subprocess.DEVNULL
    )
    found: dict[str, float] = json.loads(said.stdout.splitlines()[-1])
    return found


def _arguments(words: Sequence[str]) -> Iterator[object]:
    return (int(word) if word.isdigit() else word for word in words)


if __name__ == "__main__":
    measures: dict[str, Callable[..., dict[str, float]]] = {
        "spawns": spawns, "local": local, "function": function, "peer": peer, "remote": remote, "whole": whole,
        "finished": finished,
    }  # fmt: skip
    print(json.dumps(measures[sys.argv[1]](*_arguments(sys.argv[2:]))))

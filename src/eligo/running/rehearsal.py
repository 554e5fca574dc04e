"""A rehearsal: every task sleeps for its estimated time, scaled down, on the real engine.

None of the user's commands run and no files are touched; the state is in a temporary folder. The order, the engine and its
overheads are real, and only the work is not.
"""

import math
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eligo.allocating import ALLOCATORS
from eligo.engines import Engine
from eligo.engines.registry import shares_machine
from eligo.engines.room import in_gibibytes, machine_memory
from eligo.errors import InputError, shorten
from eligo.estimates import Estimate, estimate, kind_of
from eligo.pools import Pool
from eligo.running.api import execute, prepare_run
from eligo.running.folder import RunFolder
from eligo.running.loop import Runner, Settings
from eligo.work.demands import MEMORY
from eligo.workflow import Task, Workflow

SLEEP = "sleep"
#: seconds to start a process, which predictions do not include: rehearsals of much shorter tasks say little
START = 0.003


@dataclass(frozen=True)
class Rehearsal:
    """The result of rehearsing one policy. Times are in seconds of the workflow, *lasted* in seconds of the clock."""

    policy: str
    #: time of the workflow, extrapolated from the rehearsal
    makespan: float
    #: time by the simulator; None if it does not support this policy
    predicted: float | None
    lasted: float

    @property
    def ratio(self) -> float | None:
        """The rehearsal's time over the predicted one."""
        return self.makespan / self.predicted if self.predicted else None

    def document(self) -> dict[str, Any]:
        """The rehearsal as plain data, for JSON."""
        return {**vars(self), "ratio": self.ratio}


@dataclass(frozen=True)
class Stage:
    """A workflow ready to be rehearsed: its tasks sleep for *scale* times their estimated time."""

    flow: Workflow
    estimates: Estimate
    scale: float
    settings: Settings

    @property
    def memory(self) -> int:
        """The memory of this machine, or what the largest task needs: the tasks only sleep."""
        return max(machine_memory(), *(memory or 0 for memory in self.flow.column("memory")))

    @property
    def remarks(self) -> list[str]:
        """Sentences about limits of the results."""
        sentences, count = [], int((~self.estimates.own).sum())
        if count:
            sentences.append(
                f"{count:,} task{' has' if count == 1 else 's have'} no run time of their own: using the mean of their kind"
            )
        mean = self.scale * math.fsum(self.estimates.seconds) / max(1, len(self.estimates.seconds))
        if mean < 10 * START:
            sentences.append(
                f"tasks sleep only {1000 * mean:.3g} ms on average, so start-up time dominates: give --rehearse more seconds"
            )
        if self.memory > machine_memory() and MEMORY not in self.settings.resources:
            sentences.append(f"a task needs {in_gibibytes(self.memory)} of memory, so tasks share that much")
        return sentences


def build_stage(flow: Workflow, settings: Settings, seconds: float) -> Stage:
    """The workflow with sleeps as tasks, scaled so that the simulator predicts about this many seconds in total."""
    if not 0 < seconds < math.inf:
        raise InputError(f"--rehearse must be positive, got {seconds!r}")
    estimates, sleep = estimate(flow), shutil.which(SLEEP)
    if estimates.level == "nothing" or not estimates.seconds.any():
        raise InputError("--rehearse needs run times, and none are known").cured_by("history")
    if sleep is None:
        raise InputError("--rehearse needs the program sleep, which is not on the PATH")
    timed = dict(zip(flow.dag.tasks, estimates.seconds.tolist(), strict=True))
    real = replace(
        flow, details={name: _task_with_time(flow.task(name), took) for name, took in timed.items()}, history=()
    )
    scale = seconds / predicted(
        real, settings.slots, settings.policy if settings.policy not in ALLOCATORS else "finish"
    )
    asleep = {name: replace(real.task(name), command=(sleep, f"{took * scale:.6f}")) for name, took in timed.items()}
    return Stage(replace(real, details=asleep), estimates, scale, settings)


def _task_with_time(task: Task, seconds: float) -> Task:
    """The details of a task that affect a rehearsal, with this run time."""
    return Task(
        name=task.name, seconds=seconds, cores=task.cores, memory=task.memory, resources=task.resources,
        category=kind_of(task), priority=task.priority,
    )  # fmt: skip


def predicted(flow: Workflow, workers: int, policy: str) -> float:
    """The predicted finish by the simulator, which breaks ties like a run, and counts cores if a task needs several."""
    from eligo.simulation.steady import finish_on

    pool = Pool(cores=workers) if max((cores or 1 for cores in flow.column("cores")), default=1) > 1 else workers
    return finish_on(flow, pool, policy, improve=False).makespan


def rehearse(
    stage: Stage,
    on: "str | Executor | Engine",
    policies: Sequence[str],
    around: Callable[[Runner], AbstractContextManager[object]] = nullcontext,
    beside: Callable[[Path], AbstractContextManager[object]] = nullcontext,
) -> list[Rehearsal]:
    """Rehearse one policy after another; if one is stopped, it and those after it are left out.

    *around* returns a context manager for each run, for example a display, and *beside* one for its folder, which is left
    only when everything is stored.
    """
    rehearsals: list[Rehearsal] = []
    for policy in policies:
        foreseen = None if policy in ALLOCATORS else predicted(stage.flow, stage.settings.slots, policy)
        lasted = _rehearse_policy(stage, on, policy, around, beside)
        if lasted is None:
            break
        rehearsals.append(Rehearsal(policy, lasted / stage.scale, foreseen, lasted))
    return rehearsals


def _rehearse_policy(
    stage: Stage,
    on: "str | Executor | Engine",
    policy: str,
    around: Callable[[Runner], AbstractContextManager[object]],
    beside: Callable[[Path], AbstractContextManager[object]],
) -> float | None:
    """The duration of one rehearsal in seconds; None if it was stopped."""
    path = stage.flow.origin.path if stage.flow.origin else None
    shared = (
        None if on == "local" or not path else os.path.dirname(os.path.abspath(path))
    )  # workers elsewhere see this folder too
    with TemporaryDirectory(prefix="eligo-rehearsal-", dir=shared) as scratch, ExitStack() as later:
        totals = {MEMORY: stage.memory, **stage.settings.resources} if shares_machine(on) else stage.settings.resources
        settings = replace(
            stage.settings, policy=policy, directory=scratch, skip_done=False, timeout=None, resources=totals
        )
        with closing(RunFolder(os.path.join(scratch, "run"))) as folder:
            runner, _ = prepare_run(stage.flow, on, settings, folder)
            later.enter_context(beside(folder.path))
            with around(runner):
                result = execute(runner)
    for task, why in result.failed.items():
        raise InputError(f"the rehearsal with policy {policy} failed: {shorten(task)}: {why}")
    return result.seconds if result.ok else None

"""A whole run: from a workflow, or functions, to what came of every task."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eligo.allocating import Rules, allocator, informed
from eligo.allocating.prudent import SLOW
from eligo.engines import Engine
from eligo.engines.futures import on_executor
from eligo.engines.naming import engine_on
from eligo.engines.room import Needs
from eligo.errors import InputError, TaskFailedError, shorten
from eligo.execution import Execution
from eligo.names import Name
from eligo.planning import Plan, plan
from eligo.running.commands import Commands
from eligo.running.folder import MARK, Resumed, RunFolder
from eligo.running.functions import Callables, callables_of
from eligo.running.loop import Runner
from eligo.running.retrying import Retries
from eligo.running.skipping import up_to_date
from eligo.theory.eligibility import Order
from eligo.workflow import Workflow

#: slow workers get what matters least; no second copies, which would write the same files
CAREFUL = Rules(slow=SLOW)
#: the policies that go by the order of the workflow's plan, some of them only where tasks are equal to them
PLANNED, TIES_BY_PLAN = {"finish", "balanced", "plan"}, {"finish", "balanced"}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a run is made; the defaults are those of the command."""

    #: how many tasks run at a time; None: as many as this machine has cores
    workers: int | None = None
    #: the policy, or another allocator by name, or a file with an order
    policy: str = "finish"
    #: how many tasks a worker gets at once
    size: int = 1
    retries: Retries = field(default_factory=Retries)
    timeout: float | None = None
    most_failures: float = float("inf")
    #: whether tasks whose outputs are newer than their inputs are taken as done
    skip_done: bool = False
    #: where tasks run; None: in the folder of the workflow's file
    directory: str | None = None
    rules: Rules = CAREFUL
    seed: int = 0

    def __post_init__(self) -> None:
        if self.workers is not None and (type(self.workers) is not int or self.workers < 1):
            raise InputError(f"there is at least one worker, a whole number of them, and {self.workers!r} is none")
        if type(self.size) is not int or self.size < 1:
            raise InputError(f"a worker gets at least one task at once, and {self.size!r} is none")
        if not self.most_failures >= 1:
            raise InputError(f"nothing more is begun after some failures, and {self.most_failures!r} are none")
        if self.timeout is not None and not 0 < self.timeout < float("inf"):
            raise InputError(f"a task may take some seconds, and {self.timeout!r} are none")

    @property
    def slots(self) -> int:
        """How many tasks run at a time."""
        return self.workers or len(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Result:
    """What came of a run."""

    execution: Execution
    #: what functions returned
    values: Mapping[Name, Any]
    #: why tasks failed for good: what they raised, or what is told of their commands
    failed: Mapping[Name, Exception | str]
    seconds: float
    #: how many tasks were begun in this run
    begun: int = 0

    @property
    def ok(self) -> bool:
        """Whether every task is done."""
        return self.execution.finished

    def __repr__(self) -> str:
        done, n = len(self.execution.executed), len(self.execution.dag)
        return f"<Result: {done} of {n} tasks done, {len(self.failed)} failed>"


def run(  # noqa: PLR0913
    graph: object,
    function: Callable[..., Any] | None = None,
    *,
    on: "str | Executor | Engine" = "local",
    workers: int | None = None,
    policy: str = "finish",
    retries: int | Retries = 0,
    timeout: float | None = None,
    folder: str | Path | None = None,
    check: bool = True,
) -> Result:
    """Run a workflow: its commands, *function* of every task, or the functions that it has; what they return comes back.

    A graph is whatever `eligo.plan` takes; or {task: (function, parents)}, where each function gets what the parents
    returned. Functions run in threads, or *on* an executor of yours. Where a *folder* is given, commands go on from what
    an earlier run in it did. Where tasks failed for good, the first one's error is raised once the rest is done, or with
    *check* off told in the result.

    >>> import eligo
    >>> result = eligo.run({"a": (lambda: 2, []), "b": (lambda a: a + 1, ["a"]), "c": (lambda a, b: a * b, ["a", "b"])})
    >>> result.values["c"], eligo.run({1: [], 2: [1], 3: [1]}, lambda node: node * node).values
    (6, {1: 1, 2: 4, 3: 9})
    """
    tried = retries if isinstance(retries, Retries) else Retries(most=retries)
    settings = Settings(workers=workers, policy=policy, retries=tried, timeout=timeout)
    found = callables_of(graph, function)
    result = _functions(found, on, settings) if found else _commands(graph, on, settings, folder)
    if check:
        for task, why in result.failed.items():
            cause = why if isinstance(why, BaseException) else None
            raise TaskFailedError(task, str(why), result) from cause
    return result


def _functions(found: Callables, on: "str | Executor | Engine", settings: Settings) -> Result:
    engine = engine_of(on, settings, needs_of(found.flow), functions=True)
    with ended_where_wrong(engine):
        runner = made(
            found.flow, Execution(found.flow), engine, settings, lambda task, attempt: found.work(task, runner.values)
        )
    return carried_out(runner)


def _commands(graph: object, on: "str | Executor | Engine", settings: Settings, folder: str | Path | None) -> Result:
    from tempfile import TemporaryDirectory

    from eligo.border import as_workflow

    flow = as_workflow(graph)
    if folder is not None:
        with closing(RunFolder(folder)) as kept:
            kept.describe(flow)
            return carried_out(begun(flow, on, settings, kept)[0])
    with TemporaryDirectory(prefix="eligo-") as scratch, closing(RunFolder(scratch)) as kept:
        return carried_out(begun(flow, on, settings, kept)[0])


def begun(
    flow: Workflow, on: "str | Executor | Engine", settings: Settings, folder: RunFolder
) -> tuple[Runner, Resumed]:
    """A run of a workflow's commands in a folder, ready to go on from what was done there."""
    if on == "local":
        _check_room(flow, settings.slots)
    commands, needs = commands_in(folder, flow, settings.directory), needs_of(flow)
    scratch = f"{folder.logs}/running" if on == "local" else folder.jobs
    engine = engine_of(on, settings, needs, scratch=scratch, mark=folder.mark)
    with ended_where_wrong(engine):
        resumed = folder.resume(flow, engine)
        _check_added(resumed.execution)
        if settings.skip_done:
            up_to_date(flow, resumed.execution, commands.folder)
        effort = "quick" if settings.policy in TIES_BY_PLAN else "normal"
        order = folder.planned(flow, effort) if settings.policy in PLANNED else None
        folder.store.open_session(settings.policy, settings.slots, engine.name)
        runner = made(flow, resumed.execution, engine, settings, commands, folder, needs, order)
        runner.empty = commands.empty
        return runner, resumed


def commands_in(folder: RunFolder, flow: Workflow, directory: str | None) -> Commands:
    """What the tasks of a workflow run, which each must have, with a place for what they print."""
    mark = ((MARK, folder.mark), ("ELIGO_WORKFLOW", flow.name or ""))
    commands = Commands(flow, folder.place_of(flow, directory), folder.logs, mark, folder.processes)
    commands.check()
    commands.make_folders()
    return commands


def _check_room(flow: Workflow, cores: int) -> None:
    """Refuse what could never be begun."""
    for task in flow.details.values():
        if task.cores is not None and task.cores > cores:
            wants = f"task {shorten(task.name)!r} wants {task.cores:g} cores"
            raise InputError(f"{wants}, and there are {cores}: it could never be begun").cured_by("workers")


def _check_added(game: Execution) -> None:
    """Refuse tasks that somebody added to an earlier run and that are left: their commands are in no file."""
    for task in (task for added in game.additions for task in added.tasks):
        if task not in game.executed:
            added = f"task {shorten(task)!r} was added to this run while it went on"
            raise InputError(f"{added}, and what it should run is not said in the file")


def engine_of(  # noqa: PLR0913
    on: object,
    settings: Settings,
    needs: Needs | None = None,
    *,
    functions: bool = False,
    scratch: str | None = None,
    mark: str = "",
) -> Engine:
    """The engine of a name, an executor as one, or an engine itself."""
    if isinstance(on, str):
        return engine_on(on, settings.workers, needs=needs, functions=functions, scratch=scratch, mark=mark)
    if isinstance(on, Executor):
        return on_executor(on, settings.slots)
    if not all(hasattr(on, verb) for verb in ("asks", "start", "wait", "cancel", "close")):
        raise InputError(f"tasks run on an engine by its name, or on an executor, and {on!r} is neither")
    return on  # type: ignore[return-value]


@contextmanager
def ended_where_wrong(engine: Engine) -> Iterator[None]:
    """Where something goes wrong before the run, nothing that the engine started is left."""
    try:
        yield
    except BaseException:
        engine.close()
        raise


def needs_of(flow: Workflow) -> Needs | None:
    """What each task wants; None where no task wants more than one core and no memory is told."""
    wants = {name: (task.cores or 1.0, task.memory or 0) for name, task in flow.details.items()}
    if all(want == (1.0, 0) for want in wants.values()):
        return None
    return lambda task: wants.get(task, (1.0, 0))


def quick_plan(flow: Workflow) -> Plan:
    """The plan by which a run breaks ties: a run that goes on should not think for seconds first."""
    return plan(flow, "quick")


def made(  # noqa: PLR0913, PLR0917
    flow: Workflow,
    game: Execution,
    engine: Engine,
    settings: Settings,
    work: Callable[[Name, int], Any],
    folder: RunFolder | None = None,
    needs: Needs | None = None,
    order: Order | None = None,
) -> Runner:
    """A runner with the settings' allocator."""
    if order is None and settings.policy in TIES_BY_PLAN:
        order = quick_plan(flow).sequence
    rules = informed(settings.rules, flow.grown(game.dag))
    chosen = allocator(settings.policy, flow, game, rules=rules, order=order, seed=settings.seed)
    return Runner(
        game,
        chosen,
        engine,
        work,
        None if folder is None else folder.store,
        settings.retries,
        needs,
        timeout=settings.timeout,
        most_failures=settings.most_failures,
        size=settings.size,
        seed=settings.seed,
    )


def carried_out(runner: Runner) -> Result:
    """Run it to its end."""
    began = time.time()
    with ended_where_wrong(runner.engine):
        runner.run()
    took = time.time() - began  # without what it takes to let go of an engine
    runner.engine.close()
    failed = {
        task: str(ending.failure) if ending.value is None else ending.value for task, ending in runner.failures.items()
    }
    return Result(runner.execution, runner.values, failed, took, runner.begun)

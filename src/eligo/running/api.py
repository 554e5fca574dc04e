"""Runs a workflow or functions from start to end."""

import os
import time
import warnings
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eligo.additions import LiveWorkflow
from eligo.allocating import ALLOCATORS, Allocator, Ask, Grant, Space, allocator, rules_with_times
from eligo.allocating.rooms import Room
from eligo.engines import Engine, Function
from eligo.engines.command_line import NO_BASH, default_shell
from eligo.engines.output import RUNNING
from eligo.engines.registry import engine_on, shares_machine
from eligo.engines.room import Devices, Wants, in_gibibytes, machine_gpus, machine_memory
from eligo.errors import InputError, TaskFailedError, shorten
from eligo.execution import EXECUTED, Execution
from eligo.formats.shared.data_arcs import plain_path
from eligo.names import Name
from eligo.policies import PLAN_EFFORT, POLICIES
from eligo.running.cleaning import Limits, RunOutputs
from eligo.running.commands import Commands, attempts_remark, check_launches, shell_remark
from eligo.running.folder import MARK, Resumed, RunFolder
from eligo.running.functions import Callables, Values, callables_of, size_in_memory, tasks_to_keep
from eligo.running.growth import RunGrowth
from eligo.running.hooks import calling
from eligo.running.inbox import INBOX, clear
from eligo.running.input_files import InputFile, look_up
from eligo.running.loop import Runner, Settings
from eligo.running.operations import Operations
from eligo.running.output_cache import CachedTasks, OutputCache
from eligo.running.progress import Progress, ProgressOption, check_progress, followed
from eligo.running.reasons import reasons_of
from eligo.running.selection import Selection
from eligo.running.stored_results import Serializer, log_exception, resume_functions
from eligo.running.task_files import Redone, TaskFiles, skip_up_to_date
from eligo.space.footprint import Footprint
from eligo.theory.eligibility import Order
from eligo.times import times_of
from eligo.work.demands import GPUS, MEMORY, Amounts, bytes_in, demand_environment
from eligo.work.tries import Retries, Tries
from eligo.workflow import Workflow

#: engines on this machine that do not choose the graphics processors of a task themselves
CHOOSING = {"local", "dask", "parsl"}


@dataclass(frozen=True)
class Result:
    """The result of a run."""

    execution: Execution
    #: the values of functions, except those that only other tasks needed
    values: Mapping[Name, Any]
    #: the permanently failed tasks, each with its exception or the message for its command
    failed: Mapping[Name, Exception | str]
    seconds: float
    #: the number of started jobs
    begun: int = 0
    #: the number of tasks whose outputs were taken from a cache
    from_cache: int = 0

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
    retries: int | Retries | None = None,
    timeout: float | None = None,
    folder: str | Path | None = None,
    keep: str | Collection[Name] = (),
    check: bool = True,
    ignore: str | Collection[str] = (),
    targets: Sequence[str] = (),
    again: Sequence[Name] = (),
    serializer: "str | Serializer" = "json",
    progress: bool | Callable[[Progress], object] = False,
    resources: Amounts | None = None,
    labels: Collection[str] = (),
    cache: str | Path | None = None,
    clean: bool = False,
    keep_incomplete: bool = False,
    space: int | str | None = None,
    size_of: Callable[[Any], int] = size_in_memory,
) -> Result:
    """Run a workflow: its commands, *function* for every task, or its own functions; returns their values.

    A graph is anything that `eligo.plan` accepts, or {task: (function, parents)}, where each function receives the values of
    its parents. Functions run in threads, or *on* your own executor; `async def` functions are awaited.

    With a *folder*, a later call resumes the run. Results of functions are stored there by the *serializer*: "json",
    "pickle", or an object with `dumps` and `loads`. Tasks named in *again* run even if an earlier call completed them. Of
    commands, *targets* selects tasks, files or categories to run, with all that they need. With a *cache*, a folder that runs
    may share, the outputs of a command that ran before with the same inputs are copied from there, and new ones are added.
    Temporary files are removed once every task that reads them is done; with *clean*, these are all files that one task
    writes and another reads. What a failed attempt wrote is moved away before the next one, unless *keep_incomplete* is true.

    *progress* shows a bar, or is a function that gets the `Progress` now and then. If it raises StopIteration, no more tasks
    start, and the result so far is returned; any other exception ends the run at once.

    If tasks fail permanently, the first one's error is raised once the rest is done; with *check* off, errors are only in the
    result. A feature of a file that runs do not support, for example POST scripts of DAGMan, is an error unless *ignore*
    names it.

    A value that other tasks use is dropped once all of them are done. *keep* names the tasks whose values stay anyway;
    keep="all" keeps every value.

    *space*, such as "2G", limits the files that are removed after use, or the results that wait for other functions: a task
    starts only if the rest can still run within the limit. *size_of* returns the bytes of a result.

    *resources* gives the totals that tasks share, for example {"licence": 2, "gpus": 1}, and *labels* what the machines have.

    By default a failed command is retried twice, or *retries* times; a function is not retried.
    A task that takes longer than *timeout* seconds has failed. A command is then stopped. A function cannot be stopped: its
    thread continues, its value is ignored, and its worker takes the next task.

    >>> import eligo
    >>> table = {"a": (lambda: 2, []), "b": (lambda a: a + 1, ["a"]), "c": (lambda a, b: a * b, ["a", "b"])}
    >>> eligo.run(table).values, eligo.run(table, keep=["a"]).values
    ({'c': 6}, {'a': 2, 'c': 6})
    >>> eligo.run({1: [], 2: [1], 3: [1]}, lambda node: node * node).values
    {1: 1, 2: 4, 3: 9}
    """
    from eligo.formats.fidelity import labels_to_check

    callables = callables_of(graph, function)
    tried = retries if isinstance(retries, Retries) else _retries(retries, commands=callables is None)
    selection = Selection(tuple(targets), again=tuple(again))
    settings = Settings(
        workers=workers, selection=selection, policy=policy, retries=tried, timeout=timeout, resources=resources or {},
        labels=labels_to_check(labels, ignore),
        cache=None if cache is None else os.path.abspath(cache), clean=clean,
        keep_incomplete=keep_incomplete, space=space_in(space),
    )  # fmt: skip
    storage = Storage(keep, folder, serializer, size_of)
    check_progress(progress)
    _check_fits(callables, storage, ignore, settings)
    if callables is None:
        prepared = _commands(graph, on, settings, folder, ignore)
    else:
        prepared = _functions(callables, on, settings, storage)
    with prepared as runner:
        result = execute(runner, progress)
    if runner.within is not None and runner.within.remark is not None:
        warnings.warn(runner.within.remark, stacklevel=2)
    if check:
        for task, why in result.failed.items():
            cause = why if isinstance(why, BaseException) else None
            raise TaskFailedError(task, str(why), result) from cause
    return result


def _retries(most: int | None, commands: bool) -> Retries:
    """The retries of tasks; by default commands are retried, and functions are not, since they would raise the same again."""
    if most is None:
        return Retries() if commands else Retries(most=0)
    return Retries(most=most)


class Storage(NamedTuple):
    """Which results of functions stay: in memory, and in a folder."""

    keep: str | Collection[Name]
    folder: str | Path | None
    serializer: "str | Serializer"
    #: the bytes of a result in memory
    size_of: Callable[[Any], int] = size_in_memory


def space_in(space: int | str | None) -> int | None:
    """A limit in bytes, also if it is given as text.

    >>> space_in("2K"), space_in(5), space_in(None)
    (2048, 5, None)
    """
    size = bytes_in(space) if isinstance(space, str) else space
    if space is not None and size is None:
        raise InputError(f"space must be a size, such as '200G', got {space!r}")
    return size


def _check_fits(
    callables: Callables | None, storage: Storage, ignore: str | Collection[str], settings: Settings
) -> None:
    """Refuse options for commands on functions, and options for functions on commands."""
    if storage.serializer != "json" and (callables is None or storage.folder is None):
        raise InputError("serializer has no effect unless functions run in a folder: leave it out")
    if callables is not None and ignore != ():
        raise InputError("ignore has no effect on functions: leave it out")
    selection = settings.selection
    if callables is not None and settings.cache is not None:
        raise InputError("cache has no effect on functions: leave it out")
    if callables is not None and selection.targets:
        raise InputError("targets has no effect on functions: leave it out")
    if callables is not None and selection.again and storage.folder is None:
        raise InputError("again has no effect on functions without a folder: leave it out, or pass folder")
    if callables is not None and settings.clean:
        raise InputError("clean has no effect on functions: leave it out")
    if callables is not None and settings.keep_incomplete:
        raise InputError("keep_incomplete has no effect on functions: leave it out")
    if callables is not None and settings.space is not None and not callables.takes:
        raise InputError("space has no effect on functions that do not use the results of others: leave it out")
    if callables is None and storage.keep != ():
        raise InputError("keep has no effect on commands: leave it out")


@contextmanager
def _functions(
    callables: Callables, on: "str | Executor | Engine", settings: Settings, storage: Storage
) -> Iterator[Runner]:
    """A run of functions, whose results are stored in the folder, if there is one."""
    wanted = callables.results.union(tasks_to_keep(storage.keep, callables.flow.dag))
    engine = engine_for(callables.flow, Wants(callables.flow), on, settings, functions=True)
    with ExitStack() as stack:
        with close_on_error(engine):
            _check_engine(settings, engine, callables.flow)
            if storage.folder is None:
                store, game, values = None, Execution(callables.flow), Values(callables.takes, wanted)
            else:
                place = stack.enter_context(closing(RunFolder(storage.folder)))
                game, values = resume_functions(place, callables, wanted, storage.serializer, settings.selection.again)
                store = place.store
                store.open_session(settings.policy, settings.slots, engine.name)
            memory = Space(settings.space or 0, lambda flow: Footprint.of_results(flow.dag), learned=True)
            chosen = allocator_of(callables.flow, game, settings, space=memory)

        def work(task: Name, attempt: int) -> Function:
            return callables.work(task, values)

        runner = Runner(game, chosen, engine, work, store, settings, values=values, size_of=storage.size_of)
        if store is not None:
            runner.follow = partial(log_exception, Commands(callables.flow, "", place.logs))
            runner.operate = _operations(place)
        yield runner


@contextmanager
def _commands(
    graph: object,
    on: "str | Executor | Engine",
    settings: Settings,
    folder: str | Path | None,
    ignore: str | Collection[str],
) -> Iterator[Runner]:
    """A prepared run of commands in a folder, by default a temporary one; warns of each setting that is ignored."""
    from tempfile import TemporaryDirectory

    from eligo.border import as_workflow
    from eligo.formats.fidelity import as_runnable

    flow = as_runnable(as_workflow(graph), ignore, elsewhere=on != "local", labels=settings.labels or ())
    recall = partial(_recall, folder)
    with ExitStack() as stack:
        place = stack.enter_context(TemporaryDirectory(prefix="eligo-")) if folder is None else folder
        run_folder = stack.enter_context(closing(RunFolder(place)))
        runner, resumed = prepare_run(flow, on, settings, run_folder, recall)
        with close_on_error(runner.engine):
            for remark in resumed.remarks:
                warnings.warn(remark, stacklevel=5)
        stack.enter_context(calling(flow.hooks, runner, os.fspath(place), warnings.warn))
        yield runner


def _recall(folder: str | Path | None, flow: Workflow) -> Workflow:
    return times_of(flow, run=None if folder is None else os.fspath(folder)).flow


def prepare_run(
    flow: Workflow,
    on: "str | Executor | Engine",
    settings: Settings,
    folder: RunFolder,
    recall: Callable[[Workflow], Workflow] = lambda flow: flow,
) -> tuple[Runner, Resumed]:
    """Prepare a run of a workflow's commands in a folder, or resume the one that is there.

    *recall* adds the run times of earlier runs. It is called only if there is something to run.
    """
    everything, flow = flow, settings.selection.applied(flow)
    commands, wants = commands_in(folder, flow, settings.directory, on != "local"), Wants(flow)
    scratch = f"{folder.logs}/{RUNNING}" if on == "local" else folder.jobs
    engine = engine_for(flow, wants, on, settings, scratch=scratch, mark=folder.mark)
    with close_on_error(engine):
        check = partial(_check_engine, settings, engine)
        check(flow)
        before = folder.resume(everything, engine)
        selected = Selected(everything, flow)
        resumed, files, redone = settle_files(selected, before, settings, folder, commands.folder)
        if folder.is_complete(resumed) and not any((folder.path / INBOX).glob("*.add")):
            folder.keep_inputs(resumed)
            outputs = _outputs(selected, files, resumed, settings, folder)
            folder.store.add((), files=outputs.clean())
            return Runner(resumed.execution, Idle(resumed.execution), engine, commands, settings=settings), resumed
        flow, grown = recall(flow), everything if selected.is_narrow else files.flow
        if settings.why:
            reasons = reasons_of(flow, resumed, folder, redone, grown.dag.labels)
            resumed = replace(resumed, reasons=reasons)
        cache = _cache(settings, commands, grown.dag.named(redone.requested))
        live = LiveWorkflow(flow, resumed.execution)
        effort = PLAN_EFFORT.get(settings.policy)
        curves = {} if effort is None else folder.planned(flow, resumed, effort)
        order = np.array(curves["order"], np.int32) if curves else None
        outputs = _outputs(selected, files, resumed, settings, folder)
        space = Space(settings.space or 0, partial(_removed_files, outputs), workers=settings.slots)
        chosen = allocator_of(live.begun, resumed.execution, settings, order, space)
        growth = RunGrowth(live, commands, files, wants, engine, check, folder.path / INBOX)
        growth.begin(folder.adding)
        growth.empty |= resumed.idle
        outputs.follow(growth.files)
        growth.removed = outputs.removed
        folder.begin(flow, resumed, curves, settings.directory)  # no input error is raised after this line
        folder.store.open_session(settings.policy, settings.slots, engine.name)
        devices = _devices(engine) if isinstance(on, str) and on in CHOOSING else None
        tries = Tries(lambda v: commands.own_retries(resumed.execution.graph.name(v)))
        runner = Runner(
            resumed.execution, chosen, engine, commands, folder.store, settings, devices=devices, cache=cache,
            growth=growth, outputs=outputs, tries=tries, operate=_operations(folder),
        )  # fmt: skip
        return runner, replace(resumed, remarks=_ignored_settings(flow, engine, settings))


def _cache(settings: Settings, commands: Commands, requested: Iterable[Name]) -> CachedTasks | None:
    """The outputs of earlier runs, which *requested* tasks do not take; None if no cache is used."""
    if settings.cache is None:
        return None
    return CachedTasks(OutputCache(Path(settings.cache)), commands, frozenset(requested))


def _removed_files(outputs: RunOutputs, flow: Workflow) -> Footprint:
    """The files of a workflow that its run removes once they are read; refused if there are none."""
    removed = outputs.removable()
    if not removed:
        why = "no file between tasks is temporary, so that none is removed"
        raise InputError(f"space cannot be limited, because {why}").cured_by("clean")
    return Footprint.of(flow, removed)


def _outputs(
    selected: "Selected", files: TaskFiles, resumed: Resumed, settings: Settings, folder: RunFolder
) -> RunOutputs:
    """The outputs of a run, of which it removes those that are temporary."""
    origin = selected.everything.origin
    own = (folder.path, settings.cache, *([origin.path, *origin.files] if origin else []))
    reserved = _reserved(selected, resumed, files.folder) if selected.is_narrow else frozenset[str]()
    protected = tuple(os.path.realpath(place) for place in own if place)
    limits = Limits(settings.clean, protected, reserved, settings.keep_incomplete)
    incomplete = folder.incomplete_since(files.flow.dag)
    return RunOutputs(files, resumed.execution, limits, folder.store.files(), incomplete=incomplete)


def _reserved(selected: "Selected", resumed: Resumed, place: str) -> frozenset[str]:
    """The outputs, by plain path, that tasks outside the selection will read."""
    files, dag = TaskFiles(selected.everything, place), selected.everything.dag
    later = {
        v for v, label in enumerate(dag.labels) if dag.tasks[v] not in selected.flow.dag and label not in resumed.parked
    }
    outputs = ((v, file) for v, each in enumerate(files.outputs) for file in each)
    return frozenset(plain_path(file) for v, file in outputs if not later.isdisjoint(files.readers_of(file, v)))


def _operations(folder: RunFolder) -> Operations:
    """What performs the requests to a run, without those to earlier processes."""
    inbox = folder.path / INBOX
    clear(inbox)
    return Operations(inbox)


class Selected(NamedTuple):
    """The workflow of a run, and the part of it that was selected; both are the same if all of it was."""

    everything: Workflow
    flow: Workflow

    @property
    def is_narrow(self) -> bool:
        """Whether only a part was selected."""
        return self.flow is not self.everything


def settle_files(
    selected: Selected, resumed: Resumed, settings: Settings, folder: RunFolder, place: str
) -> tuple[Resumed, TaskFiles, Redone]:
    """Resume the selected tasks; those that must run again, because of their files or on request, no longer count as done.

    Tasks run in *place*. Missing inputs are refused.
    """
    files = TaskFiles(LiveWorkflow(selected.everything, resumed.execution).flow, place)
    resumed, redone = _redo_tasks(selected, resumed, settings, folder, files)
    if selected.is_narrow:
        files = TaskFiles(LiveWorkflow(selected.flow, resumed.execution).flow, place)
    resumed = _assume_done(settings.selection.assumed(files.flow), files, resumed, folder)
    if settings.skip_done:
        skip_up_to_date(files.flow, resumed.execution, place, resumed.doubts)
    files.check_spelling()
    files.check_inputs(resumed.execution.executed)
    return resumed, files, redone


def _assume_done(tasks: Iterable[int], files: TaskFiles, resumed: Resumed, folder: RunFolder) -> Resumed:
    """Execute tasks that count as done, without running them; raises if their outputs are missing or may be incomplete."""
    game, names = resumed.execution, [files.flow.dag.tasks[v] for v in tasks]
    assumed = [name for name in names if name not in game.executed]
    unfinished = folder.doubts().unfinished if assumed else ()  # what this run has to repeat was finished
    spared = files.spared({*game.dag.indices([*assumed, *game.executed])}) if assumed else ()
    for name in assumed:
        task = f"task {shorten(str(name))!r} cannot count as done for --start-from"
        if missing := [file for file in files.absent(name) if file not in spared]:
            raise InputError(f"{task}: its output {shorten(missing[0])!r} does not exist")
        if files.flow.task(name).outputs and str(name) in unfinished:
            why = "its last attempt did not finish, so that its outputs may be incomplete"
            raise InputError(f"{task}: {why}").cured_by("run")
        game.execute(name)
    return replace(resumed, doubts=resumed.doubts.without(map(str, assumed)))


def _redo_tasks(
    selected: Selected, resumed: Resumed, settings: Settings, folder: RunFolder, files: TaskFiles
) -> tuple[Resumed, Redone]:
    done, before = resumed.execution.numbers(EXECUTED), folder.inputs()
    now, renewed = _changed_inputs(files, done, before, folder.copied)
    requested = frozenset(settings.selection.repeated(files.flow, selected.flow if selected.is_narrow else files.flow))
    outdated = files.outdated(done) if settings.skip_done else ()
    redone = files.to_redo(done, {*requested, *renewed, *outdated})._replace(requested=requested, renewed=renewed)
    resumed = folder.redo(selected.everything, resumed, redone)
    written, stable = files.between(range(len(files.flow.dag))), files.between(resumed.execution.numbers(EXECUTED))
    inputs = {path: state for path, state in {**before, **now}.items() if path not in written or path in stable}
    resumed = replace(resumed, inputs=inputs)
    return folder.narrow(selected.flow, resumed) if selected.is_narrow else resumed, redone


def _changed_inputs(
    files: TaskFiles, done: Container[int], before: Mapping[str, InputFile], copied: bool
) -> tuple[dict[str, InputFile], dict[int, str]]:
    """The states of the inputs, and the done tasks of which one changed since they ran, each with that input.

    The first time that a file is looked up which a task wrote, it has changed if it is newer than what was made from it.
    """
    sources, between = files.sources(), files.between(done)
    now = look_up(sources, files.folder, before) | look_up(between, files.folder, before, largest=0)
    readers, changed = {**sources, **between}, dict[int, str]()
    for path, state in now.items():
        is_new = path not in before
        if is_new and (path in sources or copied):
            continue
        if is_new or before[path].differs(state):
            newer = (v for v in readers[path] if v in done and (not is_new or files.is_older(v, state.time)))
            changed |= dict.fromkeys(newer, path)
    return now, changed


@dataclass
class Idle:
    """The allocator of a run in which every task is done."""

    execution: Execution

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """See `Allocator`."""
        return []


def commands_in(folder: RunFolder, flow: Workflow, directory: str | None, elsewhere: bool) -> Commands:
    """The commands of all tasks, each of which must have one, with a folder for their output."""
    mark = ((MARK, folder.mark), ("ELIGO_WORKFLOW", flow.name or ""), *demand_environment(1.0, 0).items())
    commands = Commands(
        flow, folder.place_of(flow, directory), folder.logs, mark, folder.processes, elsewhere=elsewhere
    )
    commands.check()
    commands.make_folders()
    return commands


def check_labels(flow: Workflow, available: Collection[str] | None) -> None:
    """Raise an error if a task needs a label that no machine of the run has; None: labels are ignored."""
    for name, labels in zip(flow.dag.tasks, flow.column("labels"), strict=True):
        lacking = [label for label in labels if available is not None and label not in available]
        if lacking:
            message = f"task {shorten(name)!r} needs {lacking[0]}, which this run does not have"
            raise InputError(message).cured_by("label")


def engine_for(
    flow: Workflow, wants: Wants, on: "str | Executor | Engine", settings: Settings, **options: Any
) -> Engine:
    """The engine for a workflow, with the totals of all resources that its tasks share."""
    totals = dict(settings.resources)
    memory = totals.pop(MEMORY, None)
    if GPUS not in totals and shares_machine(on) and any(GPUS in dict(each) for each in flow.column("resources")):
        totals[GPUS] = len(machine_gpus())
    limit = None if memory is None else int(memory)
    if shares_machine(on):
        _check_room(flow, settings.slots, machine_memory() if limit is None else limit)
    return engine_on(on, settings.workers, memory=limit, resources=totals, needs=wants or None, **options)


def _devices(engine: Engine) -> Devices | None:
    """The graphics processors for the tasks of an engine on this machine; None if it has none."""
    room = getattr(engine, "room", None)
    count = int(room.total.get(GPUS, 0)) if isinstance(room, Room) else 0
    names = machine_gpus()
    return Devices([*names, *map(str, range(len(names), count))][:count]) if count else None


def _check_room(flow: Workflow, cores: float, memory: float) -> None:
    """Raise an error if a task needs more cores or bytes of memory than there are."""
    for name, wanted in zip(flow.dag.tasks, flow.column("cores"), strict=True):
        if (wanted or 0) > cores:
            wants = f"task {shorten(name)!r} needs {wanted:g} cores"
            raise InputError(f"{wants}, but only {cores:g} are available").cured_by("workers")
    for name, first, more in zip(flow.dag.tasks, flow.column("memory"), flow.column("more_memory"), strict=True):
        wanted = max(first or 0, *more, 0)
        if wanted > memory:
            when = "" if wanted == first else ", after a failure,"
            wants = f"task {shorten(name)!r} needs{when} {in_gibibytes(wanted)} of memory"
            cure = "lower its memory, or run it on a larger machine or cluster"
            raise InputError(f"{wants}, but only {in_gibibytes(memory)} are available: {cure}")


def check_others(flow: Workflow, totals: Amounts, requested: Collection[str]) -> None:
    """Raise an error if a task needs more of another resource than its total, or if that has none."""
    for name, amounts in zip(flow.dag.tasks, flow.column("resources"), strict=True):
        for what, amount in amounts:
            if amount <= totals.get(what, 0) or (what in requested and what not in totals):
                continue
            state = f"only {totals[what]:g} are available" if what in totals else "its total is not given"
            wants = f"task {shorten(name)!r} needs {amount:g} of the resource {what!r}"
            raise InputError(f"{wants}, but {state}").cured_by("resource")


def _check_engine(settings: Settings, engine: Engine, flow: Workflow) -> None:
    """Raise an error if a task needs more than the engine has, as far as that is known, or cannot be started."""
    check_launches(flow)
    room = getattr(engine, "room", None)
    if isinstance(room, Room):
        _check_room(flow, room.cores, min(room.memory, getattr(engine, "largest", room.memory)))
    check_others(flow, room.total if isinstance(room, Room) else {}, getattr(engine, "requests", ()))
    check_labels(flow, settings.labels)


def _ignored_settings(flow: Workflow, engine: Engine, settings: Settings) -> tuple[str, ...]:
    """One sentence per setting of the workflow that this run ignores, and about a shell that is not the usual one."""
    remarks = list(getattr(engine, "unheeded", ())) if any(flow.column("memory")) else []
    if settings.policy in ALLOCATORS and any(flow.column("priority")):
        remarks.append(f"policy {settings.policy} ignores the priorities of tasks; all other policies follow them")
    elif settings.policy not in POLICIES and any(flow.column("priority")):
        remarks.append(f"priorities of tasks take precedence over the order in {settings.policy}")
    shell = shell_remark(flow) if default_shell() == NO_BASH else None
    return (*remarks, *filter(None, (attempts_remark(flow, settings.retries.most), shell)))


@contextmanager
def close_on_error(engine: Engine) -> Iterator[None]:
    """Close the engine if an error is raised before the end of the run."""
    try:
        yield
    except BaseException:
        engine.close()
        raise


def allocator_of(
    flow: Workflow,
    game: Execution,
    settings: Settings,
    order: Order | None = None,
    space: Space | None = None,
) -> Allocator:
    """The allocator that the settings name; raises an error if there is none of that name."""
    rules = rules_with_times(settings.rules, flow.grown(game.dag))
    if settings.space is None:
        space = None
    return allocator(settings.policy, flow, game, rules=rules, order=order, seed=settings.seed, space=space)


def execute(runner: Runner, progress: ProgressOption = False) -> Result:
    """Run to the end."""
    began = time.monotonic()
    with close_on_error(runner.engine), followed(runner, progress):
        runner.run()
    took = time.monotonic() - began  # without the time to close the engine
    runner.engine.close()
    failed = {
        task: str(ending.attempt.failure) if ending.value is None else ending.value
        for task, ending in runner.failures.items()
    }
    return Result(runner.execution, runner.values, failed, took, runner.jobs_started, runner.from_cache)

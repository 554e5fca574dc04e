"""`eligo run`: a run, on this machine, by an engine or by DAGMan, and what it prints."""

import json
import os
import shlex
import signal
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import FrameType
from typing import Any

from eligo.cli.effects import SERVER
from eligo.cli.endings import FAILED, INTERRUPTED, Ended, Follow, JobLog, TaskLines, all_of, print_output
from eligo.cli.live_display import watching
from eligo.cli.look import MOST_SHOWN, report_of, save_report
from eligo.cli.options import Access, Reading
from eligo.cli.output import harmless, print_json, print_lines, print_table
from eligo.cli.plan_text import accept, heeding, read_workflow, recall, tell, working
from eligo.cli.requests import RunRequest
from eligo.errors import InputError, ShortageError, counted, shorten
from eligo.estimates import lasting
from eligo.formats.fidelity import words_in
from eligo.pages.folder_source import WatchedProcess
from eligo.pages.views import end_headline
from eligo.prioritising import order_to_follow
from eligo.running import Result, Resumed, RunFolder, Runner, execute, prepare_run
from eligo.running.api import commands_in
from eligo.running.commands import shell_remark
from eligo.running.dagman import DagmanJob, Fate, run_dagman
from eligo.running.dry_run import Upcoming, dry_run
from eligo.running.hooks import calling, hooks_in
from eligo.running.states import BAD, BLOCKED, DONE
from eligo.running.task_files import TaskFiles
from eligo.space.disk_use import disk_use
from eligo.workflow import Workflow, in_priority_order

RESCUE, DAGMAN = "rescue.dag", "htcondor-dagman"
SELDOM = 30.0  # seconds between two lines about the progress of DAGMan
UNSAID = "[null, false, false, [null, false, null, null]]"  # how a file is read without options


def flow_of_run(folder: str | None) -> Workflow:
    """The workflow of a run: its file, read with the options with which the run was started, or the copy in the folder."""
    from eligo.formats import read
    from eligo.running.folder import KEPT, kept_workflow

    if folder is None:
        raise InputError("missing FILE: give a workflow to run, or --resume RUN")
    facts, path = kept_workflow(folder)
    if os.path.samefile(path, os.path.join(folder, KEPT)):
        return read(path)
    format, outside, reverse, (args, env, columns, trace) = json.loads(facts.get("reading", UNSAID))
    how = Reading(
        from_=format, allow_outside=outside, reverse=reverse, args=args, env=env, columns=columns, trace=trace
    )
    return read_workflow(path, how)


def facts_of_run(folder: str | None) -> Mapping[str, str]:
    """The facts that the folder of a resumed run has stored."""
    from eligo.running.folder import kept_workflow

    return {} if folder is None else kept_workflow(folder)[0]


def resumed_request(request: RunRequest, given: Collection[str]) -> RunRequest:
    """The request for a resumed run: its own options, except for those that are given now."""
    resumed = request.as_before(facts_of_run(request.resume), given)
    before, now = request.remembered(), resumed.remembered()
    words = [_option(name, value) for name, value in now.items() if value != before[name]]
    tell([f"resuming with the options of the run: {' '.join(words)}"] if words else [])
    return resumed


def _option(name: str, value: object) -> str:
    """An option as it is written on a command line."""
    words = [shlex.quote(str(each)) for each in value] if isinstance(value, list) else [str(value)]
    return " ".join(words) if name == "targets" else f"--{name.strip('_').replace('_', '-')} {' '.join(words)}"


def facts_to_keep(request: RunRequest, reading: Reading | None, ignore: Collection[str]) -> dict[str, str]:
    """The facts to store in the folder of a run, to resume it without FILE and its options."""
    facts = {"ignored": ",".join(ignore), "options": json.dumps(request.remembered())}
    if reading is None:
        return facts
    words = reading.args and [word if "=" in word else os.path.abspath(word) for word in reading.args]
    rest = (words, reading.env, reading.columns, reading.trace and os.path.abspath(reading.trace))
    return facts | {"reading": json.dumps((reading.from_, reading.allow_outside, reading.reverse, rest))}


def answer(flow: Workflow, request: RunRequest, reading: Reading | None, access: Access) -> int:
    """Run the workflow and print the result; returns the exit code."""
    served = request.on.startswith(SERVER)
    ignore = words_in([*(request.ignore or ()), facts_of_run(request.resume).get("ignored", "")])
    labels = None if served else request.label or ()
    flow = accept(flow, ignore, elsewhere=request.on != "local", labels=labels, dispatched=request.on != DAGMAN)
    request = replace(request, ignore=list(ignore))
    if served:
        from eligo.cli.remote import by_server

        return by_server(request.selection.applied(_with_times(request, flow)), request, access.target(request.on))
    with ExitStack() as page:  # until the result is printed
        return _answer_here(flow, request, facts_to_keep(request, reading, ignore), page)


def _answer_here(flow: Workflow, request: RunRequest, facts: Mapping[str, str], page: ExitStack) -> int:
    """Run the workflow from this process; *page* is entered beside the run, if it is wanted."""
    place = request.place or default_folder(flow)
    follows, hooks = follows_of(request), {**flow.hooks, **hooks_in(request.hook or [])}
    with_times = partial(_with_times, request)
    with ExitStack() as later, closing(RunFolder(place)) as folder:
        if request.dry_run:
            tell([remark] if (remark := shell_remark(flow)) else [])
            return print_dry_run(dry_run(with_times(flow), request.settings(), folder), request.json)
        if request.on == DAGMAN:
            folder.store.remember(**facts)
            return by_dagman(request.selection.applied(with_times(flow)), request, folder)
        with working(f"planning {counted(len(flow), 'task')}"):
            runner, resumed = prepare_run(flow, request.on, request.settings(), folder, with_times)
        folder.store.remember(**facts)
        if folder.is_complete(resumed):
            return _print_result(runner, execute(runner), place, request, report_of(place))
        tell(list(resumed.remarks))
        if not len(flow) or resumed.kept < len(flow):
            tell(_resume_lines(resumed, place))
        tell([harmless(f"{shorten(label)}: {reason}") for label, reason in resumed.reasons.items()])
        later.enter_context(calling(hooks, runner, place, lambda why: tell([f"warning: {why}"])))
        tell([f"{place} is paused: eligo resume {place} continues it"] if request.pause else [])
        if request.page:
            from eligo.cli.run_page import live_page  # here, because most runs have no page

            page.enter_context(live_page(place, request.hold))
        process = WatchedProcess(flow, runner, folder.store.curves().get("plan", ()))
        result = _execute_visibly(process, follows, request, place)
        tell([*_write_rescue(flow, result, place), *(() if runner.cache is None else runner.cache.remarks())])
        tell(_disk_lines(runner, folder))
    report = save_report(place)
    return _print_result(runner, result, place, request, report)


def _execute_visibly(process: WatchedProcess, follows: list[Follow], request: RunRequest, place: str) -> Result:
    """Run to the end, with the display and the output of tasks that were requested."""
    runner = process.runner
    if request.stream_lines:
        follows.append(task_lines := TaskLines())
        runner.watch = task_lines.watch
    runner.follow = all_of(follows)
    with (
        watching(process, sys.stderr, request.quiet or request.stream or request.stream_lines),
        interruptible(runner),
        _warn_of_shortage(runner, place),
    ):
        return execute(runner)


def _with_times(request: RunRequest, flow: Workflow) -> Workflow:
    """The workflow with the run times of its earlier run, unless the request names histories, which it has already."""
    return flow if request.history else recall(flow, None, request.place).flow


def follows_of(request: RunRequest) -> list[Follow]:
    """What happens at the end of every attempt."""
    follows: list[Follow] = [print_output] if request.stream else []
    return [*follows, *([] if request.joblog is None else [JobLog(request.joblog)])]


def print_dry_run(tasks: Sequence[Upcoming], json: bool) -> int:
    """Print what a run would do, in order."""
    if json:
        print_json({"tasks": [task._asdict() for task in tasks]})
        return 0
    if not tasks:
        print_lines(["Nothing would run: all tasks are done"])
        return 0
    rows = [(task.task, "" if task.seconds is None else lasting(task.seconds), task.reason) for task in tasks]
    print_table(("task", "time", "reason"), rows, uncut=("task",))
    times = [task.seconds for task in tasks if task.seconds is not None]
    work = f", {lasting(sum(times))} of work" if times and len(times) == len(tasks) else ""
    print_lines([f"{counted(len(tasks), 'task')} would run{work}"])
    return 0


def _write_rescue(flow: Workflow, result: Result, place: str) -> list[str]:
    """Write a rescue file of the finished nodes of a DAGMan file that did not finish; returns messages about it."""
    path, file = os.path.join(place, RESCUE), flow.origin.path if flow.origin else None
    if os.path.exists(path):
        os.unlink(path)  # of an earlier stop
    if (
        file is None
        or flow.origin is None
        or flow.origin.format != "dagman"
        or result.ok
        or not result.execution.executed
    ):
        return []
    from eligo.formats.dagman.writer import doubtful, next_rescue, rescue_text
    from eligo.formats.shared.files import save

    executed = list(map(str, result.execution.executed))
    left_out = doubtful(flow, executed)
    why = f"{counted(len(left_out), 'finished node')} left out, because features that the run skipped may affect them"
    if len(left_out) == len(executed):
        return [f"no rescue file for DAGMan: {why}"]
    save(rescue_text(flow, (name for name in executed if name not in left_out)), path)
    message = (
        f"wrote {path}, a rescue file of the finished nodes; to continue with DAGMan, copy it to {next_rescue(file)}"
    )
    return [f"{message}; {why}" if left_out else message]


def default_folder(flow: Workflow) -> str:
    """FILE.run, beside the file."""
    path = flow.origin.path if flow.origin else None
    if not path or path == "-":
        raise InputError("a workflow from standard input needs --run FOLDER for its state")
    return f"{path}.run"


@contextmanager
def interruptible(runner: Runner) -> Iterator[None]:
    """Handle signals: the first Ctrl-C starts no more tasks; the second, SIGTERM or a lost terminal stop running ones.

    If the loss of the terminal was ignored before (nohup), it still is.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        if runner.stopping or number != signal.SIGINT:
            runner.abort()
            message = "stopping running tasks"
        else:
            runner.stop()
            count = counted(len(runner.running), "running task")
            message = f"no more tasks are started; waiting for {count}; press Ctrl-C again to stop now"
        with suppress(OSError):  # the terminal may be gone
            tell([message])

    hangups = [number for number in (signal.SIGHUP, signal.SIGQUIT) if signal.getsignal(number) != signal.SIG_IGN]
    with heeding(stop, signal.SIGINT, signal.SIGTERM, *hangups):
        yield


@contextmanager
def _warn_of_shortage(runner: Runner, place: str) -> Iterator[None]:
    """Print warnings while tasks wait for the machine's resources, and how to resume if none could be started."""
    from eligo.engines.local import LocalEngine

    if isinstance(runner.engine, LocalEngine):
        runner.engine.shortage.warn = lambda message: tell([f"warning: {message}"])
    try:
        yield
    except ShortageError:
        tell([f"to resume: eligo run --resume {place}"])
        raise


def _resume_lines(resumed: Resumed, place: str) -> list[str]:
    """The message about a resumed run, if there is anything to say."""
    counts = (
        (resumed.kept, "already done"),
        (resumed.changed, "changed since and will run again"),
        (resumed.repeated, "will run again as requested"),
        (resumed.renewed, "will run again because inputs changed"),
        (resumed.unmade, "will run again because outputs are missing"),
        (resumed.dependent, "will run again because they depend on these"),
        (resumed.new, "new"),
        (resumed.gone, "removed"),
    )
    parts = [f"{count:,} {what}" for count, what in counts if count]
    if len(parts) == 1 and resumed.new:  # a first run
        return []
    return [f"resuming {place}: {', '.join(parts)}"] if parts else []


def _print_result(runner: Runner, result: Result, place: str, request: RunRequest, report: str | None) -> int:
    """Print the result of a run; returns the exit code."""
    game = result.execution
    remaining = len(game.dag) - len(game.executed) - len(result.failed) - len(game.blocked)
    if request.json:
        failed = {str(task): str(why) for task, why in result.failed.items()}
        ended = Ended(len(game.dag), result.seconds, place, report, result.from_cache)
        print_json(ended.document(request.used_policy, len(game.executed), failed, list(map(str, game.blocked))))
    else:
        print_lines([*_failures(runner, result), _sentence(result, place, report)])
    if runner.store is not None and runner.store.error is not None:
        raise InputError(f"{runner.store.path}: cannot write, so no more tasks were started: {runner.store.error}")
    if remaining and runner.stopping:
        tell([f"to resume: eligo run --resume {place}"])
        return INTERRUPTED if len(result.failed) < runner.settings.most_failures else FAILED
    return 0 if result.ok else FAILED


def _sentence(result: Result, place: str, report: str | None) -> str:
    game = result.execution
    where = f"logs: {place}/logs" if report is None else f"report: {report}"
    if result.ok and game.dag.tasks and not result.begun:
        all_of_it = "the only task is" if len(game.dag) == 1 else f"all {len(game.dag):,} tasks are"
        return f"Nothing to do: {all_of_it} already done; {where}"
    counts = {DONE: len(game.executed), BAD: len(result.failed), BLOCKED: len(game.blocked)}
    return f"{end_headline(counts, len(game.dag), result.seconds, result.from_cache)}; {where}"


def _disk_lines(runner: Runner, folder: RunFolder) -> list[str]:
    """The space that outputs have taken, if any was removed, and the temporary files that stay."""
    if runner.outputs is None:
        return []
    use = disk_use(runner.outputs.files.flow, folder.store.files())
    exceeded = [] if runner.within is None or runner.within.remark is None else [f"warning: {runner.within.remark}"]
    return [*exceeded, *([f"files: {use}"] if use.removed else []), *map(harmless, runner.outputs.remarks())]


def _failures(runner: Runner, result: Result) -> list[str]:
    lines = []
    for task, why in list(result.failed.items())[:MOST_SHOWN]:
        work = runner.work(task, runner.attempts_at(task))
        log = getattr(work, "err", "")
        where = f" ({os.path.relpath(log)})" if log and os.path.exists(log) else ""
        tries = runner.attempts_at(task)
        lines.append(harmless(f"{shorten(task)}: {why}, {counted(tries, 'attempt')}{where}"))
    more = len(result.failed) - MOST_SHOWN
    return lines + ([f"... and {more:,} more failed tasks"] if more > 0 else [])


# By DAGMan


class DagmanWatch:
    """Prints the progress of DAGMan now and then, and knows whether the user wants it to stop."""

    def __init__(self) -> None:
        self.stopping = False
        self._due = time.monotonic()

    def __call__(self, events: Mapping[str, int]) -> bool:
        """Print the number of events of each kind; returns whether to stop."""
        if time.monotonic() >= self._due and events:
            self._due = time.monotonic() + SELDOM
            tell([", ".join(f"{count:,} {kind}" for kind, count in events.items())])
        return self.stopping

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal to stop."""
        self.stopping = True
        tell(["removing the jobs of this run"])


def by_dagman(flow: Workflow, request: RunRequest, folder: RunFolder) -> int:
    """Run a workflow with DAGMan, follow it to its end, and print the result; returns the exit code."""
    settings, order = request.settings(), tuple(in_priority_order(flow, order_to_follow(flow, request.used_policy)))
    commands = commands_in(folder, flow, request.directory, elsewhere=True)
    files = TaskFiles(flow, commands.folder)
    if files.any_outputs:
        tell(["htcondor-dagman does not check declared outputs or recreate deleted ones; engine htcondor does"])
    limits = (request.retries, request.timeout, request.directory)
    job = DagmanJob(flow, folder, settings.slots, order, commands, *limits, files=files)
    watch, began = DagmanWatch(), time.monotonic()
    with heeding(watch.stop, signal.SIGINT, signal.SIGTERM):
        fates = run_dagman(job, watch)
    _print_fates(fates, Ended(len(flow), time.monotonic() - began, str(folder.path)), request)
    if watch.stopping and any(fate.state == "pending" for fate in fates.values()):
        tell([f"to resume: eligo run --resume {folder.path} --on {DAGMAN}"])
        return INTERRUPTED
    return 0 if all(fate.state == "done" for fate in fates.values()) else FAILED


def _print_fates(fates: Mapping[Any, Fate], ended: Ended, request: RunRequest) -> None:
    counts = Counter(fate.state for fate in fates.values())
    failed = {str(task): str(fate.failure) for task, fate in fates.items() if fate.state == "failed"}
    if request.json:
        blocked = [str(task) for task, fate in fates.items() if fate.state == "blocked"]
        print_json(ended.document(request.used_policy, counts["done"], failed, blocked))
        return
    lines = [f"{shorten(harmless(task))}: {harmless(why)}" for task, why in list(failed.items())[:MOST_SHOWN]]
    print_lines([*lines, f"{end_headline(counts, ended.tasks, ended.seconds)}; logs: {ended.run}/logs"])

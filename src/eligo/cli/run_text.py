"""A run as people see it: what goes on, what came of it, and how it goes on."""

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from types import FrameType

from eligo.cli.dagman import by_dagman
from eligo.cli.effects import SERVER
from eligo.cli.fidelity import accepted
from eligo.cli.live_display import watching
from eligo.cli.look import written_report
from eligo.cli.options import Reading
from eligo.cli.output import harmless, print_json, print_lines
from eligo.cli.plan_text import heeding, read_told, tell, working
from eligo.cli.remote import by_server
from eligo.cli.requests import FAILED, INTERRUPTED, MOST_SHOWN, Ended, RunRequest
from eligo.cli.run_page import shown
from eligo.errors import InputError, ShortageError, shorten
from eligo.estimating import lasting
from eligo.pages.process_source import WatchedProcess
from eligo.plotting.labels import counted
from eligo.running import Result, Resumed, RunFolder, Runner, execute, prepare_run
from eligo.workflow import Workflow

RESCUE = "rescue.dag"
UNSAID = "[null, false, false, [null, false, null, null]]"  # how a file is read where no option says


def flow_of_run(folder: str | None) -> Workflow:
    """The workflow of a run: its file, read with the options that the run was begun with, or what was kept of it."""
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
    return read_told(path, how)


def facts_of_run(folder: str | None) -> Mapping[str, str]:
    """What the folder of a run that is resumed keeps of it."""
    from eligo.running.folder import kept_workflow

    return {} if folder is None else kept_workflow(folder)[0]


def answer(flow: Workflow, request: RunRequest) -> int:
    """Run it, and say what came of it; the exit code."""
    served = request.on.startswith(SERVER)
    flow = accepted(flow, request.ignore, elsewhere=request.on != "local", served=served)
    if served:
        return by_server(flow, request)
    place = request.folder or default_folder(flow)
    with closing(RunFolder(place)) as folder:
        if request.on == "htcondor-dagman":
            folder.store.remember(**request.facts())
            return by_dagman(flow, request, folder)
        with working(f"planning {counted(len(flow), 'task')}"):
            runner, resumed = prepare_run(flow, request.on, request.settings(), folder)
        folder.store.remember(**request.facts())
        tell(list(resumed.remarks))
        if not len(flow) or resumed.kept < len(flow):
            tell(_resumed(resumed, place))
        plan = folder.store.curves().get("plan", ())
        process = WatchedProcess(flow, runner, request.settings().slots, plan)
        with (
            shown(place) if request.page else nullcontext(),
            watching(process, sys.stderr, request.quiet),
            interruptible(runner),
            _warned_of_shortage(runner, place),
        ):
            result = execute(runner)
        tell(_rescued(flow, result, place))
    report = written_report(place)
    return _print_result(runner, result, place, request, report)


def _rescued(flow: Workflow, result: Result, place: str) -> list[str]:
    """Of a DAGMan file that was not done, write down what is, as DAGMan reads it; what to tell of that."""
    from eligo.formats.dagman.writer import doubtful, next_rescue, rescue_text
    from eligo.formats.shared.files import save

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
    """The first Ctrl-C begins nothing more, the second stops what runs; so does the request to end, and a lost terminal.

    Where the loss of the terminal was ignored before (nohup), it still is.
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
def _warned_of_shortage(runner: Runner, place: str) -> Iterator[None]:
    """Say it where tasks wait because this machine lacks something, and how to resume where none could be started at all."""
    from eligo.engines.local import LocalEngine

    if isinstance(runner.engine, LocalEngine):
        runner.engine.shortage.warn = lambda message: tell([f"warning: {message}"])
    try:
        yield
    except ShortageError:
        tell([f"to resume: eligo run --resume {place}"])
        raise


def _resumed(resumed: Resumed, place: str) -> list[str]:
    """What is told where a run goes on."""
    parts = [
        f"{count:,} {what}"
        for count, what in (
            (resumed.kept, "already done"),
            (resumed.changed, "changed since and will run again"),
            (resumed.unmade, "will run again because outputs are missing"),
            (resumed.dependent, "will run again because they depend on these"),
            (resumed.new, "new"),
            (resumed.gone, "removed"),
        )
        if count and (what != "new" or resumed.kept or resumed.changed or resumed.unmade or resumed.gone)
    ]
    return [f"resuming {place}: {', '.join(parts)}"] if parts else []


def _print_result(runner: Runner, result: Result, place: str, request: RunRequest, report: str | None) -> int:
    """Say how it ended."""
    game = result.execution
    remaining = len(game.dag) - len(game.executed) - len(result.failed) - len(game.blocked)
    if request.json:
        failed = {str(task): str(why) for task, why in result.failed.items()}
        ended = Ended(len(game.dag), result.seconds, place, report)
        print_json(request.document(len(game.executed), failed, list(map(str, game.blocked)), ended))
    else:
        print_lines([*_failures(runner, result), _sentence(result, place, report)])
    if runner.store is not None and runner.store.error is not None:
        raise InputError(f"{runner.store.path}: cannot write, so no more tasks were started: {runner.store.error}")
    if remaining and runner.stopping:
        tell([f"to resume: eligo run --resume {place}"])
        return INTERRUPTED if len(result.failed) < runner.most_failures else FAILED
    return 0 if result.ok else FAILED


def _sentence(result: Result, place: str, report: str | None) -> str:
    game = result.execution
    done = (
        f"{len(game.executed):,} of {len(game.dag):,} tasks done"
        if not result.ok
        else ("The only task is done" if len(game.dag) == 1 else f"All {len(game.dag):,} tasks done")
    )
    bad = f", {len(result.failed):,} failed" if result.failed else ""
    blocked = f", {len(game.blocked):,} blocked" if game.blocked else ""
    where = f"logs: {place}/logs" if report is None else f"report: {report}"
    if result.ok and game.dag.tasks and not result.begun:
        all_of_it = "the only task is" if len(game.dag) == 1 else f"all {len(game.dag):,} tasks are"
        return f"Nothing to do: {all_of_it} already done; {where}"
    return f"{done}{bad}{blocked}, in {lasting(result.seconds)}; {where}"


def _failures(runner: Runner, result: Result) -> list[str]:
    lines = []
    for task, why in list(result.failed.items())[:MOST_SHOWN]:
        work = runner.work(task, runner.attempts_at(task))
        log = getattr(work, "err", "")
        where = f" ({os.path.relpath(log)})" if log and os.path.exists(log) else ""
        tries = runner.attempts_at(task)
        lines.append(harmless(f"{shorten(task)}: {why}, {tries} attempt{'' if tries == 1 else 's'}{where}"))
    more = len(result.failed) - MOST_SHOWN
    return lines + ([f"... and {more:,} more failed tasks"] if more > 0 else [])

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
from eligo.cli.options import Reading
from eligo.cli.paging import shown
from eligo.cli.plans import heeding, read_told, tell, working
from eligo.cli.printing import harmless, print_json, print_lines
from eligo.cli.remote import by_server
from eligo.cli.requests import FAILED, INTERRUPTED, MOST_SHOWN, Ended, RunRequest
from eligo.cli.seeing import written_report
from eligo.cli.watching import watching
from eligo.errors import InputError, ShortageError, shorten
from eligo.estimating import lasting
from eligo.pages.processes import WatchedProcess
from eligo.plotting.labels import counted
from eligo.running import Result, Resumed, RunFolder, Runner, begun, carried_out
from eligo.workflow import Workflow

RESCUE = "rescue.dag"
UNSAID = "[null, false, false, [null, false, null, null]]"  # how a file is read where no option says


def flow_of_run(folder: str | None) -> Workflow:
    """The workflow of a run: its file, read with the options that the run was begun with, or what was kept of it."""
    from eligo.formats import read
    from eligo.running.folder import KEPT, kept_workflow

    if folder is None:
        raise InputError("name a workflow to run, or with --resume the folder of a run")
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
            runner, resumed = begun(flow, request.on, request.settings(), folder)
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
            result = carried_out(runner)
        tell(_rescued(flow, result, place))
    report = written_report(place)
    return _told(runner, result, place, request, report)


def _rescued(flow: Workflow, result: Result, place: str) -> list[str]:
    """Of a DAGMan file that was not done, write down what is, as DAGMan reads it; what to tell of that."""
    from eligo.formats.dagman.writing import doubtful, next_rescue, rescue_text
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
    why = f"{counted(len(left_out), 'finished node')} left out: what the run ignored may decide whether they are done"
    if len(left_out) == len(executed):
        return [f"no rescue file for DAGMan: {why}"]
    save(rescue_text(flow, (name for name in executed if name not in left_out)), path)
    told = f"wrote {path}, which tells DAGMan what is done: copied to {next_rescue(file)}, it goes on from there"
    return [f"{told}; {why}" if left_out else told]


def default_folder(flow: Workflow) -> str:
    """FILE.run, beside the file."""
    path = flow.origin.path if flow.origin else None
    if not path or path == "-":
        raise InputError("a run needs a folder for its state: --run FOLDER names it")
    return f"{path}.run"


@contextmanager
def interruptible(runner: Runner) -> Iterator[None]:
    """The first Ctrl-C begins nothing more, the second stops what runs; so does the request to end, and a lost terminal.

    Where the loss of the terminal was ignored before (nohup), it still is.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        if runner.stopping or number != signal.SIGINT:
            runner.abort()
            said = "stopping what runs"
        else:
            runner.stop()
            count = counted(len(runner.running), "running task")
            said = f"nothing more is begun; {count} may end; press again to stop them"
        with suppress(OSError):  # the terminal may be gone
            tell([said])

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
        tell([f"eligo run --resume {place} goes on"])
        raise


def _resumed(resumed: Resumed, place: str) -> list[str]:
    """What is told where a run goes on."""
    parts = [
        f"{count:,} {what}"
        for count, what in (
            (resumed.kept, "done before"),
            (resumed.changed, "done before but changed since, to be done again"),
            (resumed.unmade, "done before but their outputs are gone, to be done again"),
            (resumed.dependent, "done before but dependent on these, to be done again"),
            (resumed.new, "new"),
            (resumed.gone, "gone"),
        )
        if count and (what != "new" or resumed.kept or resumed.changed or resumed.unmade or resumed.gone)
    ]
    return [f"going on with {place}: tasks {', '.join(parts)}"] if parts else []


def _told(runner: Runner, result: Result, place: str, request: RunRequest, report: str | None) -> int:
    """Say how it ended."""
    game = result.execution
    left = len(game.dag) - len(game.executed) - len(result.failed) - len(game.futile)
    if request.json:
        failed = {str(task): str(why) for task, why in result.failed.items()}
        ended = Ended(len(game.dag), result.seconds, place, report)
        print_json(request.document(len(game.executed), failed, list(map(str, game.futile)), ended))
    else:
        print_lines([*_failures(runner, result), _sentence(result, place, report)])
    if runner.store is not None and runner.store.error is not None:
        raise InputError(f"{runner.store.path}: cannot be written, so nothing more was begun: {runner.store.error}")
    if left and runner.stopping:
        tell([f"eligo run --resume {place} goes on"])
        return INTERRUPTED if len(result.failed) < runner.most_failures else FAILED
    return 0 if result.ok else FAILED


def _sentence(result: Result, place: str, report: str | None) -> str:
    game = result.execution
    done = (
        f"{len(game.executed):,} of {len(game.dag):,} tasks done"
        if not result.ok
        else ("The one task is done" if len(game.dag) == 1 else f"All {len(game.dag):,} tasks done")
    )
    bad = f", {len(result.failed):,} failed" if result.failed else ""
    futile = f", {len(game.futile):,} wait for these" if game.futile else ""
    where = f"logs are in {place}/logs" if report is None else f"{report} shows it"
    if result.ok and game.dag.tasks and not result.begun:
        all_of_it = "the one task was" if len(game.dag) == 1 else f"all {len(game.dag):,} tasks were"
        return f"Nothing was left to do: {all_of_it} done before; {where}."
    return f"{done}{bad}{futile}, in {lasting(result.seconds)}; {where}."


def _failures(runner: Runner, result: Result) -> list[str]:
    told = []
    for task, why in list(result.failed.items())[:MOST_SHOWN]:
        work = runner.work(task, runner.attempts_at(task))
        log = getattr(work, "err", "")
        where = f" ({os.path.relpath(log)})" if log and os.path.exists(log) else ""
        tries = runner.attempts_at(task)
        told.append(harmless(f"{shorten(task)}: {why}, {tries} {'try' if tries == 1 else 'tries'}{where}"))
    more = len(result.failed) - MOST_SHOWN
    return told + ([f"... and {more:,} more that failed"] if more > 0 else [])

"""Looking at a run or a server's workflow: where it stands, why a task stands where it does, its output, the report."""

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eligo.cli.aliases import with_new_keys
from eligo.cli.options import Access
from eligo.cli.output import harmless, print_facts, print_json, print_lines
from eligo.cli.plan_text import tell, working
from eligo.cli.server_door import is_on_server
from eligo.errors import InputError, NotBuiltError, shorten
from eligo.estimating import lasting
from eligo.pages.html import save_page
from eligo.pages.sources import Document, FolderSource, RunSource, ServerSource, only_run, run_folder
from eligo.pages.views import STATE_WORDS
from eligo.running.forecast import time_left
from eligo.running.states import BAD, BLOCKED, DONE, PENDING, READY, RETRYING

REPORT = "report.html"
MOST_SHOWN = 5  # failures that are told one by one
MOST_RUNNING, MOST_CAUSES, MOST_NAMES, MOST_LINES = 10, 10, 6, 3
_COLOUR = re.compile(r"(\x1b\[[\d;]*m)")


class Sight(NamedTuple):
    """What a verb looks at: a workflow of a source, and how people name it; *folder* is that of a run."""

    source: RunSource
    workflow: str
    place: str
    folder: Path | None = None


def source_of(name: str | None, access: Access) -> RunSource:
    """The run of a folder or of a workflow's file, a server, or the only run here."""
    if is_on_server(name):
        door = access.door(name)
        return ServerSource(door.url, door.owner())
    return FolderSource(only_run() if name is None else run_folder(name))


def sight_of(name: str | None, access: Access) -> Sight:
    """The one workflow that RUN names: of a folder, or of a server."""
    source = source_of(name, access)
    if isinstance(source, ServerSource):
        workflow = access.door(name).workflow
        return Sight(source, workflow, f"{source.place}/{workflow}")
    return Sight(source, "run", source.place, Path(source.place))


# eligo status


def show_status(name: str | None, as_json: bool, access: Access) -> int:
    """Say where a run or a server's workflows stand; the exit code is 1 where tasks failed."""
    source = source_of(name, access)
    if isinstance(source, ServerSource) and source.named is None:
        return _show_list(source, as_json)
    sight = sight_of(name, access)
    words = source.words(sight.workflow) if isinstance(source, ServerSource) else {}
    if words.get("reason"):
        print_json(with_new_keys(words)) if as_json else print_lines(_workflow_row(words))
        return 0
    view = source.view(sight.workflow, every=as_json)
    if as_json:
        print_json(with_new_keys(words) | _status_document(sight, view))
    else:
        print_lines([harmless(f"{view['title']}: {view['headline']}")])
        print_facts("", _status_facts(sight, view))
        print_lines([*notes_told(words), *_causes_told(sight, view)])
    return 1 if view["counts"][BAD] else 0


def _show_list(source: ServerSource, as_json: bool) -> int:
    """Every workflow of a server, in a line each."""
    listed = source.summaries()
    if as_json:
        print_json({"workflows": [with_new_keys(each) for each in listed]})
        return 0
    print_lines([] if listed else ["no workflows on this server"])
    for words in listed:
        print_lines(_workflow_row(words))
    return 0


def _workflow_row(words: Mapping[str, Any]) -> list[str]:
    """A workflow among others: what it is called, how it goes, what failed, and what the server says of it."""
    stands = harmless(words["reason"]) if words.get("reason") else counts_told(words["counts"])
    line = f"{harmless(words['name'])} ({words['workflow']}): {words['state']}; {stands}"
    return [line, *failures_told(words), *notes_told(words)]


def counts_told(counts: Mapping[str, int]) -> str:
    """How many tasks stand where, as far as there are any."""
    return ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)


def failures_told(words: Mapping[str, Any]) -> list[str]:
    """Why tasks failed, and which, in a line a cause."""
    return [
        f"{shorten(harmless(', '.join(one['tasks'])))}: {harmless(one['cause'])}"
        for one in words["failures"][:MOST_SHOWN]
    ]


def notes_told(words: Mapping[str, Any]) -> list[str]:
    """What the owner should know; servers of before this version say nothing of it."""
    return [f"warning: {harmless(note)}" for note in words.get("notes", ())[:MOST_SHOWN]]


def _status_facts(sight: Sight, view: Document) -> list[tuple[str, object]]:
    counts, tasks = view["counts"], view["tasks"]
    facts: list[tuple[str, object]] = [("tasks", f"{tasks:,}: {counts_told(counts)}" if tasks else "0")]
    facts += [("now", _now_told(view)), *_interrupted_told(view), *_running_told(sight, view)]
    if onward := _onward(sight, view):
        facts.append(("resume with", onward))
    if sight.folder is not None and (sight.folder / REPORT).exists():
        facts.append(("report", str(sight.folder / REPORT)))
    return facts


def _now_told(view: Document) -> str:
    if view["state"] == "running":
        return f"running, {time_left(view['left'])}"
    state = str(view["state"])
    return "done" if state == "done" else STATE_WORDS.get(state, state)


def _onward(sight: Sight, view: Document) -> str:
    """The command that goes on with what has stopped."""
    if sight.folder is not None:
        return f"eligo run --resume {sight.place}" if view["state"] in {"failed", "stopped"} else ""
    verb = {"failed": "retry", "held": "resume"}.get(view["state"])
    return f"eligo {verb} {sight.place}" if verb else ""


def _running_told(sight: Sight, view: Document) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = []
    for place, one in enumerate(view["running"][:MOST_RUNNING]):
        again = f", attempt {one['attempt']}" if one["attempt"] > 1 else ""
        since = lasting(round(max(0.0, view["now"] - one["since"]), 1))
        line = f"{shorten(one['task'])}, {one['client']}, for {since}{again}"
        facts.append(("" if place else "running", harmless(line)))
    more = len(view["running"]) - MOST_RUNNING
    return [*facts, ("", f"... and {more:,} more; eligo status {sight.place} --json lists all")] if more > 0 else facts


def _interrupted_told(view: Document) -> list[tuple[str, object]]:
    """The tasks that a killed run left behind, which are counted as ready."""
    tasks = view["interrupted"]
    if not tasks:
        return []
    again = "it starts again" if len(tasks) == 1 else "they start again"
    killed = f"running when the run was killed; {again} when the run is resumed"
    return [("interrupted", harmless(f"{_names(tasks)}: {killed}"))]


def _causes_told(sight: Sight, view: Document) -> list[str]:
    causes, lines = view["failures"], list[str]()
    for cause in causes[:MOST_CAUSES]:
        names = _names(cause["tasks"], cause["count"])
        lines += ["", harmless(f"{cause['cause']}: {names}")]
        lines += [f"  {harmless(line)}" for line in cause["tail"][-MOST_LINES:]]
        where = cause["log"] or f"eligo log {sight.place} {shorten(cause['tasks'][0])} --err"
        lines += [f"  ({harmless(where)})"] if cause["tail"] else ["  (no output)"]
    rest = len(causes) - MOST_CAUSES
    return lines + ([f"... and {rest:,} more causes; the report lists all"] if rest > 0 else [])


def _names(tasks: list[str], count: int | None = None) -> str:
    more = (len(tasks) if count is None else count) - MOST_NAMES
    return ", ".join(map(shorten, tasks[:MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")


def _status_document(sight: Sight, view: Document) -> Document:
    counts, causes = view["counts"], view["failures"]
    return {
        "run": sight.place,
        "name": view["title"],
        "state": view["state"],
        "under_way": view["under_way"],
        "tasks": view["tasks"],
        "counts": counts,
        "done": counts[DONE],
        "ready": counts[READY],
        "pending": counts[PENDING],
        "blocked": counts[BLOCKED],
        "retrying": counts[RETRYING],
        "waiting": counts[PENDING],  # the names of schema 1, for one release more
        "futile": counts[BLOCKED],
        "again": counts[RETRYING],
        "failed": counts[BAD],
        "running": [
            {
                "task": one["task"],
                "attempt": one["attempt"],
                "worker": one["client"],
                "seconds": max(0.0, view["now"] - one["since"]),
            }
            for one in view["running"]
        ],
        "interrupted": view["interrupted"],
        "seconds": view["seconds"],
        "left": view["left"],
        "policy": view["policy"],
        "workers": view["workers"],
        "engine": view["engine"],
        "failures": [{key: one[key] for key in ("cause", "count", "tasks")} for one in causes],
        "causes": [
            {"failure": one["cause"], "tasks": one["tasks"], "lines": one["tail"][-MOST_LINES:], "log": one["log"]}
            for one in causes
        ],
    }


# eligo why


def show_why(sight: Sight, task: str, as_json: bool) -> int:
    """Say why a task stands where it does."""
    detail = sight.source.detail(sight.workflow, task)
    if as_json:
        print_json(_why_document(detail))
        return 0
    first, *more = detail["why"]
    lines = [f"{shorten(detail['task'])}: {first[0].lower()}{first[1:]}", *more, *_tries_told(sight, detail)]
    lines += [f"Output: {_log_command(sight, other)} --err" for other in detail["because"][:1]]
    print_lines(harmless(line) for line in lines)
    return 0


def _log_command(sight: Sight, task: str) -> str:
    return f"eligo log {sight.place} {shorten(task)}"


def _tries_told(sight: Sight, detail: Document) -> Iterable[str]:
    for one in detail["attempts"]:
        what = "succeeded" if one["failure"] is None else one["failure"]
        took, after = lasting(round(one["ended"] - one["began"], 2)), lasting(round(one["after"], 2))
        when = f"started after {after}, took {took}, on {one['client']}"
        yield f"Attempt {one['attempt']}: {what}; {when}; {_where(sight, detail, one)}"


def _where(sight: Sight, detail: Document, attempt: Document) -> str:
    """Where what an attempt printed is: files, or the commands that print it."""
    streams = [stream for stream in ("out", "err") if attempt["printed"][stream]]
    command = f"{_log_command(sight, detail['task'])} --attempt {attempt['attempt']}"
    commands = {"out": command, "err": f"{command} --err"}
    return ", ".join(attempt["logs"][stream] or commands[stream] for stream in streams) or "no output"


def _why_document(detail: Document) -> Document:
    onward = detail["onward"] or {"tasks": None, "seconds": None, "releases": None}
    return {
        "task": detail["task"],
        "state": detail["state"],
        "kind": detail["kind"],
        "why": detail["why"],
        "needs": [{"task": task, "state": state} for task, state in detail["needs"]],
        "next": [{"task": task, "state": state} for task, state in detail["next"]],
        "because": detail["because"],
        "place": detail["place"],
        "policy": detail["policy"],
        "path": onward["tasks"],
        "path_seconds": onward["seconds"],
        "children": detail["children_total"],
        "releases": onward["releases"],
        "running": detail["running"],
        "attempts": [_attempt(one) for one in detail["attempts"]],
    }


def _attempt(attempt: Document) -> Document:
    fields = {
        key: attempt[key] for key in ("attempt", "client", "began", "ended", "answer", "failure", "code", "memory")
    }
    return fields | {
        "worker": attempt["client"],
        "seconds": attempt["ended"] - attempt["began"],
        "printed": attempt["printed"],
        **attempt["logs"],
    }


# eligo log


def show_log(sight: Sight, task: str, err: bool, attempt: int | None) -> int:
    """Print what a task printed: in its last attempt, or another; also of one that runs."""
    detail = sight.source.detail(sight.workflow, task)
    number = detail["tried"] if attempt is None else attempt
    _check_attempt(detail, number, attempt)
    data = sight.source.log(sight.workflow, task, number, err)
    if data:
        _write(data)
    else:
        other = sight.source.log(sight.workflow, task, number, not err)
        tell([harmless(_silence(detail, number, err, bool(other)))])
    return 0


def _check_attempt(detail: Document, number: int, asked: int | None) -> None:
    attempts, name = detail["attempts"], shorten(detail["task"])
    if number and number in {detail["tried"], *(one["attempt"] for one in attempts)}:
        return
    ended = len(attempts)
    never = "never started, because it depends on a failed task" if detail["state"] == BLOCKED else "not started yet"
    tries = f"{ended:,} attempt{'' if ended == 1 else 's'} so far" if ended else never
    raise InputError(f"{name}: no attempt {number}: {tries}" if asked else f"{name}: {tries}")


def _write(data: bytes) -> None:
    """As it is to a file or pipe; on a terminal, what would do more than change colours is written out."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    sys.stdout.write("".join(part if _COLOUR.fullmatch(part) else harmless(part) for part in _COLOUR.split(text)))
    sys.stdout.write("" if text.endswith("\n") else "\n")


def _silence(detail: Document, number: int, err: bool, other: bool) -> str:
    """What is said where nothing was printed."""
    stream, second = ("error", "output") if err else ("output", "error")
    yet = " yet" if detail["running"] is not None else ""
    sentence = f"{shorten(detail['task'])}, attempt {number}, printed nothing on standard {stream}{yet}"
    if not other:
        return f"{sentence} or standard {second}"
    return f"{sentence}, but standard {second} has output: {'leave --err out' if err else 'add --err'}"


# eligo report


def write_report(sight: Sight, output: str | None) -> int:
    """Write the report of a run or a server's workflow, as it is now."""
    path = output or str(Path(REPORT) if sight.folder is None else sight.folder / REPORT)
    save_page(path, lambda: sight.source.report(sight.workflow))
    tell([f"wrote {path}"])
    return 0


def written_report(place: str) -> str | None:
    """The report of a run that has ended, where it can be written: its path."""
    path = os.path.join(place, REPORT)
    try:
        with working("writing the report"):
            save_page(path, lambda: FolderSource(Path(place)).report("run"))
    except NotBuiltError:  # `eligo report` says how to build the page
        return None
    except Exception as error:  # whatever is wrong with the page: what came of the run is told all the same
        tell([f"no report: {error}"])
        return None
    return path

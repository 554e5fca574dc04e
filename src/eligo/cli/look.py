"""The verbs `status`, `why`, `log` and `report`: print the documents of a run or of a server's workflow."""

import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eligo.cli.effects import is_on_server
from eligo.cli.options import Access
from eligo.cli.output import harmless, print_facts, print_json, print_lines, with_new_keys
from eligo.cli.plan_text import tell, working
from eligo.errors import InputError, NotBuiltError, counted, shorten
from eligo.estimates import lasting
from eligo.pages.details import why_document
from eligo.pages.html import save_page
from eligo.pages.sources import EVERY, OVER, Document, FolderSource, RunSource, ServerSource, only_run, run_folder
from eligo.pages.views import MOST_LINES, STATE_WORDS, count_words, status_document
from eligo.running.folder import REPORT, STATE
from eligo.running.states import BAD, BLOCKED, DONE, time_left
from eligo.space.disk_use import DiskUse
from eligo.stores import under_way
from eligo.work.attempts import CACHE

MOST_SHOWN = 5  # failures that are printed one by one
MOST_RUNNING, MOST_CAUSES, MOST_NAMES = 10, 10, 6
_COLOUR = re.compile(r"(\x1b\[[\d;]*m)")


class Subject(NamedTuple):
    """What a verb looks at: a workflow of a source, and its name for people; *folder* is that of a run."""

    source: RunSource
    workflow: str
    place: str
    folder: Path | None = None


def source_of(name: str | None, access: Access) -> RunSource:
    """The source that a name means: the run of a folder or file, a server, or the only run in this folder."""
    if is_on_server(name):
        target = access.target(name)
        return ServerSource(target.url, target.owner())
    return FolderSource(only_run() if name is None else run_folder(name))


def subject_of(name: str | None, access: Access) -> Subject:
    """The single workflow that RUN names: of a folder, or of a server."""
    source = source_of(name, access)
    if isinstance(source, ServerSource):
        workflow = access.target(name).workflow
        return Subject(source, workflow, f"{source.place}/{workflow}")
    return Subject(source, "run", source.place, Path(source.place))


# eligo status


def show_status(name: str | None, as_json: bool, access: Access) -> int:
    """Print the state of a run or of a server's workflows; the exit code is 1 if tasks failed."""
    source = source_of(name, access)
    if isinstance(source, ServerSource) and source.named is None:
        return _show_list(source, as_json)
    subject = subject_of(name, access)
    words = source.words(subject.workflow) if isinstance(source, ServerSource) else {}
    if words.get("reason"):
        print_json(with_new_keys(words)) if as_json else print_lines(_workflow_row(words))
        return 0
    view = source.view(subject.workflow, every=as_json)
    if as_json:
        print_json(with_new_keys(words) | {"run": subject.place} | status_document(view))
    else:
        print_lines([harmless(f"{view['title']}: {view['headline']}")])
        print_facts("", _status_facts(subject, view))
        print_lines([*note_lines(words), *_cause_lines(subject, view)])
    return 1 if view["counts"][BAD] else 0


def _show_list(source: ServerSource, as_json: bool) -> int:
    """Print one line for every workflow of a server."""
    listed = source.summaries()
    if as_json:
        print_json({"workflows": [with_new_keys(each) for each in listed]})
        return 0
    print_lines([] if listed else ["no workflows on this server"])
    for words in listed:
        print_lines(_workflow_row(words))
    return 0


def _workflow_row(words: Mapping[str, Any]) -> list[str]:
    """A workflow in a list: its name, state, failures, and the server's notes."""
    stands = harmless(words["reason"]) if words.get("reason") else count_words(words["counts"])
    line = f"{harmless(words['name'])} ({words['workflow']}): {words['state']}; {stands}"
    return [line, *failure_lines(words), *note_lines(words)]


def failure_lines(words: Mapping[str, Any]) -> list[str]:
    """The causes of failures and the tasks that failed, one cause per line."""
    return [
        f"{shorten(harmless(', '.join(one['tasks'])))}: {harmless(one['cause'])}"
        for one in words["failures"][:MOST_SHOWN]
    ]


def note_lines(words: Mapping[str, Any]) -> list[str]:
    """The server's notes for the owner; servers before this version send none."""
    return [f"warning: {harmless(note)}" for note in words.get("notes", ())[:MOST_SHOWN]]


def _status_facts(subject: Subject, view: Document) -> list[tuple[str, object]]:
    counts, tasks = view["counts"], view["tasks"]
    facts: list[tuple[str, object]] = [("tasks", f"{tasks:,}: {count_words(counts)}" if tasks else "0")]
    facts += [("now", _now(view)), *_interrupted_facts(view), *_running_facts(subject, view)]
    if onward := _onward(subject, view):
        facts.append(("resume with", onward))
    if view.get("from_cache"):  # servers before this version send none
        facts.append(("from the cache", counted(view["from_cache"], "task")))
    if view.get("starving"):
        facts.append(("idle", harmless(view["starving"])))
    if view.get("disk"):
        facts.append(("files", DiskUse(**view["disk"])))
    if subject.folder is not None and (subject.folder / REPORT).exists():
        facts.append(("report", str(subject.folder / REPORT)))
    return facts


def _now(view: Document) -> str:
    if view["state"] == "running":
        return f"running, {time_left(view['left'])}"
    state = str(view["state"])
    return "done" if state == "done" else STATE_WORDS.get(state, state)


def _onward(subject: Subject, view: Document) -> str:
    """The command that resumes a workflow that has stopped; empty if there is none."""
    if subject.folder is not None and view["state"] in {"failed", "stopped"}:
        return f"eligo run --resume {subject.place}"
    verb = {"failed": "retry", "held": "resume"}.get(view["state"])
    return f"eligo {verb} {subject.place}" if verb else ""


def _running_facts(subject: Subject, view: Document) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = []
    for place, one in enumerate(view["running"][:MOST_RUNNING]):
        again = f", attempt {one['attempt']}" if one["attempt"] > 1 else ""
        since = lasting(round(max(0.0, view["now"] - one["since"]), 1))
        worker = f", {one['client']}" if one["client"] else ""
        line = f"{shorten(one['task'])}{worker}, for {since}{again}"
        facts.append(("" if place else "running", harmless(line)))
    more = len(view["running"]) - MOST_RUNNING
    if more > 0:
        facts.append(("", f"... and {more:,} more; eligo status {subject.place} --json lists all"))
    return facts


def _interrupted_facts(view: Document) -> list[tuple[str, object]]:
    """The tasks that were running when the run was killed, which count as ready."""
    tasks = view["interrupted"]
    if not tasks:
        return []
    again = "it starts again" if len(tasks) == 1 else "they start again"
    killed = f"running when the run was killed; {again} when the run is resumed"
    return [("interrupted", harmless(f"{_names(tasks)}: {killed}"))]


def _cause_lines(subject: Subject, view: Document) -> list[str]:
    causes, lines = view["failures"], list[str]()
    for cause in causes[:MOST_CAUSES]:
        names = _names(cause["tasks"], cause["count"])
        lines += ["", harmless(f"{cause['cause']}: {names}")]
        lines += [f"  {harmless(line)}" for line in cause["tail"][-MOST_LINES:]]
        where = cause["log"] or f"eligo log {subject.place} {shorten(cause['tasks'][0])} --err"
        lines += [f"  ({harmless(where)})"] if cause["tail"] else ["  (no output)"]
    rest = len(causes) - MOST_CAUSES
    return lines + ([f"... and {rest:,} more causes; the report lists all"] if rest > 0 else [])


def _names(tasks: list[str], count: int | None = None) -> str:
    more = (len(tasks) if count is None else count) - MOST_NAMES
    return ", ".join(map(shorten, tasks[:MOST_NAMES])) + (f" and {more:,} more" if more > 0 else "")


# eligo why


def show_why(subject: Subject, task: str, as_json: bool) -> int:
    """Print why a task is in its state."""
    detail = subject.source.detail(subject.workflow, task)
    if as_json:
        print_json(why_document(detail))
        return 0
    first, *more = detail["why"]
    lines = [f"{shorten(detail['task'])}: {first[0].lower()}{first[1:]}", *more, *_attempt_lines(subject, detail)]
    lines += [f"Output: {_log_command(subject, other)} --err" for other in detail["because"][:1]]
    print_lines(harmless(line) for line in lines)
    return 0


def _log_command(subject: Subject, task: str) -> str:
    return f"eligo log {subject.place} {shorten(task)}"


def _attempt_lines(subject: Subject, detail: Document) -> Iterable[str]:
    for one in detail["attempts"]:
        what = "succeeded" if one["failure"] is None else one["failure"]
        took, after = lasting(round(one["ended"] - one["began"], 2)), lasting(round(one["after"], 2))
        where = "outputs taken from the cache" if _is_cached(subject, one) else f"on {one['client']}"
        when = f"started after {after}, took {took}, {where}"
        yield f"Attempt {one['attempt']}: {what}; {when}; {_where(subject, detail, one)}"


def _is_cached(subject: Subject, attempt: Document) -> bool:
    """Whether an attempt took its outputs from the cache of a run."""
    return subject.folder is not None and attempt["client"] == CACHE


def _where(subject: Subject, detail: Document, attempt: Document) -> str:
    """The files with the output of an attempt, or the commands that print it."""
    streams = [stream for stream in ("out", "err") if attempt["printed"][stream]]
    command = f"{_log_command(subject, detail['task'])} --attempt {attempt['attempt']}"
    commands = {"out": command, "err": f"{command} --err"}
    return ", ".join(attempt["logs"][stream] or commands[stream] for stream in streams) or "no output"


# eligo log


def show_log(subject: Subject, task: str, err: bool, attempt: int | None) -> int:
    """Print the output of a task, of its last attempt or another one, even while it is running."""
    detail = subject.source.detail(subject.workflow, task)
    number = detail["tried"] if attempt is None else attempt
    _check_attempt(detail, number, attempt)
    if any(one["attempt"] == number and _is_cached(subject, one) for one in detail["attempts"]):
        tell(["from the cache: the output of the execution that made its files"])
    data = subject.source.log(subject.workflow, task, number, err)
    if data:
        _write(data)
    else:
        other = subject.source.log(subject.workflow, task, number, not err)
        tell([harmless(_silence(detail, number, err, bool(other)))])
    return 0


def follow_log(subject: Subject, task: str, err: bool, attempt: int | None) -> int:
    """Print the output of a task as it comes, until the task, or the given attempt, has ended.

    While an attempt runs, its output is printed only if the attempt still runs a moment after the output was read: its file
    may be that of another task by then.
    """
    number, printed, data = 0, 0, b""
    while True:
        going, detail = _is_under_way(subject), subject.source.detail(subject.workflow, task)
        if number != (latest := attempt or detail["tried"]):
            number, printed, data = latest, 0, b""
        ended = any(one["attempt"] == number for one in detail["attempts"])
        over = not going or (ended if attempt else detail["state"] in {DONE, BAD, BLOCKED})
        if ended or over:
            _check_attempt(detail, number, attempt)
            data = subject.source.log(subject.workflow, task, number, err)
        if data[printed:]:
            _write(data[printed:], complete=False)
            sys.stdout.flush()
        printed = max(printed, len(data))
        if over:
            return 0
        if not ended and number:
            data = subject.source.log(subject.workflow, task, number, err)
        time.sleep(EVERY)


def _is_under_way(subject: Subject) -> bool:
    if subject.folder is not None:
        return under_way(subject.folder / STATE)
    return isinstance(subject.source, ServerSource) and subject.source.words(subject.workflow)["state"] not in OVER


def _check_attempt(detail: Document, number: int, asked: int | None) -> None:
    attempts, name = detail["attempts"], shorten(detail["task"])
    if number and number in {detail["tried"], *(one["attempt"] for one in attempts)}:
        return
    ended = len(attempts)
    never = "never started, because it depends on a failed task" if detail["state"] == BLOCKED else "not started yet"
    tries = f"{counted(ended, 'attempt')} so far" if ended else never
    raise InputError(f"{name}: no attempt {number}: {tries}" if asked else f"{name}: {tries}")


def _write(data: bytes, complete: bool = True) -> None:
    """Write output unchanged to a file or pipe; on a terminal, escape everything that does more than change colours.

    On a terminal, *complete* output ends with a line feed.
    """
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    sys.stdout.write("".join(part if _COLOUR.fullmatch(part) else harmless(part) for part in _COLOUR.split(text)))
    sys.stdout.write("\n" if complete and not text.endswith("\n") else "")


def _silence(detail: Document, number: int, err: bool, other: bool) -> str:
    """The sentence for an attempt without output."""
    stream, second = ("error", "output") if err else ("output", "error")
    yet = " yet" if detail["running"] is not None else ""
    sentence = f"{shorten(detail['task'])}, attempt {number}, printed nothing on standard {stream}{yet}"
    if not other:
        return f"{sentence} or standard {second}"
    return f"{sentence}, but standard {second} has output: {'leave --err out' if err else 'add --err'}"


# eligo report


def write_report(subject: Subject, output: str | None) -> int:
    """Write the current report of a run or of a server's workflow."""
    path = output or str(Path(REPORT) if subject.folder is None else subject.folder / REPORT)
    with working("reading the run"):
        document = subject.source.report(subject.workflow)
    print_lines(map(harmless, (document["view"]["headline"], *document["view"]["order"]["words"])))
    save_page(path, lambda: document)
    tell([f"wrote {path}"])
    return 0


def report_of(place: str) -> str | None:
    """The report of a run in which nothing has changed; it is written if it is missing."""
    path = os.path.join(place, REPORT)
    return path if os.path.exists(path) else save_report(place)


def save_report(place: str) -> str | None:
    """Write the report of a run that has ended; returns its path, or None if it cannot be written."""
    path = os.path.join(place, REPORT)
    try:
        with working("writing the report"):
            save_page(path, lambda: FolderSource(Path(place)).report("run"))
    except NotBuiltError:  # `eligo report` explains how to build the page
        return None
    except Exception as error:  # whatever is wrong with the page, the result of the run is printed
        tell([f"no report: {error}"])
        return None
    return path

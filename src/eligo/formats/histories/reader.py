"""Reads a history from a file or a folder: a log of an engine, a workflow with run times, or one of eligo's own runs."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from eligo.dag import Dag
from eligo.errors import FormatError, InputError
from eligo.estimates import all_kinds, kind_of, measured_files
from eligo.formats import detection as detecting
from eligo.formats.histories import History, Parsed, detect, left_out, module
from eligo.formats.histories.htcondor import refusal
from eligo.formats.reader import located, read, read_loaded
from eligo.formats.shared.files import COMPRESSED, LARGEST_FILE, Loaded, load_any, load_bytes
from eligo.workflow import Timed, Workflow

if TYPE_CHECKING:
    from eligo.work.files import FileChange

#: The number of bytes that show whether a file in a folder is a history.
GLANCE = 10_000
MOST_FILES = 100_000
#: The maximum number of remarks on the files of a folder.
MOST_REMARKS = 5
#: The files in the folder of one of eligo's own runs, FILE.run.
STATE, LOCK, WORKFLOW = "run.db", "run.db.lock", "workflow.json"


def read_history(path: detecting.StrPath, limit: int = LARGEST_FILE) -> History:
    """The run times in a log of an engine, a workflow with run times, or a folder of such files.

    The format is detected from the content (see `eligo.formats.histories`). In a folder and below, all histories are read
    and other files skipped; together they may have *limit* bytes. Errors name the file.
    """
    path = os.fspath(path)
    single = os.path.basename(path) == STATE and os.path.isfile(path)
    path = (os.path.dirname(path) or os.curdir) if single else path
    if single or is_run(path):
        records, remarks, sizes = parse_run(path)
        return History(tuple(records), "eligo", path, tuple(remarks), tuple(sizes))
    if os.path.isdir(path):
        return _read_folder(path, limit)
    loaded = load_any(path, limit)
    format = detect(loaded.text)
    if format is None:
        return _past_run(path, loaded, limit)
    try:
        records, remarks, _ = module(format).parse(loaded.text, path)
    except InputError as error:
        raise located(error, path, loaded.text) from None
    return History(tuple(records), format, path, tuple(remarks))


def _past_run(path: str, loaded: Loaded, limit: int) -> History:
    """The run times in a workflow."""
    try:
        if refused := refusal(loaded.text):
            raise refused
        format = detecting.detect(path, loaded.text)
        if not _has_times(format):
            raise FormatError(f"{format} files have no run times, and this is not a history in a known format")
    except InputError as error:
        raise located(error, path, loaded.text) from None
    flow = read_loaded(loaded, path, format, limit)
    tasks = (flow.task(name) for name in flow.dag.tasks)
    records = tuple(Timed(task.name, kind_of(task), task.seconds) for task in tasks if task.seconds is not None)
    remarks = () if records else ("no task in this file has a run time",)
    return History(records, format, path, remarks, measured_files(flow, flow.file_sizes))


def _has_times(format: str) -> bool:
    return "seconds" not in detecting.module(format).CANNOT


def _read_folder(folder: str, limit: int) -> History:
    histories: list[History] = []
    for path, size in _files(folder):
        history = _history_at(path, limit)
        if history is not None:
            limit = max(0, limit - size)
            histories.append(history)
    if not histories:
        raise FormatError("no history found in this folder", folder)
    remarks = [f"{os.path.relpath(each.path, folder)}: {words}" for each in histories for words in each.remarks]
    more = len(remarks) - MOST_REMARKS
    lines = [*remarks[:MOST_REMARKS], *([f"and {more:,} more remarks"] if more > 0 else [])]
    formats = " and ".join(sorted({each.format for each in histories}))
    records = tuple(record for each in histories for record in each.records)
    return History(records, formats, folder, tuple(lines), tuple(size for each in histories for size in each.sizes))


def _files(folder: str) -> Iterator[tuple[str, int]]:
    """The regular files in a folder and below, always in the same order, and their sizes."""
    count = 0
    for place, folders, files in os.walk(folder):
        folders.sort()
        of_run = is_run(place)  # its other files are not histories
        folders[:] = [] if of_run else folders
        for path in (os.path.join(place, file) for file in ([STATE] if of_run else sorted(files))):
            with suppress(OSError):  # the file has been removed
                size = os.path.getsize(path) if os.path.isfile(path) else 0
                count += 1
                yield from [(path, size)] if size else []
        if count > MOST_FILES:
            raise FormatError(f"more than {MOST_FILES:,} files in this folder", folder)


def _history_at(path: str, limit: int) -> History | None:
    """The history in a file; None if its beginning does not look like one."""
    if os.path.basename(path) == STATE:
        with suppress(InputError):
            return read_history(path, limit)
        return None
    if detect(_beginning(path)) is not None:
        return read_history(path, limit)
    if any(map(_has_times, detecting.of_suffix(path))):
        with suppress(InputError):
            history = read_history(path, limit)
            return history if history.records else None
    return None


def _beginning(path: str) -> str:
    with suppress(FormatError, OSError):
        if path.lower().endswith(COMPRESSED):
            return load_bytes(path)[:GLANCE].decode("latin-1")
        with open(path, "rb") as file:
            return file.read(GLANCE).decode("utf-8", "replace").removeprefix("\ufeff")
    return ""


def is_run(folder: str) -> bool:
    """Whether a folder is the folder of a run."""
    return bool(folder) and all(os.path.isfile(os.path.join(folder, name)) for name in (STATE, LOCK))


def parse_run(folder: str) -> Parsed:
    """The mean run time of the successful attempts at each task, and the sizes of outputs; the run may still be active.

    The kinds of tasks come from the workflow that is stored in the same folder.
    """
    from eligo.stores import added_names, read_run  # here, because a plan without a history needs no database
    from eligo.work.attempts import CACHE

    state = read_run(os.path.join(folder, STATE))
    names = [*state.tasks, *added_names(state.additions)]
    failed = sum(attempt.failure is not None for attempt in state.attempts)
    good = (one for one in state.attempts if one.failure is None and one.client != CACHE)
    means = _means((one.task, one.ended - one.began) for one in good)
    flow = _stored_workflow(os.path.join(folder, WORKFLOW))
    kinds = dict(zip(flow.dag.labels, all_kinds(flow), strict=True))
    records = [Timed(names[task], kinds.get(names[task]), seconds) for task, seconds in means if task < len(names)]
    sizes = measured_files(flow, sizes_in(state.files))
    return Parsed(records, left_out(failed, "failed attempt", "failed attempts"), sizes)


def read_sizes(folder: str) -> dict[str, int]:
    """The size that each output of a run had when its task was done the last time."""
    from eligo.stores import read_files

    return sizes_in(read_files(os.path.join(folder, STATE)))


def sizes_in(changes: Iterable["FileChange"]) -> dict[str, int]:
    """The size that each output had when its task was done the last time."""
    return {change.name: change.size for change in changes if change.size is not None}


def _means(took: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """The mean seconds of each task, by number."""
    times: dict[int, list[float]] = {}
    for task, seconds in took:
        times.setdefault(task, []).append(seconds)
    return [(task, sum(seconds) / len(seconds)) for task, seconds in sorted(times.items())]


def _stored_workflow(path: str) -> Workflow:
    """The workflow that was run; empty if the file is missing."""
    with suppress(InputError):
        return read(path, "json")
    return Workflow(Dag.from_arcs(()))

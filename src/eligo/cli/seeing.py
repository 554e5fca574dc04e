"""Looking at a run: where it stands, why a task stands where it does, what it printed, and the report."""

import os
import re
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from eligo.cli.plans import tell, working
from eligo.cli.printing import harmless, print_facts, print_json, print_lines
from eligo.cli.watching import time_left
from eligo.errors import InputError, shorten
from eligo.estimating import lasting
from eligo.pages.folders import WatchedRun
from eligo.pages.runs import run_document
from eligo.pages.writing import save_page
from eligo.plotting.runs import headline, run_page
from eligo.running.findings import Cause, causes
from eligo.running.forecasting import Forecast, Left
from eligo.running.location import STATE
from eligo.running.looked import AGAIN, BAD, DONE, FUTILE, READY, WAITING
from eligo.running.reasons import Place, nearest, order_of, place_of, since, to_blame, waits_for, why_told
from eligo.running.seen import Seen
from eligo.stores import Attempt

REPORT = "report.html"
MOST_RUNNING, MOST_CAUSES, MOST_NAMES = 10, 10, 6
_COLOUR = re.compile(r"(\x1b\[[\d;]*m)")


def run_folder(name: str) -> Path:
    """The folder of a run: itself, or that of the workflow's file."""
    for path in (Path(name), Path(f"{name}.run")):
        if (path / STATE).is_file():
            return path
    if Path(name).is_file():
        raise InputError(f"{name}: no run of it was begun: there is no {name}.run")
    raise InputError(f"{name}: there is no run in this folder")


def written_report(place: str) -> str | None:
    """The report of a run that has ended, where it can be written: its path."""
    path = os.path.join(place, REPORT)
    try:
        with working("writing the report"):
            save_report(place, path)
    except Exception as error:  # whatever is wrong with the page: what came of the run is told all the same
        tell([f"there is no report: {error}"])
        return None
    return path


# eligo status


def show_status(name: str, as_json: bool) -> int:
    """Say where a run stands; the exit code is 1 where tasks failed."""
    seen = Seen(run_folder(name))
    found = causes(seen, most=3)
    if as_json:
        print_json(_status_document(seen, found))
    else:
        print_lines([harmless(f"{seen.title}: {headline(seen, lasting)}")])
        print_facts("", _status_facts(seen))
        print_lines(_causes_told(seen, found))
    return 1 if seen.counts[BAD] else 0


def left_of(seen: Seen) -> Left | None:
    """How much longer a run takes that is under way; None where nothing can be said."""
    if not seen.under_way or not seen.sessions:
        return None
    forecast = Forecast(seen.flow)
    forecast.learn((a.task, a.ended - a.began) for a in seen.attempts if a.failure is None)
    lost = seen.futile | set(seen.failed)
    rest = [v for v in range(len(seen.flow)) if seen.state(v) != DONE and v not in lost]
    running = {v: max(0.0, seen.at - trying.since) for v, trying in seen.trying.items()}
    return forecast.left(rest, running, seen.sessions[-1].workers)


def _status_facts(seen: Seen) -> list[tuple[str, object]]:
    counts = seen.counts
    states = ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)
    facts: list[tuple[str, object]] = [("tasks", f"{len(seen.flow):,}: {states}" if len(seen.flow) else "0")]
    if seen.under_way:
        facts.append(("now", f"under way, {time_left(left_of(seen))}"))
    else:
        facts.append(("now", "nobody is at it" if counts[DONE] < len(seen.flow) else "all is done"))
    facts += _interrupted_told(seen)
    for place, trying in enumerate(sorted(seen.trying.values(), key=lambda trying: trying.since)[:MOST_RUNNING]):
        again = f", attempt {trying.attempt}" if trying.attempt > 1 else ""
        said = f"{_name(seen, trying.task)}, {trying.client}, for {since(seen, trying)}{again}"
        facts.append(("" if place else "running", harmless(said)))
    if len(seen.trying) > MOST_RUNNING:
        facts.append(
            ("", f"... and {len(seen.trying) - MOST_RUNNING:,} more; eligo status {seen.folder} --json has all")
        )
    if not seen.under_way and counts[DONE] < len(seen.flow):
        facts.append(("go on", f"eligo run --resume {seen.folder}"))
    if (seen.folder / REPORT).exists():
        facts.append(("report", str(seen.folder / REPORT)))
    return facts


def _interrupted_told(seen: Seen) -> list[tuple[str, object]]:
    """The tasks that a killed run left behind, which are counted as ready."""
    tasks = seen.interrupted
    if not tasks:
        return []
    names = ", ".join(_name(seen, v) for v in tasks[:MOST_NAMES])
    more = f" and {len(tasks) - MOST_NAMES:,} more" if len(tasks) > MOST_NAMES else ""
    again = "it starts again" if len(tasks) == 1 else "they start again"
    killed = f"running when the run was killed; {again} when the run is resumed"
    return [("interrupted", harmless(f"{names}{more}: {killed}"))]


def _causes_told(seen: Seen, found: list[Cause]) -> list[str]:
    told = []
    for cause in found[:MOST_CAUSES]:
        names = ", ".join(_name(seen, v) for v in cause.tasks[:MOST_NAMES])
        more = f" and {len(cause.tasks) - MOST_NAMES:,} more" if len(cause.tasks) > MOST_NAMES else ""
        told += ["", harmless(f"{cause.failure}: {names}{more}"), *(f"  {harmless(line)}" for line in cause.lines)]
        told += [f"  ({harmless(cause.log)})"] if cause.lines else ["  (nothing was printed)"]
    rest = len(found) - MOST_CAUSES
    return told + ([f"... and {rest:,} more causes; the report has all"] if rest > 0 else [])


def _status_document(seen: Seen, found: list[Cause]) -> dict[str, Any]:
    counts, left = seen.counts, left_of(seen)
    last = seen.sessions[-1] if seen.sessions else None
    return {
        "run": str(seen.folder),
        "under_way": seen.under_way,
        "tasks": len(seen.flow),
        "done": counts[DONE],
        "ready": counts[READY],
        "waiting": counts[WAITING],
        "futile": counts[FUTILE],
        "again": counts[AGAIN],
        "failed": counts[BAD],
        "running": [
            {
                "task": seen.labels[v],
                "attempt": trying.attempt,
                "worker": trying.client,
                "seconds": max(0.0, seen.at - trying.since),
            }
            for v, trying in seen.trying.items()
        ],
        "interrupted": [seen.labels[v] for v in seen.interrupted],
        "seconds": seen.seconds,
        "left": None if left is None else list(left),
        "policy": last and last.policy,
        "workers": last and last.workers,
        "engine": last and last.engine,
        "causes": [
            {"failure": c.failure, "tasks": [seen.labels[v] for v in c.tasks], "lines": c.lines, "log": c.log or None}
            for c in found
        ],
    }


# eligo why


def show_why(name: str, task: str, as_json: bool) -> int:
    """Say why a task stands where it does."""
    seen = Seen(run_folder(name))
    v = _number(seen, task)
    place = place_of(seen, v, order_of(seen))
    if as_json:
        print_json(_why_document(seen, v, place))
        return 0
    first, *more = why_told(seen, v, place)
    lines = [f"{_name(seen, v)}: {first[0].lower()}{first[1:]}", *more, *_tries_told(seen, v)]
    lines += [f"What it printed: eligo log {seen.folder} {_name(seen, u)} --err" for u in to_blame(seen, v)[:1]]
    print_lines(harmless(line) for line in lines)
    return 0


def _number(seen: Seen, task: str) -> int:
    """The number of a task; where there is none of that name, names that are nearly the same are told."""
    found = seen.flow.dag.index.get(task)
    if found is not None:
        return int(found)
    inside = [label for label in seen.labels if task.lower() in label.lower()]
    near = get_close_matches(task, seen.labels[:100_000], n=3, cutoff=0.6) or inside[:3]
    hint = f"; there is {', '.join(shorten(label) for label in near)}" if near else ""
    raise InputError(f"there is no task named {shorten(task)!r}{hint}")


def _tries_told(seen: Seen, v: int) -> list[str]:
    told = []
    for number, attempt in enumerate(seen.tried.get(v, []), 1):
        began = float(seen.moment([attempt.began])[0])
        what = "went well" if attempt.failure is None else attempt.failure
        logs = [path for err in (False, True) if os.path.exists(path := seen.log(v, number, err))]
        where = f"; {', '.join(logs)}" if logs else "; printed nothing"
        took = lasting(round(attempt.ended - attempt.began, 2))
        told.append(f"Attempt {number}: {what}, {took}, after {lasting(round(began, 2))}, by {attempt.client}{where}.")
    return told


def _why_document(seen: Seen, v: int, place: Place | None) -> dict[str, Any]:
    trying = seen.trying.get(v)
    return {
        "task": seen.labels[v],
        "state": seen.state(v),
        "kind": seen.kinds[v],
        "needs": _stated(seen, waits_for(seen, v)),
        "next": _stated(seen, nearest(seen, v)),
        "because": [seen.labels[u] for u in to_blame(seen, v)],
        "place": None if place is None else place.place,
        "policy": seen.sessions[-1].policy if seen.sessions else None,
        "path": None if place is None else place.path,
        "path_seconds": None if place is None else place.seconds,
        "children": len(seen.flow.dag.children_of(v)),
        "releases": None if place is None else place.releases,
        "running": None if trying is None else max(0.0, seen.at - trying.since),
        "attempts": [_attempt(seen, v, number, attempt) for number, attempt in enumerate(seen.tried.get(v, []), 1)],
    }


def _stated(seen: Seen, tasks: list[int]) -> list[dict[str, str]]:
    return [{"task": seen.labels[u], "state": seen.state(u)} for u in tasks]


def _attempt(seen: Seen, v: int, number: int, attempt: Attempt) -> dict[str, Any]:
    out, err = (seen.log(v, number, kind) for kind in (False, True))
    return {
        "attempt": number,
        "worker": attempt.client,
        "began": attempt.began,
        "seconds": attempt.ended - attempt.began,
        "failure": attempt.failure,
        "code": attempt.code,
        "memory": attempt.memory,
        "out": out if os.path.exists(out) else None,
        "err": err if os.path.exists(err) else None,
    }


# eligo log


def show_log(name: str, task: str, err: bool, attempt: int | None) -> int:
    """Print what a task printed: in its last attempt, or another; also of one that runs."""
    seen = Seen(run_folder(name))
    v = _number(seen, task)
    ended, trying = len(seen.tried.get(v, [])), seen.trying.get(v) or seen.cut_off.get(v)
    last = trying.attempt if trying is not None else ended
    number = last if attempt is None else attempt
    if not 1 <= number <= max(last, ended):
        tries = f"it was tried {ended:,} time{'' if ended == 1 else 's'}" if ended else "it has not begun"
        raise InputError(
            f"{shorten(task)}: there is no attempt {number} at it: {tries}" if attempt else f"{shorten(task)}: {tries}"
        )
    data = _bytes(seen.log(v, number, err))
    if data:
        _write(data)
        return 0
    tell([harmless(_silence(seen, v, number, err))])
    return 0


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _write(data: bytes) -> None:
    """As it is to a file or pipe; on a terminal, what would do more than change colours is written out."""
    if not sys.stdout.isatty():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    sys.stdout.write("".join(part if _COLOUR.fullmatch(part) else harmless(part) for part in _COLOUR.split(text)))
    sys.stdout.write("" if text.endswith("\n") else "\n")


def _silence(seen: Seen, v: int, number: int, err: bool) -> str:
    """What is said where nothing was printed."""
    stream, other = ("error", "output") if err else ("output", "error")
    yet = " yet" if v in seen.trying else ""
    said = f"{_name(seen, v)}, attempt {number}, printed nothing on standard {stream}{yet}"
    if not _bytes(seen.log(v, number, not err)):
        return f"{said}, nor on standard {other}"
    return (
        f"{said}, but on standard {other}: leave --err out"
        if err
        else f"{said}, but on standard {other}: --err shows it"
    )


# eligo report


def write_report(name: str, output: str | None) -> int:
    """Write the report of a run, as it is now."""
    folder = run_folder(name)
    path = output or str(folder / REPORT)
    tell([f"wrote {path}", *save_report(folder, path)])
    return 0


def save_report(folder: str | Path, path: str) -> list[str]:
    """Write the report of a run; what is to be said of it."""
    return save_page(path, lambda: run_document(WatchedRun(folder)), lambda: run_page(Seen(folder), lasting))


def _name(seen: Seen, v: int) -> str:
    return shorten(seen.labels[v])

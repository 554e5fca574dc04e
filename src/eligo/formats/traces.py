"""Tasks of a Nextflow run: its drawing has processes, and its trace has the tasks of each process.

A trace (or report) does not contain dependencies between tasks. But if process Q depends on process P in the drawing, tasks
of Q depend on tasks of P, and no task depends on one that was completed after it was submitted. The arcs from the tasks of
P to the tasks of Q are therefore these:

- If every task of Q has the tag of exactly one task of P, each depends on that one, unless the times contradict. Pipelines
  that process samples work like this, but the trace does not prove it. The numbers that Nextflow gives to tasks without a
  tag, (1), (2), ..., are not tags.
- Otherwise, every task of Q depends on all tasks of P, except those that were completed after it was submitted. These may be
  more arcs than necessary.

Processes that the drawing does not connect get no arcs between their tasks. Processes without completed tasks are replaced
by arcs. Tasks of processes that are not in the drawing have no arcs. Remarks report both, and how certain the arcs are.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from eligo.dag import Dag
from eligo.errors import FormatError, InputError, shorten
from eligo.formats.histories import left_out, nextflow, seconds_in
from eligo.formats.shared import data_arcs
from eligo.formats.shared.data_arcs import Arcs, through
from eligo.formats.shared.drawings import MOST_ARCS, check_count
from eligo.formats.shared.files import LARGEST_FILE, load_any
from eligo.workflow import Origin, Task, Workflow


class Traced(NamedTuple):
    """A task that ran, with its run time, and the times of its submission and completion if they are of this run."""

    name: str
    process: str
    tag: str | None
    seconds: float | None
    cores: float | None
    submitted: float | None
    completed: float | None


def by_tasks(flow: Workflow, path: str) -> Workflow:
    """The workflow of the tasks in the trace, or report, at *path*, for a workflow whose tasks are processes."""
    origin = flow.origin
    if origin is None or origin.engine != "nextflow":
        drawn = f"drawn by {origin.engine}" if origin and origin.engine else "not drawn by Nextflow"
        raise InputError(f"a trace needs a dag drawn by Nextflow, but this one is {drawn} (use -with-dag)")
    text = load_any(path, LARGEST_FILE).text
    try:
        if not nextflow.sniff(text):
            raise FormatError(
                "the file must be a Nextflow trace or report (use the output of -with-trace or -with-report)"
            )
        trace = nextflow.attempts(text)
        tasks = list(_tasks(trace))
    except InputError as error:
        raise error.located(path) from None
    if not tasks:
        raise FormatError(f"the trace must have a completed task, got none in {trace.out['left']:,} rows", path)
    return _TracedDrawing(flow, tasks).workflow(origin, left_out(trace.out["left"], "attempt", "attempts"))


def _tasks(trace: nextflow.TraceRows) -> Iterator[Traced]:
    names = Counter(row.get("name", "") for row, _ in trace.rows if row.get("status", "COMPLETED") in nextflow.DONE)
    numbered = _numbered_processes(trace.rows)
    for row, line in trace.rows:
        status = row.get("status", "COMPLETED")
        if status not in nextflow.DONE:
            trace.out["left"] += 1
            continue
        process, name = nextflow.process_of(row, line), row.get("name", "")
        tag = row.get("tag") or (name[len(process) + 2 : -1] if name.startswith(f"{process} (") else None)
        mark = row.get("hash") or row.get("task_id") or str(line)
        took = row.get(trace.timed)
        submit, complete = (_moment(row.get(title), status) for title in ("submit", "complete"))
        yield Traced(
            name if name and names[name] == 1 else f"{name or process} {mark}", process,
            None if process in numbered else tag,
            None if took is None else seconds_in(took, nextflow.MILLISECOND, line), _count(row.get("cpus")), submit,
            complete,
        )  # fmt: skip


def _numbered_processes(rows: Iterable[nextflow.Row]) -> set[str]:
    """The processes whose tasks have no tags, and were therefore numbered by Nextflow: (1), (2), ..."""
    named: dict[str, set[str]] = {}
    for row, line in rows:
        process, name = nextflow.process_of(row, line), row.get("name", "")
        if "tag" not in row and name.startswith(f"{process} ("):
            named.setdefault(process, set()).add(name[len(process) + 2 : -1])
    return {process for process, tags in named.items() if all(tag.isascii() and tag.isdecimal() for tag in tags)}


def _count(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None


def _moment(text: str | None, status: str) -> float | None:
    """The time in seconds; None if unknown, or for a task from the cache, which ran earlier."""
    if text is None or status != "COMPLETED":
        return None
    try:
        return int(text) / 1000 if text.isdecimal() else datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


class _TracedDrawing:
    """A drawing of processes, and the tasks of each process."""

    def __init__(self, flow: Workflow, tasks: Sequence[Traced]) -> None:
        self.tasks = tasks
        self.dag = flow.dag
        self.drawn = self._match_processes(flow)
        #: the numbers of the tasks of each process of the drawing
        self.of: dict[int, list[int]] = {}
        for number, task in enumerate(tasks):
            if task.process in self.drawn:
                self.of.setdefault(self.drawn[task.process], []).append(number)
        self.counts: Counter[str] = Counter()

    def workflow(self, origin: Origin, omissions: Sequence[str]) -> Workflow:
        """The tasks, with the arcs between them."""
        names = [task.name for task in self.tasks]
        dag: Dag = data_arcs.dag_of(names, data_arcs.columns(self._arcs()))
        details = {
            task.name: Task(name=task.name, seconds=task.seconds, cores=task.cores, category=task.process)
            for task in self.tasks
        }
        remarks = (*origin.remarks, *omissions, *self._remarks())
        return Workflow(dag, details, None, replace(origin, remarks=remarks))

    def _match_processes(self, flow: Workflow) -> dict[str, int]:
        """The process of the drawing for each process of the trace: with the same name, or the same last part of it."""
        labels = [flow.task(name).category or str(name) for name in flow.dag.tasks]
        full, last = (_places(labels), _places(label.rpartition(":")[2] for label in labels))
        matches: dict[str, int] = {}
        for process in dict.fromkeys(task.process for task in self.tasks):
            places = full.get(process) or last.get(process.rpartition(":")[2], [])
            if len(places) > 1:
                called = shorten(process.rpartition(":")[2])
                raise InputError(
                    f"{len(places)} processes of the drawing are named {called!r}, and the trace does not say which one is"
                    " meant (draw it as .dot, which has full names)"
                )
            matches |= {process: places[0]} if places else {}
        return matches

    def _arcs(self) -> Arcs:
        pairs = list(zip(self.dag.tails.tolist(), self.dag.child.tolist(), strict=True))
        idle = set(range(len(self.dag))) - self.of.keys()
        direct = through(pairs, idle, MOST_ARCS)
        arcs: list[tuple[int, int]] = []
        for parent, child in dict.fromkeys(pairs if direct is None else direct):
            arcs += self._between(self.of[parent], self.of[child])
            check_count(len(arcs))
        return arcs

    def _between(self, above: Sequence[int], below: Sequence[int]) -> Arcs:
        """The arcs between the tasks of two processes."""
        tagged = self._by_tag(above, below)
        if tagged is not None:
            self.counts["by tag"] += 1
            return tagged
        check_count(len(above) * len(below))
        single = len(above) == 1 or len(below) == 1
        self.counts["single" if single else "all"] += 1
        return [(tail, head) for head in below for tail in above if not self._too_late(tail, head)]

    def _by_tag(self, above: Sequence[int], below: Sequence[int]) -> Arcs | None:
        """The arcs from each task to those with the same tag; None if tags do not determine arcs."""
        tags = {self.tasks[number].tag: number for number in above}
        if len(above) < 2 or len(tags) < len(above) or None in tags:
            return None
        if any(self.tasks[number].tag not in tags for number in below):
            return None
        arcs = [(tags[self.tasks[number].tag], number) for number in below]
        return None if any(self._too_late(tail, head) for tail, head in arcs) else arcs

    def _too_late(self, tail: int, head: int) -> bool:
        """Whether task *tail* was completed after *head* was submitted, so that *head* did not depend on it."""
        completed, submitted = self.tasks[tail].completed, self.tasks[head].submitted
        return completed is not None and submitted is not None and completed > submitted

    def _remarks(self) -> Iterator[str]:
        yield f"the trace has {len(self.tasks):,} tasks of {len({task.process for task in self.tasks}):,} processes"
        if idle := len(self.dag) - len(self.of):
            yield f"processes without a completed task, replaced by arcs: {idle:,}"
        if alone := sum(task.process not in self.drawn for task in self.tasks):
            yield f"tasks of processes that are not in the drawing, read without arcs: {alone:,}"
        if count := self.counts["by tag"]:
            yield f"pairs of processes joined by equal tags, which is likely but not certain: {count:,}"
        if count := self.counts["all"]:
            more = "possibly more than it needs"
            yield f"pairs of processes where each task waits for all tasks that completed before it, {more}: {count:,}"


def _places(labels: Iterable[str]) -> Mapping[str, list[int]]:
    places: dict[str, list[int]] = {}
    for i, label in enumerate(labels):
        places.setdefault(label, []).append(i)
    return places

"""From processes to tasks: what Nextflow draws, made finer by the trace of a run.

Nextflow draws processes, and a trace (or report) has the tasks of each, but says of none what it needs. What is known is
this: where process Q needs process P, tasks of Q need tasks of P; and nothing that was completed after a task was submitted
can have been needed by it. So, between the tasks of P and Q,

- where every task of Q has the tag of exactly one task of P, each needs that one, unless the times say otherwise. That is
  how pipelines are written that go by samples; the trace suggests it and does not prove it. The numbers that Nextflow
  gives to tasks without a tag, (1), (2), ..., are no tags;
- else every task of Q needs all tasks of P but those that were completed after it was submitted: perhaps more than it does.

No arc is made between processes that the drawing does not connect. Processes of which nothing ran are passed through; tasks
of processes that are not drawn have no arcs. Both are told, and so is how many arcs are how sure.
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
    """A task that ran: which it was, how long it took, and when, where that is of this run."""

    name: str
    process: str
    tag: str | None
    seconds: float | None
    cores: float | None
    submitted: float | None
    completed: float | None


def by_tasks(flow: Workflow, path: str) -> Workflow:
    """The workflow whose processes are made finer by the trace, or report, in a file."""
    origin = flow.origin
    if origin is None or origin.engine != "nextflow":
        raise InputError("a trace needs a dag drawn by Nextflow, and this file is not one")
    text = load_any(path, LARGEST_FILE).text
    try:
        if not nextflow.sniff(text):
            raise FormatError("not a Nextflow trace or report")
        trace = nextflow.attempts(text)
        tasks = list(_tasks(trace))
    except InputError as error:
        raise error.located(path) from None
    if not tasks:
        raise FormatError("no task of this trace is complete", path)
    return _Finer(flow, tasks).workflow(origin, left_out(trace.out["left"], "attempt", "attempts"))


def _tasks(trace: nextflow.TraceRows) -> Iterator[Traced]:
    names = Counter(row.get("name", "") for row, _ in trace.rows if row.get("status", "COMPLETED") in nextflow.DONE)
    own = _own_numbers(trace.rows)
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
            name if name and names[name] == 1 else f"{name or process} {mark}",
            process,
            None if process in own else tag,
            None if took is None else seconds_in(took, nextflow.MILLISECOND, line),
            _count(row.get("cpus")),
            submit,
            complete,
        )


def _own_numbers(rows: Iterable[nextflow.Row]) -> set[str]:
    """The processes whose tasks have no tags, and so were numbered by Nextflow: (1), (2), ..."""
    named: dict[str, set[str]] = {}
    for row, line in rows:
        process, name = nextflow.process_of(row, line), row.get("name", "")
        if "tag" not in row and name.startswith(f"{process} ("):
            named.setdefault(process, set()).add(name[len(process) + 2 : -1])
    return {process for process, tags in named.items() if all(tag.isascii() and tag.isdecimal() for tag in tags)}


def _count(text: str | None) -> float | None:
    return float(text) if text and text.isascii() and text.isdecimal() and len(text) < 10 else None


def _moment(text: str | None, status: str) -> float | None:
    """When it was, in seconds; None where that is not known, or of a task in the cache, which ran earlier."""
    if text is None or status != "COMPLETED":
        return None
    try:
        return int(text) / 1000 if text.isdecimal() else datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


class _Finer:
    """A drawing of processes, and the tasks of each."""

    def __init__(self, flow: Workflow, tasks: Sequence[Traced]) -> None:
        self.tasks = tasks
        self.dag = flow.dag
        self.drawn = self._match_processes(flow)
        #: of each process of the drawing, the numbers of its tasks
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
        """The process of the drawing that each process of the trace is: of this name, or of this name's last part."""
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
        """From each task to those of the same tag; None where that is not what the trace suggests."""
        tags = {self.tasks[number].tag: number for number in above}
        if len(above) < 2 or len(tags) < len(above) or None in tags:
            return None
        if any(self.tasks[number].tag not in tags for number in below):
            return None
        arcs = [(tags[self.tasks[number].tag], number) for number in below]
        return None if any(self._too_late(tail, head) for tail, head in arcs) else arcs

    def _too_late(self, tail: int, head: int) -> bool:
        """Whether a task was completed after another was submitted, which then did not need it."""
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

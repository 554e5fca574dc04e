"""The check of a bound on the bytes that exist at once: the flow of each case is added up again, whatever made it.

A *case* is a task v that begins first of some tasks, or ends last of them. The executed tasks then are a set with the parents
of each; it has the ancestors of v, and neither v nor a descendant. Of tasks of which v begins *first*, it has none; if v ends
*last*, it has all others. What files pass from executed tasks to others is at most their size, and they exist; tasks pass
amounts on to their parents only. So the net amount that reaches the tasks outside is a lower bound, besides what v leaves.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate
from typing import Any

from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.errors import InputError, shorten
from eligo.estimates import sizes_of_files
from eligo.verifying.documents import Refuted, check_document, require
from eligo.workflow import Workflow

BOUND: dict[str, Any] = {
    "bytes": int, "first": bool,
    "cases": [{"task": str, "files": [[str, str, int]], "returned": [[str, str, int]]}],
}  # fmt: skip


def space_holds(flow: object, bound: Mapping[str, Any], results: Mapping[str, int] | None = None) -> bool:
    """Whether every order of a workflow, run by any number of workers, has the bytes at once that a bound claims.

    *bound* has the keys `bytes`, `first` (whether the task of a case begins first, or ends last, of the tasks of all cases)
    and `cases`: each has a `task`, what `files` pass to readers, and what tasks have `returned` to parents. *results* has the
    bytes of every task's result, if tasks leave results in memory, not files. Raises `InputError` if it is malformed.
    """
    check_document(bound, BOUND, "the bound")
    files = _Files(as_workflow(flow), results)
    try:
        tasks = [files.number(case["task"]) for case in bound["cases"]]
        require(len(tasks) == len(set(tasks)), "a task has two cases")
        require(bool(tasks) or bound["bytes"] <= 0, "a bound needs a case")
        for v, case in zip(tasks, bound["cases"], strict=True):
            others = {*tasks} - {v}
            early, late = (set(), others) if bound["first"] else (others, set())
            inside, outside = files.reached({v, *early}, down=False) - {v}, files.reached({v, *late}, down=True)
            require(not outside & inside, "no order has this case")
            gained = files.gained(case)
            free = (gained[x] for x in range(len(gained)) if x not in inside and x not in outside)
            least = files.left[v] + sum(gained[x] for x in outside) + sum(min(0, amount) for amount in free)
            require(bound["bytes"] <= least, "fewer bytes exist")
    except Refuted:
        return False
    return True


def check_space(flow: Workflow, claim: Mapping[str, Any]) -> None:
    """Raise an error if the bound on the bytes at once in a plan's document does not hold, or a claimed peak is wrong.

    Peaks on a pool of workers are only compared with the bound; it holds for every number of workers.
    """
    bound, entries = claim.get("space"), [entry for entry in claim.get("orders", ()) if "peak" in entry]
    if bound is None:
        require(not entries, "the peaks have no bound")
        return
    require(space_holds(flow, bound), "the bound on the size of files between tasks does not hold")
    files = _Files(flow, None)
    for entry in entries:
        require(entry["peak"] >= bound["bytes"], "an order needs less space than the lower bound")
        alone = claim.get("workers") is None
        require(not alone or entry["peak"] == files.peak(entry["order"]), "the peak is not that of the order")


Users = tuple[int, frozenset[int]]  # the task that writes a file, and those that read it


class _Files:
    """The files that pass between tasks, those of one writer with the same readers as one, by the name of any of them."""

    def __init__(self, flow: Workflow, results: Mapping[str, int] | None) -> None:
        self.dag = flow.dag.labelled()
        writer, readers = _users(flow) if results is None else ({}, {})
        if readers:
            sizes, _ = sizes_of_files(flow, readers, writer)
        else:
            nonsinks = [v for v in range(len(self.dag)) if self.dag.outdegree[v]]
            writer = {self.dag.tasks[v]: v for v in nonsinks}
            readers = {self.dag.tasks[v]: {*self.dag.children_of(v).tolist()} for v in nonsinks}
            sizes = {name: 1 if results is None else results[name] for name in writer}
        self.group = {file: (writer[file], frozenset(tasks)) for file, tasks in readers.items()}
        self.size: dict[Users, int] = {}
        self.left = [0] * len(self.dag)
        for file, group in self.group.items():
            self.size[group] = self.size.get(group, 0) + sizes[file]
            self.left[writer[file]] += sizes[file]

    def peak(self, order: Sequence[str]) -> int:
        """The largest number of bytes at once if the tasks run one at a time in this order."""
        place = {self.number(name): step for step, name in enumerate(order)}
        change = [0] * (len(order) + 1)
        for (writer, readers), size in self.size.items():
            change[place[writer]] += size
            change[max(place[v] for v in readers) + 1] -= size
        return max(accumulate(change), default=0)

    def number(self, name: str) -> int:
        """The number of a task."""
        if name not in self.dag.index:
            raise InputError(f"not a bound on bytes: unknown task {shorten(repr(name))}")
        return self.dag.index[name]

    def reached(self, tasks: set[int], down: bool) -> set[int]:
        """The tasks, and their descendants or ancestors."""
        return _reached(self.dag, tasks, down)

    def gained(self, case: Mapping[str, Any]) -> list[int]:
        """What each task takes less what it gives in a flow. Raises `Refuted` if it is none."""
        gained, sent = [0] * len(self.dag), dict[Users, int]()
        for file, name, amount in case["files"]:
            require(file in self.group and amount >= 0, "a file passes nothing")
            (writer, readers), reader = self.group[file], self.number(name)
            require(reader in readers, "a file passes something to a task that does not read it")
            sent[writer, readers] = sent.get((writer, readers), 0) + amount
            gained[writer], gained[reader] = gained[writer] - amount, gained[reader] + amount
        require(all(amount <= self.size[group] for group, amount in sent.items()), "a file passes more than its size")
        for name, parent, amount in case["returned"]:
            task, above = self.number(name), self.number(parent)
            require(amount >= 0 and above in self.dag.parents_of(task), "a task returns something to no parent")
            gained[task], gained[above] = gained[task] - amount, gained[above] + amount
        return gained


def _users(flow: Workflow) -> tuple[dict[str, int], dict[str, set[int]]]:
    """The first writer of every file, and the tasks that read it and come after the writer."""
    writer: dict[str, int] = {}
    readers: dict[str, set[int]] = {}
    for v, name in enumerate(flow.dag.tasks):
        for file in flow.task(name).outputs:
            writer.setdefault(file, v)
    reads = [(file, v) for v, name in enumerate(flow.dag.tasks) for file in flow.task(name).inputs]
    last, below = -1, set[int]()
    for u, file, v in sorted((writer[file], file, v) for file, v in reads if file in writer):
        if u != last:
            last, below = u, set(flow.dag.children_of(u).tolist())
        if v not in below:
            below = _reached(flow.dag, [u], down=True)
        if v in below and v != u:
            readers.setdefault(file, set()).add(v)
    return writer, readers


def _reached(dag: Dag, tasks: Collection[int], down: bool) -> set[int]:
    """The tasks, and their descendants or ancestors."""
    reached, waiting = set(tasks), list(tasks)
    while waiting:
        v = waiting.pop()
        fresh = set((dag.children_of(v) if down else dag.parents_of(v)).tolist()) - reached
        reached |= fresh
        waiting += fresh
    return reached

"""Which tasks of a workflow a run is asked for.

>>> from eligo.formats import parse
>>> flow = parse('{"tasks": [{"name": "a", "outputs": ["x"]}, {"name": "b", "inputs": ["x"]}, {"name": "c"}]}')
>>> select(flow, ["b"]).dag.tasks, select(flow, except_=["x"]).dag.tasks
(('a', 'b'), ('c',))
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np

from eligo.errors import InputError, shorten
from eligo.estimates import all_kinds
from eligo.formats.shared.data_arcs import plain_path
from eligo.grown_dag import reachable_tasks
from eligo.workflow import Workflow

#: the most words that are compared with a misspelt one
MOST_COMPARED = 5_000


@dataclass(frozen=True)
class Selection:
    """Which tasks to run; each word names a task, a file that a task writes, or a category."""

    #: the tasks to run, with all that they need; empty: all tasks
    targets: tuple[str, ...] = ()
    #: the tasks to leave out, with all that depend on them
    except_: tuple[str, ...] = ()
    #: of the targets and what they need, only these tasks and what these need; empty: all of it
    until: tuple[str, ...] = ()
    #: only these tasks and those that depend on them; what these tasks need counts as done
    start_from: tuple[str, ...] = ()
    #: the tasks to run again although they are done, with all that depend on them
    again: tuple[str, ...] = ()
    #: whether to run all of them again
    fresh: bool = False

    def applied(self, flow: Workflow) -> Workflow:
        """The selected part of a workflow; the workflow itself if all of it is."""
        if not (self.targets or self.except_ or self.until or self.start_from):
            return flow
        return select(flow, self.targets, self.except_, self.until, self.start_from)

    def assumed(self, flow: Workflow) -> list[int]:
        """The numbers of the tasks that --start-from skips, which count as done; parents come first."""
        if not self.start_from:
            return []
        first = find_tasks(flow, self.start_from)
        needed = set(reachable_tasks(flow.dag, first, up=True).tolist()) - _onward(flow, first)
        return [v for v in flow.dag.order.tolist() if v in needed]

    def repeated(self, flow: Workflow, among: Workflow) -> set[int]:
        """The numbers of the tasks of *flow* to run again, if they are among those that were selected."""
        if not (self.fresh or self.again):
            return set()
        selected = {v for v, name in enumerate(flow.dag.tasks) if name in among.dag} - set(self.assumed(flow))
        if self.fresh:
            return selected
        numbers = find_tasks(flow, self.again)
        unselected = next((v for v in numbers if v not in selected), None)
        if unselected is not None:
            raise InputError(f"task {shorten(flow.dag.labels[unselected])!r} cannot run again: it is not selected")
        return set(numbers)


EVERYTHING = Selection()


def select(
    flow: Workflow,
    targets: Sequence[str] = (),
    except_: Sequence[str] = (),
    until: Sequence[str] = (),
    start_from: Sequence[str] = (),
) -> Workflow:
    """The workflow of the targets and all tasks that they need, without exceptions and what depends on them.

    A target or an exception is a task, a file that a task writes, or a category. Without targets, all tasks are targets.
    *until* and *start_from* narrow the targets; see `Selection`.
    """
    out = _onward(flow, find_tasks(flow, except_))
    wanted = find_tasks(flow, targets) if targets else [*range(len(flow))]
    if until:
        wanted = _narrowed(flow, wanted, set(find_tasks(flow, until)), "until")
    if start_from:
        wanted = _narrowed(flow, wanted, _onward(flow, find_tasks(flow, start_from)), "start-from")
    lacking = next((v for v in wanted if v in out), None) if targets else None
    if lacking is not None:
        name = shorten(flow.dag.labels[lacking])
        raise InputError(f"target {name!r} is an exception, or depends on one: leave one of them out")
    chosen = _with_needs(flow, wanted) - out
    if not chosen and len(flow):
        raise InputError("no task is selected: every task is an exception, or depends on one")
    dag = flow.dag.induced(np.array(sorted(chosen), np.int32))
    return replace(flow, dag=dag, details={name: flow.task(name) for name in dag.tasks if name in flow.details})


def _with_needs(flow: Workflow, tasks: Sequence[int]) -> set[int]:
    """These tasks and all that they need."""
    return {*tasks, *reachable_tasks(flow.dag, tasks, up=True).tolist()}


def _onward(flow: Workflow, tasks: Sequence[int]) -> set[int]:
    """These tasks and all that depend on them."""
    return {*tasks, *reachable_tasks(flow.dag, tasks).tolist()}


def _narrowed(flow: Workflow, wanted: Sequence[int], chosen: set[int], option: str) -> list[int]:
    """The chosen tasks that are wanted or needed; raises if there are none."""
    tasks = sorted(chosen & _with_needs(flow, wanted))
    if not tasks:
        raise InputError(f"no task is selected: the targets need none of the tasks of --{option}")
    return tasks


def find_tasks(flow: Workflow, words: Iterable[str]) -> list[int]:
    """The numbers of the tasks that the words name: tasks, files that tasks write, or categories."""
    index = _Index(flow)
    return [v for word in words for v in index.find(word)]


class _Index:
    """The tasks of a workflow by name, by file and by category."""

    def __init__(self, flow: Workflow) -> None:
        self.names = {label: [v] for v, label in enumerate(flow.dag.labels)}
        self.files: dict[str, list[int]] = {}
        self.categories: dict[str, list[int]] = {}
        for v, (outputs, category) in enumerate(zip(flow.column("outputs"), all_kinds(flow), strict=True)):
            for file in outputs or ():
                self.files.setdefault(plain_path(file), []).append(v)
            self.categories.setdefault(category, []).append(v)
        path = flow.origin.path if flow.origin else None
        self.folder = None if path is None else os.path.dirname(os.path.abspath(path))

    def find(self, word: str) -> list[int]:
        """The tasks that a word names."""
        numbers = self.names.get(word) or self.files.get(plain_path(word)) or self._in_folder(word)
        numbers = numbers or self.categories.get(word)
        if numbers is None:
            words = [*self.names, *self.files, *self.categories]
            near = get_close_matches(word, words, 1) if len(words) <= MOST_COMPARED else []
            hint = f" (did you mean {shorten(near[0])!r}?)" if near else ""
            raise InputError(f"no task, output or category is named {shorten(word)!r}{hint}")
        return numbers

    def _in_folder(self, word: str) -> list[int] | None:
        """The tasks that write a file whose path counts from the current folder, or from the root."""
        if self.folder is None:
            return None
        return self.files.get(plain_path(os.path.relpath(os.path.abspath(word), self.folder)))

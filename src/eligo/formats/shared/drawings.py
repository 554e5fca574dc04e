"""Drawings: the tasks and arcs in a picture of a workflow that an engine or a person made.

A task has the name of its node, unless these names mean nothing: if every node has a label, and every name is a number
after the same few letters (0, v0, id0) or a single letter, the task is named by the label. A label of several lines is
put on one line. If several nodes share a label, the node's name follows it: `align 2`, `align 4`.

Nodes that are not tasks, such as the channels and operators that Nextflow draws, are left out. A task depends on another
if a path through such nodes leads from one to the other. Tasks that are drawn as finished are left out with their arcs,
and are listed in the origin's `done`: only the remaining tasks are planned.

>>> drawing = Drawing("dot", ["v0", "v1", "v2"], [("FETCH",), None, ("ALIGN",)], [(0, 1), (1, 2)], passed={1})
>>> list(drawing.workflow().dag.arcs())
[('FETCH', 'ALIGN')]
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from eligo.dag import Dag
from eligo.errors import FormatError
from eligo.formats.shared.data_arcs import Arcs, through
from eligo.rows import Ints, places
from eligo.workflow import Origin, Task, Workflow

#: The lines of a label; None if a node has none.
Label = tuple[str, ...] | None

#: The maximum number of arcs after groups of nodes, and nodes that are not tasks, are replaced by arcs.
MOST_ARCS = 10_000_000

#: The remark on a drawing that was made after the run.
ALL_DONE = "every task of this graph is done (draw it before the run, or with --forceall)"

_NUMBERED = re.compile(r"([A-Za-z]{0,4})\d+")
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass
class Group:
    """Nodes and other groups that together may be the end of an arc."""

    nodes: list[int] = field(default_factory=list)
    parts: "dict[int, Group]" = field(default_factory=dict)  # by identity

    def members(self) -> list[int]:
        """The nodes in the group and in its parts, each once."""
        seen, waiting = {id(self)}, [self]  # a group may be a part of itself
        while waiting:
            fresh = {key: part for key, part in waiting.pop().parts.items() if key not in seen}
            seen.update(fresh)
            waiting += fresh.values()
            for part in fresh.values():
                self.nodes += part.nodes
        self.parts = {}
        self.nodes = list(dict.fromkeys(self.nodes))
        return self.nodes


@dataclass
class Drawing:
    """Nodes in order of appearance, with their labels, and arcs by number."""

    format: str
    ids: list[str]
    labels: list[Label]
    arcs: Arcs
    name: str | None = None
    #: the nodes that are not tasks
    passed: set[int] = field(default_factory=set)
    #: the nodes whose tasks are finished
    done: set[int] = field(default_factory=set)
    #: the engine that drew it, if that is certain: then the first line of a label is a kind of task
    engine: str | None = None
    #: the number of invisible arcs, which are ignored
    hidden: int = 0
    #: the number of tasks with the name of a Nextflow operator
    operators: int = 0
    #: the numbers of arcs whose head is at their start, at both ends or at none: under "back", "both" and "none"
    turned: Mapping[str, int] = field(default_factory=dict)
    #: the number of tasks whose nodes are invisible
    unseen: int = 0
    #: the tool that drew it, if that draws arcs from a task to its dependencies
    backward: str | None = None

    def workflow(self) -> Workflow:
        """The workflow in the drawing."""
        tasks = [i for i in range(len(self.ids)) if i not in self.passed]
        name = dict(zip(tasks, names([self.ids[i] for i in tasks], [self.labels[i] for i in tasks]), strict=True))
        remaining = [i for i in tasks if i not in self.done]
        place = places(len(self.ids) + 1, remaining)
        ends = place[np.fromiter(chain.from_iterable(self._task_arcs()), np.int32).reshape(-1, 2)]
        tails, heads = _within(ends)
        dag = Dag.from_arrays(len(remaining), tails, heads, [name[i] for i in remaining])
        details = {name[i]: Task(name=name[i], category=label[0]) for i in remaining if (label := self.labels[i])}
        done = tuple(name[i] for i in tasks if i in self.done)
        remarks = tuple(self._remarks())
        origin = Origin(format=self.format, engine=self.engine, done=done, remarks=remarks, backward=self.backward)
        return Workflow(dag, details if self.engine else {}, self.name, origin)

    def _task_arcs(self) -> Arcs:
        """The arcs between tasks, including those through nodes that are not tasks."""
        arcs = through(self.arcs, self.passed, MOST_ARCS)
        if arcs is None:
            raise _too_many()
        return arcs

    def _remarks(self) -> Iterable[str]:
        if self.passed:
            count = len(self.passed)
            yield f"nodes that are not tasks (channels, operators, inputs, outputs), replaced by arcs: {count}"
        if self.operators:
            yield f"tasks named like Nextflow operators: {self.operators} (draw the dag without dag.verbose)"
        if self.hidden:
            yield f"ignored invisible arcs: {self.hidden}"
        yield from (f"arcs with dir={way}, read from left to right: {count}" for way, count in self.turned.items())
        if self.unseen:
            yield f"invisible nodes, read as tasks: {self.unseen}"
        if self.done and len(self.done | self.passed) == len(self.ids):
            yield ALL_DONE
        elif self.done:
            yield f"skipped tasks that are drawn as finished: {len(self.done)}"


def names(ids: Sequence[str], labels: Sequence[Label]) -> Sequence[str]:
    """The names of tasks whose nodes have these names and labels.

    >>> names(["0", "1", "2"], [("all",), ("sort", "x: 1"), ("all",)])
    ['all 0', 'sort x: 1', 'all 2']
    >>> names(["fetch", "b"], [("Fetch the data",), None])
    ['fetch', 'b']
    """
    if None in labels or not _say_nothing(ids):
        return ids
    texts = [_CONTROL.sub(" ", " ".join(label or ())) for label in labels]
    times = Counter(texts)
    short = [text if times[text] == 1 else f"{text} {id}" for text, id in zip(texts, ids, strict=True)]
    return short if len(set(short)) == len(short) else [f"{text} {id}" for text, id in zip(texts, ids, strict=True)]


def check_count(arcs: int) -> None:
    """Raise if a drawing represents too many arcs."""
    if arcs > MOST_ARCS:
        raise _too_many()


def _too_many() -> FormatError:
    return FormatError(f"the drawing represents more than {MOST_ARCS:,} arcs (use a list of arcs)")


def _say_nothing(ids: Sequence[str]) -> bool:
    matches = [_NUMBERED.fullmatch(id) for id in ids]
    alike = all(matches) and len({match[1] for match in matches if match}) == 1
    return alike or all(len(id) == 1 and id.isalpha() for id in ids)


def _within(ends: Ints) -> tuple[Ints, Ints]:
    """The tails and heads of the arcs whose ends are both at least 0."""
    inside = (ends >= 0).all(axis=1)
    return ends[inside, 0], ends[inside, 1]

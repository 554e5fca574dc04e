"""The workflow in DAGMan files: the graph without executed nodes, the details of tasks, and their commands for a run.

For a run, the command of a node is a program with arguments, from its submit description and VARS.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eligo.dag import Dag
from eligo.errors import FormatError, InputError, shorten
from eligo.formats.dagman.places import Place, is_setting
from eligo.formats.dagman.scripts import Script, at, script_of
from eligo.formats.dagman.splices import Joined, Joiner, Library, Note
from eligo.formats.dagman.submission import Description, Facts, NodeJob, Variable, job_of, unhonoured_in, variables_in
from eligo.formats.shared.document import Column, Described
from eligo.formats.shared.files import Beside
from eligo.rows import Ints
from eligo.workflow import NOTHING, Origin, Task, Unhonoured, Workflow

# Commands

LARGEST_DESCRIPTION = 2**20
_QUEUE = re.compile(r"^\s*queue\b[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class NodeScript:
    """Input for the commands of nodes: inline submit descriptions, and VARS with their places."""

    descriptions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variables: Mapping[str, list[Note]] = field(default_factory=dict)
    #: DIR and RETRY of nodes, with those of outer splices behind those of inner ones
    settings: Mapping[str, list[Note]] = field(default_factory=dict)
    #: whether submit files may be outside the folder of the DAGMan file
    allow_outside: bool = False


def runnable(flow: Workflow) -> Workflow:
    """The workflow with a program for every node, and `NOTHING` for NOOP nodes; reads the submit files beside the file.

    The origin of the result also lists the features of descriptions that a run does not honour. Descriptions are errors if
    they have several jobs or macros that only HTCondor can expand, or if they cannot be read.
    """
    origin = flow.origin or Origin(format="dagman")
    reader = _DescriptionReader(origin, LARGEST_DESCRIPTION * len(flow))
    details = {name: reader.task(flow.task(name)) for name in flow.dag.tasks}
    return replace(flow, details=details, origin=replace(origin, unhonoured=reader.features(), script=None))


class _DescriptionReader:
    """Reads the submit descriptions of nodes, each file once."""

    def __init__(self, origin: Origin, limit: int) -> None:
        self.earlier = origin.unhonoured
        self.script = origin.script if isinstance(origin.script, NodeScript) else NodeScript()
        self.beside = Beside(origin.path, limit, self.script.allow_outside)
        self.files: dict[str, Description] = {}
        self.places: dict[tuple[str, str], list[str]] = {}

    def features(self) -> tuple[Unhonoured, ...]:
        """The features that a run does not honour."""
        notes = (Unhonoured(key, where, tuple(tasks)) for (key, where), tasks in self.places.items())
        return (*self.earlier, *notes)

    def task(self, task: Task) -> Task:
        """The task with the details in its description."""
        if task.command is None:
            return replace(task, command=NOTHING)
        name = str(task.name)
        place = Place.of(self.script.settings.get(name, ()), self.beside.root)
        try:
            description = self._description(task, name)
            if description is None:
                return replace(task, launch=place.launch())
            variables = self._variables(name)
            asked = job_of(description, [variable for _, variables in variables for variable in variables or ()])
        except FormatError as error:
            message = f"node {shorten(name)!r}: {error.message}"
            raise FormatError(message, error.path, error.line).cured_by(error.remedy or "") from None
        self._list(name, description, asked)
        for where, each in variables:
            keys = ["VARS"] if each is None else unhonoured_in(each)
            for key in [key for key in keys if key not in asked.settings]:
                self._note(key, where, name)
        return place.task_for(task, asked)

    def _list(self, name: str, description: Description, asked: NodeJob) -> None:
        """Record the features of a description that a run does not honour."""
        for key, line in description.unhonoured.items():
            if key not in asked.settings:
                self._note(key, description.file if description.is_inline else f"{description.file}:{line}", name)
        for key in asked.unhonoured:
            self._note(key, description.file, name)

    def _note(self, key: str, where: str, name: str) -> None:
        self.places.setdefault((key, where), []).append(name)

    def _variables(self, name: str) -> list[tuple[str, list[Variable] | None]]:
        """The variables of each VARS line with its place; None if they cannot be read."""
        notes = self.script.variables.get(name, ())
        return [(note.where, variables_in(note.remark.text, name)) for note in notes]

    def _description(self, task: Task, name: str) -> Description | None:
        """The submit description of a node; None if the node has a command instead."""
        lines = self.script.descriptions.get(name)
        if lines is not None:
            return Description.of(f"the description of {shorten(name)!r}", lines, is_inline=True)
        if not isinstance(task.command, str):
            return None
        if task.command not in self.files:
            text = self._text(task.command)
            if text is None:
                return None
            self.files[task.command] = Description.of(task.command, text.splitlines())
        return self.files[task.command]

    def _text(self, name: str) -> str | None:
        """The text of a submit file without its queue statement; None if the name is a command line for a shell."""
        try:
            text = self.beside.load(self.beside.place(name))
        except InputError as error:
            if len(name.split()) > 1:
                return None
            raise FormatError(f"submit file {error}").cured_by(error.remedy or "") from None
        queues = _QUEUE.findall(text)
        if len(queues) > 1 or any(words.strip() not in {"", "1"} for words in queues):
            raise FormatError(f"{name} submits several jobs, but a run starts one job for each node")
        return _QUEUE.sub("", text)


# Workflows

#: Join nodes are removed if this makes at most MOST_TIMES times the number of arcs plus MANY_ARCS.
MOST_TIMES, MANY_ARCS = 4, 10_000

_RESCUE = re.compile(r"(.+)\.rescue([0-9]{3,})", re.DOTALL)


def workflow_of(text: str, name: str, beside: Beside | None) -> Workflow:
    """The workflow that a DAGMan text describes, with the files *beside* it."""
    root = script_of(text, beside.root if beside else None)
    root, rescue = _script_and_rescue(root, beside)
    library = Library(root, beside)
    library.check()
    piece = Joiner(library).root_graph(rescue)
    skipped = _executed_nodes(piece)
    tails, heads = piece.tails, piece.heads
    remarks = [_done_remark(len(piece.done), len(piece.names) - len(piece.joins), rescue)] if skipped else []
    if piece.joins and (direct := without_joins(piece)) is not None:
        skipped |= set(piece.joins)
        tails, heads = direct
    elif piece.joins:
        remarks.append(f"{len(piece.joins):,} join nodes, which DAGMan adds and which run nothing, count as tasks")
    dag = Dag.from_arrays(len(piece.names), tails, heads, piece.names)
    origin = Origin(
        format=name, path=root.path, done=dag.named(sorted(piece.done)), joins=len(piece.joins),
        remarks=tuple(remarks), unhonoured=_unhonoured_features(piece, skipped.union(piece.joins)),
        script=_node_script(piece, beside),
    )  # fmt: skip
    nodes = [i for i in range(len(dag)) if i not in skipped]
    remaining = dag.induced(np.array(nodes, np.int32)) if skipped else dag
    return Workflow(remaining, _details(remaining, piece, nodes), origin=origin)


def _details(dag: Dag, piece: Joined, kept: Sequence[int]) -> Described:
    """The details of the tasks of a dag, which are the nodes *kept*."""
    facts = [piece.facts[i] for i in kept]
    fields: dict[str, Column] = {
        # only NOOP nodes run nothing
        "command": [None if k is None else (k.command if isinstance(k, Facts) else k) or () for k in facts],
        "priority": [piece.priorities.get(i) for i in kept] if piece.priorities else None,
        "category": [piece.categories.get(i) for i in kept] if piece.categories else None,
    }
    if Facts in set(map(type, facts)):
        fields |= {key: [getattr(k, key, None) for k in facts] for key in ("cores", "memory")}
    return Described(dag, fields)


def _unhonoured_features(piece: Joined, left_out: set[int]) -> tuple[Unhonoured, ...]:
    """The features that a run does not honour: one record for each key that concerns nodes, with its first place."""
    places, tasks, file_level = dict[str, str](), dict[str, list[str]](), list[Unhonoured]()
    for note in piece.notes:
        key, concerned = note.remark.key, [piece.names[i] for i in note.nodes if i not in left_out]
        if key == "VARS" or is_setting(note.remark) or (note.nodes and not concerned):
            continue
        if not concerned:
            file_level.append(Unhonoured(key, note.where))
            continue
        places.setdefault(key, note.where)
        tasks.setdefault(key, []).extend(concerned)
    return (*file_level, *(Unhonoured(key, where, tuple(tasks[key])) for key, where in places.items()))


def _node_script(piece: Joined, beside: Beside | None) -> NodeScript:
    """The input for the commands of nodes in a run: VARS and inline descriptions."""
    variables: dict[str, list[Note]] = {}
    settings: dict[str, list[Note]] = {}
    for note in piece.notes:
        if note.remark.key == "VARS" or is_setting(note.remark):
            chosen = variables if note.remark.key == "VARS" else settings
            for node in note.nodes:
                chosen.setdefault(piece.names[node], []).append(note)
    named = zip(piece.names, piece.facts, strict=True) if Facts in set(map(type, piece.facts)) else ()
    descriptions = {name: facts.lines for name, facts in named if isinstance(facts, Facts) and facts.lines}
    return NodeScript(descriptions, variables, settings, beside is not None and beside.allow_outside)


def without_joins(piece: Joined) -> tuple[Ints, Ints] | None:
    """The arcs without join nodes: from all parents of a join to all its children; None if there are too many.

    A join runs nothing, so it is not a task; but it saves arcs if it has many parents and children.
    """
    joined = np.zeros(len(piece.names), np.bool_)
    joined[piece.joins] = True
    into, out = joined[piece.heads], joined[piece.tails]
    above = np.bincount(piece.heads[into], minlength=len(joined)).astype(np.int64)
    below = np.bincount(piece.tails[out], minlength=len(joined)).astype(np.int64)
    if (above * below).sum() > MOST_TIMES * len(piece.tails) + MANY_ARCS:
        return None
    rows = np.argsort(piece.tails[out], kind="stable")
    children, begin = piece.heads[out][rows], np.cumsum(below) - below
    counts = below[piece.heads[into]]
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - begin[piece.heads[into]], counts)
    plain = ~into & ~out
    tails = np.concatenate([piece.tails[plain], np.repeat(piece.tails[into], counts)])
    heads = np.concatenate([piece.heads[plain], children[places]])
    return tails.astype(np.int32), heads.astype(np.int32)


def _executed_nodes(piece: Joined) -> set[int]:
    """The executed nodes, including joins whose parents are all executed."""
    if not piece.done:
        return set()
    waiting = np.ones(len(piece.names), np.bool_)
    waiting[list(piece.done)] = False
    open_parents = np.bincount(piece.heads[waiting[piece.tails]], minlength=len(piece.names))
    return piece.done | {join for join in piece.joins if open_parents[join] == 0}


def _done_remark(executed: int, tasks: int, rescue: Script | None) -> str:
    source = f" according to {rescue.path}" if rescue else ""
    return f"skipped {executed:,} of {tasks:,} tasks, which are done{source}"


# Rescue files: x.dag.rescue001 lists the nodes of x.dag that are done


def _script_and_rescue(script: Script, beside: Beside | None) -> tuple[Script, Script | None]:
    """The script to read and its rescue file: the last one, as in DAGMan, or the one that the user gave."""
    if beside is None or beside.root is None:
        return script, None
    named = _RESCUE.fullmatch(beside.root)
    if named and not script.index and not script.splices:
        return script_of(beside.load(named[1]), named[1]), script
    last = rescue_file(beside)
    try:
        return script, None if last is None else script_of(beside.load(last), last)
    except InputError as error:
        raise at(error, last, 1) from None


def rescue_file(beside: Beside) -> str | None:
    """The path of the rescue file with the largest number beside a file; None if there is none."""
    folder, base = os.path.split(beside.root or "")
    rescues = [
        (int(match[2]), name) for name in beside.names() if (match := _RESCUE.fullmatch(name)) and match[1] == base
    ]
    return os.path.join(folder, max(rescues)[1]) if rescues else None

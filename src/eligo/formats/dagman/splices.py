"""DAGMan files joined into one graph: splices are inserted, and dependencies between splices become arcs.

The graph of a splice is built once for each file and folder, and then copied, with the splice's name before the names of
nodes. A dependency of several nodes on several others goes through a join node, as in DAGMan itself: p + c arcs instead of
p times c.

Each file is read once. The size of the workflow is computed before any graph is built, so that small files that would splice
one another in masses are refused at once.
"""

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np

from eligo.errors import DuplicateTaskError, FormatError, InputError, UnknownTaskError, shorten
from eligo.formats.dagman.scripts import NodeFacts, Remark, Script, Splice, Statement, at, keyword, script_of
from eligo.formats.shared.files import Beside
from eligo.rows import Ints

# Files

#: The maximum depth of included and spliced files.
DEEPEST = 100
#: The maximum number of inclusions and splices in total.
MOST_FILES = 100_000
#: The maximum number of tasks from splices, and of characters in their names, on all levels.
MOST_SPLICED = 4_000_000
MOST_CHARACTERS = 400_000_000


class FileKey(NamedTuple):
    """A file, and the folder for the names in it."""

    path: str
    folder: str


@dataclass(slots=True)
class Size:
    """The size of a file with all files that it includes and splices."""

    tasks: int = 0
    characters: int = 0
    files: int = 0


class Library:
    """The files by path, and their sizes."""

    def __init__(self, root: Script, beside: Beside | None) -> None:
        self._beside = beside
        self.root = FileKey(root.path or "", "")
        self._scripts = {self.root.path: root}
        self._sizes: dict[FileKey, Size] = {}
        self._open: list[FileKey] = []
        self._keys: dict[tuple[str, str], FileKey] = {}
        self._spliced = 0
        self._characters = 0

    def script(self, key: FileKey) -> Script:
        """The contents of the file."""
        if key.path not in self._scripts and self._beside is not None:
            self._scripts[key.path] = script_of(self._beside.load(key.path), key.path)
        return self._scripts[key.path]

    def include_key(self, key: FileKey, statement: Statement) -> FileKey:
        """The file of an INCLUDE in another."""
        return self._key(key, statement.words[0], key.folder, statement.line)

    def splice_key(self, key: FileKey, splice: Splice) -> FileKey:
        """The file of a SPLICE in another."""
        folder = f"{key.folder}/{splice.folder}".strip("/") if not splice.folder.startswith("/") else splice.folder
        return self._key(key, splice.file, folder, splice.line)

    def check(self) -> None:
        """Raise if files include themselves, or if the workflow is too large."""
        self._size(self.root)

    def _key(self, owner: FileKey, name: str, folder: str, line: int) -> FileKey:
        if (name, folder) in self._keys:
            return self._keys[name, folder]
        try:
            if self._beside is None:
                raise FormatError(
                    f"refers to the file {name!r}, but this text has no folder to look in (read the workflow from a file)"
                )
            return self._keys.setdefault((name, folder), FileKey(self._beside.place(name, folder), folder))
        except InputError as error:
            raise at(error, self.script(owner).path, line) from None

    def _size(self, key: FileKey) -> Size:
        if key in self._sizes:
            return self._sizes[key]
        self._open.append(key)
        script = self.script(key)
        size = Size(len(script.index), sum(map(len, script.index)))
        for statement in script.statements:
            if isinstance(statement, Statement) and statement.kind == "INCLUDE":
                self._add(size, self.include_key(key, statement), key, statement.line, None)
        for splice in script.splices:
            self._add(size, self.splice_key(key, splice), key, splice.line, splice.name)
        self._open.pop()
        return self._sizes.setdefault(key, size)

    def _add(self, size: Size, inner: FileKey, owner: FileKey, line: int, prefix: str | None) -> None:
        """Count a file that another file includes, or splices under the name *prefix*."""
        path = self.script(owner).path
        try:
            self._check_chain(inner)
            more = self._size(inner)
        except FormatError as error:
            if error.path == inner.path and error.line is None:
                raise FormatError(f"{inner.path} {error.message}", path, line) from None
            raise at(error, path, line) from None
        size.tasks += more.tasks
        size.files += 1 + more.files
        size.characters += more.characters
        if prefix is not None:
            size.characters += more.tasks * (len(prefix) + 1)
            self._spliced += more.tasks
            self._characters += more.characters + more.tasks * (len(prefix) + 1)
        self._check_size(size, path, line)

    def _check_chain(self, inner: FileKey) -> None:
        paths = [key.path for key in self._open]
        if inner.path in paths:
            chain = [*paths[paths.index(inner.path) :], inner.path]
            excerpt = chain if len(chain) < 10 else [*chain[:5], "...", *chain[-3:]]
            raise FormatError(f"a file includes or splices itself: {' -> '.join(excerpt)}")
        if len(paths) >= DEEPEST:
            raise FormatError(f"files are nested more than {DEEPEST} levels deep")

    def _check_size(self, size: Size, path: str | None, line: int) -> None:
        if size.files > MOST_FILES:
            raise FormatError(
                f"files are included or spliced {size.files:,} times, more than the limit of {MOST_FILES:,}", path, line
            )
        if self._spliced > MOST_SPLICED:
            message = f"splices add at least {self._spliced:,} tasks, more than the limit of {MOST_SPLICED:,}"
            raise FormatError(message, path, line)
        if self._characters > MOST_CHARACTERS:
            message = f"the names of spliced tasks have more than {MOST_CHARACTERS:,} characters in total"
            raise FormatError(message, path, line)


# Graphs

#: The beginning of the names of join nodes; a number follows.
JOIN = "_condor_join_node"
#: The maximum number of arcs from splices and pins.
MOST_ARCS = 20_000_000

Pins = dict[int, list[int]]

_JOIN = re.compile(rf"(?:.*\+)?{JOIN}[0-9]+", re.DOTALL)


class Note(NamedTuple):
    """A setting of nodes, with its file."""

    remark: Remark
    path: str | None
    nodes: Sequence[int] = ()

    @property
    def where(self) -> str:
        """The file and the line."""
        return f"{self.path}:{self.remark.line}" if self.path else f"line {self.remark.line}"

    def shift(self, start: int) -> "Note":
        """The note for the nodes of an inserted splice, whose numbers begin at *start*."""
        return self._replace(nodes=[node + start for node in self.nodes])


@dataclass
class Joined:
    """The graph of joined files: node i has the name `names[i]`; `joins` are in the order of creation."""

    names: list[str] = field(default_factory=list)
    facts: list[NodeFacts] = field(default_factory=list)
    tails: Ints = field(default_factory=lambda: np.empty(0, np.int32))
    heads: Ints = field(default_factory=lambda: np.empty(0, np.int32))
    joins: list[int] = field(default_factory=list)
    priorities: dict[int, int] = field(default_factory=dict)
    categories: dict[int, str] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    pins_in: Pins = field(default_factory=dict)
    pins_out: Pins = field(default_factory=dict)
    has_final: bool = False
    notes: list[Note] = field(default_factory=list)

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of each name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def initial(self) -> Ints:
        """The nodes without parents, which represent the splice as a child."""
        return self._without(self.heads)

    @cached_property
    def terminal(self) -> Ints:
        """The nodes without children, which represent the splice as a parent."""
        return self._without(self.tails)

    def _without(self, ends: Ints) -> Ints:
        return np.flatnonzero(np.bincount(ends, minlength=len(self.names)) == 0).astype(np.int32)


class Joiner:
    """Joins the files of a library."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._pieces: dict[FileKey, Joined] = {}
        self._arcs = 0

    def piece(self, key: FileKey) -> Joined:
        """The graph of a file with all files that it includes and splices."""
        if key not in self._pieces:
            self._pieces[key] = _Scope(self, key).piece()
        return self._pieces[key]

    def root_graph(self, rescue: Script | None) -> Joined:
        """The graph of the root file; *rescue* lists the nodes that were executed before."""
        piece = _Scope(self, self.library.root).piece(rescue)
        for number, join in enumerate(piece.joins):
            piece.names[join] += str(number)
        return piece

    def spend(self, arcs: int) -> None:
        """Count arcs before they are made; raises if there are too many."""
        self._arcs += arcs
        if self._arcs > MOST_ARCS:
            raise FormatError(f"splices and their connections add more than {MOST_ARCS:,} arcs")


class _Scope:
    """The names that are visible in a file, with included files: its own nodes, those of its splices, its joins."""

    def __init__(self, joiner: Joiner, key: FileKey) -> None:
        self.joiner = joiner
        self.library = joiner.library
        self.key = key
        self.index: dict[str, int] = {}
        self.outside: dict[str, str] = {}
        self.splices: dict[str, tuple[int, Joined]] = {}
        self.graph = Joined()
        self.tails, self.heads = array("i"), array("i")
        self.blocks: list[tuple[Ints, Ints]] = []
        self.ends: dict[FileKey, int] = {}
        self.seen = 0  # the number of nodes that ALL_NODES means at this place
        self.takers: dict[str, Callable[[list[str]], None]] = {
            "PARENT": self._dependency, "PRIORITY": self._priority, "CATEGORY": self._category, "DONE": self._done,
            "PIN_IN": lambda words: self._pin(self.graph.pins_in, words),
            "PIN_OUT": lambda words: self._pin(self.graph.pins_out, words), "CONNECT": self._connect,
        }  # fmt: skip

    def piece(self, rescue: Script | None = None) -> Joined:
        arcs = list(self._nodes_of(self.key))
        self._resolve_descriptions(map(self.library.script, self.ends))
        for key in list(self.ends):
            script = self.library.script(key)
            for splice in script.splices:
                start = len(self.graph.names)
                with error_place(script, splice.line):
                    arcs.append(self._put_in(splice, self.library.splice_key(key, splice)))
                if splice.folder not in {"", "."}:
                    nodes = range(start, len(self.graph.names))
                    self.graph.notes.append(Note(Remark("DIR", splice.line, text=splice.folder), script.path, nodes))
        self._obey(self.library.script(self.key), self.key)
        if rescue is not None:
            self.seen = len(self.graph.names)
            self._obey(rescue, self.key)
        arcs += [*self.blocks, (np.array(self.tails, np.int32), np.array(self.heads, np.int32))]
        self.graph.tails, self.graph.heads = (np.concatenate(ends) for ends in zip(*arcs, strict=True))
        return self.graph

    def _resolve_descriptions(self, scripts: Iterable[Script]) -> None:
        """Replace the names of SUBMIT-DESCRIPTIONs by the facts in them."""
        described = {name: facts for script in scripts for name, facts in script.descriptions.items()}
        if described:
            descriptions = self.graph.facts
            descriptions[:] = [described.get(fact, fact) if isinstance(fact, str) else fact for fact in descriptions]

    # The nodes

    def _nodes_of(self, key: FileKey) -> Iterator[tuple[Ints, Ints]]:
        """Add the nodes of a file and of the files that it includes; returns the arcs between them."""
        script, start = self.library.script(key), len(self.graph.names)
        self._name(script)
        self.graph.names.extend(script.index)
        self.graph.facts.extend(script.facts)
        self.ends[key] = len(self.graph.names)
        for tails, heads in zip(script.tails, script.heads, strict=True):
            yield (tails + start, heads + start) if start else (tails, heads)
        for statement in script.statements:
            if isinstance(statement, Statement) and statement.kind == "INCLUDE":
                with error_place(script, statement.line):
                    yield from self._nodes_of(self.library.include_key(key, statement))

    def _name(self, script: Script) -> None:
        before = self.index.keys() | self.outside.keys()
        twice = next((name for name in chain(script.index, script.outside) if name in before), None) if before else None
        if twice is not None:
            raise DuplicateTaskError(twice)
        start = len(self.graph.names)
        self.index = self.index | {name: i + start for name, i in script.index.items()} if start else script.index
        self.outside |= script.outside
        self.graph.has_final |= "FINAL" in script.outside.values()

    def _put_in(self, splice: Splice, key: FileKey) -> tuple[Ints, Ints]:
        """Insert a copy of a splice; returns its arcs."""
        if splice.name in self.index or splice.name in self.outside or splice.name in self.splices:
            raise DuplicateTaskError(splice.name)
        piece, joined, start = self.joiner.piece(key), self.graph, len(self.graph.names)
        if piece.has_final:
            raise FormatError(f"splice {shorten(splice.name)!r} has a FINAL node, which is not allowed in splices")
        self.joiner.spend(len(piece.tails) + sum(1 + len(note.nodes) for note in piece.notes))
        self.splices[splice.name] = start, piece
        joined.names.extend([f"{splice.name}+{name}" for name in piece.names])
        joined.facts.extend(_move(description, splice.folder) for description in piece.facts)
        joined.joins.extend(join + start for join in piece.joins)
        joined.done.update(i + start for i in piece.done)
        joined.priorities.update((i + start, value) for i, value in piece.priorities.items())
        joined.categories.update(
            (i + start, name if name.startswith("+") else f"{splice.name}+{name}")
            for i, name in piece.categories.items()
        )
        joined.notes.extend(note.shift(start) for note in piece.notes)
        return piece.tails + np.int32(start), piece.heads + np.int32(start)

    def _find(self, name: str) -> int:
        """The number of a node, also of a node in a splice, such as S+A."""
        if name in self.index:
            return self.index[name]
        splice, plus, inner = name.partition("+")
        if plus and splice in self.splices:
            start, piece = self.splices[splice]
            if inner in piece.index:
                return start + piece.index[inner]
        if name in self.outside:
            raise FormatError(f"{shorten(name)!r} is a {self.outside[name]} node, which has no place in the order")
        if name in self.splices:
            raise FormatError(f"{shorten(name)!r} is a splice, but a node is needed")
        raise UnknownTaskError(name)

    # The statements, in their order

    def _obey(self, script: Script, key: FileKey) -> None:
        self.seen = max(self.seen, self.ends.get(key, 0))
        for statement in script.statements:
            try:
                if isinstance(statement, Remark):
                    self._note(statement, script.path)
                elif statement.kind == "INCLUDE":
                    inner = self.library.include_key(key, statement)
                    self._obey(self.library.script(inner), inner)
                    self.seen = len(self.graph.names)  # after an INCLUDE, DAGMan also knows the nodes of splices
                else:
                    self.takers[statement.kind](statement.words)
            except InputError as error:
                raise at(error, script.path, statement.line) from None

    def _note(self, remark: Remark, path: str | None) -> None:
        number = self.index.get(remark.node)
        self.graph.notes.append(Note(remark, path, self._nodes_named(remark.node) if number is None else (number,)))

    def _nodes_named(self, node: str) -> Sequence[int]:
        """The nodes with this name, or ALL_NODES; empty for nodes outside the graph, such as FINAL nodes."""
        try:
            return list(self._nodes(node)) if node else ()
        except InputError:
            return ()

    def _dependency(self, words: list[str]) -> None:
        middle = words.index("")
        parents = self._sides(words[:middle], lambda piece: piece.terminal)
        children = self._sides(words[middle + 1 :], lambda piece: piece.initial)
        if len(parents) > 1 and len(children) > 1:
            self.joiner.spend(len(parents) + len(children))
            join = [self._join()]
            self._arcs(parents, join)
            self._arcs(join, children)
        else:
            self.joiner.spend(len(parents) * len(children))
            self._arcs(parents, children)

    def _sides(self, names: list[str], side: Callable[[Joined], Ints]) -> Sequence[int] | Ints:
        """The nodes for names of nodes and splices, each once."""
        nodes = [self._find(name) for name in names if name not in self.splices]
        sides = [start + side(piece) for start, piece in (self.splices[name] for name in names if name in self.splices)]
        if not sides:
            return nodes if len(nodes) == 1 else sorted(set(nodes))
        return np.unique(np.concatenate([np.array(nodes, np.int32), *sides]))

    def _join(self) -> int:
        join = len(self.graph.names)
        self.graph.names.append(JOIN)
        self.graph.facts.append(None)
        self.graph.joins.append(join)
        return join

    def _arcs(self, parents: Sequence[int] | Ints, children: Sequence[int] | Ints) -> None:
        """Add an arc from each parent to each child."""
        if isinstance(parents, np.ndarray) or isinstance(children, np.ndarray):
            tails, heads = np.repeat(parents, len(children)), np.tile(children, len(parents))
            self.blocks.append((tails.astype(np.int32), heads.astype(np.int32)))
            return
        for parent in parents:
            self.tails.extend([parent] * len(children))
            self.heads.extend(children)

    def _priority(self, words: list[str]) -> None:
        self.graph.priorities.update(dict.fromkeys(self._nodes(words[0]), int(words[1])))

    def _category(self, words: list[str]) -> None:
        self.graph.categories.update(dict.fromkeys(self._nodes(words[0]), words[1]))

    def _nodes(self, name: str) -> Iterable[int]:
        """The nodes for a name; ALL_NODES includes the joins."""
        return {*range(self.seen), *self.graph.joins} if keyword(name) == "ALL_NODES" else [self._find(name)]

    def _done(self, words: list[str]) -> None:
        if words[0] not in self.outside and not is_join(words[0]):
            self.graph.done.add(self._find(words[0]))

    def _pin(self, pins: Pins, words: list[str]) -> None:
        pins.setdefault(int(words[1]), []).append(self._find(words[0]))

    def _connect(self, words: list[str]) -> None:
        for name in words:
            if name not in self.splices:
                raise FormatError(f"CONNECT takes two splices, but {shorten(name)!r} is not a splice")
        (above, parent), (below, child) = (self.splices[name] for name in words)
        outs, ins = parent.pins_out, child.pins_in
        if not outs or outs.keys() != ins.keys() or max(outs) != len(outs):
            raise FormatError(
                f"the pins of {' and '.join(map(shorten, words))} do not match: each PIN_OUT number of the first must be "
                "a PIN_IN number of the second, counting from 1 without gaps"
            )
        self.joiner.spend(sum(len(outs[pin]) * len(ins[pin]) for pin in outs))
        for pin in sorted(outs):
            self._arcs([above + i for i in outs[pin]], [below + i for i in ins[pin]])


@contextmanager
def error_place(script: Script, line: int) -> Iterator[None]:
    """Add the file and the line to errors that have no place."""
    try:
        yield
    except InputError as error:
        raise at(error, script.path, line) from None


def is_join(name: str) -> bool:
    """Whether this is the name of a join node.

    >>> is_join("S+_condor_join_node3"), is_join("_condor_join_node")
    (True, False)
    """
    return _JOIN.fullmatch(name) is not None


def _move(description: NodeFacts, folder: str) -> NodeFacts:
    return f"{folder}/{description}" if folder and isinstance(description, str) else description

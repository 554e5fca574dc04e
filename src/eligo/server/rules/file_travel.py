"""Which files of a workflow travel: what crosses the border of a grant."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice

from eligo.names import Name
from eligo.stores.service import FileRow
from eligo.workflow import Workflow

PREFIX = 16  # letters of a file's hash by which a client says that it has it
MOST_INPUTS = 256  # of a task that are looked at for what a client has of them
MOST_MISSING = 1_000  # missing files in one answer


@dataclass(slots=True)
class Travels:
    """Who makes and who reads which file, and which of them are there."""

    flow: Workflow
    there: dict[str, FileRow] = field(default_factory=dict)
    makers: dict[str, int] = field(default_factory=dict)
    readers: dict[str, list[int]] = field(default_factory=dict)
    #: the files that each task reads
    inputs: Sequence[Sequence[str]] = ()
    #: the files that no task makes
    needs: list[str] = field(default_factory=list)
    #: whether files that only the tasks of one grant read stay with its client
    inside_stays: bool = True
    _first: int = 0  # of the files that may be missing: what is there stays there

    def __post_init__(self) -> None:
        for v, names in enumerate(self.flow.column("outputs")):
            self.makers.update(dict.fromkeys(names, v))
        self.inputs = self.flow.column("inputs")
        for v, names in enumerate(self.inputs):
            for file in names:
                self.readers.setdefault(file, []).append(v)
        self.needs = [name for name in self.readers if name not in self.makers]

    def grow(self, flow: Workflow, new: Workflow) -> None:
        """Tasks were added, the tasks of *new*; *flow* is the whole workflow with them."""
        first, inputs, outputs = len(self.inputs), new.column("inputs"), new.column("outputs")
        self.flow, self.inputs = flow, [*self.inputs, *inputs]
        self.makers.update((name, v) for v, names in enumerate(outputs, first) for name in names)
        readers = dict[str, list[int]]()
        for v, names in enumerate(inputs, first):
            for file in names:
                readers.setdefault(file, []).append(v)
        known = dict.fromkeys((*self.needs, *readers))
        self.needs, self._first = [name for name in known if name not in self.makers], 0
        for file, tasks in readers.items():
            self.readers.setdefault(file, []).extend(tasks)

    def is_need(self, name: str) -> bool:
        """Whether some task reads a file of this name and no task makes it."""
        return name in self.readers and name not in self.makers

    def inside_readers(self, name: str) -> Sequence[int]:
        """The tasks because of which a file may stay with its client: its readers, if files may stay."""
        return self.readers.get(name, ()) if self.inside_stays else ()

    @property
    def missing(self) -> list[str]:
        """Those of them that are not there."""
        return [name for name in self.needs if name not in self.there]

    @property
    def waits(self) -> bool:
        """Whether any is missing; as often as it is asked, each name is looked at once."""
        while self._first < len(self.needs) and self.needs[self._first] in self.there:
            self._first += 1
        return self._first < len(self.needs)

    def some_missing(self, most: int) -> list[str]:
        """Some of the missing files, up to a limit."""
        return list(islice((name for name in islice(self.needs, self._first, None) if name not in self.there), most))

    def kept_by(self, prefixes: frozenset[str]) -> Callable[[Name], int]:
        """How many bytes of what a task reads a client has that has the files of these hashes."""
        there, inputs, index = self.there, self.inputs, self.flow.dag.index

        @cache  # as long as a request is answered
        def kept(task: Name) -> int:
            rows = (there.get(name) for name in inputs[index[task]][:MOST_INPUTS])
            return sum(row.size for row in rows if row is not None and row.sha256[:PREFIX] in prefixes)

        return kept

    def inside(self, v: int, members: set[int]) -> list[str]:
        """The outputs of a task that only other tasks of its grant read."""
        outputs = self.flow.task(self.flow.dag.tasks[v]).outputs
        return [name for name in outputs if (readers := self.inside_readers(name)) and members.issuperset(readers)]

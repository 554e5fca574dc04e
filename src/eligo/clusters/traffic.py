"""What a fat task makes travel: arcs that it cuts, or bytes of the files on them where their sizes are known.

An arc is *cut* when it leads from the fat task to what is left: the client must send that result back. A file that several
tasks outside read is sent once, so bytes are counted by file and not by arc.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass

from eligo.workflow import Workflow


@dataclass(frozen=True, eq=False)
class Files:
    """The files that pass between tasks, by number: who reads and writes them, and how large they are."""

    #: for every task, the files it writes that others read, and the files it reads that others write
    written: dict[int, list[int]]
    read: dict[int, list[int]]
    writer: list[int]
    readers: list[list[int]]
    bytes: list[int]

    @classmethod
    def of(cls, flow: Workflow) -> "Files | None":
        """The files of a workflow, or None where a file that passes between tasks is of unknown size, or there is none."""
        if not flow.file_sizes:
            return None
        index = flow.dag.index
        made: dict[str, int] = {}
        for name, task in flow.details.items():
            made.update(dict.fromkeys(task.outputs, index[name]))
        readers: dict[str, list[int]] = {}
        for name, task in flow.details.items():
            for file in dict.fromkeys(task.inputs):
                if made.get(file, index[name]) != index[name]:
                    readers.setdefault(file, []).append(index[name])
        if not readers or any(file not in flow.file_sizes for file in readers):
            return None
        return cls._numbered(readers, made, flow.file_sizes)

    @classmethod
    def _numbered(cls, readers: dict[str, list[int]], made: dict[str, int], sizes: Mapping[str, int]) -> "Files":
        written: dict[int, list[int]] = {}
        read: dict[int, list[int]] = {}
        for number, (file, tasks) in enumerate(readers.items()):
            written.setdefault(made[file], []).append(number)
            for v in tasks:
                read.setdefault(v, []).append(number)
        amounts = [sizes[file] for file in readers]
        return cls(written, read, [made[file] for file in readers], list(readers.values()), amounts)

    @property
    def mean(self) -> float:
        """The size of an average file, at least one byte."""
        return max(1.0, sum(self.bytes) / len(self.bytes))

    def delta(self, v: int, inside: Container[int]) -> int:
        """How many more bytes travel when task v joins those inside, who are all its parents that are not executed."""
        more = sum(self.bytes[f] for f in self.written.get(v, ()))
        for f in self.read.get(v, ()):
            if self.writer[f] in inside and all(u in inside or u == v for u in self.readers[f]):
                more -= self.bytes[f]
        return more

    def cut(self, tasks: Container[int], members: list[int]) -> int:
        """The bytes of what some tasks write and others read that are not among them."""
        files = (f for v in members for f in self.written.get(v, ()))
        return sum(self.bytes[f] for f in files if any(u not in tasks for u in self.readers[f]))

    def needed(self, tasks: Container[int], members: list[int]) -> int:
        """The bytes that some tasks read and others wrote."""
        files = {f for v in members for f in self.read.get(v, ()) if self.writer[f] not in tasks}
        return sum(self.bytes[f] for f in files)

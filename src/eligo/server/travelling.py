"""Which files of a workflow travel: what crosses the border of a grant."""

from dataclasses import dataclass, field

from eligo.stores.serving import FileRow
from eligo.workflow import Workflow


@dataclass(slots=True)
class Travels:
    """Who makes and who reads which file, and which of them are there."""

    flow: Workflow
    there: dict[str, FileRow] = field(default_factory=dict)
    makers: dict[str, int] = field(default_factory=dict)
    readers: dict[str, list[int]] = field(default_factory=dict)
    #: the files that no task makes
    needs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for v, names in enumerate(self.flow.column("outputs")):
            self.makers.update(dict.fromkeys(names, v))
        for v, names in enumerate(self.flow.column("inputs")):
            for file in names:
                self.readers.setdefault(file, []).append(v)
        self.needs = [name for name in self.readers if name not in self.makers]

    @property
    def missing(self) -> list[str]:
        """Those of them that are not there."""
        return [name for name in self.needs if name not in self.there]

    def inside(self, v: int, members: set[int]) -> list[str]:
        """Of what a task makes, what nobody reads but other members of its grant."""
        made = self.flow.task(self.flow.dag.tasks[v]).outputs
        return [name for name in made if (readers := self.readers.get(name)) and members.issuperset(readers)]

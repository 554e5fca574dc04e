"""How far a batch is looked for: limits on the size of what is solved exactly, and a clock.

A clock alone bounds a batch only loosely, because a solver that has begun with a component finishes it. Where others wait
for the answer, as on a server, `BRIEF` also bounds what one solver may begin with.
"""

import math
from dataclasses import dataclass

from eligo.deciding.work import Clock


@dataclass(frozen=True)
class Limits:
    """The largest components that each solver takes. The defaults were measured with benchmarks/batches.py."""

    #: all sets of at most so many different sources or sinks are enumerated
    items: int = 20
    #: the same once time is up
    items_late: int = 14
    #: the largest tree, in tasks
    tree_tasks: float = math.inf
    #: the same once time is up
    tree_tasks_late: float = math.inf
    #: the largest tree, in sources times requests: the default takes about a second and 160 MB
    tree_cells: int = 10_000_000
    #: arcs for which minimum cuts are computed: the default takes about half a second
    cut_arcs: int = 100_000
    #: arcs for which a batch is improved by exchanges
    exchange_arcs: float = math.inf
    #: arcs for the search over sinks and the integer program
    program_arcs: int = 50_000
    #: whether the integer program is solved at all: its solver ends late, by up to 0.1 s
    integer_program: bool = True


FULL = Limits()
#: each step takes a few milliseconds at most
BRIEF = Limits(
    items=12,
    items_late=0,
    tree_tasks=150,
    tree_tasks_late=0,
    cut_arcs=5_000,
    exchange_arcs=5_000,
    program_arcs=5_000,
    integer_program=False,
)


@dataclass(frozen=True)
class Budget:
    """The limits of one batch, and its clock."""

    clock: Clock
    limits: Limits = FULL

    @property
    def items(self) -> int:
        """The most sources or sinks whose sets are enumerated now."""
        return self.limits.items_late if self.clock.over() else self.limits.items

    def allows_tree(self, tasks: int, sources: int, size: int) -> bool:
        """Whether a tree may be solved now for batches of up to *size* sources."""
        most = self.limits.tree_tasks_late if self.clock.over() else self.limits.tree_tasks
        return tasks <= most and sources * size <= self.limits.tree_cells

"""▷-chains for fat tasks: which blocks may be taken from a chain, and dags from which any fat task may be taken.

A chain is the subject of Theorem 1 of [1]_: the blocks of a dag, each ▷ the next, in an order that the super-dag allows. If
whole blocks are taken, an ancestor-closed set of them, the others are still such a chain (Lemma 2). If the beginning of the
first block of a chain is taken, the rest of its schedule is still best (Theorem 4). So a chain is kept as long as every block
is complete, or gone, or the first remaining one and started in its own order.

.. [1] Sims, Cordasco, Rosenberg: On clustering tasks in IC-optimal dags.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np

from eligo.dag import Dag
from eligo.rows import Ints, pointers
from eligo.theory.blocks import Blocks, decompose
from eligo.theory.composition import concatenated_order, linearise
from eligo.theory.skeleton import segments, skeleton
from eligo.theory.solutions import Solutions, recognise, solve_blocks, solve_one

# Matchings


def matches_all(rows: Sequence[Sequence[int]]) -> bool:
    """Whether every row can be assigned one of its entries that no other row has, by augmenting paths, row by row.

    >>> matches_all([[1, 2], [1]]), matches_all([[1], [1]])
    (True, False)
    """
    owner: dict[int, int] = {}

    for start in range(len(rows)):
        path = _path(rows, start, owner)
        if path is None:
            return False
        for row, entry in path:
            owner[entry] = row
    return True


def _path(rows: Sequence[Sequence[int]], start: int, owner: dict[int, int]) -> list[tuple[int, int]] | None:
    """The assignments that give one more row an entry, with changes for other rows if needed, by breadth-first search."""
    asked: dict[int, int] = {}  # entry -> the row that wants it
    wants = {start: -1}  # row -> the entry that it gives up
    asking = [start]
    for row in asking:
        for entry in rows[row]:
            if entry in asked:
                continue
            asked[entry] = row
            if entry not in owner:
                return _retrace(entry, asked, wants)
            wants[owner[entry]] = entry
            asking.append(owner[entry])
    return None


def _retrace(entry: int, asked: dict[int, int], wants: dict[int, int]) -> list[tuple[int, int]]:
    path = []
    while entry >= 0:
        path.append((asked[entry], entry))
        entry = wants[asked[entry]]
    return path


# Chains

MANY_BLOCKS = 10  # blocks without a name, from which on the largest is solved before the others


@dataclass(frozen=True, eq=False)
class Chain:
    """The blocks of a dag in the order of a ▷-chain; `tasks` maps its tasks to those of a larger dag."""

    solutions: Solutions
    #: block numbers of the decomposition, first to last
    sequence: Ints
    tasks: Ints

    def __len__(self) -> int:
        return len(self.sequence)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The blocks' names, first to last."""
        names = [solution.name for solution in self.solutions.types]
        return tuple(names[t] for t in self.solutions.type_of[self.sequence].tolist())

    @cached_property
    def order(self) -> Ints:
        """An IC-optimal schedule: the blocks' sources, block after block, and then the sinks."""
        dag = self.solutions.blocks.dag
        nonsinks = concatenated_order(self.solutions, self.sequence)
        order: Ints = self.tasks[np.concatenate([nonsinks, np.flatnonzero(dag.outdegree == 0)])]
        return order

    @cached_property
    def begin(self) -> list[int]:
        """The places in `order` at which the blocks begin, and the end of the last one."""
        ptr = self.solutions.blocks.source_rows[0]
        begin: list[int] = pointers(np.diff(ptr)[self.sequence]).tolist()
        return begin

    def members(self, place: int) -> list[int]:
        """The sources of a block, in the order of its schedule."""
        members: list[int] = self.order[self.begin[place] : self.begin[place + 1]].tolist()
        return members

    @cached_property
    def places(self) -> Mapping[int, int]:
        """For every nonsink, the place of its block in the chain."""
        owner = [place for place, (a, b) in enumerate(pairwise(self.begin)) for _ in range(a, b)]
        return dict(zip(self.order[: len(owner)].tolist(), owner, strict=True))

    @cached_property
    def family(self) -> str | None:
        """ "W", "C" or "N" if all blocks are of that family, as Theorem 6 requires; else None."""
        letters = {None if solution.kind is None else solution.kind.letter for solution in self.solutions.types}
        letter = letters.pop() if len(letters) == 1 else None
        return letter if letter in {"W", "C", "N"} else None


def chain_of(dag: Dag, tasks: Ints | None = None) -> Chain | None:
    """The dag as a ▷-chain of blocks, or None if it is not one.

    >>> mesh = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "e"), ("c", "f")])
    >>> chain_of(mesh).kinds
    ('W(1,2)', 'W(2,2)')
    """
    bare = skeleton(dag)
    blocks = decompose(bare)
    if _is_hopeless(blocks):
        return None
    solutions = solve_blocks(blocks)
    label = segments(bare)
    ptr, sources = solutions.blocks.source_rows
    line = linearise(solutions, label[sources[ptr[:-1]]], int(label.max(initial=-1)) + 1)
    if not line.linear.all():
        return None
    return Chain(solutions, line.sequence, np.arange(len(dag), dtype=np.int32) if tasks is None else tasks)


def _is_hopeless(blocks: Blocks) -> bool:
    """Whether the largest of many blocks without a name has no best order: then the others need not be solved."""
    unnamed = np.ones(len(blocks), np.bool_)
    for _, members in recognise(blocks):
        unnamed[members] = False
    if unnamed.sum() < MANY_BLOCKS:
        return False
    largest = int(np.argmax(np.where(unnamed, np.diff(blocks.source_rows[0]), 0)))
    return solve_one(blocks.block_dag(largest)).order is None


def chain_text(kinds: Iterable[str], most: int = 12) -> str:
    """A chain as text, with equal neighbours counted.

    >>> chain_text(["W(1,2)", "W(1,2)", "W(2,2)"])
    '2 W(1,2) ▷ W(2,2)'
    """
    runs = [(kind, sum(1 for _ in group)) for kind, group in groupby(kinds)]
    terms = [f"{count} {kind}" if count > 1 else kind for kind, count in runs]
    return " ▷ ".join(terms if len(terms) <= most else [*terms[: most - 2], "...", terms[-1]])


def is_reticulated(chain: Chain) -> bool:
    """The repaired condition of Theorem 6: whether any fat task may be taken, as far as is known.

    The printed condition is a one-to-one map of a block's sources into those of each block below it; it has counterexamples.
    None is known if the map follows arcs and every block below another has all its sources merged with sinks above. That is
    evidence, not proof: the remaining dag is checked every time.

    >>> from eligo import families
    >>> is_reticulated(chain_of(families.out_mesh(5))), is_reticulated(chain_of(families.butterfly(2)))
    (True, False)
    """
    blocks = chain.solutions.blocks
    dag, superdag = blocks.dag, blocks.superdag
    merged = np.bincount(blocks.source_of[(blocks.source_of >= 0) & (blocks.sink_of >= 0)], minlength=len(blocks))
    below = superdag.indegree > 0
    if (merged[below] != np.diff(blocks.source_rows[0])[below]).any():
        return False
    child_ptr, child, owner = dag.child_ptr.tolist(), dag.child.tolist(), blocks.source_of.tolist()
    for above, under in zip(superdag.tails.tolist(), superdag.child.tolist(), strict=True):
        rows = (child[child_ptr[u] : child_ptr[u + 1]] for u in blocks.sources(above).tolist())
        if not matches_all([[v for v in row if owner[v] == under] for row in rows]):
            return False
    return True

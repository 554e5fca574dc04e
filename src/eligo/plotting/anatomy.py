"""A planned dag taken apart for its pictures: places in the plan, shortcuts, blocks, their kinds and colours."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.planning import Plan
from eligo.rows import Ints, places
from eligo.theory.blocks import Blocks, decompose
from eligo.theory.skeleton import shortcut_mask, skeleton
from eligo.theory.solutions import recognise

COLOURS = 8  # of the palette
NEUTRAL = -1  # the colour of what needs none: blocks that are a single arc, tasks without arcs


@dataclass(frozen=True, eq=False)
class Anatomy:
    """What the pictures of one plan have in common, worked out once."""

    dag: Dag
    plan: Plan

    def __post_init__(self) -> None:
        if self.plan.dag is not self.dag and self.plan.dag != self.dag:
            raise InputError("this plan was made for another workflow")

    @cached_property
    def position(self) -> Ints:
        """The place of every task in the plan, from 0."""
        return places(len(self.dag), self.plan.sequence)

    @cached_property
    def shortcuts(self) -> NDArray[np.bool_]:
        """For every arc, whether it is a shortcut."""
        return shortcut_mask(self.dag)

    @cached_property
    def lonely(self) -> int:
        """How many tasks have no arcs, and so are in no block."""
        return int(((self.dag.indegree == 0) & (self.dag.outdegree == 0)).sum())

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks of the skeleton."""
        return decompose(skeleton(self.dag))

    @cached_property
    def kinds(self) -> list[str]:
        """Each block's kind: W(3,2) where it has a name, 5→3 for another one of 5 sources and 3 sinks."""
        counts = np.column_stack([np.diff(rows[0]) for rows in (self.blocks.source_rows, self.blocks.sink_rows)])
        kinds = [f"{sources}→{sinks}" for sources, sinks in counts.tolist()]
        for kind, members in recognise(self.blocks):
            for block in members.tolist():
                kinds[block] = str(kind)
        return kinds

    @cached_property
    def turn(self) -> Ints:
        """Each block's place, from 1, in the order in which the plan starts them."""
        ptr, sources = self.blocks.source_rows
        begin = np.minimum.reduceat(self.position[sources], ptr[:-1]) if len(self.blocks) else sources
        return places(len(self.blocks), np.argsort(begin)) + np.int32(1)

    @cached_property
    def colours(self) -> Ints:
        """Each block's colour: unlike those of the blocks around it, NEUTRAL for single arcs."""
        superdag = self.blocks.superdag
        colours = np.full(len(self.blocks), NEUTRAL, np.int32)
        beside = np.full(superdag.depth, NEUTRAL, np.int32)  # the colour given last on each level
        following = 0
        for b in np.argsort(self.turn).tolist():
            if self.kinds[b] == "N(1)":
                continue
            near = (
                superdag.parent[slice(*superdag.parent_ptr[b : b + 2])],
                superdag.child[slice(*superdag.child_ptr[b : b + 2])],
            )
            taken = {*colours[np.concatenate(near)].tolist(), int(beside[superdag.level[b]])}
            free = (c % COLOURS for c in range(following, following + COLOURS))
            colours[b] = beside[superdag.level[b]] = next((c for c in free if c not in taken), following)
            following = (int(colours[b]) + 1) % COLOURS
        return colours

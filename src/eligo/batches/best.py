"""The best batch of a state: combines the residual and the solvers.

For several components, the most sinks that k requests render are computed, and how many requests each component gets. The
named blocks W, N and M need no computation: sorted by priority ▷, W by falling degree, then N, then M by rising degree, each
precedes the next, and then running them one after another is best for every k. Copies of one cycle, or of one clique, precede
each other too. All other components go through the knapsack.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from eligo.batches.component_solver import BatchSolution, Budget, Knapsack, Ranged, fill_up
from eligo.batches.greedy import Guess, improve_batch, largest, private_children, share_bound
from eligo.batches.program import Program, can_solve, search, solve_program
from eligo.batches.residual import Residual, Shape
from eligo.dag import Dag
from eligo.deciding.work import Clock
from eligo.rows import Ints
from eligo.theory.priority import Kind
from eligo.theory.profiles import Profile

MOST_CLASSES_FOR_SEARCH = 1_000
LONGEST_SEARCH = 2.0  # seconds before the integer program starts

# Components together


class Bundle(Protocol):
    """Several components as one: `table` gives the number of sinks that k requests render, `deal` the tasks that do it."""

    @property
    def table(self) -> Profile:
        """The most that 0, 1, ... requests render, up to the limit or until all sources are executed."""

    def deal(self, size: int) -> Iterator[Ints]:
        """The tasks to execute, *size* in all."""


class ChainBundle:
    """Components of named shapes, each of which precedes the next, so that running them one after another is best.

    >>> from eligo.batches.residual import Component
    >>> m, w = Kind("M", 1, 2), Kind("W", 1, 3)
    >>> members = Component(m, np.array([5, 6]), 1), Component(w, np.array([7]), 1)
    >>> both = ChainBundle([Shape(m, {0: members[0]}), Shape(w, {1: members[1]})], limit=3)
    >>> both.table.tolist(), [tasks.tolist() for tasks in both.deal(2)]
    ([0, 3, 3, 4], [[7], [5]])
    """

    def __init__(self, shapes: Iterable[Shape], limit: int) -> None:
        self.shapes, self.limit = sorted(shapes, key=lambda shape: _place(shape.kind)), limit

    @cached_property
    def table(self) -> Profile:
        """The profiles of the components, one after another."""
        gains: list[Profile] = []
        remaining = self.limit
        for shape in self.shapes:
            assert shape.kind is not None  # noqa: S101 - chains are made of named shapes
            copies = min(len(shape.members), -(-remaining // shape.sources))
            gains.append(np.tile(np.diff(shape.kind.profile[: remaining + 1]), copies)[:remaining])
            remaining -= len(gains[-1])
            if not remaining:
                break
        return np.concatenate([[0], np.cumsum(np.concatenate(gains))]) if gains else np.zeros(1, np.int64)

    def deal(self, size: int) -> Iterator[Ints]:
        """The first sources in the order of the chain."""
        for shape in self.shapes:
            for sources in shape.first(-(-size // shape.sources)):
                yield sources[:size]
                size -= min(size, len(sources))
            if not size:
                return


class Copies:
    """Components of one solved shape; the knapsack distributes requests among them."""

    def __init__(self, shape: Shape, solution: BatchSolution, limit: int) -> None:
        self.shape, self.solution = shape, solution
        copies = min(len(shape.members), limit)
        self.knapsack = Knapsack([Ranged(0, solution.table)] * copies, limit)

    @property
    def table(self) -> Profile:
        """The most sinks by the knapsack."""
        return self.knapsack.best.values

    def deal(self, size: int) -> Iterator[Ints]:
        """The best sources of each copy, for its share of *size*."""
        parts = sorted(filter(None, self.knapsack.split(size)), reverse=True)
        for part, sources in zip(parts, self.shape.first(len(parts)), strict=True):
            yield sources[self.solution.choose(part)]


def chains(shapes: Iterable[Shape], limit: int) -> Iterator[ChainBundle]:
    """The named shapes as few chains: one for all W, N and M, one for each cycle and each clique."""
    linear = []
    for shape in shapes:
        if shape.kind is not None and shape.kind.letter in "WNM":
            linear.append(shape)
        elif shape.kind is not None:
            yield ChainBundle([shape], limit)
    if linear:
        yield ChainBundle(linear, limit)


def _place(kind: Kind | None) -> tuple[int, int, int]:
    """The sort key of a named block in the chain."""
    assert kind is not None  # noqa: S101 - chains are made of named shapes
    match kind.letter:
        case "W":
            return (0, -kind.d, kind.s)
        case "M":
            return (2, kind.d, -kind.s)
        case _:
            return (1, 0, kind.s)


# The choice


class BatchChoice(NamedTuple):
    """Tasks to execute, as many as requested; how many others they render; a bound for any choice; and the method."""

    tasks: Ints
    rendered: int
    bound: int
    method: str


class Part(NamedTuple):
    """A choice before it is filled up: tasks that help to render others, at most as many as requested."""

    tasks: Ints
    bound: int
    method: str


def choose(residual: Residual, size: int, method: str, budget: Budget) -> BatchChoice:
    """The batch of *size* eligible tasks, at most all of them, that renders the most the method finds.

    Requests that the chosen components do not use go to isolated tasks, the longest remaining path first, and last to sinks
    of the dag, whose execution can never render anything.
    """
    part = SOLVERS[method](residual, size, budget)
    tasks = np.sort(np.concatenate([part.tasks, _fill(residual, part.tasks, size)]))
    rendered = residual.rendered(tasks)
    return BatchChoice(tasks, rendered, max(part.bound, rendered), part.method)


def _fill(residual: Residual, chosen: Ints, size: int) -> Ints:
    remaining = size - len(chosen)
    if remaining <= 0:
        return chosen[:0]
    dag, rest = residual.dag, np.setdiff1d(residual.eligible, chosen, assume_unique=True)
    return rest[np.lexsort((rest, -dag.height[rest], dag.outdegree[rest] == 0))][:remaining]


def _auto(residual: Residual, size: int, budget: Budget) -> Part:
    """Tables for all components that are small enough, joined by the knapsack; the others together, as time allows."""
    shapes = list(residual.shapes.values())
    if size >= sum(len(shape.members) * shape.sources for shape in shapes):
        every = [sources for shape in shapes for sources in shape.first(len(shape.members))]
        sinks = sum(len(shape.members) * shape.sinks for shape in shapes)
        return Part(np.concatenate([np.empty(0, np.int32), *every]), sinks, "all")
    bundles: list[Bundle] = list(chains(shapes, size))
    methods = {"closed form"} if bundles else set()
    hard: list[Shape] = []
    for shape in (shape for shape in shapes if shape.kind is None):
        solution = shape.solution(size, budget)
        if solution is None:
            hard.append(shape)
        else:
            bundles.append(Copies(shape, solution, size))
            methods.add(solution.method)
    easy = Knapsack([Ranged(0, bundle.table) for bundle in bundles], size)
    chosen, bound = np.empty(0, np.int32), int(easy.best.values[-1])
    if hard:
        rest = _Hard(residual, hard, easy.best, size)
        rest.refine(budget)
        chosen, bound = rest.tasks[rest.chosen], rest.bound
        methods.add(rest.method)
    shares = easy.split(_least(easy.best.values, size - len(chosen)))
    dealt = [tasks for bundle, share in zip(bundles, shares, strict=False) for tasks in bundle.deal(share)]
    return Part(np.concatenate([chosen, *dealt]), bound, " + ".join(sorted(methods)))


def _least(table: Profile, size: int) -> int:
    """The fewest requests that render as much as *size* do; the others are better used on the longest paths."""
    return int(np.searchsorted(table[: size + 1], table[size]))


class _Hard:
    """The components too large for tables, as one dag, with the best batch so far and a bound for all components."""

    def __init__(self, residual: Residual, shapes: list[Shape], easy: Ranged, size: int) -> None:
        members = [sources for shape in shapes for sources in shape.first(len(shape.members))]
        self.dag, self.tasks = residual.restricted(np.sort(np.concatenate(members)))
        self.easy, self.size = easy.values, size
        self.chosen: list[int] = []
        self.value, self.bound, self.method = -1, np.iinfo(np.int64).max, "greedy"
        self.guess = Guess.of(self.dag, size)
        self._follow_guess()

    def refine(self, budget: Budget) -> None:
        """Improve the batch by modules, exchanges, search and the integer program, until it meets the bound or time is up."""
        clock, limits, arcs = budget.clock, budget.limits, self.dag.arc_count
        if self._open(clock) and arcs <= limits.cut_arcs:
            self.guess = self.guess.with_modules(clock.seconds / 4)
            self._follow_guess()
        if self._open(clock) and self.chosen and arcs <= limits.exchange_arcs:
            self._take(improve_batch(self.dag, self.chosen, clock.part(clock.seconds / 8)), "greedy")
        if self._open(clock) and arcs <= limits.program_arcs:
            program = Program.of(self.dag)
            if len(program.weights) <= MOST_CLASSES_FOR_SEARCH:
                self._search(program, clock.part(min(clock.seconds / 8, LONGEST_SEARCH)))
            if self._open(clock) and limits.integer_program and (can_solve() or math.isinf(clock.end)):
                self._solve(program, clock.end - time.monotonic())

    def _open(self, clock: Clock) -> bool:
        return self.value < self.bound and not clock.over()

    def _follow_guess(self) -> None:
        easy = Ranged(0, self.easy)
        shares = Knapsack([easy, Ranged(0, self.guess.table)], self.size).split(self.size)
        self._take(self.guess.choose(shares[1]), "greedy")
        self.bound = int(Knapsack([easy, Ranged(0, self.guess.bound)], self.size).best.values[self.size])

    def _search(self, program: Program, clock: Clock) -> None:
        result = search(program, self.easy.tolist(), self.size, self.value, clock)
        if result.chosen is not None:
            self._take(result.chosen, "search")
        if result.proved:
            self.bound, self.method = self.value, "search"

    def _solve(self, program: Program, seconds: float) -> None:
        result = solve_program(program, self.easy, self.size, self.chosen, seconds)
        if result is not None:
            self.bound = min(self.bound, max(result.bound, self.value))
            self._take(result.chosen, "milp")
            if self.bound == self.value:
                self.method = "milp"

    def _take(self, chosen: list[int], method: str) -> None:
        """Keep a batch if it is better, filled up so that the other components can use all other requests."""
        batch = fill_up(chosen, max(len(chosen), self.size - len(self.easy) + 1), len(self.tasks))
        value = rendered_by(self.dag, batch) + int(self.easy[self.size - len(batch)])
        if value > self.value:
            self.chosen, self.value, self.method = batch, value, method


def rendered_by(residual: Dag, sources: list[int]) -> int:
    """The number of sinks of a bipartite dag that have all their parents among these sources."""
    inside = np.zeros(len(residual), np.bool_)
    inside[sources] = True
    executed_parents = np.bincount(residual.child, inside[residual.tails], minlength=len(residual))
    return int(((executed_parents == residual.indegree) & (residual.indegree > 0)).sum())


def _greedy(residual: Residual, size: int, budget: Budget) -> Part:
    """The beginning of the best order, improved by exchanges."""
    dag, tasks = residual.restricted(residual.eligible)
    guess = Guess.of(dag, size)
    chosen = improve_batch(dag, guess.choose(guess.size), budget.clock)
    return Part(tasks[chosen], int(guess.bound[-1]), "greedy")


def _expansive(residual: Residual, size: int, budget: Budget) -> Part:
    """The sources with the most private children in the residual."""
    dag, tasks = residual.restricted(residual.eligible)
    chosen = largest(private_children(dag)[: len(tasks)], size)
    return Part(tasks[chosen], int(share_bound(dag)[len(chosen)]), "expansive")


SOLVERS: dict[str, Callable[[Residual, int, Budget], Part]] = {
    "auto": _auto,
    "exact": _auto,
    "expansive": _expansive,
    "greedy": _greedy,
}

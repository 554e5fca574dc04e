"""The best batch of a state: the one place where the residual and the solvers are put together."""

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eligo.batches.bundles import Bundle, Copies, chains
from eligo.batches.components import Shape
from eligo.batches.expansive import largest, private_children
from eligo.batches.greedy import Guess, improved
from eligo.batches.knapsack import Knapsack, Ranged
from eligo.batches.limits import LONGEST_SEARCH, MOST_ARCS_FOR_CUTS, MOST_ARCS_FOR_PROGRAM, MOST_CLASSES_FOR_SEARCH
from eligo.batches.milp import Program, solve_program
from eligo.batches.packing import search
from eligo.batches.residual import Residual
from eligo.batches.shares import share_bound
from eligo.batches.solving import filled
from eligo.dag import Dag
from eligo.deciding.clock import Clock
from eligo.rows import Ints
from eligo.theory.profiles import Profile


class BatchChoice(NamedTuple):
    """Tasks to execute, as many as asked for, how many others that renders, at most how many any choice does, and how."""

    tasks: Ints
    rendered: int
    bound: int
    method: str


class Part(NamedTuple):
    """A choice in the making: tasks that help to render others, no more than asked for."""

    tasks: Ints
    bound: int
    method: str


def choose(residual: Residual, size: int, method: str, clock: Clock) -> BatchChoice:
    """The batch of that many eligible tasks, at most all of them, which renders the most that the method finds.

    What the chosen components leave over goes to isolated tasks, the longest remaining path first, and last to sinks of the
    dag, whose execution can never render anything.
    """
    part = SOLVERS[method](residual, size, clock)
    tasks = np.sort(np.concatenate([part.tasks, _fill(residual, part.tasks, size)]))
    rendered = residual.rendered(tasks)
    return BatchChoice(tasks, rendered, max(part.bound, rendered), part.method)


def _fill(residual: Residual, chosen: Ints, size: int) -> Ints:
    left = size - len(chosen)
    if left <= 0:
        return chosen[:0]
    dag, rest = residual.dag, np.setdiff1d(residual.eligible, chosen, assume_unique=True)
    return rest[np.lexsort((rest, -dag.height[rest], dag.outdegree[rest] == 0))][:left]


def _auto(residual: Residual, size: int, clock: Clock) -> Part:
    """Tables for every component that allows them, joined by the knapsack; the others together by what time allows."""
    shapes = list(residual.shapes.values())
    if size >= sum(len(shape.members) * shape.sources for shape in shapes):
        every = [sources for shape in shapes for sources in shape.first(len(shape.members))]
        sinks = sum(len(shape.members) * shape.sinks for shape in shapes)
        return Part(np.concatenate([np.empty(0, np.int32), *every]), sinks, "all")
    bundles: list[Bundle] = list(chains(shapes, size))
    methods = {"closed form"} if bundles else set()
    hard: list[Shape] = []
    for shape in (shape for shape in shapes if shape.kind is None):
        solution = shape.solution(size, clock)
        if solution is None:
            hard.append(shape)
        else:
            bundles.append(Copies(shape, solution, size))
            methods.add(solution.method)
    easy = Knapsack([Ranged(0, bundle.table) for bundle in bundles], size)
    chosen, bound = np.empty(0, np.int32), int(easy.best.values[-1])
    if hard:
        rest = _Hard(residual, hard, easy.best, size)
        rest.refine(clock)
        chosen, bound = rest.tasks[rest.chosen], rest.bound
        methods.add(rest.method)
    shares = easy.split(_least(easy.best.values, size - len(chosen)))
    dealt = [tasks for bundle, share in zip(bundles, shares, strict=False) for tasks in bundle.deal(share)]
    return Part(np.concatenate([chosen, *dealt]), bound, " + ".join(sorted(methods)))


def _least(table: Profile, size: int) -> int:
    """The fewest requests that render as much as this many do; the others had better follow the longest path."""
    return int(np.searchsorted(table[: size + 1], table[size]))


class _Hard:
    """The components too large for tables, as one dag, with the best batch so far and a bound of it all."""

    def __init__(self, residual: Residual, shapes: list[Shape], easy: Ranged, size: int) -> None:
        members = [sources for shape in shapes for sources in shape.first(len(shape.members))]
        self.dag, self.tasks = residual.restricted(np.sort(np.concatenate(members)))
        self.easy, self.size = easy.values, size
        self.chosen: list[int] = []
        self.value, self.bound, self.method = -1, np.iinfo(np.int64).max, "greedy"
        self.guess = Guess.of(self.dag, size)
        self._follow_guess()

    def refine(self, clock: Clock) -> None:
        """Modules, exchanges, the search over sinks, the integer program, until the bound is met or time is up."""
        if self._open(clock) and self.dag.arc_count <= MOST_ARCS_FOR_CUTS:
            self.guess = self.guess.with_modules(clock.seconds / 4)
            self._follow_guess()
        if self._open(clock) and self.chosen:
            self._take(improved(self.dag, self.chosen, clock.part(clock.seconds / 8)), "greedy")
        if self._open(clock) and self.dag.arc_count <= MOST_ARCS_FOR_PROGRAM:
            program = Program.of(self.dag)
            if len(program.weights) <= MOST_CLASSES_FOR_SEARCH:
                self._search(program, clock.part(min(clock.seconds / 8, LONGEST_SEARCH)))
            if self._open(clock):
                self._solve(program, clock.end - time.monotonic())

    def _open(self, clock: Clock) -> bool:
        return self.value < self.bound and not clock.over()

    def _follow_guess(self) -> None:
        easy = Ranged(0, self.easy)
        shares = Knapsack([easy, Ranged(0, self.guess.table)], self.size).split(self.size)
        self._take(self.guess.choose(shares[1]), "greedy")
        self.bound = int(Knapsack([easy, Ranged(0, self.guess.bound)], self.size).best.values[self.size])

    def _search(self, program: Program, clock: Clock) -> None:
        found = search(program, self.easy.tolist(), self.size, self.value, clock)
        if found.chosen is not None:
            self._take(found.chosen, "search")
        if found.proved:
            self.bound, self.method = self.value, "search"

    def _solve(self, program: Program, seconds: float) -> None:
        found = solve_program(program, self.easy, self.size, self.chosen, seconds)
        if found is not None:
            self.bound = min(self.bound, max(found.bound, self.value))
            self._take(found.chosen, "milp")
            if self.bound == self.value:
                self.method = "milp"

    def _take(self, chosen: list[int], method: str) -> None:
        """Keep a batch that is better, filled up so that the other components can take the rest."""
        whole = filled(chosen, max(len(chosen), self.size - len(self.easy) + 1), len(self.tasks))
        value = rendered_by(self.dag, whole) + int(self.easy[self.size - len(whole)])
        if value > self.value:
            self.chosen, self.value, self.method = whole, value, method


def rendered_by(residual: Dag, sources: list[int]) -> int:
    """How many sinks of a bipartite dag have all their parents among these sources."""
    inside = np.zeros(len(residual), np.bool_)
    inside[sources] = True
    found = np.bincount(residual.child, inside[residual.tails], minlength=len(residual))
    return int(((found == residual.indegree) & (residual.indegree > 0)).sum())


def _greedy(residual: Residual, size: int, clock: Clock) -> Part:
    """The beginning of the best order, improved by exchanges."""
    dag, tasks = residual.restricted(residual.eligible)
    guess = Guess.of(dag, size)
    chosen = improved(dag, guess.choose(guess.size), clock)
    return Part(tasks[chosen], int(guess.bound[-1]), "greedy")


def _expansive(residual: Residual, size: int, clock: Clock) -> Part:
    """The most private children in the residual first."""
    dag, tasks = residual.restricted(residual.eligible)
    chosen = largest(private_children(dag)[: len(tasks)], size)
    return Part(tasks[chosen], int(share_bound(dag)[len(chosen)]), "expansive")


SOLVERS: dict[str, Callable[[Residual, int, Clock], Part]] = {
    "auto": _auto,
    "exact": _auto,
    "expansive": _expansive,
    "greedy": _greedy,
}

"""The best batch as an integer program, solved by HiGHS within a time box.

    maximise    sum of w(c) y(c) + sum of easy(k) z(k)
    where       y(c) <= x(i)                            for each item i that class c misses
                sum of size(i) x(i) + sum of k z(k) <= requests,    sum of z(k) <= 1

An item i is a set of sources with the same children, all executed or none (some of them render nothing); a class c is a set
of w(c) sinks that miss the same sources; z(k) gives k requests to the components that are already solved, where they render
easy(k). Only x and z need be integers.

**The search** over sets of sinks is fast if every sink misses many sources, so that few sinks fit into one batch. A batch
need only have the sources that its rendered sinks miss. The search adds one class of sinks after another, includes those
that then miss no source, drops those that no longer fit, and backtracks if even all that still fit would not be enough.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.work import Clock
from eligo.errors import InputError
from eligo.rows import Ints
from eligo.theory.profiles import Profile

ROUNDING = 1e-3  # far more than the sum of the solver's tolerances


class Found(NamedTuple):
    """The chosen sources, at most as many as requested, and a bound of the sinks that any choice renders in all."""

    chosen: list[int]
    bound: int


@dataclass(frozen=True, eq=False)
class Program:
    """The items and classes of a residual: for each pair j, class `classes[j]` misses the item `missed[j]`."""

    items: list[list[int]]
    sizes: NDArray[np.int64]
    weights: NDArray[np.int64]
    classes: Ints
    missed: Ints

    @classmethod
    def of(cls, residual: Dag) -> "Program":
        """The program of a bipartite dag whose sources are numbered first.

        >>> Program.of(Dag.from_arrays(5, [0, 0, 1, 1, 2], [3, 4, 3, 4, 4])).items
        [[0, 1], [2]]
        """
        item_of, items = _twins(residual.child_ptr, residual.child)
        class_of, classes = _twins(residual.parent_ptr, residual.parent)
        pairs = np.unique(np.stack([class_of[residual.child], item_of[residual.tails]]), axis=1).astype(np.int32)
        sizes, weights = (np.array([len(twins) for twins in sets], np.int64) for sets in (items, classes))
        return cls(items, sizes, weights, pairs[0], pairs[1])

    def sources(self, items: Sequence[int]) -> list[int]:
        """The sources of these items, ascending."""
        return sorted(u for i in items for u in self.items[i])


def solve_program(program: Program, easy: Profile, requests: int, start: Sequence[int], seconds: float) -> Found | None:
    """The best batch that HiGHS finds in the time, starting from the sources *start*; None if it finds none.

    *easy* gives for k = 0, 1, ... the number of sinks that k requests render elsewhere.

    >>> cycle = Program.of(Dag.from_arrays(6, [0, 0, 1, 1, 2, 2], [3, 4, 4, 5, 5, 3]))
    >>> solve_program(cycle, np.array([0, 2]), 3, [0], math.inf)
    Found(chosen=[0, 1, 2], bound=3)
    """
    highs = _highs()
    solver = highs.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", 0.99)  # values are whole numbers
    if math.isfinite(seconds):
        solver.setOptionValue("time_limit", max(seconds, 0.01))
    solver.passModel(_model(program, easy, requests))
    hint = highs.HighsSolution()
    hint.col_value = [
        *_begin(program, set(start)),
        *[0.0] * (solver.getNumCol() - len(program.items) - len(program.weights)),
    ]
    solver.setSolution(hint)
    solver.run()
    info = solver.getInfo()
    if info.primal_solution_status != highs.SolutionStatus.kSolutionStatusFeasible or not math.isfinite(
        info.mip_dual_bound
    ):
        return None
    values = solver.getSolution().col_value[: len(program.items)]
    return Found(
        program.sources([i for i, value in enumerate(values) if value > 0.5]),
        math.floor(info.mip_dual_bound + ROUNDING),
    )


def can_solve() -> bool:
    """Whether HiGHS is installed."""
    return find_spec("highspy") is not None


def _highs() -> Any:
    try:
        return import_module("highspy")
    except ModuleNotFoundError:
        raise InputError('an integer program needs HiGHS: pip install "eligo[batch]"') from None


def _model(program: Program, easy: Profile, requests: int) -> Any:
    """The program for the solver: columns x, y, z; rows for the arcs, the requests and the choice of k."""
    highs = _highs()
    items, classes, arcs = len(program.items), len(program.weights), len(program.classes)
    steps = np.flatnonzero(np.diff(easy[: requests + 1])) + 1
    z = items + classes + np.arange(len(steps))
    model = highs.HighsLp()
    model.num_col_, model.num_row_ = items + classes + len(steps), arcs + 2
    model.sense_ = highs.ObjSense.kMaximize
    model.col_cost_ = np.concatenate([np.zeros(items), program.weights, easy[steps]])
    model.col_lower_, model.col_upper_ = np.zeros(model.num_col_), np.ones(model.num_col_)
    integer, real = highs.HighsVarType.kInteger, highs.HighsVarType.kContinuous
    model.integrality_ = [integer] * items + [real] * classes + [integer] * len(steps)
    model.row_lower_ = np.full(arcs + 2, -np.inf)
    model.row_upper_ = np.concatenate([np.zeros(arcs), [requests, 1]])
    matrix = model.a_matrix_
    matrix.format_ = highs.MatrixFormat.kRowwise
    lengths = np.concatenate([np.full(arcs, 2), [items + len(steps), len(steps)]])
    matrix.start_ = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    ends = np.stack([program.missed, items + program.classes], axis=1).ravel()
    matrix.index_ = np.concatenate([ends, np.arange(items), z, z]).astype(np.int32)
    matrix.value_ = np.concatenate([np.tile([-1.0, 1.0], arcs), program.sizes, steps, np.ones(len(steps))])
    return model


def _begin(program: Program, start: set[int]) -> list[float]:
    """The values of x and y for a given batch."""
    x = np.array([float(start.issuperset(sources)) for sources in program.items])
    y = np.ones(len(program.weights))
    np.minimum.at(y, program.classes, x[program.missed])
    return [*x.tolist(), *y.tolist()]


def _twins(ptr: Ints, rows: Ints) -> tuple[Ints, list[list[int]]]:
    """The group of each task, and the groups: the tasks that have a row, grouped by equal rows."""
    groups: dict[bytes, int] = {}
    members: list[list[int]] = []
    group_of = np.full(len(ptr) - 1, -1, np.int32)
    ends = ptr.tolist()
    for v in np.flatnonzero(np.diff(ptr)).tolist():
        group = groups.setdefault(rows[ends[v] : ends[v + 1]].tobytes(), len(members))
        if group == len(members):
            members.append([])
        members[group].append(v)
        group_of[v] = group
    return group_of, members


# The search


class Searched(NamedTuple):
    """The most sinks that a search rendered, and whether more are excluded; `chosen` is None if it found no more."""

    rendered: int
    chosen: list[int] | None
    proved: bool


class _Node(NamedTuple):
    """The sources inside, as bits; the sinks they render; the classes that still fit, from number `at` on; their weight."""

    inside: int
    rendered: int
    fitting: list[tuple[int, int]]
    at: int
    weight: int


def search(program: Program, easy: Sequence[int], requests: int, least: int, clock: Clock) -> Searched:
    """The best batch if it renders more than *least* sinks in all.

    *easy* gives for k = 0, 1, ... the number of sinks that k requests render elsewhere.

    >>> from eligo.dag import Dag
    >>> two = Program.of(Dag.from_arrays(7, [0, 1, 2, 2, 3], [4, 4, 5, 6, 6]))
    >>> search(two, [0], 2, -1, Clock())
    Searched(rendered=2, chosen=[2, 3], proved=True)
    """
    elsewhere = [easy[min(k, len(easy) - 1)] for k in range(requests + 1)]
    best, chosen = least, None
    stack = [_fitting(_Node(0, 0, _classes(program), 0, 0), requests)]
    while stack:
        node = stack.pop()
        other = elsewhere[requests - node.inside.bit_count()]
        if node.rendered + other > best:
            best, chosen = node.rendered + other, node.inside
        if node.rendered + node.weight + other <= best or node.at == len(node.fitting):
            continue
        if clock.over():
            return Searched(best, _bits(chosen), False)
        misses, weight = node.fitting[node.at]
        stack.append(node._replace(at=node.at + 1, weight=node.weight - weight))
        stack.append(_fitting(node._replace(inside=node.inside | misses), requests))
    return Searched(best, _bits(chosen), True)


def _fitting(node: _Node, requests: int) -> _Node:
    """The node with the classes included that miss no more sources, and those dropped that no longer fit."""
    rendered, weight, fitting = node.rendered, 0, []
    for i in range(node.at, len(node.fitting)):
        misses, own = node.fitting[i]
        together = misses | node.inside
        if together == node.inside:
            rendered += own
        elif together.bit_count() <= requests:
            fitting.append((misses, own))
            weight += own
    return _Node(node.inside, rendered, fitting, 0, weight)


def _classes(program: Program) -> list[tuple[int, int]]:
    """The sources that each class misses, as bits, and its weight; classes that miss the fewest first."""
    bits = [sum(1 << u for u in sources) for sources in program.items]
    misses = [0] * len(program.weights)
    for c, i in zip(program.classes.tolist(), program.missed.tolist(), strict=True):
        misses[c] |= bits[i]
    return sorted(zip(misses, program.weights.tolist(), strict=True), key=lambda one: (one[0].bit_count(), one))


def _bits(mask: int | None) -> list[int] | None:
    return None if mask is None else [u for u in range(mask.bit_length()) if mask >> u & 1]

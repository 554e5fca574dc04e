"""The best batch by search over sets of sinks: fast where every sink misses much, so that few of them fit into one batch.

A batch need only be what the sinks it renders miss. The search adds one class of sinks after another, takes along those that
then miss nobody, drops those that no longer fit, and turns back where even all that still fit would not be enough.
"""

from collections.abc import Sequence
from typing import NamedTuple

from eligo.batches.milp import Program
from eligo.deciding.clock import Clock


class Searched(NamedTuple):
    """The most sinks found and the sources that render them, None where no more than was known; and whether it is proved."""

    rendered: int
    chosen: list[int] | None
    proved: bool


class _Node(NamedTuple):
    """Sources that are in, as bits; what they render; the classes that still fit, from number `at` on, and their weight."""

    inside: int
    rendered: int
    fitting: list[tuple[int, int]]
    at: int
    weight: int


def search(program: Program, easy: Sequence[int], requests: int, least: int, clock: Clock) -> Searched:
    """The best batch, where it renders more than *least* sinks in all.

    *easy* says for k = 0, 1, ... how many sinks k requests render elsewhere.

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
    """The node with the classes that miss nobody any more taken in, and those that do not fit any more left out."""
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
    """What each class misses, as bits, and its weight; those that miss least first."""
    bits = [sum(1 << u for u in sources) for sources in program.items]
    misses = [0] * len(program.weights)
    for c, i in zip(program.classes.tolist(), program.missed.tolist(), strict=True):
        misses[c] |= bits[i]
    return sorted(zip(misses, program.weights.tolist(), strict=True), key=lambda one: (one[0].bit_count(), one))


def _bits(mask: int | None) -> list[int] | None:
    return None if mask is None else [u for u in range(mask.bit_length()) if mask >> u & 1]

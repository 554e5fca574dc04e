"""The largest area of a series-parallel dag, as the checker computes it: sorted lists instead of heaps, no order kept.

Tasks with equal parents enter one node together, tasks with equal children leave one; a task leads from the node of its
parents to the node of its children. Two ways beside each other are one; a node with one way in and one way out is passed.
"""

from fractions import Fraction
from functools import reduce

from eligo.dag import Dag

String = tuple[int, int, int]  # tasks rendered, tasks executed, and the sum of the profile meanwhile
Ways = dict[int, list[String]]


def largest_area(dag: Dag) -> int | None:
    """The largest sum of a cumulative profile; None where the dag, without shortcuts, is not series-parallel."""
    nodes = _nodes(dag)
    if nodes is None:
        return None
    begins, ends, blocks = nodes
    out: list[Ways] = [{} for _ in range(len(blocks) + 2)]
    into: list[Ways] = [{} for _ in range(len(blocks) + 2)]
    for tail, head in zip(begins, ends, strict=True):
        out[tail][head] = into[head][tail] = []
    ready = [node for node in range(len(blocks)) if len(into[node]) == len(out[node]) == 1]
    passed = 0
    while ready:
        node, passed = ready.pop(), passed + 1
        (tail, before), (head, after) = into[node].popitem(), out[node].popitem()
        del out[tail][node], into[head][node]
        strings = _falling([*before, blocks[node], *after])
        if head in out[tail]:
            strings = sorted(strings + out[tail][head], key=lambda s: Fraction(s[0], s[1]), reverse=True)
            ready += [
                end
                for end, in_, out_ in ((tail, into[tail], out[tail]), (head, into[head], out[head]))
                if len(in_) == len(out_) == 1
            ]
        out[tail][head] = into[head][tail] = strings
    if passed < len(blocks):
        return None
    return reduce(_joined, next(iter(out[-2].values()), []), (0, 0, 0))[2]


def _nodes(dag: Dag) -> tuple[list[int], list[int], list[String]] | None:
    """For every task the nodes it leads from and to, and every node's string; None where a block is not complete."""
    kids = [tuple(dag.child[a:b].tolist()) for a, b in zip(dag.child_ptr, dag.child_ptr[1:], strict=False)]
    folk = [tuple(dag.parent[a:b].tolist()) for a, b in zip(dag.parent_ptr, dag.parent_ptr[1:], strict=False)]
    number = {children: i for i, children in enumerate(dict.fromkeys(c for c in kids if c))}
    if any(folk[v] != folk[children[0]] for children in number for v in children):
        return None
    ends = [number.get(children, len(number) + 1) for children in kids]
    begins = [ends[parents[0]] if parents else len(number) for parents in folk]
    return begins, ends, [(len(children), len(folk[children[0]]), len(children)) for children in number]


def _joined(one: String, other: String) -> String:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2] + one[0] * other[1]


def _falling(strings: list[String]) -> list[String]:
    """Neighbours put together until tasks rendered per task executed fall from string to string."""
    falling: list[String] = []
    for string in strings:
        grown = string
        while falling and falling[-1][0] * grown[1] <= grown[0] * falling[-1][1]:
            grown = _joined(falling.pop(), grown)
        falling.append(grown)
    return falling

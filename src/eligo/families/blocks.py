"""Building blocks: connected bipartite dags, sources numbered from left to right, then sinks.

`eligo.families` lists what the numbers in brackets refer to.

It also has the helpers of all families: arcs as arrays, checks of sizes, random numbers from a seed.
"""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eligo.dag import Dag
from eligo.errors import InputError, shorten

Numbers = NDArray[np.integer[Any]]

MOST = 100_000_000  # tasks or arcs: a typing error on the command line must not fill the memory


def dag_of_arcs(n: int, *arcs: tuple[ArrayLike, ArrayLike]) -> Dag:
    """The dag of n tasks with arcs from tails to heads; tails and heads of a pair are broadcast."""
    pairs = [np.broadcast_arrays(tails, heads) for tails, heads in arcs]
    tails, heads = (np.concatenate([pair[end].ravel() for pair in pairs]) for end in (0, 1))
    return Dag.from_arrays(n, tails, heads)


def mirrored(dag: Dag) -> Dag:
    """The dual, numbered backwards, so that its sources come first."""
    last = len(dag) - 1
    return Dag.from_arrays(len(dag), last - dag.child, last - dag.tails)


def generator(seed: int) -> np.random.Generator:
    """A generator of random numbers that depends on the seed alone."""
    at_least(0, seed=seed)
    return np.random.default_rng(seed)


def at_least(least: int, **sizes: float) -> None:
    """Raise if a size is not an integer of at least *least*."""
    for name, value in sizes.items():
        if not isinstance(value, int) or value < least:
            raise InputError(f"{name} must be an integer of at least {least}, got {value!r}")


def fits(count: int) -> int:
    """The count itself, unless it would fill the memory."""
    if count > MOST:
        raise InputError(f"more than {MOST:,} tasks or arcs (choose smaller sizes)")
    return count


def w_dag(s: int, d: int) -> Dag:
    """The W-dag W(s,d): s sources with d children each; neighbours share one child.

    It has s(d-1)+1 sinks. Run its sources from one end to the other [1]_.

    >>> list(w_dag(2, 2).arcs())
    [('0', '2'), ('0', '3'), ('1', '3'), ('1', '4')]
    """
    at_least(1, s=s)
    at_least(2, d=d)
    n = fits(s * d + 1)
    source = np.arange(s)[:, None]
    return dag_of_arcs(n, (source, s + source * (d - 1) + np.arange(d)))


def m_dag(s: int, d: int) -> Dag:
    """The M-dag M(s,d): s sinks with d parents each; neighbours share one parent. It is dual to W(s,d).

    It has s(d-1)+1 sources. Run them from one end to the other [1]_.

    >>> list(m_dag(2, 2).arcs())
    [('0', '3'), ('1', '3'), ('1', '4'), ('2', '4')]
    """
    return mirrored(w_dag(s, d))


def n_dag(s: int) -> Dag:
    """The N-dag N(s): s sources and s sinks; source v has the children v and, if it exists, v+1.

    Run it from source 0, its anchor, whose child 0 has no other parent [1]_.

    >>> list(n_dag(2).arcs())
    [('0', '2'), ('0', '3'), ('1', '3')]
    """
    at_least(1, s=s)
    n = fits(2 * s)
    source = np.arange(s)
    return dag_of_arcs(n, (source, s + source), (source[:-1], s + source[1:]))


def cycle_dag(s: int) -> Dag:
    """The cycle-dag C(s): s sources and s sinks; source v has the children v and v+1 mod s.

    Run it in cyclic order, from any source on. See [5]_, section 2.

    >>> list(cycle_dag(3).arcs())
    [('0', '3'), ('0', '4'), ('1', '4'), ('1', '5'), ('2', '3'), ('2', '5')]
    """
    at_least(2, s=s)
    n = fits(2 * s)
    source = np.arange(s)
    return dag_of_arcs(n, (source, s + source), (source, s + (source + 1) % s))


def clique_dag(s: int) -> Dag:
    """The clique-dag Q(s): s sources, s sinks, and every arc from a source to a sink.

    Run it in any order ([2]_, section 4.1).

    >>> clique_dag(3), clique_dag(2) == cycle_dag(2)
    (Dag(6 tasks, 9 arcs), True)
    """
    at_least(2, s=s)
    fits(s * s)
    return dag_of_arcs(2 * s, (np.arange(s)[:, None], s + np.arange(s)))


def bipartite_tree(sources: int, seed: int = 0, max_degree: int = 3) -> Dag:
    """A random bipartite tree-dag: it is a tree if the directions of its arcs are ignored.

    No task has more than *max_degree* arcs. See [3]_; rarely, such a dag admits no IC-optimal schedule.

    >>> dag = bipartite_tree(50, seed=1)
    >>> dag.arc_count == len(dag) - 1, len(dag.components()), len(dag.sources)
    (True, 1, 50)
    """
    at_least(1, sources=sources)
    at_least(2, max_degree=max_degree)
    fits(sources * (max_degree + 1))
    rng = generator(seed)
    tails, heads = _random_tree(np.full(sources, max_degree), max_degree, rng)
    degree = np.bincount(tails, minlength=sources)
    private = rng.integers(np.where(degree, 0, 1), max_degree - degree, endpoint=True)
    return _with_private_sinks(tails, heads, private)


def expansive_dag(s: int, seed: int = 0, max_private: int = 4) -> Dag:
    """A random connected bipartite expansive dag with s sources.

    Each source v has phi >= 2 private children, which need nothing else, and at most phi shared
    ones [3]_; phi is at most *max_private*.

    >>> expansive_dag(1, max_private=2), expansive_dag(2, max_private=2)
    (Dag(3 tasks, 2 arcs), Dag(8 tasks, 8 arcs))
    """
    at_least(1, s=s)
    at_least(2, max_private=max_private)
    fits(s * (2 * max_private + 1))
    rng = generator(seed)
    private = rng.integers(2, max_private, s, endpoint=True)
    tails, heads = _random_tree(private, s, rng)
    spare = rng.permutation(np.repeat(np.arange(s), private - np.bincount(tails, minlength=s)))
    pairs = spare[: len(spare) // 2 * 2].reshape(-1, 2)
    pairs = pairs[(pairs[:, 0] != pairs[:, 1]) & (rng.random(len(pairs)) < 0.5)]
    sinks = heads.max(initial=-1) + 1 + np.arange(len(pairs))
    tails = np.concatenate([tails, pairs.ravel()])
    return _with_private_sinks(tails, np.concatenate([heads, np.repeat(sinks, 2)]), private)


def _random_tree(room: Numbers, sink_room: int, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
    """A random tree that connects the sources by shared sinks, as (source, sink) of every arc.

    Source v has at most room[v] arcs and a sink at most sink_room. Both are at least 2, so the
    source that came last always has room.
    """
    s = len(room)
    free = [*room.tolist(), *([sink_room] * s)]  # sources are 0..s-1 here, sinks s, s+1, ...
    arcs: list[tuple[int, int]] = []
    ready, sinks = [0], s
    for source, draw in enumerate(rng.random(s - 1).tolist(), start=1):
        place = int(draw * len(ready))
        end = sink = ready[place]
        parents = [source]
        if end < s:
            sink, sinks = sinks, sinks + 1
            parents = [end, source]
        arcs += [(parent, sink) for parent in parents]
        free[sink] -= len(parents)
        for parent in parents:
            free[parent] -= 1
        if not free[end]:
            ready[place] = ready[-1]
            ready.pop()
        ready += [task for task in (source, sink) if free[task] and task != end]
    pairs = np.array(arcs, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1] - s


def _with_private_sinks(tails: Numbers, heads: Numbers, private: Numbers) -> Dag:
    """The bipartite dag with these arcs, from sources to sinks, and more sinks for each source."""
    s, shared, more = len(private), int(heads.max(initial=-1)) + 1, int(private.sum())
    owners = np.repeat(np.arange(s), private)
    return dag_of_arcs(s + shared + more, (tails, s + heads), (owners, s + shared + np.arange(more)))


def planar_bipartite_tree(*zigzag: int | Fraction | str) -> Dag:
    """The planar bipartite tree P[zigzag], zigzag alternating integers d > 1 and reciprocals 1/d.

    P[d] is W(1,d) and P[1/d] is M(1,d). Each further d gives the rightmost source d-1 new sinks;
    each further 1/d gives the rightmost sink d-1 new sources. See [4]_, section 5.2.

    >>> planar_bipartite_tree(3, "1/2", 3) == w_dag(2, 3)
    True
    """
    entries = [_fraction(entry) for entry in zigzag]
    is_integer = np.array([entry > 1 for entry in entries], np.bool_)
    if not entries or (is_integer[1:] == is_integer[:-1]).any():
        raise InputError("a zigzag must alternate integers above 1 and reciprocals, as in 3 1/2 4")
    sizes = [max(entry.numerator, entry.denominator) for entry in entries]
    n = fits(2 + sum(sizes) - len(sizes))  # the first dag is one arc, source 0 to sink 0
    added = np.array(sizes) - 1
    last_source, last_sink = np.cumsum(np.where(is_integer, 0, added)), np.cumsum(is_integer * added)
    s = int(last_source[-1]) + 1
    hung = np.repeat(last_source[is_integer], added[is_integer]), s + np.arange(1, n - s)
    stood = np.arange(1, s), s + np.repeat(last_sink[~is_integer], added[~is_integer])
    return dag_of_arcs(n, (0, [s]), hung, stood)


def _fraction(entry: int | Fraction | str) -> Fraction:
    try:
        value = Fraction(entry)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0 or value == 1 or 1 not in {value.numerator, value.denominator}:
        text = shorten(str(entry))
        raise InputError(f"an entry of a zigzag must be 2, 3, ... or 1/2, 1/3, ..., got {text}")
    return value


def random_planar_bipartite_tree(length: int, seed: int = 0, largest: int = 3) -> Dag:
    """The planar bipartite tree of a random zigzag with *length* entries from 2 to *largest*.

    >>> random_planar_bipartite_tree(3, seed=1, largest=2)
    Dag(5 tasks, 4 arcs)
    """
    at_least(1, length=length)
    at_least(2, largest=largest)
    fits(length * largest)
    rng = generator(seed)
    start = int(rng.integers(2))
    sizes = rng.integers(2, largest, length, endpoint=True).tolist()
    return planar_bipartite_tree(*(d if (start + i) % 2 else Fraction(1, d) for i, d in enumerate(sizes)))

"""The dags the theory is about: building blocks, trees, meshes, known computations, random dags.

Each family is a function that returns a `Dag` whose tasks are named by their numbers: for a
bipartite block the sources from left to right, then the sinks; for the others level by level,
unless said otherwise. `FAMILIES` lists them by name.

.. [1] Malewicz, Rosenberg, Yurkewych (2006): Toward a theory for scheduling dags in Internet-based
   computing. IEEE Trans. Comput. 55, 757-768.
.. [2] Hall, Rosenberg, Venkataramani (2006): A comparison of dag-scheduling strategies for
   Internet-based computing. Univ. of Massachusetts; see also 21st IEEE IPDPS (2007).
.. [3] Malewicz, Rosenberg (2005): On batch-scheduling dags for Internet-based computing. Euro-Par
   2005, LNCS 3648, 262-271.
.. [4] Cordasco, Malewicz, Rosenberg (2008): Extending IC-scheduling via the Sweep algorithm. 16th
   Euromicro PDP, 366-373. Sections are those of the long version.
.. [5] Sims, Cordasco, Rosenberg: On clustering tasks in IC-optimal dags.
"""

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eligo.dag import Dag
from eligo.errors import InputError, shorten

Numbers = NDArray[np.integer[Any]]

MOST = 100_000_000  # tasks or arcs: a slip on the command line must not fill the memory
LARGEST_BLOCK = 5  # blocks of random compositions have s and d up to this


# Building blocks


def w_dag(s: int, d: int) -> Dag:
    """The W-dag W(s,d): s sources with d children each, of which neighbours share one.

    It has s(d-1)+1 sinks. Run its sources from one end to the other [1]_.

    >>> list(w_dag(2, 2).arcs())
    [('0', '2'), ('0', '3'), ('1', '3'), ('1', '4')]
    """
    _at_least(1, s=s)
    _at_least(2, d=d)
    n = _fits(s * d + 1)
    source = np.arange(s)[:, None]
    return _dag(n, (source, s + source * (d - 1) + np.arange(d)))


def m_dag(s: int, d: int) -> Dag:
    """The M-dag M(s,d): s sinks with d parents each, of which neighbours share one; dual to W(s,d).

    It has s(d-1)+1 sources. Run them from one end to the other [1]_.

    >>> list(m_dag(2, 2).arcs())
    [('0', '3'), ('1', '3'), ('1', '4'), ('2', '4')]
    """
    return _mirrored(w_dag(s, d))


def n_dag(s: int) -> Dag:
    """The N-dag N(s): s sources and s sinks; source v has the children v and, if it exists, v+1.

    Run it from source 0, its anchor, whose child 0 has no other parent [1]_.

    >>> list(n_dag(2).arcs())
    [('0', '2'), ('0', '3'), ('1', '3')]
    """
    _at_least(1, s=s)
    n = _fits(2 * s)
    source = np.arange(s)
    return _dag(n, (source, s + source), (source[:-1], s + source[1:]))


def cycle_dag(s: int) -> Dag:
    """The cycle-dag C(s): s sources and s sinks; source v has the children v and v+1 mod s.

    Run it in cyclic order, from any source on. See [5]_, section 2.

    >>> list(cycle_dag(3).arcs())
    [('0', '3'), ('0', '4'), ('1', '4'), ('1', '5'), ('2', '3'), ('2', '5')]
    """
    _at_least(2, s=s)
    n = _fits(2 * s)
    source = np.arange(s)
    return _dag(n, (source, s + source), (source, s + (source + 1) % s))


def clique_dag(s: int) -> Dag:
    """The clique-dag Q(s): s sources, s sinks, and every arc from a source to a sink.

    Run it in any order ([2]_, section 4.1).

    >>> clique_dag(3), clique_dag(2) == cycle_dag(2)
    (Dag(6 tasks, 9 arcs), True)
    """
    _at_least(2, s=s)
    _fits(s * s)
    return _dag(2 * s, (np.arange(s)[:, None], s + np.arange(s)))


def bipartite_tree(sources: int, seed: int = 0, max_degree: int = 3) -> Dag:
    """A random bipartite tree-dag: a tree, the directions of its arcs forgotten.

    No task has more than *max_degree* arcs. See [3]_; rarely, such a dag admits no IC-optimal schedule.

    >>> dag = bipartite_tree(50, seed=1)
    >>> dag.arc_count == len(dag) - 1, len(dag.components()), len(dag.sources)
    (True, 1, 50)
    """
    _at_least(1, sources=sources)
    _at_least(2, max_degree=max_degree)
    _fits(sources * (max_degree + 1))
    rng = _rng(seed)
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
    _at_least(1, s=s)
    _at_least(2, max_private=max_private)
    _fits(s * (2 * max_private + 1))
    rng = _rng(seed)
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
    left = [*room.tolist(), *([sink_room] * s)]  # sources are 0..s-1 here, sinks s, s+1, ...
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
        left[sink] -= len(parents)
        for parent in parents:
            left[parent] -= 1
        if not left[end]:
            ready[place] = ready[-1]
            ready.pop()
        ready += [task for task in (source, sink) if left[task] and task != end]
    pairs = np.array(arcs, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1] - s


def _with_private_sinks(tails: Numbers, heads: Numbers, private: Numbers) -> Dag:
    """The bipartite dag with these arcs, from sources to sinks, and more sinks for each source."""
    s, shared, more = len(private), int(heads.max(initial=-1)) + 1, int(private.sum())
    owners = np.repeat(np.arange(s), private)
    return _dag(s + shared + more, (tails, s + heads), (owners, s + shared + np.arange(more)))


def planar_bipartite_tree(*zigzag: int | Fraction | str) -> Dag:
    """The planar bipartite tree P[zigzag], zigzag alternating integers d > 1 and reciprocals 1/d.

    P[d] is W(1,d) and P[1/d] is M(1,d). Each further d gives the rightmost source d-1 new sinks;
    each further 1/d gives the rightmost sink d-1 new sources. See [4]_, section 5.2.

    >>> planar_bipartite_tree(3, "1/2", 3) == w_dag(2, 3)
    True
    """
    entries = [_fraction(entry) for entry in zigzag]
    whole = np.array([entry > 1 for entry in entries], np.bool_)
    if not entries or (whole[1:] == whole[:-1]).any():
        raise InputError("a zigzag alternates integers above 1 and reciprocals, as in 3 1/2 4")
    sizes = [max(entry.numerator, entry.denominator) for entry in entries]
    n = _fits(2 + sum(sizes) - len(sizes))  # it all begins with one arc, source 0 to sink 0
    added = np.array(sizes) - 1
    last_source, last_sink = np.cumsum(np.where(whole, 0, added)), np.cumsum(whole * added)
    s = int(last_source[-1]) + 1
    hung = np.repeat(last_source[whole], added[whole]), s + np.arange(1, n - s)
    stood = np.arange(1, s), s + np.repeat(last_sink[~whole], added[~whole])
    return _dag(n, (0, [s]), hung, stood)


def _fraction(entry: int | Fraction | str) -> Fraction:
    try:
        value = Fraction(entry)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0 or value == 1 or 1 not in {value.numerator, value.denominator}:
        shown = shorten(str(entry))
        raise InputError(f"an entry of a zigzag is 2, 3, ... or 1/2, 1/3, ..., and {shown} is not")
    return value


def random_planar_bipartite_tree(length: int, seed: int = 0, largest: int = 3) -> Dag:
    """The planar bipartite tree of a random zigzag with *length* entries from 2 to *largest*.

    >>> random_planar_bipartite_tree(3, seed=1, largest=2)
    Dag(5 tasks, 4 arcs)
    """
    _at_least(1, length=length)
    _at_least(2, largest=largest)
    _fits(length * largest)
    rng = _rng(seed)
    start = int(rng.integers(2))
    sizes = rng.integers(2, largest, length, endpoint=True).tolist()
    return planar_bipartite_tree(*(d if (start + i) % 2 else Fraction(1, d) for i, d in enumerate(sizes)))


# Trees and meshes


def out_tree(depth: int, d: int = 2) -> Dag:
    """The complete out-tree (expansion): *depth* levels, every task but the leaves has d children.

    >>> list(out_tree(2, d=3).arcs())
    [('0', '1'), ('0', '2'), ('0', '3')]
    """
    _at_least(1, depth=depth)
    _at_least(2, d=d)
    n = _fits((d ** min(depth, 64) - 1) // (d - 1))
    task = np.arange(1, n)
    return _dag(n, ((task - 1) // d, task))


def in_tree(depth: int, d: int = 2) -> Dag:
    """The complete in-tree (reduction), dual to the out-tree and numbered from its leaves on.

    >>> list(in_tree(2, d=3).arcs())
    [('0', '3'), ('1', '3'), ('2', '3')]
    """
    return _mirrored(out_tree(depth, d))


def random_out_tree(n: int, seed: int = 0) -> Dag:
    """A random recursive tree: the parent of task v is any of 0..v-1, all equally likely.

    >>> random_out_tree(100).sources
    ('0',)
    """
    _at_least(1, n=n)
    task = np.arange(1, _fits(n))
    return _dag(n, (_rng(seed).integers(task), task))


def random_in_tree(n: int, seed: int = 0) -> Dag:
    """The dual of a random recursive tree, numbered backwards: the child of v is any of v+1..n-1.

    >>> random_in_tree(100).sinks
    ('99',)
    """
    return _mirrored(random_out_tree(n, seed))


def out_mesh(levels: int) -> Dag:
    """The evolving triangular mesh: level k has tasks 0..k, and task j has the children j and j+1.

    It is W(1,2), then W(2,2), and so on, each composed with the next ([5]_, figure 1).

    >>> list(out_mesh(3).arcs())
    [('0', '1'), ('0', '2'), ('1', '3'), ('1', '4'), ('2', '4'), ('2', '5')]
    """
    _at_least(1, levels=levels)
    n = _fits(levels * (levels + 1) // 2)
    level = np.repeat(np.arange(levels - 1), np.arange(1, levels))
    task = np.arange(len(level))
    return _dag(n, (task, task + level + 1), (task, task + level + 2))


def in_mesh(levels: int) -> Dag:
    """The reduction mesh, dual to the evolving one and numbered from its sources on.

    >>> list(in_mesh(3).arcs())
    [('0', '3'), ('1', '3'), ('1', '4'), ('2', '4'), ('3', '5'), ('4', '5')]
    """
    return _mirrored(out_mesh(levels))


def grid(rows: int, columns: int) -> Dag:
    """The mesh of a wavefront computation: each task needs its upper and its left neighbour.

    Numbered row by row.

    >>> list(grid(2, 2).arcs())
    [('0', '1'), ('0', '2'), ('1', '3'), ('2', '3')]
    """
    _at_least(1, rows=rows, columns=columns)
    task = np.arange(_fits(rows * columns)).reshape(rows, columns)
    return _dag(task.size, (task[:-1], task[1:]), (task[:, :-1], task[:, 1:]))


# Known computations


def butterfly(dimension: int) -> Dag:
    """The FFT dag: dimension+1 levels of 2**dimension tasks, composed of copies of C(2).

    Position i of level k has the children i and i with its bit k flipped, on level k+1. See [5]_,
    figure 2.

    >>> butterfly(1) == cycle_dag(2), butterfly(10)
    (True, Dag(11264 tasks, 20480 arcs))
    """
    _at_least(1, dimension=dimension)
    width = 1 << min(dimension, 64)
    n = _fits((dimension + 1) * width)
    task = np.arange(n - width)
    return _dag(n, (task, task + width), (task, (task ^ (1 << task // width)) + width))


def diamond(depth: int, d: int = 2) -> Dag:
    """The expansion-reduction dag: an out-tree whose leaves are the leaves of an in-tree.

    >>> list(diamond(2).arcs())
    [('0', '1'), ('0', '2'), ('1', '3'), ('2', '3')]
    """
    tree = out_tree(depth, d)
    last = 2 * len(tree) - d ** (depth - 1) - 1
    return _dag(last + 1, (tree.tails, tree.child), (last - tree.child, last - tree.tails))


def parallel_prefix(inputs: int) -> Dag:
    """The parallel-prefix dag, or scan: the inputs, then ceil(log2 inputs) stages of as many tasks.

    Position i of stage j = 1, 2, ... needs positions i and i - 2**(j-1), if there is one, of the
    stage before. Each stage is a sum of N-dags.

    >>> parallel_prefix(2) == n_dag(2), parallel_prefix(8)
    (True, Dag(32 tasks, 41 arcs))
    """
    _at_least(1, inputs=inputs)
    n = _fits(inputs * (1 + (inputs - 1).bit_length()))
    task = np.arange(n - inputs)
    reach = 1 << task // inputs
    far = task % inputs + reach < inputs
    return _dag(n, (task, task + inputs), (task[far], (task + reach)[far] + inputs))


def laplace(inputs: int) -> Dag:
    """The shape of a discrete Laplace transform: a parallel prefix whose outputs are summed.

    The prefix makes the powers that the terms need; its outputs are the leaves of a binary in-tree
    of inputs-1 additions, each of which adds the two oldest results not yet added.

    >>> laplace(2), laplace(8), laplace(8).sinks
    (Dag(5 tasks, 5 arcs), Dag(39 tasks, 55 arcs), ('38',))
    """
    prefix = parallel_prefix(inputs)
    n, addend = len(prefix), np.arange(2 * inputs - 2)
    summed = n - inputs + addend, n + addend // 2
    return _dag(n + inputs - 1, (prefix.tails, prefix.child), summed)


def matrix_multiplication(n: int) -> Dag:
    """The product of two n x n matrices A and B: 2n² inputs, n³ products, n²(n-1) additions.

    The inputs are A, then B, row by row. Product (i,j,k), number (i*n+j)*n+k among the products,
    needs A[i,k] and B[k,j]. A binary in-tree for each (i,j) adds its n products, in ceil(log2 n)
    levels: each addition takes the two oldest results not yet added. The t-th additions of all
    (i,j) stand together. With n = 2, where entries may be blocks, this is the recursive form: C(4)
    for k = 0 and for k = 1, then four times M(1,2).

    >>> matrix_multiplication(2), matrix_multiplication(2).level_sizes.tolist()
    (Dag(20 tasks, 24 arcs), [8, 8, 4])
    """
    _at_least(1, n=n)
    tasks = _fits(2 * n**3 + n * n)
    product = np.arange(2 * n * n, 2 * n * n + n**3).reshape(n, n, n)
    i, j, k = np.ogrid[:n, :n, :n]
    addition = np.arange(tasks - n * n * (n - 1), tasks).reshape(n - 1, n * n).T
    results = np.hstack([product.reshape(n * n, n), addition])
    summed = results[:, :-1], np.repeat(addition, 2, axis=1)
    return _dag(tasks, (i * n + k, product), (n * n + k * n + j, product), summed)


def fork_join(width: int, stages: int = 1, length: int = 1) -> Dag:
    """A task, *width* parallel chains of *length* tasks, a task that joins them: *stages* times.

    The join of one stage is the fork of the next.

    >>> list(fork_join(2).arcs())
    [('0', '1'), ('0', '2'), ('1', '3'), ('2', '3')]
    """
    _at_least(1, width=width, stages=stages, length=length)
    join = width * length + 1
    n = _fits(1 + stages * join)
    fork, inner = join * np.arange(stages)[:, None], np.arange(1, join)
    onward = np.minimum(inner + width, join)
    return _dag(n, (fork, fork + inner[:width]), (fork + inner, fork + onward))


# Random dags


def random_layered(layers: int, width: int, seed: int = 0, degree: int = 2) -> Dag:
    """Layers of *width* tasks; each task needs 1 to *degree* random tasks of the layer above.

    The parents are drawn *degree* times with repetition. The dag need not be connected.

    >>> random_layered(3, 4).level_sizes.tolist()
    [4, 4, 4]
    """
    _at_least(1, layers=layers, width=width, degree=degree)
    _fits(layers * width * degree)
    task = np.arange(width, layers * width)[:, None]
    place = np.sort(_rng(seed).integers(width, size=(task.size, degree)))
    once = np.diff(place, prepend=-1) > 0
    parent = (task // width - 1) * width + place
    return _dag(layers * width, (parent[once], np.repeat(task, once.sum(axis=1))))


def random_dag(n: int, probability: float, seed: int = 0) -> Dag:
    """A random dag in the manner of Erdős and Rényi: each arc i -> j, i < j, with this probability.

    >>> random_dag(5, 1.0)
    Dag(5 tasks, 10 arcs)
    """
    _at_least(1, n=n)
    if not 0 <= probability <= 1:
        raise InputError(f"probability is a number from 0 to 1, and {probability} is not")
    pairs = _fits(n) * (n - 1) // 2
    _fits(int(pairs * probability))
    rng = _rng(seed)
    chosen = rng.choice(pairs, rng.binomial(pairs, probability), replace=False, shuffle=False)
    # The pair i < j has the number j(j-1)/2 + i. The root may be off by one where that is large.
    j = ((1 + np.sqrt(1 + 8.0 * chosen)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > chosen
    j += j * (j + 1) // 2 <= chosen
    return _dag(n, (chosen - j * (j - 1) // 2, j))


class Piece(NamedTuple):
    """A block of a composition: its name, such as W(3,2), and the numbers its tasks have there.

    Running `sources` in this order is IC-optimal for the block.
    """

    name: str
    sources: tuple[int, ...]
    sinks: tuple[int, ...]


def random_composition(kind: str, size: int, seed: int = 0) -> Dag:
    """A random ▷-linear composition of blocks, of at least *size* tasks: IC-optimally schedulable.

    *kind* says which blocks, as in [2]_, section 4.1.3: "w" W-dags (expansive); "m" M-dags
    (reductive); "wnm" W-dags, then N-dags, then M-dags (fork-join); "q2" copies of Q(2)
    (convolutional). Random blocks, in an order where each has priority over the next, are composed
    one by one: random sources of the block, at least one, are merged with random sinks of the dag
    so far. Tasks are numbered as they come.

    Two choices are ours: s and d are at most 5, where the paper names no range; and each block
    joins the one dag so far, where the paper also composes partial dags with one another.

    >>> len(random_composition("q2", 100).components())
    1
    """
    return random_composition_blocks(kind, size, seed)[0]


def random_composition_blocks(kind: str, size: int, seed: int = 0) -> tuple[Dag, list[Piece]]:
    """The same dag, and its blocks in ▷-order.

    To run the sources of block after block, and at last the sinks of the dag, is IC-optimal ([2]_,
    theorem 2.1).

    >>> dag, pieces = random_composition_blocks("q2", 5)
    >>> dag, [piece.name for piece in pieces]
    (Dag(6 tasks, 8 arcs), ['Q(2)', 'Q(2)'])
    """
    letters = {"w": "W", "m": "M", "wnm": "WNM", "q2": "Q"}.get(kind)
    if letters is None:
        raise InputError(f"kind is w, m, wnm or q2, and {shorten(str(kind))} is not")
    _at_least(1, size=size)
    _fits(10 * size)
    rng = _rng(seed)
    letter = rng.choice(list(letters), size).tolist()
    s, d = rng.integers([[1], [2]], LARGEST_BLOCK, (2, size), endpoint=True).tolist()
    draws = list(zip(map(_block, letter, s, d), rng.random(size).tolist(), strict=True))

    def linear(count: int) -> list[_Draw]:
        return sorted(draws[:count], key=lambda draw: draw[0].rank)

    enough = 1 + bisect_left(range(1, size), size, key=lambda count: _size(linear(count)))
    return _composed(linear(enough), rng)


class _Block(NamedTuple):
    name: str
    rank: tuple[int, int, int]  # sorted by it, each has priority over the next: [2]_, section 4.1.2
    sources: int
    tasks: int
    arcs: list[tuple[int, int]]

    def mergers(self, share: float, sinks: int) -> int:
        """How many sources to merge, of as many as the sinks of the dag so far allow."""
        return 1 + int(share * min(self.sources, sinks)) if sinks else 0


_Draw = tuple[_Block, float]  # the float, from 0 up to 1, is the share of possible mergers made


@cache
def _block(letter: str, s: int, d: int) -> _Block:
    name, rank, dag = {
        "W": (f"W({s},{d})", (0, -d, s), w_dag(s, d)),
        "N": (f"N({s})", (1, 0, 0), n_dag(s)),
        "M": (f"M({s},{d})", (2, d, -s), m_dag(s, d)),
        "Q": ("Q(2)", (3, 0, 0), clique_dag(2)),
    }[letter]
    arcs = list(zip(dag.tails.tolist(), dag.child.tolist(), strict=True))
    return _Block(name, rank, len(dag.sources), len(dag), arcs)


def _size(draws: list[_Draw]) -> int:
    """How many tasks the composition of these blocks has."""
    tasks = sinks = 0
    for block, share in draws:
        mergers = block.mergers(share, sinks)
        tasks += block.tasks - mergers
        sinks += block.tasks - block.sources - mergers
    return tasks


def _composed(draws: list[_Draw], rng: np.random.Generator) -> tuple[Dag, list[Piece]]:
    """These blocks, each composed with the dag that those before it make."""
    n, arcs, sinks, pieces = 0, list[tuple[int, int]](), list[int](), list[Piece]()
    for block, share in draws:
        image = [-1] * block.tasks
        mergers = block.mergers(share, len(sinks))
        for source in rng.permutation(block.sources)[:mergers].tolist():
            place = int(rng.integers(len(sinks)))
            image[source], sinks[place] = sinks[place], sinks[-1]
            sinks.pop()
        for i, number in enumerate(image):
            if number < 0:
                image[i], n = n, n + 1
        own, below = image[: block.sources], image[block.sources :]
        sinks += below
        arcs += [(image[u], image[v]) for u, v in block.arcs]
        pieces.append(Piece(block.name, tuple(own), tuple(below)))
    tails, heads = np.array(arcs).T
    return _dag(n, (tails, heads)), pieces


# What the families share


def _dag(n: int, *arcs: tuple[ArrayLike, ArrayLike]) -> Dag:
    """The dag of n tasks with arcs from tails to heads; the two of a pair are broadcast."""
    pairs = [np.broadcast_arrays(tails, heads) for tails, heads in arcs]
    tails, heads = (np.concatenate([pair[end].ravel() for pair in pairs]) for end in (0, 1))
    return Dag.from_arrays(n, tails, heads)


def _mirrored(dag: Dag) -> Dag:
    """The dual, numbered backwards, so that its sources come first."""
    last = len(dag) - 1
    return Dag.from_arrays(len(dag), last - dag.child, last - dag.tails)


def _rng(seed: int) -> np.random.Generator:
    _at_least(0, seed=seed)
    return np.random.default_rng(seed)


def _at_least(least: int, **sizes: float) -> None:
    for name, value in sizes.items():
        if not isinstance(value, int) or value < least:
            raise InputError(f"{name} is a whole number of at least {least}, and {value!r} is not")


def _fits(count: int) -> int:
    if count > MOST:
        raise InputError(f"that would be more than {MOST:,} tasks or arcs: choose something smaller")
    return count


#: the families by the names that the command line has for them
FAMILIES: dict[str, Callable[..., Dag]] = {
    "w": w_dag,
    "m": m_dag,
    "n": n_dag,
    "cycle": cycle_dag,
    "clique": clique_dag,
    "bipartite-tree": bipartite_tree,
    "expansive": expansive_dag,
    "planar-bipartite-tree": planar_bipartite_tree,
    "random-planar-bipartite-tree": random_planar_bipartite_tree,
    "out-tree": out_tree,
    "in-tree": in_tree,
    "random-out-tree": random_out_tree,
    "random-in-tree": random_in_tree,
    "out-mesh": out_mesh,
    "in-mesh": in_mesh,
    "grid": grid,
    "butterfly": butterfly,
    "diamond": diamond,
    "prefix": parallel_prefix,
    "laplace": laplace,
    "matrix": matrix_multiplication,
    "fork-join": fork_join,
    "layered": random_layered,
    "random": random_dag,
    "composition": random_composition,
}

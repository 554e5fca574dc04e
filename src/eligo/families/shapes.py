"""Trees, meshes, known computations and random dags, numbered level by level unless said otherwise.

`eligo.families` lists what the numbers in brackets refer to.
"""

from bisect import bisect_left
from functools import cache
from typing import NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError, shorten
from eligo.families.blocks import at_least, clique_dag, dag_of_arcs, fits, generator, m_dag, mirrored, n_dag, w_dag


def out_tree(depth: int, d: int = 2) -> Dag:
    """The complete out-tree (expansion): *depth* levels, every task but the leaves has d children.

    >>> list(out_tree(2, d=3).arcs())
    [('0', '1'), ('0', '2'), ('0', '3')]
    """
    at_least(1, depth=depth)
    at_least(2, d=d)
    n = fits((d ** min(depth, 64) - 1) // (d - 1))
    task = np.arange(1, n)
    return dag_of_arcs(n, ((task - 1) // d, task))


def in_tree(depth: int, d: int = 2) -> Dag:
    """The complete in-tree (reduction), dual to the out-tree and numbered from its leaves on.

    >>> list(in_tree(2, d=3).arcs())
    [('0', '3'), ('1', '3'), ('2', '3')]
    """
    return mirrored(out_tree(depth, d))


def random_out_tree(n: int, seed: int = 0) -> Dag:
    """A random recursive tree: the parent of task v is any of 0..v-1, all equally likely.

    >>> random_out_tree(100).sources
    ('0',)
    """
    at_least(1, n=n)
    task = np.arange(1, fits(n))
    return dag_of_arcs(n, (generator(seed).integers(task), task))


def random_in_tree(n: int, seed: int = 0) -> Dag:
    """The dual of a random recursive tree, numbered backwards: the child of v is any of v+1..n-1.

    >>> random_in_tree(100).sinks
    ('99',)
    """
    return mirrored(random_out_tree(n, seed))


def out_mesh(levels: int) -> Dag:
    """The evolving triangular mesh: level k has tasks 0..k, and task j has the children j and j+1.

    It is W(1,2), then W(2,2), and so on, each composed with the next ([5]_, figure 1).

    >>> list(out_mesh(3).arcs())
    [('0', '1'), ('0', '2'), ('1', '3'), ('1', '4'), ('2', '4'), ('2', '5')]
    """
    at_least(1, levels=levels)
    n = fits(levels * (levels + 1) // 2)
    level = np.repeat(np.arange(levels - 1), np.arange(1, levels))
    task = np.arange(len(level))
    return dag_of_arcs(n, (task, task + level + 1), (task, task + level + 2))


def in_mesh(levels: int) -> Dag:
    """The reduction mesh, dual to the evolving one and numbered from its sources on.

    >>> list(in_mesh(3).arcs())
    [('0', '3'), ('1', '3'), ('1', '4'), ('2', '4'), ('3', '5'), ('4', '5')]
    """
    return mirrored(out_mesh(levels))


def grid(rows: int, columns: int) -> Dag:
    """The mesh of a wavefront computation: each task needs its upper and its left neighbour.

    Numbered row by row.

    >>> list(grid(2, 2).arcs())
    [('0', '1'), ('0', '2'), ('1', '3'), ('2', '3')]
    """
    at_least(1, rows=rows, columns=columns)
    task = np.arange(fits(rows * columns)).reshape(rows, columns)
    return dag_of_arcs(task.size, (task[:-1], task[1:]), (task[:, :-1], task[:, 1:]))


def butterfly(dimension: int) -> Dag:
    """The FFT dag: dimension+1 levels of 2**dimension tasks, composed of copies of C(2).

    Position i of level k has the children i and i with its bit k flipped, on level k+1. See [5]_,
    figure 2.

    >>> from eligo.families import cycle_dag
    >>> butterfly(1) == cycle_dag(2), butterfly(10)
    (True, Dag(11264 tasks, 20480 arcs))
    """
    at_least(1, dimension=dimension)
    width = 1 << min(dimension, 64)
    n = fits((dimension + 1) * width)
    task = np.arange(n - width)
    return dag_of_arcs(n, (task, task + width), (task, (task ^ (1 << task // width)) + width))


def diamond(depth: int, d: int = 2) -> Dag:
    """The expansion-reduction dag: an out-tree whose leaves are the leaves of an in-tree.

    >>> list(diamond(2).arcs())
    [('0', '1'), ('0', '2'), ('1', '3'), ('2', '3')]
    """
    tree = out_tree(depth, d)
    last = 2 * len(tree) - d ** (depth - 1) - 1
    return dag_of_arcs(last + 1, (tree.tails, tree.child), (last - tree.child, last - tree.tails))


def parallel_prefix(inputs: int) -> Dag:
    """The parallel-prefix dag, or scan: the inputs, then ceil(log2 inputs) stages of as many tasks.

    Position i of stage j = 1, 2, ... needs positions i and i - 2**(j-1), if there is one, of the
    stage before. Each stage is a sum of N-dags.

    >>> from eligo.families import n_dag
    >>> parallel_prefix(2) == n_dag(2), parallel_prefix(8)
    (True, Dag(32 tasks, 41 arcs))
    """
    at_least(1, inputs=inputs)
    n = fits(inputs * (1 + (inputs - 1).bit_length()))
    task = np.arange(n - inputs)
    reach = 1 << task // inputs
    far = task % inputs + reach < inputs
    return dag_of_arcs(n, (task, task + inputs), (task[far], (task + reach)[far] + inputs))


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
    return dag_of_arcs(n + inputs - 1, (prefix.tails, prefix.child), summed)


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
    at_least(1, n=n)
    tasks = fits(2 * n**3 + n * n)
    product = np.arange(2 * n * n, 2 * n * n + n**3).reshape(n, n, n)
    i, j, k = np.ogrid[:n, :n, :n]
    addition = np.arange(tasks - n * n * (n - 1), tasks).reshape(n - 1, n * n).T
    results = np.hstack([product.reshape(n * n, n), addition])
    summed = results[:, :-1], np.repeat(addition, 2, axis=1)
    return dag_of_arcs(tasks, (i * n + k, product), (n * n + k * n + j, product), summed)


def fork_join(width: int, stages: int = 1, length: int = 1) -> Dag:
    """A task, *width* parallel chains of *length* tasks, a task that joins them: *stages* times.

    The join of one stage is the fork of the next.

    >>> list(fork_join(2).arcs())
    [('0', '1'), ('0', '2'), ('1', '3'), ('2', '3')]
    """
    at_least(1, width=width, stages=stages, length=length)
    join = width * length + 1
    n = fits(1 + stages * join)
    fork, inner = join * np.arange(stages)[:, None], np.arange(1, join)
    onward = np.minimum(inner + width, join)
    return dag_of_arcs(n, (fork, fork + inner[:width]), (fork + inner, fork + onward))


# Random dags


LARGEST_BLOCK = 5  # blocks of random compositions have s and d up to this; the paper names no range


def random_layered(layers: int, width: int, seed: int = 0, degree: int = 2) -> Dag:
    """Layers of *width* tasks; each task needs 1 to *degree* random tasks of the layer above.

    The parents are drawn *degree* times with repetition. The dag need not be connected.

    >>> random_layered(3, 4).level_sizes.tolist()
    [4, 4, 4]
    """
    at_least(1, layers=layers, width=width, degree=degree)
    fits(layers * width * degree)
    task = np.arange(width, layers * width)[:, None]
    place = np.sort(generator(seed).integers(width, size=(task.size, degree)))
    once = np.diff(place, prepend=-1) > 0
    parent = (task // width - 1) * width + place
    return dag_of_arcs(layers * width, (parent[once], np.repeat(task, once.sum(axis=1))))


def random_dag(n: int, probability: float, seed: int = 0) -> Dag:
    """A random dag in the manner of Erdős and Rényi: each arc i -> j, i < j, with this probability.

    >>> random_dag(5, 1.0)
    Dag(5 tasks, 10 arcs)
    """
    at_least(1, n=n)
    if not 0 <= probability <= 1:
        raise InputError(f"probability must be from 0 to 1, got {probability}")
    pairs = fits(n) * (n - 1) // 2
    fits(int(pairs * probability))
    rng = generator(seed)
    chosen = rng.choice(pairs, rng.binomial(pairs, probability), replace=False, shuffle=False)
    # The pair i < j has the number j(j-1)/2 + i. The root may be off by one where that is large.
    j = ((1 + np.sqrt(1 + 8.0 * chosen)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > chosen
    j += j * (j + 1) // 2 <= chosen
    return dag_of_arcs(n, (chosen - j * (j - 1) // 2, j))


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
    """The dag of `random_composition`, and its blocks in ▷-order.

    To run the sources of block after block, and at last the sinks of the dag, is IC-optimal ([2]_,
    theorem 2.1).

    >>> dag, pieces = random_composition_blocks("q2", 5)
    >>> dag, [piece.name for piece in pieces]
    (Dag(6 tasks, 8 arcs), ['Q(2)', 'Q(2)'])
    """
    letters = {"w": "W", "m": "M", "wnm": "WNM", "q2": "Q"}.get(kind)
    if letters is None:
        raise InputError(f"kind must be w, m, wnm or q2, got {shorten(str(kind))}")
    at_least(1, size=size)
    fits(10 * size)
    rng = generator(seed)
    letter = rng.choice(list(letters), size).tolist()
    s, d = rng.integers([[1], [2]], LARGEST_BLOCK, (2, size), endpoint=True).tolist()
    draws = list(zip(map(_block, letter, s, d), rng.random(size).tolist(), strict=True))

    def linear(count: int) -> list[_Draw]:
        return sorted(draws[:count], key=lambda draw: draw[0].rank)

    enough = 1 + bisect_left(range(1, size), size, key=lambda count: _size(linear(count)))
    return _compose(linear(enough), rng)


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


def _compose(draws: list[_Draw], rng: np.random.Generator) -> tuple[Dag, list[Piece]]:
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
    return dag_of_arcs(n, (tails, heads)), pieces

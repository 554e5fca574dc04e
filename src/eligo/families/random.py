"""Random dags, and the random ▷-linear compositions of the comparison paper.

`eligo.families` lists what the numbers in brackets refer to.
"""

from bisect import bisect_left
from functools import cache
from typing import NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError, shorten
from eligo.families.blocks import at_least, clique_dag, dag_of_arcs, fits, generator, m_dag, n_dag, w_dag

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
    """The same dag, and its blocks in ▷-order.

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
    return dag_of_arcs(n, (tails, heads)), pieces

"""The comparison paper's random dags, read to the letter: partial dags are composed with one another.

`eligo.families.random_composition` joins block after block to the one dag so far. The paper also draws "partially constructed
dags to compose" [1]_, section 4.1.3. As composition is associative, that is a random bracketing of a ▷-sorted row of blocks:
two neighbours are drawn, random sinks of the left one are merged with as many random sources of the right one, and so on
until one dag is left. Theorem 2.1 holds for it as it does for ours.

.. [1] Hall, Rosenberg, Venkataramani (2006), A comparison of dag-scheduling strategies for Internet-based computing.
"""

from typing import NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.families import clique_dag, m_dag, n_dag, w_dag
from eligo.rows import Ints

LARGEST_BLOCK = 5  # s and d, as in `eligo.families.random_composition`; the paper names no range
DRAWN = 0  # in place of a limit: each dag has a limit of its own
LARGEST_DRAWN = 20
LETTERS = {"w": "W", "m": "M", "wnm": "WNM", "q2": "Q"}


class _CompositionPart(NamedTuple):
    """A partial dag: its sources and sinks that can still be merged."""

    sources: list[int]
    sinks: list[int]


class Bracketed(NamedTuple):
    """A composition and the IC-optimal schedule of Theorem 2.1: block after block, and the sinks at last."""

    dag: Dag
    order: Ints


def bracketed_composition(kind: str, size: int, seed: int = 0, largest: int = LARGEST_BLOCK) -> Bracketed:
    """A random composition of blocks of a kind (w, m, wnm or q2), of about *size* tasks, with s and d up to *largest*.

    >>> found = bracketed_composition("wnm", 200, seed=1)
    >>> len(found.order) == len(found.dag)
    True
    """
    if kind not in LETTERS:
        raise InputError(f"kind is {', '.join(LETTERS)}, and {kind!r} is not")
    rng = np.random.default_rng(seed)
    blocks = _drawn(LETTERS[kind], size, rng, largest or int(rng.integers(2, LARGEST_DRAWN + 1)))
    starts = np.cumsum([0, *(len(block) for block in blocks)])
    parts = [_part(block, int(start)) for block, start in zip(blocks, starts[:-1], strict=True)]
    own = [list(part.sources) for part in parts]
    image = np.arange(starts[-1])
    while len(parts) > 1:
        at = int(rng.integers(len(parts) - 1))
        parts[at : at + 2] = [_merged(parts[at], parts[at + 1], image, rng)]
    return _numbered(blocks, starts[:-1].tolist(), own, image)


def _drawn(letters: str, size: int, rng: np.random.Generator, largest: int) -> list[Dag]:
    """Random blocks, sorted so that each has priority over the next; about a third of their tasks will be merged."""
    drawn: list[tuple[tuple[int, int, int], Dag]] = []
    tasks = 0.0
    while tasks < size or not drawn:
        letter = letters[int(rng.integers(len(letters)))]
        s, d = int(rng.integers(1, largest + 1)), int(rng.integers(2, largest + 1))
        rank, block = {
            "W": ((0, -d, s), w_dag(s, d)),
            "N": ((1, 0, 0), n_dag(s)),
            "M": ((2, d, -s), m_dag(s, d)),
            "Q": ((3, 0, 0), clique_dag(2)),
        }[letter]
        drawn.append((rank, block))
        tasks += 2 * len(block) / 3
    return [block for _, block in sorted(drawn, key=lambda pair: pair[0])]


def _part(block: Dag, start: int) -> _CompositionPart:
    count = int((block.indegree == 0).sum())
    return _CompositionPart(list(range(start, start + count)), list(range(start + count, start + len(block))))


def _merged(left: _CompositionPart, right: _CompositionPart, image: Ints, rng: np.random.Generator) -> _CompositionPart:
    """The composition of two partial dags by a random number of random mergers; *image* learns who is whom."""
    most = min(len(left.sinks), len(right.sources))
    if most == 0:
        return _CompositionPart(left.sources + right.sources, left.sinks + right.sinks)
    count = int(rng.integers(1, most + 1))
    sinks = set(rng.permutation(left.sinks)[:count].tolist())
    sources = rng.permutation(right.sources)[:count].tolist()
    image[sources] = list(rng.permutation(sorted(sinks)))
    gone = set(sources)
    return _CompositionPart(
        left.sources + [v for v in right.sources if v not in gone],
        [v for v in left.sinks if v not in sinks] + right.sinks,
    )


def _numbered(blocks: list[Dag], starts: list[int], own: list[list[int]], image: Ints) -> Bracketed:
    """The dag without gaps in its numbers, and its schedule."""
    kept = np.unique(image)
    number = np.searchsorted(kept, image)
    tails = np.concatenate([number[start + block.tails] for start, block in zip(starts, blocks, strict=True)])
    heads = np.concatenate([number[start + block.child] for start, block in zip(starts, blocks, strict=True)])
    dag = Dag.from_arrays(len(kept), tails, heads)
    inner = number[[v for sources in own for v in sources]]
    order = np.concatenate([inner, np.flatnonzero(dag.outdegree == 0)]).astype(np.int32)
    return Bracketed(dag, order)

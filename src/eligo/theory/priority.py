"""The priority relation: G1 ▷ G2 if running all of G1 before G2 is never worse than any mixture of the two.

It is transitive on profiles with at least one step (Lemma 1 of the clustering paper), but neither reflexive nor total:
(0, 1, 1) does not even precede itself, so two copies of it must be interleaved, or cannot be run optimally at all.
"""

import itertools
from collections.abc import Sequence
from functools import cmp_to_key
from typing import NamedTuple

import numpy as np

from eligo.theory.profiles import Profile, as_profile, concatenate, convolve


class Kind(NamedTuple):
    """A block of a named family: W(s, d), M(s, d), N(s), C(s) (cycle), Q(s) (clique); d is 0 for the last three."""

    letter: str
    s: int
    d: int = 0

    def __str__(self) -> str:
        return f"{self.letter}({self.s},{self.d})" if self.d else f"{self.letter}({self.s})"

    @property
    def profile(self) -> Profile:
        """The maximal profile in closed form.

        >>> Kind("W", 3, 2).profile.tolist(), Kind("M", 2, 3).profile.tolist(), Kind("C", 4).profile.tolist()
        ([0, 1, 2, 4], [0, 0, 0, 1, 1, 2], [0, 0, 1, 2, 4])
        """
        s, d = self.s, self.d
        match self.letter:
            case "W":
                steps = np.arange(s + 1) * (d - 1)
                steps[-1] += 1
            case "M":
                steps = np.maximum(np.arange(s * (d - 1) + 2) - 1, 0) // (d - 1)
            case "N":
                steps = np.arange(s + 1)
            case "C":
                steps = np.maximum(np.arange(s + 1) - 1, 0)
                steps[-1] = s
            case _:
                steps = np.zeros(s + 1, np.int64)
                steps[-1] = s
        return as_profile(steps)


def has_priority(first: Sequence[int] | Profile, second: Sequence[int] | Profile) -> bool:
    """Whether first ▷ second, for maximal cumulative profiles [1]_, inequality (2.1).

    For every x and y: E1(x) + E2(y) <= E1(min(s1, x + y)) + E2(max(0, x + y - s1)).

    >>> has_priority([0, 2], [0, 0, 1]), has_priority([0, 0, 1], [0, 2]), has_priority([0, 1, 1], [0, 1, 1])
    (True, False, False)

    .. [1] Malewicz, Rosenberg, Yurkewych (2006), IEEE Trans. Comput. 55, 757-768.
    """
    one, two = as_profile(first), as_profile(second)
    gains, others = np.diff(one), np.diff(two)
    if not len(gains) or not len(others):  # nothing to run
        return True
    if len(gains) == 1:  # a single step may go first if no step of the other gains more
        return bool((others <= gains[0]).all())
    if (gains[1:] <= gains[:-1]).all() and (
        others[1:] <= others[:-1]
    ).all():  # falling gains: the least against the most
        return bool(gains[-1] >= others[0])
    return bool((convolve(one, two) <= concatenate([one, two])).all())


def named_priority(first: Kind, second: Kind) -> bool:
    """Whether first ▷ second, for the named families, in closed form.

    The rules of [2]_, Theorem 2, and [3]_, section 4.1.2, are necessary as well as sufficient; both papers miss
    Q(s) ▷ M(s', d') if d' >= s. C(2) and Q(2) are one dag; the rules for W(1, d), M(1, d) and N(1) are consistent.

    >>> named_priority(Kind("W", 3, 2), Kind("W", 4, 2)), named_priority(Kind("W", 4, 2), Kind("W", 3, 2))
    (True, False)
    >>> named_priority(Kind("Q", 3), Kind("M", 1, 3)), named_priority(Kind("Q", 3), Kind("M", 1, 2))
    (True, False)

    .. [2] Sims, Cordasco, Rosenberg: On clustering tasks in IC-optimal dags.
    .. [3] Hall, Rosenberg, Venkataramani (2006): A comparison of dag-scheduling strategies.
    """
    a, b = _as_cycle(first), _as_cycle(second)
    match a.letter + b.letter:
        case "WW":
            return b.d < a.d or (b.d == a.d and b.s >= a.s)
        case "WM" | "WN" | "WC" | "NN" | "NM" | "CM":
            return True
        case "WQ":
            return b.s <= a.d
        case "CC" | "QQ":
            return a.s == b.s
        case "MM":
            return b.d > a.d or (b.d == a.d and b.s <= a.s)
        case "QM":
            return b.d >= a.s
        case _:
            return False


def _as_cycle(kind: Kind) -> Kind:
    return Kind("C", 2) if kind == Kind("Q", 2) else kind


def sorted_chain(items: Sequence[Kind | Profile]) -> list[int] | None:
    """Positions of the items in an order in which each ▷ the next, or None if some two are incomparable.

    Because ▷ is transitive, a comparison sort and one comparison of neighbours decide it.

    >>> sorted_chain([Kind("M", 1, 2), Kind("W", 2, 2), Kind("W", 1, 2)])
    [2, 1, 0]
    """

    def compare(i: int, j: int) -> int:
        return precedes(items[j], items[i]) - precedes(items[i], items[j])

    guess = sorted(
        range(len(items)), key=lambda i: _usual_place(items[i])
    )  # mostly right, so that few comparisons are needed
    chain = sorted(guess, key=cmp_to_key(compare))
    linear = all(precedes(items[i], items[j]) for i, j in itertools.pairwise(chain))
    return chain if linear else None


def _usual_place(item: Kind | Profile) -> tuple[int, ...]:
    """The usual place of an item in a chain: W by falling degree, then all others, then M by rising degree."""
    if not isinstance(item, Kind):
        return (1, 1, 0, 0)
    match item.letter:
        case "W":
            return (0, 0, -item.d, item.s)
        case "M":
            return (2, 0, item.d, -item.s)
        case _:
            return (1, 0, 0, item.s)


def precedes(first: Kind | Profile, second: Kind | Profile) -> bool:
    """Whether first ▷ second, by the closed form if both are named, else by their profiles."""
    if isinstance(first, Kind) and isinstance(second, Kind):
        return named_priority(first, second)
    return has_priority(*(item.profile if isinstance(item, Kind) else item for item in (first, second)))

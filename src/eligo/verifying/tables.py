"""Joins of tables of states, in whole arrays: which rows of two tables agree, and the best sums of their values.

A table has a row for each possible combination of states of some roles. Its codes, in increasing order, hold the states as
bits. A row has a value for each T = first, first + 1, ...; a negative number stands for a missing value.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
Cells = NDArray[np.signedinteger]
#: for a role, the last first: the number of states, its places in the codes of both tables (-1: not there) and of the
#: result, and the end of its rules
Levels = Sequence[tuple[int, int, int, int, int]]
#: an earlier level, and whether its state may not be lower (0) or higher (1)
Rules = Sequence[tuple[int, int]]

#: what the state 1 of a role that is dropped adds to T, and what its states 0 and 1 add to the value
Effects = tuple[int, int, int]

AT_ONCE = 1 << 16  # values that are added at once: as many stay in the cache of a processor


class Matches(NamedTuple):
    """Pairs of rows of two tables, and their codes in increasing order."""

    left: Codes
    right: Codes
    codes: Codes

    def grouped(self, dropping: bool) -> tuple[Codes, Codes]:
        """The group of each pair, and the code of each group; if *dropping*, a group may differ in the lowest bit."""
        codes = self.codes >> int(dropping)
        begins = np.append(True, codes[1:] != codes[:-1])[: len(codes)]
        return np.cumsum(begins) - 1, codes[begins]


def match_rows(one: Codes, two: Codes, levels: Levels, rules: Rules, most: int) -> Matches | None:
    """The rows of both tables that agree and break no rule; None if they are more than *most*."""
    spans = [
        np.array([x], np.int64) for x in (0, len(one), 0, len(two), 0)
    ]  # rows of one, rows of two, and the code so far
    begin = 0
    for states, in_one, in_two, place, end in levels:
        a, a_end, b, b_end, code = spans
        cuts = _cut(one, a, a_end, in_one), _cut(two, b, b_end, in_two)
        low = (a, cuts[0][0], b, cuts[1][0], code)
        high = (cuts[0][1], a_end, cuts[1][1], b_end, code | 1 << place)
        both = [(side, _allowed(side, state, levels, rules[begin:end])) for state, side in ((0, low), (1, high))][
            :states
        ]
        kept = np.stack([allowed for _, allowed in both], axis=1)
        spans = [np.stack(pair, axis=1)[kept] for pair in zip(*(side for side, _ in both), strict=True)]
        begin = end
        if len(spans[4]) > most:
            return None
    return Matches(spans[0], spans[2], spans[4])


def _cut(codes: Codes, begin: Codes, end: Codes, place: int) -> tuple[Codes, Codes]:
    """The ends of the rows with state 0 and the beginnings of those with state 1, in spans that agree in higher bits."""
    if place < 0:
        return end, begin
    cut = np.searchsorted(codes, (codes[begin] >> place | 1) << place)
    return cut, cut


def _allowed(spans: Sequence[Codes], state: int, levels: Levels, rules: Rules) -> NDArray[np.bool_]:
    """Whether both tables have rows there, and no rule is broken by this state."""
    a, a_end, b, b_end, code = spans
    allowed: NDArray[np.bool_] = (a < a_end) & (b < b_end)
    for level, rule in rules:
        other = code >> levels[level][3] & 1
        allowed &= other >= state if rule == 0 else other <= state
    return allowed


def join_rows(matches: Matches, groups: Codes, values: tuple[Cells, Cells], effects: Effects) -> Cells:
    """For each group of matching rows, the best sum of two values for each T.

    A group has at most one pair of rows for each state of the role that is dropped, the lowest bit of the code.
    """
    (one, two), (step, *gains), count = values, effects, int(groups[-1]) + 1 if len(groups) else 0
    never = -(1 << (8 * two.itemsize - 2))  # stays negative with any other value added
    out = np.full((count, one.shape[1] + two.shape[1] - 1 + step), never, two.dtype)
    played = (matches.codes & 1).astype(np.bool_) & any(effects)
    for own, more, place in ((np.flatnonzero(~played), gains[0], 0), (np.flatnonzero(played), gains[1], step)):
        for some in np.array_split(own, 1 + len(own) * out.shape[1] // AT_ONCE) if len(own) else ():
            left, right = one[matches.left[some]] + one.dtype.type(more), two[matches.right[some]]
            _add(out, groups[some], left, right, place)
    return np.maximum(out, never, out=out)


def _add(out: Cells, groups: Codes, one: Cells, two: Cells, step: int) -> None:
    """Raise the rows of these groups, in increasing order, to the sums of two rows each."""
    first, last = int(groups[0]), int(groups[-1])
    joined = last - first == len(groups) - 1
    width, best, total = two.shape[1], out[first : last + 1] if joined else out[groups], np.empty_like(two)
    for p in np.flatnonzero((one >= 0).any(axis=0)).tolist():
        np.add(two, one[:, p, None], out=total)
        part = best[:, p + step : p + step + width]
        np.maximum(part, total, out=part)
    if not joined:
        out[groups] = best

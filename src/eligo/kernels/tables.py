"""Joins of tables of states: which rows agree, how long the joined rows are, and their values.

A table has a row for each possible combination of states, 0 or 1, of some roles. Its *codes*, in increasing order, hold the
states as bits. A row has a value for each T from *first* on, as many as there are from its place in *ptr* to the next one;
a negative number stands for a missing value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Longs = NDArray[np.int64]
    Digits = NDArray[np.int8]
    Cells = NDArray[np.signedinteger[Any]]


def match_rows(
    one: Longs,
    two: Longs,
    levels: Longs,
    rules: Longs,
    drop: int,
    most: int,
    stack: Longs,
    begins: Ints,
    left: Ints,
    right: Ints,
    digits: Digits,
    codes: Longs,
    counts: Longs,
) -> None:
    """Find every combination of states that is in both tables and breaks no rule, in increasing order of codes.

    levels[l]: of the l-th role to get a state, the number of states, the place of its digit in the codes of one, two (-1: not
    there) and the result, and the end of its rules. rules[r]: an earlier level, and whether that may not be lower (0) or
    higher (1). Combinations that agree except for their *drop* lowest bits are one group. counts: the numbers of combinations
    and groups; the search ends once there are more than *most*. *stack* has a row of six for each level: the remaining rows
    of one and two, the next digit, and the code so far.
    """
    depth = levels.shape[0]
    rows = 0
    groups = 0
    fresh = 1
    level = 0
    enter(stack, 0, 0, one.shape[0], 0, two.shape[0], 0)
    while level >= 0 and rows <= most:
        digit = stack[level, 4]
        if digit == levels[level, 0]:
            level -= 1
            continue
        stack[level, 4] = digit + 1
        a = stack[level, 0]
        a_end = stack[level, 1]
        if levels[level, 1] >= 0:
            a_end = first_above(one, a, a_end, levels[level, 1], digit)
            stack[level, 0] = a_end
        b = stack[level, 2]
        b_end = stack[level, 3]
        if levels[level, 2] >= 0:
            b_end = first_above(two, b, b_end, levels[level, 2], digit)
            stack[level, 2] = b_end
        if a == a_end or b == b_end or breaks(levels, rules, level, stack):
            continue
        code = stack[level, 5] | digit << levels[level, 3]
        if level + 1 < depth:
            level += 1
            enter(stack, level, a, a_end, b, b_end, code)
            fresh = 1
            continue
        left[rows] = a
        right[rows] = b
        digits[rows] = digit
        if fresh or drop == 0:
            begins[groups] = rows
            codes[groups] = code >> drop
            groups += 1
            fresh = 0
        rows += 1
    begins[groups] = rows
    counts[0] = rows
    counts[1] = groups


def enter(stack: Longs, level: int, a: int, a_end: int, b: int, b_end: int, code: int) -> None:
    """Start with the first digit at a level."""
    stack[level, 0] = a
    stack[level, 1] = a_end
    stack[level, 2] = b
    stack[level, 3] = b_end
    stack[level, 4] = 0
    stack[level, 5] = code


def first_above(codes: Longs, begin: int, end: int, place: int, digit: int) -> int:
    """The first of these rows, which agree in higher digits, with a digit above this one; *end* if there is none."""
    while begin < end and (codes[end - 1] >> place & 1) > digit:
        middle = (begin + end) >> 1
        if (codes[middle] >> place & 1) > digit:
            end = middle
        else:
            begin = middle + 1
    return end


def breaks(levels: Longs, rules: Longs, level: int, stack: Longs) -> bool:
    """Whether the state at this level, the digit before the next, breaks one of its rules."""
    state = stack[level, 4]
    begin = 0
    if level > 0:
        begin = levels[level - 1, 4]
    for r in range(begin, levels[level, 4]):
        other = stack[rules[r, 0], 4]
        if other < state if rules[r, 1] == 0 else state < other:
            return True
    return False


def measure_rows(
    begins: Ints,
    left: Ints,
    right: Ints,
    digits: Digits,
    steps: Ints,
    first_one: Ints,
    ptr_one: Longs,
    first_two: Ints,
    ptr_two: Longs,
    first: Ints,
    ptr: Longs,
    counts: Longs,
) -> None:
    """Compute for each group of matching rows the first T with a value and the number of values.

    A digit d adds steps[d] to T. counts: how many values of one are added to those of two, and the number of sums.
    """
    entries = 0
    sums = 0
    ptr[0] = 0
    for g in range(first.shape[0]):
        low = 1 << 30
        high = 0
        for i in range(begins[g], begins[g + 1]):
            a = left[i]
            b = right[i]
            at = first_one[a] + first_two[b] + steps[digits[i]]
            length = ptr_one[a + 1] - ptr_one[a]
            width = ptr_two[b + 1] - ptr_two[b]
            low = min(low, at)
            high = max(high, at + length + width - 1)
            entries += length
            sums += length * width
        first[g] = low
        ptr[g + 1] = ptr[g] + high - low
    counts[0] = entries
    counts[1] = sums


def join_rows(
    begins: Ints,
    left: Ints,
    right: Ints,
    digits: Digits,
    steps: Ints,
    gains: Ints,
    first_one: Ints,
    ptr_one: Longs,
    one: Cells,
    first_two: Ints,
    ptr_two: Longs,
    two: Cells,
    first: Ints,
    ptr: Longs,
    never: int,
    out: Cells,
) -> None:
    """Compute the values of each group of matching rows: for each T the best sum of two values.

    A digit d adds steps[d] to T and gains[d] to the values. *never* stands for a missing value, and stays negative with any
    other value added.
    """
    for g in range(first.shape[0]):
        for t in range(ptr[g], ptr[g + 1]):
            out[t] = never
        for i in range(begins[g], begins[g + 1]):
            a = left[i]
            b = right[i]
            d = digits[i]
            at = ptr[g] + first_one[a] + first_two[b] + steps[d] - first[g]
            begin = ptr_two[b]
            length = ptr_two[b + 1] - begin
            for p in range(ptr_one[a], ptr_one[a + 1]):
                x = one[p]
                if x >= 0:
                    x = x + gains[d]
                    for q in range(length):
                        y = x + two[begin + q]
                        z = out[at + q]
                        out[at + q] = y if y > z else z
                at += 1

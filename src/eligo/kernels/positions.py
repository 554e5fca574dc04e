"""Positions of play: the executed tasks as bits, 63 to a word; the moves from each, and the positions after them.

Tasks that are always executed together share a bit. Waiting tasks are in groups of equal parents. A *move* executes exactly
the tasks that some group still misses, if all of them are eligible; only moves with no smaller one inside are considered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]
    Grid = NDArray[np.int32]
    Wide = NDArray[np.int64]


def tasks_of(x: int, word: int, weights: Ints) -> int:
    """The number of tasks of the bits of a word, mostly few. *weights* has 67 entries per word, by 2 ** bit % 67."""
    count = 0
    while x != 0:
        count += weights[67 * word + (x & -x) % 67]
        x &= x - 1
    return count


def look(
    at: int,
    words: int,
    groups: int,
    weights: Ints,
    need: Wide,
    opens: Wide,
    sources: Wide,
    masks: Wide,
    missed: Wide,
    seen: Grid,
) -> None:
    """Fill *missed* with what each group misses and, in the last row, what can be executed; *seen* gets the sizes."""
    for w in range(words):
        missed[groups * words + w] = sources[w] & ~masks[at * words + w]
    for g in range(groups):
        seen[0, g] = 0
        for w in range(words):
            m = need[g * words + w] & ~masks[at * words + w]
            missed[g * words + w] = m
            if m != 0:
                seen[0, g] += tasks_of(m, w, weights)
        if seen[0, g] == 0:
            for w in range(words):
                missed[groups * words + w] |= opens[g * words + w] & ~masks[at * words + w]


def shared(words: int, groups: int, missed: Wide, seen: Grid) -> None:
    """Fill the row after the last with what more than one group misses; groups that miss the same count once."""
    once = (groups + 2) * words
    twice = (groups + 1) * words
    for w in range(words):
        missed[once + w] = 0
        missed[twice + w] = 0
    for g in range(groups):
        if seen[0, g] > 0:
            for w in range(words):
                m = missed[g * words + w]
                missed[twice + w] |= missed[once + w] & m
                missed[once + w] |= m


def playable(words: int, groups: int, only: int, missed: Wide, seen: Grid) -> int:
    """List the groups that miss only what can be executed, by the size of that, later groups first; returns their number.

    If *only* is not 0, only groups of that size are listed.
    """
    total = 0
    for g in range(groups - 1, -1, -1):
        w = 0
        if seen[0, g] > 0 and (only == 0 or seen[0, g] == only):
            while w < words and missed[g * words + w] & ~missed[groups * words + w] == 0:
                w += 1
        if w == words:
            i = total
            while i > 0 and seen[0, seen[1, i - 1]] > seen[0, g]:
                seen[1, i] = seen[1, i - 1]
                i -= 1
            seen[1, i] = g
            total += 1
    return total


def inside(words: int, g: int, missed: Wide, seen: Grid, lowest: Ints) -> int:
    """A kept move whose tasks are all missed by group g; -1 if there is none.

    The kept moves are listed by their lowest bit, which g must miss too.
    """
    for u in range(words):
        x = missed[g * words + u]
        while x != 0:
            j: int = lowest[67 * u + (x & -x) % 67] - 1
            while j >= 0:
                w = u
                while w < words and missed[seen[1, j] * words + w] & ~missed[g * words + w] == 0:
                    w += 1
                if w == words:
                    return j
                j = seen[4, j] - 1
            x &= x - 1
    return -1


def list_lowest(words: int, j: int, missed: Wide, seen: Grid, lowest: Ints) -> None:
    """List a kept move by its lowest bit."""
    u = 0
    while missed[seen[1, j] * words + u] == 0:
        u += 1
    x = missed[seen[1, j] * words + u]
    place = 67 * u + (x & -x) % 67
    seen[4, j] = lowest[place]
    lowest[place] = j + 1


def minimal(words: int, total: int, opening: Ints, count: Ints, missed: Wide, seen: Grid, lowest: Ints) -> int:
    """Keep the playable groups with no smaller one inside, equal ones united, with what they render and open.

    Of equal groups all but one are marked by a negative size. Returns the number of kept groups.
    """
    kept = 0
    for place in range(lowest.shape[0]):
        lowest[place] = 0
    for i in range(total):
        g = seen[1, i]
        j = inside(words, g, missed, seen, lowest)
        if j < 0:
            seen[1, kept] = g
            seen[2, kept] = count[g]
            seen[3, kept] = opening[g]
            list_lowest(words, kept, missed, seen, lowest)
            kept += 1
        elif seen[0, seen[1, j]] == seen[0, g]:
            seen[2, j] += count[g]
            seen[3, j] |= opening[g]
            seen[0, g] = -seen[0, g]
    return kept


def different(words: int, groups: int, total: int, missed: Wide, seen: Grid) -> int:
    """Keep one of equal moves, in size and gain, that open nothing and affect no other group; returns how many are kept."""
    kept = 0
    shared(words, groups, missed, seen)
    for j in range(total):
        g = seen[1, j]
        alone = 0
        if seen[3, j] == 0:
            alone = 1
            for w in range(words):
                if missed[g * words + w] & missed[(groups + 1) * words + w] != 0:
                    alone = 0
        fresh = 1
        if alone == 1:
            for i in range(kept):
                if seen[3, i] == 1 and seen[0, seen[1, i]] == seen[0, g] and seen[2, i] == seen[2, j]:
                    fresh = 0
                    break
        if fresh == 1:
            seen[1, kept] = g
            seen[2, kept] = seen[2, j]
            seen[3, kept] = alone
            kept += 1
    return kept


def settle(words: int, at: int, masks: Wide, pair_ptr: Ints, pair_a: Ints, pair_b: Ints) -> int:
    """Apply swaps until, of the first two tasks that differ in each, the first is executed; returns the comparisons."""
    compared = 0
    changed = 1
    base = at * words
    while changed == 1:
        changed = 0
        for s in range(pair_ptr.shape[0] - 1):
            i = pair_ptr[s]
            end = pair_ptr[s + 1]
            one = 0
            other = 0
            while i < end:
                one = (masks[base + pair_a[i] // 63] >> (pair_a[i] % 63)) & 1
                other = (masks[base + pair_b[i] // 63] >> (pair_b[i] % 63)) & 1
                compared += 1
                if one != other:
                    break
                i += 1
            if one < other:
                changed = 1
                while i < end:
                    a = pair_a[i]
                    b = pair_b[i]
                    one = (masks[base + a // 63] >> (a % 63)) & 1
                    other = (masks[base + b // 63] >> (b % 63)) & 1
                    if one != other:
                        flip(masks, base, a)
                        flip(masks, base, b)
                    compared += 1
                    i += 1
    return compared


def flip(masks: Wide, base: int, v: int) -> None:
    """Flip the bit of a task."""
    unit = 1
    unit <<= v % 63
    masks[base + v // 63] ^= unit


def slot_of(words: int, at: int, masks: Wide, table: Ints) -> int:
    """The slot of a position in the table, or the free one for it."""
    places = table.shape[0]
    h = 0
    for w in range(words):
        h = (h * 1000003 + masks[at * words + w] % 2147483647) & 0x7FFFFFFF
    h = (h * 40503) & 0x7FFFFFFF
    slot: int = (h ^ (h >> 15)) & (places - 1)
    while table[slot] >= 0:
        same = 1
        for w in range(words):
            if masks[table[slot] * words + w] != masks[at * words + w]:
                same = 0
                break
        if same == 1:
            break
        slot = (slot + 1) & (places - 1)
    return slot


def enter_all(words: int, used: int, masks: Wide, table: Ints) -> None:
    """Put all positions into an empty table."""
    for at in range(used):
        table[slot_of(words, at, masks, table)] = at


def trace_of(words: int, at: int, marks: Ints, masks: Wide) -> int:
    """The marked bits of a position, as a number."""
    trace = 0
    for i in range(marks.shape[0]):
        trace |= ((masks[at * words + marks[i] // 63] >> (marks[i] % 63)) & 1) << i
    return trace


def expand(
    chosen: Ints,
    first: int,
    last: int,
    words: int,
    weights: Ints,
    need: Wide,
    opens: Wide,
    sources: Wide,
    opening: Ints,
    count: Ints,
    pair_ptr: Ints,
    pair_a: Ints,
    pair_b: Ints,
    rest: Wide,
    marks: Ints,
    to_come: Wide,
    masks: Wide,
    area: Wide,
    columns: Grid,
    table: Ints,
    missed: Wide,
    seen: Grid,
    lowest: Ints,
    state: Wide,
) -> int:
    """Play all moves from chosen positions *first* to *last*; returns the number of the first one that was not played from.

    A position has its words in *masks*, its area, and in *columns* the rendered tasks, its step, the position before it and
    the group by which it was reached. *state*: the number of positions, the remaining units of work, the area to beat, the
    size and the gain that moves must have (0: any), how many more positions may be added, and whether that limit excluded
    some. *rest* bounds the area to come, for each step; with marked bits, *to_come* bounds it for each step and set of bits.
    Ends early if there is no more room or work.
    """
    groups = count.shape[0]
    for c in range(first, last):
        used = state[0]
        if used + groups + 1 > area.shape[0] or state[1] <= 0:
            return c
        at = chosen[c]
        look(at, words, groups, weights, need, opens, sources, masks, missed, seen)
        total = playable(words, groups, state[3], missed, seen)
        kept = minimal(words, total, opening, count, missed, seen, lowest)
        state[1] -= 500 + 4 * words * groups + kept * total
        total = different(words, groups, kept, missed, seen)
        for j in range(total):
            g = seen[1, j]
            if state[3] > 0 and seen[2, j] != state[4]:
                continue
            end = columns[at, 1] + seen[0, g]
            reached = area[at] + columns[at, 0] * seen[0, g] + seen[2, j]
            if reached + rest[end] <= state[2]:
                continue
            for w in range(words):
                masks[used * words + w] = masks[at * words + w] | missed[g * words + w]
            if marks.shape[0] > 0:
                state[1] -= 4 * marks.shape[0]
                if reached + to_come[trace_of(words, used, marks, masks) * rest.shape[0] + end] <= state[2]:
                    continue
            state[1] -= 80 + 4 * settle(words, used, masks, pair_ptr, pair_a, pair_b)
            slot = slot_of(words, used, masks, table)
            entry = table[slot]
            if entry < 0:
                if state[5] <= 0:
                    state[0] = used
                    state[6] = 1
                    return last
                state[5] -= 1
                entry = used
                table[slot] = used
                used += 1
                area[entry] = -1
            if area[entry] < reached:
                area[entry] = reached
                columns[entry, 0] = columns[at, 0] + seen[2, j]
                columns[entry, 1] = end
                columns[entry, 2] = at
                columns[entry, 3] = g
        state[0] = used
    return last

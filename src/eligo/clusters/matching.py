"""Matchings in bipartite graphs."""

from collections.abc import Sequence


def matches_all(rows: Sequence[Sequence[int]]) -> bool:
    """Whether every row can have one of its entries that no other row has: augmenting paths, row by row.

    >>> matches_all([[1, 2], [1]]), matches_all([[1], [1]])
    (True, False)
    """
    owner: dict[int, int] = {}

    for start in range(len(rows)):
        path = _path(rows, start, owner)
        if path is None:
            return False
        for row, entry in path:
            owner[entry] = row
    return True


def _path(rows: Sequence[Sequence[int]], start: int, owner: dict[int, int]) -> list[tuple[int, int]] | None:
    """Who takes what so that a further row has an entry, others changing theirs where need be; breadth first."""
    asked: dict[int, int] = {}  # entry -> the row that asked for it
    wants = {start: -1}  # row -> the entry that it gives up
    asking = [start]
    for row in asking:
        for entry in rows[row]:
            if entry in asked:
                continue
            asked[entry] = row
            if entry not in owner:
                return _turned(entry, asked, wants)
            wants[owner[entry]] = entry
            asking.append(owner[entry])
    return None


def _turned(entry: int, asked: dict[int, int], wants: dict[int, int]) -> list[tuple[int, int]]:
    path = []
    while entry >= 0:
        path.append((asked[entry], entry))
        entry = wants[asked[entry]]
    return path

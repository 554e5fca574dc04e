"""Leases as they are kept: those of a grant in one row, and what came of leases by the page, both as JSON.

A page is for so many numbers of leases of one workflow. What came of leases since the last commit is one row more of their
pages, whatever the rows before say: of what came of one lease the last counts.
"""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from eligo.errors import InputError
from eligo.work.attempts import Attempt, Lease

PAGE = 256  # numbers of leases
NUL = "a text with a NUL character cannot be stored"
HALF = "a text with an unpaired surrogate cannot be stored"
#: the row of a grant
GRANT = ("workflow", "first", "client", "secret", "key", "since", "tasks")
#: what came of a lease, but for its workflow
_End = tuple[
    int, int, int, str, str, float, float, str, str | None, int | None, int | None, str | None, str | None, int
]
_encode = msgspec.json.Encoder().encode
_tasks = msgspec.json.Decoder(list[tuple[int, int, int]]).decode
_task = itemgetter(1, 2, 3)
_ends = msgspec.json.Decoder(list[_End]).decode


def page_of(number: int) -> int:
    """The page for the number of a lease."""
    return number // PAGE


def packed_leases(leases: Iterable[Lease]) -> list[tuple[Any, ...]]:
    """One row a grant; its leases follow one another.

    >>> grant = [Lease("w", number, task, 1, "ann", "5ec7e7", "k", 7, 2.0) for number, task in ((7, 0), (8, 3))]
    >>> packed_leases(grant)
    [('w', 7, 'ann', '5ec7e7', 'k', 2.0, '[[7,0,1],[8,3,1]]')]
    >>> unpacked_leases(packed_leases(grant)) == grant
    True
    """
    grants = [[*grant] for _, grant in groupby(leases, itemgetter(0, 7))]
    return [
        (one.workflow, one.first, one.client, one.secret, one.key, one.since, _text([*map(_task, grant)]))
        for grant in grants
        for one in grant[:1]
    ]


def unpacked_leases(rows: Iterable[tuple[Any, ...]]) -> list[Lease]:
    """The leases in the rows of grants, including ended ones."""
    return [
        Lease(workflow, number, task, attempt, client, secret, key, first, since)
        for workflow, first, client, secret, key, since, tasks in rows
        for number, task, attempt in _tasks(tasks)
    ]


def packed_ends(ends: Iterable[Attempt]) -> list[tuple[str, int, str]]:
    """One row a page."""
    pages: dict[tuple[str, int], list[tuple[Any, ...]]] = {}
    last, current = ("", -1), list[tuple[Any, ...]]()
    for end in ends:
        if end[1] // PAGE != last[1] or end[0] != last[0]:  # mostly it is the page of the one before
            last = end[0], end[1] // PAGE
            current = pages.setdefault(last, [])
        current.append(end[1:])
    return [(workflow, page, _text(rows)) for (workflow, page), rows in pages.items()]


def unpacked_ends(workflow: str, rows: Iterable[str]) -> list[Attempt]:
    """The outcomes of the leases of one page, from its rows, by lease number."""
    by_number = {end[0]: end for row in rows for end in _ends(row)}
    return [Attempt(workflow, *by_number[number]) for number in sorted(by_number)]


def _text(rows: list[tuple[Any, ...]]) -> str:
    try:
        packed = _encode(rows)
    except UnicodeEncodeError:
        raise InputError(HALF) from None
    if b"\\u0000" in packed and any("\0" in value for row in rows for value in row if type(value) is str):
        raise InputError(NUL)
    return packed.decode()

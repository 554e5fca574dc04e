"""Bodies that are too large for memory, or too many."""

import asyncio
import random
from pathlib import Path

import pytest

from eligo.server.http.bodies import Body, Spool
from eligo.server.http.refusals import RefusedError

PART = 1000


async def brought(spool: Spool, contents: list[bytes], most: list[int]) -> list[bytes]:
    """What comes of bodies that are brought at once, a part of each in turn; *most* is told what is in memory."""
    bodies = [Body(spool) for _ in contents]
    try:
        for at in range(0, max(map(len, contents)), PART):
            for body, content in zip(bodies, contents, strict=True):
                if part := content[at : at + PART]:
                    await body.add(part)
                    most.append(spool.taken)
        return [await body.content() for body in bodies]
    finally:
        for body in bodies:
            body.close()


@pytest.mark.parametrize(("number", "size"), [(1, 500), (1, 50_000), (30, 3_500), (5, 20_000)])
def test_bodies_come_whole_and_little_of_them_is_in_memory(tmp_path: Path, number: int, size: int) -> None:
    spool, most = Spool(each=5_000, all=20_000, folder=str(tmp_path)), list[int]()
    contents = [random.Random(i).randbytes(size + i) for i in range(number)]
    assert asyncio.run(brought(spool, contents, most)) == contents
    assert max(most) <= 20_000
    assert spool.taken == 0
    assert list(tmp_path.iterdir()) == []


def test_where_no_file_can_be_written_it_is_refused(tmp_path: Path) -> None:
    spool = Spool(each=10, folder=str(tmp_path / "nowhere"))
    with pytest.raises(RefusedError, match="no space for a body"):
        asyncio.run(brought(spool, [bytes(100)], []))
    assert spool.taken == 0

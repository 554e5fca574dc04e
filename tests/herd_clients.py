"""Many clients in a process of their own, for a herd of several: `python herd_clients.py PORT NUMBER SEED FILE`.

They enrol, say so, and keep their connections. At a word each asks for a task, delivers it, and stays until another word.
What they know by then, and when each was given its task, is in the file.
"""

import asyncio
import pickle
import random
import sys
import time
from pathlib import Path

from light_clients import Ledger, LightClient

TOGETHER = 200  # enrol at a time


async def stay(port: int, number: int, seed: int, file: Path) -> None:
    ledger, given = Ledger(), list[float]()
    herd = [LightClient(("127.0.0.1", port), ledger, random.Random(seed + i), wait=30.0) for i in range(number)]
    for first in range(0, number, TOGETHER):
        await asyncio.gather(*(one.enrol() for one in herd[first : first + TOGETHER]))
    await _word("enrolled")

    async def ask(client: LightClient) -> None:
        tasks = list[dict[str, str]]()
        while not tasks:
            reply = await client.call("/v1/request", client.asking())
            tasks = [task for grant in reply["grants"] for task in grant["tasks"]]
        given.append(time.monotonic())
        ledger.executed.update(task["task"] for task in tasks)
        await client.deliver(tasks, {})

    await asyncio.gather(*map(ask, herd))
    file.write_bytes(pickle.dumps((ledger, given)))
    await _word("served")
    for client in herd:
        client.hang_up()


async def _word(said: str) -> None:
    """Say this, and wait for a word."""
    print(said, flush=True)  # noqa: T201 - that is how it is heard
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    port, number, seed = map(int, sys.argv[1:4])
    asyncio.run(stay(port, number, seed, Path(sys.argv[4])))

"""Functions that workers run in the tests of engines."""

import asyncio
import os
import threading
from functools import partial


class UnsendableError(Exception):
    """An exception that cannot be made again from its arguments, as is common."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


class OwnError(Exception):
    """An exception of the user's own."""

    def __str__(self) -> str:
        return str(self.args[0])


def raising(kind: str) -> None:
    if kind == "own":
        raise OwnError("a reason", 7)
    if kind == "unsendable":
        raise UnsendableError(1, 2)
    if kind == "exit":
        raise SystemExit(3)
    if kind == "unpicklable":
        raise OwnError("with a lock", threading.Lock())
    raise ValueError(kind)


raises = {kind: partial(raising, kind) for kind in ("own", "unsendable", "unpicklable")}


async def soon() -> int:
    await asyncio.sleep(0.01)
    return 7


def minute() -> float:
    return 60.0


def large(size: int) -> bytes:
    return bytes(size)


def unsendable_value() -> object:
    return (number for number in range(3))


def dies(path: str) -> str:
    """Takes its worker down, the first time."""
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8"):
            pass
        os._exit(1)
    return "alive"

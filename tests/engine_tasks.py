"""Functions that workers run in the tests of engines."""

import os


class UnsendableError(Exception):
    """An exception that cannot be made again from its arguments, as is common."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


class OwnError(Exception):
    """An exception of the user's own."""


def raising(kind: str) -> None:
    if kind == "own":
        raise OwnError("a reason", 7)
    if kind == "unsendable":
        raise UnsendableError(1, 2)
    if kind == "exit":
        raise SystemExit(3)
    raise ValueError(kind)


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

"""The journal of an execution: every move in 8 bytes, for observers and stores."""

from array import array
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from eligo.errors import InputError
from eligo.growing import Addition

#: the moves of a journal, as numbers
TAKE, HOLD, AGAIN, COMPLETE, FAIL, RELEASE, DROP, GROW = range(8)
MOVES = ("take", "hold", "again", "complete", "fail", "release", "drop", "grow")
_TASK = (1 << 32) - 1
FEW_MOVES = 16  # up to this number, a loop is faster than arrays


def executing(tasks: NDArray[np.int32]) -> bytes:
    """The moves that take and complete tasks one after another."""
    moves = np.repeat(tasks.astype(np.int64), 2)
    moves[0::2] |= TAKE << 32
    moves[1::2] |= COMPLETE << 32
    return moves.tobytes()


class Journal:
    """The moves of an execution as 8-byte integers: the kind of move times 2 ** 32, plus the task.

    The task of "grow" is an index into `additions`.
    """

    def __init__(self, moves: "array[int]", additions: list[Addition]) -> None:
        self._moves, self.additions = moves, additions

    @staticmethod
    def packed(moves: Iterable[int]) -> "array[int]":
        """The moves of another execution or a store as an array; raises if they are invalid."""
        try:
            return array("q", moves)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"a journal must be an array of 8-byte integers: {error}") from None

    def __len__(self) -> int:
        return len(self._moves)

    def __iter__(self) -> Iterator[int]:
        return iter(self._moves)

    def __bytes__(self) -> bytes:
        return self._moves.tobytes()

    def left_at(self, seen: int, size: int) -> NDArray[np.bool_]:
        """For each task known after the first *seen* moves, whether it still had to be handed out; *size* tasks exist now."""
        moves = np.array(self._moves[:seen], np.int64)
        grown = moves >> 32 == GROW
        later = sum(len(added.tasks) for added in self.additions[int(grown.sum()) :])
        kinds = np.full(size - later, RELEASE, np.int64)
        kinds[moves[~grown] & _TASK] = moves[~grown] >> 32
        remaining: NDArray[np.bool_] = kinds == RELEASE
        return remaining


def unpacked(moves: "array[int]") -> Iterator[tuple[int, int]]:
    """The kind and the task of every move, as numbers.

    >>> list(unpacked(array("q", [TAKE << 32 | 5, COMPLETE << 32 | 5]))) == [(TAKE, 5), (COMPLETE, 5)]
    True
    """
    if len(moves) < FEW_MOVES:
        return ((move >> 32, move & _TASK) for move in moves)
    packed = np.array(moves, np.int64)
    return zip((packed >> 32).tolist(), (packed & _TASK).tolist(), strict=True)

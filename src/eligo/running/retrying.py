"""When a task that failed is tried again."""

from dataclasses import dataclass
from random import Random

from eligo.errors import InputError, is_amount


@dataclass(frozen=True, kw_only=True)
class Retries:
    """How often a task is tried again after failures of its own, and after its worker was lost; and how soon.

    The waits double from *first* seconds up to *longest*, and a half of each is drawn at random, so that what failed
    together is not tried again together.
    """

    most: int = 2
    lost: int = 5
    first: float = 1.0
    longest: float = 300.0

    def __post_init__(self) -> None:
        for name in ("most", "lost", "first", "longest"):
            if not is_amount(getattr(self, name)):
                raise InputError(f"retries: {name} cannot be {getattr(self, name)!r}")

    def wait(self, failures: int, random: Random) -> float:
        """How many seconds to wait after so many failures.

        >>> [Retries(first=2.0).wait(failures, Random(1)) <= 2.0**failures for failures in (1, 2, 3)]
        [True, True, True]
        """
        whole = min(self.longest, self.first * 2.0 ** min(failures - 1, 60))
        return whole * (1 + random.random()) / 2

"""What a task needs while it runs. This module imports nothing else of eligo, since workers import it too."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?(?:e\d+)?)([kmgt]?)", re.IGNORECASE)
CORES, MEMORY, GPUS = "cores", "memory", "gpus"
#: an amount of each resource, by name
Amounts = Mapping[str, float]


def amount_in(text: str) -> float | None:
    """The amount that a text states, with units of 1024; None for other texts.

    >>> amount_in("2G"), amount_in("1.5"), amount_in("2 apples")
    (2147483648.0, 1.5, None)
    """
    match = _AMOUNT.fullmatch(text.strip())
    return None if match is None else float(match[1]) * UNITS[match[2].upper()]


def bytes_in(text: str) -> int | None:
    """The number of bytes that a text states; None for other texts.

    >>> bytes_in("2G"), bytes_in("1.5k"), bytes_in("100"), bytes_in("2 apples")
    (2147483648, 1536, 100, None)
    """
    amount = amount_in(text)
    return None if amount is None else int(amount)


def byte_words(amount: float) -> str:
    """An amount of memory.

    >>> byte_words(3_500_000), byte_words(2**31), byte_words(1023 * 2**10)
    ('3.34 MiB', '2 GiB', '1023 KiB')
    """
    size, units = float(amount), ["B", "KiB", "MiB", "GiB", "TiB"]
    while size >= 1024 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.0f} {units[0]}" if size >= 1000 else f"{size:.3g} {units[0]}"


class Demand(NamedTuple):
    """What a task needs while it runs.

    >>> Demand(2.0, others=(("gpus", 1),)).amounts
    {'cores': 2.0, 'memory': 0, 'gpus': 1}
    """

    cores: float = 1.0
    #: in bytes; 0 if unknown
    memory: int = 0
    #: amounts of other resources, by name
    others: tuple[tuple[str, float], ...] = ()
    #: how long it is expected to run; None if nothing is known about it
    seconds: float | None = None

    @property
    def amounts(self) -> Amounts:
        """The amount of each resource."""
        return {CORES: self.cores, MEMORY: self.memory, **dict(self.others)}


PLAIN = Demand()


def demand_environment(cores: float, memory: int) -> dict[str, str]:
    """The environment that tells a task what it gets.

    >>> demand_environment(2.0, 1024)
    {'ELIGO_CORES': '2', 'ELIGO_MEMORY': '1024'}
    """
    return {"ELIGO_CORES": f"{cores:g}", **({"ELIGO_MEMORY": str(memory)} if memory else {})}


def largest(demands: Sequence[Demand]) -> Demand:
    """What tasks need that run one after another: the largest amount of each resource, and the time of all.

    >>> largest([Demand(2.0, 100, seconds=1.0), Demand(1.0, 200, (("gpus", 1),), 2.0)])
    Demand(cores=2.0, memory=200, others=(('gpus', 1),), seconds=3.0)
    """
    if len(demands) == 1:
        return demands[0]
    others: dict[str, float] = {}
    for what, amount in (other for demand in demands for other in demand.others):
        others[what] = max(amount, others.get(what, 0.0))
    times = [demand.seconds for demand in demands if demand.seconds is not None]
    seconds = sum(times) if len(times) == len(demands) else None
    most = (max(demand.cores for demand in demands), max(demand.memory for demand in demands))
    return Demand(*most, tuple(others.items()), seconds)

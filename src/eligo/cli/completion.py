"""The values that a shell offers behind an option, looked up where the library has them."""

from collections.abc import Callable, Iterator
from importlib import import_module

#: where the values of an option are listed
VALUES = {
    "effort": ("eligo.deciding.effort", "EFFORTS"),
    "prefer": ("eligo.deciding.moves", "PREFERENCES"),
    "format": ("eligo.formats", "MODULES"),
    "text": ("eligo.cli.export", "TEXTS"),
    "family": ("eligo.families", "FAMILIES"),
    "policy": ("eligo.policies", "POLICIES"),
    "method": ("eligo.batches.best", "SOLVERS"),
    "goal": ("eligo.clusters.growth", "GOALS"),
    "strategy": ("eligo.clusters.strategies", "STRATEGIES"),
    "export": ("eligo.clusters.export", "EXPORTS"),
    "scheduler": ("eligo.simulation.pebble", "SCHEDULERS"),
}


def offered(*kinds: str) -> Callable[[str], Iterator[str]]:
    """What completes a word to values of these kinds; where several stand with commas between them, the last one."""

    def completed(incomplete: str) -> Iterator[str]:
        before = incomplete[: incomplete.rfind(",") + 1]
        return (before + value for kind in kinds for value in values_of(kind))

    return completed


def values_of(kind: str) -> list[str]:
    """The values of one kind.

    >>> values_of("effort")
    ['quick', 'normal', 'thorough']
    """
    module, name = VALUES[kind]
    return [*getattr(import_module(module), name)]

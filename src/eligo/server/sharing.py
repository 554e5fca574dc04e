"""Who goes first when several owners have work: each gets what it has a share in, and who was away does not save up."""

from collections.abc import Iterable

from eligo.server.served import Served


class Turns:
    """Owners take turns, each as often as its share says: every task it gets moves it back by one over its share.

    Each workflow says its share; among an owner's workflows the first submitted goes first.
    """

    def __init__(self) -> None:
        self._passed: dict[str, float] = {}
        self._turn = 0.0  # where the one stood who had the last turn

    def in_turn(self, served: Iterable[Served]) -> list[Served]:
        """The workflows, whose turn it is first."""
        known = list(served)
        if len(known) < 2:
            return known
        return sorted(known, key=lambda one: self._place(one.wishes.owner))

    def charge(self, served: Served, tasks: int) -> None:
        """An owner got clients for so many tasks."""
        owner = served.wishes.owner
        self._turn = self._place(owner)
        self._passed[owner] = self._turn + tasks / served.wishes.share

    def _place(self, owner: str) -> float:
        """Where an owner stands; who comes anew, or was away, begins where the others are."""
        return max(self._turn, self._passed.get(owner, self._turn))

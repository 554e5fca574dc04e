"""Who goes first when several owners have work: each gets what it has a share in, and who was away does not save up."""

from collections.abc import Iterable

from eligo.server.served import Served


class Turns:
    """Owners take turns, each as often as its share says: every task it gets moves it back by one over its share.

    The share of an owner is the largest of its workflows; among an owner's workflows the first submitted goes first.
    """

    def __init__(self) -> None:
        self._passed: dict[str, float] = {}

    def in_turn(self, served: Iterable[Served]) -> list[Served]:
        """The workflows, whose turn it is first."""
        known = list(served)
        if len(known) < 2:
            return known
        present = [self._passed[one.wishes.owner] for one in known if one.wishes.owner in self._passed]
        floor = min(present, default=0.0)
        for one in known:  # who comes anew, or was away, begins where the others are
            self._passed[one.wishes.owner] = max(floor, self._passed.get(one.wishes.owner, floor))
        return sorted(known, key=lambda one: self._passed[one.wishes.owner])

    def charge(self, served: Served, tasks: int) -> None:
        """An owner got clients for so many tasks."""
        owner = served.wishes.owner
        self._passed[owner] = self._passed.get(owner, 0.0) + tasks / served.wishes.share

    def forget(self, owners: Iterable[str]) -> None:
        """Only these owners have work."""
        kept = set(owners)
        self._passed = {owner: passed for owner, passed in self._passed.items() if owner in kept}

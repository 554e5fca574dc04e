"""When leases end, against a slow twin that remembers the end of each."""

from random import Random

import pytest

from eligo.server.rules.agenda import SLACK, Deadlines

LEASE = 10.0


class Twin:
    """Every lease that is out, and until when."""

    def __init__(self) -> None:
        self.until: dict[tuple[str, int], float] = {}

    def late(self, now: float) -> list[tuple[str, int]]:
        return [place for place, until in self.until.items() if until <= now]

    def numbers(self, workflow: str) -> dict[int, None]:
        return {number: None for id, number in self.until if id == workflow}


@pytest.mark.parametrize("seed", range(20))
def test_leases_end_when_they_should_whatever_happens_meanwhile(seed: int) -> None:
    rng, twin, now, number = Random(seed), Twin(), 0.0, 0
    known = Deadlines(lambda workflow: twin.numbers(workflow).keys())
    for _ in range(400):
        now += rng.random()
        out, what = list(twin.until), rng.random()
        if what < 0.5:
            workflow, numbers = rng.choice("vw"), range(number, number + rng.randint(1, 5))
            number = numbers.stop
            twin.until.update({(workflow, one): now + LEASE for one in numbers})
            known.add(workflow, numbers, now + LEASE)
        elif what < 0.65 and out:
            twin.until[place := rng.choice(out)] = now + LEASE
            known.renew(place, now + LEASE)
        elif what < 0.8 and out:
            del twin.until[place := rng.choice(out)]
            known.drop(place[0], [place[1]])
        elif what < 0.82:
            twin.until = {place: until + 3.0 for place, until in twin.until.items()}
            known.shift(3.0)
            now += 3.0  # it stood still for so long
        elif what < 0.83:
            twin.until = {place: until for place, until in twin.until.items() if place[0] != "v"}
            known.forget("v")
        late = set(twin.late(now))
        for place in known.late(now):
            late.remove(place)
            del twin.until[place]
            known.drop(place[0], [place[1]])
        assert not late
        assert set(known) == set(twin.until)


def test_leases_that_come_back_are_not_remembered_until_their_time_is_over() -> None:
    out: dict[int, None] = {0: None}
    known = Deadlines(lambda workflow: out.keys())
    known.add("w", [0], LEASE)
    for number in range(1, 20_000):
        out[number] = None
        known.add("w", [number], LEASE)
        del out[number]
        known.drop("w", [number])
    assert len(known._queue) <= 2 * SLACK
    assert list(known.late(LEASE)) == [("w", 0)]

"""Rooms: what running tasks share, and the reservation for the first ready task that does not fit."""

import heapq
import itertools
import random
import statistics
from collections.abc import Iterable

import pytest

from eligo import Dag, Task, Workflow
from eligo.allocating import Ask, ByPolicy
from eligo.allocating.rooms import ROUNDS, Room
from eligo.engines import Job
from eligo.engines.room import Wants
from eligo.execution import Execution
from eligo.finishing import window_bound
from eligo.policies import policy
from eligo.pools import Pool
from eligo.schedules import terms_of
from eligo.work.demands import Demand


class FirstFit(Room):
    """A room without reservations."""

    def fits(self, task: object) -> bool:
        """Whether a task fits now, whichever waits."""
        self._reserved = None
        return super().fits(task)


def played(flow: Workflow, cores: int, room_type: type[Room], known: bool = True) -> dict[str, tuple[float, float]]:
    """When each task begins and ends on some cores, with times as the file says; *known*: the room knows them too."""
    now, game = [0.0], Execution(flow)
    timeless = Workflow(flow.dag, {name: Task(name=name, cores=task.cores) for name, task in flow.details.items()})
    seen = flow if known else timeless
    room = room_type(cores, None, needs := Wants(seen), clock=lambda: now[0])
    allocator = ByPolicy(policy("finish", seen), game, flow=seen)
    ends, spans = list[tuple[float, int, Job]](), dict[str, tuple[float, float]]()
    while not game.finished:
        while len(game.eligible) and (grants := allocator.hand_out(room.one_at_a_time([Ask(fits=room.admits)]))):
            task = str(grants[0].tasks[0])
            job = Job(len(spans), "", (task,), (), demand=needs(task))
            room.enter(job)
            spans[task] = now[0], now[0] + (flow.task(task).seconds or 0.0)
            heapq.heappush(ends, (spans[task][1], job.number, job))
        now[0] = ends[0][0]
        while ends and ends[0][0] <= now[0]:
            job = heapq.heappop(ends)[2]
            room.leave(job)
            game.complete(job.tasks[0])
    return spans


def makespan(spans: dict[str, tuple[float, float]]) -> float:
    """The end of the last task."""
    return max(end for _, end in spans.values())


def starving() -> Workflow:
    """A task that needs all four cores once another has ended, a long task after it, and 80 small tasks."""
    chance = random.Random(3)
    tasks = [Task(name=f"small{i}", seconds=0.1 + 0.2 * chance.random()) for i in range(80)]
    rest = [Task(name="first", seconds=0.3), Task(name="wide", seconds=1.0, cores=4), Task(name="last", seconds=3.0)]
    arcs = [("first", "wide"), ("wide", "last")]
    details = {str(task.name): task for task in (*rest, *tasks)}
    return Workflow(Dag.from_arcs(arcs, list(details)), details)


def test_a_task_of_all_cores_is_not_starved_by_small_ones() -> None:
    flow = starving()
    before, after = played(flow, 4, FirstFit), played(flow, 4, Room)
    small = [begin for name, (begin, _) in before.items() if name.startswith("small")]
    assert before["wide"][0] > max(small), "the trial shows nothing: it was not starved"
    assert after["wide"][0] < 0.7
    assert makespan(after) < 1.05 * 6.05 < makespan(before)


def test_without_run_times_only_so_many_tasks_overtake_a_waiting_one() -> None:
    spans = played(starving(), 4, Room, known=False)
    ready, begin = spans["first"][1], spans["wide"][0]
    overtook = [name for name, (began, _) in spans.items() if ready <= began < begin and name != "wide"]
    assert 4 <= len(overtook) <= 4 * ROUNDS + 4


def test_a_short_task_overtakes_one_that_has_to_wait_anyway() -> None:
    details = {
        "long": Task(name="long", seconds=10.0, cores=3, priority=2),
        "wide": Task(name="wide", seconds=10.0, cores=4, priority=1),
        "short": Task(name="short", seconds=9.0),
        "late": Task(name="late", seconds=11.0),
    }
    spans = played(Workflow(Dag.from_arcs([], list(details)), details), 4, Room)
    assert (spans["short"][0], spans["wide"][0], spans["late"][0]) == (0.0, 10.0, 20.0)


def test_a_task_that_fits_beside_the_reserved_one_begins_at_once() -> None:
    details = {
        "long": Task(name="long", seconds=10.0, cores=3, priority=2),
        "wide": Task(name="wide", seconds=10.0, cores=3, priority=1),
        "late": Task(name="late", seconds=99.0),
    }
    spans = played(Workflow(Dag.from_arcs([], list(details)), details), 4, Room)
    assert (spans["late"][0], spans["wide"][0]) == (0.0, 10.0)


def test_resources_are_shared_and_reserved_as_cores_are() -> None:
    needs = {"one": Demand(others=(("licence", 1),), seconds=5.0), "two": Demand(others=(("licence", 2),), seconds=5.0)}
    room = Room(8, None, lambda task: needs[str(task)[:3]], {"licence": 2}, clock=lambda: 0.0)
    room.enter(Job(1, "", ("one a",), (), demand=needs["one"]))
    room.one_at_a_time(())
    assert (room.fits("one b"), room.fits("two"), room.fits("one c")) == (True, False, True)
    room.enter(Job(2, "", ("one b",), (), demand=needs["one"]))
    assert not room.fits("one c")


def mix(seed: int) -> tuple[Workflow, int]:
    """A random workflow with some tasks of many cores, and a number of cores."""
    chance = random.Random(seed)
    cores, count, width = chance.choice([2, 4, 8, 16]), chance.choice([40, 80, 160]), chance.choice([4, 10, 20])
    names = [f"t{i}" for i in range(count)]
    layers = [names[i : i + width] for i in range(0, count, width)]
    arcs = {
        0: [],
        1: [(chance.choice(above), name) for above, layer in itertools.pairwise(layers) for name in layer],
        2: list(zip(names, names[width:], strict=False)),
        3: [(chance.choice(names[:i]), name) for i, name in enumerate(names) if i and chance.random() < 0.8],
    }[seed % 4]  # fmt: skip
    share, widths = (
        chance.choice([0.02, 0.1, 0.3]),
        chance.choice([(cores, cores), (cores // 2, cores // 2), (1, cores)]),
    )
    spread = chance.choice([0.2, 1.0])
    details = {
        name: Task(
            name=name,
            seconds=0.01 + round(chance.lognormvariate(0, spread), 3),
            cores=chance.randint(*widths) if chance.random() < share else 1,
        )
        for name in names
    }
    return Workflow(Dag.from_arcs(arcs, names), details), cores


def gains(seeds: Iterable[int], known: bool) -> list[float]:
    """By which factor reservations change the makespan of each of these mixes."""
    ratios = []
    for seed in seeds:
        flow, cores = mix(seed)
        ratios.append(makespan(played(flow, cores, Room, known)) / makespan(played(flow, cores, FirstFit, known)))
    return ratios


@pytest.mark.parametrize(("known", "most"), [(True, 0.99), (False, 1.005)])
def test_reservations_do_not_cost_throughput(known: bool, most: float) -> None:
    assert statistics.mean(gains(range(40), known)) <= most


def test_no_mix_ends_before_its_bound() -> None:
    for seed in range(8):
        flow, cores = mix(seed)
        terms = terms_of(flow, [flow.task(name).seconds or 0.0 for name in flow.dag.tasks], Pool(cores=cores))
        bound = window_bound(terms.dag, terms.seconds, terms.pool, terms.cores).seconds
        assert makespan(played(flow, cores, Room)) >= bound - 1e-9

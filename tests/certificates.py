"""No certificate is false: plans, finishes, spaces and fat tasks of all small dags against exact search, in both checkers.

    make test-certificates MOST=9 RANDOM=100000

Not part of the tests, for it takes hours. Dags are enumerated up to isomorphism; those with shortcuts have the schedules of
those without.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from conftest import random_small_dag
from eligo.clusters import cluster
from eligo.dag import Dag
from eligo.finishing import earliest_finish
from eligo.planning import plan
from eligo.space.bounds import space_bound
from eligo.space.exact import least_peak
from eligo.space.footprint import Footprint
from eligo.theory import exact
from eligo.verifying.finishes import finish_holds
from eligo.workflow import Task, Workflow
from second_checker import HOLDS, Second, built, first_answer
from slow_theory import max_area_schedule

Masks = tuple[int, ...]  # for each task, its ancestors as bits


def main(most: int, count: int) -> None:
    """Check all dags of at most *most* tasks, and random ones of at most 14."""
    checked = Counter[str]()
    with TemporaryDirectory() as folder:
        for n in range(1, most + 1):
            for order in partial_orders(n):
                check(_dag(order), Path(folder), checked)
            sys.stdout.write(f"all dags of {n} tasks: {dict(checked)}\n")
            sys.stdout.flush()
        rng = np.random.default_rng(count)
        for _ in range(count):
            check(random_small_dag(rng, most=14), Path(folder), checked)
    sys.stdout.write(f"and {count:,} random ones: {dict(checked)}\n")


@cache
def partial_orders(n: int) -> list[Masks]:
    """All partial orders of n elements, once up to isomorphism, each element after those below it."""
    if not n:
        return [()]
    found = dict[tuple[Masks, ...], Masks]()
    for order in partial_orders(n - 1):
        for below in _down_sets(order):
            grown = (*order, below)
            found.setdefault(_canonical(grown), grown)
    return list(found.values())


def _down_sets(order: Masks) -> Iterator[int]:
    for chosen in range(1 << len(order)):
        if all(chosen & order[v] == order[v] for v in range(len(order)) if chosen >> v & 1):
            yield chosen


def _canonical(order: Masks) -> tuple[Masks, ...]:
    """Equal for isomorphic orders alone: the least table of relations over numberings that respect colours."""
    n = len(order)
    below = [[u for u in range(n) if order[v] >> u & 1] for v in range(n)]
    above = [[v for v in range(n) if order[v] >> u & 1] for u in range(n)]
    return _least(n, below, above, _refined(n, below, above, [0] * n))


def _refined(n: int, below: list[list[int]], above: list[list[int]], colour: list[int]) -> list[int]:
    """Colours that agree only for elements with equally coloured elements below and above."""
    while True:
        keys = [(colour[v], sorted(colour[u] for u in below[v]), sorted(colour[u] for u in above[v])) for v in range(n)]
        rank = {str(key): i for i, key in enumerate(sorted(keys))}
        finer = [rank[str(key)] for key in keys]
        if len({*finer}) == len({*colour}):
            return finer
        colour = finer


def _least(n: int, below: list[list[int]], above: list[list[int]], colour: list[int]) -> tuple[Masks, ...]:
    """The least table, told apart element by element; elements that can be exchanged are tried once."""
    shared = sorted(c for c, times in Counter(colour).items() if times > 1)
    if not shared:
        place = {v: i for i, v in enumerate(sorted(range(n), key=colour.__getitem__))}
        return tuple(tuple(sorted(place[u] for u in below[v])) for v in sorted(range(n), key=place.__getitem__))
    members = [v for v in range(n) if colour[v] == shared[0]]
    alike = {(tuple(below[v]), tuple(above[v])): v for v in members}
    ways = []
    for v in alike.values():
        told = [2 * c + (u != v) for u, c in enumerate(colour)]
        ways.append(_least(n, below, above, _refined(n, below, above, told)))
    return min(ways)


def _dag(order: Masks) -> Dag:
    """The dag without shortcuts that has these ancestors."""
    arcs = [(str(u), str(v)) for v, mask in enumerate(order) for u in range(v) if mask >> u & 1]
    direct = [
        (u, v) for u, v in arcs if not any((u, w) in arcs and (w, v) in arcs for w in map(str, range(len(order))))
    ]
    return Dag.from_arcs(direct, tasks=map(str, range(len(order))))


def check(dag: Dag, folder: Path, checked: Counter[str]) -> None:
    """Check every certificate about a dag."""
    flow = Workflow(dag, {name: Task(name=name, seconds=1.0) for name in dag.tasks})
    check_plan(dag, folder, checked)
    check_finish(flow, checked)
    footprint = Footprint.of_results(dag)
    bound = space_bound(footprint, dag.order)
    assert bound.bytes <= least_peak(footprint), (list(dag.arcs()), bound)
    checked["spaces"] += 1
    check_fat_task(dag, checked)


def check_plan(dag: Dag, folder: Path, checked: Counter[str]) -> None:
    """The plan says what exact search says, and both checkers accept it."""
    best: dict[str, Any] = json.loads(json.dumps(plan(dag).document()))
    there = exact.ic_optimal_schedule(dag) is not None
    assert best["verdict"] == ("optimal" if there else "impossible"), list(dag.arcs())
    assert tuple(best["upper_bound"]) == exact.max_profile(dag), list(dag.arcs())
    flow, order = Workflow(dag), dag.indices(max_area_schedule(dag))
    assert best["area_bound"] == best["area"] == _area(dag, order.tolist()), list(dag.arcs())
    answer = first_answer(flow, best)
    assert answer.code == HOLDS, (list(dag.arcs()), answer)
    assert Second(flow, folder, built("-O2")).answer(best) == answer, list(dag.arcs())
    checked["plans"] += 1
    checked[best["proof"]["rule"]] += 1


def _area(dag: Dag, order: list[int]) -> int:
    """The sum of the numbers of eligible tasks."""
    done, area = set[int](), 0
    for step in range(len(order) + 1):
        done = {*order[:step]}
        area += sum(done.issuperset(dag.parents_of(v).tolist()) for v in range(len(dag)) if v not in done)
    return area


def check_finish(flow: Workflow, checked: Counter[str]) -> None:
    """The bound of two workers for tasks of one second: at most the least number of rounds, and accepted."""
    bound = earliest_finish(flow, 2)
    assert finish_holds(flow, bound._asdict()), (list(flow.dag.arcs()), bound)
    assert bound.seconds <= _least_rounds(flow.dag), (list(flow.dag.arcs()), bound)
    checked["finishes"] += 1


def _least_rounds(dag: Dag) -> int:
    """The least number of rounds of at most two tasks, over all sets of executed tasks."""
    needs = [sum(1 << u for u in dag.parents_of(v).tolist()) for v in range(len(dag))]
    reached, rounds = {0}, 0
    while (1 << len(dag)) - 1 not in reached:
        following = set()
        for done in reached:
            ready = [v for v in range(len(dag)) if not done >> v & 1 and needs[v] & ~done == 0]
            pairs = [1 << u | 1 << v for i, u in enumerate(ready) for v in ready[i + 1 :]]
            following |= {done | chosen for chosen in pairs or [1 << v for v in ready]}
        reached, rounds = following, rounds + 1
    return rounds


def check_fat_task(dag: Dag, checked: Counter[str]) -> None:
    """If a certificate says that the rest of a fat task needs no check, the rest has an order that is best at each step."""
    if len(dag) < 4:
        return
    for strategy in ("auto", "searched"):
        fat = cluster(dag, 3, strategy=strategy)
        checked["fat tasks"] += 1
        if fat.certificate:
            rest = dag.subdag(name for name in dag.tasks if name not in {*fat.tasks})
            assert exact.ic_optimal_schedule(rest) is not None, (list(dag.arcs()), fat)
            checked["fat tasks with a certificate"] += 1


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))

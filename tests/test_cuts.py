"""Minimum cuts of parts of a dag, against those of another solver, and what flows where all worth fits."""

from random import Random

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from eligo import Dag, families
from eligo.deciding.bounds import Flowing, Module, best_shares
from eligo.rows import Ints

Sides = tuple[list[bool], list[bool]]


def sides_of(cut: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None) -> Sides | None:
    return None if cut is None else (cut[0].tolist(), cut[1].tolist())


def another_cut(dag: Dag, tasks: Ints, renders: Ints, p: int, q: int) -> Sides | None:
    """The side of a minimum cut from which worth cannot get away, of the whole network, by another solver."""
    network: nx.DiGraph[int] = nx.DiGraph()
    source, sink = 2 * len(dag), 2 * len(dag) + 1
    network.add_nodes_from([source, sink])
    executed, rendered, free = set(tasks.tolist()), set(renders.tolist()), q * len(renders)
    for u, v in zip(dag.tails.tolist(), dag.child.tolist(), strict=True):
        if u in executed and v in rendered:
            network.add_edge(len(dag) + v, u, capacity=free)
    for u in executed & rendered:
        network.add_edge(u, len(dag) + u, capacity=free)
    for v in rendered:
        network.add_edge(source, len(dag) + v, capacity=q)
    for u in executed:
        network.add_edge(u, sink, capacity=p)
    residual = nx.algorithms.flow.preflow_push(network, source, sink)
    if residual.graph["flow_value"] == free:
        return None
    left = nx.DiGraph((u, v) for u, v, arc in residual.edges(data=True) if arc["flow"] < arc["capacity"])
    side = nx.descendants(left, source) if source in left else set()
    return [u in side for u in tasks.tolist()], [len(dag) + v in side for v in renders.tolist()]


def check_flow(dag: Dag, flow: NDArray[np.int64], part: Module) -> None:
    """Every rendering hands all its worth to parents inside; every execution keeps at most p of what it gets."""
    tasks, renders, p, q = part.tasks, part.renders, part.p, part.q
    inside = np.isin(dag.tails, tasks) & np.isin(dag.child, renders)
    flow = np.where(inside, flow, 0)
    given = np.bincount(dag.child, flow, minlength=len(dag)).astype(np.int64)
    got = np.bincount(dag.tails, flow, minlength=len(dag)).astype(np.int64)
    own = np.isin(np.arange(len(dag)), renders)
    kept = got - np.where(own, given - q, 0)
    assert (flow >= 0).all()
    assert (given[renders] >= q).all()
    assert (kept[tasks] <= p).all()
    assert (kept[tasks] >= 0).all()
    assert (given[renders][~np.isin(renders, tasks)] == q).all()


def some_part(dag: Dag, rng: Random) -> tuple[Ints, Ints]:
    nonsinks, nonsources = np.flatnonzero(dag.outdegree > 0), np.flatnonzero(dag.indegree > 0)
    share = rng.choice([0.5, 0.9, 1.0])
    chosen = ([some[0], *(v for v in some[1:] if rng.random() < share)] for some in (nonsinks, nonsources))
    tasks, renders = (np.array(own, np.int32) for own in chosen)
    return tasks, renders


@pytest.mark.parametrize("seed", range(40))
def test_cuts_are_those_of_another_solver(seed: int) -> None:
    rng = Random(seed)
    dag = families.random_dag(rng.randint(4, 40), rng.uniform(0.05, 0.4), seed)
    flow = np.zeros(dag.arc_count, np.int64)
    flowing = Flowing(dag, flow)
    for _ in range(10):
        (tasks, renders), p, q = some_part(dag, rng), rng.randint(1, 9), rng.randint(1, 9)
        found = flowing.cut(tasks, renders, p, q)
        assert sides_of(found) == another_cut(dag, tasks, renders, p, q)
        if found is None:
            check_flow(dag, flow, Module(tasks, renders, p, q))


@pytest.mark.parametrize("dag", [families.random_layered(12, 40, 2), families.out_mesh(30), families.butterfly(6)])
def test_modules_are_densest_in_turn_and_their_worth_flows(dag: Dag) -> None:
    shares = best_shares(dag)
    tasks, renders = (np.concatenate([getattr(m, part) for m in shares.modules]) for part in ("tasks", "renders"))
    assert sorted(tasks.tolist()) == np.flatnonzero(dag.outdegree > 0).tolist()
    assert sorted(renders.tolist()) == np.flatnonzero(dag.indegree > 0).tolist()
    assert all(a.p * b.q > b.p * a.q for a, b in zip(shares.modules, shares.modules[1:], strict=False))
    for module in shares.modules:
        check_flow(dag, shares.flow, module)
        assert another_cut(dag, module.tasks, module.renders, module.p, module.q) is None
    inside = sum(np.isin(dag.tails, m.tasks) & np.isin(dag.child, m.renders) for m in shares.modules)
    assert not shares.flow[np.asarray(inside) == 0].any()

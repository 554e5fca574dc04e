"""The two experiments of the comparison paper on one dag: areas of schedules, and polls in the batched game."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.families import butterfly, in_mesh, out_mesh, random_composition_blocks
from eligo.planning import plan
from eligo.rows import Ints
from eligo.simulation import batched, scheduler
from eligo.simulation.experiments import Progress, areas, spread, workers
from eligo.simulation.tables import Floats
from eligo.theory.eligibility import eligible_counts
from eligo.workflow import Workflow
from papers.compositions import LARGEST_BLOCK, bracketed_composition

ICO = "ready"  # the IC-optimal order
APART = "plan, other requests"  # the same against requests of its own, as every scheduler of the paper had
OTHER = 1_000_003  # the seed of these, so far away
#: the paper's three competitors, and GREEDY with the queue that its remark on FFT dags supposes
HEURISTICS = ("fifo", "lifo", "greedy", "greedy-fifo")
PAPER = HEURISTICS[:3]


class DagName(NamedTuple):
    """A dag of the paper: a familiar one by its levels, or a random composition by its target size and seed."""

    family: str
    size: int
    seed: int = 0


class AreaJob(NamedTuple):
    """Play the pebble game *runs* times under every heuristic."""

    name: DagName
    runs: int


class AreaPoint(NamedTuple):
    """The areas of one dag: the largest, which the IC-optimal order has, and those of every run."""

    name: DagName
    tasks: int
    best: int
    areas: dict[str, Floats]

    def lost(self, heuristic: str) -> Floats:
        """n Δ, run by run: how much area the heuristic gives up."""
        return self.best - self.areas[heuristic]


class PhaseJob(NamedTuple):
    """Play the batched game *runs* times under every scheduler."""

    name: DagName
    rate: float
    runs: int


class PhasePoint(NamedTuple):
    """The polls of one dag at one rate, for every run."""

    name: DagName
    tasks: int
    rate: float
    polls: dict[str, Floats]


def ideal(name: DagName) -> tuple[Dag, Ints]:
    """The dag, and an IC-optimal schedule: for a composition the one from its construction (Theorem 2.1)."""
    match name.family:
        case "fft":
            return planned(butterfly(name.size - 1))  # name.size levels of tasks
        case "reduction":
            return planned(in_mesh(name.size))
        case "evolving":
            return planned(out_mesh(name.size))
    kind, _, how = name.family.partition(" ")
    if how != "joined":
        return bracketed_composition(kind, name.size, name.seed, int(how or LARGEST_BLOCK))
    dag, pieces = random_composition_blocks(kind, name.size, name.seed)
    inner = [v for piece in pieces for v in piece.sources]
    return dag, np.concatenate([inner, np.flatnonzero(dag.outdegree == 0)]).astype(np.int32)


def planned(dag: Dag) -> tuple[Dag, Ints]:
    """A dag with the order of its plan."""
    return dag, plan(dag).sequence


def play_areas(job: AreaJob) -> AreaPoint:
    """The area experiment on one dag ([1]_, section 4.2)."""
    dag, order = ideal(job.name)
    flow = Workflow(dag)
    found = {}
    for name in HEURISTICS:
        found[name] = areas(scheduler(name, flow), job.runs, job.name.seed)
    return AreaPoint(job.name, len(dag), int(eligible_counts(dag, order).sum()), found)


def play_phases(job: PhaseJob) -> PhasePoint:
    """The batched-makespan experiment on one dag ([1]_, section 4.3): all schedulers meet the same requests."""
    dag, order = ideal(job.name)
    flow = Workflow(dag)
    polls = {
        name: np.asarray(batched(scheduler(name, flow, order), job.rate, job.runs, job.name.seed), np.float64)
        for name in (ICO, *HEURISTICS)
    }
    best_apart = batched(scheduler(ICO, flow, order), job.rate, job.runs, job.name.seed + OTHER)
    return PhasePoint(job.name, len(dag), job.rate, polls | {APART: np.asarray(best_apart, np.float64)})


def play_all(
    pebbles: Iterable[AreaJob], phases: Iterable[PhaseJob], processes: int, progress: Progress
) -> tuple[dict[DagName, AreaPoint], dict[tuple[DagName, float], PhasePoint]]:
    """Everything, spread over processes; the result does not depend on how many."""
    area_jobs, phase_jobs = list(pebbles), list(phases)
    total = len(area_jobs) + len(phase_jobs)
    found: dict[DagName, AreaPoint] = {}
    played: dict[tuple[DagName, float], PhasePoint] = {}
    with workers(processes) as executor:
        for point in spread(play_areas, area_jobs, executor, processes):
            found[point.name] = point
            progress(len(found), total)
        for phase in spread(play_phases, phase_jobs, executor, processes):
            played[phase.name, phase.rate] = phase
            progress(len(found) + len(played), total)
    return found, played

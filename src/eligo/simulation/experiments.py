"""Experiments: every cell is played once and stored as soon as it is finished.

All schedulers of a dag, a game and a seed have the same random requests and clients. Results depend only on the experiment,
not on the process that computes them or on their order. Cells are played in this process, in several processes of this
machine, or on a Dask cluster.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from eligo.allocating import PRUDENT, rules_with_times
from eligo.errors import EligoError, InputError
from eligo.estimates import Estimate, estimate
from eligo.finishing import earliest_finish
from eligo.formats import read_order
from eligo.planning import plan
from eligo.policies import PLAN_EFFORT, Policy
from eligo.prioritising import finishing_rules, soonest_on
from eligo.rows import Ints
from eligo.schedules import terms_of
from eligo.simulation import SCHEDULERS, Player, orders, profiles, rounds, scheduler, volatile
from eligo.simulation.settings import Cell, Experiment, Source, crowd_of
from eligo.simulation.steady import makespans
from eligo.simulation.tables import CellKey, Record, Results, record_of
from eligo.space.bounds import space_bound
from eligo.space.footprint import Footprint
from eligo.space.orders import space_order
from eligo.theory.eligibility import check_schedule
from eligo.workflow import Workflow

Job = TypeVar("Job")
Answer = TypeVar("Answer")

AHEAD = 4  # jobs queued for each process, so that no process waits
ON_DASK = "dask://"
MOST_PROCESSES = 4096
#: the measures of each game, the main one first
MEASURES = {
    "pebble": ("share", "area"),
    "batched": ("polls", "starved"),
    "volatile": ("makespan", "utilisation", "stalled", "wasted"),
    "steady": ("over", "makespan"),
    "space": ("over", "peak"),
}
MOST_COUNTS = 20_000_000  # counts of eligible tasks that are held in memory at once
ROWS = {game: len(measures) for game, measures in MEASURES.items()}

Values = NDArray[np.float64]
#: called with the number of finished cells and the number of all cells
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Planned:
    """A dag with the results of its plan; without its *flow* it is small enough to be sent to every process."""

    source: Source
    fingerprint: str
    sequence: Ints = field(compare=False)
    #: the order by which rules break ties
    ties: Ints = field(compare=False)
    area_bound: int
    #: the workflow if this process plays the cells; other processes read it from its source
    flow: Workflow | None = field(default=None, compare=False)

    def order_for(self, scheduler: str) -> Ints | None:
        """The plan's order that a scheduler follows, or None if it follows no plan."""
        return {"quick": self.ties, "normal": self.sequence}.get(PLAN_EFFORT.get(scheduler, ""))


class PlanJob(NamedTuple):
    """A dag to be planned, and its fingerprint; *flow* is the workflow if this process plays the cells."""

    source: Source
    fingerprint: str
    flow: Workflow | None


class CellJob(NamedTuple):
    """A cell to be played, and its key."""

    planned: Planned
    cell: Cell
    key: CellKey


def play_experiment(  # noqa: PLR0913, PLR0917
    experiment: Experiment,
    results: str | None = None,
    processes: int = 1,
    on: str | None = None,
    progress: Progress = lambda done, total: None,
    flows: Mapping[Source, Workflow] | None = None,
) -> list[Record]:
    """Play the experiment and return a row for every measure of every cell, in the order of the cells.

    *results* is a CSV or Parquet file that stores finished cells. Cells in it are not played again, so an experiment that was
    stopped resumes. The work is spread over this number of *processes*, or *on* a Dask cluster. *flows* has workflows that
    were read already; every process reads the others once.
    """
    store = Results(results, ROWS)
    marks = _Marks(flows or {})
    keys = {cell: marks.key(cell) for cell in experiment.cells() if marks.played(cell)}
    if not keys:
        missing = {"steady": "run times are not known, so steady workers cannot be simulated"}
        raise InputError(missing.get(experiment.games[0].name, "sizes of files between tasks are not known"))
    open_cells = [cell for cell, key in keys.items() if key not in store.cells]
    done = len(keys) - len(open_cells)
    progress(done, len(keys))
    sources = list(dict.fromkeys(cell.source for cell in open_cells))
    with workers(processes, on) as executor:
        plans = [PlanJob(source, marks.dag(source), None if executor else marks.flow(source)) for source in sources]
        planned = {each.source: each for each in spread(_plan_dag, plans, executor, processes)}
        jobs = (CellJob(planned[cell.source], cell, keys[cell]) for cell in open_cells)
        for records in spread(play_cell, jobs, executor, processes):
            store.add(records)
            done += 1
            progress(done, len(keys))
    return store.finish(keys.values())


class _Marks:
    """Fingerprints of dags with their run times and of orders in files; the orders are also checked here, before any game."""

    def __init__(self, flows: Mapping[Source, Workflow]) -> None:
        self._flows = dict(flows)
        self._marks: dict[Source, str] = {}
        self._timed: set[Source] = set()
        self._sized: set[Source] = set()
        self._orders: dict[tuple[Source, str], str] = {}

    def flow(self, source: Source) -> Workflow:
        """The workflow of a source; it is read once."""
        if source not in self._flows:
            self._flows[source] = source.load()
        return self._flows[source]

    def dag(self, source: Source) -> str:
        """The fingerprint of a source's dag, run times and sizes of files."""
        if source not in self._marks:
            flow = self.flow(source)
            if not len(flow):
                raise InputError(f"{source.label}: the workflow has no tasks")
            times = estimate(flow)
            past = "" if times.level == "nothing" else times.seconds.tobytes().hex()
            self._timed |= {source} if times.level == "seconds" else set()
            files = Footprint.of(flow)
            self._sized |= {source} if files.sized else set()
            self._marks[source] = _short(
                flow.dag.fingerprint() + past + (files.sizes.tobytes().hex() if files.sized else "")
            )
        return self._marks[source]

    def played(self, cell: Cell) -> bool:
        """Whether a cell can be played: steady workers need the run time of every task, and space needs sizes."""
        self.dag(cell.source)
        needed = {"steady": self._timed, "space": self._sized}.get(cell.game.name)
        return needed is None or cell.source in needed

    def key(self, cell: Cell) -> CellKey:
        """The key of a cell."""
        mark = self.dag(cell.source)
        if cell.scheduler not in SCHEDULERS:
            mark = self._order(cell.source, cell.scheduler)
        label = cell.game.label
        return CellKey(cell.source.label, mark, cell.scheduler, cell.game.name, label, cell.seed, cell.runs)

    def _order(self, source: Source, path: str) -> str:
        if (source, path) not in self._orders:
            order = read_order(path)
            try:
                check_schedule(self.flow(source).dag, order)
            except EligoError as error:
                raise InputError(f"{path}: no order for {source.label}: {error}") from None
            self._orders[source, path] = _short(self.dag(source) + "\n".join(order))
        return self._orders[source, path]


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


# Functions that other processes run; their arguments are plain data


def _plan_dag(job: PlanJob) -> Planned:
    workflow = job.source.load() if job.flow is None else job.flow
    best, ties = plan(workflow), plan(workflow, "quick").sequence
    return Planned(job.source, job.fingerprint, best.sequence, ties, best.area_bound, job.flow)


class _Arena:
    """A dag with the values that several of its cells share; each is computed once."""

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self.flow = planned.source.load() if planned.flow is None else planned.flow
        self._players: dict[str, Player] = {}
        self._bounds: dict[int, float] = {}

    @cached_property
    def times(self) -> Estimate:
        """The run times of the tasks."""
        return estimate(self.flow)

    @cached_property
    def rules(self) -> dict[str, Policy]:
        """The policies from which the one that finishes first on steady workers is chosen."""
        return finishing_rules(self.flow, self.planned.sequence, self.planned.ties)

    def player(self, name: str) -> Player:
        """The scheduler with this name."""
        if name not in self._players:
            self._players[name] = scheduler(name, self.flow, self.planned.order_for(name))
        return self._players[name]

    def bound(self, workers: int) -> float:
        """The lower bound on the finish on a number of steady workers."""
        if workers not in self._bounds:
            self._bounds[workers] = earliest_finish(self.flow, workers).seconds
        return self._bounds[workers]

    @cached_property
    def footprint(self) -> Footprint:
        """The files between tasks."""
        return Footprint.of(self.flow)

    @cached_property
    def least_space(self) -> int:
        """The lower bound on the bytes of files between tasks that exist at once."""
        return space_bound(self.footprint, space_order(self.footprint)).bytes

    def play(self, cell: Cell) -> dict[str, Values]:
        """The values of every measure of a cell, run by run."""
        game, player = cell.game, self.player(cell.scheduler)
        match game.name:
            case "pebble":
                area = areas(player, cell.runs, cell.seed)
                return {"share": area / max(1, self.planned.area_bound), "area": area}
            case "batched":
                polls, starved = rounds(player, game.rate, cell.runs, cell.seed)
                return {"polls": polls.astype(np.float64), "starved": starved}
            case "space":
                peak = peaks(player, self.footprint, cell.runs, cell.seed)
                return {"over": peak / max(1, self.least_space), "peak": peak}
            case "steady":
                ends = self._steady(cell)
                return {"over": ends / self.bound(game.workers), "makespan": ends}
            case _:
                return self._volatile(player, cell)

    def _steady(self, cell: Cell) -> Values:
        """The finish time on steady workers, run by run; "finish" is the order of a plan for these workers."""
        seconds, workers = self.times.seconds, cell.game.workers
        if cell.scheduler != "finish":
            return makespans(self.player(cell.scheduler), workers, seconds, cell.runs, cell.seed)
        return np.full(cell.runs, soonest_on(terms_of(self.flow, seconds, workers), self.rules).makespan)

    def _volatile(self, player: Player, cell: Cell) -> dict[str, Values]:
        clients, rules, times = crowd_of(cell.game)
        rules = rules_with_times(rules, self.flow) if rules is PRUDENT and times == "recorded" else rules
        seconds = None if times == "equal" else self.times.seconds
        played = volatile(player, clients, cell.runs, cell.seed, seconds, drawn=times == "drawn", rules=rules)
        return {measure: np.asarray(getattr(played, measure), np.float64) for measure in MEASURES["volatile"]}


#: two entries suffice because the cells of one dag are consecutive; a changed file has another fingerprint
_arena = lru_cache(maxsize=2)(_Arena)


def areas(player: Player, runs: int, seed: int) -> Values:
    """The area of every run, computed in chunks to limit memory."""
    step = max(1, MOST_COUNTS // (len(player.dag) + 1))
    parts = [profiles(player, range(i, min(i + step, runs)), seed) for i in range(0, runs, step)]
    return np.concatenate([part.sum(axis=1, dtype=np.int64) for part in parts]).astype(np.float64)


def peaks(player: Player, footprint: Footprint, runs: int, seed: int) -> Values:
    """The peak size of files between tasks in every run; a player without random choices is played once."""
    played = runs if isinstance(player, Policy) and player.drawn else 1
    each = (orders(player, range(i, i + 1), seed)[0] for i in range(played))
    return np.resize(np.array([footprint.peak(order) for order in each], np.float64), runs)


def play_cell(job: CellJob) -> list[Record]:
    """Play one cell and return a row for every measure."""
    arena = _arena(job.planned)
    return [record_of(job.key, len(arena.flow), measure, values) for measure, values in arena.play(job.cell).items()]


def with_absolute_paths(experiment: Experiment) -> Experiment:
    """The experiment with absolute paths, for machines of a cluster, whose current folder may differ."""
    sources = tuple(
        replace(
            source,
            path=None if source.path is None else os.path.abspath(source.path),
            histories=tuple(map(os.path.abspath, source.histories)),
        )
        for source in experiment.sources
    )
    names = tuple(name if name in SCHEDULERS else os.path.abspath(name) for name in experiment.schedulers)
    return replace(experiment, sources=sources, schedulers=names)


@contextmanager
def workers(processes: int = 1, on: str | None = None) -> Iterator[Executor | None]:
    """The executor for the work, with several processes or a Dask cluster; None means this process.

    Processes are spawned, so they share nothing with this process on any system.
    """
    if not 1 <= processes <= MOST_PROCESSES:
        raise InputError(f"processes must be an integer from 1 to {MOST_PROCESSES:,}, got {processes}")
    if on is not None:
        if not on.startswith(ON_DASK):
            raise InputError(f"a cluster must be given as {ON_DASK}HOST:PORT, got {on!r}")
        from eligo.interop.dask import dask_cluster

        with dask_cluster(on.removeprefix(ON_DASK)) as executor:
            yield executor
    elif processes == 1:
        yield None
    else:
        context = multiprocessing.get_context("spawn")
        executor = ProcessPoolExecutor(processes, mp_context=context, initializer=_leave_signals_alone)
        try:
            yield executor
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


def _leave_signals_alone() -> None:
    """Ignore Ctrl-C in a worker process; the process that collects the results handles it and stops the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def spread(
    function: Callable[[Job], Answer], jobs: Iterable[Job], executor: Executor | None, abreast: int
) -> Iterator[Answer]:
    """Yield the result of a function for each job, as jobs finish; only a limited number are submitted at once."""
    if executor is None:
        yield from map(function, jobs)
        return
    rest = iter(jobs)
    running: set[Future[Answer]] = set()
    while True:
        running |= {executor.submit(function, job) for job in islice(rest, AHEAD * abreast - len(running))}
        if not running:
            return
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()

"""The scores of an entrant on a workflow: how far its area, rounds, finish and peak are from certified bounds."""

from typing import NamedTuple

import numpy as np

from contest.entrants import Entrant, Floats
from eligo.estimates import estimate
from eligo.finishing import window_bound
from eligo.planning import plan
from eligo.policies import Policy
from eligo.pools import Pool
from eligo.schedules import terms_of
from eligo.simulation.pebble import run_seeds
from eligo.space.bounds import space_bound
from eligo.space.footprint import Footprint
from eligo.theory.eligibility import eligible_counts
from eligo.workflow import Workflow

CLIENTS = 16  # that ask at once in a round


class Scores(NamedTuple):
    """Gaps as shares of the bound, 0 at the bound; None if nothing is known to compute one."""

    #: of the area: how much of the largest possible is missing
    area: float
    #: of the rounds of `CLIENTS` clients, each with tasks of one round
    rounds: float
    #: of the finish on the workers, if all run times are known
    finish: float | None
    #: of the peak of bytes between tasks, one task at a time
    peak: float
    #: the share of requests that find nothing, above what no order avoids
    starved: float


class Arena:
    """A workflow with its bounds, which are computed once."""

    def __init__(self, flow: Workflow, workers: int) -> None:
        self.flow, self.workers, self.timed = flow, workers, estimate(flow).level == "seconds"
        best = plan(flow)
        self.area = best.area_bound
        self.units, self.seconds = np.ones(len(flow)), estimate(flow).seconds
        self.rounds = max(window_bound(flow.dag, self.units, (1.0,) * CLIENTS).seconds, len(flow) / CLIENTS)
        self.finish = window_bound(flow.dag, self.seconds, (1.0,) * workers).seconds
        self.footprint = Footprint.of(flow)
        self.peak = space_bound(self.footprint, best.sequence).bytes

    def scores(self, entrant: Entrant) -> Scores:
        """The gaps of an entrant."""
        rule = entrant(self.flow, self.workers)
        order = rule.order()
        rounds = self._makespan(rule, CLIENTS, self.units)
        asked, least = rounds * CLIENTS, np.ceil(self.rounds - 1e-6) * CLIENTS
        return Scores(
            area=1 - int(eligible_counts(self.flow.dag, order).sum()) / max(1, self.area),
            rounds=rounds / np.ceil(self.rounds - 1e-6) - 1,
            finish=self._makespan(rule, self.workers, self.seconds) / self.finish - 1
            if self.timed and self.finish
            else None,
            peak=self.footprint.peak(order) / self.peak - 1 if self.peak else 0.0,
            starved=(asked - least) / asked,
        )

    def _makespan(self, rule: Policy, workers: int, seconds: Floats) -> float:
        terms = terms_of(self.flow, seconds, Pool.of(workers))
        return float(terms.played(rule.board(), run_seeds(1, 0)[0]).makespan)

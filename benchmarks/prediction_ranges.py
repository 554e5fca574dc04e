"""How often predicted ranges hold, on pairs of recorded runs: `TRACES=FOLDER python -m benchmarks prediction_ranges`.

The folder has traces such as those of WfCommons, called APPLICATION-MACHINE-INPUT-NUMBER.json. For every trace, another
run of the same application is the history: with the same input, else with a random other one. The names' hashes divide
the traces: `ELSEWHERE` and `AGAIN` of `eligo.predictions` were fitted to one half, and the other half is reported too.
"""

import hashlib
import math
import os
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eligo.estimates import all_kinds, estimate, with_records, without_seconds
from eligo.formats import read
from eligo.pools import Pool
from eligo.predictions import predicted_finish
from eligo.prioritising import numbered_order
from eligo.schedules import terms_of
from eligo.workflow import Workflow

POOLS = (4, 16, 64)
MOST_TASKS = 4_000


class Trial(NamedTuple):
    """A predicted finish beside the real one: the simulated finish of the same order with the recorded times."""

    fitted: bool
    same_input: bool
    application: str
    name: str
    pool: int
    predicted: float
    actual: float
    holds: bool

    @property
    def error(self) -> float:
        """The relative error."""
        return abs(self.predicted / self.actual - 1)


def hashed(text: str) -> str:
    """A hash that is the same everywhere."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_fitted(name: str) -> bool:
    """Whether a trace is in the half that the constants were fitted to."""
    return bool(int(hashed(name)[:2], 16) & 1)


def input_of(name: str) -> str:
    """The name without the number of the repetition."""
    return name.rpartition("-")[0]


def timed_flows(folder: Path) -> dict[str, Workflow]:
    """The workflows of the traces with run times, by name."""
    flows = {path.name.partition(".json")[0]: read(str(path)) for path in sorted(folder.glob("*.json*"))}
    return {
        name: flow for name, flow in flows.items() if 2 < len(flow) <= MOST_TASKS and estimate(flow).level == "seconds"
    }


def pairs(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each trace with another of the same application and half: with the same input, and with another input."""
    for name in names:
        alike = [
            other
            for other in names
            if other != name and other.split("-")[0] == name.split("-")[0] and is_fitted(other) == is_fitted(name)
        ]
        for same in (True, False):
            others = [other for other in alike if (input_of(other) == input_of(name)) == same]
            if others:
                yield name, min(others, key=lambda other: hashed(name + other))


def trials(flows: dict[str, Workflow]) -> Iterator[Trial]:
    """The trials of all pairs on all pools."""
    for name, other in pairs(list(flows)):
        flow, past = without_seconds(flows[name]), flows[other]
        records = zip(past.dag.tasks, all_kinds(past), estimate(past).seconds.tolist(), strict=True)
        taught = with_records(flow, list(records))
        times, actual = estimate(taught), estimate(flows[name]).seconds
        sequence = numbered_order(taught, "finish")
        for pool in POOLS:
            prediction = predicted_finish(taught, times, Pool.of(pool), sequence)
            end = terms_of(flow, actual, pool).listed(sequence).makespan
            if prediction is not None and end:
                inside = prediction.low <= end <= prediction.high
                same = input_of(name) == input_of(other)
                yield Trial(is_fitted(name), same, name.split("-")[0], name, pool, prediction.seconds, end, inside)


def report(results: Sequence[Trial]) -> None:
    """Print coverage and errors of both halves, by application, and the largest misses."""
    for same in (True, False):
        for fitted in (True, False):
            some = [trial for trial in results if (trial.same_input, trial.fitted) == (same, fitted)]
            what = f"{'same' if same else 'other'} input, {'fitted' if fitted else 'held out'}"
            show(what, some)
            for application in sorted({trial.application for trial in some} if not fitted else ()):
                show(f"  {application}", [trial for trial in some if trial.application == application])
    misses = sorted((t for t in results if not t.fitted), key=lambda t: -abs(math.log(t.predicted / t.actual)))
    for trial in misses[:10]:
        print(f"{trial.name} on {trial.pool}: {trial.predicted:.0f} s predicted, {trial.actual:.0f} s simulated")


def show(what: str, some: Sequence[Trial]) -> None:
    """Print one row."""
    if some:
        error = statistics.median(trial.error for trial in some)
        share = sum(trial.holds for trial in some) / len(some)
        print(
            f"{what}: {len({t.name for t in some})} traces, {len(some)} cells, median error {error:.1%}, held {share:.0%}"
        )


def run() -> None:
    """Measure and print."""
    report([*trials(timed_flows(Path(os.environ["TRACES"])))])

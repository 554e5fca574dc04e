"""DAGMan hands out nodes in the order that eligo planned, when it may have one job at a time."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from condor_pool import Pool, Run, is_join

pytest_plugins = ["condor_fixtures"]

ELIGO = str(Path(sys.executable).with_name("eligo"))
SECONDS = 180
NODE_SUB = """\
executable = /bin/sh
arguments = "-c 'echo $(JOB) >> ran.txt'"
transfer_executable = False
should_transfer_files = NO
log = node.log
queue
"""


def nodes(*names: str) -> str:
    """A node each that DAGMan orders and submits, but does not run."""
    return "".join(f"JOB {name} node.sub NOOP\n" for name in names)


# Left to itself, DAGMan begins with the nodes that lead nowhere and comes to fan last.
PLAIN = (
    nodes("lone", "pair1", "pair2", "both", "long1", "long2", "fan", "a", "b", "c")
    + "PARENT pair1 pair2 CHILD both\nPARENT long1 CHILD long2\nPARENT fan CHILD a b c\n"
)
FEW = nodes("lone", "rest", "fan", "a", "b", "c") + "PARENT fan CHILD a b c\n"
INNER = nodes("tail", "head", "x", "y") + "PARENT head CHILD x y\n"
NESTED = {
    "inner.dag": INNER,
    "middle.dag": "SPLICE first inner.dag\nSPLICE second inner.dag\n",
    "user.dag": "SPLICE S middle.dag\nSPLICE T inner.dag\n" + nodes("go") + "PARENT go CHILD T\n",
}
MANY = nodes("lone", "rest", "p", "q", "r", "s", "t", "end") + "PARENT p q CHILD r s t\nPARENT r s t CHILD end\n"
MANY_SPLICES = {
    "inner.dag": nodes("a", "b", "c", "d") + "PARENT a b CHILD c d\n",
    "user.dag": nodes("lone", "last") + "SPLICE S inner.dag\nSPLICE T inner.dag\nPARENT S CHILD T last\n",
}
WISHES = {"lone": 7, "c": 7, "fan": -2, "long1": -2}
WITH_WISHES = PLAIN + "".join(f"PRIORITY {name} {number}\n" for name, number in WISHES.items())


@dataclass(frozen=True)
class Case:
    """Files, one of them user.dag; how to plan it; what to submit, and how."""

    files: Mapping[str, str]
    plan: Sequence[str] = ("-o", "prio.dag")
    submit: Sequence[str] = ("-maxjobs", "1", "prio.dag")


CASES = {
    "plain": Case({"user.dag": PLAIN}),
    "nested splices": Case(NESTED),
    "many to many": Case({"user.dag": MANY}),
    "many to many splices": Case(MANY_SPLICES),
    "one priority for all": Case({"user.dag": MANY + "PRIORITY ALL_NODES -100\n"}),
    "done": Case({"user.dag": PLAIN.replace("JOB fan node.sub NOOP", "JOB fan node.sub NOOP DONE")}),
    "rescued before": Case({"user.dag": MANY, "user.dag.rescue001": "DONE p\nDONE q\n"}),
    "overridden": Case({"user.dag": WITH_WISHES}, plan=("-o", "prio.dag", "--override")),
    "in place": Case({"user.dag": PLAIN}, ("--in-place",), ("-maxjobs", "1", "user.dag")),
    "in place and many": Case({"user.dag": MANY}, ("--in-place",), ("-maxjobs", "1", "user.dag")),
    "own throttle": Case(
        {"user.dag": "CONFIG one.conf\n" + PLAIN, "one.conf": "DAGMAN_MAX_JOBS_SUBMITTED = 1\n"}, submit=("prio.dag",)
    ),
}
OTHERS = {
    "final": Case({"user.dag": MANY + "FINAL finally node.sub NOOP\n"}),
    "rescued": Case({"user.dag": PLAIN, "prio.dag.rescue001": "DONE fan\nDONE b\n"}),
    "wishes": Case({"user.dag": WITH_WISHES}),
    "real jobs": Case({"user.dag": FEW.replace(" NOOP", "")}),
    "plain as it is": Case({"user.dag": PLAIN}, (), ("-maxjobs", "1", "user.dag")),
    "splices as they are": Case(NESTED, (), ("-maxjobs", "1", "user.dag")),
}


@dataclass(frozen=True)
class Outcome:
    """What eligo planned, and what DAGMan did with it."""

    planned: list[str]
    run: Run


def plan(folder: Path, *options: str) -> list[str]:
    """The order of `eligo plan user.dag`, run as a user would."""
    command = [ELIGO, "plan", "user.dag", "--json", "--policy", "ready", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    order: list[str] = json.loads(done.stdout)["order"]
    return [name for name in order if not is_join(name)]


def play(pool: Pool, name: str, case: Case) -> Outcome:
    """Plan a case, and let DAGMan work through it to the end."""
    folder = pool.folder(f"order {name}", {"node.sub": NODE_SUB, **case.files})
    planned = plan(folder, *case.plan)
    run = pool.submit(folder / case.submit[-1], *case.submit[:-1])
    pool.wait(run, SECONDS)
    assert run.status == 0, run.last_words
    return Outcome(planned, run)


def job_priorities(pool: Pool, count: int, seconds: float = 20) -> dict[str, int]:
    """The priority of each node's job, once the schedd has written that many of them into its history."""
    of_nodes = ["-constraint", "DAGNodeName =!= undefined"]
    give_up = time.monotonic() + seconds
    while True:
        lines = pool.run("condor_history", "-af", "DAGNodeName", "JobPrio", *of_nodes).splitlines()
        if len(lines) >= count or time.monotonic() > give_up:
            return {name: int(number) for name, number in map(str.split, lines)}
        time.sleep(0.5)


@pytest.fixture(scope="module")
def outcomes(pool: Pool) -> Iterator[dict[str, Future[Outcome]]]:
    """Every case, all at the same time: DAGMan takes two seconds for each node of each."""
    cases = CASES | OTHERS
    with ThreadPoolExecutor(len(cases)) as threads:
        yield {name: threads.submit(play, pool, name, case) for name, case in cases.items()}


@pytest.mark.parametrize("name", CASES)
def test_nodes_are_submitted_in_the_order_of_the_plan(outcomes: dict[str, Future[Outcome]], name: str) -> None:
    outcome = outcomes[name].result()
    assert outcome.run.submitted == outcome.planned


def test_the_final_node_is_last(outcomes: dict[str, Future[Outcome]]) -> None:
    outcome = outcomes["final"].result()
    assert outcome.run.submitted == [*outcome.planned, "finally"]


def test_a_rescued_dag_goes_on_in_the_order_of_the_plan(outcomes: dict[str, Future[Outcome]]) -> None:
    outcome = outcomes["rescued"].result()
    assert outcome.run.submitted == [name for name in outcome.planned if name not in {"fan", "b"}]


def test_priorities_of_the_user_come_first(outcomes: dict[str, Future[Outcome]]) -> None:
    """Among ready nodes the user's number decides, and the plan only among nodes with the same number."""
    outcome = outcomes["wishes"].result()
    left: list[str] = list(outcome.planned)
    expected: list[str] = []
    parents = {"both": {"pair1", "pair2"}, "long2": {"long1"}, "a": {"fan"}, "b": {"fan"}, "c": {"fan"}}
    while left:
        ready = [name for name in left if parents.get(name, set()) <= set(expected)]
        best = max(ready, key=lambda name: WISHES.get(name, 0))
        left.remove(best)
        expected.append(best)
    assert outcome.run.submitted == expected


@pytest.mark.parametrize("name", ["plain as it is", "splices as they are"])
def test_without_priorities_the_order_is_another(outcomes: dict[str, Future[Outcome]], name: str) -> None:
    """Otherwise the tests above would say nothing."""
    outcome = outcomes[name].result()
    assert sorted(outcome.run.submitted) == sorted(outcome.planned)
    assert outcome.run.submitted != outcome.planned


def test_real_jobs_run_in_the_order_of_the_plan(outcomes: dict[str, Future[Outcome]], pool: Pool) -> None:
    """The jobs write their names; the schedd knows them by the same priorities, the first one's largest."""
    outcome = outcomes["real jobs"].result()
    assert (outcome.run.dag.parent / "ran.txt").read_text("utf-8").split() == outcome.planned
    numbers = job_priorities(pool, len(outcome.planned))
    priorities = [numbers[name] for name in outcome.planned]
    assert priorities == sorted(set(priorities), reverse=True)

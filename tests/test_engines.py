"""What every engine must do, tried on the real ones.

Ray and Parsl may listen on every address of a machine: they are tried in a network of their own, which has only loopback, by
running this file there once more for each.
"""

import itertools
import math
import multiprocessing
import operator
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import engine_tasks
from eligo import families, policies
from eligo.allocating import Allocator, Ask, ByPolicy, allocator
from eligo.allocating.rooms import Room
from eligo.dag import Dag
from eligo.engines import Command, Ending, Engine, Function, Job, Work
from eligo.engines.dask import DaskEngine
from eligo.engines.futures import FutureEngine, on_executor
from eligo.engines.job_run import ending_of, perform
from eligo.engines.local import LocalEngine
from eligo.engines.registry import engine_on
from eligo.engines.room import Wants
from eligo.engines.sessions import POOL, marked_processes
from eligo.engines.threads import ThreadEngine
from eligo.engines.worker import Performed
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.names import Name
from eligo.running.commands import Commands
from eligo.running.loop import Runner, Settings
from eligo.work.tries import Retries
from eligo.workflow import Task, Workflow
from wild_words import SCRIPT, named, wild

SLOTS = 2
MOST_SECONDS = 300.0
SOON = Retries(first=0.01)
ONCE = Retries(most=0, first=0.01)
INSIDE = os.environ.get("ELIGO_TEST_ENGINE")  # set where this file runs in a network of its own
LOOPBACK_ONLY = ("ray", "parsl")
NAMES = [INSIDE] if INSIDE else ["local", "threads", "processes", "dask"]
PACKAGES = {"dask": "distributed", "ray": "ray", "parsl": "parsl"}


def needed(name: str) -> None:
    if PACKAGES.get(name) is not None and find_spec(PACKAGES[name]) is None:
        pytest.skip(f'NOT TESTED: the engine {name} needs pip install "eligo[{name}]"')


class OwnExecutor(FutureEngine):
    """An engine with an executor of its own, which is made again if it breaks."""

    def __init__(self, make: Callable[[], Executor], slots: int, name: str, room: Room | None = None) -> None:
        super().__init__(self._submit_job, slots, name, room)
        self._make, self._executor = make, make()

    def _submit_job(self, job: Job, mark: str) -> "Future[Any]":
        try:
            return self._executor.submit(perform, job.works, job.timeout, mark)
        except BrokenExecutor:
            self.free()
            self._executor = self._make()
            return self._executor.submit(perform, job.works, job.timeout, mark)

    def free(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


def made(name: str, slots: int, folder: Path, **options: Any) -> Engine:
    needed(name)
    if name == "threads":
        return OwnExecutor(lambda: ThreadPoolExecutor(slots), slots, "thread", **options)
    if name == "processes":
        spawn = multiprocessing.get_context("spawn")
        return OwnExecutor(lambda: ProcessPoolExecutor(slots, mp_context=spawn), slots, "process", **options)
    return engine_on(name, slots, scratch=str(folder), **options)


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    needed(request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def engine(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    running = made(name, SLOTS, tmp_path_factory.mktemp(name))
    yield running
    running.close()


@pytest.fixture(scope="module")
def narrow(name: str, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The same with one worker. When it is closed, nothing that runs there goes on."""
    running = made(name, 1, tmp_path_factory.mktemp(name))
    yield running
    (ask, *_) = running.asks()
    running.start(Job(1, ask.client, ("a",), (Command(("/bin/sleep", nap(3175)), "/"),)))
    deadline = time.monotonic() + 20
    while not sleepers(nap(3175)) and time.monotonic() < deadline:
        running.wait(0.05)
    assert sleepers(nap(3175))
    running.close()
    assert no_sleepers(nap(3175))


def slack_of(engine: Engine) -> int:
    """How many tasks may begin out of order."""
    return int(getattr(engine, "slack", 0))


class Fat:
    """An engine whose clients ask for several tasks at once."""

    def __init__(self, engine: Engine, size: int) -> None:
        self._engine, self._size = engine, size
        self.name, self.slack = engine.name, slack_of(engine)
        self.start, self.wait, self.cancel, self.close = engine.start, engine.wait, engine.cancel, engine.close

    def asks(self) -> Sequence[Ask]:
        return [replace(ask, size=self._size) for ask in self._engine.asks()]


def runner(engine: Engine, flow: object, work: Callable[[Name, int], Work], **options: Any) -> Runner:
    """A run to its end; one that does not come to an end is stopped."""
    game = Execution(flow)
    alloc: Allocator = options.pop("allocator", None) or allocator("fifo", game.dag, game, rules=None)
    deadline = time.monotonic() + MOST_SECONDS
    watch = options.pop("watch", lambda runner: None)

    def watched(running: Runner) -> None:
        if time.monotonic() > deadline:
            running.abort()
        watch(running)

    settings = Settings(retries=options.pop("retries", SOON), timeout=options.pop("timeout", None))
    found = Runner(alloc.execution, alloc, engine, work, settings=settings, watch=watched, **options)
    found.run()
    assert time.monotonic() < deadline
    assert not found.running
    return found


def sh(script: str, *arguments: str, folder: str = "/", **environment: str) -> Command:
    return Command(("/bin/sh", "-c", script, "sh", *arguments), folder, environment)


def nap(seconds: int) -> str:
    """So many seconds to sleep, as nobody but these tests does."""
    return f"{seconds}.{os.getpid()}"


def sleepers(seconds: str) -> list[int]:
    """The processes that sleep exactly so long."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if seconds.encode() in place.read_bytes().split(b"\0"):
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


def no_sleepers(seconds: str, within: float = 3.0) -> bool:
    deadline = time.monotonic() + within
    while sleepers(seconds) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not sleepers(seconds)


# Commands

AWKWARD = [
    "a b",
    "it's",
    '"quoted"',
    "$(touch pwned)",
    "`touch pwned`",
    "../up",
    "-n",
    "é\udcff",
    "new\nline",
    "*",
    "~",
    "",
]


def test_commands_run_with_their_own_words_files_and_surroundings(engine: Engine, tmp_path: Path) -> None:
    work, logs = tmp_path / "work", tmp_path / "logs"
    work.mkdir()
    script = (
        'n="$1"; shift; for w; do printf "%s\\0" "$w"; done > "out.$n"; cat >> "out.$n"; '
        'echo "said $n"; echo "told $n" >&2; printf "%s|%s|%s" "$PWD" "$ELIGO_TASK" "$ELIGO_ATTEMPT" > "env.$n"'
    )
    names = [f"task {word!r}" for word in AWKWARD]
    arcs = {name: names[:i][-2:] for i, name in enumerate(names)}
    details = {
        name: Task(name=name, command=("/bin/sh", "-c", script, "sh", str(i), *AWKWARD)) for i, name in enumerate(names)
    }
    flow = Workflow(Dag.from_parents(arcs), details)
    commands = Commands(flow, str(work), str(logs))
    commands.make_folders()
    done = runner(engine, flow.dag, commands)
    assert not done.failures
    assert len(done.execution.executed) == len(names)
    for i, name in enumerate(names):
        assert (work / f"out.{i}").read_bytes() == b"".join(os.fsencode(word) + b"\0" for word in AWKWARD)
        assert (work / f"env.{i}").read_text("utf-8", "surrogateescape") == f"{work}|{name}|1"
        out, err = (Path(path).read_text("utf-8") for path in commands.log(name, 1))
        assert (out, err) == (f"said {i}\n", f"told {i}\n")
    assert not list(tmp_path.rglob("pwned"))


def test_wild_words_arrive_byte_for_byte(engine: Engine, tmp_path: Path) -> None:
    """As names and as arguments, of which a task has many; tests/test_wild_words.py tries more of them."""
    names, words = named(20, 28), wild(400, 29)
    parts = {name: words[i::20] for i, name in enumerate(names)}
    begin = ("/bin/sh", "-c", SCRIPT, str(tmp_path))
    details = {name: Task(name=name, command=(*begin, str(i), *parts[name])) for i, name in enumerate(names)}
    flow = Workflow(Dag.from_parents({name: [] for name in names}), details)
    commands = Commands(flow, str(tmp_path), str(tmp_path / "logs"))
    commands.make_folders()
    assert not runner(engine, flow.dag, commands, retries=ONCE).failures
    for i, name in enumerate(names):
        assert (tmp_path / str(i)).read_bytes() == b"".join(os.fsencode(one) + b"\0" for one in (name, *parts[name]))
    assert not list(tmp_path.rglob("pwned"))


def test_what_becomes_of_a_command_is_told(engine: Engine, tmp_path: Path) -> None:
    works = {
        "fine": sh("exit 0"),
        "three": sh("exit 3"),
        "killed": sh("kill -9 $$"),
        "odd signal": sh("kill -40 $$"),
        "no program": Command(("/no/such/program",), "/"),
        "no folder": Command(("/bin/true",), str(tmp_path / "nowhere")),
        "no word": Command(("/bin/echo", "a\0b"), "/"),
    }
    done = runner(engine, {name: [] for name in works}, lambda task, attempt: works[task], retries=ONCE)
    told = {
        task: (ending.attempt.code, ending.attempt.failure, ending.attempt.lost)
        for task, ending in done.failures.items()
    }
    assert list(done.execution.executed) == ["fine"]
    assert told["three"] == (3, "exit code 3", False)
    assert told["killed"] == (-9, "ended by SIGKILL", False)
    assert told["odd signal"] == (-40, "ended by signal 40", False)
    assert told["no program"] == (127, "cannot run '/no/such/program': No such file or directory", False)
    assert str(tmp_path / "nowhere") in str(told["no folder"][1])
    assert told["no word"][:2] == (127, "cannot run '/bin/echo': embedded null byte")
    assert all(ending.attempt.began <= ending.attempt.ended <= time.time() for ending in done.failures.values())


def test_a_command_may_print_a_lot(engine: Engine, tmp_path: Path) -> None:
    out = tmp_path / "much"
    work = replace(sh("head -c 50000000 /dev/zero"), out=str(out))
    done = runner(engine, {"a": []}, lambda task, attempt: work)
    assert not done.failures
    assert out.stat().st_size == 50_000_000


def test_nothing_that_a_command_started_outlives_it(engine: Engine) -> None:
    done = runner(
        engine, {"a": []}, lambda task, attempt: sh("(trap '' TERM; exec sleep $1) & sleep $1 & exit 0", nap(3171))
    )
    assert list(done.execution.executed) == ["a"]
    assert no_sleepers(nap(3171))


def test_what_takes_too_long_is_stopped(name: str, engine: Engine) -> None:
    """One that does not listen costs its period of grace, and is tried where the code differs."""
    works = {"slow": sh("sleep $1 & wait", nap(3172)), "quick": sh("exit 0")}
    if name in {"local", "threads"}:
        works["deaf"] = sh("trap '' TERM; sleep $1; sleep $1", nap(3172))
    done = runner(engine, {task: [] for task in works}, lambda task, attempt: works[task], retries=ONCE, timeout=0.4)
    assert list(done.execution.executed) == ["quick"]
    assert {ending.attempt.failure for ending in done.failures.values()} == {"took longer than 0.4 s"}
    assert done.failures["slow"].attempt.ended - done.failures["slow"].attempt.began < 3.0
    assert no_sleepers(nap(3172))


# Order


def test_with_one_worker_tasks_begin_in_order(narrow: Engine, tmp_path: Path) -> None:
    begun, order = started(narrow, tmp_path, "0.04")
    assert list(begun) == order


def test_with_more_workers_no_better_task_waits(engine: Engine, tmp_path: Path) -> None:
    """Another worker may have become free just before this was known of a better task."""
    begun, order = started(engine, tmp_path, "0.2")
    assert most_overtaken(begun, order, BLUR) <= slack_of(engine) + SLOTS - 1, (list(begun), order)


def test_what_waits_in_a_queue_and_is_cancelled_never_begins(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brief tasks are handed over ahead, as far as the engine says; all that is cancelled is told of."""
    monkeypatch.setattr(engine, "brief", MOST_SECONDS, raising=False)  # brief, however busy the machine is
    runner(engine, {i: [] for i in range(30)}, lambda task, attempt: sh("exit 0"))
    asks = engine.asks()
    assert len(asks) == SLOTS + slack_of(engine)
    long = [Job(i, ask.client, (i,), (Command(("/bin/sleep", nap(3177)), "/"),)) for i, ask in enumerate(asks[:SLOTS])]
    waiting = [
        Job(SLOTS + i, ask.client, (i,), (sh('touch "$1"', str(tmp_path / str(i))),), -i)
        for i, ask in enumerate(asks[SLOTS:])
    ]
    for job in (*long, *waiting):
        engine.start(job)
    deadline, ended = time.monotonic() + MOST_SECONDS, list[Ending]()
    while len(sleepers(nap(3177))) < SLOTS:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    engine.cancel(waiting)
    engine.cancel(long)
    while len(ended) < SLOTS + slack_of(engine):
        assert time.monotonic() < deadline
        ended += engine.wait(0.1)
    assert {ending.attempt.failure for ending in ended} == {"stopped"}
    assert no_sleepers(nap(3177))
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    runner(engine, {i: [] for i in range(5)}, lambda task, attempt: Command(("/bin/sleep", "0.1"), "/"))
    assert len(engine.asks()) == SLOTS


BLUR = 150_000_000  # nanoseconds: as much as two workers of a busy machine differ in how soon they begin
Times = dict[Name, tuple[int, int, int]]


def started(engine: Engine, folder: Path, seconds: str) -> tuple[Times, list[Name]]:
    """When tasks were ready, began and ended, by what they wrote down, in the order in which they began; and the order that
    was wanted, which is far from first come first served."""
    dag = families.random_layered(6, 6, seed=3)
    game, order = Execution(dag), list(dag.named(policies.lifo(dag).order()))

    def work(task: Name, attempt: int) -> Command:
        return sh('date +%s%N > "$1"; sleep "$2"; date +%s%N >> "$1"', str(folder / str(task)), seconds)

    decider = ByPolicy(policies.from_order(dag, order), game)
    done = runner(engine, dag, work, allocator=decider)
    assert not done.failures
    spans = {task: tuple(map(int, (folder / str(task)).read_text("utf-8").split())) for task in dag.tasks}
    parents = {task: dag.named(dag.parents_of(dag.number(task))) for task in dag.tasks}
    ready = {task: max([0, *(spans[other][1] for other in parents[task])]) for task in dag.tasks}
    return {task: (ready[task], spans[task][0], spans[task][1]) for task in sorted(spans, key=spans.__getitem__)}, order


def most_overtaken(begun: Times, wanted: list[Name], blur: int) -> int:
    """The most tasks that began while a better one was ready."""
    place = {task: i for i, task in enumerate(wanted)}
    return max(
        sum(ready + blur < when < began - blur and place[other] > place[task] for other, (_, when, _) in begun.items())
        for task, (ready, began, _) in begun.items()
    )


# Failures


def test_failures_are_tried_again_and_poison_is_set_aside(engine: Engine) -> None:
    flow = {"ok": [], "flaky": ["ok"], "after": ["flaky"], "poison": [], "doomed": ["poison"], "too": ["doomed", "ok"]}

    def work(task: Name, attempt: int) -> Command:
        bad = {"flaky": 'test "$ELIGO_ATTEMPT" -ge 3', "poison": "exit 7"}
        return sh(bad.get(str(task), "exit 0"), ELIGO_ATTEMPT=str(attempt))

    done = runner(engine, flow, work)
    assert set(done.execution.executed) == {"ok", "flaky", "after"}
    assert (set(done.execution.failed), set(done.execution.blocked)) == ({"poison"}, {"doomed", "too"})
    assert tuple(map(done.attempts_at, ("flaky", "poison", "after"))) == (
        3,
        3,
        0,
    )  # of what went well at once nothing is kept
    assert done.failures["poison"].attempt.code == 7


def test_a_lost_worker_costs_its_task_an_attempt_and_no_more(name: str, engine: Engine) -> None:
    """And what it ran does not go on beside the next attempt."""
    if name in {"local", "threads"}:
        pytest.skip("the worker of a task is this process")
    works = {"victim": 'test "$ELIGO_ATTEMPT" -gt 1 || { kill -9 $PPID; exec sleep $1; }', "killer": "kill -9 $PPID"}

    def work(task: Name, attempt: int) -> Command:
        return sh(works.get(str(task), "exit 0"), nap(3173), ELIGO_ATTEMPT=str(attempt))

    flow = {"victim": [], "after": ["victim"], "killer": ["after"], "doomed": ["killer"], "other": ["victim"]}
    done = runner(engine, flow, work, retries=Retries(lost=2, first=0.01))
    assert set(done.execution.executed) == {"victim", "after", "other"}
    assert done.attempts_at("victim") == 2
    assert done.attempts_at("killer") == 3
    assert done.failures["killer"].attempt.lost
    assert done.execution.blocked == ("doomed",)
    assert no_sleepers(nap(3173))


def test_a_function_that_takes_its_worker_down_is_tried_again(name: str, engine: Engine, tmp_path: Path) -> None:
    if name in {"local", "threads"}:
        pytest.skip("the worker of a task is this process")
    done = runner(engine, {"a": []}, lambda task, attempt: Function(engine_tasks.dies, (str(tmp_path / "seen"),)))
    assert done.values == {"a": "alive"}
    assert done.attempts_at("a") == 2


def test_what_runs_is_stopped_and_may_go_on_later(engine: Engine) -> None:
    def stop(running: Runner) -> None:
        if len(sleepers(nap(3174))) >= SLOTS and not running.stopping:
            running.abort()

    flow: dict[Name, list[Name]] = {str(i): [] for i in range(5)}
    begin = time.monotonic()
    done = runner(engine, flow, lambda task, attempt: Command(("/bin/sleep", nap(3174)), "/"), watch=stop)
    assert time.monotonic() - begin < MOST_SECONDS
    assert no_sleepers(nap(3174))
    assert not done.failures
    assert len(done.execution.eligible) == 5
    again = runner(engine, flow, lambda task, attempt: sh("exit 0"))
    assert len(again.execution.executed) == 5


def test_a_worker_that_hangs_keeps_nobody_from_stopping(name: str) -> None:
    if name != "dask":
        pytest.skip("only there what is stopped is told by a worker that the test can find")
    own = made(name, 1, Path())
    assert isinstance(own, DaskEngine)
    (worker,) = own._client.run(os.getpid).values()

    def stop(running: Runner) -> None:
        if sleepers(nap(3178)) and not running.stopping:
            os.kill(worker, signal.SIGSTOP)
            running.abort()

    begin = time.monotonic()
    done = runner(own, {"a": []}, lambda task, attempt: Command(("/bin/sleep", nap(3178)), "/"), watch=stop)
    assert time.monotonic() - begin < 100.0
    assert list(done.execution.eligible) == ["a"]
    os.kill(worker, signal.SIGCONT)
    own.close()
    assert no_sleepers(nap(3178))


def test_a_worker_whose_connection_breaks_is_replaced(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name != "dask":
        pytest.skip("the only engine that sends jobs to its workers over connections")
    own = made(name, 1, Path())
    assert isinstance(own, DaskEngine)
    run, broken = own._client.run, list[str]()

    def break_once(*args: Any, **options: Any) -> Any:
        if broken:
            return run(*args, **options)
        broken.extend(options["workers"])
        return failing()

    async def failing() -> Any:
        raise OSError("the connection is broken")

    monkeypatch.setattr(own._client, "run", break_once)
    done = runner(own, {"a": []}, lambda task, attempt: Function(len, ("abc",)))
    assert done.values == {"a": 3}
    assert broken
    own.close()


# Several tasks at once


def test_all_tasks_of_a_grant_are_acknowledged(engine: Engine) -> None:
    flow = {"a": [], "b": ["a"], "c": ["b"], "x": [], "y": ["x"], "z": ["y"]}

    def work(task: Name, attempt: int) -> Command:
        return sh('test "$1" != y || test "$2" -gt 1', str(task), str(attempt))

    done = runner(Fat(engine, 3), flow, work)
    assert set(done.execution.executed) == set(flow)
    assert done.attempts_at("y") == 2
    assert list(done.tries.begun) == [done.execution.graph.number("y")]


# Functions


@pytest.fixture
def calling(name: str, engine: Engine, tmp_path: Path) -> Iterator[Engine]:
    """The engine for functions: on this machine, threads."""
    if name != "local":
        yield engine
        return
    own = engine_on("local", SLOTS, functions=True)
    yield own
    own.close()


def test_functions_bring_values_and_exceptions(name: str, calling: Engine) -> None:
    works = {
        "async": Function(engine_tasks.soon),
        "product": Function(operator.mul, (6, 7)),
        "nothing": Function(len, ("",)),
        "large": Function(engine_tasks.large, (5_000_000,)),
        "wrong": Function(math.sqrt, (-1,)),
        "own": Function(engine_tasks.raising, ("own",)),
        "unsendable": Function(engine_tasks.raising, ("unsendable",)),
        "exit": Function(engine_tasks.raising, ("exit",)),
        "after": Function(operator.add, ([1], [2])),
    }
    flow: dict[Name, list[Name]] = {**{task: [] for task in works}, "after": ["product"]}
    done = runner(calling, flow, lambda task, attempt: works[task], retries=ONCE)
    assert done.values.pop("large") == bytes(5_000_000)
    assert done.values == {"async": 7, "product": 42, "nothing": 0, "after": [1, 2]}
    errors = {task: ending.value for task, ending in done.failures.items()}
    assert not any(ending.attempt.lost for ending in done.failures.values())
    assert type(errors["wrong"]) is ValueError
    assert str(errors["wrong"]) == "math domain error"
    assert type(errors["own"]) is engine_tasks.OwnError
    assert errors["own"].args == ("a reason", 7)
    assert done.failures["unsendable"].attempt.failure == "UnsendableError: 1 and 2"
    assert str(errors["unsendable"]).startswith(
        "1 and 2" if name in {"local", "threads"} else "UnsendableError: 1 and 2 ("
    )
    assert done.failures["exit"].attempt.failure == "SystemExit: 3"


def test_a_function_that_is_late_has_failed_and_its_worker_goes_on(calling: Engine) -> None:
    """The worker does what comes next while the late function still runs."""
    works = {"late": Function(time.sleep, (80.0,)), "next": Function(len, ("",))}
    flow: dict[Name, list[Name]] = {"late": [], "next": []}
    done = runner(calling, flow, lambda task, attempt: works[task], retries=ONCE, timeout=5.0)
    assert done.values == {"next": 0}
    assert done.failures["late"].attempt.failure == "took longer than 5 s"
    assert type(done.failures["late"].value) is TimeoutError


def test_what_cannot_be_sent_is_the_tasks_own_failure(name: str, calling: Engine) -> None:
    if name in {"local", "threads"}:
        pytest.skip("nothing is sent between threads")
    works = {
        "value": Function(engine_tasks.unsendable_value),
        "argument": Function(len, (engine_tasks.unsendable_value(),)),
        "fine": Function(len, ("abc",)),
    }
    done = runner(calling, {task: [] for task in works}, lambda task, attempt: works[task], retries=ONCE)
    assert (done.values, set(done.failures)) == ({"fine": 3}, {"value", "argument"}), done.failures
    assert not any(ending.attempt.lost for ending in done.failures.values())


# Ends and ways in


def test_a_cluster_that_is_there_is_joined_and_left(name: str, engine: Engine) -> None:
    if not isinstance(engine, DaskEngine):
        pytest.skip("Ray's is joined by every second engine here; the others have no addresses")
    own = engine_on(f"dask={engine.address}")
    for _ in range(400):  # a worker that another test took down may not be back yet
        if len(own.asks()) == SLOTS:
            break
        own.close()
        time.sleep(0.25)
        own = engine_on(f"dask={engine.address}")
    assert len(own.asks()) == SLOTS

    def stop(running: Runner) -> None:
        if sleepers(nap(3176)) and not running.stopping:
            running.abort()

    runner(own, {"a": []}, lambda task, attempt: Command(("/bin/sleep", nap(3176)), "/"), watch=stop)
    assert no_sleepers(nap(3176))
    own.close()
    assert runner(engine, {"a": []}, lambda task, attempt: Function(len, ("abc",))).values == {"a": 3}


def test_no_cluster_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    needed("dask")
    monkeypatch.setattr("eligo.engines.dask.PATIENCE", "0.3s")
    with pytest.raises(InputError, match=r"cannot connect to the Dask scheduler at tcp://127\.0\.0\.1:1"):
        engine_on("dask=tcp://127.0.0.1:1")


def test_engines_listen_on_this_machine_only(engine: Engine) -> None:
    psutil = pytest.importorskip("psutil")
    me, found = psutil.Process(), list[str]()
    for process in [me, *me.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            listening = [each for each in process.net_connections("inet") if each.status == psutil.CONN_LISTEN]
            found += [each.laddr.ip for each in listening]
    assert {ip.removeprefix("::ffff:") for ip in found} <= {"127.0.0.1", "::1"}


def test_tasks_share_the_cores(name: str, engine: Engine, tmp_path: Path) -> None:
    """Three tasks of two cores each, and one that wants more than there are, on two cores: one after another."""
    if name not in {"local", "threads", "ray"}:
        pytest.skip("as with threads, and one more engine takes long to begin")

    flow: dict[Name, list[Name]] = {task: [] for task in ("a", "b", "c", "huge")}
    details = {task: Task(name=task, cores=99.0 if task == "huge" else 2.0) for task in flow}
    needs = Wants(Workflow(Dag.from_parents(flow), details))

    def work(task: Name, attempt: int) -> Command:
        return sh('date +%s%N > "$1"; sleep 0.1; date +%s%N >> "$1"', str(tmp_path / f"when-{task}"))

    own = (
        made(name, SLOTS, tmp_path, room=Room(SLOTS, None, needs))
        if name == "threads"
        else engine_on(name, SLOTS, needs=needs)
    )
    runner(own, flow, work, needs=needs)
    own.close()
    spans = sorted(tuple(map(int, (tmp_path / f"when-{task}").read_text("utf-8").split())) for task in flow)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))


def test_what_a_killed_dispatcher_left_is_gone_when_its_run_goes_on(name: str, tmp_path: Path) -> None:
    if name not in PACKAGES:
        pytest.skip("it has no workers of its own")
    psutil, mark = pytest.importorskip("psutil"), f"mark{os.getpid()}"
    script = (
        "import sys; from eligo.engines.registry import engine_on\n"
        "if __name__ == '__main__':\n"
        "    engine = engine_on(sys.argv[1], 1, scratch=sys.argv[2], mark=sys.argv[3])\n"
        "    print('ready', flush=True); sys.stdin.read(); engine.close()\n"
    )
    (tmp_path / "dispatcher.py").write_text(script)
    words = [sys.executable, str(tmp_path / "dispatcher.py"), name, str(tmp_path), mark]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"ready\n"
        until = time.monotonic() + 20
        while name != "dask" and not marked_processes(POOL, [mark]) and time.monotonic() < until:
            time.sleep(0.05)  # Parsl's workers begin later
        left = psutil.Process(killed.pid).children(recursive=True)
        killed.kill()
    assert left
    subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=240)
    assert name == "dask" or not marked_processes(POOL, [mark])
    _, alive = psutil.wait_procs(left, timeout=20)
    alone = [each.name() for each in alive if each.status() != psutil.STATUS_ZOMBIE]
    # Ray's agents run nothing, and see by themselves that they are alone, which takes up to a minute on a busy machine
    assert [title for title in alone if not (title.startswith("ray::") and name == "ray")] == []


@pytest.mark.skipif(INSIDE is not None, reason="this is that network")
@pytest.mark.parametrize("other", LOOPBACK_ONLY)
def test_engines_that_listen_anywhere_in_a_network_of_their_own(other: str) -> None:
    needed(other)
    spaces = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]  # nothing is left, whatever happens
    alone = ["unshare", *spaces, "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    tried = subprocess.run([*alone, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"NOT TESTED: {other} needs a network of its own, and none can be had: {tried.stderr.strip()}")
    here = str(Path(__file__).parent)
    environment = {**os.environ, "ELIGO_TEST_ENGINE": other, "PYTHONPATH": os.pathsep.join([*sys.path, here])}
    words = [
        *alone,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-k",
        other,
        __file__,
    ]
    with tempfile.TemporaryFile() as said_there:
        code = subprocess.run(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=said_there, stderr=said_there, check=False,
            timeout=900,
        ).returncode  # fmt: skip
        said_there.seek(0)
        assert code == 0, said_there.read().decode("utf-8", "replace")[-8000:]


# Without an engine's workers


def test_there_is_no_such_engine() -> None:
    with pytest.raises(InputError, match=r"unknown engine 'abacus' \(choose from local, dask, ray, parsl,"):
        engine_on("abacus")
    with pytest.raises(InputError, match="engine local takes no address, got 'there'"):
        engine_on("local=there")
    with pytest.raises(InputError, match="workers must be a positive integer"):
        engine_on("local", 0)


@pytest.mark.parametrize("other", sorted(PACKAGES))
def test_a_package_that_is_missing_is_named(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[other], None)
    with pytest.raises(InputError, match=rf'pip install "eligo\[{other}\]"'):
        engine_on(other, 1)


def test_a_local_process_runs_no_function(tmp_path: Path) -> None:
    own = LocalEngine(1)
    with pytest.raises(InputError, match="not functions"):
        runner(own, {"a": []}, lambda task, attempt: Function(len, ("",)))
    own.close()


def test_an_executor_of_the_users_is_used_and_left_open() -> None:
    with ThreadPoolExecutor(SLOTS) as pool:
        own = on_executor(pool, SLOTS)
        done = runner(own, {"a": [], "b": ["a"]}, lambda task, attempt: Function(str.upper, (task,)))
        own.close()
        assert done.values == {"a": "A", "b": "B"}
        assert pool.submit(len, "abc").result() == 3


def test_a_clock_that_is_set_back_ends_no_run() -> None:
    own = ThreadEngine(1)
    back = [ending_of(Job(1, "thread 1", ("a",), (Function(len, ("",)),)), 0, Performed(100.0, 50.0))]
    game = Execution({"a": []})
    prudent = allocator("fifo", game.dag, game)
    (grant,) = prudent.hand_out([Ask("thread 1")])
    done = Runner(game, prudent, own, lambda task, attempt: Function(len, ("",)))
    done._accept(back)
    own.close()
    assert list(game.executed) == list(grant.tasks)


def test_a_worker_needs_nothing_heavy() -> None:
    code = "import sys, eligo.engines.job_run; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "distributed", "ray", "parsl"} & set(found)

"""Damaged files of runs: a run is refused, or believed as it was, whatever bit is wrong."""

import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from eligo.cli import run
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.formats import read_history
from eligo.pages.folder_source import WatchedRun, looked_at
from eligo.running.folder import RunFolder, kept_workflow
from eligo.stores import Attempt, Store, read_run
from eligo.stores.database import newest, version_of
from eligo.stores.run_reader import STEPS
from eligo.workflow import Task, Workflow
from running_cases import downgrade

SECTOR = 512
Harm = Callable[[random.Random, bytearray], None]


class State(NamedTuple):
    """What is believed of a run."""

    done: frozenset[str]
    tasks: dict[str, bytes]
    facts: dict[str, str]
    attempts: list[Attempt]


def flow_of(tasks: int) -> Workflow:
    names = [f"task_{number}" for number in range(tasks)]
    dag = Dag.from_parents({name: names[max(0, v - 1) // 2 : v][:1] for v, name in enumerate(names)})
    return Workflow(dag, {name: Task(name=name, command=f"echo {name}") for name in names})


def play(folder: RunFolder, flow: Workflow, tasks: int) -> None:
    """Run so many tasks as a run does, in some transactions."""
    folder.begin(flow, resumed := folder.resume(flow), {"order": range(len(flow)), "plan": range(len(flow))})
    store, game = folder.store, resumed.execution
    store.open_session("finish", 2, "local")
    for v, task in enumerate(flow.dag.named(flow.dag.order.tolist()[:tasks])):
        game.execute(task)
        which = (0, flow.dag.number(task), 1, f"slot {v % 2}", "")
        tried = Attempt("", *which, 1e9 + v, 1e9 + v + 0.5, "accepted", None, 0, 2**20)
        store.add(game.since(store.kept), [tried])
        if v % 7 == 0:
            store.note("present", f'{{"running": [], "again": [[{v}, 1.5]]}}')
            store.flush()
    store.flush()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of which most is done."""
    place = tmp_path_factory.mktemp("whole") / "run"
    with closing(RunFolder(place)) as folder:
        play(folder, flow_of(120), 90)
    return place


def state_by_writer(place: Path) -> State:
    """What whoever goes on with a run believes."""
    with closing(Store(place / "run.db")) as store:
        names, moves = list(store.tasks()), store.moves()
        game = Execution.replay(flow_of(len(names)), moves, store.additions())
        return State(
            frozenset(map(str, game.executed)), store.tasks(), store.facts(), read_run(place / "run.db").attempts
        )


def state_by_reader(place: Path) -> State:
    """What whoever looks believes."""
    seen, kept = WatchedRun(place), read_run(place / "run.db")
    return State(frozenset(map(str, seen.execution.executed)), kept.tasks, seen.facts, kept.attempts)


def state_by_page(place: Path) -> State:
    """What a page believes that has read a part before."""
    watched = looked_at(place)
    renewed = looked_at(place, watched)
    return state_by_reader(place)._replace(done=frozenset(map(str, renewed.execution.executed)))


def flip(random: random.Random, data: bytearray) -> None:
    data[random.randrange(len(data))] ^= 1 << random.randrange(8)


def zero(random: random.Random, data: bytearray) -> None:
    first = random.randrange(len(data) // SECTOR) * SECTOR
    data[first : first + SECTOR] = bytes(SECTOR)


def swap(random: random.Random, data: bytearray) -> None:
    """Exchange two sectors, as a controller does that writes to the wrong place."""
    one, other = (random.randrange(len(data) // SECTOR) * SECTOR for _ in range(2))
    data[one : one + SECTOR], data[other : other + SECTOR] = data[other : other + SECTOR], data[one : one + SECTOR]


def harmed(source: Path, place: Path, name: str, harm: Harm, times: int) -> Iterator[int]:
    """Copies of a run with one file damaged, one after another."""
    whole = (source / name).read_bytes()
    for seed in range(times):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(source, place)
        data = bytearray(whole)
        harm(random.Random(seed), data)
        (place / name).write_bytes(data)
        yield seed


@pytest.mark.parametrize("believed", [state_by_writer, state_by_reader, state_by_page])
@pytest.mark.parametrize(("harm", "times"), [(flip, 150), (zero, 60), (swap, 40)])
def test_a_damaged_store_is_refused_or_believed_as_it_was(
    believed: Callable[[Path], State], harm: Harm, times: int, whole: Path, tmp_path: Path
) -> None:
    place, refused = tmp_path / "run", 0
    shutil.copytree(whole, place)
    truth = believed(place)
    assert len(truth.done) == 90
    for seed in harmed(whole, place, "run.db", harm, times):
        found = attempt_at(believed, place)
        refused += isinstance(found, str)
        assert found == truth or (isinstance(found, str) and f"{place / 'run.db'}: " in found), seed
    assert refused > times / 10


def attempt_at(believed: Callable[[Path], State], place: Path) -> State | str:
    """What is believed of a run, or why it is refused; nothing else may come of it."""
    try:
        return believed(place)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("harm", [flip, zero])
def test_an_older_store_without_check_sums_ends_in_no_internal_error(harm: Harm, whole: Path, tmp_path: Path) -> None:
    older, place, refused = tmp_path / "older", tmp_path / "run", 0
    shutil.copytree(whole, older)
    make_older(older)
    for _ in harmed(older, place, "run.db", harm, 80):
        refused += isinstance(attempt_at(state_by_reader, place), str)
        refused += isinstance(attempt_at(state_by_folder, place), str)
    assert refused


def state_by_folder(place: Path) -> State:
    """What a run that goes on believes."""
    flow = flow_of(120)
    with closing(RunFolder(place)) as folder:
        game = folder.resume(flow).execution
        return State(frozenset(map(str, game.executed)), {}, {}, read_run(place / "run.db").attempts)


def test_a_damaged_store_teaches_no_run_times(whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "run"
    truth = read_history(str(whole)).records
    for seed in harmed(whole, place, "run.db", flip, 150):
        with suppress(InputError):
            assert read_history(str(place)).records == truth, seed


@pytest.mark.parametrize(("harm", "times"), [(flip, 80), (zero, 40)])
def test_of_a_damaged_log_only_the_end_can_be_missing(harm: Harm, times: int, tmp_path: Path) -> None:
    """SQLite ends its log at the first frame that is wrong, so what is believed is what was true at an earlier moment."""
    live, frozen, place = tmp_path / "live", tmp_path / "frozen", tmp_path / "run"
    with closing(RunFolder(live)) as folder:
        play(folder, flow_of(40), 30)
        moves = list(folder.store.moves())
        shutil.copytree(live, frozen)  # as it lies there after kill -9
    (frozen / "run.db-shm").unlink()
    assert (frozen / "run.db-wal").stat().st_size > SECTOR
    for seed in harmed(frozen, place, "run.db-wal", harm, times):
        with suppress(InputError), closing(Store(place / "run.db")) as store:
            believed = list(store.moves())
            assert believed == moves[: len(believed)], seed


@pytest.mark.parametrize(("harm", "times"), [(flip, 150), (zero, 40)])
def test_a_damaged_workflow_is_never_believed(harm: Harm, times: int, whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "run"
    for seed in harmed(whole, place, "workflow.json", harm, times):
        for look in (WatchedRun, kept_workflow):
            if (place / "workflow.json").read_bytes() != (whole / "workflow.json").read_bytes():
                with pytest.raises(InputError, match=r"workflow\.json"):
                    pytest.fail(f"{look(place)} is believed, {seed}")


def test_a_damaged_workflow_of_an_older_run_is_not_believed_either(whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "run"
    shutil.copytree(whole, place)
    make_older(place)
    assert WatchedRun(place).counts["done"] == 90
    kept = place / "workflow.json"
    kept.write_text(kept.read_text("utf-8").replace("echo task_7", "echo task_8", 1), "utf-8")
    for look in (WatchedRun, kept_workflow):
        with pytest.raises(InputError, match="written by something other than the run"):
            look(place)


def make_older(place: Path) -> None:
    downgrade(place / "run.db", "DELETE FROM fact WHERE name = 'workflow'; PRAGMA user_version = 2;")


def test_an_older_store_opens_and_is_sealed_then(whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "run"
    shutil.copytree(whole, place)
    before = state_by_writer(place)
    make_older(place)
    assert state_by_reader(place).done == before.done
    assert state_by_writer(place)._replace(facts={}) == before._replace(facts={})
    with closing(sqlite3.connect(place / "run.db")) as database:
        assert version_of(database) == newest(STEPS)
        database.execute("UPDATE journal SET moves = zeroblob(length(moves)) WHERE first = 0")
        database.commit()
    for believed in (state_by_writer, state_by_reader):
        with pytest.raises(InputError, match="the checksum of table 'journal' is wrong"):
            believed(place)


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM journal WHERE first = (SELECT max(first) FROM journal)",
        "DELETE FROM task WHERE number = 119",
        "DELETE FROM seal WHERE name = 'journal'",
        "DELETE FROM fact WHERE name = 'mark'",
        "UPDATE attempt SET task = 3 WHERE number = 5",
        "UPDATE task SET digest = x'00' WHERE number = 5",
        "UPDATE session SET workers = 'many'",
        "UPDATE curve SET points = x'0011' WHERE name = 'order'",
        "UPDATE fact SET value = CAST(x'ff' AS TEXT) WHERE name = 'mark'",
        "DROP TABLE seal",
    ],
)
def test_rows_that_sqlite_takes_for_right_are_refused(damage: str, whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "run"
    shutil.copytree(whole, place)
    with closing(sqlite3.connect(place / "run.db")) as database:
        database.executescript(damage)
    for believed in (state_by_writer, state_by_reader):
        with pytest.raises(InputError, match=r"run\.db: .*damaged.*restore a copy, or delete its folder"):
            believed(place)


@pytest.mark.parametrize("words", [["status"], ["top", "--once"], ["run", "--resume"], ["report"]])
def test_the_command_says_it_in_a_line_and_leaves_the_file_alone(
    words: list[str], whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "run"
    for _ in harmed(whole, place, "run.db", lambda _, data: data.__setitem__(slice(4096, 8192), bytes(4096)), 1):
        before = (place / "run.db").read_bytes()
        assert run([*words, str(place)]) == 2
        assert "internal error" not in (said := capsys.readouterr().err)
        assert said.count("\n") == 1
        assert "restore a copy, or delete its folder to start over" in said
        assert (place / "run.db").read_bytes() == before

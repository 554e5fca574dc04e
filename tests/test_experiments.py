"""Experiments: what a file may say, resuming, spreading, and the statistics that results are put into."""

import csv
import json
import math
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import eligo
from eligo.errors import EligoError, InputError
from eligo.estimates import without_seconds
from eligo.families import out_mesh
from eligo.formats import read, write
from eligo.planning import plan
from eligo.policies import policy
from eligo.simulation import Clients, batched, profiles, scheduler, volatile
from eligo.simulation.experiments import MEASURES, play_experiment
from eligo.simulation.settings import (
    Experiment,
    Game,
    Source,
    batched_games,
    parse_experiment,
    read_compared,
    steady_games,
    volatile_game,
)
from eligo.simulation.steady import finish_on
from eligo.simulation.tables import (
    COLUMNS,
    PARTS,
    CellKey,
    Record,
    mean_of,
    mean_with,
    ratio_of,
    read_records,
    record_of,
    student,
)

SMALL = """
name: small
dags:
- {family: out-mesh, sizes: [5, 8]}
- {family: composition, sizes: [[wnm, 40]], seed: 2}
schedulers: [balanced, ready, fifo, greedy]
games:
  pebble: {}
  batched: {rates: [2, 8]}
  volatile: {count: 4, rules: prudent}
runs: 4
seeds: [0, 5]
"""


@pytest.fixture
def small() -> Experiment:
    """Three dags, four schedulers, four games, two seeds."""
    return parse_experiment(SMALL)


def test_an_experiment_is_all_its_combinations(small: Experiment) -> None:
    cells = list(small.cells())
    assert len(cells) == 3 * 4 * 4 * 2
    assert [source.label for source in small.sources] == ["out-mesh 5", "out-mesh 8", "composition wnm 40 seed 2"]
    assert len(set(cells)) == len(cells)


BAD = {
    "dags: []\nschedulers: [fifo]\ngames: {pebble: {}}": '"dags" must be a non-empty list, got an empty list',
    "schedulers: [fifo]\ngames: {pebble: {}}": 'needs the key "dags"',
    "- a\n- b": "the experiment must be a mapping, got a list",
    SMALL.replace("fifo", "quickest"): "unknown policy 'quickest'",
    SMALL.replace("runs: 4", "runs: 0"): "runs must be an integer of at least 1, got 0",
    SMALL.replace("runs: 4", "runs: many"): "runs must be an integer of at least 1, got a string",
    SMALL.replace("runs: 4", "runz: 4"): "the experiment has the unknown key 'runz'",
    SMALL.replace("seeds: [0, 5]", "seeds: [-1]"): "a seed must be an integer of at least 0, got -1",
    SMALL.replace("[2, 8]", "[2, 0]"): "a rate must be a positive, finite number of requests, got 0",
    SMALL.replace("[2, 8]", "[1e999]"): "a rate must be a positive, finite number of requests, got inf",
    SMALL.replace("[2, 8]", "[fast]"): "a rate must be a number, got a string",
    SMALL.replace("count: 4", "count: 0"): "clients must be at least 1, got 0",
    SMALL.replace("count: 4", "spread: 0"): "spread must be finite and at least 1",
    SMALL.replace("count: 4", "number: 4"): "volatile has the unknown key 'number'",
    SMALL.replace("count: 4", "count: few"): "the count of clients must be an integer",
    SMALL.replace("prudent", "reckless"): "rules must be none or prudent",
    SMALL.replace("pebble: {}", "marbles: {}"): "games has the unknown key 'marbles'",
    SMALL.replace("pebble: {}", "pebble: {rates: [1]}"): "it has no settings",
    SMALL.replace("out-mesh", "mash"): "unknown family 'mash'",
    SMALL.replace("sizes: [5, 8]", "sizes: [[5, 8]]"): "wrong sizes for the family out-mesh",
    SMALL.replace("sizes: [5, 8]", "sizes: [0]"): "levels must be an integer of at least 1",
    SMALL.replace("sizes: [5, 8]", "sizes: 5"): '"sizes" must be a non-empty list, got a number',
    SMALL.replace("[5, 8]", "[5, 5]"): "the dag 'out-mesh 5' is listed twice",
    SMALL.replace("greedy", "fifo"): "the policy 'fifo' is listed twice",
    SMALL.replace("- {family: out-mesh, sizes: [5, 8]}", "- nowhere.json"): "no such file: 'nowhere.json'",
    SMALL.replace("- {family: out-mesh, sizes: [5, 8]}", "- {sizes: [5]}"): 'a dag must be a "file", or a "family"',
    "dags: [": "not valid YAML",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=range(len(BAD)))
def test_bad_experiments_are_refused_in_words(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        parse_experiment(text)
    assert BAD[text] in str(refused.value)
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(InputError, match=r"bad\.yaml"):
        read_compared(str(tmp_path / "bad.yaml"))


def test_the_line_is_told_where_a_word_is_wrong() -> None:
    with pytest.raises(InputError, match="line 6: unknown policy"):
        parse_experiment(SMALL.replace("fifo", "quickest"))


def test_experiments_are_told_from_workflows(tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text(SMALL)
    (tmp_path / "w.yaml").write_text("tasks:\n- {name: a}\n")
    assert isinstance(read_compared(str(tmp_path / "e.yaml")), Experiment)
    assert isinstance(read_compared(str(tmp_path / "w.yaml")), eligo.Workflow)


def test_what_is_kept_is_what_the_games_give() -> None:
    """Cells are no more than calls of the simulators with the experiment's seed."""
    games = (Game("pebble"), *batched_games([3]), volatile_game(count=3, times="equal"))
    experiment = Experiment(
        sources=(Source.of_family("out-mesh", [6]),), schedulers=("greedy",), games=games, runs=7, seeds=(11,)
    )
    found = {record.measure: record for record in play_experiment(experiment)}
    dag = out_mesh(6)
    policy = scheduler("greedy", dag)
    areas = profiles(policy, 7, 11).sum(axis=1)
    assert found["area"].mean == pytest.approx(areas.mean())
    assert found["share"].mean == pytest.approx(areas.mean() / plan(dag).area_bound)
    assert found["polls"].mean == pytest.approx(batched(policy, 3.0, 7, 11).mean())
    outcome = volatile(policy, Clients(count=3), 7, 11)
    assert found["makespan"].mean == pytest.approx(outcome.makespan.mean())
    assert found["makespan"].deviation == pytest.approx(outcome.makespan.std(ddof=1))
    assert found["stalled"].mean == pytest.approx(outcome.stalled.mean())


def test_finish_is_the_order_of_a_plan_in_every_game(tmp_path: Path) -> None:
    """It goes by run times where they are known, also where rounds are counted, and is made for a pool that stays."""
    times = [9, 1, 1, 1, 1, 1, 1, 5]
    arcs = {3: [0], 4: [1], 5: [1], 6: [2], 7: [4, 5, 6]}
    tasks = [
        {"name": f"t{i}", "seconds": time, "after": [f"t{u}" for u in arcs.get(i, [])]} for i, time in enumerate(times)
    ]
    path = tmp_path / "timed.json"
    path.write_text(json.dumps({"tasks": tasks}))
    games = (Game("pebble"), *batched_games([1.5]), *steady_games([2]))
    experiment = Experiment(sources=(Source.of_file(str(path)),), schedulers=("finish",), games=games, runs=9)
    found = {(record.game, record.measure): record for record in play_experiment(experiment)}
    rule = policy("finish", read(path))
    assert found["batched", "polls"].mean == pytest.approx(batched(rule, 1.5, 9, 0).mean())
    assert found["pebble", "area"].mean == profiles(rule, 1, 0).sum()
    assert found["pebble", "area"].mean != profiles(policy("finish", without_seconds(read(path))), 1, 0).sum()
    assert found["steady", "makespan"].mean == finish_on(path, 2).makespan


def test_other_run_times_are_another_experiment(tmp_path: Path) -> None:
    path, results = tmp_path / "timed.json", str(tmp_path / "t.csv")
    played = []
    for seconds in (1, 2, 2):
        path.write_text(json.dumps({"tasks": [{"name": "a", "seconds": seconds}, {"name": "b", "seconds": 1}]}))
        experiment = Experiment(
            sources=(Source.of_file(str(path)),), schedulers=("finish",), games=(Game("pebble"),), runs=1
        )
        played.append({record.fingerprint for record in play_experiment(experiment, results)})
    assert played[0] != played[1] == played[2]


def test_the_table_is_tidy(small: Experiment, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    records = play_experiment(small, str(path))
    with open(path, newline="") as file:
        rows = list(csv.reader(file))
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) - 1 == len(records) == sum(len(MEASURES[cell.game.name]) for cell in small.cells())
    assert read_records(str(path)) == records


def stopper(after: int) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done >= after:
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize("after", [1, 17, 95])
def test_resuming_gives_the_same_table(small: Experiment, tmp_path: Path, after: int) -> None:
    whole, part = tmp_path / "whole.csv", tmp_path / "part.csv"
    play_experiment(small, str(whole))
    with pytest.raises(KeyboardInterrupt):
        play_experiment(small, str(part), progress=stopper(after))
    kept = read_records(str(part))
    assert len({record.key for record in kept}) == after  # what was finished can be read
    seen: list[int] = []
    play_experiment(small, str(part), progress=lambda done, total: seen.append(done))
    assert seen[0] == after  # and is not played again
    assert part.read_bytes() == whole.read_bytes()


def test_what_was_cut_off_is_played_again(small: Experiment, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    play_experiment(small, str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])  # in the middle of a line, and of a cell of four rows
    assert play_experiment(small, str(path))
    assert path.read_bytes() == whole


def test_results_of_another_experiment_stay(small: Experiment, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    first = play_experiment(small, str(path))
    other = Experiment(sources=(Source.of_family("w", [3, 2]),), schedulers=("fifo",), games=(Game("pebble"),), runs=2)
    second = play_experiment(other, str(path))
    assert read_records(str(path)) == second + first


def test_a_changed_dag_is_played_again(tmp_path: Path) -> None:
    file, path = tmp_path / "dag.json", tmp_path / "t.csv"
    experiment = Experiment(sources=(Source.of_file(str(file)),), schedulers=("fifo",), games=(Game("pebble"),), runs=1)
    write(out_mesh(4), file)
    before = play_experiment(experiment, str(path))
    write(out_mesh(5), file)
    after = play_experiment(experiment, str(path))
    assert [record.tasks for record in before + after] == [10, 10, 15, 15]


def test_any_number_of_processes_gives_the_same_table(small: Experiment, tmp_path: Path) -> None:
    one, two = tmp_path / "1.csv", tmp_path / "2.csv"
    play_experiment(small, str(one))
    play_experiment(small, str(two), processes=2)
    assert one.read_bytes() == two.read_bytes()


def test_a_file_that_is_no_table_is_refused(small: Experiment, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"t\.csv:1: not a table of results"):
        play_experiment(small, str(path))
    path.write_text(",".join(COLUMNS) + "\nw,f,many,fifo,pebble,,0,1,area,1,0,0,1\n")
    with pytest.raises(InputError, match=r"t\.csv:2: not a row of results"):
        play_experiment(small, str(path))
    with pytest.raises(InputError, match="cannot be written"):
        play_experiment(small, str(tmp_path / "nowhere" / "t.csv"))


def test_results_of_an_older_version_are_refused_and_stay(small: Experiment, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    older = ",".join(COLUMNS[:-2]) + "\nout-mesh 5,f,15,fifo,pebble,,0,4,area,1.0,0.0\n"
    path.write_text(older)
    with pytest.raises(InputError, match=r"t\.csv: this file has results of an older version without single runs"):
        play_experiment(small, str(path))
    assert path.read_text() == older


def test_runs_are_kept_one_by_one_and_many_of_them_in_parts() -> None:
    """Their means are the same, and a run without an end is missing."""
    key = CellKey("d", "f", "fifo", "volatile", "", 0, 0)
    few = record_of(key, 9, "makespan", np.array([3.0, math.inf, 4.0]))
    assert few.parts == (3.0, None, 4.0)
    assert (few.mean, few.deviation, few.endless) == (3.5, 0.5**0.5, 1)
    many = np.arange(1050.0)
    many[[7, 20, 21, 22]] = math.inf
    record = record_of(key, 9, "makespan", many)
    assert len(record.parts) == PARTS
    assert record.endless == 4
    assert record.parts[0] == pytest.approx((many[:7].sum() + many[8:10].sum()) / 9)
    none = record_of(key, 9, "makespan", np.full(2, math.inf))
    assert (none.mean, none.deviation, none.endless, none.parts) == (None, None, 2, (None, None))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_games_without_an_end_are_kept_and_read_again(name: str, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    games = (volatile_game(count=2, stay=1.0, times="drawn"), volatile_game(count=2, stay=1e-6))
    experiment = Experiment(
        sources=(Source.of_family("out-mesh", [4]),), schedulers=("fifo", "ready"), games=games, runs=5
    )
    records = play_experiment(experiment, str(tmp_path / name))
    assert [record.endless for record in records[8:]] == 8 * [5]
    seen: list[int] = []
    assert play_experiment(experiment, str(tmp_path / name), progress=lambda done, total: seen.append(done)) == records
    assert seen == [4]  # and not played again


def test_numbers_of_processes_and_clusters_are_checked(small: Experiment) -> None:
    with pytest.raises(InputError, match="processes must be an integer"):
        play_experiment(small, processes=0)
    with pytest.raises(InputError, match="dask://HOST:PORT"):
        play_experiment(small, on="ray://localhost:1")


def test_own_orders_are_played_and_checked(tmp_path: Path) -> None:
    mine, wrong = tmp_path / "mine.order", tmp_path / "wrong.order"
    dag = out_mesh(3)
    mine.write_text("\n".join(dag.named(dag.order)))
    wrong.write_text("\n".join(dag.named(dag.order[::-1])))
    source = Source.of_family("out-mesh", [3])

    def played(order: Path) -> list[Record]:
        return play_experiment(Experiment(sources=(source,), schedulers=(str(order),), games=(Game("pebble"),), runs=1))

    assert played(mine)[0].mean == 1.0
    with pytest.raises(EligoError, match=r"wrong\.order: no order for out-mesh 3: not a schedule"):
        played(wrong)


def test_parquet_is_refused_before_anything_is_played(
    small: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match="Parquet needs pyarrow"):
        play_experiment(small, str(tmp_path / "t.parquet"), progress=stopper(0))


def test_parquet_has_the_same_rows(small: Experiment, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    with pytest.raises(KeyboardInterrupt):
        play_experiment(small, str(path), progress=stopper(3))
    assert not path.exists()  # what is finished waits beside it
    records = play_experiment(small, str(path))
    assert records == play_experiment(small, str(path), progress=lambda done, total: None) == play_experiment(small)
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]


class Cluster:
    """Stands for dask.distributed: a client whose executor has threads."""

    def __init__(self, address: str, timeout: str) -> None:
        if address != "tcp://here:8786":
            raise OSError("nobody answers")

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is kept."""

    def get_executor(self, pure: bool) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(2)


def test_a_cluster_gives_the_same_rows(small: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=Cluster))
    assert play_experiment(small, on="dask://here:8786") == play_experiment(small)
    with pytest.raises(InputError, match="no Dask scheduler answers at there:1"):
        play_experiment(small, on="dask://there:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"needs dask\.distributed"):
        play_experiment(small, on="dask://here:8786")


# Statistics


def test_intervals_are_students() -> None:
    """Against the usual table of Student's distribution."""
    for freedom, printed in ((1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (29, 2.045), (49, 2.010), (10**6, 1.960)):
        assert student(freedom) == pytest.approx(printed, abs=6e-4)
    for freedom, printed in (
        (1, 63.657),
        (2, 9.925),
        (3, 5.841),
        (10, 3.169),
        (99, 2.626),
        (100, 2.626),
        (1000, 2.581),
    ):
        assert student(freedom, 5) == pytest.approx(printed, abs=6e-4)  # 99 % each are 95 % of five together
    mean = mean_of([1.0, 2.0, 3.0, 4.0])
    assert mean.value == 2.5
    assert mean.high - mean.value == pytest.approx(3.182 * math.sqrt(5 / 3) / 2, rel=1e-3)
    assert mean_with(2.0, 0.0, 50) == (2.0, 2.0, 2.0)
    assert mean_of([3.0]) == (3.0, 3.0, 3.0)


def test_ratios_of_pairs_are_surer_than_their_parts() -> None:
    rng = np.random.default_rng(0)
    base = rng.uniform(50, 150, 60)
    ratio = ratio_of(1.2 * base + rng.normal(0, 1, 60), base)
    assert ratio.low < 1.2 < ratio.high
    assert ratio.high - ratio.low < 0.02

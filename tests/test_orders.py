"""One plan, plainly told: which order is used and written, what the others would give, and all of it checked when saved."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from eligo import families
from eligo.cli import run
from eligo.cli.plan import table
from eligo.estimates import lasting
from eligo.finishing import own_seconds
from eligo.planning import plan
from eligo.pools import Pool
from eligo.prioritising import finishing_rules, order_to_follow, soonest_on
from eligo.schedules import soonest, terms_of
from eligo.simulation.batched import order_figures
from eligo.simulation.steady import finish_on
from eligo.workflow import Task, Workflow

EXAMPLES = Path(__file__).parents[1] / "examples"
Words = Callable[..., tuple[int, str, str]]
#: one source that many wait for stands last, behind others that nobody waits for
TIMED = [
    *({"name": f"lone{i}", "seconds": 60} for i in range(6)),
    {"name": "hub", "seconds": 600},
    *({"name": f"leaf{i}", "after": ["hub"], "seconds": 300} for i in range(8)),
]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Words:
    """The command, in a folder with some workflows: exit code, standard output, standard error."""
    shutil.copy(EXAMPLES / "pie.yaml", tmp_path)
    (tmp_path / "timed.json").write_text(json.dumps({"tasks": TIMED}))
    (tmp_path / "torn.arcs").write_text("a x\nb x\na y\nb y\nc u\nd v\n")
    (tmp_path / "chain.arcs").write_text("a b\nb c\n")
    (tmp_path / "empty.json").write_text('{"tasks": []}')
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        return code, *capfd.readouterr()

    return said


def shown(out: str) -> dict[str, str]:
    """The rows of the table by order, each from its mark on."""
    rows = re.findall(r"^([* ] (?!order)\S+) {2,}(\d.*|not computed.*)$", out, re.M)
    return {label[2:]: f"{label[0]} {rest}" for label, rest in rows}


def write_costly() -> None:
    """Nine tasks free one each, long ones; a tenth, short, frees twenty short ones: run times say to wait with it."""
    long = [{"name": f"a{i}", "seconds": 50} for i in range(9)]
    long += [{"name": f"b{i}", "after": [f"a{i}"], "seconds": 50} for i in range(9)]
    short = [{"name": "hub", "seconds": 1}, *({"name": f"c{i}", "after": ["hub"], "seconds": 1} for i in range(20))]
    Path("costly.json").write_text(json.dumps({"tasks": [*long, *short]}))


def test_the_plan_says_what_run_times_cost_in_rounds(say: Words) -> None:
    write_costly()
    out = say("plan", "costly.json")[1]
    told = re.search(r"using run times costs up to (\d+\.\d) % more rounds \(at (\d+) requests\)", out)
    assert told
    entries = {entry["name"]: entry for entry in json.loads(say("plan", "costly.json", "--json")[1])["orders"]}
    own, other = (entries["finish"][key] for key in ("polls", "polls_without_seconds"))
    costs = {mean: 100 * (a / b - 1) for mean, a, b in zip((4, 16, 64), own, other, strict=True)}
    assert f"{costs[int(told[2])]:.1f}" == told[1] == f"{max(costs.values()):.1f}"
    assert "run times cost" not in say("plan", "pie.yaml")[1]
    assert "run times cost" not in say("plan", "costly.json", "--policy", "ready")[1]


def test_an_order_that_ends_later_than_finish_is_given_on_demand_and_said_to_be_later(say: Words) -> None:
    out = say("plan", "timed.json", "--workers", "2", "--policy", "fifo")[1]
    assert "  `finish` would finish sooner: in 30 min" in out
    assert "ends sooner" not in say("plan", "timed.json", "--workers", "2")[1]


def test_it_is_said_what_the_order_for_a_pool_was_made_from(say: Words) -> None:
    rng, said = np.random.default_rng(5), set[str]()
    for _ in range(12):
        tasks = [
            {
                "name": f"t{i}",
                "seconds": int(rng.integers(1, 90)),
                "after": [f"t{j}" for j in range(i) if rng.random() < 0.1],
            }
            for i in range(25)
        ]
        Path("some.json").write_text(json.dumps({"tasks": tasks}))
        out = say("plan", "some.json", "--workers", "2x1.0,2x0.25")[1]
        told = re.findall(r"^  based on (.*), which finishes sooner here than the rule of `finish`$", out, re.M)
        flow = eligo.read("some.json")
        best = soonest_on(terms_of(flow, own_seconds(flow), Pool.parse("2x1.0,2x0.25")), finishing_rules(flow))
        assert told == ([] if best.origin == "finish" else [best.origin])
        said.add(best.origin)
    assert {"finish", "longest paths"} <= said


# The table


def test_the_order_used_is_marked_shown_and_written(say: Words) -> None:
    out = say("plan", "pie.yaml")[1]
    rows = shown(out)
    assert list(rows) == ["ready", "finish", "fifo"]
    assert [name for name, row in rows.items() if row.startswith("*")] == ["finish"]
    assert "With `finish`, 1.83 tasks are ready, 22 % more than first come, first served." in out
    assert "* finish" in out
    assert rows["ready"].endswith("1.83  most possible (proved)  4.10  4.03  4.00")
    assert "1.50  81.8 %" in rows["fifo"]
    first = re.search(r"^this order: (.*)$", out, re.M)
    assert first
    assert first[1].split(", ") == say("plan", "pie.yaml", "--names")[1].split()


@pytest.mark.parametrize(
    ("asked", "used"),
    [("ready", "ready"), ("plan", "ready"), ("balanced", "balanced"), ("fifo", "fifo"), ("lifo", "lifo"), ("mine", "mine")],
)  # fmt: skip
def test_another_order_is_used_on_demand(say: Words, asked: str, used: str) -> None:
    Path("mine").write_text("crust\napples\nsauce\nfill\nbake\nserve\n")
    out = say("plan", "pie.yaml", "--policy", asked)[1]
    rows = shown(out)
    assert [name for name, row in rows.items() if row.startswith("*")] == [used]
    assert len(rows) == 3 + (used not in {"ready", "finish", "fifo"})
    assert f"With `{used}`, " in out.partition("\n\n")[0]
    order = say("plan", "pie.yaml", "--policy", asked, "--names")[1].split()
    assert f"this order: {', '.join(order)}" in out
    document = json.loads(say("plan", "pie.yaml", "--policy", asked, "--json")[1])
    assert document["used"] == used
    assert {entry["name"]: entry["order"] for entry in document["orders"]}[used] == order


def test_first_come_first_served_is_the_one_that_gains_are_told_against(say: Words) -> None:
    document = json.loads(say("plan", "pie.yaml", "--json")[1])
    usual = {entry["name"]: entry for entry in document["orders"]}["fifo"]
    assert usual["average"] == document["average_first_come"]
    assert list(order_to_follow("pie.yaml", "fifo")) == usual["order"]


def test_what_is_proved_is_said_of_the_order_that_it_is_proved_of(say: Words) -> None:
    out = say("plan", "timed.json", "--policy", "fifo")[1]
    assert "\nWith `fifo`, " in out
    assert "\nNo order can have more tasks ready at any moment than `ready`.\n" in out
    assert ". bound" in out
    ready = say("plan", "timed.json", "--policy", "ready")[1]
    assert "\nWith `ready`, " in ready
    assert "\nNo order can have more tasks ready at any moment than `ready`.\n" in ready
    assert "no single order is best at every moment; `" in say("plan", "torn.arcs")[1].lower()


def test_where_nothing_is_gained_that_is_said(say: Words) -> None:
    told = "No order gains anything here: first come, first served does as well"
    assert told in say("plan", "chain.arcs")[1]
    assert told not in say("plan", "chain.arcs", "--policy", "fifo")[1]
    assert told not in say("plan", "pie.yaml")[1]
    assert told not in say("plan", "timed.json", "--workers", "2")[1]
    pair = [{"name": "short", "seconds": 1}, {"name": "also", "seconds": 1}, {"name": "long", "seconds": 9}]
    Path("pair.json").write_text(json.dumps({"tasks": pair}))
    out = say("plan", "pair.json")[1]
    assert told not in out
    assert "keeps as many tasks ready; --workers 16 shows whether it saves time" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    assert told in say("plan", "pair.json", "--workers", "16")[1]
    Path("mine").write_text("crust\napples\nfill\nsauce\nbake\nserve\n")
    out = say("plan", "pie.yaml", "--policy", "mine")[1]
    assert told not in out
    assert "`mine` gains nothing here: first come, first served does as well" in out


def test_nothing_to_do_reads_well(say: Words) -> None:
    assert say("plan", "empty.json")[1] == "The workflow has no tasks.\n"
    document = json.loads(say("plan", "empty.json", "--json")[1])
    assert [(entry["name"], entry["average"]) for entry in document["orders"]] == [
        ("ready", 0.0), ("finish", 0.0), ("fifo", 0.0),
    ]  # fmt: skip
    say("plan", "empty.json", "--save", "plan.json")
    assert say("verify", "empty.json", "plan.json")[0] == 0


def test_a_share_is_at_least_so_much_where_the_bound_is_not_attained() -> None:
    flow = Workflow(families.random_layered(5, 8, seed=2))
    found = plan(flow, "quick")
    assert found.area < found.area_bound
    lines = list(table(eligo.order(flow, effort="quick")))
    assert "ready on average, of possible" in lines[0]
    assert all("at least" in line for line in lines[1:])
    assert "proved" not in "".join(lines)


@pytest.mark.parametrize("dag", [families.FAMILIES["layered"](8, 60, seed=1), families.FAMILIES["layered"](50_000, 1)])
def test_long_numbers_fit_on_a_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dag: eligo.Dag) -> None:
    monkeypatch.chdir(tmp_path)
    mine = "an-order-with-a-name-longer-than-any-screen-is-wide-is-not-what-anybody-wants.txt"
    Path(mine).write_text("\n".join(dag.named(dag.order)))
    flow = Workflow(dag, {name: Task(name=name, seconds=863.9) for name in dag.tasks})
    for used in ("finish", "critical-path-seconds", mine):
        for pool in (None, Pool.of(16)):
            lines = list(table(eligo.order(flow, pool, policy=used, effort="quick")))
            assert max(map(len, lines)) <= 80
            assert ("16 workers" in lines[0]) == (pool is not None)


def test_next_steps_tell_of_workers_where_run_times_are_known(say: Words) -> None:
    assert "eligo plan timed.json --workers 16  estimate the time" in say("plan", "timed.json")[1]
    assert "--workers" not in say("plan", "pie.yaml")[1]
    assert "estimate the time" not in say("plan", "timed.json", "--workers", "2")[1]


def test_a_large_dag_is_not_played_in_passing(say: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.choice.MOST_PLAYED", 5)
    monkeypatch.setitem(order_figures.__globals__, "MOST_PLAYED", 5)
    out = say("plan", "pie.yaml")[1]
    assert "not computed: too many tasks" in shown(out)["finish"]
    assert "rounds" not in out
    assert "* ready" in out
    assert "see --names" in out
    assert "With `finish`, " in " ".join(say("plan", "pie.yaml", "-o", "out.yaml")[1].split())
    document = json.loads(say("plan", "pie.yaml", "--json")[1])
    assert [(entry["name"], entry["polls"]) for entry in document["orders"]] == [
        ("ready", []),
        ("finish", []),
        ("fifo", []),
    ]


def test_the_finish_of_every_order_is_shown_and_that_of_the_order_used_is_the_documents(say: Words) -> None:
    out = say("plan", "timed.json", "--workers", "2")[1]
    assert re.search(r"^  order .* 2 workers$", out, re.M)
    assert shown(out)["fifo"].endswith("33 min")
    assert shown(out)["finish"].endswith("30 min")
    assert "2 workers: about 30 min" in out
    document = json.loads(say("plan", "timed.json", "--workers", "2", "--json")[1])
    assert {e["name"]: e["makespan"] for e in document["orders"]} == {"ready": 1800.0, "finish": 1800.0, "fifo": 1980.0}
    assert document["makespan"] == 1800.0
    assert (
        json.loads(say("plan", "timed.json", "--workers", "2", "--json", "--policy", "fifo")[1])["makespan"] == 1980.0
    )
    flow = eligo.read("timed.json")
    assert finish_on(flow, 2, order_to_follow(flow, "fifo")).makespan == 1980.0


def test_programs_are_told_what_people_are(say: Words) -> None:
    document = json.loads(say("plan", "pie.yaml", "--json")[1])
    flow = eligo.read("pie.yaml")
    for entry in document["orders"]:
        expected = order_figures(flow.dag, entry["order"])
        assert (entry["average"], tuple(entry["polls"])) == (expected.ready, expected.polls)
        assert entry["share"] == entry["average"] * 6 / document["area_bound"]
    assert document["orders"][0]["order"] == document["order"]


# Saved and checked


@pytest.fixture
def saved(say: Words) -> dict[str, Any]:
    say("plan", "timed.json", "--policy", "fifo", "--workers", "2", "--save", "plan.json")
    document = json.loads(Path("plan.json").read_text())
    assert [entry["name"] for entry in document["orders"]] == ["ready", "fifo"]
    assert all("polls" not in entry for entry in document["orders"])
    return dict(document)


def test_a_saved_plan_carries_both_orders_and_both_certificates(say: Words, saved: dict[str, Any]) -> None:
    code, out, _ = say("verify", "timed.json", "plan.json")
    assert code == 0
    assert "the proof holds" in out
    assert re.search(r"^order ready +valid, 7\.\d+ ready, finishes in 30 min$", out, re.M)
    assert re.search(r"^order fifo, used +valid, .* finishes in 33 min$", out, re.M)
    assert "no order finishes before 30 min on 2 workers" in out
    assert saved["certificate"]["seconds"] == saved["bound"]


def swapped(order: list[str]) -> list[str]:
    return [order[-1], *order[:-1]]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d.update(area=d["area"] + 1), "the area is not what follows from the order"),
        (lambda d: d.update(used="lifo"), "the order used is not among the orders"),
        (lambda d: d["orders"][0].update(order=d["orders"][1]["order"]), "the order 'ready' is not the order of the plan"),
        (lambda d: d["orders"][1].update(order=swapped(d["orders"][1]["order"])), "'leaf7' comes before 'hub'"),
        (lambda d: d["orders"][1].update(order=d["orders"][1]["order"][1:]), "'lone0'"),
        (lambda d: d["orders"][1].update(average=d["orders"][1]["average"] + 1), "the average is not what follows"),
        (lambda d: d["orders"][0].update(share=0.5), "the share is not what follows from the order 'ready'"),
        (lambda d: d["orders"][1].update(makespan=1860.0), "the makespan is not that of the order used"),
        (lambda d: d["orders"][0].update(makespan=1860.0), "claimed to finish after 31 min, but finishes after 30 min"),
        (lambda d: d["orders"][0].update(makespan=60.0), "an order finishes before the lower bound"),
        (lambda d: d.update(makespan=1860.0), "the makespan is not that of the order used"),
        (lambda d: d.update(workers=3), "the workers are not those of the certificate"),
        (lambda d: d.update(bound=1700.0), "the bound is not that of the certificate"),
        (lambda d: d["certificate"].update(seconds=1801.0), "the bound on the finish does not hold"),
        (lambda d: d["certificate"].update(workers=[1.0]*3), "the bound on the finish does not hold"),
        (lambda d: d["certificate"].update(t=700.0), "the bound on the finish does not hold"),
        (lambda d: d["certificate"].update(tasks=3), "the bound on the finish does not hold"),
        (lambda d: d["certificate"].update(work=3.0), "the bound on the finish does not hold"),
    ],
)  # fmt: skip
def test_whatever_is_changed_is_noticed(
    say: Words, saved: dict[str, Any], change: Callable[[dict[str, Any]], None], told: str
) -> None:
    change(saved)
    Path("plan.json").write_text(json.dumps(saved))
    code, out, err = say("verify", "timed.json", "plan.json")
    assert code != 0
    assert told in out + err


def test_seconds_that_changed_are_noticed(say: Words, saved: dict[str, Any]) -> None:
    slower = [task | {"seconds": 10} for task in TIMED]
    Path("timed.json").write_text(json.dumps({"tasks": slower}))
    assert say("verify", "timed.json", "plan.json")[0] == 1


def test_plans_of_before_and_documents_of_the_command_hold(say: Words, saved: dict[str, Any]) -> None:
    new = ("orders", "used", "workers", "makespan", "bound", "certificate", "seconds_from")
    Path("old.json").write_text(json.dumps({key: value for key, value in saved.items() if key not in new}))
    assert say("verify", "timed.json", "old.json")[0] == 0
    Path("whole.json").write_text(say("plan", "timed.json", "--workers", "2", "--json")[1])
    assert say("verify", "timed.json", "whole.json")[0] == 0
    Path("wrong.json").write_text(json.dumps(saved | {"certificate": 3}))
    assert "'certificate' in the plan must be an object" in say("verify", "timed.json", "wrong.json")[2]


# Next steps


def test_next_steps_are_true(say: Words) -> None:
    out = say("plan", "pie.yaml")[1]
    assert "eligo plan pie.yaml --names      print the whole order" in out
    assert "instead" not in out
    err = say("plan", "pie.yaml", "-o", "out.yaml")[2]
    assert err == "eligo: order written: finish\neligo: wrote out.yaml\n"


# Compared on steady workers


def test_a_comparison_has_the_finish_on_steady_workers(say: Words) -> None:
    Path("last.txt").write_text(
        "\n".join(f"lone{i}" for i in range(6)) + "\nhub\n" + "\n".join(f"leaf{i}" for i in range(8))
    )
    words = ("compare", "timed.json", "--runs", "4", "--rates", "2", "--policy", "ready,fifo")
    late = (*words, "--order", "last.txt", "--workers", "1,2")
    code, out, _ = say(*late, "--results", "r.csv", "-o", "page.html")
    told = "with recorded run times, without failures or transfers"
    assert code == 0
    assert told in " ".join(out.split())
    assert re.search(r"^ +1 worker +2 workers *$", out, re.M)
    assert re.search(r"^ ready +\*1\.000 +\*1\.000 *$", out, re.M)
    assert told in Path("page.html").read_text("utf-8")
    assert '{"text":"1.000","mark":"best"}' in Path("page.html").read_text("utf-8")
    assert ",ready,steady,workers=2,0,4,makespan,1800.0," in Path("r.csv").read_text()
    document = json.loads(say(*words, "--json")[1])["best"]["timed.json"]["steady"]
    assert list(document) == ["4", "16", "64"]
    flow = eligo.read("timed.json")
    for count, ratios in document.items():
        assert ratios["ready"] == pytest.approx(1 + finish_on(flow, int(count), "ready").gap)


def test_without_seconds_nothing_is_said_of_steady_workers(say: Words) -> None:
    words = ("compare", "pie.yaml", "timed.json", "--runs", "2", "--rates", "2")
    out = say(*words)[1]
    assert " ".join(out.split()).count("without failures or transfers") == 1
    assert (
        "--workers is ignored: not all run times are known"
        in say("compare", "pie.yaml", "--runs", "2", "--rates", "2", "--workers", "4")[2]
    )
    for wrong in ("0", "four", "-1"):
        code, _, err = say(*words, "--workers", wrong)
        assert code == 2
        assert "whole number" in err or "integer" in err


def test_an_experiment_can_be_about_steady_workers_alone(say: Words) -> None:
    experiment = "dags: [{}]\nschedulers: [ready, mine.txt]\ngames: {{steady: {{workers: [2]}}}}\nruns: 3\n"
    Path("mine.txt").write_text("\n".join(str(task["name"]) for task in TIMED))
    Path("e.yaml").write_text(experiment.format("timed.json"))
    out = say("compare", "e.yaml")[1]
    assert "ready is best in this game, or within 0.5 % of the best." in out
    Path("f.yaml").write_text(experiment.format("pie.yaml"))
    assert "run times are not known" in say("compare", "f.yaml")[2]
    Path("g.yaml").write_text(experiment.format("timed.json").replace("[2]", "[0]"))
    assert "workers must be an integer from 1" in say("compare", "g.yaml")[2]


# On pools, with what is known


def test_a_saved_plan_for_any_pool_is_checked(say: Words) -> None:
    for asked, pool in (("2", 2), ("2x1.0,1x0.5", "2x1.0,1x0.5"), ("1x0.001", "1x0.001"), ("3 cores", "3 cores")):
        assert say("plan", "timed.json", "--workers", asked, "--save", "plan.json")[0] == 0
        saved = json.loads(Path("plan.json").read_text())
        assert saved["workers"] == pool
        assert {entry["name"]: entry["makespan"] for entry in saved["orders"]}["finish"] == saved["makespan"]
        code, out, _ = say("verify", "timed.json", "plan.json")
        assert (code, out[:3]) == (0, "Val")
        assert "lower bound" in out
        for wrong in (7, "2x1.0,1x0.25", "4 cores"):
            Path("wrong.json").write_text(json.dumps(saved | {"workers": wrong}))
            assert "the workers are not those of the certificate" in say("verify", "timed.json", "wrong.json")[1]
    Path("wrong.json").write_text(json.dumps(saved | {"workers": "many"}))
    assert say("verify", "timed.json", "wrong.json")[0] == 2
    Path("wrong.json").write_text(json.dumps(saved | {"certificate": None}))
    assert "has no certificate" in say("verify", "timed.json", "wrong.json")[1]
    Path("wrong.json").write_text(json.dumps(saved | {"certificate": saved["certificate"] | {"work": "much"}}))
    assert "not a bound on a finish" in say("verify", "timed.json", "wrong.json")[2]


def test_an_order_is_made_for_the_pool_once(say: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(terms: Any, starts: Any) -> Any:
        made.append(str(terms.pool))
        return soonest(terms, starts)

    monkeypatch.setattr("eligo.prioritising.soonest", counted)
    words = ("plan", "timed.json", "--workers", "2x1,1x0.5", "-o", "order.txt", "--save", "plan.json")
    _, out, err = say(*words)
    assert len(made) == 1
    assert "order written: finish for 3 workers" in err
    saved = json.loads(Path("plan.json").read_text())
    written = Path("order.txt").read_text().split()
    assert written == next(entry["order"] for entry in saved["orders"] if entry["name"] == "finish")
    ended = finish_on("timed.json", "2x1,1x0.5", written).makespan
    assert (ended, f"all tasks finish in about {lasting(ended)}" in " ".join(out.split())) == (saved["makespan"], True)


def test_a_finish_by_a_history_is_checked_with_that_history(say: Words) -> None:
    names = ["apples", "crust", "fill", "bake", "sauce", "serve"]
    rows = [f"{name},{60 * place}" for place, name in enumerate(names, 1)]
    Path("runs.csv").write_text("\n".join(["task,seconds", *rows]))
    Path("less.csv").write_text("\n".join(["task,seconds", *rows[1:]]))
    _, out, _ = say("plan", "pie.yaml", "--history", "runs.csv", "--workers", "2", "--save", "plan.json")
    assert "if tasks take as long as runs.csv says" in out
    code, _, err = say("verify", "pie.yaml", "plan.json")
    assert code == 2
    assert "was computed with run times from runs.csv: give them again, eligo verify FILE PLAN --history FILE" in err
    assert say("verify", "pie.yaml", "plan.json", "--history", "runs.csv")[0] == 0
    code, out, _ = say("verify", "pie.yaml", "plan.json", "--history", "less.csv")
    assert (code, "run times are missing" in out) == (1, True)
    Path("kinds.csv").write_text("kind,seconds\nbake,600\n")
    for words in (("--save", "plan.json"), ("--save", "plan.json", "--cores", "4")):
        _, out, _ = say("plan", "pie.yaml", "--history", "kinds.csv", *words)
        assert say("verify", "pie.yaml", "plan.json")[0] == 0
    assert "4 cores: about 40 min, if tasks take as long as kinds.csv says (6 tasks without" in " ".join(out.split())
    assert re.search(r"^  order .*requests$", out, re.M)
    saved = json.loads(Path("plan.json").read_text())
    assert (saved["workers"], saved["makespan"], saved["certificate"]) == ("4 cores", None, None)


def test_a_plan_says_that_larger_priorities_go_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flow.json"
    tasks = [{"name": "a", "run": "true", "priority": 5}, {"name": "b", "run": "true"}]
    path.write_text(json.dumps({"tasks": tasks}))
    assert run(["plan", str(path)]) == 0
    assert "tasks with higher priority go first, as in `eligo run`" in capsys.readouterr().err
    assert run(["plan", str(path), "--override", "-o", str(tmp_path / "out.json")]) == 0
    assert "go first" not in capsys.readouterr().err


def test_an_order_of_the_workflow_is_written_again(say: Words) -> None:
    for _ in range(2):
        assert say("plan", "pie.yaml", "-o", "order.txt")[0] == 0
    Path("order.txt").write_text("a note of mine\n")
    code, _, err = say("plan", "pie.yaml", "-o", "order.txt")
    assert (code, "was not written by eligo" in err) == (2, True)

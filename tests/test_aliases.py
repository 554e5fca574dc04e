"""Old names of options, policies and keys still work for one release, each with a warning."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import eligo
from eligo.cli import RENAMED_POLICIES, run, without_old_names
from eligo.cli.output import with_new_keys
from eligo.policies import OLD_NAMES
from eligo.server.rules.prepared import Wishes
from eligo.simulation.settings import parse_experiment

Words = Callable[..., tuple[int, str, str]]
PIE = """
tasks:
- {name: crust, run: "true"}
- {name: fill, run: "true"}
- {name: bake, run: "exit 3", after: [crust, fill]}
- {name: serve, run: "true", after: [bake]}
"""


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Words:
    monkeypatch.chdir(tmp_path)
    Path("pie.yaml").write_text(PIE)

    def said(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        out, err = capsys.readouterr()
        return code, out, err

    return said


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        ("plan pie.yaml --names --order fifo", "plan pie.yaml --names --policy fifo", "use --policy"),
        ("plan pie.yaml --names --order=plan", "plan pie.yaml --names --policy=ready", "use 'ready'"),
        ("compare pie.yaml --runs 2 --rates 2 --schedulers plan,fifo",
         "compare pie.yaml --runs 2 --rates 2 --policy ready,fifo", "use --policy"),
    ],
)  # fmt: skip
def test_an_old_option_does_what_the_new_one_does(say: Words, old: str, new: str, warning: str) -> None:
    code, out, err = say(*old.split())
    assert (code, out) == say(*new.split())[:2]
    assert warning in err
    assert "deprecated" not in say(*new.split())[2]


def test_the_limit_of_output_was_called_output() -> None:
    assert without_old_names(["work", "URL", "--output", "1G"]) == (
        ["work", "URL", "--max-output", "1G"],
        ["--output is deprecated: use --max-output"],
    )
    assert without_old_names(["run", "--", "--order"]) == (["run", "--", "--order"], [])


def test_the_order_ready_was_called_plan() -> None:
    assert RENAMED_POLICIES == OLD_NAMES
    with pytest.warns(DeprecationWarning, match="use 'ready'"):
        assert eligo.order({"a": [], "b": ["a"]}, policy="plan").order == ("a", "b")
    assert Wishes(policy="plan").policy == "ready"
    experiment = "dags: [{family: w, sizes: [[3, 2]]}]\nschedulers: [plan]\ngames: {pebble: {}}"
    assert parse_experiment(experiment).schedulers == ("ready",)


def test_the_policies_of_an_experiment_were_called_schedulers() -> None:
    experiment = "dags: [{family: w, sizes: [[3, 2]]}]\nschedulers: [fifo]\ngames: {pebble: {}}"
    assert parse_experiment(experiment.replace("schedulers", "policies")) == parse_experiment(experiment)
    with pytest.raises(eligo.FormatError, match="only one of them"):
        parse_experiment(experiment + "\npolicies: [fifo]")


def test_new_keys_stand_beside_the_old_ones(say: Words) -> None:
    words = "compare pie.yaml --runs 2 --rates 2 --policy fifo --json"
    result = json.loads(say(*words.split())[1])["results"][0]
    assert (result["policy"], result["scheduler"]) == ("fifo", "fifo")
    (first, *_) = json.loads(say("plan", "pie.yaml", "--json")[1])["orders"]
    assert first["rounds"] == first["polls"]
    for words in ("batch pie.yaml --requests 1 --json", "cluster pie.yaml --size 1 --json"):
        document = json.loads(say(*words.split())[1])
        assert document["ready_after"] == document["eligible_after"]
    assert with_new_keys({"made": 1.5, "repeated": 2}) == {
        "made": 1.5, "repeated": 2, "submitted": 1.5, "reassigned": 2,
    }  # fmt: skip


def test_blocked_tasks_were_called_futile(say: Words) -> None:
    code, out, _ = say("run", "pie.yaml", "--retries", "0", "--json")
    document = json.loads(out)
    assert (code, document["schema"], document["blocked"], document["futile"]) == (1, 2, ["serve"], ["serve"])
    document = json.loads(say("status", "pie.yaml", "--json")[1])
    assert (document["blocked"], document["pending"], document["retrying"]) == (1, 0, 0)
    assert (document["futile"], document["waiting"], document["again"]) == (1, 0, 0)
    game = eligo.Execution({"a": [], "b": ["a"]})
    game.take("a")
    game.fail("a")
    with pytest.warns(DeprecationWarning, match=r"use Execution\.blocked"):
        assert game.futile == game.blocked == ("b",)


def test_the_format_of_durations_was_called_told() -> None:
    bound = eligo.FinishBound(12.0, (1.0,), "work", 0.0, 0.0, 0, 1, 12.0)
    with pytest.warns(DeprecationWarning, match="use duration"):
        assert bound.why(told="{:.1f} seconds".format) == bound.why("{:.1f} seconds".format)

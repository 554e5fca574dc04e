"""Templates of our own document: what `foreach` and `params` stand for, and what is refused."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eligo import formats
from eligo.cli import run
from eligo.errors import InputError
from eligo.formats.shared.templates import expanded

PAIRS = """\
params: {tool: count}
tasks:
- name: align
  foreach: {sample: "reads/*.fq"}
  run: cat {inputs} > {outputs}
  inputs: ["{sample}"]
  outputs: ["{sample.stem}.sam"]
- name: qc_{sample.stem}_{seed}
  foreach: {sample: "reads/*.fq", seed: 1..2}
  run: [./qc, "{sample}", "{seed}", "${HOME}", "{{word}}"]
  after: [align]
- name: merge
  run: "{tool} {inputs} > all"
  inputs: ["{align.outputs}"]
  outputs: [all]
  after: ["qc_{sample.stem}_{seed}"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "reads").mkdir()
    for name in ("a.fq", "b c.fq"):
        (tmp_path / "reads" / name).write_text(name)
    path = tmp_path / "pairs.yaml"
    path.write_text(PAIRS)
    return path


def tasks_of(*rows: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    document = expanded({"tasks": list(rows), **more})
    assert isinstance(document, dict)
    return list(document["tasks"])


def test_one_row_stands_for_many_tasks(file: Path) -> None:
    flow = formats.read(file)
    assert flow.dag.tasks == (
        "align-reads/a.fq", "align-reads/b c.fq", "qc_a_1", "qc_a_2", "qc_b c_1", "qc_b c_2", "merge",
    )  # fmt: skip
    assert flow.task("align-reads/b c.fq").command == "cat 'reads/b c.fq' > 'b c.sam'"
    assert flow.task("qc_a_2").command == ("./qc", "reads/a.fq", "2", "${HOME}", "{word}")
    assert flow.task("merge").command == "count a.sam 'b c.sam' > all"
    assert flow.task("align-reads/a.fq").category == "align"


def test_tasks_of_the_same_values_depend_on_each_other_and_others_gather(file: Path) -> None:
    dag = formats.read(file).dag
    assert dag.parents("qc_b c_1") == ("align-reads/b c.fq",)
    assert set(dag.parents("merge")) == {*dag.tasks} - {"merge"}


def test_a_parameter_is_given_anew(file: Path) -> None:
    assert formats.read(file, arguments={"tool": "wc"}).task("merge").command == "wc a.sam 'b c.sam' > all"
    with pytest.raises(InputError, match=r"no parameter 'tol' \(known: tool\)"):
        formats.read(file, arguments={"tol": "wc"})


def test_a_value_given_to_a_command_stays_as_it_is_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("params: {n: 1}\ntasks:\n- {name: a, run: 'echo {n}'}\n")
    assert run(["convert", str(path), "-", "--to", "json", "-p", "n=007"]) == 0
    assert "echo 007" in capsys.readouterr().out


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_all_combinations_and_nothing_else(sizes: list[int]) -> None:
    foreach = {f"v{i}": [f"{i}{j}" for j in range(size)] for i, size in enumerate(sizes)}
    names = [row["name"] for row in tasks_of({"name": "t", "foreach": foreach})]
    assert names == ["-".join(("t", *values)) for values in product(*foreach.values())]


@given(pairs=st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1), keys=st.sets(st.sampled_from("xyz")))
def test_parents_agree_in_the_variables_that_both_have(pairs: set[tuple[int, int]], keys: set[str]) -> None:
    parents = [{"x": x, "y": y} for x, y in sorted(pairs)]
    children = [{**{key: row.get(key, 9) for key in keys}, "w": i} for i, row in enumerate(parents)]
    rows = tasks_of(
        {"name": "p{x}.{y}", "foreach": parents}, {"name": "c{w}", "foreach": children, "after": ["p{x}.{y}"]}
    )
    for child, row in zip(children, rows[len(parents) :], strict=True):
        agreeing = [p for p in parents if all(p[key] == child[key] for key in {"x", "y"} & child.keys())]
        assert row["after"] == [f"p{p['x']}.{p['y']}" for p in agreeing]


def test_a_table_has_a_task_per_row(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text("id,reads\na,x.fq\nb 2,y.fq\n")
    path = tmp_path / "x.json"
    path.write_text('{"tasks": [{"name": "{id}", "foreach": "samples.csv", "run": "wc {reads} {id}"}]}')
    assert [task.command for task in formats.read(path).details.values()] == ["wc x.fq a", "wc y.fq 'b 2'"]


def test_documents_without_templates_stay_as_they_are() -> None:
    flow = formats.parse('{"tasks": [{"name": "a", "run": "awk {print}"}]}')
    assert flow.task("a").command == "awk {print}"


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a placeholder of no variable": (
        {"run": "echo {y}", "foreach": {"x": [1]}},
        r"has \{y\}, which stands for nothing",
    ),
    "an unknown part": ({"run": "echo {x.size}", "foreach": {"x": [1]}}, r"\{x.size\}.*parts: name, stem"),
    "no values": ({"foreach": {"x": []}}, "has no values"),
    "no object": ({"foreach": {"x": 3}}, "must be a list, a range such as 1..9, or a pattern, got a number"),
    "a word": ({"foreach": {"x": "abc"}}, "'abc', which is not a list, a range"),
    "a range backwards": ({"foreach": {"x": "3..1"}}, r"range 3\.\.1"),
    "too many": ({"foreach": dict.fromkeys("abc", "1..1000")}, "1,000,000,000 combinations"),
    "other variables": ({"foreach": [{"x": 1}, {"y": 1}]}, "the same variables"),
    "a truth value": ({"foreach": {"x": [True]}}, "must be a string or an integer, got true"),
    "a fraction": ({"foreach": {"x": [0.1]}}, "must be a string or an integer, got 0.1 .put numbers"),
    "a number alone": ({"foreach": 5}, "must be an object, a list, or the name of a .csv or .tsv file, got a number"),
    "the same name twice": ({"foreach": {"x": [1, 1]}}, "gives two tasks the name 't-1'"),
    "a value inside quotes": (
        {"run": "cat '{x}'", "foreach": {"x": ["a b"]}},
        "has {x} inside quotes, where 'a b' cannot",
    ),
    "too many rows together": ({"foreach": {"x": "1..1000000"}}, "more than 1,000,000 tasks after expansion"),
    "its own files as a variable": ({"foreach": {"inputs": [1]}}, "not inputs or outputs, got 'inputs'"),
    "a parent without such a value": ({"foreach": {"v": [1, 2]}, "after": ["p"]}, "'p', which has no task with v=2"),
    "another kind of file": ({"foreach": "x.txt"}, r"the name of a .csv or .tsv file, got 'x.txt'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused_with_its_reason(case: str) -> None:
    row, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        tasks_of({"name": "p", "foreach": {"v": [1]}}, {"name": "t", **row})


def test_values_that_need_no_quotes_may_stand_inside_them() -> None:
    rows = tasks_of({"name": "t", "foreach": {"x": ["a.fq"]}, "run": "cat \"{x}\" '{x}'", "outputs": ["o"]})
    assert rows[0]["run"] == "cat \"a.fq\" 'a.fq'"


def test_words_of_a_command_are_what_they_stand_for() -> None:
    """No shell reads them, so they get no quotes."""
    run_ = ["cat", "{x}", "--to={outputs}", "{p.outputs}", "it's {x}"]
    rows = tasks_of(
        {"name": "p", "outputs": ["a b", "c"]},
        {"name": "t", "foreach": {"x": ["b c.fq"]}, "run": run_, "outputs": ["{x}.out"]},
    )
    assert rows[1]["run"] == ["cat", "b c.fq", "--to=b c.fq.out", "a b", "c", "it's b c.fq"]


def test_references_to_other_tasks_are_bounded() -> None:
    many = [{"name": "p", "foreach": {"x": "1..3000"}}, {"name": "c", "foreach": {"y": "1..3000"}, "after": ["p"]}]
    with pytest.raises(InputError, match="refer to others more than 5,000,000 times"):
        tasks_of(*many)


@pytest.mark.parametrize("number", ["007", "1:30", "-01"])
def test_numbers_that_yaml_reads_with_another_base_are_refused(number: str) -> None:
    with pytest.raises(InputError, match=f"line 2: YAML does not read {number} as a decimal number .put it in quotes"):
        formats.parse(f"tasks:\n- {{name: t, foreach: {{x: [{number}]}}, run: 'true'}}\n", "yaml")


def test_a_table_must_be_utf_8(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_bytes(b"id\ncaf\xe9\n")
    (tmp_path / "x.json").write_text('{"tasks": [{"name": "t", "foreach": "samples.csv", "run": "true"}]}')
    with pytest.raises(InputError, match="is not UTF-8"):
        formats.read(tmp_path / "x.json")


def test_values_in_a_yaml_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "values.yaml").write_text("n: seven\n")
    path = tmp_path / "x.yaml"
    path.write_text("params: {n: 1, m: 2}\ntasks:\n- {name: a, run: 'echo {n} {m}'}\n")
    words = ["convert", str(path), "-", "--to", "json", "-p", str(tmp_path / "values.yaml"), "-p", "m=ref.yaml"]
    assert run(words) == 0
    assert "echo seven ref.yaml" in capsys.readouterr().out


@pytest.mark.parametrize("foreach", ["samples.csv", {"x": "*.txt"}])
def test_a_text_without_a_file_reads_no_files(foreach: object) -> None:
    """What a client sends to a server names no file of the server."""
    with pytest.raises(InputError, match="this text has no folder to look in"):
        tasks_of({"name": "t", "foreach": foreach})


@pytest.mark.parametrize("foreach", ['"../secret.csv"', '{x: "../*"}', '{x: "/etc/*"}'])
def test_files_outside_the_folder_are_refused(tmp_path: Path, foreach: str) -> None:
    (tmp_path / "secret.csv").write_text("a\n1\n")
    path = tmp_path / "in" / "x.yaml"
    path.parent.mkdir()
    path.write_text(f"tasks:\n- {{name: t, foreach: {foreach}}}\n")
    with pytest.raises(InputError, match="is outside the folder"):
        formats.read(path)


def test_priorities_are_not_written_into_rows_that_stand_for_many(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", str(file), "--in-place"]) == 2
    assert file.read_text() == PAIRS
    assert run(["plan", str(file), "-o", str(tmp_path / "planned.yaml")]) == 0
    assert "written out, one row per task" in capsys.readouterr().err
    planned, flow = formats.read(tmp_path / "planned.yaml"), formats.read(file)
    assert planned.dag == flow.dag
    assert sorted(planned.column("priority")) == [*range(1, len(flow) + 1)]


def test_a_run_of_a_template_resumes(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(PAIRS.replace("./qc", "echo").replace("count", "cat"))
    assert run(["run", str(file), "-p", "tool=cat"]) == 0
    assert (file.parent / "all").read_text() == "a.fqb c.fq"
    (file.parent / "reads" / "d.fq").write_text("d")
    assert run(["run", str(file)]) == 0
    assert (file.parent / "all").read_text() == "a.fqb c.fqd"
    assert "6 already done, 1 changed since and will run again, 3 new" in capsys.readouterr().err


def test_a_running_task_adds_a_task_for_each_file_that_it_wrote(tmp_path: Path) -> None:
    """What Snakemake calls a checkpoint."""
    (tmp_path / "more.yaml").write_text(
        "tasks:\n- {name: count, foreach: {part: 'part*'}, run: 'wc -c < {part} > {part}.n', outputs: ['{part}.n']}\n"
        "- {name: sum, run: 'cat {inputs} > sum', inputs: ['{count.outputs}'], outputs: [sum]}\n"
    )
    path = tmp_path / "split.yaml"
    path.write_text("tasks:\n- {name: split, run: 'printf abc > part1; printf de > part2; cp more.yaml $ELIGO_ADD'}\n")
    assert run(["run", str(path)]) == 0
    assert (tmp_path / "sum").read_text().split() == ["3", "2"]


def test_tasks_that_a_task_added_run_again_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They may read what it wrote without saying so; what it adds again, as it is, is no other task."""
    (tmp_path / "more.yaml").write_text(
        "tasks:\n- {name: count, foreach: {part: 'part*'}, run: 'wc -c < {part} > {part}.n', outputs: ['{part}.n']}\n"
    )
    path = tmp_path / "split.yaml"
    path.write_text("tasks:\n- {name: split, run: 'sh split; cp more.yaml $ELIGO_ADD'}\n")
    (tmp_path / "split").write_text("printf abc > part1")
    assert run(["run", str(path), "-q"]) == 0
    for words, text, size in ((["--again", "split"], "ab", 2), (["--fresh"], "a", 1)):
        (tmp_path / "split").write_text(f"printf {text} > part1; rm -f *.n")
        assert run(["run", str(path), "-n", *words]) == 0
        assert "count-part1" in capsys.readouterr().out
        assert run(["run", str(path), "-q", *words]) == 0
        assert (tmp_path / "part1.n").read_text().strip() == str(size)
    (tmp_path / "split").write_text("printf abcd > part1; printf x > part2; rm -f *.n")
    assert run(["run", str(path), "-q", "--again", "split"]) == 0
    assert (tmp_path / "part2.n").read_text().strip() == "1"
    assert run(["run", str(path), "-q", "--again", "count-part2"]) == 0


def test_an_addition_from_outside_looks_for_files_beside_itself(tmp_path: Path) -> None:
    path, more = tmp_path / "a.yaml", tmp_path / "later" / "more.yaml"
    path.write_text("tasks:\n- {name: a, run: 'true'}\n")
    assert run(["run", str(path)]) == 0
    more.parent.mkdir()
    more.with_name("x.txt").write_text("x")
    more.write_text("tasks:\n- {name: t, foreach: {file: '*.txt'}, run: 'echo {file}', after: [a]}\n")
    assert run(["add", str(path), str(more)]) == 0
    assert run(["run", str(path)]) == 0
    assert run(["why", f"{path}.run", "t-x.txt"]) == 0

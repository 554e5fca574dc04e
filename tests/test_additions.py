"""Additions: documents whose tasks come to a workflow that is being executed, taken as a whole or refused."""

import pytest

from eligo.additions import LiveWorkflow, read_addition
from eligo.dag import Dag
from eligo.errors import EligoError, InputError
from eligo.execution import Execution
from eligo.workflow import Task, Workflow


def live(executed: str = "") -> LiveWorkflow:
    """a -> b -> c, of which a writes a.txt, and c reads in.txt."""
    details = {
        "a": Task(name="a", command="make a", outputs=("a.txt",)),
        "b": Task(name="b", command="make b"),
        "c": Task(name="c", command="make c", inputs=("in.txt",)),
    }
    flow = Workflow(Dag.from_arcs([("a", "b"), ("b", "c")]), details)
    return LiveWorkflow(flow, Execution(flow, executed=executed))


def test_a_new_task_comes_after_the_tasks_that_it_names() -> None:
    present = live()
    assert present.add(read_addition("tasks:\n- {name: x, after: [a, y], run: make x}\n- {name: y, run: make y}")) == (
        "x",
        "y",
    )
    assert set(present.flow.dag.parents("x")) == {"a", "y"}


def test_a_new_task_comes_after_the_task_that_writes_what_it_reads() -> None:
    present = live()
    present.add(read_addition('{"tasks": [{"name": "x", "run": "make x", "inputs": ["./a.txt"]}]}'))
    assert present.flow.dag.parents("x") == ("a",)


def test_a_waiting_task_comes_after_the_new_task_that_writes_what_it_reads() -> None:
    present = live()
    present.add(read_addition('{"tasks": [{"name": "x", "run": "make x", "outputs": ["in.txt"]}]}'))
    assert set(present.flow.dag.parents("c")) == {"b", "x"}


def test_files_make_no_arcs_where_the_document_says_so() -> None:
    present = live()
    text = '{"arcs_from": "after", "tasks": [{"name": "x", "run": "x", "inputs": ["a.txt"], "outputs": ["a.txt"]}]}'
    present.add(read_addition(text))
    assert present.flow.dag.parents("x") == ()


def test_what_is_known_of_new_tasks_comes_back_with_the_execution() -> None:
    present = live()
    text = '{"tasks": [{"name": "x", "after": ["a"], "run": ["make", "x"], "seconds": 2, "cores": 3, "priority": 4}]}'
    present.add(read_addition(text))
    game = present.execution
    again = LiveWorkflow(present.begun, Execution.replay(game.begun, game.journal))
    assert again.flow.task("x") == Task(name="x", command=("make", "x"), seconds=2.0, cores=3, priority=4)
    assert again.flow.column("command") == ["make a", "make b", "make c", ("make", "x")]


def test_the_same_addition_again_changes_nothing() -> None:
    present, new = live(), read_addition('{"tasks": [{"name": "x", "run": "make x"}]}')
    assert (present.add(new), present.add(new)) == (("x",), ())
    assert len(present.execution.additions) == 1


@pytest.mark.parametrize(
    ("tasks", "why"),
    [
        ('{"name": "x", "run": "x", "after": ["nobody"]}', "new task 'x' comes after 'nobody', which does not exist"),
        ('{"name": "b", "run": "x"}', "task 'b' already exists"),
        ('{"name": "x", "run": "x", "outputs": ["./a.txt"]}', "tasks 'a' and 'x' both write './a.txt'"),
        ('{"name": "x", "run": "x", "after": ["c"], "outputs": ["in.txt"]}', "a cycle, so no order exists"),
        ('{"name": "x", "run": "x", "after": ["y"]}, {"name": "y", "run": "y", "after": ["x"]}', "a cycle"),
        ('{"name": "x", "run": "x"}, {"name": "x", "run": "x"}', "'x'"),
        ('{"name": "x", "run": "x", "after": "a"}', "\"after\" of 'x' must be a list of strings, got a string"),
        ('{"name": "x", "run": "x", "colour": "red"}', "unknown key 'colour'"),
        ('{"name": "x"}', "new task 'x' has no command: give it `run`"),
        ('{"name": 1, "run": "x"}', "must be a string"),
    ],
)
def test_an_addition_that_does_not_fit_is_refused_as_a_whole(tasks: str, why: str) -> None:
    present = live()
    with pytest.raises(EligoError) as error:
        present.add(read_addition(f'{{"tasks": [{{"name": "fine", "run": "x"}}, {tasks}]}}'))
    assert why in str(error.value)
    assert (present.flow.dag, present.execution.additions) == (present.begun.dag, [])


def test_a_task_that_was_executed_gets_no_new_parent() -> None:
    with pytest.raises(EligoError, match="'c' cannot be below 'x': it is executed"):
        live("abc").add(read_addition('{"tasks": [{"name": "x", "run": "x", "outputs": ["in.txt"]}]}'))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"arcs": [["a", "b"]]}', "name: x", '{"tasks": 3}', "tasks: [3]"])
def test_a_text_without_tasks_is_no_addition(text: str) -> None:
    with pytest.raises(InputError):
        read_addition(text)

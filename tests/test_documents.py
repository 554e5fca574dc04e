"""Workflows as a server keeps them: every detail comes back, and damaged bytes are refused as such."""

import random
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.rows import Ints
from eligo.server.rules.document import MARK, Packed, pack_plan, pack_workflow, unpack_plan, unpack_workflow
from eligo.theory.skeleton import skeleton
from eligo.workflow import Task, Timed, Workflow

DAG = Dag.from_arcs([("a", "b"), ("b", "c"), ("a", "c")], tasks=["a", "b", "c", "ü"])
DETAILS = {
    "a": Task(name="a", command="true", inputs=("x", "y"), seconds=1.5, cores=2.0, memory=2**40, priority=-3),
    "b": Task(name="b", command=("echo", "two words"), outputs=("z",), category="kind"),
    "ü": Task(name="ü", command=""),
}
FLOW = Workflow(DAG, DETAILS, name="whole", file_sizes={"x": 3}, history=(Timed("a", None, 1.0), Timed(None, "k", 2.0)))


def _same(one: Workflow, other: Workflow) -> bool:
    details = [one.task(name).details() for name in DAG.tasks] == [other.task(name).details() for name in DAG.tasks]
    rest = (one.name, dict(one.file_sizes), one.history) == (other.name, dict(other.file_sizes), other.history)
    return one.dag == other.dag and details and rest


def test_a_workflow_comes_back_with_every_detail_and_its_skeleton() -> None:
    again = unpack_workflow(pack_workflow(FLOW))
    assert _same(again, FLOW)
    assert skeleton(again.dag) == skeleton(DAG)
    assert skeleton(again.dag).arc_count == 2


def test_values_beyond_one_frame_come_back_in_order() -> None:
    size = 10_000
    names = tuple(f"task {i}" for i in range(size))
    dag = Dag.from_arrays(size, np.arange(size - 1), np.arange(1, size), names)
    inputs = tuple(f"file {i}" for i in range(size))
    flow = Workflow(dag, {names[0]: Task(name=names[0], command="x", inputs=inputs, seconds=2.0)})
    again = unpack_workflow(pack_workflow(flow))
    assert again.dag == dag
    assert again.task(names[0]).inputs == inputs


def test_a_document_of_an_older_server_is_read() -> None:
    columns: dict[str, list[Any]] = {
        "command": ["true", ["echo", "two words"], None, ""],
        "inputs": [["x", "y"], [], [], []],
    }
    ends = (np.array([0, 1, 0], np.int32).tobytes(), np.array([1, 2, 2], np.int32).tobytes())
    old = Packed("whole", ["a", "b", "c", "ü"], *ends, columns, {"x": 3}, [("a", None, 1.0)])
    again = unpack_workflow(msgspec.msgpack.encode(old))
    assert again.dag == DAG
    assert again.task("b").command == ("echo", "two words")
    assert again.task("a").inputs == ("x", "y")


def test_a_plan_comes_back_also_that_of_an_older_server() -> None:
    order, ceiling = np.array([0, 3, 1, 2], np.int32), np.arange(5, dtype=np.int32)
    for plan in (pack_plan(order, ceiling), order.tobytes() + ceiling.tobytes()):
        found = unpack_plan(plan, 4)
        assert found.order is not None
        assert found.order.tolist() == order.tolist()
        assert found.ceiling is not None
        assert found.ceiling.tolist() == ceiling.tolist()
        assert found.reference is None


@pytest.mark.parametrize("order", [None, np.array([0, 3, 1, 2], np.int32)])
def test_the_order_of_a_limit_of_space_is_stored_with_or_without_a_plan(order: Ints | None) -> None:
    reference = np.array([3, 2, 1, 0], np.int32)
    found = unpack_plan(pack_plan(order, None, reference), 4)
    assert found.reference is not None
    assert found.reference.tolist() == reference.tolist()
    assert (found.order is None) == (order is None)
    assert found.ceiling is None


@pytest.mark.parametrize("document", [b"", b"\x00", MARK, MARK + b"\xff" * 30, msgspec.msgpack.encode([1, 2])])
def test_other_bytes_are_refused(document: bytes) -> None:
    with pytest.raises(InputError):
        unpack_workflow(document)


def test_damaged_bytes_give_a_workflow_or_a_refusal_and_nothing_else() -> None:
    document, draw = pack_workflow(FLOW), random.Random(1)
    for _ in range(3_000):
        damaged = bytearray(document)
        for _ in range(draw.randint(1, 3)):
            damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        with suppress(InputError):
            unpack_workflow(bytes(damaged[: draw.randint(1, len(damaged))] if draw.random() < 0.2 else damaged))

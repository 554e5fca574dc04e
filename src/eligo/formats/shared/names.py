"""Names that a format can represent, for tasks and files whose own name it cannot, and the remark on ignored data.

>>> from eligo.dag import Dag
>>> flow = Workflow(Dag.from_arcs([("a b", "a+b")], ["a_b", "a b", "a+b"]))
>>> changed, old = rename_tasks(flow, lambda name: fitted(name, "-0-9A-Za-z_"))
>>> changed.dag.tasks, old
(('a_b', 'a_b_2', 'a_b_3'), {'a_b_2': 'a b', 'a_b_3': 'a+b'})

>>> unread(["weight (edges)", "colour (nodes)"])
('ignored data: weight (edges), colour (nodes)',)
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count

from eligo.errors import shorten
from eligo.workflow import Workflow

#: The maximum number of characters in a list of names.
LONGEST = 200


def unread(names: Iterable[str]) -> tuple[str, ...]:
    """The remark that lists data that are not read, each once; no remark if there are none."""
    listed = ", ".join(dict.fromkeys(names))
    return (f"ignored data: {shorten(listed, LONGEST)}",) if listed else ()


def fitted(name: str, signs: str) -> str:
    """The name with _ for every character that is not one of *signs*, which are written as inside [] of a pattern."""
    return re.sub(rf"[^{signs}]", "_", name) or "_"


def rename_tasks(flow: Workflow, fit: Callable[[str], str]) -> tuple[Workflow, dict[str, str]]:
    """The workflow with the names that *fit* returns, made unique, and the old name for each new one."""
    wanted = {name: fit(name) for name in flow.dag.tasks}
    taken = {name for name, new in wanted.items() if name == new}
    numbers = {new: count(2) for new in wanted.values()}
    old: dict[str, str] = {}
    for name, new in wanted.items():
        if name != new:
            free = new if new not in taken else next(n for k in numbers[new] if (n := f"{new}_{k}") not in taken)
            taken.add(free)
            old[free] = name
    if not old:
        return flow, old
    names = {name: new for new, name in old.items()}
    dag = replace(flow.dag, names=tuple(names.get(name, name) for name in flow.dag.tasks))
    details = {names.get(name, name): replace(task, name=names.get(name, name)) for name, task in flow.details.items()}
    return replace(flow, dag=dag, details=details), old


def with_files(flow: Workflow, fit: Callable[[str], str | None]) -> Workflow:
    """The workflow with the file names that *fit* returns, without the files for which it returns None.

    >>> from eligo.dag import Dag
    >>> from eligo.workflow import Task
    >>> flow = Workflow(Dag.from_arcs([], "a"), {"a": Task(name="a", outputs=("./x", "y z"))})
    >>> with_files(flow, lambda name: None if " " in name else name.removeprefix("./")).task("a").outputs
    ('x',)
    """
    files = {file for task in flow.details.values() for file in (*task.inputs, *task.outputs)} | flow.file_sizes.keys()
    other = {file: new for file in files if (new := fit(file)) != file}
    if not other:
        return flow

    def replace_names(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(new for name in names if (new := other.get(name, name)) is not None))

    details = {
        name: replace(
            task,
            inputs=replace_names(task.inputs),
            outputs=replace_names(task.outputs),
            temporary=replace_names(task.temporary),
        )
        for name, task in flow.details.items()
    }
    sizes = {new: size for file, size in flow.file_sizes.items() if (new := other.get(file, file)) is not None}
    return replace(flow, details=details, file_sizes=sizes)

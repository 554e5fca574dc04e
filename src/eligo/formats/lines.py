"""A list of commands, one per line, each a task of its own that depends on nothing.

    # comments and empty lines are skipped
    gzip a.txt
    gzip 'b c.txt'

A task is named by its command, so that lines can be added before it; the same command again is `COMMAND #2`. The format is
never detected: `--lines`, or `--from lines`, selects it.

>>> flow = parse("echo a\\n\\n# twice\\necho b\\n")
>>> flow.dag.tasks
('echo a', 'echo b')
>>> print(generate(flow), end="")
echo a
echo b

One command for many values, as GNU parallel writes it: `commands_for` makes the list.

>>> [task.command for task in commands_for("gzip -{2} {1}", [["a", "b c"], ["9"]]).details.values()]
['gzip -9 a', "gzip -9 'b c'"]
>>> commands_for("convert {} {.}.png", [["x/a.jpg"]]).details
mappingproxy({'x/a.jpg': Task('x/a.jpg', command='convert x/a.jpg x/a.png')})
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from math import prod
from os.path import isfile, join
from pathlib import PurePath

from eligo.dag import Dag
from eligo.errors import FormatError, InputError, shorten
from eligo.formats.detection import WORDS
from eligo.formats.shared.templates import MOST_TASKS, is_unsafe_in_quotes
from eligo.workflow import Origin, Task, Workflow

NAME = "lines"
PRIORITIES = False
CANNOT = tuple(word for word in WORDS if word != "command")

#: what the placeholders of a command stand for, as in GNU parallel
_PARTS: Mapping[str, Callable[[str], str]] = {
    "": lambda value: value,
    ".": lambda value: str(PurePath(value).with_suffix("")) if PurePath(value).suffix else value,
    "/": lambda value: PurePath(value).name,
    "//": lambda value: str(PurePath(value).parent),
    "/.": lambda value: PurePath(value).stem,
}
_PLACE = re.compile(r"\{(\d*)(/?\.|//?|)\}|\{#\}")


def parse(text: str) -> Workflow:
    """The tasks of a list of commands."""
    tasks, times = dict[str, Task](), Counter[str]()
    for number, row in enumerate(text.split("\n"), 1):
        line = row.strip()
        if not line or line.startswith("#"):
            continue
        if line.endswith("\\"):
            raise FormatError("a command must stand on one line, and this one ends in a backslash", line=number)
        name = " ".join(line.split())
        times[name] += 1
        name = f"{name} #{times[name]}" if times[name] > 1 else name
        tasks[name] = Task(name=name, command=line)
    return _flow(tasks)


def generate(flow: Workflow) -> str:
    """The commands of independent tasks, one per line."""
    if flow.dag.arc_count:
        raise FormatError("a list of commands has no place for dependencies (write .yaml or .json)")
    return "".join(f"{_line(flow.task(name))}\n" for name in flow.dag.tasks)


def sniff(text: str) -> bool:
    """A list of commands looks like any text, so it is never detected."""
    return False


def _line(task: Task) -> str:
    command = shlex.join(task.command) if isinstance(task.command, tuple) else task.command
    if not command or "\n" in command or command.lstrip() != command or command.startswith("#"):
        raise FormatError(f"task {shorten(task.name)!r} has no command that fits on one line")
    return command


def commands_for(template: str, sources: Sequence[Sequence[str]], sent_from: str | None = None) -> Workflow:
    """A task for every combination of one value from each source; the values are quoted for the shell.

    `{}` is the value, or all values if there are several sources; `{2}` is that of the second source. `{.}` is the value
    without suffix, `{/}` without folder, `{//}` its folder, `{/.}` without both; `{#}` is the number of the task.

    Values that name files in the folder *sent_from* are inputs; None: tasks run where the files are, and may remove them.
    """
    if not all(sources) or not sources:
        raise InputError("`:::` must be followed by at least one value")
    if (count := prod(map(len, sources))) > MOST_TASKS:
        raise InputError(f"the values have {count:,} combinations, more than the limit of {MOST_TASKS:,}")
    command = template if _PLACE.search(template) else f"{template} {{}}"
    tasks = dict[str, Task]()
    for number, values in enumerate(product(*sources), 1):
        name = " ".join(values)
        if name in tasks:
            raise InputError(f"the values {shorten(name)!r} are given twice")
        line = _PLACE.sub(partial(_filled, values, number), command)
        files = () if sent_from is None else tuple(value for value in values if _is_within(value, sent_from))
        tasks[name] = Task(name=name, command=line, inputs=files)
    return _flow(tasks)


def _is_within(file: str, folder: str) -> bool:
    """Whether a path names a file in a folder, not beside it."""
    path = PurePath(file)
    return not path.is_absolute() and ".." not in path.parts and isfile(join(folder, file))


def _filled(values: Sequence[str], number: int, place: re.Match[str]) -> str:
    """What a placeholder stands for."""
    if place[1] is None:
        return str(number)
    if place[1] and not 1 <= int(place[1]) <= len(values):
        raise InputError(f"{place[0]} must be 1 to {len(values)}, the number of sources after `:::`")
    chosen = [values[int(place[1]) - 1]] if place[1] else values
    if is_unsafe_in_quotes(place, chosen):
        unsafe = next(value for value in chosen if shlex.quote(value) != value)
        raise InputError(
            f"{place[0]} is inside quotes, where {shorten(unsafe)!r} cannot be inserted: remove the quotes"
        )
    return shlex.join(_PARTS[place[2]](value) for value in chosen)


def _flow(tasks: Mapping[str, Task]) -> Workflow:
    if not tasks:
        raise FormatError("no commands")
    return Workflow(Dag.from_arcs([], list(tasks)), tasks, None, Origin(format=NAME))

"""doit: `doit run`, also with several processes, starts tasks in eligo's order instead of the order of definition.

    [tool.doit.plugins.command]                 # in pyproject.toml; or in doit.cfg: [COMMAND]
    run = "eligo.plugins.doit:OrderedRun"       #                                    run = eligo.plugins.doit:OrderedRun

doit decides which tasks run, which are up to date, and what follows from failures. This plug-in only decides which of the
ready tasks is next.
"""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar

from eligo.errors import CycleError, EligoError
from eligo.plugins.numbers import numbers, timed

try:
    from doit.cmd_run import Run
    from doit.control import TaskDispatcher
    from doit.exceptions import InvalidCommand
except ModuleNotFoundError:  # without doit, the classes below are only read, for example by documentation tools
    InvalidCommand = Run = TaskDispatcher = object

ORDER: dict[str, Any] = {
    "name": "order",
    "long": "order",
    "type": str,
    "default": "finish",
    "help": "policy that chooses among ready tasks: finish, ready, fifo or another of eligo's [default: %(default)s]",
}
HISTORY: dict[str, Any] = {
    "name": "history",
    "long": "history",
    "type": str,
    "default": "",
    "help": "file or folder with run times of tasks, by their names or basenames",
}


class OrderedRun(Run):
    """The command `run` of doit, in eligo's order."""

    name: ClassVar[str] = "run"
    cmd_options = (*getattr(Run, "cmd_options", ()), ORDER, HISTORY)

    def execute(self, params: Any, args: Any) -> Any:
        """Run `doit run`, with the order in the command line, the configuration or the dodo file."""
        self._params = params
        return super().execute(params, args)

    @property
    def control(self) -> Any:
        """doit's task control, which creates the dispatcher."""
        return self._control

    @control.setter
    def control(self, task_control: Any) -> None:
        own, self._control = task_control.task_dispatcher, task_control
        task_control.task_dispatcher = lambda: dispatcher(
            task_control, own, self._params["order"], self._params["history"]
        )


class ReadyNodes:
    """The ready nodes, in eligo's order; replaces the queue of doit's dispatcher."""

    def __init__(self, places: Mapping[str, int]) -> None:
        self._places, self._nodes, self._arrivals = places, list[tuple[int, int, Any]](), count()

    def __bool__(self) -> bool:
        return bool(self._nodes)

    @property
    def first(self) -> int:
        """The place of the next node."""
        return self._nodes[0][0]

    def append(self, node: Any) -> None:
        """Add a node; a node that was created during the run has the place of the nearest task that required it."""
        places = (self._places[name] for name in reversed(node.ancestors) if name in self._places)
        heapq.heappush(self._nodes, (next(places, len(self._places)), next(self._arrivals), node))

    def popleft(self) -> Any:
        """Remove and return the next node."""
        return heapq.heappop(self._nodes)[-1]


class OrderedDispatcher(TaskDispatcher):
    """doit's dispatcher, which takes the first node in eligo's order among ready and unvisited nodes."""

    def __init__(self, control: Any, places: Mapping[str, int], wanted: Iterable[str]) -> None:
        super().__init__(control.tasks, control.targets, sorted(wanted, key=places.__getitem__))
        self._places, self.ready = places, ReadyNodes(places)

    def _get_next_node(self, ready: ReadyNodes, tasks_to_run: list[str]) -> Any:
        while tasks_to_run and not (ready and ready.first < self._places[tasks_to_run[-1]]):
            if node := self._gen_node(None, tasks_to_run.pop()):
                return node
        return ready.popleft() if ready else None


def dispatcher(control: Any, own: Any, order: str, history: str) -> Any:
    """The dispatcher of the selected tasks and their dependencies, or doit's own if these form a cycle."""
    everything = tasks_to_run(control.tasks, control.selected_tasks, ("task_dep", "calc_dep", "setup_tasks"))
    try:
        kinds = {name: control.tasks[name].subtask_of or name for name in everything}
        priorities = numbers(timed(everything, kinds, history or ()), order)
    except CycleError:  # doit reports it in its own words
        return own()
    except EligoError as error:
        raise InvalidCommand(str(error)) from None
    places = {task: place for place, task in enumerate(priorities)}
    return OrderedDispatcher(
        control, places, tasks_to_run(control.tasks, control.selected_tasks, ("task_dep", "calc_dep"))
    )


def tasks_to_run(tasks: Mapping[str, Any], selected: Sequence[str], ways: Sequence[str]) -> dict[str, list[str]]:
    """The selected tasks and all their dependencies of these kinds, each with its direct dependencies."""
    dependencies: dict[str, list[str]] = {}
    waiting = list(reversed(selected))
    while waiting:
        task = waiting.pop()
        if task not in dependencies:
            needs = (need for way in ways for need in sorted(getattr(tasks[task], way)) if need in tasks)
            dependencies[task] = list(dict.fromkeys(needs))
            waiting.extend(dependencies[task])
    return dependencies

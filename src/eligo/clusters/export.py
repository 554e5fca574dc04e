"""Fat tasks for engines: Pegasus cluster labels, Snakemake groups, and a DAGMan file of fat nodes with a script each.

Each fat task becomes a cluster; tasks in no fat task stay single. Executed tasks are left out, and clusters that wait for
each other are refused. Each engine's writer reports what its format cannot represent: names in Pegasus and DAGMan files have
no blanks, for example.
"""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eligo.clusters.fat import FatTask
from eligo.dag import Dag
from eligo.errors import CycleError, FormatError, InputError, shorten
from eligo.formats import dagman, pegasus, source_text
from eligo.formats.fidelity import ALL, as_runnable
from eligo.workflow import NOTHING, Task, Workflow

EXPORTS = ("pegasus", "snakemake", "dagman")


@dataclass(frozen=True, eq=False)
class _Clustered:
    """A workflow without its executed tasks, and with its tasks in clusters."""

    #: the workflow without executed tasks, and the number of each task in the original workflow
    flow: Workflow
    numbers: Mapping[str, int]
    #: the cluster of every task that is in one
    labels: Mapping[str, str]
    #: the tasks of every node by its name, a cluster or a single task; and the dag of the nodes
    nodes: Mapping[str, Sequence[str]]
    dag: Dag


def _cluster_tasks(flow: Workflow, fats: Sequence[FatTask], executed: Iterable[str]) -> _Clustered:
    labels, numbers, rest = labels_of(flow, fats), flow.dag.index, _without(flow, executed)
    again = next((task for task in labels if task not in rest.dag), None)
    if again is not None:
        raise InputError(f"{again!r} is in a fat task but already executed")
    nodes = {f"fat_{i}": fat.tasks for i, fat in enumerate(fats, 1)}
    nodes |= {f"task_{numbers[name]}": (name,) for name in rest.dag.tasks if name not in labels}
    try:
        return _Clustered(rest, numbers, labels, nodes, _quotient(rest.dag, nodes))
    except CycleError as error:
        raise InputError(
            f"the fat tasks depend on each other in a cycle, so they cannot be clusters: {error}"
        ) from None


def _without(flow: Workflow, executed: Iterable[str]) -> Workflow:
    """The workflow without its executed tasks."""
    done = flow.dag.indices(tuple(executed))
    if not len(done):
        return flow
    residual = flow.dag.induced(np.delete(np.arange(len(flow), dtype=np.int32), done))
    details = {name: task for name, task in flow.details.items() if name in residual}
    return replace(flow, dag=residual, details=details)


def _quotient(dag: Dag, nodes: Mapping[str, Sequence[str]]) -> Dag:
    """The dag of nodes: an arc for each two nodes of which a task of one needs a task of the other."""
    owner = np.empty(len(dag), np.int32)
    for number, node in enumerate(nodes.values()):
        owner[dag.indices(node)] = number
    tails, heads = owner[dag.tails], owner[dag.child]
    between = tails != heads
    return Dag.from_arrays(len(nodes), tails[between], heads[between], list(nodes))


def labels_of(flow: Workflow, fats: Sequence[FatTask]) -> dict[str, str]:
    """The label of every task that is in a fat task: fat_1, fat_2 and so on, in the order given.

    >>> from eligo.clusters import cluster
    >>> pair = Workflow(Dag.from_arcs([("a", "b"), ("b", "c")]))
    >>> labels_of(pair, [cluster(pair, 2)])
    {'a': 'fat_1', 'b': 'fat_1'}
    """
    labels: dict[str, str] = {}
    for number, fat in enumerate(fats, 1):
        for task in fat.tasks:
            if task not in flow.dag:
                raise InputError(f"{task!r} is in a fat task but not in this workflow")
            if task in labels:
                raise InputError(f"{task!r} is in two fat tasks")
            labels[task] = f"fat_{number}"
    return labels


def pegasus_labels(flow: Workflow, fats: Sequence[FatTask], executed: Iterable[str] = ()) -> str:
    """The workflow for Pegasus with the profile `label` on clustered jobs, for `pegasus-plan --cluster label`.

    If it was read from a Pegasus file, everything else stays as it is there.
    """
    clustered = _cluster_tasks(flow, fats, executed)
    source = source_text(flow) if flow.origin is not None and flow.origin.format == pegasus.NAME else None
    if source is not None and len(clustered.flow) == len(flow):
        return pegasus.clustered(source, flow, clustered.labels)
    return pegasus.generate(clustered.flow, clustered.labels)


def snakemake_groups(flow: Workflow, fats: Sequence[FatTask], executed: Iterable[str] = ()) -> str:
    """A Snakefile with a rule for every task, in the group of its fat task, that runs the workflow through marker files.

    Groups of several parts need `--group-components`, which a comment at the top gives in full. The commands of DAGMan nodes
    are read from their submit files.
    """
    flow = as_runnable(flow, ALL, elsewhere=True)
    clustered = _cluster_tasks(flow, fats, executed)
    labels, numbers, dag = clustered.labels, clustered.numbers, clustered.flow.dag
    marks = {name: f".eligo/{numbers[name]}.done" for name in dag.tasks}
    parts = [(f"fat_{i}", len(dag.subdag(fat.tasks).components())) for i, fat in enumerate(fats, 1)]
    several = " ".join(f"{label}={count}" for label, count in parts if count > 1)
    lines = [f"# snakemake --group-components {several}"] if several else []
    lines += ["rule all:", f"    input: {', '.join(repr(marks[name]) for name in dag.sinks) or '[]'}", ""]
    for name in dag.tasks:
        needs = ", ".join(repr(marks[parent]) for parent in dag.parents(name))
        lines += [f"rule task_{numbers[name]}:  # {name}"]
        lines += [f"    input: {needs}"] if needs else []
        lines += [f"    output: touch({marks[name]!r})"]
        lines += [f"    group: {labels[name]!r}"] if name in labels else []
        lines += [f"    shell: {_python(_line(flow.task(name)))}", ""]
    return "\n".join(lines)


def _python(line: str) -> str:
    """A shell line in the form that Snakemake expects: a Python string with doubled braces."""
    return repr(line.replace("{", "{{").replace("}", "}}"))


def _line(task: Task) -> str:
    """One line of a shell script that runs a task and has no other effect on the script."""
    if not task.command or task.command == NOTHING:
        return NOTHING
    if isinstance(task.command, str):
        return shlex.join(["/bin/sh", "-c", "--", task.command])
    if task.command[0].startswith("-"):
        raise FormatError(
            f"a script cannot represent the program of task {shorten(task.name)!r}: it would be read as an option"
        )
    # a separate shell that only runs a program: the script itself would execute "exit", "cd" or "A=1"
    return shlex.join(["/bin/sh", "-c", 'exec "$@"', "sh", *task.command])


def dagman_nodes(flow: Workflow, fats: Sequence[FatTask], executed: Iterable[str] = ()) -> dict[str, str]:
    """The files of a DAGMan workflow of fat nodes, by name: `fat.dag`, and a script for every fat node.

    A fat node runs its tasks one after another and ends with the first that fails. It requests the cores and memory of the
    task that needs most. Tasks in no fat task are single nodes. The commands of DAGMan nodes are read from their submit
    files; other requests of these files are not exported: see `eligo.formats.fidelity`.
    """
    flow = as_runnable(flow, ALL, elsewhere=True)
    clustered = _cluster_tasks(flow, fats, executed)
    details = {name: _node(flow, name, node) for name, node in clustered.nodes.items()}
    scripts = {f"fat_{i}.sh": _script(flow, fat.tasks) for i, fat in enumerate(fats, 1)}
    return {"fat.dag": dagman.generate(Workflow(clustered.dag, details, flow.name)), **scripts}


def _node(flow: Workflow, name: str, node: Sequence[str]) -> Task:
    tasks = [flow.task(task) for task in node]
    cores = max((task.cores for task in tasks if task.cores), default=None)
    memory = max((task.memory for task in tasks if task.memory), default=None)
    if name.startswith("task_"):
        return replace(tasks[0], name=name)
    return Task(name=name, command=(f"./{name}.sh",), cores=cores, memory=memory)


def _script(flow: Workflow, node: Sequence[str]) -> str:
    lines = ["#!/bin/sh", "set -e"]
    for name in node:
        lines += [f"# {name}", _line(flow.task(name))]
    return "\n".join([*lines, ""])


def export_files(
    flow: Workflow, fats: Sequence[FatTask], format: str, executed: Iterable[str] = ()
) -> Mapping[str, str]:
    """The files of an export by name, without executed tasks; a single file is named "" and may have any name."""
    match format:
        case "pegasus":
            return {"": pegasus_labels(flow, fats, executed)}
        case "snakemake":
            return {"": snakemake_groups(flow, fats, executed)}
        case "dagman":
            return dagman_nodes(flow, fats, executed)
    raise InputError(f"unknown export {format!r} (choose from {', '.join(EXPORTS)})")

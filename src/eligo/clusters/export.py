"""Fat tasks for engines: Pegasus cluster labels, Snakemake groups, and a DAGMan file of fat nodes with a script each.

A workflow that was dealt out whole gives one cluster a fat task; of a single fat task the other tasks stay by themselves.
What each engine cannot hold is told by its writer: names in Pegasus and DAGMan files have no blanks, for example.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from eligo.clusters.fat import FatTask
from eligo.dag import Dag
from eligo.errors import FormatError, InputError
from eligo.formats import dagman, json_text, pegasus
from eligo.workflow import Task, Workflow

EXPORTS = ("pegasus", "snakemake", "dagman")


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
                raise InputError(f"{task!r} is in two fat tasks, so it belongs to no one cluster")
            labels[task] = f"fat_{number}"
    return labels


def pegasus_labels(flow: Workflow, fats: Sequence[FatTask]) -> str:
    """The workflow for Pegasus with the profile `label` on clustered jobs, for `pegasus-plan --cluster label`."""
    labels = labels_of(flow, fats)
    lines = []
    for line in pegasus.generate(flow).split("\n"):
        row = json.loads(line[2:]) if line.startswith('- {"type"') else None
        if row is None or row["id"] not in labels:
            lines.append(line)
            continue
        row.setdefault("profiles", {}).setdefault("pegasus", {})["label"] = labels[row["id"]]
        lines.append(f"- {json_text.quote(row)}")
    return "\n".join(lines)


def snakemake_groups(flow: Workflow, fats: Sequence[FatTask]) -> str:
    """A Snakefile with a rule for every task, in the group of its fat task, that runs the workflow through marker files.

    Groups of several parts need `--group-components`, which a comment at the top spells out.
    """
    labels, dag = labels_of(flow, fats), flow.dag
    marks = {name: f".eligo/{number}.done" for number, name in enumerate(dag.tasks)}
    parts = [(f"fat_{i}", len(dag.subdag(fat.tasks).components())) for i, fat in enumerate(fats, 1)]
    several = " ".join(f"{label}={count}" for label, count in parts if count > 1)
    lines = [f"# snakemake --group-components {several}"] if several else []
    lines += ["rule all:", f"    input: {', '.join(repr(marks[name]) for name in dag.sinks) or '[]'}", ""]
    for number, name in enumerate(dag.tasks):
        needs = ", ".join(repr(marks[parent]) for parent in dag.parents(name))
        lines += [f"rule task_{number}:  # {name}"]
        lines += [f"    input: {needs}"] if needs else []
        lines += [f"    output: touch({marks[name]!r})"]
        lines += [f"    group: {labels[name]!r}"] if name in labels else []
        lines += [f"    shell: {_python(_line(flow.task(name)))}", ""]
    return "\n".join(lines)


def _python(line: str) -> str:
    """A shell line as Snakemake wants it: a Python string in which braces are doubled."""
    return repr(line.replace("{", "{{").replace("}", "}}"))


def _line(task: Task) -> str:
    """One line of a shell script that runs a task and nothing else, whatever its command does."""
    if not task.command:
        return ":"
    if isinstance(task.command, str):
        return shlex.join(["/bin/sh", "-c", task.command])
    return shlex.join(task.command)


def dagman_nodes(flow: Workflow, fats: Sequence[FatTask]) -> dict[str, str]:
    """The files of a DAGMan workflow of fat nodes, by name: `fat.dag`, and a script for every fat node.

    A fat node runs its tasks one after another and ends with the first that fails. It asks for the cores and memory of the
    task that needs most. Tasks in no fat task are nodes by themselves.
    """
    if flow.origin is not None and flow.origin.format == dagman.NAME:
        raise FormatError("the nodes of a DAGMan file name submit descriptions, which one script cannot run")
    labels = labels_of(flow, fats)
    nodes = [fat.tasks for fat in fats] + [(name,) for name in flow.dag.tasks if name not in labels]
    names = [f"fat_{i}" for i in range(1, len(fats) + 1)]
    names += [f"task_{flow.dag.index[node[0]]}" for node in nodes[len(fats) :]]
    quotient = _quotient(flow, nodes, names)
    scripts = {f"{name}.sh": _script(flow, fat.tasks) for name, fat in zip(names, fats, strict=False)}
    return {"fat.dag": dagman.generate(quotient), **scripts}


def _quotient(flow: Workflow, nodes: Sequence[Sequence[str]], names: Sequence[str]) -> Workflow:
    owner = np.empty(len(flow), np.int32)
    for number, node in enumerate(nodes):
        owner[flow.dag.indices(node)] = number
    tails, heads = owner[flow.dag.tails], owner[flow.dag.child]
    between = tails != heads
    dag = Dag.from_arrays(len(nodes), tails[between], heads[between], names)
    details = {name: _node(flow, name, node) for name, node in zip(names, nodes, strict=True)}
    return Workflow(dag, details, flow.name)


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


def exported(flow: Workflow, fats: Sequence[FatTask], format: str) -> Mapping[str, str]:
    """The files of an export by name; a single one is named "" and may go anywhere."""
    match format:
        case "pegasus":
            return {"": pegasus_labels(flow, fats)}
        case "snakemake":
            return {"": snakemake_groups(flow, fats)}
        case "dagman":
            return dagman_nodes(flow, fats)
    raise InputError(f"there is no export {format!r}; there are {', '.join(EXPORTS)}")

"""Pegasus 5: the abstract workflow as YAML (https://pegasus.isi.edu).

    pegasus: "5.0.4"
    name: diamond
    jobs:
    - {type: job, id: ID1, name: findrange, arguments: [-i, f.a], uses: [{lfn: f.a, type: input}, {lfn: f.b, type: output}],
       profiles: {pegasus: {runtime: 60, cores: 2}, dagman: {PRIORITY: 10}}}
    - {type: pegasusWorkflow, id: ID2, file: inner.yml, arguments: [], uses: [{lfn: f.b, type: input}]}
    jobDependencies:
    - {id: ID1, children: [ID2]}

A task is named by the job's id; `eligo.formats.shared.pegasus_jobs` says what becomes of the rest. There is an arc for every
dependency, and as Pegasus itself does, one to every job from the job that writes a file that it reads. Catalogs and
hooks are passed over, and listed for a run: see `eligo.formats.fidelity`.

What is written is valid by Pegasus' schema, so ids are of letters, digits and -_, and there is at least one job. The
sizes of files that no task uses are not written.

>>> flow = parse('''
... pegasus: "5.0"
... jobs:
... - {id: a, name: cut, arguments: [-f, 1], uses: [{lfn: x, type: output}]}
... - {id: b, name: sort, arguments: [], uses: [{lfn: x, type: input, size: "12"}]}
... ''')
>>> list(flow.dag.arcs()), flow.task("a").command, flow.file_sizes["x"]
([('a', 'b')], ('cut', '-f', '1'), 12)
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import Any

from eligo.errors import DuplicateTaskError, FormatError, UnknownTaskError, shorten
from eligo.formats.shared import data_arcs, json_text, pegasus_jobs, yaml_edit, yaml_text
from eligo.formats.shared.declared_arcs import Jobs, combined
from eligo.formats.shared.document import MisfitError, array, children, mapping, misfits_in, string, strings
from eligo.formats.shared.editing import applied
from eligo.rows import Ints
from eligo.workflow import Origin, Task, Unhonoured, Workflow

NAME = "pegasus"
PRIORITIES = True
CANNOT: tuple[str, ...] = ()
FIRST = pegasus_jobs.FIRST
advice, fitted = pegasus_jobs.advice, pegasus_jobs.fitted

Row = Mapping[str, Any]

_NONE: Mapping[str, str] = MappingProxyType({})

_KEYS = [
    re.compile(rf"^\s{{0,4}}[\"']?{key}[\"']?[ \t]*:{value}", re.MULTILINE)
    for key, value in (("(?:x-)?pegasus", ""), ("jobs", r"[ \t]*(?:\[|#|\r?$)"))
]


def sniff(text: str) -> bool:
    """Whether lines begin with the keys "pegasus" (or "x-pegasus") and "jobs"."""
    return all(key.search(text) for key in _KEYS)


# Reading


def parse(text: str) -> Workflow:
    """The workflow that a Pegasus text describes."""
    with misfits_in(text):
        top = mapping(yaml_text.load(text, words=True), "the document")
        jobs = [mapping(row, f"job {i}") for i, row in enumerate(_jobs(top), 1)]
        tasks = {}
        sizes: dict[str, int] = {}
        for number, row in enumerate(jobs, 1):
            task = _task(row, number, sizes)
            if task.name in tasks:
                raise DuplicateTaskError(task.name)
            tasks[task.name] = task
        used = Jobs(tuple(tasks), [task.inputs for task in tasks.values()], [task.outputs for task in tasks.values()])
        dag, remarks = combined(used, _stated(top, tuple(tasks)))
        details = {name: task for name, task in tasks.items() if task.category or task.details()}
        version = None if top.get("pegasus") is None else string(top["pegasus"], '"pegasus"')
        name = None if top.get("name") is None else string(top["name"], "the workflow's name")
        asked = tuple(_unhonoured(top, jobs, tuple(tasks)))
        origin = Origin(format=NAME, version=version, remarks=remarks, unhonoured=asked)
        return Workflow(dag, details, name, origin, sizes)


def _unhonoured(top: Row, jobs: Sequence[Row], names: tuple[str, ...]) -> Iterator[Unhonoured]:
    """What the file asks for and a run does not do."""
    for key in ("transformationCatalog", "replicaCatalog", "siteCatalog", "hooks"):
        if top.get(key):
            yield Unhonoured(key, "at the top")
    everywhere = pegasus_jobs.unhonoured(
        _profiles(top, "the workflow") if isinstance(top.get("profiles"), dict) else ()
    )
    yield from (Unhonoured(key, "profiles of the workflow") for key in everywhere)
    for name, row in zip(names, jobs, strict=True):
        type_ = row.get("type")
        keys = [str(type_)] if type_ in pegasus_jobs.RUNNERS else []
        keys += ["hooks"] if row.get("hooks") else []
        yield from (Unhonoured(key, "its job", (name,)) for key in keys)
        yield from (Unhonoured(key, "its profiles", (name,)) for key in pegasus_jobs.unhonoured(_profiles(row, name)))


def _jobs(top: Row) -> list[Any]:
    if top.get("jobs") is None:
        raise MisfitError('there are no jobs: a Pegasus workflow lists them under "jobs"')
    return array(top["jobs"], '"jobs"')


def _stated(top: Row, names: tuple[str, ...]) -> tuple[Ints, Ints]:
    """The ends of every arc that jobDependencies states."""
    index = {name: i for i, name in enumerate(names)}
    ends: list[tuple[int, int]] = []
    for number, item in enumerate(array(top.get("jobDependencies"), '"jobDependencies"'), 1):
        row = mapping(item, f"dependency {number}")
        parent = string(row.get("id"), f"the id of dependency {number}")
        below = strings(row.get("children"), parent, "children")
        try:
            ends += zip(repeat(index[parent]), map(index.__getitem__, below), strict=False)
        except KeyError as error:
            raise UnknownTaskError(error.args[0]) from None
    return data_arcs.columns(ends)


def _task(row: Row, number: int, sizes: dict[str, int]) -> Task:
    name = string(row.get("id"), f"the id of job {number}")
    inputs, outputs = _used(row, name, sizes)
    streams = [
        (sign, None if row.get(key) is None else _lfn(row[key], f'"{key}" of {shorten(name)!r}'))
        for key, sign in (("stdin", "<"), ("stdout", ">"), ("stderr", "2>"))
    ]
    for sign, file in streams:
        if file is not None:
            (inputs if sign == "<" else outputs).setdefault(file)
    arguments = [_lfn(word, f"an argument of {shorten(name)!r}") for word in array(row.get("arguments"), "arguments")]
    type_ = row.get("type")
    if type_ in pegasus_jobs.RUNNERS:
        category: str | None = str(type_)
        file = _lfn(row.get("file"), f"the file of {shorten(name)!r}")
        command: str | tuple[str, ...] = (pegasus_jobs.RUNNERS[str(type_)], *arguments, file)
    else:
        transformation = string(row.get("name"), f"the transformation of {shorten(name)!r}")
        category = pegasus_jobs.category_of(transformation, name)
        command = pegasus_jobs.redirected(pegasus_jobs.command_of(transformation, arguments), streams)
    metadata = row.get("metadata")
    known = pegasus_jobs.Known(command, category).corrected(metadata if isinstance(metadata, dict) else {})
    details = pegasus_jobs.profiled(_profiles(row, name))
    return Task(name=name, inputs=tuple(inputs), outputs=tuple(outputs), **known._asdict(), **details)


def _used(row: Row, name: str, sizes: dict[str, int]) -> tuple[dict[str, None], dict[str, None]]:
    """The files that a job reads and those that it writes, in order."""
    inputs: dict[str, None] = {}
    outputs: dict[str, None] = {}
    for item in array(row.get("uses"), f'"uses" of {shorten(name)!r}'):
        use = mapping(item, f'an item of "uses" of {shorten(name)!r}')
        file = string(use.get("lfn"), f'the lfn of a file in "uses" of {shorten(name)!r}')
        link = use.get("type")
        if not isinstance(link, str) or link not in pegasus_jobs.LINKS:
            raise MisfitError(f'"type" of file {shorten(file)!r} should be one of {", ".join(pegasus_jobs.LINKS)}')
        if "i" in pegasus_jobs.LINKS[link]:
            inputs[file] = None
        if "o" in pegasus_jobs.LINKS[link]:
            outputs[file] = None
        size = pegasus_jobs.bytes_of(use.get("size"))
        if size is not None:
            sizes.setdefault(file, size)
    return inputs, outputs


def _profiles(row: Row, name: str) -> Iterator[tuple[str, str, object]]:
    for space, keys in mapping(row.get("profiles") or {}, f'"profiles" of {shorten(name)!r}').items():
        for key, value in keys.items() if isinstance(keys, dict) else ():
            yield space, key, value


def _lfn(value: object, what: str) -> str:
    """A string, or the name of a file given as an object with an lfn."""
    return string(value.get("lfn") if isinstance(value, dict) else value, what)


# Writing


def generate(flow: Workflow, clusters: Mapping[str, str] = _NONE, old: Mapping[str, str] = _NONE) -> str:
    """The Pegasus text of a workflow, one job a line.

    *clusters* has the label of each job that is to be clustered, *old* the name that a job had before it was renamed.
    """
    if not len(flow):
        raise FormatError("Pegasus files have at least one job, and there is none")
    data_arcs.unmade(flow, "Pegasus")
    tasks = (flow.task(pegasus_jobs.checked_id(name)) for name in flow.dag.tasks)
    jobs = (_row(task, flow.file_sizes, clusters.get(task.name), old.get(task.name)) for task in tasks)
    arcs = zip(flow.dag.tasks, children(flow.dag), strict=True)
    dependencies = [{"id": name, "children": list(below)} for name, below in arcs if below]
    lines = ['pegasus: "5.0.4"', f"name: {json_text.quote(pegasus_jobs.title(flow.name))}", "jobs:"]
    lines += (f"- {json_text.quote(job)}" for job in jobs)
    lines.append("jobDependencies:" if dependencies else "jobDependencies: []")
    lines += (f"- {json_text.quote(row)}" for row in dependencies)
    return "\n".join([*lines, ""])


def prioritised(text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
    """The same text with these priorities as profiles for HTCondor and DAGMan."""
    for space, key in pegasus_jobs.PRIORITY:
        text = _profiled(text, flow, ["profiles", space, key], numbers)
    return text


def clustered(text: str, flow: Workflow, labels: Mapping[str, str]) -> str:
    """The same text with these labels, by which Pegasus clusters jobs."""
    return _profiled(text, flow, ["profiles", "pegasus", "label"], labels)


def _profiled(text: str, flow: Workflow, keys: Sequence[str], values: Mapping[str, int | str]) -> str:
    pairs = zip(flow.dag.tasks, yaml_edit.rows(text, "jobs"), strict=True)
    return applied(text, [yaml_edit.put(text, node, keys, values[name]) for name, node in pairs if name in values])


def _row(task: Task, sizes: Mapping[str, int], cluster: str | None, old: str | None) -> dict[str, Any]:
    job = pegasus_jobs.job_of(task)
    row: dict[str, Any] = {"type": job.kind, "id": task.name} | ({} if old is None else {"nodeLabel": old})
    row["name" if job.kind == "job" else "file"] = job.what
    row["arguments"] = list(job.arguments)
    row["uses"] = [
        {"lfn": file, "type": link} | ({"size": str(sizes[file])} if file in sizes else {})
        for file, link in pegasus_jobs.links_of(task).items()
    ]
    if job.metadata:
        row["metadata"] = job.metadata
    profiles = pegasus_jobs.profiles_of(task)
    if cluster is not None:
        profiles.setdefault("pegasus", {})["label"] = cluster
    if profiles:
        row["profiles"] = profiles
    return row

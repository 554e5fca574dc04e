"""Pegasus 5: the abstract workflow as YAML (https://pegasus.isi.edu).

    pegasus: "5.0.4"
    name: diamond
    jobs:
    - {type: job, id: ID1, name: findrange, arguments: [-i, f.a], uses: [{lfn: f.a, type: input}, {lfn: f.b, type: output}],
       profiles: {pegasus: {runtime: 60, cores: 2}, dagman: {PRIORITY: 10}}}
    - {type: pegasusWorkflow, id: ID2, file: inner.yml, arguments: [], uses: [{lfn: f.b, type: input}]}
    jobDependencies:
    - {id: ID1, children: [ID2]}

A task is named by the job's id. There is an arc for every dependency and, as in Pegasus itself, an arc to every job from
the jobs that write the files it reads. Catalogs and hooks are ignored, and listed as not honoured by a run: see
`eligo.formats.fidelity`.

The output is valid by Pegasus' schema. Therefore ids consist of letters, digits and -_, and there is at least one job. Sizes
of files that no task uses are not written.

>>> flow = parse('''
... pegasus: "5.0"
... jobs:
... - {id: a, name: cut, arguments: [-f, 1], uses: [{lfn: x, type: output}]}
... - {id: b, name: sort, arguments: [], uses: [{lfn: x, type: input, size: "12"}]}
... ''')
>>> list(flow.dag.arcs()), flow.task("a").command, flow.file_sizes["x"]
([('a', 'b')], ('cut', '-f', '1'), 12)

Jobs are the same here and in Pegasus' old XML, which `eligo.formats.dax` reads. A job runs a *transformation*. It is the
task's category, unless it is equal to the job's id; with the arguments, it is the task's command. `sh -c` and one word is
a command line for a shell. A workflow inside a workflow is one task: `pegasus-plan FILE` or `condor_submit_dag FILE`.

Run time, cores, memory (in MB of 2**20 bytes) and priority are *profiles*: pegasus runtime, cores and memory, dagman
PRIORITY; if these are missing, condor request_cpus, request_memory and priority. A priority is written as both. Values that
are not plain numbers, such as expressions of HTCondor, are ignored.

Two keys of metadata are read, and written only if needed: `category`, and `without`, which marks the command or the category
as unknown.

>>> command_of("align", ["-t", "4"]), command_of("sh", ["-c", "ls | wc"])
(('align', '-t', '4'), 'ls | wc')
>>> details_of([("pegasus", "memory", "2"), ("dagman", "PRIORITY", 7)])
{'memory': 2097152, 'priority': 7}
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import Any, NamedTuple

from eligo.errors import DuplicateTaskError, FormatError, UnknownTaskError, shorten
from eligo.formats.shared import data_arcs, document, json_text, names, yaml_text
from eligo.formats.shared.data_arcs import Jobs, combine
from eligo.formats.shared.document import MisfitError, array, children, mapping, misfits_in, short, string, strings
from eligo.formats.shared.edits import apply_edits, put_in_mapping, yaml_rows
from eligo.launch import Launch
from eligo.rows import Ints
from eligo.workflow import MEGABYTE, Origin, Task, Unhonoured, Workflow

NAME = "pegasus"
PRIORITIES = True
CANNOT, CAN = ("labels",), ("temporary",)

# Jobs

#: The types of uses of a file: i if the task reads it, o if it writes it.
LINKS = {"input": "i", "output": "o", "inout": "io", "checkpoint": "io", "none": ""}

#: The program that runs a workflow inside a workflow, by its type
RUNNERS = {"pegasusWorkflow": "pegasus-plan", "condorWorkflow": "condor_submit_dag"}

_SIGNS = "-0-9a-zA-Z_"
_ID = re.compile(f"[{_SIGNS}]+")
_NUMBER = re.compile(r"\s*([-+]?\d{1,19}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,3})?)\s*")
_BARE = re.compile(r"[^ \t\r\n]+")
_QUOTING = re.compile(r"[\"'\\]")
_PIECE = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*+)"|\\(.)""", re.DOTALL)
_SHELL_WORD = re.compile(r"""(?:[^ \t\r\n'"\\]|'[^']*'|"(?:[^"\\]|\\.)*+"|\\.)++""", re.DOTALL)
#: The profiles of a priority: DAGMan's, and the job's own, which HTCondor and the stage-in jobs use. A job without a condor
#: priority gets one from Pegasus, by its depth in the workflow.
PRIORITY = (("condor", "priority"), ("dagman", "PRIORITY"))
#: The default priority of the first task. Jobs that Pegasus adds have 700 to 1,000, and must not wait for all others.
FIRST = -1
#: The detail in each profile, and whether the profile takes precedence
_PLACES = {
    ("pegasus", "runtime"): ("seconds", True),
    ("pegasus", "cores"): ("cores", True), ("condor", "request_cpus"): ("cores", False),
    ("pegasus", "memory"): ("memory", True), ("condor", "request_memory"): ("memory", False),
    ("dagman", "priority"): ("priority", True), ("condor", "priority"): ("priority", False),
}  # fmt: skip
#: Profiles with which Pegasus selects a site, groups jobs and transfers files; they do not affect what a job does.
_PLANNING = re.compile(
    r"(?:hints|selector|stat)\.|condor\.(?:accounting_group|priority)|dagman\.(?:category|priority)|pegasus\.(?:label|runtime"
    r"|clusters|job\.|collapse|bundle|group|project|queue|diskspace|data\.|stage|transfer|gridstart|style|exitcode|pmc_)"
)
_UNITS: dict[str, Callable[[float], float]] = {
    "seconds": float, "cores": lambda n: n, "memory": lambda n: round(n * MEGABYTE), "priority": int,
}  # fmt: skip


Command = str | tuple[str, ...] | None


class JobFacts(NamedTuple):
    """The command and the category of a job's task."""

    command: Command
    category: str | None

    def with_metadata(self, metadata: Mapping[str, object]) -> "JobFacts":
        """These facts, corrected by the job's metadata."""
        if not metadata:
            return self
        category, without = metadata.get("category", self.category), str(metadata.get("without", "")).split()
        return JobFacts(
            None if "command" in without else self.command,
            category if isinstance(category, str) and "category" not in without else None,
        )


class PegasusJob(NamedTuple):
    """The parts of a written job: type ("job" or one of RUNNERS), transformation or file, arguments, and metadata."""

    kind: str
    what: str
    arguments: tuple[str, ...]
    metadata: dict[str, str]


def command_of(transformation: str, arguments: Sequence[str]) -> str | tuple[str, ...]:
    """The command of a job that runs a transformation."""
    if transformation == "sh" and len(arguments) == 2 and arguments[0] == "-c":
        return arguments[1]
    return (transformation, *arguments)


def redirect(command: str | tuple[str, ...], streams: Iterable[tuple[str, str | None]]) -> str | tuple[str, ...]:
    """The command with redirected streams, as a command line; each stream has a sign, such as <, and a file or None."""
    used = [f"{sign} {shlex.quote(file)}" for sign, file in streams if file is not None]
    if not used:
        return command
    return " ".join([command if isinstance(command, str) else shlex.join(command), *used])


def job_of(task: Task) -> PegasusJob:
    """The job for a task."""
    words = ("sh", "-c", task.command) if isinstance(task.command, str) else task.command
    if words and len(words) > 1 and task.category in RUNNERS and words[0] == RUNNERS[task.category]:
        return PegasusJob(task.category, words[-1], tuple(words[1:-1]), {})
    what, arguments = (words[0], tuple(words[1:])) if words else (task.category or task.name, ())
    default = JobFacts(command_of(what, arguments), category_of(what, task.name))
    metadata = {}
    if task.category is not None and task.category != default.category:
        metadata["category"] = task.category
    unknown = {"command": not words, "category": task.category is None}
    without = [key for key, missing in unknown.items() if missing and getattr(default, key) is not None]
    if without:
        metadata["without"] = " ".join(without)
    return PegasusJob("job", what, arguments, metadata)


def category_of(transformation: str, name: str) -> str | None:
    """The category of the task *name* that runs a transformation."""
    return None if transformation == name else transformation


def details_of(profiles: Iterable[tuple[str, str, object]]) -> dict[str, Any]:
    """The details of a task from profiles, each a namespace, a key and a value."""
    details: dict[str, Any] = {}
    env = dict[str, str]()
    for space, key, value in profiles:
        if is_variable(space, value):
            env[key] = str(value)
        detail, best = _PLACES.get((space.lower(), key.lower()), ("", False))
        number = _number(value) if detail and (best or detail not in details) else None
        if number is not None and (-(2**43) if detail == "priority" else 0) <= number < 2**43:
            details[detail] = _UNITS[detail](number)
    return {**details, "launch": Launch(env=env)} if env else details


def is_variable(space: str, value: object) -> bool:
    """Whether a profile of a job sets a variable of its environment."""
    return space.lower() == "env" and isinstance(value, str | int | float) and not isinstance(value, bool)


def unhonoured_keys(profiles: Iterable[tuple[str, str, object]], of_job: bool = True) -> list[str]:
    """The profiles that a run does not honour, each by namespace and key; those of `env` by the namespace alone.

    >>> unhonoured_keys([("env", "PATH", "/bin"), ("pegasus", "runtime", 3), ("condor", "request_cpus", "n")])
    ['condor.request_cpus']
    """
    keys = dict[str, None]()
    for space, key, value in profiles:
        name = space.lower(), key.lower()
        is_read = (name in _PLACES and _number(value) is not None) or (of_job and is_variable(space, value))
        if not is_read and not _PLANNING.match(".".join(name)):
            keys["env" if name[0] == "env" else f"{space}.{key}"] = None
    return list(keys)


def profiles_of(task: Task) -> dict[str, dict[str, object]]:
    """The profiles for the details of a task, by namespace and key; memory is rounded up to whole MB."""
    pegasus: dict[str, object] = {}
    if task.seconds is not None:
        pegasus["runtime"] = short(task.seconds)
    if task.cores is not None:
        pegasus["cores"] = short(task.cores)
    if task.memory is not None:
        pegasus["memory"] = -(-task.memory // MEGABYTE)
    profiles: dict[str, dict[str, object]] = {}
    if task.priority is not None:
        profiles = {space: {key: task.priority} for space, key in PRIORITY}
    profiles["pegasus"] = pegasus
    return {space: keys for space, keys in profiles.items() if keys}


def advice(flow: Workflow, path: str) -> list[str]:
    """Advice on the priorities that were written."""
    return [
        "Pegasus passes priorities on to DAGMan and HTCondor; its own jobs (staging and cleanup) run first",
        "DAGMan applies priorities only to throttled jobs: set dagman.maxjobs slightly above the slots you get",
    ]


def links_of(task: Task) -> dict[str, str]:
    """The use of each file of a task: input, output, or inout."""
    links = dict.fromkeys(task.inputs, "input")
    for file in task.outputs:
        links[file] = "output" if links.get(file, "output") == "output" else "inout"
    return links


def checked_id(name: str) -> str:
    """The name; raises if Pegasus does not accept it as the id of a job."""
    if not _ID.fullmatch(name):
        message = f"Pegasus cannot represent the job id {shorten(name)!r}: only letters, digits, - and _ are allowed"
        raise FormatError(message).cured_by("names")
    return name


def fitted(name: str) -> str:
    """The name with _ for every character that Pegasus does not allow."""
    return names.fitted(name, _SIGNS)


def title(name: str | None) -> str:
    """The name of a workflow, with _ for every character that Pegasus does not allow."""
    return fitted(name) if name else "workflow"


def bytes_of(size: object) -> int | None:
    """The value as a size in bytes; None if it is not a valid size."""
    number = _number(size)
    return None if number is None or not 0 <= number < 2**63 else round(number)


def split(line: str) -> list[str]:
    """The words of a line as a shell splits it; split at white space alone if quotes are not closed.

    >>> split("-i 'two words' it\\\\'s")
    ['-i', 'two words', "it's"]
    """
    if not _QUOTING.search(line) or _QUOTING.search(_PIECE.sub("", line)):
        return _BARE.findall(line)
    return [_PIECE.sub(_unquoted, word) for word in _SHELL_WORD.findall(line)]


def _unquoted(piece: re.Match[str]) -> str:
    if piece[1] is not None:
        return piece[1]
    return piece[3] if piece[2] is None else re.sub(r'\\(["\\$`])', r"\1", piece[2])


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    match = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if not match:
        return None
    return int(match[1]) if match[1].lstrip("-+").isdecimal() else float(match[1])


# Workflows


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
        dag, remarks = combine(used, _declared(top, tuple(tasks)))
        details = {name: task for name, task in tasks.items() if task.category or task.details()}
        version = None if top.get("pegasus") is None else string(top["pegasus"], '"pegasus"')
        name = None if top.get("name") is None else string(top["name"], "the workflow's name")
        asked = tuple(_unhonoured_features(top, jobs, tuple(tasks)))
        origin = Origin(format=NAME, version=version, remarks=remarks, unhonoured=asked)
        return Workflow(dag, details, name, origin, sizes)


def _unhonoured_features(top: Row, jobs: Sequence[Row], names: tuple[str, ...]) -> Iterator[Unhonoured]:
    """The features of the file that a run does not honour."""
    for key in ("transformationCatalog", "replicaCatalog", "siteCatalog", "hooks"):
        if top.get(key):
            yield Unhonoured(key, "at the top")
    profiles = _profiles(top, "the workflow") if isinstance(top.get("profiles"), dict) else ()
    everywhere = unhonoured_keys(profiles, of_job=False)
    yield from (Unhonoured(key, "profiles of the workflow") for key in everywhere)
    for name, row in zip(names, jobs, strict=True):
        type_ = row.get("type")
        keys = [str(type_)] if type_ in RUNNERS else []
        keys += ["hooks"] if row.get("hooks") else []
        yield from (Unhonoured(key, "its job", (name,)) for key in keys)
        yield from (Unhonoured(key, "its profiles", (name,)) for key in unhonoured_keys(_profiles(row, name)))


def _jobs(top: Row) -> list[Any]:
    if top.get("jobs") is None:
        raise MisfitError('no jobs (a Pegasus workflow lists them under "jobs")')
    return array(top["jobs"], '"jobs"')


def _declared(top: Row, names: tuple[str, ...]) -> tuple[Ints, Ints]:
    """The tails and heads of the arcs in jobDependencies."""
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
    inputs, outputs = _files(row, name, sizes)
    streams = [
        (sign, None if row.get(key) is None else _lfn(row[key], f'"{key}" of {shorten(name)!r}'))
        for key, sign in (("stdin", "<"), ("stdout", ">"), ("stderr", "2>"))
    ]
    for sign, file in streams:
        if file is not None:
            (inputs if sign == "<" else outputs).setdefault(file, True)
    arguments = [_lfn(word, f"an argument of {shorten(name)!r}") for word in array(row.get("arguments"), "arguments")]
    type_ = row.get("type")
    if type_ in RUNNERS:
        category: str | None = str(type_)
        file = _lfn(row.get("file"), f"the file of {shorten(name)!r}")
        command: str | tuple[str, ...] = (RUNNERS[str(type_)], *arguments, file)
    else:
        transformation = string(row.get("name"), f"the transformation of {shorten(name)!r}")
        category = category_of(transformation, name)
        command = redirect(command_of(transformation, arguments), streams)
    metadata = row.get("metadata")
    job = JobFacts(command, category).with_metadata(metadata if isinstance(metadata, dict) else {})
    details = details_of(_profiles(row, name))
    return Task(
        name=name,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        temporary=tuple(file for file, stays in outputs.items() if not stays),
        **job._asdict(),
        **details,
    )


def _files(row: Row, name: str, sizes: dict[str, int]) -> tuple[dict[str, bool], dict[str, bool]]:
    """The files that a job reads, and those that it writes, each with whether Pegasus keeps it."""
    inputs: dict[str, bool] = {}
    outputs: dict[str, bool] = {}
    for item in array(row.get("uses"), f'"uses" of {shorten(name)!r}'):
        use = mapping(item, f'an item of "uses" of {shorten(name)!r}')
        file = string(use.get("lfn"), f'the lfn of a file in "uses" of {shorten(name)!r}')
        link = use.get("type")
        if not isinstance(link, str) or link not in LINKS:
            links = ", ".join(LINKS)
            raise MisfitError(f'"type" of file {shorten(file)!r} must be one of {links}, got {document.actual(link)}')
        if "i" in LINKS[link]:
            inputs[file] = True
        if "o" in LINKS[link]:
            outputs[file] = str(use.get("stageOut")).lower() != "false"
        size = bytes_of(use.get("size"))
        if size is not None:
            sizes.setdefault(file, size)
    return inputs, outputs


def _profiles(row: Row, name: str) -> Iterator[tuple[str, str, object]]:
    for space, keys in mapping(row.get("profiles") or {}, f'"profiles" of {shorten(name)!r}').items():
        for key, value in keys.items() if isinstance(keys, dict) else ():
            yield space, key, value


def _lfn(value: object, what: str) -> str:
    """The value if it is a string, or the lfn of an object."""
    return string(value.get("lfn") if isinstance(value, dict) else value, what)


# Writing


def generate(flow: Workflow, clusters: Mapping[str, str] = _NONE, old: Mapping[str, str] = _NONE) -> str:
    """The Pegasus text of a workflow, one job per line.

    *clusters* has the label of each job to be clustered, *old* the old names of renamed jobs.
    """
    if not len(flow):
        raise FormatError("a Pegasus file must have at least one job, got an empty workflow")
    data_arcs.unmade(flow, "Pegasus")
    tasks = (flow.task(checked_id(name)) for name in flow.dag.tasks)
    jobs = (_row(task, flow.file_sizes, clusters.get(task.name), old.get(task.name)) for task in tasks)
    arcs = zip(flow.dag.tasks, children(flow.dag), strict=True)
    dependencies = [{"id": name, "children": list(below)} for name, below in arcs if below]
    lines = ['pegasus: "5.0.4"', f"name: {json_text.quote(title(flow.name))}", "jobs:"]
    lines += (f"- {json_text.quote(job)}" for job in jobs)
    lines.append("jobDependencies:" if dependencies else "jobDependencies: []")
    lines += (f"- {json_text.quote(row)}" for row in dependencies)
    return "\n".join([*lines, ""])


def prioritised(text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
    """The text with these priorities, as profiles for HTCondor and DAGMan."""
    for space, key in PRIORITY:
        text = _with_profiles(text, flow, ["profiles", space, key], numbers)
    return text


def clustered(text: str, flow: Workflow, labels: Mapping[str, str]) -> str:
    """The text with these labels, by which Pegasus clusters jobs."""
    return _with_profiles(text, flow, ["profiles", "pegasus", "label"], labels)


def _with_profiles(text: str, flow: Workflow, keys: Sequence[str], values: Mapping[str, int | str]) -> str:
    pairs = zip(flow.dag.tasks, yaml_rows(text, "jobs"), strict=True)
    return apply_edits(text, [put_in_mapping(text, node, keys, values[name]) for name, node in pairs if name in values])


def _row(task: Task, sizes: Mapping[str, int], cluster: str | None, old: str | None) -> dict[str, Any]:
    job = job_of(task)
    row: dict[str, Any] = {"type": job.kind, "id": task.name} | ({} if old is None else {"nodeLabel": old})
    row["name" if job.kind == "job" else "file"] = job.what
    row["arguments"] = list(job.arguments)
    row["uses"] = [
        {"lfn": file, "type": link}
        | ({"size": str(sizes[file])} if file in sizes else {})
        | ({"stageOut": False} if file in task.temporary else {})
        for file, link in links_of(task).items()
    ]
    if job.metadata:
        row["metadata"] = job.metadata
    profiles = profiles_of(task)
    if cluster is not None:
        profiles.setdefault("pegasus", {})["label"] = cluster
    if profiles:
        row["profiles"] = profiles
    return row

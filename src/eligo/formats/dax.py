"""DAX, the XML format of Pegasus before version 5: versions 2.0 to 3.6 are read, 3.6 is written.

    <adag version="3.6" name="diamond">
      <job id="ID1" name="findrange">
        <argument>-i <file name="f.a"/></argument>
        <profile namespace="pegasus" key="runtime">60</profile>
        <uses name="f.a" link="input" size="12"/> <uses name="f.b" link="output"/>
      </job>
      <dax id="ID2" file="inner.dax"><uses name="f.b" link="input"/></dax>
      <child ref="ID2"><parent ref="ID1"/></child>
    </adag>

A task is named by the job's id; `eligo.formats.pegasus` describes how other parts are read. Files of DAX 2 have `file` for
`name` and `filename` for `file`; those of the old workflow gallery have a `runtime` attribute, which is also read.
Arguments are split into words as in a shell.

There is an arc for every parent of a child, and an arc to every job from the job that writes a file that it reads. DAX was
designed to state all arcs, but since Pegasus 4.4 the planner adds those of files by default. If both together form a cycle,
the declared arcs count: see `eligo.formats.shared.data_arcs`.

The output is valid by the schema of DAX 3.6. Therefore ids consist of letters, digits and -_, and there is at least one job.
Sizes of files that no task uses are not written.

>>> flow = parse('<adag><job id="a" name="cut"/><job id="b" name="sort"/><child ref="b"><parent ref="a"/></child></adag>')
>>> list(flow.dag.arcs()), flow.task("a").category
([('a', 'b')], 'cut')
"""

import shlex
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from eligo.errors import DuplicateTaskError, FormatError, InputError, UnknownTaskError, shorten
from eligo.formats import pegasus
from eligo.formats.shared import data_arcs, xml_text
from eligo.formats.shared.data_arcs import Jobs, combine
from eligo.formats.shared.document import parents
from eligo.formats.shared.edits import Edit, Placed, apply_edits, parse_places
from eligo.formats.shared.xml_text import Element, escape, quote
from eligo.rows import Ints
from eligo.workflow import Origin, Task, Unhonoured, Workflow

NAME = "dax"
PRIORITIES = True
CANNOT, CAN = ("labels",), ("temporary",)
FIRST = pegasus.FIRST
advice, fitted = pegasus.advice, pegasus.fitted

#: The elements for workflows inside a workflow, and their types in Pegasus 5
KINDS = {"dax": "pegasusWorkflow", "dag": "condorWorkflow"}
#: The elements of catalogs and hooks, which a run does not honour
CATALOGS = {
    "executable": "transformationCatalog", "transformation": "transformationCatalog", "file": "replicaCatalog",
    "invoke": "hooks",
}  # fmt: skip

_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<adag xmlns="http://pegasus.isi.edu/schema/DAX" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"\
 xsi:schemaLocation="http://pegasus.isi.edu/schema/DAX http://pegasus.isi.edu/schema/dax-3.6.xsd"\
 version="3.6" name={name}>
"""


def sniff(text: str) -> bool:
    """Whether the first element is <adag>."""
    return xml_text.begins_with(text, ("adag",))


# Reading


def parse(text: str) -> Workflow:
    """The workflow that a DAX text describes."""
    reader = _DaxReader()
    takers = {"job": reader.job, "dax": reader.job, "dag": reader.job, "child": reader.child}
    xml_text.scan(text, takers, reader.enter)
    top = reader.top or {}
    tasks = reader.tasks
    names = tuple(tasks)
    jobs = Jobs(names, [task.inputs for task in tasks.values()], [task.outputs for task in tasks.values()])
    dag, remarks = combine(jobs, reader.declared())
    details = {name: task for name, task in tasks.items() if task.category or task.details()}
    asked = tuple(reader.unhonoured)
    origin = Origin(format=NAME, version=top.get("version"), remarks=remarks, unhonoured=asked)
    return Workflow(dag, details, top.get("name"), origin, reader.sizes)


class _DaxReader:
    """The parts of a DAX text, collected while it is parsed."""

    def __init__(self) -> None:
        self.top: dict[str, str] | None = None
        self.tasks: dict[str, Task] = {}
        self.sizes: dict[str, int] = {}
        self.arcs: list[tuple[str, str, int]] = []
        self.unhonoured: list[Unhonoured] = []

    def enter(self, element: Element) -> None:
        """Record the root element, and features that a run does not honour."""
        if self.top is None:
            if element.tag != "adag":
                raise FormatError(
                    f"not a DAX: the root element must be <adag>, got <{shorten(element.tag)}>", line=element.line
                )
            self.top = element.attributes
        elif element.tag in CATALOGS:
            self.unhonoured.append(Unhonoured(CATALOGS[element.tag], f"line {element.line}"))

    def job(self, element: Element) -> None:
        """Add a job."""
        if self.top is None:
            raise FormatError("not a DAX: no <adag> element", line=element.line)
        name = element.need("id")
        if name in self.tasks:
            raise DuplicateTaskError(name).at(element.line)
        where = f"line {element.line}"
        self.unhonoured += (Unhonoured(key, where, (name,)) for key in _unhonoured_features(element))
        try:
            self.tasks[name] = _task(name, element, self.sizes)
        except InputError as error:
            raise error.at(element.line) from None

    def child(self, element: Element) -> None:
        """Add the arcs to a child."""
        if self.top is None:
            raise FormatError("not a DAX: no <adag> element", line=element.line)
        child = element.need("ref")
        self.arcs += ((parent.need("ref"), child, parent.line) for parent in element.children("parent"))

    def declared(self) -> tuple[Ints, Ints]:
        """The tails and heads of the declared arcs."""
        index = {name: i for i, name in enumerate(self.tasks)}
        try:
            return data_arcs.columns([(index[parent], index[child]) for parent, child, _ in self.arcs])
        except KeyError as error:
            name = error.args[0]
            raise UnknownTaskError(name).at(next(arc[2] for arc in self.arcs if name in arc[:2])) from None


def _unhonoured_features(element: Element) -> list[str]:
    """The keys of a job's features that a run does not honour."""
    keys = [KINDS[element.tag]] if element.tag in KINDS else []
    keys += ["hooks"] if next(element.children("invoke"), None) is not None else []
    return keys + pegasus.unhonoured_keys(map(_profile, element.children("profile")))


def _profile(element: Element) -> tuple[str, str, object]:
    return element.attributes.get("namespace", ""), element.attributes.get("key", ""), element.all_text().strip()


def _task(name: str, element: Element, sizes: dict[str, int]) -> Task:
    files: dict[str, dict[str, None]] = {"i": {}, "o": {}, TEMPORARY: {}}
    arguments: list[str] = []
    profiles: list[tuple[str, str, object]] = []
    if "runtime" in element.attributes:
        profiles.append(("pegasus", "runtime", element.attributes["runtime"]))
    streams: list[tuple[str, str | None]] = []
    metadata: dict[str, object] = {}
    for item in element.content:
        if isinstance(item, str):
            continue
        if item.tag == "uses":
            _use(item, files, sizes)
        elif item.tag == "argument":
            arguments = _words(item)
        elif item.tag == "profile":
            profiles.append(_profile(item))
        elif item.tag == "metadata":
            metadata[item.attributes.get("key", "")] = item.all_text()
        elif item.tag in _STREAMS:
            sign, way = _STREAMS[item.tag]
            streams.append((sign, _file(item)))
            files[way].setdefault(_file(item))
        elif item.tag in _TOP_LEVEL:
            raise FormatError(f"<{item.tag}> inside <{element.tag}> is not supported", line=item.line)
    job = _command_and_kind(name, element, arguments, streams).with_metadata(metadata)
    return Task(
        name=name, command=job.command, inputs=tuple(files["i"]), outputs=tuple(files["o"]), category=job.category,
        temporary=tuple(files[TEMPORARY]),
        **pegasus.details_of(profiles),
    )  # fmt: skip


_TOP_LEVEL = ("job", "dax", "dag", "child", "adag")
TEMPORARY = "temporary"
_STREAMS = {"stdin": ("<", "i"), "stdout": (">", "o"), "stderr": ("2>", "o")}


def _command_and_kind(
    name: str, element: Element, arguments: list[str], streams: list[tuple[str, str | None]]
) -> pegasus.JobFacts:
    if element.tag in KINDS:
        kind = KINDS[element.tag]
        return pegasus.JobFacts((pegasus.RUNNERS[kind], *arguments, _file(element)), kind)
    transformation = element.need("name")
    command = pegasus.command_of(transformation, arguments)
    return pegasus.JobFacts(pegasus.redirect(command, streams), pegasus.category_of(transformation, name))


def _use(element: Element, files: dict[str, dict[str, None]], sizes: dict[str, int]) -> None:
    attributes = element.attributes
    file, link = _file(element), attributes.get("link", "none")
    if link not in pegasus.LINKS:
        links = ", ".join(pegasus.LINKS)
        message = f"the link of file {shorten(file)!r} must be one of {links}, got {shorten(link)!r}"
        raise FormatError(message, line=element.line)
    for way in pegasus.LINKS[link]:
        files[way][file] = None
    if "o" in pegasus.LINKS[link] and attributes.get("transfer") == "false":
        files[TEMPORARY][file] = None
    size = pegasus.bytes_of(attributes["size"]) if "size" in attributes else None
    if size is not None:
        sizes.setdefault(file, size)


def _file(element: Element) -> str:
    """The name of a file or of a workflow, in DAX 3 or DAX 2."""
    return element.attributes.get("file") or element.need("name")


def _words(element: Element) -> list[str]:
    """The arguments, text with files in it, split as in a shell, or at white space if quotes are not closed."""
    parts = [item if isinstance(item, str) else shlex.quote(_file(item)) for item in element.content]
    return pegasus.split("".join(parts))


# Writing


def generate(flow: Workflow, old: Mapping[str, str] = MappingProxyType({})) -> str:
    """The DAX text of a workflow; *old* has the old names of renamed jobs."""
    if not len(flow):
        raise FormatError("a DAX file must have at least one job, got an empty workflow")
    data_arcs.unmade(flow, "Pegasus")
    lines = [_HEAD.format(name=quote(pegasus.title(flow.name), "the workflow's name"))]
    for name in flow.dag.tasks:
        lines += _job_lines(flow.task(pegasus.checked_id(name)), flow.file_sizes, old.get(name))
    for name, above in zip(flow.dag.tasks, parents(flow.dag), strict=True):
        if above:
            lines.append(
                f'  <child ref="{name}">{"".join(f"""<parent ref="{parent}"/>""" for parent in above)}</child>\n'
            )
    return "".join([*lines, "</adag>\n"])


def prioritised(text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
    """The text with these priorities, as profiles for HTCondor and DAGMan."""
    for profile in reversed(pegasus.PRIORITY):  # the last one that is inserted comes first
        jobs = [element for element in parse_places(text).children if element.tag.rpartition(":")[2] in {"job", *KINDS}]
        pairs = zip(flow.dag.tasks, jobs, strict=True)
        text = apply_edits(text, [_profile_edit(job, profile, numbers[name]) for name, job in pairs])
    return text


def _profile_edit(job: Placed, profile: tuple[str, str], number: int) -> Edit:
    space, key = profile
    for child in job.children:
        there = tuple(child.attributes.get(name, "").lower() for name in ("namespace", "key"))
        if child.tag.endswith("profile") and there == (space, key.lower()):
            return child.fill(str(number))
    tag = job.tag[: -len(job.tag.rpartition(":")[2])] + "profile"
    behind = next((child for child in job.children if child.tag.endswith("argument")), None)
    return job.put(f'<{tag} namespace="{space}" key="{key}">{number}</{tag}>', behind)


def _job_lines(task: Task, sizes: Mapping[str, int], old: str | None) -> Iterator[str]:
    job = pegasus.job_of(task)
    tag = next((tag for tag, kind in KINDS.items() if kind == job.kind), "job")
    what = f"of task {shorten(task.name)!r}"
    label = "" if old is None else f" node-label={quote(old, 'the name ' + what)}"
    program = f"{'name' if tag == 'job' else 'file'}={quote(job.what, 'the program ' + what)}"
    yield f'  <{tag} id="{task.name}" {program}{label}>\n'
    if job.arguments:
        yield f"    <argument>{escape(shlex.join(job.arguments), 'the command ' + what)}</argument>\n"
    for key, text in job.metadata.items():
        yield f'    <metadata key="{key}">{escape(text, "the category " + what)}</metadata>\n'
    for space, keys in pegasus.profiles_of(task).items():
        for key, value in keys.items():
            yield f'    <profile namespace="{space}" key="{key}">{value}</profile>\n'
    for file, link in pegasus.links_of(task).items():
        size = f' size="{sizes[file]}"' if file in sizes else ""
        transfer = ' transfer="false"' if file in task.temporary else ""
        yield f'    <uses name={quote(file, "a file " + what)} link="{link}"{transfer}{size}/>\n'
    yield f"  </{tag}>\n"

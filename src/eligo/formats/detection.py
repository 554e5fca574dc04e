"""The formats: the contents of their modules, and the detection of a file's format from its name and content.

Files that describe a workflow to another program are refused, with how that program draws the dag:

>>> unsupported_by_name("pipeline/Snakefile").what
'a Snakefile'
>>> print(stranger_refusal(stranger_looking("cwlVersion: v1.2\\nclass: Workflow")))
this looks like a CWL document, which eligo cannot read: `cwltool --print-dot FILE > dag.dot` draws its dag
"""

import os
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypedDict, cast

from eligo.dag import Dag
from eligo.errors import FormatError, InputError
from eligo.formats.shared.files import plain_name
from eligo.workflow import Workflow

# The module of a format

#: The details that a format may be unable to represent, in words.
WORDS = {
    "name": "the workflow's name", "command": "commands", "inputs": "the files that tasks read",
    "outputs": "the files that tasks write", "seconds": "run times", "cores": "cores", "memory": "memory",
    "labels": "labels", "category": "categories", "priority": "priorities", "file_sizes": "sizes of files",
    "launch": "how commands are run", "more_memory": "memory after failures", "resources": "other resources",
    "temporary": "which files are temporary",
}  # fmt: skip

#: Those that only our own formats, which represent everything, can represent.
NATIVE = ("more_memory", "resources", "launch", "temporary")

#: Further input for some formats, in words.
GIVEN = {
    "arguments": "values for its names", "environment": "variables of the environment", "columns": "titles of columns",
    "trace": "a trace",
}  # fmt: skip


class Typed(str):
    """A value as a user typed it, such as 12; a format whose values have types converts it."""

    __slots__ = ()


class Given(TypedDict, total=False):
    """Further input for some formats; the others refuse it."""

    #: values for the names in a JX text
    arguments: Mapping[str, Any] | None
    #: the variables that a Makeflow text does not set itself
    environment: Mapping[str, str] | None
    #: the titles of the parents and of the children in a table
    columns: tuple[str, str] | None
    #: the file of a trace or report with the tasks of the processes that Nextflow draws
    trace: str | None


class Format(Protocol):
    """The contents of a format's module; the functions after `sniff` are optional."""

    NAME: str
    #: whether the format can represent the priority of a task
    PRIORITIES: bool
    #: what it cannot represent, out of `WORDS`
    CANNOT: tuple[str, ...]

    def parse(self, text: str, **options: Any) -> Workflow:
        """The workflow that the text describes, with the *options* that the format takes."""

    def generate(self, flow: Workflow, *, old: Mapping[str, str] = ...) -> str:
        """The text of the workflow; a format with `fitted` also takes the *old* names of renamed tasks."""

    def sniff(self, text: str) -> bool:
        """Whether the text looks like this format, at a glance."""

    def fitted(self, name: str) -> str:
        """The name of a task if the format can represent it, else a similar name that it can."""

    def fitted_file(self, name: str) -> str | None:
        """The name of a file if the format can represent it, else another name of the same file, or None."""

    def prioritised(self, text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
        """The text with these priorities and no other change; None if it has no place for them."""

    def write_wrapper(self, flow: Workflow, order: Sequence[str], path: str, first: int | None) -> list[str]:
        """Write priorities to another file that refers to the one that was read; returns messages for the user."""

    def write_in_place(self, flow: Workflow, order: Sequence[str], first: int | None) -> list[str]:
        """Write priorities into the file that was read; returns messages for the user."""


# Files of other programs

#: The number of characters that are examined.
GLANCE = 10_000

_PAGE = r"\A\s*+(?:<!--(?:[^-]|-(?!->))*+-->\s*+)*+<(?:!doctype\s++html|html)\b"


class Stranger(NamedTuple):
    """A kind of file that cannot be read: patterns of its name and its text, and what to do instead."""

    what: str
    name: str
    looks: str
    instead: str


STRANGERS = (
    Stranger("a CWL document", r".*\.cwl", r'(?:^|\{)\s*+"?cwlVersion"?\s*+:',
             "`cwltool --print-dot FILE > dag.dot` draws its dag"),
    Stranger("a Snakefile", r"snakefile.*|.*\.smk",
             r"^(?:rule|checkpoint)[ \t]+\w+:\s[^\0]*?^[ \t]+(?:input|output|shell|run|script):",
             "`snakemake --dag > dag.dot` or `snakemake --d3dag > dag.json` draws its dag"),
    Stranger("a Nextflow script", r".*\.nf", r"^nextflow\.(?:enable|preview)\.|^process[ \t]+\w+[ \t]*+\{",
             "`nextflow run FILE -preview -with-dag dag.mmd` draws its dag"),
    Stranger("the trace of a Nextflow run", "", r"\Atask_id\t",
             "a trace has no dependencies; draw them with `nextflow run ... -with-dag dag.mmd` and give the trace with"
             " that file"),
    Stranger("a WDL document", r".*\.wdl",
             r"^version[ \t]+(?:1\.\d|draft-\d|development)\s[^\0]*?^(?:workflow|task)[ \t]+\w+[ \t]*+\{"
             r"|^workflow[ \t]+\w+[ \t]*+\{[^\0]*?^[ \t]*+call[ \t]",
             "`wdlviz --no-render FILE > dag.dot`, of wdlviz, draws its dag"),
    Stranger("a Makefile", r"(?:gnu)?makefile(?:\..*)?|.*\.mk", r"^\.PHONY[ \t]*+:",
             "`make -Bnp --trace > build.make` lists its rules, and eligo reads that list"),
    Stranger("a Python program", r".*\.pyw?", r"\A#!\s*+/[^\n]*python",
             "pass its graph to eligo.plan, or write one arc per line, parent and child, to a .arcs file"),
    Stranger("a script", r".*\.(?:sh|bash|pl|r)",
             r"\A#!\s*+/[^\n]*\b(?:(?:[bdk]a|z|k|c|tc|fi)?sh|perl|ruby|Rscript|node|awk|lua|tclsh|php|groovy|julia)\b",
             "write one arc per line, parent and child, to a .arcs file"),
    Stranger("an HTML page", "", _PAGE,
             "draw the dag as .dot or .mmd, as `nextflow run ... -with-dag dag.mmd` does"),
)  # fmt: skip

#: A file that begins like this, if its name does not determine a format.
SCRIPT = Stranger("a script", "", r"\A#!\s*+/", "write one arc per line, parent and child, to a .arcs file")


def unsupported_by_name(path: str) -> Stranger | None:
    """The unsupported kind of file that has this name; None if there is none."""
    name = os.path.basename(plain_name(path.lower()))
    return next((kind for kind in STRANGERS if re.fullmatch(kind.name, name)), None)


def is_page(text: str) -> bool:
    """Whether a text begins like an HTML page.

    >>> is_page("<!-- a licence -->\\n<html><body>"), is_page("<graphml>")
    (True, False)
    """
    return re.match(_PAGE, text[:GLANCE], re.IGNORECASE) is not None


def stranger_looking(text: str, named: bool = False) -> Stranger | None:
    """The unsupported kind of file that a text looks like; *named* if the file's name determines a format."""
    glance, kinds = text[:GLANCE], STRANGERS if named else (*STRANGERS, SCRIPT)
    return next((kind for kind in kinds if re.search(kind.looks, glance, re.MULTILINE | re.IGNORECASE)), None)


def stranger_refusal(kind: Stranger) -> FormatError:
    """The error that names the kind of a file, and what to do instead."""
    return FormatError(f"this looks like {kind.what}, which eligo cannot read: {kind.instead}")


# Formats

#: The module of each format, imported only when needed, and the suffixes of its files. If a text looks like several formats,
#: the first one counts; the last one accepts the rest.
MODULES: dict[str, tuple[str, tuple[str, ...]]] = {
    "wfcommons": ("eligo.formats.wfcommons", (".json",)),
    "jx": ("eligo.formats.jx", (".jx", ".json")),
    "d3dag": ("eligo.formats.d3", (".json",)),
    "json": ("eligo.formats.json_format", (".json",)),
    "pegasus": ("eligo.formats.pegasus", (".yml", ".yaml")),
    "yaml": ("eligo.formats.yaml_format", (".yaml", ".yml")),
    "mermaid": ("eligo.formats.mermaid", (".mmd", ".mermaid")),
    "dot": ("eligo.formats.dot", (".dot", ".gv")),
    "dax": ("eligo.formats.dax", (".dax", ".xml")),
    "graphml": ("eligo.formats.graphml", (".graphml", ".xml")),
    "ninja": ("eligo.formats.ninja", (".ninja",)),
    "make": ("eligo.formats.make", (".make",)),
    "dagman": ("eligo.formats.dagman", (".dag",)),
    "makeflow": ("eligo.formats.makeflow", (".mf", ".makeflow")),
    "csv": ("eligo.formats.csv_format", (".csv", ".tsv")),
    "arcs": ("eligo.formats.arcs", (".arcs", ".edges", ".txt")),
    "lines": ("eligo.formats.lines", ()),
}

#: The formats that almost any text looks like: they need a file's name or an explicit format.
LOOSE = ("makeflow", "arcs", "lines")

#: The last formats of a suffix, which accept what the others do not.
BROAD = (*LOOSE, "json", "yaml")

#: The formats with an unmistakable beginning, which are recognised in a file of any name.
CERTAIN = ("wfcommons", "jx", "d3dag", "json", "mermaid", "dot", "dax", "graphml")
#: Those of them whose texts begin with a brace or bracket.
BRACED = CERTAIN[:4]
#: What every text of a format has, so that its module is imported for no other text.
PARTS = {"wfcommons": '"workflow"', "jx": '"rules"'}

_BLANK = r"(?:\s++|#[^\n]*+\n|---[^\n]*+\n)*+"
_PEGASUS = re.compile(_BLANK + r"(?:x-)?pegasus[ \t]*+:")
#: Formats whose texts could be mistaken for a list of arcs, or for a table without a header, and how they begin.
UNLIKE = {
    "arcs": {"pegasus": _PEGASUS, "csv": re.compile(_BLANK + r"[^\n,;\t]++[,;\t]")},
    "csv": {
        "pegasus": _PEGASUS,
        "yaml": re.compile(_BLANK + r"(?:name|params|tasks|arcs|nodes|files)[ \t]*+:\s"),
        "ninja": re.compile(_BLANK + r"(?:ninja_required_version|rule) "),
        "dagman": re.compile(_BLANK + r"\w++[ \t]"),
    },
}

StrPath = str | os.PathLike[str]

#: How texts of the formats in `CERTAIN` begin, so that their modules are imported for no other text.
_BEGINNING = re.compile(
    r"(?:\s++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|\#[^\n]*+|%%(?!\{)[^\n]*+)*+(?:[{\[<]|---|%%|strict\b|(?:di)?graph\b|flowchart)",
    re.IGNORECASE,
)
_SHEBANG = re.compile(r"#!\s*+/[^\n]*+")
_RESCUE = re.compile(r"\.rescue[0-9]{3,}$")  # the suffix that DAGMan adds to the name of its file


def module(format: str) -> Format:
    """The module of a format.

    >>> module("arcs").NAME
    'arcs'
    """
    if format not in MODULES:
        raise InputError(f"unknown format {format!r} (choose from {', '.join(sorted(MODULES))})")
    return cast(Format, import_module(MODULES[format][0]))


def detect(path: StrPath | None, text: str) -> str:
    """Detect the format of a text, with the path of its file or None or "-".

    A text with an unmistakable beginning has that format, whatever the file's name. Otherwise the suffix decides, and the
    content if several formats or none have the suffix. A list of words that is not in a file is a list of arcs. A file with
    another name that looks like no format is refused.

    >>> detect("x.json.gz", '{"arcs": []}'), detect("x.json", '{"name": "m", "workflow": {}}')
    ('json', 'wfcommons')
    >>> detect("-", "tasks:\\n- {name: a}"), detect(None, "digraph {}"), detect(None, "a b")
    ('yaml', 'dot', 'arcs')
    """
    name = "-" if path is None else os.fspath(path)
    fitting, body = of_suffix(name) or _of_shebang(text), without_shebang(text)
    stranger = None if fitting else unsupported_by_name(name)
    likely = [] if stranger else _likely(fitting, body)
    if detected := next((format for format in likely if module(format).sniff(body)), None):
        return detected
    if stranger := stranger or stranger_looking(text, bool(fitting)):
        raise stranger_refusal(stranger)
    return fitting[-1] if fitting else _loose(name, text)


def without_shebang(text: str) -> str:
    """The text without a first line such as `#!/usr/bin/env dot`, except its line end, so that line numbers stay the same.

    >>> without_shebang("#!/usr/bin/env makeflow\\na: b")
    '\\na: b'
    """
    line = _SHEBANG.match(text)
    return text[line.end() :] if line else text


def _of_shebang(text: str) -> list[str]:
    """The format that a first line such as `#!/usr/bin/env makeflow` names."""
    line = _SHEBANG.match(text)
    return ["makeflow"] if line and "makeflow" in line[0] and "--jx" not in line[0] else []


def _likely(fitting: Sequence[str], text: str) -> list[str]:
    """The formats that a text in a file of this suffix may have, in the order of preference."""
    if is_page(text):
        return ["mermaid"]
    if not fitting:
        return [format for format in MODULES if format not in LOOSE]
    own = [format for format in fitting if format not in BROAD and PARTS.get(format, "") in text]
    excluded = {*fitting, "json"} if "yaml" in fitting else {*fitting}  # JSON is YAML, too
    others = [format for format in _certain(text) if format not in excluded and PARTS.get(format, "") in text]
    unlike = UNLIKE.get(fitting[-1], {})
    return own + others + [format for format, looks in unlike.items() if looks.match(text)]


def _certain(text: str) -> Sequence[str]:
    """The formats in `CERTAIN` that a text with this beginning may have."""
    beginning = _BEGINNING.match(text)
    return () if beginning is None else BRACED if beginning[0][-1] in "[{" else CERTAIN


def _loose(path: str, text: str) -> str:
    """The format of a text that looks like no strict format, in a file whose suffix does not determine one."""
    if (path == "-" or "makeflow" in os.path.basename(path).lower()) and module("makeflow").sniff(text):
        return "makeflow"
    if path == "-":
        return "arcs"
    cure = "lists of arcs must be named .arcs, .edges or .txt"
    raise FormatError(f"cannot detect the format from the file's name or content ({cure})").cured_by("arcs")


def format_to_write(flow: Dag | Workflow, path: str) -> str:
    """The format to write for a path."""
    origin = flow.origin.format if isinstance(flow, Workflow) and flow.origin else "json"
    fitting = [origin] if path == "-" else of_suffix(path)
    if not fitting:
        raise FormatError("cannot determine the format to write from the file's name", path).cured_by("format")
    return origin if origin in fitting else fitting[-1]


def of_suffix(path: str) -> list[str]:
    """The formats that have the suffix of this path."""
    suffix = os.path.splitext(_RESCUE.sub("", plain_name(path.lower())))[1]
    return [name for name, (_, suffixes) in MODULES.items() if suffix in suffixes]

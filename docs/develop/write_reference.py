"""Writes the generated pages and tables of docs/reference from the code; `make docs` runs it, and a test checks it.

python docs/develop/write_reference.py            # writes docs/reference/{commands,python}.md and the marked tables

Signatures and docstrings are read from the sources, so that the pages are the same under every version of Python.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

import eligo
from eligo.allocating import ALLOCATORS
from eligo.cli.serve_verbs import app
from eligo.formats.fidelity import KEYS, SUBMIT_COMMANDS
from eligo.policies import POLICIES
from eligo.server.files import routes as file_routes
from eligo.server.http.handlers import Api
from eligo.server.http.routes import Endpoint, endpoints_of
from eligo.server.operations import Operations
from eligo.server.view.page_data import Views

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
SOURCES = Path(eligo.__file__).resolve().parents[1]
NOTE = "<!-- written by docs/develop/write_reference.py: edit the code, then run `make docs` -->"

#: every verb of the command, by purpose
VERBS: Mapping[str, tuple[str, ...]] = {
    "Plan": ("plan", "show", "explain", "verify", "convert"),
    "Run": ("run", "add"),
    "Look": ("status", "why", "log", "top", "page", "report"),
    "Serve": ("serve", "work", "submit", "results"),
    "Operate": (
        "list", "pause", "resume", "cancel", "retry", "release", "workers", "purge", "clients", "drain", "token", "key",
        "backup",
    ),
    "Study": ("compare", "batch", "cluster", "generate"),
}  # fmt: skip
#: every public name of Python, by subject
SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "Workflows": (
        "read", "write", "as_workflow", "from_dask", "Workflow", "Task", "Launch", "Origin", "Timed", "Dag", "Composition",
        "compose", "sum_of",
    ),
    "Orders and plans": (
        "order", "ChosenOrder", "Candidate", "plan", "Plan", "judge", "Judgement", "priorities", "explain", "verify",
        "Verification",
    ),
    "Run times and pools": ("read_history", "History", "with_history", "Pool", "earliest_finish", "FinishBound"),
    "Running": ("run", "Result", "Retries", "Progress"),
    "Handing out tasks": (
        "Execution", "allocator", "Allocator", "Ask", "Grant", "Prudent", "Rules", "batch", "Batch", "Batches",
    ),
    "Fat tasks": ("cluster", "fat_task", "FatTask", "Clusters", "deal", "Dealing"),
    "Profiles": ("profile", "cumulative_profile", "area", "normalised_area", "is_schedule", "check_schedule"),
    "Errors in files and arguments": (
        "EligoError", "InputError", "FormatError", "CycleError", "DuplicateTaskError", "UnknownTaskError", "UnhonouredError",
    ),
    "Errors of orders and executions": (
        "ScheduleError", "MoveError", "StateError", "TaskFailedError", "NotSelfContainedError",
    ),
    "Version": ("__version__",),
}  # fmt: skip
#: the addresses of files, which return bytes and are in no table of the server
FILES = {
    "HEAD": "The size of a file, or how many bytes of it have arrived.",
    "GET": "The content of a file; `Range` asks for a part.",
    "PUT": "Upload a file or the rest of it; the server checks the hash.",
}

#: every exit code of the command, and when it is used
EXIT_CODES = (
    ("0", "success, also if there was nothing to run or to change"),
    ("1", "tasks failed or are blocked: `run`, `submit --wait`, `status`, `serve --until-done`"),
    ("1", "the answer is no: an order or a proof that does not hold (`verify`)"),
    ("1", "nothing to act on: no task to `retry` or `release`, no token to revoke"),
    ("1", "a part of Eligo that is not built, such as the web page in a clone"),
    (
        "2",
        "wrong usage or input, a refusal, or a server that cannot be reached; one line on standard error gives the reason",
    ),
    ("2", "a run that had to stop: its state cannot be written, or the machine lacks memory, processes or space"),
    ("130", "stopped by Ctrl-C, a signal or `eligo cancel` before everything was done; the state is kept"),
)

#: what stands for the value of an option, by the type of the value
VALUES = {"str": "TEXT", "text": "TEXT", "int": "N", "integer": "N", "float": "NUMBER"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def cell(text: str) -> str:
    """A text in the form for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *(map(cell, row) for row in rows))]


# Commands


def verbs() -> dict[str, Any]:
    """Every verb that is not hidden, as an object of the argument parser."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {name: command for name, command in commands.items() if not command.hidden}


def commands_page() -> str:
    """Every verb with its usage, what it does, its arguments and its options."""
    known = verbs()
    lines = [
        "# Commands", "", NOTE, "",
        "Every verb with its arguments and options, as `eligo VERB --help` prints them. Old names of options that still work "
        "are in [vocabulary.md](vocabulary.md#deprecated-names).", "",
        *table(["", "verbs"], [(group, ", ".join(f"[{verb}](#eligo-{verb})" for verb in VERBS[group])) for group in VERBS]),
    ]  # fmt: skip
    for group, names in VERBS.items():
        lines += ["", f"## {group}"]
        for name in names:
            lines += ["", f"### eligo {name}", "", *_verb(name, known[name])]
    lines += ["", "## Exit codes", "", *table(["code", "when"], EXIT_CODES)]
    return "\n".join([*lines, ""])


def _verb(name: str, command: Any) -> Iterator[str]:
    """The lines of a verb; formatted here, because the output of the argument parser differs between its versions."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not each.hidden]
    yield f"`{' '.join(['eligo', name, *map(_usage, arguments), '[OPTIONS]'])}`"
    yield ""
    yield " ".join(inspect.cleandoc(command.help or "").split())
    rows = [(f"`{_argument(each)}`", each.help or "") for each in arguments]
    yield from ("", *table(["argument", "meaning"], rows)) if rows else ()
    rows = [(f"`{_flags(each)}`", _meaning(each)) for each in options]
    yield from ("", *table(["option", "meaning"], rows)) if rows else ()


def _argument(each: Any) -> str:
    name = str(each.metavar or each.name.upper()).strip("[].")
    return name if each.nargs == 1 else f"{name}..."


def _usage(each: Any) -> str:
    return _argument(each) if each.required else f"[{_argument(each)}]"


def _flags(each: Any) -> str:
    """The flags of an option, short ones first, and what stands for its value."""
    flags = ", ".join(sorted([*each.opts, *each.secondary_opts], key=lambda flag: flag.startswith("--")))
    return flags if each.is_flag else f"{flags} {each.metavar or VALUES.get(each.type.name, each.type.name.upper())}"


def _meaning(each: Any) -> str:
    """The help of an option with its default, where the help does not name it."""
    said = each.help or ""
    if each.is_flag or each.default is None or "[default:" in said or each.default in ("", ()):
        return said
    return f"{said} [default: {each.default}]"


# Python


def python_page() -> str:
    """Every public name with its signature and the first paragraph of its docstring."""
    lines = [
        "# Python", "", NOTE, "",
        "All public names of `eligo`. Other names may change in any release. The guides are "
        "[hand-out-tasks.md](../howto/hand-out-tasks.md) and [run.md](../howto/run.md).", "",
        *table(["subject", "names"], [
            (f"[{subject}](#{anchor(subject)})", ", ".join(f"`{name}`" for name in SUBJECTS[subject]))
            for subject in SUBJECTS
        ]),
    ]  # fmt: skip
    for subject, names in SUBJECTS.items():
        lines += ["", f"## {subject}"]
        for name in names:
            lines += ["", *_public(name)]
    return "\n".join([*lines, ""])


def anchor(heading: str) -> str:
    """The anchor that renderers of Markdown give to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _public(name: str) -> Iterator[str]:
    thing = getattr(eligo, name)
    if isinstance(thing, str):
        yield from (f"### {name}", "", "The version of Eligo, a string.")
        return
    source = Source(thing.__module__, name)
    node = source.node
    yield from (f"### {name}", "", "```python", f"eligo.{name}{source.constructor()}", "```", "")
    yield first_paragraph(node)
    if isinstance(node, ast.ClassDef) and not issubclass(thing, Exception):
        rows = list(_members(node))
        yield from ("", *table(["member", "meaning"], rows)) if rows else ()


class Source:
    """A public name where it is defined."""

    def __init__(self, module: str, name: str) -> None:
        path = SOURCES.joinpath(*module.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        self.module, self.text = module, file.read_text("utf-8")
        found = [
            node
            for node in ast.parse(self.text).body
            if isinstance(node, Function | ast.ClassDef) and node.name == name
        ]
        #: the last definition of the name: overloads come before it
        self.node = found[-1]

    def constructor(self) -> str:
        """The signature of a class or function."""
        if not isinstance(self.node, ast.ClassDef):
            return self.signature(self.node)
        made = next((each for each in self.node.body if isinstance(each, Function) and each.name == "__init__"), None)
        if made is not None:
            return self.signature(made, drop=1).removesuffix(" -> None")
        fields = [each for each in self.node.body if isinstance(each, ast.AnnAssign) and _is_public(each)]
        return _wrapped(list(map(self._field, fields))) if fields else ""

    def signature(self, node: Function, drop: int = 0) -> str:
        """The parameters of a function and what it returns, without the first few."""
        args = node.args
        plain = [*args.posonlyargs, *args.args]
        defaults = [*[None] * (len(plain) - len(args.defaults)), *args.defaults]
        parts = [self._parameter(*pair) for pair in zip(plain, defaults, strict=True)][drop:]
        parts += [f"*{self._parameter(args.vararg)}"] if args.vararg else ["*"] if args.kwonlyargs else []
        parts += [self._parameter(*pair) for pair in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
        parts += list(self._keywords(args.kwarg)) if args.kwarg else []
        return _wrapped(parts, "" if node.returns is None else f" -> {self._written(node.returns)}")

    def _parameter(self, arg: ast.arg, default: ast.expr | None = None) -> str:
        if arg.annotation is None:
            return arg.arg + ("" if default is None else f"={self._written(default)}")
        return f"{arg.arg}: {self._written(arg.annotation)}" + self._default(default)

    def _keywords(self, arg: ast.arg) -> Iterator[str]:
        """The keywords that ** takes, one by one if a TypedDict lists them."""
        listed = re.fullmatch(r"Unpack\[(\w+)\]", "" if arg.annotation is None else self._written(arg.annotation))
        if listed is None:
            yield f"**{self._parameter(arg)}"
            return
        kind = getattr(import_module(self.module), listed[1])
        source = Source(kind.__module__, listed[1])
        yield from (f"{source._field(each)} = ..." for each in source.node.body if isinstance(each, ast.AnnAssign))

    def _field(self, node: ast.AnnAssign) -> str:
        return f"{self._written(node.target)}: {self._written(node.annotation)}{self._default(node.value)}"

    def _default(self, value: ast.expr | None) -> str:
        """A default that is a plain value, also under a name of its module; one that is computed by a call is not shown."""
        if value is None:
            return ""
        known = getattr(import_module(self.module), value.id, None) if isinstance(value, ast.Name) else None
        if isinstance(known, str):
            return f' = "{known}"'
        return " = ..." if isinstance(value, ast.Call) else f" = {self._written(value)}"

    def _written(self, node: ast.expr) -> str:
        return " ".join((ast.get_source_segment(self.text, node) or "").split())


def _wrapped(parts: Sequence[str], end: str = "") -> str:
    """A signature on one line, or with a line for each parameter."""
    text = f"({', '.join(parts)}){end}"
    return text if len(text) <= 100 else "(\n" + "".join(f"    {part},\n" for part in parts) + f"){end}"


def _is_public(node: ast.AnnAssign) -> bool:
    return isinstance(node.target, ast.Name) and not node.target.id.startswith("_")


def _members(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The public methods and properties that a class defines, each with its first sentence."""
    for each in node.body:
        if not isinstance(each, Function) or each.name.startswith("_"):
            continue
        marks = {ast.unparse(mark) for mark in each.decorator_list}
        if any(mark.endswith((".setter", "overload")) for mark in marks):
            continue
        plain = marks & {"property", "cached_property"}
        names = [] if plain else [arg.arg for arg in (*each.args.args, *each.args.kwonlyargs)]
        drop = 0 if "staticmethod" in marks else 1
        shown = each.name if plain else f"{each.name}({', '.join(names[drop:])})"
        yield f"`{shown}`", first_sentence(first_paragraph(each))


def first_paragraph(node: Function | ast.ClassDef) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())


def first_sentence(text: str) -> str:
    """The text up to its first full stop."""
    return re.split(r"(?<=[.?!])\s+(?=[A-Z`*])", text, maxsplit=1)[0]


# Tables inside pages that people write


def endpoints() -> list[Endpoint]:
    """Every endpoint of the API; listing them needs no running server."""
    api, operations, views = object.__new__(Api), object.__new__(Operations), object.__new__(Views)
    return [*endpoints_of(api), *endpoints_of(operations), *views.endpoints()]


#: the addresses by purpose: a pattern of their paths
PURPOSES: Mapping[str, str] = {
    "Work": r"/v1/(request|deliver|renew)$",
    "Clients": r"/v1/clients",
    "Tokens": r"/v1/tokens",
    "Files": r"/v1/files",
    "Views of a workflow": r".*/(view|events|table|task|dag|dag/states|lineage|gantt|report)$",
    "Workflows": r"/v1/workflows",
    "The server": r"/",
}


def address_rows() -> dict[str, list[tuple[str, str, str]]]:
    """Every address of the API by purpose: method and path, the scope of the token, and its description."""
    rows = [(each.method, each.path, each.scopes, first_sentence(" ".join(each.says.split()))) for each in endpoints()]
    for route in file_routes(object()):  # type: ignore[arg-type]
        method = next(each for each in FILES if route.methods in ({each}, {each, "HEAD"}))
        rows.append((method, route.path, ("work", "submit"), FILES[method]))
    found: dict[str, list[tuple[str, str, str]]] = {title: [] for title in PURPOSES}
    for method, path, scope, says in rows:
        title = next(title for title, pattern in PURPOSES.items() if re.match(pattern, path))
        found[title].append((f"`{method} {path}`", _scopes(scope), says))
    return found


def address_tables() -> list[str]:
    """A table of addresses for each purpose."""
    lines = []
    for title, rows in address_rows().items():
        lines += [f"### {title}", "", *table(["address", "scope", "purpose"], rows), ""]
    return lines


def _scopes(scopes: Sequence[str]) -> str:
    return " or ".join(f"`{each}`" for each in scopes) or "none"


def keys_table() -> list[str]:
    """The features of each format that a run refuses unless they are ignored; submit descriptions have their own rows."""
    words = {f"`{format}`": keys for format, keys in KEYS.items()}
    words["`dagman`"] = words["`dagman`"][: -len(SUBMIT_COMMANDS)]
    words["submit description"] = SUBMIT_COMMANDS
    quoted = {name: [f"`{key}`" for key in keys] for name, keys in words.items()}
    return table(["format", "words"], [(name, part) for name, keys in quoted.items() for part in _chunks(keys)])


def _chunks(words: Sequence[str], width: int = 110) -> Iterator[str]:
    """Words with commas between them, in parts that fit into a cell."""
    line = ""
    for word in words:
        if line and len(line) + len(word) > width:
            yield line
            line = ""
        line = f"{line}, {word}" if line else word
    yield line


TABLES: Mapping[str, Callable[[], list[str]]] = {
    "http.md": address_tables,
    "what-run-honours.md": keys_table,
}
BEGIN, END = "<!-- written by write_reference.py -->\n", "<!-- end of what is written -->\n"


def with_table(text: str, lines: Sequence[str]) -> str:
    """A page with its marked table replaced by these lines."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}" + "\n".join([*lines, ""]) + f"{END}{after}"


def written() -> list[Path]:
    """Every page that this script writes completely or in part."""
    return [REFERENCE / name for name in ("commands.md", "python.md", *TABLES)]


def pages() -> dict[Path, str]:
    """Every page that this script writes, with its current text."""
    marked = [with_table((REFERENCE / name).read_text("utf-8"), make()) for name, make in TABLES.items()]
    return dict(zip(written(), [commands_page(), python_page(), *marked], strict=True))


def policy_names() -> list[str]:
    """Every policy that a command takes by name."""
    return [*POLICIES, *ALLOCATORS]


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, "utf-8")

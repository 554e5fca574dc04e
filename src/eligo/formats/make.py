"""What GNU make (4.0 or later) prints about a Makefile with `make -Bnp --trace TARGET > build.make`.

    Makefile:3: target 'b.o' does not exist
    cc -c b.c
    # Make data base, printed on Thu Nov 19 14:00:00 2026
    ...
    # Files

    b.o: b.c | out
    #  recipe to execute (from 'Makefile', line 3):
        $(CC) -c $<

make itself expands variables, functions and pattern rules: commands come from the trace, dependencies from the section
`# Files`. A task is a target with a recipe that the goals need, and is named by the target. Targets without a recipe are not
tasks: arcs pass through them. A phony target writes no file. Order-only prerequisites make arcs, but are not inputs. The kind
of a task is the place of its recipe.

The trace lacks the signs before a command. They come from the recipe in the listing: failures of commands with `-` are
ignored. Each line of a recipe has its own shell, and the first failure ends the recipe; with `.ONESHELL`, one shell gets all
lines. A listing does not show which variables a Makefile exports: the Makefiles are searched for `export`.

>>> flow = parse('''Makefile:3: target 'b' does not exist
... cp a b
... cd .; ls
... # GNU Make 4.3
... # Make data base, printed on Thu Nov 19 14:00:00 2026
... .DEFAULT_GOAL := b
... # Files
...
... b: a
... #  recipe to execute (from 'Makefile', line 3):
... \\t-cp $< $@
... \\tcd .; ls
...
... # Not a target:
... a:
... #  Last modified 2026-11-19 14:00:00.0
... ''')
>>> flow.task("b").command.split("\\n"), flow.task("b").inputs
(['set -e', "/bin/sh -c 'cp a b' || :", "/bin/sh -c 'cd .; ls'"], ('a',))
"""

import posixpath
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

from eligo.errors import FormatError, shorten
from eligo.formats.detection import WORDS
from eligo.formats.shared.data_arcs import through
from eligo.formats.shared.files import Beside
from eligo.formats.shared.rules import Rule, workflow_of
from eligo.workflow import NOTHING, Origin, Unhonoured, Workflow

NAME = "make"
PRIORITIES = False
#: It is only read.
CANNOT = tuple(WORDS)
TAKES = ("beside",)

COMMAND = "make -Bnp --trace TARGET > build.make"
#: The maximum number of arcs after the targets without a recipe are replaced by arcs.
MOST_ARCS = 2_000_000
#: The maximum depth of variables at the beginning of a command.
DEEPEST = 8

_VERSION, _DATA_BASE, _FILES = "# GNU Make ", "# Make data base, printed on ", "\n# Files\n"
_TRACE = re.compile(r"([^\s'][^']*:\d+|<builtin>): (?:update )?target '(.+?)' (?:does not exist|due to: .*)")
_MESSAGE = re.compile(r"(?:# )?[\w./-]*make(\[\d+\])?: (Entering|Leaving)?.*")
_TARGET = re.compile(r"(.+?)(::?)(?= |$)(?: ([^|]*))?(?:\|(.*))?")
_RECIPE = re.compile(r"^#  (?:recipe|commands) to execute .*\n([\s\S]*)", re.MULTILINE)
_VARIABLE, _DEFINE = re.compile(r"([^\s:#=]+) :{0,3}=(?: (.*))?"), re.compile(r"define (\S+)(?: :?=)?")
_ASSIGNMENT = re.compile(r".+?: (\S+) [:+?!]*= ?(.*)")  # a variable of one target
_REFERENCE = re.compile(r"\$(?:\((?:call +)?([\w.-]+)(?:,[^()]*)?\)|\{([\w.-]+)\}|(\w))")
_SIGNS, _NO_SIGNS = re.compile(r"[-@+\s]*"), re.compile("")
_SHELLS = {"sh", "bash", "dash", "ksh", "zsh", "ash"}  # with .ONESHELL, the signs of all lines are removed for these
_EXPORT = re.compile(r"^ *export\b", re.MULTILINE)
_SERIAL = "NOTPARALLEL"
_RECURSIVE = re.compile(r"\$[({]MAKE[)}]")


@dataclass(slots=True)
class _File:
    """A file or target of the section `# Files`."""

    inputs: list[str] = field(default_factory=list)
    order_only: list[str] = field(default_factory=list)
    also: list[str] = field(default_factory=list)
    recipe: list[str] = field(default_factory=list)
    #: the variables that only its recipe has
    variables: dict[str, str] = field(default_factory=dict)
    is_phony: bool = False
    is_intermediate: bool = False
    exists: bool = False
    doubled: bool = False

    def add(self, head: re.Match[str], body: str) -> None:
        """Add what an entry of the section says, a line with its prerequisites and more lines."""
        self.inputs += (head[3] or "").split()
        self.order_only += (head[4] or "").split()
        self.doubled = head[2] == "::"
        self.is_phony |= "#  Phony target" in body
        self.is_intermediate |= "#  File is an intermediate prerequisite" in body
        self.exists |= "#  Last modified " in body
        for names in re.findall(r"^#  Also makes:(.*)", body, re.MULTILINE):
            self.also += names.split()
        recipe = _RECIPE.search(body)
        self.recipe += _joined(line.removeprefix("\t") for line in recipe[1].split("\n")) if recipe else []


class _Recipe(NamedTuple):
    """What the trace shows of a recipe: its place in a Makefile, the line in the listing, its commands."""

    place: str
    line: int
    commands: list[str]


def sniff(text: str) -> bool:
    """Whether the text contains the beginning of make's data base."""
    return f"\n{_DATA_BASE}" in text or text.startswith(_DATA_BASE)


def generate(flow: Workflow) -> str:
    """Not supported: only make writes its listings."""
    raise FormatError("eligo does not write listings of make (choose another format, such as .makeflow)")


def parse(text: str, beside: Beside | None = None) -> Workflow:
    """The workflow that a listing describes."""
    lines = list(_own_lines(text))
    end = next((i for i in reversed(range(len(lines))) if lines[i][1].startswith(_VERSION)), len(lines))
    variables, _, rest = "\n".join(line for _, line in lines[end:]).partition(_FILES)
    if not rest:
        raise FormatError(f"not a complete listing of GNU make (write it with `LC_ALL=C {COMMAND}`)")
    files = _files(rest)
    removed = [name for name, file in files.items() if file.is_intermediate]
    if end and removed and lines[end - 1][1].startswith("rm ") and {*lines[end - 1][1].split()[1:]} <= {*removed}:
        del lines[end - 1 :]
    listing = _Listing(files, _variables(variables), _traced(lines[:end]))
    return listing.workflow([*_exports(listing, beside)])


def _own_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, without make's own messages and the output of recursive calls of make."""
    inner: str | None = None
    for number, line in enumerate(text.split("\n"), 1):
        message = _MESSAGE.fullmatch(line.removesuffix("\r"))
        if message and message[1] and message[2] and inner in {None, message[1]}:
            inner = message[1] if message[2] == "Entering" else None
        elif not message and inner is None:
            yield number, line.removesuffix("\r")


def _joined(lines: Iterable[str]) -> list[str]:
    """The lines, joined with the next where they end in a backslash that is not escaped."""
    commands: list[list[str]] = []
    continued = False
    for line in lines:
        if continued:
            commands[-1].append(line)
        else:
            commands.append([line])
        continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
    return ["\n".join(parts) for parts in commands]


def _traced(lines: Sequence[tuple[int, str]]) -> dict[str, list[_Recipe]]:
    """The recipes that the trace shows, by target: one each, or several of a target with double colons."""
    recipes: dict[str, dict[str, _Recipe]] = {}
    printed: list[str] = []
    for number, line in lines:
        if match := _TRACE.fullmatch(line):
            recipes.setdefault(match[2], {})[match[1]] = _Recipe(match[1], number, printed := [])
        else:
            printed.append(line)
    return {
        target: [recipe._replace(commands=_joined(recipe.commands)) for recipe in places.values()]
        for target, places in recipes.items()
    }


def _variables(text: str) -> dict[str, str]:
    """The values of variables, not expanded."""
    values: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if match := _DEFINE.fullmatch(line):
            values[match[1]] = "\n".join(iter(partial(next, lines, "endef"), "endef"))
        elif match := _VARIABLE.fullmatch(line):
            values[match[1]] = match[2] or ""
    return values


def _files(text: str) -> dict[str, _File]:
    """The files and targets of the data base."""
    files: dict[str, _File] = {}
    for entry in text.partition("\n# files hash-table stats:")[0].split("\n\n"):
        top, _, body = entry.partition("\n#  ")
        heads = [line for line in top.split("\n") if line and line[0] != "#"]
        match = _TARGET.fullmatch(heads[-1]) if heads else None
        if match:
            file = files.setdefault(match[1], _File())
            file.variables |= {each[1]: each[2] for each in map(_ASSIGNMENT.fullmatch, heads[:-1]) if each}
            file.add(match, f"#  {body}")
    return files


def _exports(listing: "_Listing", beside: Beside | None) -> Iterator[Unhonoured | str]:
    """The places where a Makefile exports variables to its commands; a remark if some cannot be read."""
    if ".EXPORT_ALL_VARIABLES" in listing.files:
        yield Unhonoured("export", ".EXPORT_ALL_VARIABLES")
    for name in listing.variables.get("MAKEFILE_LIST", "").split():
        try:
            text = beside.load(beside.place(name)) if beside and beside.root else None
        except FormatError:
            text = None
        if text is None:
            yield f"variables that {name} exports are not known, since it cannot be read here"
        elif match := _EXPORT.search(text):
            yield Unhonoured("export", f"{name}:{text.count(chr(10), 0, match.start()) + 1}")


class _Listing(NamedTuple):
    """A listing: the files, the variables, and the recipes that make would run."""

    files: Mapping[str, _File]
    variables: Mapping[str, str]
    recipes: Mapping[str, list[_Recipe]]

    def workflow(self, exports: Sequence[Unhonoured | str]) -> Workflow:
        """The workflow of the goals."""
        goals = (self.variables.get("MAKECMDGOALS") or self.variables.get(".DEFAULT_GOAL", "")).split()
        needed = self._needed(goals)
        tasks = [name for name in needed if name in self.recipes]
        if not tasks:
            raise FormatError(
                f"no target of {' '.join(goals) or 'the listing'} has a recipe (write it with `{COMMAND}`)"
            )
        outputs = {name: self._outputs(name) for name in tasks}
        reads, arcs = self._arcs(needed, order=False), self._arcs(needed, order=True)
        inputs: dict[str, list[str]] = {name: [] for name in tasks}
        for tail, head in reads:
            inputs[head] += outputs.get(tail, [tail])
        place = {name: i for i, name in enumerate(tasks)}
        rules = [self._rule(name, outputs[name], inputs[name]) for name in tasks]
        serial = [Unhonoured(_SERIAL, f".{_SERIAL}")] if f".{_SERIAL}" in self.files else []
        features = [*serial, *(each for each in exports if isinstance(each, Unhonoured))]
        kept = sum(name in self.files and self.files[name].is_intermediate for name in tasks)
        remarks = [f"intermediate files that make deletes at the end, and a run keeps: {kept:,}"] if kept else []
        remarks += (each for each in exports if isinstance(each, str))
        numbered = [(place[tail], place[head]) for tail, head in arcs if tail in place]
        origin = Origin(format=NAME, unhonoured=tuple(features), remarks=tuple(remarks))
        return workflow_of(rules, {}, origin, numbered)

    def _needed(self, goals: Sequence[str]) -> list[str]:
        """The files that the goals need, without those that a rule for other files makes as well."""
        seen = dict.fromkeys(map(self._maker, goals))
        waiting = list(seen)
        while waiting:
            file = self.files.get(waiting.pop(), _File())
            fresh = dict.fromkeys(self._maker(name) for name in (*file.inputs, *file.order_only))
            waiting += (name for name in fresh if name not in seen)
            seen |= fresh
        return list(seen)

    def _maker(self, name: str) -> str:
        """The target whose recipe makes this file: itself, or another of the same rule."""
        others = self.files[name].also if name in self.files and name not in self.recipes else ()
        return next((other for other in others if other in self.recipes), name)

    def _outputs(self, name: str) -> list[str]:
        file = self.files.get(name, _File())
        return [] if file.is_phony or _is_member(name) else [name, *file.also]

    def _arcs(self, needed: Sequence[str], order: bool) -> list[tuple[str, str]]:
        """The arcs to tasks from tasks, and from existing files; they pass through other targets."""
        place, count = {name: i for i, name in enumerate(needed)}, len(needed)
        arcs: list[tuple[int, int]] = []
        for name, head in place.items():
            file = self.files.get(name, _File())
            above = [*file.inputs, *(file.order_only if order else ())]
            arcs += [(place[other], head) for other in dict.fromkeys(map(self._maker, above))]
            arcs += [(count + head, head)] if file.exists and name not in self.recipes else []
        direct = through(arcs, {i for name, i in place.items() if name not in self.recipes}, MOST_ARCS)
        if direct is None:
            raise FormatError(f"targets without a recipe make more than the limit of {MOST_ARCS:,} arcs")
        return [(needed[tail % count], needed[head]) for tail, head in dict.fromkeys(direct)]

    def _rule(self, name: str, outputs: Sequence[str], inputs: Sequence[str]) -> Rule:
        file, recipes = self.files.get(name, _File()), self.recipes[name]
        rule = Rule(outputs=tuple(outputs), inputs=tuple(inputs), command=NOTHING, name=name, line=recipes[0].line)
        rule.command = "\n".join(self._commands(name, file, recipes)) or NOTHING
        rule.more = {"category": recipes[0].place}
        words = {"MAKE": any(map(_RECURSIVE.search, file.recipe)), "::": file.doubled, "archive": _is_member(name)}
        rule.unhonoured += [word for word, asked in words.items() if asked]
        return rule

    def _commands(self, name: str, file: _File, recipes: Sequence[_Recipe]) -> Iterator[str]:
        """The lines of the shell command that does what make does with the recipe."""
        ignored = self.files.get(".IGNORE")
        all_ignored = ignored is not None and (not ignored.inputs or name in ignored.inputs)
        shell = f"{self._expanded(file, 'SHELL', '/bin/sh')} {self._expanded(file, '.SHELLFLAGS', '-c')}".split()
        commands = [pair for recipe in recipes for pair in self._signed(name, file, recipe)]
        if ".ONESHELL" in self.files and commands:
            removed = _SIGNS if posixpath.basename(shell[0]) in _SHELLS else _NO_SIGNS
            lines = [commands[0][1], *(removed.sub("", line, 1) for _, line in commands[1:])]
            commands = [(commands[0][0], "\n".join(lines))]
        if len(commands) == 1 and shell == ["/bin/sh", "-c"] and not all_ignored and "-" not in commands[0][0]:
            yield commands[0][1]
            return
        yield from ["set -e"] if len(commands) > 1 else []
        for signs, line in commands:
            yield shlex.join([*shell, line]) + (" || :" if all_ignored or "-" in signs else "")

    def _expanded(self, file: _File, variable: str, default: str) -> str:
        """The value of a variable that only refers to variables."""
        value = file.variables.get(variable) or self.variables.get(variable) or default
        return next(islice(self._openings(value), 1), default).strip() or default

    def _signed(self, name: str, file: _File, recipe: _Recipe) -> Iterator[tuple[str, str]]:
        """The printed commands, each with the signs that stand before it in the Makefile."""
        commands = [line for line in recipe.commands if line.strip()]
        sources = [_split_signs(line) for text in file.recipe for line in self._openings(text)]
        signs = [signs for signs, rest in sources if rest]
        if len(signs) != len(commands) and any("-" in each or "+" in each for each in signs):
            raise FormatError(
                f"the recipe of {shorten(name)!r} has `-` or `+`, but eligo cannot match them with what make printed"
            )
        return zip(signs if len(signs) == len(commands) else [""] * len(commands), commands, strict=True)

    def _openings(self, text: str) -> list[str]:
        """The lines that a line of a recipe stands for: variables at their beginnings are expanded."""
        for _ in range(DEEPEST):
            signs, rest = _split_signs(text)
            match = _REFERENCE.match(rest)
            value = self.variables.get(match[1] or match[2] or match[3]) if match else None
            if match is None or value is None:
                break
            text = signs + value + rest[match.end() :]
        return _joined(text.split("\n"))


def _is_member(name: str) -> bool:
    """Whether a target is a member of an archive, such as lib.a(x.o)."""
    return name.endswith(")") and "(" in name


def _split_signs(line: str) -> tuple[str, str]:
    """The signs `-`, `@` and `+` at the beginning of a command, and the rest."""
    match = _SIGNS.match(line)
    end = match.end() if match else 0
    return line[:end], line[end:]

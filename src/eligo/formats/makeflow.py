"""Makeflow's own language (https://ccl.cse.nd.edu/software/makeflow): rules that make files from files.

    CATEGORY=fetch
    CORES=1
    .SIZE page.html 20K
    page.html:
        LOCAL curl -o page.html $URL
    links.txt count.txt: page.html extract.py->x.py
        python x.py page.html > links.txt; wc -l links.txt > count.txt

A task is named by the first file that its rule makes; `formats.shared.rules` also describes additions to written files.
CATEGORY, CORES and MEMORY (in MB of 2**20 bytes) apply to the rules that follow or, between a rule and its command, to that
rule alone. A variable that neither the file nor the *environment* sets stays unchanged in a command, and is an error in the
name of a file. The words LOCAL and MAKEFLOW before a command are removed; a MAKEFLOW rule runs `makeflow` on the file that
follows. If a backslash continues a line of files, the next line adds files; Makeflow itself (9.9) sees another file, named
by a blank. Features that a run does not honour are listed: see `eligo.formats.fidelity`.

In the output, ELIGO_TASK and ELIGO_MARK are a task's name and mark. A command of words becomes a command line for a shell.
Cores and memory are rounded up. The workflow's name, run times and priorities are left out.

>>> flow = parse("X=b\\nb c: a\\n\\tcp a b; cp a c\\nd: $X\\n\\tsort $X > d\\n")
>>> list(flow.dag.arcs()), flow.task("d").command
([('b', 'd')], 'sort b > d')
>>> print(generate(flow).expandtabs(4), end="")
b c: a
    cp a b; cp a c
d: b
    sort b > d

In a Makeflow file, a backslash escapes the next character, or joins a line with the next. Quotes keep blanks; single quotes
also keep $. $X, $(X) and ${X} expand to the value of X, which is parsed like the text around it: as names of files, or as a
part of a command, where quotes stay. A # that is neither quoted nor escaped begins a comment.

>>> budget = Allowance(1000)
>>> files(r"a\\ b $(X):'c d'", {"X": "x y"}.get, budget, 1)
['a b', 'x', 'y', <Sign.COLON: 1>, 'c d']
>>> command("cat  $(X) > '$Y'", {"X": "x y"}.get, budget, 1)
"cat x y > '$Y'"
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from itertools import chain
from math import ceil
from typing import Any

from eligo.errors import FormatError, shorten
from eligo.formats.shared.rules import Allowance, Rule, rules_of, workflow_of
from eligo.launch import Launch
from eligo.workflow import MEGABYTE, Origin, Unhonoured, Workflow

NAME = "makeflow"
TAKES = ("environment",)
PRIORITIES = False
CANNOT = ("name", "seconds", "labels", "priority")

# Words

Lookup = Callable[[str], str | None]

_NAME = r"""[^\\"'$#\s,.\-(){}\[\]<>=+!?/:]+"""
_VARIABLE = rf"\$(?:\(({_NAME})\)|\{{({_NAME})\}}|({_NAME}))"
_SINGLE, _DOUBLE = r"'((?:[^'\\]|\\.)*+)'", r'"((?:[^"\\]|\\.)*+)"'
_FILES = re.compile(
    rf"""(?P<blank>[ \t]+)|(?P<colon>:)|(?P<arrow>->)|(?P<name>{_VARIABLE})|(?P<single>{_SINGLE})|(?P<double>{_DOUBLE})"""
    r"""|(?P<word>(?:[^ \t"'$:\\-]|\\.|-(?!>))++)""",
    re.DOTALL,
)
_WORDS = re.compile(
    rf"""(?P<blank>[ \t]+)|(?P<name>{_VARIABLE})|(?P<single>{_SINGLE})|(?P<double>{_DOUBLE})"""
    r"""|(?P<word>(?:[^ \t"'$\\]|\\.)++)|(?P<dollar>\$)""",
    re.DOTALL,
)
_INSIDE = re.compile(rf"(?P<name>{_VARIABLE})|\\(?P<escape>.)|(?P<plain>[^\\$]+|.)", re.DOTALL)
_COMMENT = re.compile(rf"""\\.|{_SINGLE}|{_DOUBLE}|(#)""", re.DOTALL)
_LOOK = re.compile(r"""\\.|"[^"]*"|'[^']*'|([:=])""", re.DOTALL)
_SPECIAL = re.compile(r"""["'$\\]|->""")
_PLAIN = re.compile(r":|[^: \t]+")
_BLANKS = re.compile(r"[ \t]+")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_CODES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Sign(Enum):
    """The signs between names of files."""

    COLON = 1
    ARROW = 2


class UnsetError(FormatError):
    """A variable without a value is used where its value is needed."""


def lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, joined after a backslash, without comments and empty lines."""
    parts: list[str] = []
    first = 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.removesuffix("\r")
        code = without_comment(line) if "#" in line else line
        first = first if parts else number
        if code == line and (len(line) - len(line.rstrip("\\"))) % 2:
            parts.append(line[:-1])
            continue
        if parts:
            code = without_comment(" ".join([*parts, line]))
            parts = []
        if code and not code.isspace():
            yield first, code
    rest = " ".join(parts)
    if rest and not rest.isspace():
        yield first, rest


def without_comment(line: str) -> str:
    """The line up to the first # that is neither quoted nor escaped."""
    return next((line[: match.start()] for match in _COMMENT.finditer(line) if match[3]), line)


def sign_of(line: str) -> str:
    """The first of ":" and "=" outside quotes in a line, which mark a rule and a variable; empty if there is neither."""
    if not _special(line):
        colon, equals = line.find(":"), line.find("=")
        return "" if colon == equals else ":" if equals < 0 or 0 <= colon < equals else "="
    return next((match[1] for match in _LOOK.finditer(line) if match[1]), "")


def files(line: str, lookup: Lookup, budget: Allowance, number: int) -> list[str | Sign]:
    """The names of files in a line, with the colons and arrows between them."""
    if not _special(line):
        return [Sign.COLON if word == ":" else word for word in _PLAIN.findall(line)]
    tokens: list[str | Sign] = []
    parts: list[str] = []
    for piece in chain(_file_pieces(line, lookup, budget, number, 1), (None,)):
        if isinstance(piece, str):
            parts.append(piece)
            continue
        word = "".join(parts)
        parts = []
        tokens += ((word,) if word else ()) + (() if piece is None else (piece,))
    return tokens


def _file_pieces(line: str, lookup: Lookup, budget: Allowance, number: int, depth: int) -> Iterator[str | Sign | None]:
    """The parts of names, signs, and None for blanks."""
    for token in _tokens(_FILES, line, number):
        kind, text = str(token.lastgroup), token[0]
        if kind == "blank":
            yield None
        elif kind in {"colon", "arrow"}:
            yield Sign[kind.upper()]
        elif kind == "name":
            value = _value(token, lookup, number)
            budget.spend(len(value), depth, number)
            yield from _file_pieces(value, lookup, budget, number, depth + 1)
        elif kind == "double":
            yield expand(text[1:-1], lookup, budget, number)
        else:
            yield _ESCAPED.sub(r"\1", text[1:-1] if kind == "single" else text)


def command(line: str, lookup: Lookup, budget: Allowance, number: int) -> str:
    """A command with expanded variables; unknown ones stay for the shell."""
    if not _special(line):
        return _BLANKS.sub(" ", line.strip(" \t"))
    pieces = list(_command_pieces(line.lstrip(" \t"), lookup, budget, number, 1))
    while pieces and pieces[-1] is None:
        pieces.pop()
    return "".join(" " if piece is None else piece for piece in pieces)


def _command_pieces(line: str, lookup: Lookup, budget: Allowance, number: int, depth: int) -> Iterator[str | None]:
    """The parts of a command, and None for blanks."""
    for token in _tokens(_WORDS, line, number):
        kind, text = token.lastgroup, token[0]
        if kind == "blank":
            yield None
        elif kind == "name":
            value = lookup(_variable(token))
            if value is None:
                yield text
            else:
                budget.spend(len(value), depth, number)
                yield from _command_pieces(value, lookup, budget, number, depth + 1)
        elif kind == "double":
            yield f'"{expand(text[1:-1], lookup, budget, number, strict=False)}"'
        else:
            yield _ESCAPED.sub(r"\1", text)


def expand(text: str, lookup: Lookup, budget: Allowance, number: int, strict: bool = True) -> str:
    """The text in double quotes or after a =, with expanded variables and escape sequences such as \\n."""
    parts = []
    for token in _INSIDE.finditer(text):
        if token["escape"] is not None:
            parts.append(_CODES.get(token["escape"], token["escape"]))
        elif token["name"] is not None:
            value = lookup(_variable(token))
            if value is None and strict:
                raise _unknown(token, number)
            budget.spend(len(value or ""), 1, number)
            parts.append(token[0] if value is None else value)
        else:
            parts.append(token["plain"])
    return "".join(parts)


def _tokens(pattern: re.Pattern[str], line: str, number: int) -> Iterator[re.Match[str]]:
    end = 0
    for token in pattern.finditer(line):
        if token.start() != end:
            break
        end = token.end()
        yield token
    if end != len(line):
        what = "an unclosed quote" if line[end] in "\"'" else f"an unexpected {shorten(line[end:], 20)!r}"
        raise FormatError(f"the line has {what}", line=number)


def _variable(token: re.Match[str]) -> str:
    return token["name"].strip("${}()")


def _value(token: re.Match[str], lookup: Lookup, number: int) -> str:
    value = lookup(_variable(token))
    if value is None:
        raise _unknown(token, number)
    return value


def _unknown(token: re.Match[str], number: int) -> FormatError:
    name = shorten(_variable(token))
    message = f"the variable {name!r} is not set in the file"
    return UnsetError(message, line=number).cured_by("environment")


def _special(line: str) -> bool:
    return _SPECIAL.search(line) is not None


# Words of the output

_IMPOSSIBLE = re.compile(r"[\0-\x08\x0a-\x1f]")


def written_file(name: str, what: str) -> str:
    """The name of a file, escaped; *what* describes it in the error if Makeflow cannot represent it.

    >>> print(written_file("a-b -> c", "a file"))
    a-b\\ \\->\\ c
    """
    if not name:
        raise FormatError(f"{what} has an empty name, which Makeflow does not allow").cured_by("file_names")
    if not fitted_file(name):
        wrong = _IMPOSSIBLE.findall(name)[0]
        message = f"{what}, {shorten(name)!a}, contains {wrong!a}, which Makeflow cannot represent"
        raise FormatError(message).cured_by("file_names")
    return re.sub(r"""[\\"'$# \t:=]|^@|(?<![\w./])-|-(?![\w./])""", r"\\\g<0>", name)


def fitted_file(name: str) -> str | None:
    """The name of a file if Makeflow can represent it, else None."""
    return name if name and not _IMPOSSIBLE.search(name) else None


def written_command(line: str, what: str) -> str:
    """A command, escaped."""
    return re.sub(r"""[\\"'$#\t]|^ | (?= )| $""", r"\\\g<0>", _possible(line, what))


def written_value(value: str, what: str) -> str:
    """The value of a variable, escaped."""
    return re.sub(r"""[\\"'$#]|^[ \t]|[ \t]$""", r"\\\g<0>", _possible(value, what))


def _possible(text: str, what: str) -> str:
    wrong = _IMPOSSIBLE.search(text)
    if wrong:
        raise FormatError(f"{what} contains {wrong[0]!a}, which Makeflow cannot represent")
    return text


# Workflows

#: The variables that change how Makeflow runs a task; DISK and MODE only affect the choice of a machine.
UNHONOURED = ("BATCH_OPTIONS", "GPUS", "MPI_PROCESSES")

_RULE = re.compile(
    r"^(?![ \t\n#=@])(?:[^:=\n\\]|\\.)*+:(?:[^=\n\\]|\\.)*+\n(?:(?:[#@.A-Z]|[ \t]*$)[^\n]*\n)*+[ \t]+[^ \t\n]",
    re.MULTILINE | re.DOTALL,
)
_ASSIGNMENT = re.compile(r"@?[ \t]*([^\s=+:]+)[ \t]*(\+?)=[ \t]*")
_SIZE = re.compile(r"\s*(\d{1,19})\s*(?:([KMGTP])(?:i?B)?|B)?", re.IGNORECASE)
_MODIFIERS = re.compile(r"((?:LOCAL(?:\s+|$))*)(MAKEFLOW(?:\s+|$))?")
_NAMES = ("CATEGORY", "SYMBOL")
#: the variables that are numbers, in these units; the wall time is in seconds
_AMOUNTS = {"CORES": 1, "MEMORY": MEGABYTE, "WALL_TIME": 1}
_QUOTED = re.compile(r"(?:\"(.*)\"|'(.*)')[ \t]*", re.DOTALL)


def sniff(text: str) -> bool:
    """Whether there is a line with a colon, followed by an indented line."""
    return _RULE.search(text) is not None


# Reading


def parse(text: str, environment: Mapping[str, str] | None = None) -> Workflow:
    """The workflow that a Makeflow text describes; the *environment* has values of variables that the text does not set."""
    reader = _MakeflowReader(text, environment or {})
    for number, line in lines(text):
        try:
            reader.take(number, line)
        except UnsetError as error:
            raise error if environment is None else error.cured_by("") from None
    if reader.rule is not None:
        raise FormatError("a rule has no command (write it on the next line, after a tab)", line=reader.rule.line)
    for rule, where in reader.rules:
        rule.more |= reader.details(where, rule)
    origin = Origin(format=NAME, unhonoured=tuple(reader.unhonoured))
    return workflow_of([rule for rule, _ in reader.rules], reader.sizes, origin)


class _MakeflowReader:
    """The rules read so far, each with its category, and the rule whose command comes next."""

    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        self.budget = Allowance(2**22 + 8 * len(text))
        self.environment = environment
        self.rules: list[tuple[Rule, str | None]] = []
        self.rule: Rule | None = None
        self.sizes: dict[str, int] = {}
        self.category: str | None = None
        #: the variables of every category, and under None those of all categories; `own` are those of the rule
        self.shared: dict[str | None, dict[str, str]] = {None: {}}
        self.own: dict[str, str] = {}
        #: the variables that commands get in their environment
        self.exported: dict[str, None] = {}
        self.unhonoured: list[Unhonoured] = []

    def lookup(self, name: str) -> str | None:
        """The value of a variable at this place; None if it has none."""
        for table in (self.own, self.shared[self.category], self.shared[None]):
            if name in table:
                return table[name]
        return self.environment.get(name)

    def take(self, number: int, line: str) -> None:
        """Process the next line."""
        sign = sign_of(line)
        if line.startswith("export ") and sign != ":":
            self._export(number, line.removeprefix("export "))
        if line[0] in " \t":
            self._command(number, line)
        elif line[0] == "@" or sign == "=":
            self._variable(number, line.removeprefix("export ").lstrip())
        elif sign == ":":
            self._files(number, line)
        elif line[0] == ".":
            self._directive(number, line)
        elif line.split(maxsplit=1)[0] != "export":
            expected = "a rule (files: files), a variable (X=value) or a command after a tab"
            raise FormatError(f"a line must be {expected}, got {shorten(line)!r}", line=number)

    def _export(self, number: int, line: str) -> None:
        """Export a variable that is set here, or several that are named; rules that are read already do not get them."""
        match = _ASSIGNMENT.match(line.lstrip())
        self.exported |= dict.fromkeys([match[1]] if match else line.split())
        if self.rules or self.rule is not None:
            self._ask("export", number)

    def _files(self, number: int, line: str) -> None:
        if self.rule is not None:
            raise FormatError("a rule has no command (write it on the next line, after a tab)", line=self.rule.line)
        outputs: list[str] = []
        inputs: list[str] = []
        side, renamed = outputs, False
        tokens = iter(files(line, self.lookup, self.budget, number))
        for token in tokens:
            if token is Sign.COLON:
                side = inputs
            elif token is Sign.ARROW:
                inside = next(tokens, None)
                if not side or not isinstance(inside, str):
                    message = f"an arrow must be between two names of a file, got {shorten(line)!r}"
                    raise FormatError(message, line=number)
                renamed = renamed or inside != side[-1]
            else:
                side.append(str(token))
        self.rule = Rule(outputs=tuple(outputs), inputs=tuple(inputs), command="", line=number)
        self.rule.unhonoured += ["rename"] if renamed else []

    def _command(self, number: int, line: str) -> None:
        if self.rule is None:
            raise FormatError("a command has no rule (a line with files and a colon must come before it)", line=number)
        text = command(line, self.lookup, self.budget, number)
        modifiers = _MODIFIERS.match(text)
        rest = text[modifiers.end() :] if modifiers else text
        self.rule.command = f"makeflow {rest}" if modifiers and modifiers[2] else rest
        self.rule.unhonoured += ["LOCAL"] if modifiers and modifiers[1] else []
        self.rule.name, self.rule.mark = self.own.get("ELIGO_TASK"), self.own.get("ELIGO_MARK")
        self.rule.more = {key: self.own[key] for key in ("CATEGORY", *_AMOUNTS) if key in self.own}
        self._set_exported(self.rule)
        self.rules.append((self.rule, self.category))
        self.rule, self.own = None, {}

    def _set_exported(self, rule: Rule) -> None:
        """Give a rule the values that exported variables have here; the file must set them."""
        values = {name: self.lookup(name) for name in self.exported}
        rule.unhonoured += ["export"] if None in values.values() else []
        rule.environment = {name: value for name, value in values.items() if value is not None}

    def _variable(self, number: int, line: str) -> None:
        match = _ASSIGNMENT.match(line)
        if not match:
            raise FormatError(f"a variable must be NAME=VALUE, got {shorten(line)!r}", line=number)
        name, text = match[1], line[match.end() :]
        value = expand(_plain(text) if name in _NAMES else text, self.lookup, self.budget, number)
        self._set(name, value, number, match[2])

    def _set(self, name: str, value: str, number: int, append: str = "") -> None:
        """Set a variable of the current rule, or of all rules that follow."""
        if name in UNHONOURED and value.strip():
            self._ask(name, number)
        everywhere = self.shared[None]
        if append:
            old = self.own.get(name) if self.rule is not None else None
            old = everywhere.get(name) if old is None else old
            value = value if old is None else f"{old} {value}"
            self.budget.spend(len(value) >> 6, 1, number)  # less, because the value is only copied
        if self.rule is not None:
            self.own[name] = value
            return
        (everywhere if append or name == "CATEGORY" else self.shared[self.category])[name] = value
        if name in _NAMES:
            self.category = value
            self.shared.setdefault(value, {})

    def _directive(self, number: int, line: str) -> None:
        words = [word for word in files(line, self.lookup, self.budget, number) if isinstance(word, str)]
        match words:
            case [".SIZE", file, *sizes] if (size := _amount("".join(sizes))) is not None:
                self.sizes[file] = size
            case [".MAKEFLOW", "CATEGORY", value]:
                self._set("CATEGORY", value, number)
            case [".MAKEFLOW", ("CORES" | "MEMORY" | "WALL_TIME") as name, value] if _amount(value) is not None:
                self._set(name, value, number)
            case [".MAKEFLOW", ("GPUS" | "MPI_PROCESSES") as name, _]:
                self._ask(name, number)
            case [".UMBRELLA", _, _]:
                self._ask("UMBRELLA", number)
            case [".MAKEFLOW", "MODE" | "DISK", _]:
                pass
            case _:
                examples = "for example .SIZE FILE BYTES or .MAKEFLOW CATEGORY NAME"
                raise FormatError(f"unknown directive {shorten(line)!r} ({examples})", line=number)

    def _ask(self, key: str, number: int) -> None:
        """Record a feature that a run does not honour, of the current rule or of the whole file."""
        if self.rule is not None:
            self.rule.unhonoured.append(key)
        else:
            self.unhonoured.append(Unhonoured(key, f"line {number}"))

    def details(self, category: str | None, rule: Rule) -> dict[str, Any]:
        """The details of a rule's task, from the variables of the rule or else the last ones of its category."""
        own = {key: rule.more.pop(key) for key in tuple(rule.more)}
        if "CATEGORY" in own:
            category = own["CATEGORY"]
        details: dict[str, Any] = {} if category is None else {"category": category}
        tables: list[Mapping[str, str]] = [own, self.shared.get(category, {}), self.shared[None]]
        for key, unit in _AMOUNTS.items():
            text = next((table[key] for table in tables if key in table), "")
            amount = _amount(_plain(text))
            if amount and amount * unit < 2**63:
                details[key.lower()] = amount * unit
        launch = Launch(env=rule.environment, timeout=details.pop("wall_time", None))
        return details if launch == Launch() else {**details, "launch": launch}


def _amount(text: str) -> int | None:
    """The value of a number such as 20, 20K or 20KB; None for other texts."""
    match = _SIZE.fullmatch(text.strip())
    amount = int(match[1]) << 10 * " KMGTP".index((match[2] or " ").upper()) if match else 2**63
    return amount if amount < 2**63 else None


def _plain(value: str) -> str:
    """The value without quotes around it."""
    match = _QUOTED.fullmatch(value)
    return value if not match else match[1] if match[1] is not None else match[2]


# Writing


def generate(flow: Workflow) -> str:
    """The Makeflow text of a workflow."""
    lines = [f".SIZE {_file(name)} {size}\n" for name, size in flow.file_sizes.items()]
    for task, rule in zip(flow.dag.tasks, rules_of(flow, "Makeflow"), strict=True):
        lines += _rule_lines(rule, f"of task {shorten(task)!r}")
    return "".join(lines) or "# no rules\n"


def _rule_lines(rule: Rule, what: str) -> Iterator[str]:
    outputs, inputs = (" ".join(_file(name, what) for name in names) for names in (rule.outputs, rule.inputs))
    yield f"{outputs}: {inputs}\n" if inputs else f"{outputs}:\n"
    values = {"ELIGO_TASK": rule.name, "ELIGO_MARK": rule.mark, "CATEGORY": rule.more.get("category")}
    for key, value in values.items():
        if value is not None:
            yield f"{key}={written_value(value, f'the {key.lower()} {what}')}\n"
    for key, unit in (("cores", 1), ("memory", MEGABYTE)):
        if rule.more.get(key):
            yield f"{key.upper()}={ceil(rule.more[key] / unit)}\n"
    yield f"\t{written_command(rule.command, f'the command {what}')}\n"


def _file(name: str, what: str = "of the workflow") -> str:
    return written_file(name, f"a file {what}")

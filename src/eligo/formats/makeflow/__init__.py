"""Makeflow's own language (https://ccl.cse.nd.edu/software/makeflow): rules that make files out of files.

    CATEGORY=fetch
    CORES=1
    .SIZE page.html 20K
    page.html:
        LOCAL curl -o page.html $URL
    links.txt count.txt: page.html extract.py->x.py
        python x.py page.html > links.txt; wc -l links.txt > count.txt

A task is named by the first file that its rule makes: see `formats.shared.rules`, also for what is added in writing, and
`eligo.formats.makeflow.text` for quotes and variables. CATEGORY, CORES and MEMORY (in MB of 2**20 bytes) are set for
the rules that follow, or between a rule and its command for this rule alone. A variable that neither the file nor the
*environment* sets, where one is given, stays as it is in a command and is refused in the name of a file. The words LOCAL and
MAKEFLOW before a command are taken away; a MAKEFLOW rule runs `makeflow` on the file that follows. Where a line of files is
continued with a backslash, the next line adds files, although Makeflow itself (9.9) sees one more, named by a blank. What a
run does not honour is listed: see `eligo.formats.fidelity`.

In writing, ELIGO_TASK and ELIGO_MARK hold a task's name and mark. A command of words becomes a line for a shell; cores and
memory are rounded up, and the workflow's name, run times and priorities are left out.

>>> flow = parse("X=b\\nb c: a\\n\\tcp a b; cp a c\\nd: $X\\n\\tsort $X > d\\n")
>>> list(flow.dag.arcs()), flow.task("d").command
([('b', 'd')], 'sort b > d')
>>> print(generate(flow).expandtabs(4), end="")
b c: a
    cp a b; cp a c
d: b
    sort b > d
"""

import re
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from eligo.errors import FormatError, shorten
from eligo.formats.makeflow import text as makeflow_text
from eligo.formats.makeflow.text import Sign
from eligo.formats.shared.allowance import Allowance
from eligo.formats.shared.rules import Rule, rules_of, workflow_of
from eligo.workflow import MEGABYTE, Origin, Unhonoured, Workflow

NAME = "makeflow"
TAKES = ("environment",)
PRIORITIES = False
CANNOT = ("name", "seconds", "priority")
#: The variables by which Makeflow runs a task in another way; DISK and MODE only help it to choose a machine.
UNHONOURED = ("BATCH_OPTIONS", "GPUS", "MPI_PROCESSES", "WALL_TIME")

_RULE = re.compile(
    r"^(?![ \t\n#=@])(?:[^:=\n\\]|\\.)*+:(?:[^=\n\\]|\\.)*+\n(?:(?:[#@.A-Z]|[ \t]*$)[^\n]*\n)*+[ \t]+[^ \t\n]",
    re.MULTILINE | re.DOTALL,
)
_ASSIGNMENT = re.compile(r"@?[ \t]*([^\s=+:]+)[ \t]*(\+?)=[ \t]*")
_SIZE = re.compile(r"\s*(\d{1,19})\s*(?:([KMGTP])(?:i?B)?|B)?", re.IGNORECASE)
_MODIFIERS = re.compile(r"((?:LOCAL(?:\s+|$))*)(MAKEFLOW(?:\s+|$))?")
_NAMES = ("CATEGORY", "SYMBOL")
_QUOTED = re.compile(r"(?:\"(.*)\"|'(.*)')[ \t]*", re.DOTALL)


def sniff(text: str) -> bool:
    """Whether there is a line with a colon, and below it one that begins with a blank."""
    return _RULE.search(text) is not None


# Reading


def parse(text: str, environment: Mapping[str, str] | None = None) -> Workflow:
    """The workflow that a Makeflow text describes, where the *environment* sets what it does not set itself."""
    reader = _MakeflowReader(text, environment or {})
    for number, line in makeflow_text.lines(text):
        try:
            reader.take(number, line)
        except makeflow_text.UnsetError as error:
            raise error if environment is None else error.cured_by("") from None
    if reader.rule is not None:
        raise FormatError("a rule has no command: it stands in the next line, after a tab", line=reader.rule.line)
    for rule, where in reader.rules:
        rule.more |= reader.details(where, rule)
    origin = Origin(format=NAME, unhonoured=tuple(reader.unhonoured))
    return workflow_of([rule for rule, _ in reader.rules], reader.sizes, origin)


class _MakeflowReader:
    """What has been read so far: the rules, each with the category it is in, and the rule that waits for its command."""

    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        self.budget = Allowance(2**22 + 8 * len(text))
        self.environment = environment
        self.rules: list[tuple[Rule, str | None]] = []
        self.rule: Rule | None = None
        self.sizes: dict[str, int] = {}
        self.category: str | None = None
        #: of every category, and under None for all of them, the variables; `own` are those of the rule
        self.shared: dict[str | None, dict[str, str]] = {None: {}}
        self.own: dict[str, str] = {}
        self.unhonoured: list[Unhonoured] = []

    def lookup(self, name: str) -> str | None:
        """The value of a variable here."""
        for table in (self.own, self.shared[self.category], self.shared[None]):
            if name in table:
                return table[name]
        return self.environment.get(name)

    def take(self, number: int, line: str) -> None:
        """Take the next line."""
        sign = makeflow_text.sign_of(line)
        if line.startswith("export ") and sign != ":":
            self._ask("export", number)
        if line[0] in " \t":
            self._command(number, line)
        elif line[0] == "@" or sign == "=":
            self._variable(number, line.removeprefix("export ").lstrip())
        elif sign == ":":
            self._files(number, line)
        elif line[0] == ".":
            self._directive(number, line)
        elif line.split(maxsplit=1)[0] != "export":
            message = "this is neither a rule (files: files), nor a variable (X=value), nor a command after a tab"
            raise FormatError(message, line=number)

    def _files(self, number: int, line: str) -> None:
        if self.rule is not None:
            raise FormatError("a rule has no command: it stands in the next line, after a tab", line=self.rule.line)
        made: list[str] = []
        used: list[str] = []
        side, renamed = made, False
        tokens = iter(makeflow_text.files(line, self.lookup, self.budget, number))
        for token in tokens:
            if token is Sign.COLON:
                side = used
            elif token is Sign.ARROW:
                inside = next(tokens, None)
                if not side or not isinstance(inside, str):
                    raise FormatError("an arrow stands between the two names of a file", line=number)
                renamed = renamed or inside != side[-1]
            else:
                side.append(str(token))
        self.rule = Rule(outputs=tuple(made), inputs=tuple(used), command="", line=number)
        self.rule.unhonoured += ["rename"] if renamed else []

    def _command(self, number: int, line: str) -> None:
        if self.rule is None:
            raise FormatError("a command has no rule: a line with files and a colon comes before it", line=number)
        text = makeflow_text.command(line, self.lookup, self.budget, number)
        modifiers = _MODIFIERS.match(text)
        rest = text[modifiers.end() :] if modifiers else text
        self.rule.command = f"makeflow {rest}" if modifiers and modifiers[2] else rest
        self.rule.unhonoured += ["LOCAL"] if modifiers and modifiers[1] else []
        self.rule.name, self.rule.mark = self.own.get("ELIGO_TASK"), self.own.get("ELIGO_MARK")
        self.rule.more = {key: self.own[key] for key in ("CATEGORY", "CORES", "MEMORY") if key in self.own}
        self.rules.append((self.rule, self.category))
        self.rule, self.own = None, {}

    def _variable(self, number: int, line: str) -> None:
        found = _ASSIGNMENT.match(line)
        if not found:
            raise FormatError("a variable has no name, or no =", line=number)
        name, text = found[1], line[found.end() :]
        value = makeflow_text.expanded(_plain(text) if name in _NAMES else text, self.lookup, self.budget, number)
        self._set(name, value, number, found[2])

    def _set(self, name: str, value: str, number: int, append: str = "") -> None:
        """Set a variable of the rule, or of all rules that follow."""
        if name in UNHONOURED and value.strip():
            self._ask(name, number)
        everywhere = self.shared[None]
        if append:
            old = self.own.get(name) if self.rule is not None else None
            old = everywhere.get(name) if old is None else old
            value = value if old is None else f"{old} {value}"
            self.budget.spend(len(value) >> 6, 1, number)  # it is only copied, not read
        if self.rule is not None:
            self.own[name] = value
            return
        (everywhere if append or name == "CATEGORY" else self.shared[self.category])[name] = value
        if name in _NAMES:
            self.category = value
            self.shared.setdefault(value, {})

    def _directive(self, number: int, line: str) -> None:
        words = [word for word in makeflow_text.files(line, self.lookup, self.budget, number) if isinstance(word, str)]
        match words:
            case [".SIZE", file, *sizes] if (size := _amount("".join(sizes))) is not None:
                self.sizes[file] = size
            case [".MAKEFLOW", "CATEGORY", value]:
                self._set("CATEGORY", value, number)
            case [".MAKEFLOW", ("CORES" | "MEMORY") as name, value] if _amount(value) is not None:
                self._set(name, value, number)
            case [".MAKEFLOW", ("WALL_TIME" | "GPUS" | "MPI_PROCESSES") as name, _]:
                self._ask(name, number)
            case [".UMBRELLA", _, _]:
                self._ask("UMBRELLA", number)
            case [".MAKEFLOW", "MODE" | "DISK", _]:
                pass
            case _:
                message = f"{shorten(line)!r} is no directive: .SIZE FILE BYTES and .MAKEFLOW CATEGORY NAME are some"
                raise FormatError(message, line=number)

    def _ask(self, key: str, number: int) -> None:
        """Note what a run does not honour: of the rule that waits for its command, or of the whole file."""
        if self.rule is not None:
            self.rule.unhonoured.append(key)
        else:
            self.unhonoured.append(Unhonoured(key, f"line {number}"))

    def details(self, category: str | None, rule: Rule) -> dict[str, Any]:
        """What variables tell of a rule's task: those of the rule, else the last ones of its category."""
        own = {key: rule.more.pop(key) for key in tuple(rule.more)}
        if "CATEGORY" in own:
            category = own["CATEGORY"]
        found: dict[str, Any] = {} if category is None else {"category": category}
        tables: list[Mapping[str, str]] = [own, self.shared.get(category, {}), self.shared[None]]
        for key, unit in (("CORES", 1), ("MEMORY", MEGABYTE)):
            text = next((table[key] for table in tables if key in table), "")
            amount = _amount(_plain(text))
            if amount and amount * unit < 2**63:
                found[key.lower()] = amount * unit
        return found


def _amount(text: str) -> int | None:
    """A number such as 20, 20K or 20KB, if it is one."""
    found = _SIZE.fullmatch(text.strip())
    amount = int(found[1]) << 10 * " KMGTP".index((found[2] or " ").upper()) if found else 2**63
    return amount if amount < 2**63 else None


def _plain(value: str) -> str:
    """The value without quotes around it."""
    found = _QUOTED.fullmatch(value)
    return value if not found else found[1] if found[1] is not None else found[2]


# Writing

fitted_file = makeflow_text.fitted_file


def generate(flow: Workflow) -> str:
    """The Makeflow text of a workflow."""
    lines = [f".SIZE {_file(name)} {size}\n" for name, size in flow.file_sizes.items()]
    for task, rule in zip(flow.dag.tasks, rules_of(flow, "Makeflow"), strict=True):
        lines += _rule_lines(rule, f"of task {shorten(task)!r}")
    return "".join(lines) or "# no rules\n"


def _rule_lines(rule: Rule, what: str) -> Iterator[str]:
    made, used = (" ".join(_file(name, what) for name in names) for names in (rule.outputs, rule.inputs))
    yield f"{made}: {used}\n" if used else f"{made}:\n"
    values = {"ELIGO_TASK": rule.name, "ELIGO_MARK": rule.mark, "CATEGORY": rule.more.get("category")}
    for key, value in values.items():
        if value is not None:
            yield f"{key}={makeflow_text.written_value(value, f'the {key.lower()} {what}')}\n"
    for key, unit in (("cores", 1), ("memory", MEGABYTE)):
        if rule.more.get(key):
            yield f"{key.upper()}={ceil(rule.more[key] / unit)}\n"
    yield f"\t{makeflow_text.written_command(rule.command, f'the command {what}')}\n"


def _file(name: str, what: str = "of the workflow") -> str:
    return makeflow_text.written_file(name, f"a file {what}")

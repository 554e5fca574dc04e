"""`build.ninja`, which CMake, Meson, GN and others write and ninja builds (https://ninja-build.org).

    rule cc
      command = gcc -c $flags $in -o $out
    rule ar
      command = ar rcs $out $in
    build obj/a.o: cc a.c || config.h
      flags = -O2
    build obj/b.o: cc b.c || config.h
    build config.h: cc config.in
    build lib.a: ar obj/a.o obj/b.o
    build all: phony lib.a
    default all

A task is a build statement that runs something, called by the first file that it makes, as `.ninja_log` calls it; its kind
is the rule (of CMake's, which have one for every target, what stands before `__`). There is an arc to it from whatever makes
a file that it needs, be it explicit, implicit or order-only; `phony` statements only give names and are no tasks: arcs pass
through them, unless there would be very many; then they count as tasks, and that is told. Validations (`|@`) make no arcs.

What is read is what `ninja` without targets would build: what the `default` targets need, or without any, all. The
statement that makes the file itself is left out: ninja runs it before all others. Include and subninja are followed. Told
and not followed are dyndep files, which are made while the build goes on, and pools. What ninja does before it runs a
command, the command does here: make the folders of its outputs, and its response file. Descriptions are passed over.

Ninja has no place for priorities. In writing, a task that makes no file, or whose files do not make all its arcs, makes one
file more: see `formats.shared.rules`. Variables called eligo_... hold what ninja itself has no place for.

>>> flow = parse("rule cp\\n command = cp $in $out\\nbuild b: cp a\\nbuild x: phony b\\nbuild o/c: cp b || x\\n")
>>> list(flow.dag.arcs()), flow.task("o/c").command
([('b', 'o/c')], '[ -d o ] || mkdir -p o; cp b o/c')
"""

import re
from collections.abc import Iterator

from eligo.errors import shorten
from eligo.formats.ninja import text as ninja_text
from eligo.formats.ninja.edges import PLAIN_RULE, TASK, VARIABLES, workflow_of
from eligo.formats.ninja.manifest import PHONY, read
from eligo.formats.ninja.text import PIPE, written
from eligo.formats.shared.files import Beside
from eligo.formats.shared.rules import Rule, rules_of
from eligo.workflow import Workflow

NAME = "ninja"
PRIORITIES = False
#: What to know of that.
INSTEAD = "since 1.12 it takes the longest remaining path first, counted in statements"
CANNOT = ("name", "seconds", "cores", "memory", "priority", "file_sizes")
#: Its files name others.
TAKES = ("beside",)

_BEGINS = re.compile(
    r"^(?:ninja_required_version *+=|rule ++[a-zA-Z0-9_.-]++ *+\r?\n(?: *+#[^\n]*+\n)*+ ++[a-z_]++ *+=)", re.MULTILINE
)
_GLANCE = 2**16
_RULE = re.compile(r"[a-zA-Z0-9_.-]{1,100}")


def sniff(text: str) -> bool:
    """Whether a line near the top says which ninja is needed, or begins a rule."""
    return _BEGINS.search(text, 0, _GLANCE) is not None


def parse(text: str, beside: Beside | None = None) -> Workflow:
    """The workflow that a ninja text describes; without *beside* it may not name other files."""
    return workflow_of(read(text, beside), NAME, beside)


# Writing

fitted_file = ninja_text.fitted_file


def generate(flow: Workflow) -> str:
    """The ninja text of a workflow."""
    names = flow.dag.tasks
    pairs = list(zip(names, rules_of(flow, NAME), strict=True))
    statements = [line for name, rule in pairs for line in _lines(name, rule)]
    kinds = dict.fromkeys(_rule_name(rule) for _, rule in pairs)
    lines = ["ninja_required_version = 1.3\n"]
    lines += ["eligo_pipe = |\n"] if any(PIPE in line for line in statements) else []
    lines += [f"rule {kind}\n  command = ${VARIABLES['command']}\n" for kind in kinds]
    return "".join([*lines, *statements])


def _rule_name(rule: Rule) -> str:
    kind = rule.more.get("category") or ""
    return kind if _RULE.fullmatch(kind) and kind not in {PHONY.name, PLAIN_RULE} else PLAIN_RULE


def _lines(name: str, rule: Rule) -> Iterator[str]:
    what = f"of task {shorten(name)!r}"
    made, used = (
        "".join(" " + written(file, f"a file {what}", path=True) for file in files)
        for files in (rule.outputs, rule.inputs)
    )
    kind = _rule_name(rule)
    yield f"build{made}: {kind}{used}\n"
    category = rule.more.get("category")
    values = {
        TASK: name,
        "mark": rule.mark,
        "category": None if kind == category else category,
        "command": rule.command,
    }
    for key, value in values.items():
        if value is not None:
            yield f"  {VARIABLES[key]} = {written(value, f'the {key} {what}')}\n"

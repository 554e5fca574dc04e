"""`build.ninja`, the input of ninja, which CMake, Meson, GN and others generate (https://ninja-build.org).

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

A task is a build statement with a command. As in `.ninja_log`, it is named by the first file that it makes. Its kind is the
rule; CMake has a rule for every target, and the kind is the part before `__`. Explicit, implicit and order-only inputs make
arcs. `phony` statements only define names and are not tasks: arcs pass through them. If that would make very many arcs, they
are tasks, and a remark says so. Validations (`|@`) make no arcs.

The tasks are those that `ninja` without arguments would run: for the `default` targets and their dependencies, or for
everything if there are no default targets. The statement that makes the file itself is left out, because ninja runs it
before all others. Included files are read (include, subninja). Remarks mention pools, and dyndep files, which do not exist
before the build. Ninja makes the folders of outputs, and response files, before it runs a command; here, the command does
so. Descriptions are ignored.

Ninja has no priorities. In the output, a task that makes no file, or whose files do not make all its arcs, makes an extra
file: see `formats.shared.rules`. Variables named eligo_... have the details that ninja cannot represent.

>>> flow = parse("rule cp\\n command = cp $in $out\\nbuild b: cp a\\nbuild x: phony b\\nbuild o/c: cp b || x\\n")
>>> list(flow.dag.arcs()), flow.task("o/c").command
([('b', 'o/c')], '[ -d o ] || mkdir -p o; cp b o/c')
"""

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from eligo.dag import Dag
from eligo.errors import FormatError, shorten
from eligo.formats.ninja.manifest import PHONY, PIPE, Edge, Manifest, escape, read_manifest
from eligo.formats.ninja.manifest import fitted_file as fitted_file
from eligo.formats.shared import data_arcs
from eligo.formats.shared.data_arcs import through
from eligo.formats.shared.files import Beside
from eligo.formats.shared.rules import Rule, rules_of, workflow_of
from eligo.workflow import NOTHING, Origin, Workflow

NAME = "ninja"
PRIORITIES = False
#: How ninja orders tasks instead.
INSTEAD = "since 1.12 it takes the longest remaining path first, counted in statements"
CANNOT = ("name", "seconds", "cores", "memory", "labels", "priority", "file_sizes")
#: Its files name others.
TAKES = ("beside",)

#: The maximum number of arcs without aliases; beyond it, aliases are tasks.
MOST_ARCS = 2_000_000
#: The variables for details that ninja cannot represent; eligo wrote the statements that have the first one.
TASK = "task"
VARIABLES = {TASK: "eligo_task", "mark": "eligo_mark", "category": "eligo_category", "command": "eligo_command"}
#: The rule of tasks without a kind.
PLAIN_RULE = "task"

_OF_TARGET = re.compile(r"[A-Z]+(?:_[A-Z]+)+(?=__)")


def _workflow(manifest: Manifest, beside: Beside | None) -> Workflow:
    """The workflow of the default build."""
    itself = os.path.basename(beside.root) if beside and beside.root else "build.ninja"
    own = manifest.maker.get(itself)
    chosen = [number for number in _default_edges(manifest) if number != own]
    edges = [manifest.edges[number] for number in chosen]
    arcs = _arcs(manifest, chosen)
    names = [edge.outputs[0] for edge in edges]
    Dag.from_arrays(len(edges), *data_arcs.columns(arcs), names)  # raises for a cycle of aliases
    aliases = {i for i, edge in enumerate(edges) if edge.is_phony}
    direct = through(arcs, aliases, MOST_ARCS)
    tasks = [i for i, edge in enumerate(edges) if direct is None or not edge.is_phony]
    if not tasks:
        raise FormatError("no build statement runs a command")
    place = {i: new for new, i in enumerate(tasks)}
    renumbered = [(place[tail], place[head]) for tail, head in (arcs if direct is None else direct)]
    rules = [_rule(manifest, edges[i]) for i in tasks]
    full = {pool for pool, _ in _held_back(manifest, edges)}
    for rule, edge in zip(rules, (edges[i] for i in tasks), strict=True):
        rule.unhonoured += ["pool"] if edge.pool in full and not edge.is_phony else []
        rule.unhonoured += ["dyndep"] if not edge.is_phony and manifest.value(edge, "dyndep") else []
    remarks = _remarks(manifest, edges, own is not None, len(aliases) if direct is None else 0)
    return workflow_of(rules, {}, Origin(format=NAME, remarks=tuple(remarks)), renumbered)


def _default_edges(manifest: Manifest) -> list[int]:
    """The edges that ninja would build without targets on its command line, in the order of the file."""
    targets = manifest.defaults or _roots(manifest)
    waiting = [manifest.maker[path] for path in targets if path in manifest.maker]
    seen = set(waiting)
    while waiting:
        edge = manifest.edges[waiting.pop()]
        needed = {manifest.maker.get(path) for path in (*edge.inputs, *edge.order_only, *edge.validations)}
        fresh = [number for number in needed if number is not None and number not in seen]
        seen.update(fresh)
        waiting += fresh
    return sorted(seen)


def _roots(manifest: Manifest) -> Sequence[str]:
    """The files that no edge needs; all files if there are none, because of a cycle."""
    needed = {path for edge in manifest.edges for path in (*edge.inputs, *edge.order_only)}
    return [path for path in manifest.maker if path not in needed] or list(manifest.maker)


def _arcs(manifest: Manifest, chosen: Sequence[int]) -> list[tuple[int, int]]:
    """The arcs between the chosen edges, each once, by their places in *chosen*."""
    place = {number: i for i, number in enumerate(chosen)}
    arcs: list[tuple[int, int]] = []
    for number, head in place.items():
        edge = manifest.edges[number]
        makers = dict.fromkeys(manifest.maker.get(path) for path in (*edge.inputs, *edge.order_only))
        arcs += ((place[maker], head) for maker in makers if maker is not None and maker in place)
    return arcs


def _rule(manifest: Manifest, edge: Edge) -> Rule:
    """The rule of an edge's task."""
    files = [path for path in edge.inputs if not _is_alias(manifest, path)]
    rule = Rule(outputs=tuple(edge.outputs), inputs=tuple(files), command=NOTHING, line=edge.line)
    if edge.is_phony:
        return rule
    command = manifest.value(edge, "command")
    rule.command = command if command.strip() else NOTHING
    own = {key: edge.bindings.values.maps[0].get(variable) for key, variable in VARIABLES.items()}
    if own[TASK] is None:
        kind = _OF_TARGET.match(edge.recipe.name)
        rule.more = {"category": kind[0] if kind else edge.recipe.name}
        rule.command = _preparation(manifest, edge) + rule.command
        return rule
    rule.name, rule.mark = own[TASK], own["mark"]
    rule.command = own["command"] if own["command"] is not None else rule.command
    category = own["category"] or (None if edge.recipe.name == PLAIN_RULE else edge.recipe.name)
    rule.more = {} if category is None else {"category": category}
    return rule


def _is_alias(manifest: Manifest, path: str) -> bool:
    maker = manifest.maker.get(path)
    return maker is not None and manifest.edges[maker].is_phony


def _preparation(manifest: Manifest, edge: Edge) -> str:
    """The shell command for what ninja does first: make the folders of the outputs, and write the response file."""
    response = manifest.value(edge, "rspfile", quote=False)
    paths = [*edge.outputs, response]
    folders = sorted({folder for path in paths if (folder := os.path.dirname(path)) not in {"", "/"}})
    dashes = "-- " if any(folder.startswith("-") for folder in folders) else ""
    # the shell checks this without starting a program
    there = " && ".join(f"[ -d {shlex.quote(folder)} ]" for folder in folders)
    text = f"{there} || mkdir -p {dashes}{shlex.join(folders)}; " if folders else ""
    if response:
        text += f"printf %s {shlex.quote(manifest.value(edge, 'rspfile_content'))} > {shlex.quote(response)}; "
    return text


def _remarks(manifest: Manifest, edges: Sequence[Edge], itself: bool, aliases: int) -> Iterator[str]:
    tasks = [edge for edge in edges if not edge.is_phony]
    unneeded = sum(not edge.is_phony for edge in manifest.edges) - len(tasks) - itself
    if unneeded:
        yield f"skipped build statements that the default targets do not need: {unneeded:,}"
    if itself:
        yield "skipped the statement that regenerates this file, which ninja runs before all others"
    if aliases:
        yield f"phony statements, read as tasks that run nothing to avoid too many arcs: {aliases:,}"
    dynamic = sum(bool(manifest.value(edge, "dyndep")) for edge in tasks)
    if dynamic:
        yield f"dependencies in the dyndep files of {dynamic:,} tasks are not known before the build"
    for pool, count in _held_back(manifest, tasks):
        most = manifest.pools[pool]
        yield f"the pool {pool} limits its {count:,} tasks to {most:,} at a time, which plans do not take into account"


def _held_back(manifest: Manifest, edges: Iterable[Edge]) -> Iterator[tuple[str, int]]:
    """The pools that have more tasks than may run at a time, with the number of tasks."""
    pools = Counter(edge.pool for edge in edges if edge.pool and not edge.is_phony)
    return ((pool, count) for pool, count in pools.items() if 0 < manifest.pools[pool] < count)


_BEGINS = re.compile(
    r"^(?:ninja_required_version *+=|rule ++[a-zA-Z0-9_.-]++ *+\r?\n(?: *+#[^\n]*+\n)*+ ++[a-z_]++ *+=)", re.MULTILINE
)
_GLANCE = 2**16
_RULE = re.compile(r"[a-zA-Z0-9_.-]{1,100}")


def sniff(text: str) -> bool:
    """Whether a line near the top requires a version of ninja, or begins a rule."""
    return _BEGINS.search(text, 0, _GLANCE) is not None


def parse(text: str, beside: Beside | None = None) -> Workflow:
    """The workflow that a ninja text describes; without *beside*, it must not include other files."""
    return _workflow(read_manifest(text, beside), beside)


# Writing


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
    outputs, inputs = (
        "".join(" " + escape(file, f"a file {what}", path=True) for file in files)
        for files in (rule.outputs, rule.inputs)
    )
    kind = _rule_name(rule)
    yield f"build{outputs}: {kind}{inputs}\n"
    category = rule.more.get("category")
    other = None if kind == category else category
    values = {TASK: name, "mark": rule.mark, "category": other, "command": rule.command}
    for key, value in values.items():
        if value is not None:
            yield f"  {VARIABLES[key]} = {escape(value, f'the {key} {what}')}\n"

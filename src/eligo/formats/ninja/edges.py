"""The workflow that the build statements of a ninja file make: what the default targets need, without aliases."""

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from eligo.dag import Dag
from eligo.errors import FormatError
from eligo.formats.ninja.manifest import Edge, Manifest
from eligo.formats.shared import data_arcs
from eligo.formats.shared.bridging import through
from eligo.formats.shared.files import Beside
from eligo.formats.shared.rules import Rule
from eligo.formats.shared.rules import workflow_of as workflow_of_rules
from eligo.workflow import NOTHING, Origin, Workflow

#: Aliases stay where there would be more arcs without them.
MOST_ARCS = 2_000_000
#: The variables that keep what ninja has no place for; a statement that has the first one was written by eligo.
TASK = "task"
VARIABLES = {TASK: "eligo_task", "mark": "eligo_mark", "category": "eligo_category", "command": "eligo_command"}
#: The rule of tasks of which no kind is known.
PLAIN_RULE = "task"

_OF_TARGET = re.compile(r"[A-Z]+(?:_[A-Z]+)+(?=__)")


def workflow_of(manifest: Manifest, name: str, beside: Beside | None) -> Workflow:
    """The workflow of all that is to be built."""
    itself = os.path.basename(beside.root) if beside and beside.root else "build.ninja"
    own = manifest.maker.get(itself)
    chosen = [number for number in _wanted(manifest) if number != own]
    edges = [manifest.edges[number] for number in chosen]
    arcs = _arcs(manifest, chosen)
    Dag.from_arrays(
        len(edges), *data_arcs.columns(arcs), [edge.outputs[0] for edge in edges]
    )  # refuses a circle of aliases
    aliases = {i for i, edge in enumerate(edges) if edge.is_phony}
    direct = through(arcs, aliases, MOST_ARCS)
    kept = [i for i, edge in enumerate(edges) if direct is None or not edge.is_phony]
    if not kept:
        raise FormatError("no build statement runs anything")
    place = {i: new for new, i in enumerate(kept)}
    renumbered = [(place[tail], place[head]) for tail, head in (arcs if direct is None else direct)]
    rules = [_rule(manifest, edges[i]) for i in kept]
    full = {pool for pool, _ in _held_back(manifest, edges)}
    for rule, edge in zip(rules, (edges[i] for i in kept), strict=True):
        rule.unhonoured += ["pool"] if edge.pool in full and not edge.is_phony else []
        rule.unhonoured += ["dyndep"] if not edge.is_phony and manifest.value(edge, "dyndep") else []
    remarks = _remarks(manifest, edges, own is not None, len(aliases) if direct is None else 0)
    return workflow_of_rules(rules, {}, Origin(format=name, remarks=tuple(remarks)), renumbered)


def _wanted(manifest: Manifest) -> list[int]:
    """The edges that ninja would build where it is given no targets, in the order of the file."""
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
    """The files that no edge needs; where there are none, as in a circle, all."""
    needed = {path for edge in manifest.edges for path in (*edge.inputs, *edge.order_only)}
    return [path for path in manifest.maker if path not in needed] or list(manifest.maker)


def _arcs(manifest: Manifest, chosen: Sequence[int]) -> list[tuple[int, int]]:
    """The arcs between the edges, each once, by their place among the chosen."""
    place = {number: i for i, number in enumerate(chosen)}
    found: list[tuple[int, int]] = []
    for number, head in place.items():
        edge = manifest.edges[number]
        makers = dict.fromkeys(manifest.maker.get(path) for path in (*edge.inputs, *edge.order_only))
        found += ((place[maker], head) for maker in makers if maker is not None and maker in place)
    return found


def _rule(manifest: Manifest, edge: Edge) -> Rule:
    """What an edge says of its task."""
    files = [path for path in edge.inputs if not _is_alias(manifest, path)]
    rule = Rule(outputs=tuple(edge.outputs), inputs=tuple(files), command=NOTHING, line=edge.line)
    if edge.is_phony:
        return rule
    command = manifest.value(edge, "command")
    rule.command = command if command.strip() else NOTHING
    own = {key: edge.known.values.get(variable) for key, variable in VARIABLES.items()}
    if own[TASK] is None:
        kind = _OF_TARGET.match(edge.recipe.name)
        rule.more = {"category": kind[0] if kind else edge.recipe.name}
        rule.command = _prepared(manifest, edge) + rule.command
        return rule
    rule.name, rule.mark = own[TASK], own["mark"]
    rule.command = own["command"] if own["command"] is not None else rule.command
    category = own["category"] or (None if edge.recipe.name == PLAIN_RULE else edge.recipe.name)
    rule.more = {} if category is None else {"category": category}
    return rule


def _is_alias(manifest: Manifest, path: str) -> bool:
    maker = manifest.maker.get(path)
    return maker is not None and manifest.edges[maker].is_phony


def _prepared(manifest: Manifest, edge: Edge) -> str:
    """What ninja does before it runs the command: make the folders of the outputs, and write the response file."""
    response = manifest.value(edge, "rspfile", quote=False)
    made = [*edge.outputs, response]
    folders = sorted({folder for path in made if (folder := os.path.dirname(path)) not in {"", "/"}})
    dashes = "-- " if any(folder.startswith("-") for folder in folders) else ""
    there = " && ".join(
        f"[ -d {shlex.quote(folder)} ]" for folder in folders
    )  # asked of the shell: no program is started
    text = f"{there} || mkdir -p {dashes}{shlex.join(folders)}; " if folders else ""
    if response:
        text += f"printf %s {shlex.quote(manifest.value(edge, 'rspfile_content'))} > {shlex.quote(response)}; "
    return text


def _remarks(manifest: Manifest, edges: Sequence[Edge], itself: bool, aliases: int) -> Iterator[str]:
    tasks = [edge for edge in edges if not edge.is_phony]
    left = sum(not edge.is_phony for edge in manifest.edges) - len(tasks) - itself
    if left:
        yield f"build statements that the default targets do not need, and that are left out: {left:,}"
    if itself:
        yield "the statement that makes the file itself is left out: ninja runs it before all others"
    if aliases:
        yield f"phony statements, which run nothing and count as tasks, for there would be too many arcs: {aliases:,}"
    dynamic = sum(bool(manifest.value(edge, "dyndep")) for edge in tasks)
    if dynamic:
        yield f"what the dyndep files of {dynamic:,} tasks add while ninja builds is not known here"
    for pool, count in _held_back(manifest, tasks):
        most = manifest.pools[pool]
        yield f"the pool {pool} lets ninja run {most:,} of its {count:,} tasks at a time, which no plan here heeds"


def _held_back(manifest: Manifest, edges: Iterable[Edge]) -> Iterator[tuple[str, int]]:
    """The pools that have more tasks than may run at a time, with their number."""
    pools = Counter(edge.pool for edge in edges if edge.pool and not edge.is_phony)
    return ((pool, count) for pool, count in pools.items() if 0 < manifest.pools[pool] < count)

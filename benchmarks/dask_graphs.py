"""Graphs of the kinds that are hard to order for few results in memory, as Dask would have them: what each key depends on."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Needs = dict[str, list[str]]
SPLIT = 4  # parts that one step of a reduction takes


def reduced(needs: Needs, parts: Iterable[str], name: str) -> str:
    """The result of a reduction by SPLIT parts at a time, added to a graph."""
    level, step = list(parts), 0
    while len(level) > 1 or not step:
        groups = [level[i : i + SPLIT] for i in range(0, len(level), SPLIT)]
        level = [f"{name}-{step}-{i}" for i in range(len(groups))]
        needs |= dict(zip(level, groups, strict=True))
        step += 1
    return level[0]


def anomalies(days: int, groups: int) -> Needs:
    """Each day less the mean of its group, and the mean of that over all days."""
    needs: Needs = {f"day{d}": [] for d in range(days)}
    means = [reduced(needs, [f"day{d}" for d in range(g, days, groups)], f"mean{g}") for g in range(groups)]
    needs |= {f"less{d}": [f"day{d}", means[d % groups]] for d in range(days)}
    reduced(needs, [f"less{d}" for d in range(days)], "all")
    return needs


def moments(blocks: int) -> Needs:
    """The means of two arrays, of their squares, and of their product."""
    needs: Needs = {f"{x}{i}": [] for x in "uv" for i in range(blocks)}
    for name, pair in (("uu", "u"), ("vv", "v"), ("uv", "uv")):
        needs |= {f"{name}{i}": [f"{x}{i}" for x in pair] for i in range(blocks)}
        reduced(needs, [f"{name}{i}" for i in range(blocks)], f"mean {name}")
    return needs


def slices(times: int, cells: int) -> Needs:
    """Slices of one file, each weighted with its cell's labels, and reduced over time."""
    needs: Needs = {"file": [], **{f"labels{c}": [] for c in range(cells)}}
    for c in range(cells):
        needs |= {f"open{c},{t}": ["file"] for t in range(times)} | {
            f"get{c},{t}": [f"open{c},{t}"] for t in range(times)
        }
        needs |= {f"chunk{c},{t}": [f"get{c},{t}", f"labels{c}"] for t in range(times)}
        needs[f"turn{c}"] = [reduced(needs, [f"chunk{c},{t}" for t in range(times)], f"sum{c}")]
    return needs


def cohorts(files: int, width: int, groups: int) -> Needs:
    """Files cut into new blocks that span two files each, and reduced by groups of blocks."""
    needs: Needs = {f"open{i}": [] for i in range(files)}
    needs |= {f"cut{i},{j}": [f"open{i}"] for i in range(files) for j in range(width)}
    needs |= {f"join{i},{j}": [f"cut{i},{j}", f"cut{i + 1},{j}"] for i in range(files - 1) for j in range(width)}
    for g in range(groups):
        members = [f"join{i},{j}" for i in range(g, files - 1, groups) for j in range(width)]
        needs[f"mean{g}"] = [reduced(needs, members, f"group{g}")]
    return needs


def differences(rows: int) -> Needs:
    """Second differences of a square of blocks in both directions, collected at the end."""
    here = [(i, j) for i in range(rows) for j in range(rows)]
    needs: Needs = {f"load{i},{j}": [] for i, j in here}
    needs |= {f"{side}{i},{j}": [f"load{i},{j}"] for side in ("low", "high") for i, j in here}
    for way, (down, right) in {"x": (0, 1), "y": (1, 0)}.items():
        pairs = [(i, j) for i, j in here if i + down < rows and j + right < rows]
        needs |= {f"{way}{i},{j}": [f"high{i},{j}", f"low{i + down},{j + right}"] for i, j in pairs}
    needs["end"] = [name for name in needs if name[0] in "xy"]
    return needs


def stacks(tiles: int, bands: int) -> Needs:
    """Tiles that are read by band with a shared reader, cut, and stacked to a median for each band."""
    needs: Needs = {"spec": [], **{f"reader{b},{t}": [] for b in range(bands) for t in range(tiles)}}
    needs |= {f"read{b},{t}": [f"reader{b},{t}", "spec"] for b in range(bands) for t in range(tiles)}
    needs |= {f"cut{b},{t},{k}": [f"read{b},{t}"] for b in range(bands) for t in range(tiles) for k in "01"}
    needs |= {f"stack{b}{k}": [f"cut{b},{t},{k}" for t in range(tiles)] for b in range(bands) for k in "01"}
    return needs | {f"index{k}": [f"stack{b}{k}" for b in range(bands)] for k in "01"}


def equals(loads: int, readers: int) -> Needs:
    """Loads that several equal readers use, with a result for each pair of neighbouring loads."""
    needs: Needs = {f"load{i}": [] for i in range(loads)}
    needs |= {f"read{i},{k}": [f"load{i}"] for i in range(loads) for k in range(readers)}
    needs |= {
        f"pair{i},{k}": [f"read{i},{k}", f"read{(i + 1) % loads},{k}"] for i in range(loads) for k in range(readers)
    }
    return needs | {f"sum{k}": [f"pair{i},{k}" for i in range(loads)] for k in range(readers)}


def stencils(cells: int, rounds: int) -> Needs:
    """Cells that see their neighbours, round by round."""
    needs: Needs = {f"cell0,{i}": [] for i in range(cells)}
    for r in range(1, rounds + 1):
        needs |= {
            f"cell{r},{i}": [f"cell{r - 1},{j}" for j in range(max(0, i - 1), min(cells, i + 2))] for i in range(cells)
        }
    reduced(needs, [f"cell{rounds},{i}" for i in range(cells)], "sum")
    return needs


def chains(count: int, length: int) -> Needs:
    """Long chains from roots that two neighbouring chains share, reduced in the end."""
    needs: Needs = {f"root{i}": [] for i in range(count + 1)}
    needs |= {f"link0,{i}": [f"root{i}", f"root{i + 1}"] for i in range(count)}
    needs |= {f"link{k},{i}": [f"link{k - 1},{i}"] for k in range(1, length) for i in range(count)}
    reduced(needs, [f"link{length - 1},{i}" for i in range(count)], "sum")
    return needs


def rotations(parts: int, rounds: int) -> Needs:
    """Rows and columns in turn: every part is split for all parts and put together, round by round."""
    needs: Needs = {f"part0,{i}": [] for i in range(parts)}
    for r in range(rounds):
        needs |= {f"split{r},{i},{j}": [f"part{r},{i}"] for i in range(parts) for j in range(parts)}
        needs |= {f"part{r + 1},{j}": [f"split{r},{i},{j}" for i in range(parts)] for j in range(parts)}
    return needs


def commons(rows: int, columns: int, shared: int) -> Needs:
    """Blocks that all depend on the same few inputs, summed by rows; the blocks are wanted, too."""
    needs: Needs = {f"input{k}": [] for k in range(shared)}
    inputs = list(needs)
    for i in range(rows):
        needs |= {f"block{i},{j}": inputs for j in range(columns)} | {
            f"kept{i},{j}": [f"block{i},{j}"] for j in range(columns)
        }
        reduced(needs, [f"block{i},{j}" for j in range(columns)], f"row{i}")
    return needs


def stores(blocks: int) -> Needs:
    """Blocks computed from two sources, stored one by one, and a mark that all are stored."""
    needs: Needs = {f"{x}{i}": [] for x in "ab" for i in range(blocks)}
    needs |= {f"sum{i}": [f"a{i}", f"b{i}"] for i in range(blocks)} | {f"target{i}": [] for i in range(blocks)}
    needs |= {f"store{i}": [f"sum{i}", f"target{i}"] for i in range(blocks)}
    return needs | {"stored": [f"store{i}" for i in range(blocks)]}


def graph_of(needs: Needs) -> dict[str, Any]:
    """The graph as Dask has it."""
    return {key: (max, *parents) for key, parents in needs.items()}


#: each kind with its size here
KINDS: Mapping[str, tuple[Callable[..., Needs], tuple[int, ...]]] = {
    "anomalies": (anomalies, (60, 5)),
    "moments": (moments, (40,)),
    "slices": (slices, (12, 6)),
    "cohorts": (cohorts, (16, 3, 4)),
    "differences": (differences, (6,)),
    "stacks": (stacks, (12, 4)),
    "equals": (equals, (12, 4)),
    "stencils": (stencils, (24, 4)),
    "chains": (chains, (20, 6)),
    "rotations": (rotations, (5, 3)),
    "commons": (commons, (8, 8, 3)),
    "stores": (stores, (20,)),
}

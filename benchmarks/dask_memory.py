"""Results in memory at once, by eligo's orders and by dask.order, on typical graphs of Dask users.

`python -m benchmarks.dask_memory`: one task at a time, and four; results that the user gets are not counted. Tasks are
numbered by dask.order, so that it is one of the starts of `space`.
"""

from typing import Any

import dask.array as da
import dask.base
import dask.order
import numpy as np
from dask.delayed import delayed

from benchmarks.dask_graphs import KINDS, graph_of
from benchmarks.timing import heading, row, verdict
from eligo.interop.dask import from_dask
from eligo.plugins.dask import WORKERS, order_of, peak_on
from eligo.plugins.numbers import quick_order
from eligo.space.bounds import space_bound
from eligo.space.footprint import Footprint
from eligo.space.orders import as_numbered


def tree_sum(leaves: int = 512) -> Any:
    """A sum by pairs."""
    parts = [delayed(abs)(i) for i in range(leaves)]
    while len(parts) > 1:
        parts = [delayed(max)(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def vorticity(steps: int = 100) -> Any:
    """The mean square of a difference of differences, time step by time step."""
    u, v = (da.ones((steps, 200, 100), chunks=(1, 200, 100)) for _ in range(2))
    dx, dy = (da.ones((200, 100), chunks=(200, 100)) for _ in range(2))
    across = da.concatenate([v, v[:, :, :1]], axis=2) * 2  # type: ignore[no-untyped-call]
    down = da.concatenate([u, u[:, :1, :]], axis=1) * 2  # type: ignore[no-untyped-call]
    east, south = (across[:, :, 1:] - across[:, :, :-1]) * dy[None], (down[:, 1:] - down[:, :-1]) * dx[None]
    return (((east - south) / (dx * dy)[None]) ** 2).mean()


def means_by_month(years: int = 10) -> Any:
    """The mean of every month over all years, as of a climate."""
    days = da.ones((years * 144, 90, 90), chunks=(8, 90, 90))
    return da.stack([days[month::12].mean(axis=0) for month in range(12)])  # type: ignore[no-untyped-call]


def circulation() -> Any:
    """The means of all products of two of four fields."""
    fields = [da.ones((100, 60, 60), chunks=(5, 60, 60)) * i for i in range(4)]
    return da.stack([(a * b).mean(axis=0) for a in fields for b in fields])  # type: ignore[no-untyped-call]


def shuffle(parts: int) -> list[Any]:
    """Every part split for every part, and put together: what a data frame does when it is sorted by another column."""
    split = [[delayed(max)(part, j) for j in range(parts)] for part in (delayed(list)(i) for i in range(parts))]
    return [delayed(sum)([row[j] for row in split]) for j in range(parts)]


def graphs() -> dict[str, Any]:
    """Collections by name; x has 20 by 20 blocks."""
    x, thin = da.ones((2000, 2000), chunks=(100, 100)), da.ones((1_000_000, 4), chunks=(2000, 4))
    tall = da.ones((4000, 50), chunks=(100, 50))
    joined = [delayed(max)(a, b) for a, b in zip(shuffle(12), shuffle(12), strict=True)]
    return {
        "tree sum": tree_sum(),
        "vorticity": vorticity(),
        "x.sum()": x.sum(),
        "(x + x.T).sum()": (x + x.T).sum(),
        "(x - x.mean(0)).std(0)": (x - x.mean(axis=0)).std(axis=0),
        "x.rechunk((2000, 50)).sum()": x.rechunk((2000, 50)).sum(),
        "x.dot(x.T).sum()": x.dot(x.T).sum(),
        "x.map_overlap().sum()": x.map_overlap(np.abs, depth=1, boundary="reflect").sum(),
        "sum of a thin array": (thin + 1).sum(axis=0),
        "cumulative sum": da.cumsum(tall[:, 0], axis=0).sum(),
        "svd": da.linalg.svd(tall)[1],  # type: ignore[no-untyped-call]
        "qr": da.linalg.qr(tall)[1],  # type: ignore[no-untyped-call]
        "climatic mean": means_by_month(),
        "circulation": circulation(),
        "shuffle": delayed(len)([delayed(len)(part) for part in shuffle(16)]),
        "join": delayed(len)(joined),
    }


def needs_of(collection: Any) -> dict[Any, Any]:
    """The graph of a collection as Dask would run it."""
    (optimised,) = dask.base.optimize(collection)  # type: ignore[no-untyped-call]
    return dict(optimised.__dask_graph__())


def peaks(graph: dict[Any, Any]) -> tuple[int, ...]:
    """The number of tasks; the most results at once by `space`, dask.order and `finish`; the bound; and the first two with
    four tasks at a time.
    """
    place = dask.order.order(graph)
    flow = from_dask({key: graph[key] for key in sorted(graph, key=place.__getitem__)})
    footprint = Footprint.of_results(flow.dag)
    order, theirs = flow.dag.indices(order_of(flow, "space")), as_numbered(flow.dag)
    finish, bound = footprint.peak(quick_order(flow, "finish")), space_bound(footprint, order).bytes
    several = [peak_on(footprint, WORKERS, one) for one in (order, theirs)]
    return len(flow), footprint.peak(order), footprint.peak(theirs), finish, bound, *several


def main() -> None:
    """Print the table."""
    widths = (30, 8, 8, 12, 8, 8, 10, 14, 10)
    columns = ("graph", "tasks", "space", "dask.order", "finish", "bound", "space, 4", "dask.order, 4", "no worse")
    heading("Results in memory at once", columns, widths)
    every = {name: needs_of(collection) for name, collection in graphs().items()}
    every |= {name: graph_of(kind(*size)) for name, (kind, size) in KINDS.items()}
    for name, graph in every.items():
        figures = peaks(graph)
        row((name, *figures, verdict(figures[1] <= figures[2] and figures[5] <= figures[6])), widths)


if __name__ == "__main__":
    main()

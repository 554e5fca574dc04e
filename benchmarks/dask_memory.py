"""Results in memory at once, by eligo's order and by dask.order, on typical graphs of Dask users.

`python -m benchmarks.dask_memory`: one task at a time, as in the warning of `eligo.plugins.dask`.
"""

from typing import Any

import dask.array as da
import dask.base
import dask.order
import numpy as np
from dask.delayed import delayed

from benchmarks.timing import heading, row
from eligo.interop.dask import from_dask
from eligo.plugins.numbers import quick_order
from eligo.theory.eligibility import peak_results


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


def graphs() -> dict[str, Any]:
    """Collections by name; x has 20 by 20 blocks."""
    x = da.ones((2000, 2000), chunks=(100, 100))
    return {
        "tree sum": tree_sum(),
        "vorticity": vorticity(),
        "x.sum()": x.sum(),
        "(x + x.T).sum()": (x + x.T).sum(),
        "(x - x.mean(0)).std(0)": (x - x.mean(axis=0)).std(axis=0),
        "x.rechunk((2000, 50)).sum()": x.rechunk((2000, 50)).sum(),
    }


def peaks(collection: Any) -> tuple[int, int, int]:
    """The number of tasks, and the most results at once by our order and by Dask's."""
    (optimised,) = dask.base.optimize(collection)  # type: ignore[no-untyped-call]
    graph = dict(optimised.__dask_graph__())
    place = dask.order.order(graph)
    flow = from_dask({key: graph[key] for key in sorted(graph, key=place.__getitem__)})
    ours = peak_results(flow.dag, quick_order(flow, "finish"))
    return len(flow), ours, peak_results(flow.dag, np.arange(len(flow), dtype=np.int32))


def main() -> None:
    """Print the table."""
    widths = (30, 10, 10, 12)
    heading("Results in memory at once", ("graph", "tasks", "eligo", "dask.order"), widths)
    for name, collection in graphs().items():
        row((name, *peaks(collection)), widths)


if __name__ == "__main__":
    main()

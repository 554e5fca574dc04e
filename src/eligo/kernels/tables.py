"""The two inner loops of elimination: joining rows of two tables, and keeping the best of rows that agree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int32]


def join_rows(narrow: Ints, wide: Ints, i_narrow: Ints, i_wide: Ints, never: int, out: Ints) -> None:
    """Row r of *out* becomes the max-plus convolution of narrow[i_narrow[r]] and wide[i_wide[r]]; *never* is no value."""
    for r in range(out.shape[0]):
        a = i_narrow[r]
        b = i_wide[r]
        for t in range(out.shape[1]):
            out[r, t] = never
        for i in range(narrow.shape[1]):
            x = narrow[a, i]
            if x > never:
                for j in range(wide.shape[1]):
                    y = x + wide[b, j]
                    out[r, i + j] = max(out[r, i + j], y)


def best_rows(values: Ints, order: Ints, begins: Ints, out: Ints) -> None:
    """Row g of *out* becomes the largest, entry by entry, of the rows order[begins[g]], ..., order[begins[g + 1] - 1]."""
    for g in range(out.shape[0]):
        first = order[begins[g]]
        for t in range(out.shape[1]):
            out[g, t] = values[first, t]
        for i in range(begins[g] + 1, begins[g + 1]):
            r = order[i]
            for t in range(out.shape[1]):
                out[g, t] = max(out[g, t], values[r, t])

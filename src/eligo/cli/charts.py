"""Ready tasks over time in a terminal: lines of plain letters, named where they end, above an axis."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

from eligo.cli.output import width

PLAN, USUAL, BOUND = "*", "o", "."  # marks; a later one is drawn over the earlier
MARGIN = 10  # characters before the first column
DONE = "tasks done"
TIMES = 6  # columns that a step has at most


def chart(
    profile: Sequence[int], bound: Sequence[int], other: Sequence[int], height: int = 12, name: str = "this plan"
) -> str:
    """Ready tasks as tasks are done, in an order, in first come, first served, and at most; as wide as the terminal.

    Where there are more steps than columns, a column shows the mean of several.

    >>> print(chart([1, 2, 3, 1, 0], [1, 3, 3, 1, 0], [1, 1, 3, 1, 0]))
      tasks ready
           3 |      ......******         . bound
             |      ******o     *        o fifo
           1 |******oooooo      ******   * this plan
           0 +------------------------+
              0                       4 tasks done
              fifo: first come, first served; bound: no order has more ready
    """
    curves = {BOUND: bound, USUAL: other, PLAN: profile}
    visible = {mark: curve for mark, curve in curves.items() if mark == PLAN or list(curve) != list(profile)}
    names = {BOUND: "bound", USUAL: "fifo", PLAN: name if USUAL in visible else f"{name}, fifo"}
    labels = [f"{mark} {names[mark]}" for mark in visible]
    room = width() - MARGIN - max(2 + max(map(len, labels)), 1 + len(DONE))
    drawn = {mark: _columns(curve, room) for mark, curve in visible.items()}
    top = max(1, -int(-max(map(max, drawn.values())) // 1))
    rows = _painted(drawn, top, max(len(labels), min(height, max(3, top))))
    axis = _axis(len(rows[0]), len(profile) - 1)
    return "\n".join(["  tasks ready", *_framed(rows, labels, top), *axis, " " * MARGIN + _legend(BOUND in visible)])


def _columns(curve: Sequence[int], room: int) -> list[float]:
    """The height of every column: each step several times but for the last, or the mean of several steps."""
    times = min(TIMES, room // len(curve))
    if times:
        return [float(value) for value in curve[:-1] for _ in range(times)] + [float(curve[-1])]
    cuts = [column * len(curve) // room for column in range(room + 1)]
    return [sum(curve[a:b]) / (b - a) for a, b in itertools.pairwise(cuts)]


def _painted(drawn: Mapping[str, Sequence[float]], top: int, height: int) -> list[list[str]]:
    """The rows from the highest on; each line climbs and falls within the column in which it changes."""
    rows = [[" "] * len(next(iter(drawn.values()))) for _ in range(height)]
    for mark, line in drawn.items():
        levels = [-int(-value * height // top) for value in line]
        for column, (before, level) in enumerate(itertools.pairwise([levels[0], *levels])):
            for row in {level, *range(min(before, level) + 1, max(before, level))} - {0}:
                rows[height - row][column] = mark
    return rows


def _framed(rows: Sequence[Sequence[str]], labels: Sequence[str], top: int) -> Iterator[str]:
    """The rows between the axis at their left and the names of the lines, which end at the lower right."""
    height, blank = len(rows), [""] * (len(rows) - len(labels))
    for place, (row, label) in enumerate(zip(rows, [*blank, *labels], strict=True)):
        level = (height - place) * top
        tick = f"{level // height:,}" if place in {0, height - height // 2} and level % height == 0 else ""
        yield f"{tick:>8} |{''.join(row)}  {label}".rstrip()


def _axis(wide: int, last: int) -> Iterator[str]:
    """The axis at the bottom, and from where to where it goes."""
    wide = max(wide, len(f"{last:,}") + 2)
    yield f"{0:>8} +{'-' * (wide - 1)}+"
    yield f"{'':{MARGIN}}0{last:>{wide - 1},} {DONE}"


def _legend(bounded: bool) -> str:
    return "fifo: first come, first served" + ("; bound: no order has more ready" if bounded else "")

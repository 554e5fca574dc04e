"""Drawings of runs as SVG of our own: they need no library, grow to any number of tasks, and follow light and dark."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from eligo.plotting.labels import elided, legible
from eligo.plotting.profiles import thinned

Floats = NDArray[np.float64]

WIDTH, LEFT, RIGHT, TOP, BELOW = 800.0, 46.0, 14.0, 10.0, 38.0
HIGH = 210.0  # of the axes of a chart
ROW, GAP, NAMES = 15.0, 4.0, 92.0  # of a worker in a Gantt chart, between two, and for its name
LEAST = 0.7  # so wide is what takes no time
SEAM = 0.6  # between two bars of a row
TICKS = 6


@dataclass(frozen=True)
class Line:
    """One curve: what it is called, how it is drawn (a class of the page's style) and its points."""

    label: str
    style: str
    x: Floats
    y: Floats
    #: whether it stays where it is until the next point
    steps: bool = False


def text_of(text: str) -> str:
    """A text as part of a document."""
    return escape(legible(text))


def chart(lines: Sequence[Line], across: str, up: str, show: Callable[[float], str]) -> str:
    """Curves from 0 on both axes, and what they mean above them; *show* writes the numbers along the bottom."""
    right = max((float(line.x[-1]) for line in lines if len(line.x)), default=0.0) or 1.0
    top = max((float(line.y.max(initial=0.0)) for line in lines), default=0.0) or 1.0
    inner, height = WIDTH - LEFT - RIGHT, TOP + HIGH + BELOW
    parts = [*_grid(right, top, show, across, up)]
    for line in lines:
        x, y = LEFT + inner * line.x / right, TOP + HIGH - HIGH * line.y / top
        parts.append(f'<path class="line {line.style}" d="{_path(x, y, line.steps)}"/>')
    return _figure(height, parts, [(line.label, line.style) for line in lines], f"{up} over {across}")


def _path(x: Floats, y: Floats, steps: bool) -> str:
    """The points as a path, thinned where there are more than can be seen."""
    kept = thinned([np.round(y * 16).astype(np.int64)]) if len(x) else np.array([], np.int64)
    pairs = zip(x[kept].round(1).tolist(), y[kept].round(1).tolist(), strict=True)
    if not steps:
        return "".join(f"{'L' if place else 'M'}{a:g},{b:g}" for place, (a, b) in enumerate(pairs))
    return "".join(f"H{a:g}V{b:g}" if place else f"M{a:g},{b:g}" for place, (a, b) in enumerate(pairs))


def _grid(right: float, top: float, show: Callable[[float], str], across: str, up: str) -> Iterator[str]:
    inner = WIDTH - LEFT - RIGHT
    for value in ticks(top, TICKS - 1, whole=True):
        y = TOP + HIGH - HIGH * value / top
        yield f'<path class="grid" d="M{LEFT:g},{y:.1f}h{inner:g}"/>'
        yield f'<text class="end" x="{LEFT - 6:g}" y="{y + 3.5:.1f}">{value:,.0f}</text>'
    for value in ticks(right, TICKS + 1, whole=right >= TICKS):
        x = LEFT + inner * value / right
        yield f'<path class="tick" d="M{x:.1f},{TOP + HIGH:g}v4"/>'
        yield f'<text class="mid" x="{x:.1f}" y="{TOP + HIGH + 16:g}">{text_of(show(value))}</text>'
    yield f'<text class="mid" x="{LEFT + inner / 2:g}" y="{TOP + HIGH + 33:g}">{text_of(across)}</text>'
    middle = TOP + HIGH / 2
    yield f'<text class="mid" transform="translate(11,{middle:g}) rotate(-90)">{text_of(up)}</text>'


def ticks(top: float, count: int, whole: bool = False) -> list[float]:
    """Round numbers from 0 up to *top*, about so many.

    >>> ticks(10, 5, whole=True), ticks(1.2, 5), ticks(0.5, 4, whole=True)
    ([0, 2, 4, 6, 8, 10], [0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2], [0])
    """
    rough = top / max(1, count)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough * 0.999)
    step = max(1, round(step)) if whole else step
    return [round(step * place, 10) for place in range(int(top / step * 1.0001) + 1)]


def _figure(height: float, parts: Iterable[str], legend: Sequence[tuple[str, str]], name: str) -> str:
    keys = "".join(f'<span><i class="key {style}"></i>{text_of(label)}</span>' for label, style in legend)
    drawing = f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{text_of(name)}">{"".join(parts)}</svg>'
    return f'<figure class="drawn"><figcaption>{keys}</figcaption><div class="wide">{drawing}</div></figure>'


@dataclass(frozen=True)
class Bar:
    """Something that a worker did, from when to when, in a colour, and what is told when it is pointed at."""

    row: int
    begin: float
    end: float
    style: str
    tip: str = ""
    #: how full it is, from 0 to 1
    share: float = 1.0


def gantt(
    rows: Sequence[str], bars: Iterable[Bar], end: float, legend: Sequence[tuple[str, str]], show: Callable[[float], str]
) -> str:
    """What workers did: a row each, time to the right."""
    inner, high = WIDTH - NAMES - RIGHT, len(rows) * (ROW + GAP)
    parts = []
    for place, row in enumerate(rows):
        y = TOP + place * (ROW + GAP)
        parts.append(f'<rect class="bed" x="{NAMES:g}" y="{y:g}" width="{inner:g}" height="{ROW:g}"/>')
        parts.append(f'<text class="end" x="{NAMES - 6:g}" y="{y + 11:g}">{text_of(elided(row, NAMES - 10, 11))}</text>')
    parts += [_bar(bar, inner / (end or 1.0)) for bar in bars]
    for value in ticks(end or 1.0, TICKS + 1, whole=end >= TICKS):
        x = NAMES + inner * value / (end or 1.0)
        parts.append(f'<path class="tick" d="M{x:.1f},{TOP + high:g}v4"/>')
        parts.append(f'<text class="mid" x="{x:.1f}" y="{TOP + high + 16:g}">{text_of(show(value))}</text>')
    return _figure(TOP + high + 22, parts, legend, "what each worker did when")


def _bar(bar: Bar, scale: float) -> str:
    x, wide = NAMES + bar.begin * scale, max(LEAST, (bar.end - bar.begin) * scale)
    wide -= SEAM if wide > 5 * SEAM else 0.0
    y, tip = TOP + bar.row * (ROW + GAP), f"<title>{text_of(bar.tip)}</title>" if bar.tip else ""
    full = f' fill-opacity="{bar.share:.2f}"' if bar.share < 1 else ""
    return f'<rect class="{bar.style}" x="{x:.2f}" y="{y:g}" width="{wide:.2f}" height="{ROW:g}"{full}>{tip}</rect>'


def colours(named: Mapping[str, str]) -> str:
    """The part of a page's style that gives its colours to classes: of curves, of bars, and in what explains them."""
    return "\n".join(
        f"path.{name} {{ stroke: {colour}; }} rect.{name} {{ fill: {colour}; }} i.{name} {{ background: {colour}; }}"
        for name, colour in named.items()
    )

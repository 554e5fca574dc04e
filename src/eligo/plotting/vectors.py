"""Drawings of runs as SVG of our own: they need no library, grow to any number of tasks, and follow light and dark."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from eligo.plotting.labels import elided, legible

Floats = NDArray[np.float64]

WIDTH, LEFT, RIGHT, TOP, BELOW = 800.0, 58.0, 26.0, 10.0, 38.0
HIGH = 210.0  # of the axes of a chart
ROW, GAP, NAMES = 15.0, 4.0, 92.0  # of a worker in a Gantt chart, between two, and for its name
LEAST = 0.7  # so wide is what takes no time
SEAM = 0.6  # between two bars of a row
TICKS = 6
DENSE, STRETCHES = 2_400, 400  # of more points than these, the mean and the range of so many stretches are drawn
#: round lengths of time, in seconds
TIMES = (*(m * 10.0**e for e in (-3, -2, -1, 0) for m in (1, 2, 5)), 10, 15, 30, 60, 120, 300, 600, 900, 1800,
         3600, 7200, 10800, 21600, 43200, 86400)  # fmt: skip


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


def chart(lines: Sequence[Line], across: str, up: str, show: Callable[[float], str], along: Sequence[float]) -> str:
    """Curves from 0 on both axes, and what they mean above them; *show* writes the numbers *along* the bottom."""
    right = max((float(line.x[-1]) for line in lines if len(line.x)), default=0.0) or 1.0
    top = max((float(line.y.max(initial=0.0)) for line in lines), default=0.0) or 1.0
    inner, height = WIDTH - LEFT - RIGHT, TOP + HIGH + BELOW
    parts = [*_grid(right, top, show, (across, up), along)]
    for line in lines:
        x, y = LEFT + inner * line.x / right, TOP + HIGH - HIGH * line.y / top
        parts += _band(x, y, line.style) if len(x) > DENSE else []
        x, y, steps = (*_means(x, y)[:2], False) if len(x) > DENSE else (x, y, line.steps)
        parts.append(f'<path class="line {line.style}" d="{_path(x, y, steps)}"/>')
    return _figure(height, parts, [(line.label, line.style) for line in lines], f"{up} over {across}")


def is_dense(lines: Iterable[Line]) -> bool:
    """Whether there are so many points that means and ranges are drawn."""
    return any(len(line.x) > DENSE for line in lines)


def _path(x: Floats, y: Floats, steps: bool) -> str:
    pairs = zip(x.round(1).tolist(), y.round(1).tolist(), strict=True)
    if not steps:
        return "".join(f"{'L' if place else 'M'}{a:g},{b:g}" for place, (a, b) in enumerate(pairs))
    return "".join(f"H{a:g}V{b:g}" if place else f"M{a:g},{b:g}" for place, (a, b) in enumerate(pairs))


def _band(x: Floats, y: Floats, style: str) -> list[str]:
    """From the least to the most of each stretch, as an area."""
    middles, _, least, most = _means(x, y)
    there = _path(middles, least, False)
    back = _path(middles[::-1], most[::-1], False).replace("M", "L", 1)
    return [f'<path class="band {style}" d="{there}{back}Z"/>']


def _means(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Of equal stretches of a curve that stays until its next point: where they are, and their mean, least and most."""
    edges = np.linspace(float(x[0]), float(x[-1]), STRETCHES + 1)
    area = np.concatenate([[0.0], np.cumsum(y[:-1] * np.diff(x))])
    at = np.searchsorted(x, edges, side="right") - 1
    whole = area[at] + y[at] * (edges - x[at])
    pairs = np.stack([at[:-1], np.minimum(at[1:], len(x) - 1) + 1], axis=1).ravel()
    padded = np.append(y, y[-1])  # the last stretch ends behind the last point
    least, most = (function.reduceat(padded, pairs)[::2] for function in (np.minimum, np.maximum))
    return (edges[1:] + edges[:-1]) / 2, np.diff(whole) / np.diff(edges), least, most


def _grid(
    right: float, top: float, show: Callable[[float], str], named: tuple[str, str], along: Sequence[float]
) -> Iterator[str]:
    inner, (across, up) = WIDTH - LEFT - RIGHT, named
    for value in ticks(top):
        y = TOP + HIGH - HIGH * value / top
        yield f'<path class="grid" d="M{LEFT:g},{y:.1f}h{inner:g}"/>'
        yield f'<text class="end" x="{LEFT - 6:g}" y="{y + 3.5:.1f}">{value:,.0f}</text>'
    for value in along:
        x = LEFT + inner * value / right
        yield f'<path class="tick" d="M{x:.1f},{TOP + HIGH:g}v4"/>'
        yield f'<text class="mid" x="{x:.1f}" y="{TOP + HIGH + 16:g}">{text_of(show(value))}</text>'
    yield f'<text class="mid" x="{LEFT + inner / 2:g}" y="{TOP + HIGH + 33:g}">{text_of(across)}</text>'
    middle = TOP + HIGH / 2
    yield f'<text class="mid" transform="translate(11,{middle:g}) rotate(-90)">{text_of(up)}</text>'


def ticks(top: float, count: int = TICKS - 1) -> list[float]:
    """Round whole numbers from 0 up to *top*, about so many.

    >>> ticks(10), ticks(1234, 7), ticks(0.5)
    ([0, 2, 4, 6, 8, 10], [0, 200, 400, 600, 800, 1000, 1200], [0])
    """
    rough = max(1.0, top / count)
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough * 0.999)
    return [step * place for place in range(int(top / step * 1.0001) + 1)]


def time_ticks(end: float) -> list[float]:
    """Round lengths of time from 0 up to *end*, a handful.

    >>> time_ticks(4.2), time_ticks(671)
    ([0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 120.0, 240.0, 360.0, 480.0, 600.0])
    """
    step = next((float(time) for time in TIMES if time * TICKS >= end), 86400.0 * math.ceil(end / TICKS / 86400))
    return [round(step * place, 6) for place in range(int(end / step * 1.0001) + 1)]


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
    rows: Sequence[str],
    bars: Iterable[Bar],
    end: float,
    legend: Sequence[tuple[str, str]],
    show: Callable[[float], str],
) -> str:
    """What workers did: a row each, time to the right."""
    inner, high = WIDTH - NAMES - RIGHT, len(rows) * (ROW + GAP)
    parts = []
    for place, row in enumerate(rows):
        y = TOP + place * (ROW + GAP)
        parts.append(f'<rect class="bed" x="{NAMES:g}" y="{y:g}" width="{inner:g}" height="{ROW:g}"/>')
        parts.append(
            f'<text class="end" x="{NAMES - 6:g}" y="{y + 11:g}">{text_of(elided(row, NAMES - 10, 11))}</text>'
        )
    parts += [_bar(bar, inner / (end or 1.0)) for bar in bars]
    for value in time_ticks(end or 1.0):
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
        f"path.{name} {{ stroke: {colour}; }} path.band.{name}, rect.{name} {{ fill: {colour}; }}"
        f" i.{name} {{ background: {colour}; }}"
        for name, colour in named.items()
    )

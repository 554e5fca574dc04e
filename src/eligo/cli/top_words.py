"""Where a workflow stands, in lines: what goes on, how far it has come, the bar of states."""

from typing import Any

from rich.text import Text

from eligo.cli.live_display import bar, speed_told
from eligo.cli.top_style import LETTERS, Look, said
from eligo.pages.views import STATE_WORDS
from eligo.plotting.labels import counted
from eligo.running.states import DONE, STATES


def title_line(view: dict[str, Any], look: Look, more: str = "") -> Text:
    """What it is, how it goes, and who is at it."""
    state = view["state"]
    style = look.style(
        {"failed": "bad", "cancelled": "bad", "stopped": "starved", "paused": "starved", "held": "starved"}.get(
            state, "good"
        )
    )
    line = said(view["title"], "bold" if look.colours else "", 40)
    line.append(f"  {STATE_WORDS.get(state, state)}", style)
    if state in {"running", "paused", "held"}:
        busy = "" if view["busy"] is None else f", {100 * view['busy']:.0f} % busy"
        line.append(f"  {counted(view['workers'], 'worker')}{busy}", look.style("faint"))
    line.append(f"  policy {said(view['policy'], width=20)}{more}", look.style("faint"))
    return line


def pace_line(view: dict[str, Any], look: Look) -> Text:
    """How far it has come, and how fast that goes."""
    line = said(view["headline"])
    if view["rate"]:
        line.append(f"  {speed_told(view['rate'])}", look.style("faint"))
    for what in ("repeated", "lost"):
        line.append(f"  {view[what]:,} {what}" if view[what] else "", look.style("faint"))
    return line


def bar_line(counts: dict[str, int], width: int, look: Look) -> Text:
    """The states side by side, each as wide as its share, with its name or its letter in it."""
    line = Text(no_wrap=True, end="")
    for state, cells in bar({state: counts.get(state, 0) for state in STATES}, width).items():
        if look.colours:
            inside = state if len(state) + 2 <= cells else LETTERS[state]
            line.append(f"{inside:^{cells}}", look.ground(state))
        else:
            line.append(LETTERS[state] * cells)
    return line


def legend_line(counts: dict[str, int], width: int, look: Look) -> Text:
    """How many tasks are in each state, and which letter stands for it; as many lines as that takes."""
    line, used = Text(end=""), 0
    for state in STATES:
        number = counts.get(state, 0)
        if not number and state != DONE:
            continue
        label = f" {number:,} {state}"
        if used and used + len(label) + 3 > width:
            line.append("\n")
            used = 0
        if used:
            line.append("  ")
        line.append(LETTERS[state] if not look.colours else f" {LETTERS[state]} ", look.ground(state))
        line.append(label)
        used += len(label) + (3 if not look.colours else 5)
    return line


def head(view: dict[str, Any], width: int, look: Look, more: str = "") -> Text:
    """The first lines."""
    parts = [
        title_line(view, look, more), pace_line(view, look), bar_line(view["counts"], width, look),
        legend_line(view["counts"], width, look),
    ]  # fmt: skip
    return Text("\n", end="").join(parts)

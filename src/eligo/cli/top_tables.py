"""The tables of `eligo top`: their columns, widths and rows, and the details of a task or a worker."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.text import Text

from eligo.cli.top_style import Look, cut, one_line, said
from eligo.errors import counted
from eligo.estimates import lasting
from eligo.pages.tables import COLUMNS
from eligo.work.demands import byte_words

LATE = 2.0  # tasks that run this many times as long as expected get a mark
LEAST = 8  # minimum cells of a column that takes the rest
GAP = 2  # cells between two columns


class ListColumn(NamedTuple):
    """A column: its width, 0 if it takes the rest; the least width of the terminal for it; prose is cut at its end."""

    title: str
    width: int = 0
    right: bool = False
    room: int = 0
    prose: bool = False


class Row(NamedTuple):
    """A row: its key, and a cell for each column, visible or not."""

    key: str
    cells: list[Text]


RUNNING = (
    ListColumn("task"), ListColumn("kind", 14, room=110), ListColumn("worker", 16), ListColumn("for", 11, right=True),
    ListColumn("expected", 11, right=True), ListColumn("try", 3, right=True, room=60),
)  # fmt: skip
WORKERS = (
    ListColumn(" ", 1), ListColumn("worker", 12), ListColumn("seen", 6, right=True), ListColumn("speed", 5, right=True),
    ListColumn("done", 6, right=True), ListColumn("failed", 6, right=True), ListColumn("lost", 4, right=True),
    ListColumn("has", 3, right=True), ListColumn("remark", prose=True),
)  # fmt: skip
FAILURES = (
    ListColumn("tasks", 6, right=True),
    ListColumn("cause", 26),
    ListColumn("which"),
    ListColumn("worker", 20, room=110),
)
#: the columns of the table of tasks, by their names in the document
TASKS = {
    "place": ListColumn("place", 6, right=True), "task": ListColumn("task"), "kind": ListColumn("kind", 14, room=120),
    "state": ListColumn("state", 17), "client": ListColumn("worker", 12),
    "began": ListColumn("began", 8, right=True, room=130),
    "took": ListColumn("took", 10, right=True), "expected": ListColumn("expected", 10, right=True, room=100),
    "tries": ListColumn("tries", 5, right=True), "code": ListColumn("code", 5, right=True, room=120),
    "memory": ListColumn("memory", 9, right=True, room=130),
}  # fmt: skip


def place_columns(columns: Sequence[ListColumn], width: int) -> list[tuple[int, ListColumn]]:
    """The columns that fit, by their places, each with its width."""
    visible = [(place, column) for place, column in enumerate(columns) if column.room <= width]
    free = width - sum(column.width + GAP for _, column in visible)
    return [(place, column if column.width else column._replace(width=max(LEAST, free))) for place, column in visible]


def fit_row(row: Row, columns: Sequence[tuple[int, ListColumn]]) -> list[Text]:
    """The visible cells of a row, each cut to its column."""
    cells = []
    for place, column in columns:
        source = row.cells[place]
        cell = Text(
            source.plain if column.prose else cut(source.plain, column.width), source.style, no_wrap=True, end=""
        )
        cell.truncate(column.width, overflow="ellipsis")
        cell.align("right" if column.right else "left", column.width)
        cells.append(cell)
    return cells


def table_lines(columns: Sequence[ListColumn], rows: Sequence[Row], width: int, look: Look) -> list[Text]:
    """A table as text, with a title above each column."""
    visible = place_columns(columns, width)
    faint = look.style("faint")
    titles = Row("", [said(column.title, faint) for column in columns])
    joint = Text(" " * GAP, end="")
    return [joint.join(fit_row(row, visible)) for row in (titles, *rows)]


def took(seconds: float | None) -> str:
    """A duration in a cell."""
    return "" if seconds is None else lasting(round(seconds, 1) if seconds < 60 else round(seconds))


def ago(seconds: float) -> str:
    """A time in the past in a few letters.

    >>> ago(1), ago(75), ago(7400), ago(200_000)
    ('now', '1 min', '2 h', '2 d')
    """
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 2 else "now"


def clock(moment: float | None) -> str:
    """A time of day."""
    return "" if moment is None else time.strftime("%H:%M:%S", time.localtime(moment))


def running_rows(view: dict[str, Any], look: Look) -> list[Row]:
    """The running tasks, the longest running first."""
    rows = []
    for one in view["running"]:
        elapsed, expected = max(0.0, view["now"] - one["since"]), one["expected"]
        late = expected is not None and elapsed > LATE * expected
        rows.append(
            Row(
                one["task"],
                [
                    said(one["task"]), said(one["kind"], look.style("faint")), said(one["client"]),
                    said(took(elapsed) + (" !" if late else ""), look.style("starved") if late else ""),
                    said(took(expected)), said(one["attempt"]),
                ],
            )
        )  # fmt: skip
    return rows


def worker_rows(view: dict[str, Any], look: Look) -> list[Row]:
    """The workers, those with problems first."""
    rows = []
    for one in view["clients"]:
        style = look.style("bad") if one["bad"] else "" if one["alive"] else look.style("faint")
        numbers = ("" if one["speed"] is None else f"{one['speed']:.2f}", *(f"{one[what]:,}" for what in _COUNTS))
        remark = one["remark"] or ("" if one["alive"] or view["ended"] is not None else "not connected")
        cells = ["!" if one["bad"] else " ", one["name"], ago(max(0.0, view["now"] - one["seen"])), *numbers, remark]
        rows.append(Row(one["client"], [said(cell, style) for cell in cells]))
    return rows


_COUNTS = ("done", "failed", "lost", "held")


def failure_rows(view: dict[str, Any], look: Look) -> list[Row]:
    """The causes of failures, the most frequent first."""
    rows = []
    for number, one in enumerate(view["failures"]):
        more = ", ..." if one["count"] > len(one["tasks"]) else ""
        who = ", ".join(f"{name} {count:,}" for name, count in one["clients"])
        cells = [f"{one['count']:,}", one["cause"], ", ".join(one["tasks"]) + more, who]
        rows.append(Row(str(number), [said(cells[0]), said(cells[1], look.style("bad")), said(cells[2]), said(who)]))
    return rows


def tail_lines(cause: dict[str, Any], most: int, look: Look) -> list[Text]:
    """The last lines of output of a task that failed for this cause."""
    if not cause["tail"]:
        return [said("no output", look.style("faint"))]
    return [said(line, look.style("faint")) for line in cause["tail"][-most:]]


def task_rows(table: dict[str, Any], look: Look) -> list[Row]:
    """A part of the tasks."""
    rows = []
    for row in table["rows"]:
        values = dict(zip(table["columns"], row, strict=False))
        rows.append(Row(str(values["task"]), [_task_cell(name, values.get(name), look) for name in COLUMNS]))
    return rows


def _task_cell(name: str, value: Any, look: Look) -> Text:
    if name == "state":
        return said(value, look.state(value))
    if name == "memory":
        return said("" if value is None else byte_words(value))
    if name in {"took", "expected"}:
        return said(took(value))
    text = clock(value) if name == "began" else "" if value is None else value
    return said(text, look.style("faint") if name == "kind" else "")


# One task


def detail_text(detail: dict[str, Any], look: Look) -> Text:
    """The details of a task."""
    text = Text(overflow="fold", end="")
    _add(text, "", f"{detail['task']}", "bold" if look.colours else "")
    text.append(f"  {detail['state']}", look.state(detail["state"]))
    text.append(f"  {one_line(detail['kind'])}\n", look.style("faint"))
    for sentence in detail["why"]:
        _add(text, "\n", sentence)
    text.append("\n")
    facts = [
        ("command", detail["command"]),
        ("needs", _task_list(detail, "parents")),
        ("needed by", _task_list(detail, "children")),
    ]
    facts += [("upstream", f"{counted(detail['above'], 'task')}; downstream: {counted(detail['below'], 'task')}")]
    facts += [
        ("path", _path(detail["path"])),
        ("reads", ", ".join(detail["inputs"])),
        ("writes", ", ".join(detail["outputs"])),
    ]
    for name, value in facts:
        if value:
            text.append(f"\n{name:10} ", look.style("faint"))
            text.append(one_line(value))
    for attempt in detail["attempts"]:
        text.append(f"\nattempt {attempt['attempt']:<3}", look.style("faint"))
        text.append(one_line(_attempt(attempt)), look.style("bad") if attempt["failure"] else "")
    text.append("\n\n")
    text.append("last lines of output\n" if detail["log"] else "no output\n", look.style("faint"))
    text.append("\n".join(one_line(line) for line in detail["log"]))
    return text


def _add(text: Text, before: str, what: str, style: str = "") -> None:
    text.append(before)
    text.append(one_line(what), style)


def _task_list(detail: dict[str, Any], what: str) -> str:
    names = [f"{name} ({state})" for name, state in detail[what][:8]]
    more = detail[f"{what}_total"] - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more > 0 else "") if names else "nothing"


def _path(path: dict[str, Any]) -> str:
    """The longest path through a task."""
    if path["total"] < 2:
        return ""
    long = "" if path["seconds"] is None else f", {took(path['seconds'])}"
    ends = f"{path['tasks'][0]} ... {path['tasks'][-1]}" if path["total"] > 4 else " - ".join(path["tasks"])
    return f"{path['total']:,} tasks{long}: {ends}"


def _attempt(one: dict[str, Any]) -> str:
    what = one["answer"] if one["failure"] is None else f"{one['answer']}: {one['failure']}"
    memory = f", {byte_words(one['memory'])}" if one["memory"] is not None else ""
    return f"{clock(one['began'])}  {took(one['ended'] - one['began'])}  {one['client']}  {what}{memory}"


# One worker, and recent attempts


def worker_text(view: dict[str, Any], client: str, look: Look) -> Text:
    """The details of a worker."""
    one = next((candidate for candidate in view["clients"] if candidate["client"] == client), None)
    if one is None:
        return said("this worker is no longer connected")
    text = Text(overflow="fold", end="")
    _add(text, "", one["name"], "bold" if look.colours else "")
    _add(text, "  ", "" if one["name"] == client else client, look.style("faint"))
    if one["remark"]:
        _add(text, "\n\n", one["remark"], look.style("bad"))
    speed = "unknown" if one["speed"] is None else f"{one['speed']:.2f} of the usual speed"
    facts = [("seen", f"{ago(view['now'] - one['seen'])} ago".replace("now ago", "just now")), ("speed", speed)]
    facts += [(what, f"{one[what]:,}") for what in ("done", "failed", "lost")]
    facts += [("has", counted(one["held"], "task"))]
    text.append("\n")
    for name, value in facts:
        text.append(f"\n{name:10} ", look.style("faint"))
        text.append(value)
    for held in one["holds"]:
        _add(text, "\n           ", f"{held['task']}, for {took(max(0.0, view['now'] - held['since']))}")
    return text


def recent_lines(view: dict[str, Any], width: int, look: Look) -> list[Text]:
    """The attempts that ended last, one line each."""
    lines = []
    for one in view["recent"]:
        mark, style = ("F", "bad") if one["failure"] else ("D", "good")
        line = Text.assemble((f"{mark} ", look.style(style)), f"{took(one['took']):>8}  ", end="\n", no_wrap=True)
        line.append(f"{cut(one_line(one['task']), width - 12)}\n")
        lines.append(line)
    return lines

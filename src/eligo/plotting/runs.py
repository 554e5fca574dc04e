"""The report of a run: one page that loads nothing, says what came of it, and shows where the time went."""

import json
import os
from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from eligo.planning import plan
from eligo.plotting.canvas import FAINT, PALETTE
from eligo.plotting.labels import counted, legible
from eligo.plotting.profiles import CEILING
from eligo.plotting.report import PAGE, write_picture
from eligo.plotting.timelines import Lasting, Times, busy_lines, busy_share, times_of, workers_chart
from eligo.plotting.vectors import Line, chart, colours, is_dense, text_of, ticks, time_ticks
from eligo.running.findings import Cause, causes, deciding_chain, recovered
from eligo.running.seen import BAD, DONE, FUTILE, Seen
from eligo.theory.eligibility import eligible_counts

MOST_PLANNED = 20_000  # tasks for which a plan is made for the report alone, where none was kept
MOST_LINKS = 100  # of the chain that decided the end, in its table
MOST_NAMES = 200  # of the tasks that failed for one cause
MOST_CAUSES = 50
MEGABYTE = 2**20

#: the colours of curves, and of kinds of tasks, none of which is that of failures
COLOURS = {
    "seen": PALETTE[0],
    "fifo": PALETTE[1],
    "plan": PALETTE[2],
    "bound": CEILING,
    "queue": PALETTE[4],
    "bad": PALETTE[1],
    "other": FAINT,
    **{f"k{place}": colour for place, colour in enumerate((PALETTE[0], *PALETTE[2:]))},
}

STYLE = """<style>
:root { color-scheme: light dark; --ink: #1f2933; --soft: #52606d; --page: #fff; --rule: #e3e9ef; --bed: #f1f4f7; }
body { color: var(--ink); background: var(--page); }
h1, h2 { line-height: 1.25; }
th { color: var(--soft); vertical-align: top; }
figure.drawn { margin: 0.8rem 0 1.2rem; max-width: 60rem; }
figure.drawn .wide { overflow-x: auto; }
figure.drawn svg { min-width: 620px; width: 100%; max-width: none; }
figcaption { display: flex; flex-wrap: wrap; gap: 0.15rem 1.2rem; font-size: 0.85rem; color: var(--soft); margin-bottom: 0.4rem; }
i.key { display: inline-block; width: 0.8rem; height: 0.8rem; border-radius: 2px; margin-right: 0.4rem; vertical-align: -0.08rem; }
svg text { font: 11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--soft); }
svg .mid { text-anchor: middle; } svg .end { text-anchor: end; }
svg .grid, svg .tick { stroke: var(--rule); fill: none; }
svg .bed { fill: var(--bed); }
svg path.line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
svg path.band { stroke: none; fill-opacity: 0.16; }
svg path.seen { stroke-width: 2.4; } svg path.fifo { stroke-dasharray: 5 3; } svg path.bound { stroke-width: 4; }
table.grid { font-size: 0.9rem; margin: 0.5rem 0 1rem; }
table.grid th, table.grid td { padding: 0.15rem 1.2rem 0.15rem 0; border-bottom: 1px solid var(--rule); text-align: left;
  vertical-align: top; overflow-wrap: break-word; }
table.grid td:first-child { max-width: 24rem; }
table.grid td.number, table.grid th.number { text-align: right; white-space: nowrap; }
table.grid thead th { color: var(--ink); cursor: default; } #tasks thead th { cursor: pointer; white-space: nowrap; }
.wide { overflow-x: auto; }
pre { background: var(--bed); padding: 0.6rem 0.8rem; overflow-x: auto; font-size: 0.82rem; margin: 0.4rem 0; }
.cause { border-left: 3px solid #D55E00; padding-left: 0.9rem; margin: 1rem 0; max-width: 60rem; }
.soft { color: var(--soft); font-size: 0.9rem; }
input { font: inherit; padding: 0.25rem 0.5rem; width: 20rem; max-width: 100%; box-sizing: border-box; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --soft: #a3afbb; --page: #14181d; --rule: #2b333c; --bed: #1e252d; }
  path.seen { stroke: #3D9BD1; } rect.seen { fill: #3D9BD1; } i.seen { background: #3D9BD1; }
  path.bound { stroke: #4a5663; } i.bound { background: #4a5663; }
}
@media (max-width: 40rem) {
  body { margin: 1rem auto; padding: 0 0.9rem; }
  th { padding-right: 1rem; }
}
</style>"""

SCRIPT = """<script>
const rows = JSON.parse(document.getElementById("data").textContent), most = 500;
const body = document.querySelector("#tasks tbody"), box = document.getElementById("find"), said = document.getElementById("said");
let by = -1, down = false;
function show() {
  const words = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let found = rows.filter(row => words.every(word => row.some(cell => String(cell ?? "").toLowerCase().includes(word))));
  if (by >= 0) found.sort((a, b) => (down ? -1 : 1) * (a[by] === b[by] ? 0 : a[by] === null ? 1 : b[by] === null ? -1 :
    a[by] < b[by] ? -1 : 1));
  body.textContent = "";
  for (const row of found.slice(0, most)) {
    const line = body.insertRow();
    row.forEach((cell, place) => {
      const at = line.insertCell();
      at.textContent = cell === null ? "" : typeof cell === "number" ? cell.toLocaleString("en") : cell;
      if (place > 2) at.className = "number";
    });
  }
  said.textContent = found.length.toLocaleString("en") + " of " + rows.length.toLocaleString("en") + " tasks" +
    (found.length > most ? ", of which the first " + most + " are shown: write something to find others" : "");
}
document.querySelectorAll("#tasks th").forEach((head, place) => head.onclick = () => { down = by === place && !down; by = place; show(); });
box.oninput = show;
show();
</script>"""


def save_run(seen: Seen, path: str | os.PathLike[str], lasting: Lasting) -> None:
    """Write the report of a run to a file."""
    write_picture(path, run_page(seen, lasting).encode())


def run_page(seen: Seen, lasting: Lasting) -> str:
    """The report of a run as one HTML document; *lasting* writes lengths of time."""
    times = times_of(seen)
    body = [
        STYLE.replace("<style>", f"<style>\n{colours(COLOURS)}"),
        f"<h1>{text_of(seen.title)}</h1>",
        f'<p class="verdict">{text_of(headline(seen, lasting))}</p>',
        _pairs(_facts(seen, times, lasting)),
        *_failures(seen),
        *_ready(seen),
        *_over_time(seen, times, lasting),
        *_chain(seen, lasting),
        *_tasks(seen),
    ]
    return PAGE.format(title=text_of(f"{seen.title}: {seen.counts[DONE]:,} of {len(seen.flow):,} done"), body="\n".join(body))


def headline(seen: Seen, lasting: Lasting) -> str:
    """What came of it, in a sentence."""
    counts, n = seen.counts, len(seen.flow)
    done = f"All {n:,} tasks done" if counts[DONE] == n else f"{counts[DONE]:,} of {n:,} tasks done"
    bad = f", {counts[BAD]:,} failed" if counts[BAD] else ""
    futile = f", {counts[FUTILE]:,} cannot run because of that" if counts[FUTILE] else ""
    still = "so far, and it goes on" if seen.under_way else ""
    return f"{done}{bad}{futile}, in {lasting(seen.seconds)}{f' {still}' if still else ''}."


def _facts(seen: Seen, times: Times, lasting: Lasting) -> Iterable[tuple[str, str]]:
    last = seen.sessions[-1] if seen.sessions else None
    began = seen.spans[0][0] if seen.spans else seen.at
    yield "begun", datetime.fromtimestamp(began).strftime("%Y-%m-%d %H:%M:%S")
    if len(seen.spans) > 1:
        whole = seen.spans[-1][1] - began
        yield "gone on with", f"{counted(len(seen.spans) - 1, 'time')}; breaks, {lasting(whole - seen.seconds)} in all, are left out below"
    if last is not None:
        yield "order", f"by the policy {last.policy}"
        yield "workers", f"{last.workers:,} ({last.engine}), busy {100 * busy_share(seen, times):.0f} % of the time"
    yield "work", f"{lasting(float((times.ended - times.began).sum()))} in {counted(len(times.task), 'attempt')}"
    again = recovered(seen)
    if again:
        yield "failed at first", f"{counted(len(again), 'task')} that went well when tried again"
    yield "folder", str(seen.folder)


# Ready tasks


def _ready(seen: Seen) -> list[str]:
    """Tasks that could run after each one that was done: here, by the plan, at most, and first come, first served."""
    steps, ready = np.arange(len(seen.flow) + 1, dtype=np.float64), seen.ready
    by_plan, bound, remark = _planned(seen)
    usual = eligible_counts(seen.flow.dag, seen.flow.dag.order)
    lines = [] if bound is None else [Line("at most, in any order", "bound", steps, bound.astype(np.float64))]
    lines += [Line("first come, first served", "fifo", steps, usual.astype(np.float64))]
    lines += [] if by_plan is None else [Line("the plan", "plan", steps, by_plan.astype(np.float64))]
    lines += [Line("this run", "seen", steps[: len(ready)], ready.astype(np.float64))]
    told = [f"{ready[:-1].mean() if len(ready) > 1 else ready.mean():,.2f} tasks could run on average in this run"]
    until = max(1, len(ready) - 1)
    told += [] if by_plan is None else [f"{by_plan[:until].mean():,.2f} in the plan"]
    told += [f"{usual[:until].mean():,.2f} first come, first served"]
    return [
        "<h2>Tasks that could run</h2>",
        f"<p>{text_of(', '.join(told))}. Those that ran are counted too; those that had failed are not.</p>",
        *([f'<p class="soft">{text_of(remark)}</p>'] if remark else []),
        *_dense(lines),
        chart(lines, "tasks done", "tasks that could run", lambda value: f"{value:,.0f}", ticks(len(seen.flow), 7)),
    ]


def _dense(lines: Iterable[Line]) -> list[str]:
    return ['<p class="soft">A line is the mean of a stretch, the area around it goes from the least to the most.</p>'] * is_dense(lines)


def _planned(seen: Seen) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None, str]:
    """The plan's curve and its bound, and what has to be said where there is none."""
    if seen.curve("plan") is not None:
        return seen.curve("plan"), seen.curve("bound"), ""
    if len(seen.flow) > MOST_PLANNED:
        return None, None, "This policy needs no plan, and for so many tasks none was made for the report."
    made = plan(seen.flow, effort="quick")
    return made.counts, made.ceiling, "This policy needs no plan; the plan shown was made for the report, quickly."


# Time


def _over_time(seen: Seen, times: Times, lasting: Lasting) -> list[str]:
    if not len(times.task):
        return []
    drawing, said = workers_chart(seen, times, lasting)
    lines = busy_lines(seen, times)
    return [
        "<h2>Over time</h2>",
        *_dense(lines),
        chart(lines, "time since it began", "tasks", lasting, time_ticks(max(float(line.x[-1]) for line in lines))),
        "<h2>What each worker did</h2>",
        *([f'<p class="soft">{text_of(said)}</p>'] if said else []),
        drawing,
    ]


def _chain(seen: Seen, lasting: Lasting) -> list[str]:
    links = deciding_chain(seen)
    if not links:
        return []
    inside = sum(link.attempt.ended - link.attempt.began for link in links)
    waits = sum(link.after == "worker" for link in links)
    told = f"{counted(len(links), 'task')}, one after the other, decided when the last one ended: {lasting(inside)} of {lasting(seen.seconds)}."
    few = " a little" if 2 * waits < len(links) else ""
    why = f" {counted(waits, 'time')} a task was ready and waited for a worker: more workers would have helped{few}."
    why = why if waits else " None of them waited for a worker: only shorter tasks would have helped."
    after = {"parent": "the task above, which it needs", "worker": "its worker, busy with the task above", "": "nothing"}
    began = seen.moment(link.attempt.began for link in links).tolist()
    rows = [
        (seen.labels[link.attempt.task], link.attempt.client, lasting(round(at, 2)),
         lasting(round(link.attempt.ended - link.attempt.began, 2)),
         after[link.after] + (f", and {lasting(round(link.gap, 2))} more" if link.gap >= 0.05 else ""))
        for link, at in zip(links, began, strict=True)
    ]  # fmt: skip
    half = MOST_LINKS // 2
    shown = rows if len(rows) <= MOST_LINKS else [
        *rows[:half], (f"... {len(rows) - MOST_LINKS:,} more tasks are left out here ...", "", "", "", ""), *rows[-half:],
    ]  # fmt: skip
    head = ("task", "worker", "began after", "took", "it had waited for")
    return ["<h2>The longest path really taken</h2>", f"<p>{text_of(told + why)}</p>", _grid_of(head, shown)]


# Failures


def _failures(seen: Seen) -> list[str]:
    found = causes(seen)
    if not found:
        return []
    more = len(found) - MOST_CAUSES
    return [
        f"<h2>{text_of(counted(len(seen.failed), 'task'))} failed, for {text_of(counted(len(found), 'cause'))}</h2>",
        *(_cause(seen, cause) for cause in found[:MOST_CAUSES]),
        *([f"<p>... and {counted(more, 'cause')} more; the table of tasks below has all of them.</p>"] if more > 0 else []),
    ]


def _cause(seen: Seen, cause: Cause) -> str:
    names = [seen.labels[v] for v in cause.tasks]
    more = f" and {len(names) - MOST_NAMES:,} more, in the table below" if len(names) > MOST_NAMES else ""
    listed = text_of(", ".join(names[:MOST_NAMES]) + more)
    tasks = f"<p>{listed}</p>" if len(names) <= 5 else f"<details><summary>which ones</summary><p>{listed}</p></details>"
    lines = f"<pre>{text_of(chr(10).join(cause.lines))}</pre>" if cause.lines else "<p>It printed nothing.</p>"
    where = f'<p class="soft">last lines of {text_of(names[0])}: {text_of(cause.log)}</p>'
    said = f"<p><strong>{text_of(cause.failure)}</strong>: {counted(len(names), 'task')}</p>"
    return f'<div class="cause">{said}{tasks}{where}{lines}</div>'


# Tasks


def _tasks(seen: Seen) -> list[str]:
    head = ("task", "kind", "state", "began after, s", "took, s", "tries", "exit code", "memory, MB")
    titles = "".join(f'<th{" class=number" if place > 2 else ""}>{word}</th>' for place, word in enumerate(head))
    rows = json.dumps(list(_rows(seen)), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return [
        "<h2>Tasks</h2>",
        '<p><input id="find" type="search" placeholder="find tasks" aria-label="find tasks"> <span id="said" class="soft">'
        "this table needs JavaScript</span></p>",
        f'<div class="wide"><table id="tasks" class="grid"><thead><tr>{titles}</tr></thead><tbody></tbody></table></div>',
        f'<script type="application/json" id="data">{legible(rows)}</script>',
        SCRIPT,
    ]


def _rows(seen: Seen) -> Iterable[list[object]]:
    """What the table says of each task: its last attempt."""
    last = [seen.tried[v][-1] if v in seen.tried else None for v in range(len(seen.flow))]
    began = iter(seen.moment(attempt.began for attempt in last if attempt is not None).round(3).tolist())
    for v, attempt in enumerate(last):
        known = [seen.labels[v], seen.kinds[v], seen.state(v)]
        if attempt is None:
            yield [*known, None, None, 0, None, None]
            continue
        memory = None if attempt.memory is None else round(attempt.memory / MEGABYTE, 1)
        took = round(attempt.ended - attempt.began, 3)
        yield [*known, next(began), took, len(seen.tried[v]), attempt.code, memory]


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<tr><th>{text_of(name)}</th><td>{text_of(value)}</td></tr>" for name, value in rows)
    return f"<table>{''.join(cells)}</table>"


def _grid_of(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{text_of(word)}</th>" for word in head)
    lines = "".join(f"<tr>{''.join(f'<td>{text_of(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table class="grid"><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table></div>'

"""The report of a run: one page that loads nothing, says what came of it, and shows where the time went."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from eligo.planning import plan
from eligo.plotting.canvas import FAINT, PALETTE
from eligo.plotting.labels import counted, legible
from eligo.plotting.profiles import CEILING
from eligo.plotting.report import PAGE
from eligo.plotting.timelines import Lasting, Times, busy_lines, busy_share, times_of, workers_chart
from eligo.plotting.vectors import Line, chart, colours, is_dense, text_of, ticks, time_ticks
from eligo.running.findings import Cause, Link, causes, deciding_chain, recovered
from eligo.running.looked import BAD, DONE, FUTILE
from eligo.running.seen import Seen
from eligo.theory.eligibility import eligible_counts

MOST_PLANNED = 20_000  # tasks for which a plan is made for the report alone, where none was kept
LONG_GAP = 0.05  # seconds between two tasks of the chain that are told of
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


def run_page(seen: Seen, lasting: Lasting) -> str:
    """The report of a run as one HTML document; *lasting* writes lengths of time."""
    times = times_of(seen)
    body = [
        f"<style>\n{colours(COLOURS)}\n{_asset('run.css')}</style>",
        f"<h1>{text_of(seen.title)}</h1>",
        f'<p class="verdict">{text_of(headline(seen, lasting))}</p>',
        _pairs(_facts(seen, times, lasting)),
        *_failures(seen),
        *_ready(seen),
        *_over_time(seen, times, lasting),
        *_chain(seen, lasting),
        *_tasks(seen),
    ]
    return PAGE.format(
        title=text_of(f"{seen.title}: {seen.counts[DONE]:,} of {len(seen.flow):,} done"), body="\n".join(body)
    )


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
        breaks = max(0.0, seen.spans[-1][1] - began - seen.seconds)
        yield (
            "gone on with",
            f"{counted(len(seen.spans) - 1, 'time')}; breaks, {lasting(breaks)} in all, are left out below",
        )
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
    return [
        '<p class="soft">A line is the mean of a stretch, the area around it goes from the least to the most.</p>'
    ] * is_dense(lines)


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
    """The tasks that decided the end, in words and one by one."""
    links = deciding_chain(seen)
    if not links:
        return []
    rows, half = list(_links(seen, links, lasting)), MOST_LINKS // 2
    if len(rows) > MOST_LINKS:
        left_out = (f"... {len(rows) - MOST_LINKS:,} more tasks are left out here ...", "", "", "", "")
        rows = [*rows[:half], left_out, *rows[-half:]]
    head = ("task", "worker", "began after", "took", "it had waited for")
    words = f"<p>{text_of(_chain_words(seen, links, lasting))}</p>"
    return ["<h2>The longest path really taken</h2>", words, _grid_of(head, rows)]


def _chain_words(seen: Seen, links: Sequence[Link], lasting: Lasting) -> str:
    inside = sum(link.attempt.ended - link.attempt.began for link in links)
    share = f"{lasting(inside)} of {lasting(seen.seconds)}"
    told = f"{counted(len(links), 'task')}, one after the other, decided when the last one ended: {share}."
    waits = sum(link.after == "worker" for link in links)
    if not waits:
        return f"{told} None of them waited for a worker: only shorter tasks would have helped."
    few = " a little" if 2 * waits < len(links) else ""
    return (
        f"{told} {counted(waits, 'time')} one was ready and waited for a worker: more workers would have helped{few}."
    )


def _links(seen: Seen, links: Sequence[Link], lasting: Lasting) -> Iterable[tuple[str, ...]]:
    after = {"parent": "the task above, which it needs", "worker": "its worker, busy with the task above"}
    began = seen.moment(link.attempt.began for link in links).tolist()
    for link, at in zip(links, began, strict=True):
        attempt = link.attempt
        took, gap = lasting(round(attempt.ended - attempt.began, 2)), lasting(round(link.gap, 2))
        waited = after.get(link.after, "nothing") + (f", and {gap} more" if link.gap >= LONG_GAP else "")
        yield seen.labels[attempt.task], attempt.client, lasting(round(at, 2)), took, waited


# Failures


def _failures(seen: Seen) -> list[str]:
    found = causes(seen)
    if not found:
        return []
    more = len(found) - MOST_CAUSES
    return [
        f"<h2>{text_of(counted(len(seen.failed), 'task'))} failed, for {text_of(counted(len(found), 'cause'))}</h2>",
        *(_cause(seen, cause) for cause in found[:MOST_CAUSES]),
        *(
            [f"<p>... and {counted(more, 'cause')} more; the table of tasks below has all of them.</p>"]
            if more > 0
            else []
        ),
    ]


def _cause(seen: Seen, cause: Cause) -> str:
    names = [seen.labels[v] for v in cause.tasks]
    more = f" and {len(names) - MOST_NAMES:,} more, in the table below" if len(names) > MOST_NAMES else ""
    listed = text_of(", ".join(names[:MOST_NAMES]) + more)
    tasks = (
        f"<p>{listed}</p>" if len(names) <= 5 else f"<details><summary>which ones</summary><p>{listed}</p></details>"
    )
    lines = f"<pre>{text_of(chr(10).join(cause.lines))}</pre>" if cause.lines else "<p>It printed nothing.</p>"
    where = f'<p class="soft">last lines of {text_of(names[0])}: {text_of(cause.log)}</p>' if cause.log else ""
    said = f"<p><strong>{text_of(cause.failure)}</strong>: {counted(len(names), 'task')}</p>"
    return f'<div class="cause">{said}{tasks}{where}{lines}</div>'


# Tasks


def _tasks(seen: Seen) -> list[str]:
    head = ("task", "kind", "state", "began after, s", "took, s", "tries", "exit code", "memory, MB")
    titles = "".join(f"<th{' class=number' if place > 2 else ''}>{word}</th>" for place, word in enumerate(head))
    rows = json.dumps(list(_rows(seen)), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return [
        "<h2>Tasks</h2>",
        '<p><input id="find" type="search" placeholder="find tasks" aria-label="find tasks"> <span id="said" class="soft">'
        "this table needs JavaScript</span></p>",
        f'<div class="wide"><table id="tasks" class="grid"><thead><tr>{titles}</tr></thead><tbody></tbody></table></div>',
        f'<script type="application/json" id="data">{legible(rows)}</script>',
        f"<script>\n{_asset('run.js')}</script>",
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


def _asset(name: str) -> str:
    return files("eligo.plotting").joinpath(name).read_text("utf-8")


def _pairs(rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<tr><th>{text_of(name)}</th><td>{text_of(value)}</td></tr>" for name, value in rows)
    return f"<table>{''.join(cells)}</table>"


def _grid_of(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{text_of(word)}</th>" for word in head)
    lines = "".join(f"<tr>{''.join(f'<td>{text_of(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table class="grid"><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody></table></div>'

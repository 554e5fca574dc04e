"""HTCondor's log of the events of jobs, in particular `FILE.dag.nodes.log`, where DAGMan logs the jobs of all nodes.

    000 (12.000.000) 2026-01-02 03:04:05 Job submitted from host: <...>
        DAG Node: align_1
    ...
    001 (12.000.000) 2026-01-02 03:05:00 Job executing on host: <...>
    ...
    005 (12.000.000) 2026-01-02 03:07:00 Job terminated.
        (1) Normal termination (return value 0)
    ...

The run time of a node is from the last start of its job to its termination. Failed jobs are left out. Before version 10,
dates have no year: 01/02. DAGMan's node status file has no times, and logs in XML or JSON cannot be read.
"""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from eligo.errors import FormatError, shorten
from eligo.formats.histories import Parsed, cut_off, left_out
from eligo.workflow import Timed

NAME = "htcondor"

SUBMITTED, EXECUTING, TERMINATED = "000", "001", "005"
END = "..."  # of an event

_EVENT = re.compile(
    r"([0-9]{3}) \((-?[0-9]{1,20}\.-?[0-9]{1,20}\.-?[0-9]{1,20})\) (\S+?)[ T]([0-9:.]+)(?:Z|[-+][0-9:]+)?(?: |$)"
)
_BEGINS = re.compile(r"\s*+[0-9]{3} \(-?[0-9]+\.-?[0-9]+\.-?[0-9]+\) [0-9]{2,4}[-/][0-9]{2}")
_NODE = re.compile(r"DAG Node: (.+)")
_RETURNED = re.compile(r"\([01]\) (?:Normal termination \(return value (-?[0-9]+)\)|Abnormal termination)")
_STATUS = "DAGMan's node status file, which has no times (use the log of its jobs, FILE.dag.nodes.log)"
_XML = "an HTCondor log in XML, which eligo cannot read (use the plain text log)"
_JSON = "an HTCondor log in JSON, which eligo cannot read (use the plain text log)"
_OTHERS = {
    r'\s*+\[\s*+(?:My)?Type = "(?:DagStatus|NodeStatus)"': _STATUS,
    r'\s*+\{\s*+"(?:My)?Type"\s*+:\s*+"(?:DagStatus|NodeStatus)"': _STATUS,
    r"\s*+(?:<\?xml[^>]*+>\s*+)?(?:<!DOCTYPE classads[^>]*+>\s*+)?(?:<classads>\s*+)?<c>": _XML,
    r'\s*+\{[^{}]{0,2000}?"EventTypeNumber"': _JSON,
}


class Event(NamedTuple):
    """An event of a job: the numbers of the event and the job, the time, further text, and the line."""

    number: str
    job: str
    when: datetime
    body: str
    line: int


def sniff(text: str) -> bool:
    """Whether the text begins with an event."""
    return _BEGINS.match(text) is not None


def refusal(text: str) -> FormatError | None:
    """The error for another file of HTCondor, which has no times or cannot be read; None if the text is not one."""
    what = next((what for looks, what in _OTHERS.items() if re.match(looks, text)), None)
    return None if what is None else FormatError(f"this is {what}")


def parse(text: str, path: str) -> Parsed:
    """The run times of the jobs of nodes that returned 0."""
    nodes: dict[str, str] = {}
    began: dict[str, datetime] = {}
    records: list[Timed] = []
    out: Counter[str] = Counter()
    for event in events(text, out):
        if event.number == SUBMITTED and (match := _NODE.search(event.body)):
            nodes[event.job] = match[1].strip()
        elif event.number == EXECUTING:
            began[event.job] = event.when
        elif event.number == TERMINATED:
            start = began.pop(event.job, None)
            reason = _reason(event, nodes, start)
            out[reason] += 1
            if start is not None and not reason:
                records.append(Timed(nodes[event.job], None, _between(start, event)))
    return Parsed(records, _remarks(out))


def _reason(event: Event, nodes: dict[str, str], start: datetime | None) -> str:
    """The reason why a terminated job does not count; empty if it counts."""
    returned = _RETURNED.search(event.body)
    if not returned or returned[1] is None or returned[1].strip("-0"):
        return "failed"
    return "" if event.job in nodes and start is not None else "untimed" if event.job in nodes else "nameless"


def _between(start: datetime, event: Event) -> float:
    """The seconds from the start to the event; dates without a year may cross into the next year."""
    end = event.when
    if end < start and end.year in _YEARLESS:
        end += timedelta(days=365 + (end.year == LEAP))
    if end < start:
        actual = f"{start:%m-%d %H:%M:%S}, got {end:%m-%d %H:%M:%S}"
        raise FormatError(f"the end of the job must be after its start at {actual}", line=event.line)
    return (end - start).total_seconds()


#: The years that replace a missing year: one with a 29th of February, and one without.
LEAP, USUAL = 4, 5
_YEARLESS = (LEAP, USUAL)


def events(text: str, out: Counter[str]) -> Iterator[Event]:
    """The complete events."""
    year = LEAP if ") 02/29 " in text else USUAL
    head, begin = None, 0
    body: list[str] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.rstrip() == END:
            if head is not None:
                yield Event(head[1], head[2], _when(head, begin, year), "\n".join(body), begin)
            head, body = None, []
        elif head is not None:
            body.append(line)
        elif line.strip():
            head, begin = _EVENT.match(line), number
            if head is None and number < len(lines):
                message = f"an event must begin with a number, a job and a date, got {shorten(line)!r}"
                raise FormatError(message, line=number)
            out["cut"] += head is None
    out["cut"] += head is not None


def _when(head: re.Match[str], line: int, year: int) -> datetime:
    day = head[3] if "/" not in head[3] else f"{year:04}-{head[3].replace('/', '-')}"
    try:
        return datetime.fromisoformat(f"{day} {head[4]}")
    except ValueError:
        actual = f"{shorten(head[3])} {shorten(head[4])}"
        raise FormatError(f"the date and time of an event must be valid, got {actual}", line=line) from None


def _remarks(out: Counter[str]) -> list[str]:
    return [
        *left_out(out["failed"], "failed job", "failed jobs"),
        *left_out(out["untimed"], "job that never ran", "jobs that never ran"),
        *left_out(out["nameless"], "job outside a DAG", "jobs outside a DAG"),
        *(cut_off("event") if out["cut"] else []),
    ]

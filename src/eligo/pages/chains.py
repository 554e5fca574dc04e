"""The tasks that decided when a run ended: one after the other, each waiting for the one before or for its worker."""

from typing import NamedTuple

from eligo.estimating import lasting
from eligo.pages.attempts import WENT_WELL
from eligo.pages.watched import Watched
from eligo.plotting.labels import counted


class Link(NamedTuple):
    """One attempt of the chain, by its place, and what it had waited for: "parent", "worker" or "" for nothing."""

    place: int
    after: str


def deciding_chain(watched: Watched) -> list[Link]:
    """The attempts that decided when the last task ended, first to last.

    From the one that ended last back to what ended last before it began: a parent, or whatever its worker did before.
    """
    rows, ends = watched.attempts.rows, watched.attempts.rows["ended"].tolist()
    good = {int(task): place for place, task in enumerate(rows["task"]) if rows["outcome"][place] == WENT_WELL}
    before, links, passed = _before(watched), list[Link](), set[int]()
    last = max(good.values(), key=ends.__getitem__, default=None)
    while last is not None:
        parents = watched.flow.dag.parents_of(int(rows["task"][last])).tolist()
        waits = [("parent", good[u]) for u in parents if u in good]
        waits += [("worker", before[last])] if last in before else []
        passed.add(last)  # where clocks were set back, a chain could go in a circle
        waits = [(what, other) for what, other in waits if other not in passed and ends[other] <= ends[last]]
        what, cause = max(waits, key=lambda wait: (ends[wait[1]], wait[0] == "parent"), default=("", None))
        links.append(Link(last, what))
        last = cause
    return links[::-1]


def _before(watched: Watched) -> dict[int, int]:
    """For every attempt, what its worker did just before, unless there was a break between them."""
    rows, latest, before = watched.attempts.rows, dict[int, int](), dict[int, int]()
    starts = [begin for begin, _ in watched.spans]
    for place in rows["began"].argsort(kind="stable").tolist():
        client, began = int(rows["client"][place]), rows["began"][place]
        other = latest.get(client)
        if other is not None and not any(rows["began"][other] < start <= began for start in starts):
            before[place] = other
        latest[client] = place
    return before


def chain_words(watched: Watched) -> list[str]:
    """What decided the end of a workflow that has ended, in sentences."""
    links = [] if watched.under_way else deciding_chain(watched)
    if not links:
        return []
    rows = watched.attempts.rows[[link.place for link in links]]
    share = f"{lasting(float((rows['ended'] - rows['began']).sum()))} of {lasting(watched.seconds)}"
    sentence = f"The critical path has {counted(len(links), 'task')}, which took {share}."
    waits = sum(link.after == "worker" for link in links)
    if not waits:
        return [sentence, "None of them waited for a worker: only shorter tasks would have saved time."]
    few = " slightly" if 2 * waits < len(links) else ""
    return [
        sentence,
        f"{counted(waits, 'task')} waited for a worker while ready: more workers would have helped{few}.",
    ]

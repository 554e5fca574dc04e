"""How long tasks took in earlier runs, as people give it, and what of it fits the workflow, as they are told."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from eligo.cli.plans import tell, working
from eligo.errors import InputError
from eligo.estimating import Estimate, estimate, reached, with_history
from eligo.formats import History, read_history
from eligo.formats.histories.runs import is_run
from eligo.formats.shared.files import shown
from eligo.workflow import Workflow

FIRST_KINDS = 3


@dataclass(frozen=True)
class Knowledge:
    """How long the tasks of a workflow are believed to take, and which histories say something of that."""

    flow: Workflow
    histories: tuple[str, ...] = ()

    @cached_property
    def estimate(self) -> Estimate:
        """The times themselves, which not every answer needs."""
        return estimate(self.flow)

    @property
    def whole(self) -> bool:
        """Whether the own time of every task is known, so that one can be promised."""
        return bool(self.estimate.own.all())

    @property
    def sources(self) -> list[str]:
        """Where run times are from."""
        said = int(self.estimate.own.sum()) > self.estimate.recalled
        return [*(["the file"] if said else []), *map(shown, self.histories)]

    @property
    def says(self) -> str:
        """The sources as the subject of a sentence, and its verb."""
        return f"{' and '.join(self.sources) or 'the file'} {'say' if len(self.sources) > 1 else 'says'}"

    def document(self) -> dict[str, Any]:
        """The same as plain data."""
        found = self.estimate
        counts = {"by_name": int(found.own.sum()), "by_kind": found.by_kind, "unknown": found.unknown}
        return {"seconds_from": " and ".join(self.sources) or None, "known": {"level": found.level, **counts}}


def recall(flow: Workflow, paths: Sequence[str] | None, run: str | None = None) -> tuple[Workflow, Knowledge]:
    """The workflow with the histories in these files, and what is known then; what fits and what does not is told.

    Where none are given and the workflow has no run times of its own, those of its earlier *run* count: FILE.run.
    """
    history = None if paths else _of_earlier_run(flow, run)
    if history is None:
        return fitted(flow, read_histories(paths or ()))
    known = Knowledge(with_history(flow, history.records), (history.path,))
    tell([f"run times are from an earlier run, {history.path}: {matched(known.estimate)}"])
    return known.flow, known


def _of_earlier_run(flow: Workflow, run: str | None) -> History | None:
    """What was measured in the folder of the workflow's runs, if anything was."""
    path = flow.origin.path if flow.origin else None
    place = run or (f"{path}.run" if path else "")
    if not is_run(place) or any(task.seconds is not None for task in flow.details.values()):
        return None
    try:
        history = read_history(place)
    except InputError as error:
        tell([f"{error}, so what was measured there is not used"])
        return None
    return history if reached(flow, history.records) else None


def read_histories(paths: Sequence[str]) -> list[History]:
    """The histories in these files; remarks on them go to standard error."""
    found = []
    for path in paths:
        with working(f"reading {path}"):
            found.append(read_history(path))
        tell([f"{shown(path)}: {words}" for words in found[-1].remarks])
    return found


def fitted(flow: Workflow, histories: Sequence[History], whose: str = "") -> tuple[Workflow, Knowledge]:
    """The workflow with those histories that say something of it; *whose* they are is told where there are several."""
    used: list[str] = []
    for history in histories:
        if reached(flow, history.records):
            flow = with_history(flow, history.records)
            used.append(history.path)
        else:
            held = f"no task of a name or kind that {whose or 'the workflow'} has" if history.records else "no times"
            tell([f"{shown(history.path)} has {held}, so it is left out"])
    known = Knowledge(flow, tuple(used))
    tell([f"{', '.join(map(shown, used))}{whose and ' for '}{whose}: {matched(known.estimate)}"] if used else [])
    return flow, known


def matched(found: Estimate) -> str:
    """Of how many tasks the time is known, and how."""
    named = f" ({', '.join(found.kinds[:FIRST_KINDS])}{', ...' if len(found.kinds) > FIRST_KINDS else ''})"
    counts = (
        (found.recalled, "by name"),
        (int(found.own.sum()) - found.recalled, "from the file itself"),
        (found.by_kind, "by kind" + named),
        (found.unknown, "not at all: the mean of the kinds"),
    )
    first, *others = [f"{count:,} {how}" for count, how in counts if count]
    count, _, how = first.partition(" ")
    return ", ".join([f"{count} task{'' if count == '1' else 's'} {how}", *others])

"""The reasons why tasks run: they are not done, something changed, they need others that run, or it was requested."""

from collections.abc import Collection, Container, Sequence

from eligo.errors import shorten
from eligo.running.cleaning import last_removed
from eligo.running.folder import Resumed, RunFolder, digests
from eligo.running.task_files import Redone
from eligo.workflow import Workflow

UNDONE, CHANGED = "it is not done yet", "its command, files or parents changed"
OUTDATED, REQUESTED = "an output is missing or older than an input", "a rerun was requested"


def reasons_of(
    flow: Workflow, resumed: Resumed, folder: RunFolder, redone: Redone, labels: Sequence[str]
) -> dict[str, str]:
    """The reason of every task that runs, by label, parents first; *labels* are those of the numbers in *redone*.

    It is called before the folder stores what this run begins with.
    """
    before = folder.done_before()
    own = {
        **{labels[v]: OUTDATED for v in redone.gone},
        **_again_for_removed(flow, {labels[v] for v in redone.gone}, last_removed(folder.store.files())),
        **{labels[v]: f"input {shorten(file)} changed" for v, file in redone.renewed.items()},
        **{labels[v]: REQUESTED for v in redone.requested},
    }
    game, now, reasons = resumed.execution, digests(flow), dict[str, str]()
    for task in game.dag.named(game.dag.order.tolist()):
        if task not in game.executed and task not in resumed.idle:
            label = str(task)
            parents = [str(parent) for parent in game.dag.parents(task) if str(parent) in reasons]
            reasons[label] = own.get(label) or _reason(before.get(label), now.get(label), parents)
    return reasons


def _again_for_removed(flow: Workflow, gone: Container[str], removed: Collection[str]) -> dict[str, str]:
    """The reasons of those tasks that write a temporary file which was removed and is needed again."""
    columns = zip(flow.dag.labels, flow.column("outputs"), strict=True) if removed else ()
    files = {label: next((file for file in each or () if file in removed), None) for label, each in columns}
    return {
        label: f"its output {shorten(file)}, a removed temporary file, is needed again"
        for label, file in files.items()
        if file is not None and label in gone
    }


def _reason(before: bytes | None, now: bytes | None, parents: Sequence[str]) -> str:
    """Why a task runs, from its digests before and now, and its parents that run."""
    if before is not None and before != now:
        return CHANGED
    return f"it needs {shorten(parents[0])}, which runs" if parents and (before or not now) else UNDONE

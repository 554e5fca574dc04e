"""Adds tasks to a run from outside: through its inbox while it is running, else directly in its store."""

import time
from contextlib import closing
from pathlib import Path

from eligo.additions import LiveWorkflow, NewTasks, read_addition
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.running.folder import RunFolder, read_kept
from eligo.running.growth import REFUSED, check_inputs, send
from eligo.running.location import STATE
from eligo.stores import under_way

LOOK = 0.02  # seconds between two checks whether the run has read an addition


def add_to_run(folder: str | Path, text: str, patience: float) -> bool:
    """Add the tasks of a document to the run in a folder; returns whether the run has them now.

    A running run reads them from its inbox within *patience* seconds; if it ends first, they are added when it is resumed.
    Tasks that do not fit are refused.
    """
    new, path = read_addition(text), Path(folder) / STATE
    if not path.is_file():
        raise InputError(f"{folder}: no run in this folder")
    if not under_way(path):
        _add_to_store(folder, new)
        return True
    return _is_taken(send(folder, text), patience)


def _is_taken(sent: Path, patience: float) -> bool:
    """Wait until the run has read or refused an addition; returns whether it did."""
    refusal, until = sent.with_suffix(REFUSED), time.monotonic() + patience
    while sent.exists():
        if time.monotonic() > until:
            return False
        time.sleep(LOOK)
    if refusal.exists():
        why = refusal.read_text("utf-8")
        refusal.unlink()
        raise InputError(why)
    return True


def _add_to_store(folder: str | Path, new: NewTasks) -> None:
    """Add tasks to the store of a run that is not running."""
    with closing(RunFolder(folder)) as run_folder:
        store = run_folder.store
        flow = read_kept(folder, store.facts(), store.tasks())
        live = LiveWorkflow(flow, Execution.replay(flow, store.moves(), store.additions()))
        check_inputs(new, live, run_folder.place_of(flow))
        live.add(new)
        store.add(live.execution.since(store.kept), (), live.execution.additions[store.grown :])
        store.flush()

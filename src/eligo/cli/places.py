"""Where files may be written: never over what was read, and over what somebody else wrote only when told to."""

import json
import os
from dataclasses import replace

from eligo.errors import EligoError, InputError
from eligo.formats import read, refuse_source
from eligo.workflow import Workflow

#: what is drawn may be drawn again
PICTURES = (".svg", ".png", ".html", ".pdf")
MARK = "by eligo"  # in the first lines of files that have room for a remark
BEGINNING = 400  # characters in which it stands


def check_place(flow: Workflow, path: str | None, force: bool = False) -> None:
    """Refuse a place that holds what was read or, without *force*, a file that eligo did not write."""
    if path is None or path == "-":
        return
    refuse_source(flow, path)
    if not force and os.path.isfile(path) and not is_ours(path, flow):
        raise InputError(f"{path}: the file exists and was not written by eligo").cured_by("force")


def is_ours(path: str, flow: Workflow) -> bool:
    """Whether a file is empty, a picture, marked as eligo's, a plan or order, this workflow again, or a generated one."""
    if path.lower().endswith(PICTURES) or not os.path.getsize(path):
        return True
    beginning = _beginning(path)
    if MARK in beginning or (beginning.startswith("{") and _is_plan(path)) or _is_order(path, flow):
        return True
    from eligo.families import FAMILIES  # numpy's random numbers come with them

    try:
        there = read(path)
    except EligoError:
        return False
    return _is_again(there, flow) or (there.name or " ").split()[:1] in [[family] for family in FAMILIES]


def _is_again(there: Workflow, flow: Workflow) -> bool:
    """Whether a file has this workflow, and knows nothing but priorities that this one does not."""
    details = (replace(task, priority=None).details().items() for task in there.details.values())
    return there.dag == flow.dag and all(
        items <= flow.task(name).details().items() for name, items in zip(there.details, details, strict=True)
    )


def _is_order(path: str, flow: Workflow) -> bool:
    """Whether a file has an order of this workflow: the names of all its tasks, one per line."""
    try:
        with open(path, encoding="utf-8") as file:
            return sorted(file.read().splitlines()) == sorted(flow.dag.labels)
    except (OSError, ValueError):
        return False


def _beginning(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(BEGINNING)


def _is_plan(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"proof", "fingerprint", "order"} <= document.keys()

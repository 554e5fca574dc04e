"""`eligo add`: tasks that come to a run, or to a workflow of a server, that exists already."""

import os

from eligo.additions import LARGEST, read_addition
from eligo.cli.output import print_json, print_lines
from eligo.cli.plan_text import tell
from eligo.cli.server_door import ServerDoor
from eligo.client.owner import hash_files
from eligo.errors import InputError
from eligo.formats.shared.files import load
from eligo.pages.sources import run_folder
from eligo.plotting.labels import counted
from eligo.running.inbox import add_to_run

PATIENCE = 30.0  # seconds for which a run may leave an addition in its inbox


def add_to_folder(name: str, file: str, json: bool) -> int:
    """Add the tasks of a file to the run in a folder."""
    folder, text = run_folder(name), load(file, LARGEST)
    tasks = addition_names(file, text)
    taken = add_to_run(folder, text, PATIENCE)
    tell([] if taken else [f"{folder}: the run has not added the tasks yet; it will when it is resumed"])
    report_added(tasks, str(folder), json)
    return 0


def add_to_server(door: ServerDoor, file: str, directory: str | None, json: bool) -> int:
    """Add the tasks of a file to a workflow of a server, with the files that they read and that no task makes."""
    text = load(file, LARGEST)
    tasks, owner, folder = addition_names(file, text), door.owner(), directory or os.path.dirname(file) or os.curdir
    answer = owner.add(door.workflow, text)
    if answer["missing"]:
        owner.provide(door.workflow, hash_files(answer["missing"], folder), folder)
    report_added(tasks, f"{door.server}/{door.workflow}", json)
    return 0


def addition_names(file: str, text: str) -> tuple[str, ...]:
    """The tasks of an addition in a file; errors name the file."""
    try:
        return tuple(map(str, read_addition(text).flow.dag.tasks))
    except InputError as error:
        raise error.located(file) from None


def report_added(tasks: tuple[str, ...], where: str, json: bool) -> None:
    """Say what was added."""
    print_json({"added": list(tasks)}) if json else print_lines([f"added {counted(len(tasks), 'task')} to {where}"])

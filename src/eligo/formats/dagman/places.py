"""Where and how the job of a node runs: DIR and RETRY of its node, and the folder, files and environment of its description.

HTCondor runs the job of a node in the node's DIR, or in the `initialdir` of its description, which counts from there. The
names of files count from that folder; that of the executable counts from DIR. Standard streams are files.
"""

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from eligo.formats.dagman.scripts import Remark
from eligo.formats.dagman.splices import Note
from eligo.formats.dagman.submission import NodeJob
from eligo.launch import POSIX, Launch
from eligo.workflow import Task

_RETRIES = re.compile(r"[0-9]{1,9}")
_STREAMS = {"input": "<", "output": ">", "error": "2>"}


def is_setting(remark: Remark) -> bool:
    """Whether a run honours a remark on nodes: DIR, or RETRY without UNLESS-EXIT."""
    return (remark.key == "DIR" and remark.text != "") or (
        remark.key == "RETRY" and _RETRIES.fullmatch(remark.text) is not None
    )


class Place(NamedTuple):
    """The folder of a node and its retries, and the folder from which that folder counts."""

    folder: str
    retries: int | None
    root: str

    @classmethod
    def of(cls, notes: Sequence[Note], root: str | None) -> "Place":
        """The place of a node with these notes, those of outer splices last."""
        folder, retries = "", None
        for note in notes:
            if note.remark.key == "DIR":
                folder = os.path.join(note.remark.text, folder)
            else:
                retries = int(note.remark.text)
        return cls(os.path.normpath(folder) if folder else "", retries, os.path.dirname(root or ""))

    def launch(self, job: NodeJob | None = None) -> Launch | None:
        """How the command is run; None if nothing is stated."""
        env = {} if job is None else job.environment
        launch = Launch(dir=self._of_job(job) or None, retries=self.retries, env=env)
        return None if launch == Launch() else launch

    def task_for(self, task: Task, job: NodeJob) -> Task:
        """The task of a node with this job."""
        facts, launch, settings, here = job.facts, self.launch(job), job.settings, self._of_job(job)
        reads = (*job.inputs, *([settings["input"]] if "input" in settings else []))
        inputs, outputs = (tuple(os.path.join(here, name) for name in names) for names in (reads, job.outputs))
        command = self._in_folder(facts.command, job)
        streams = " ".join(f"{_STREAMS[key]} {shlex.quote(settings[key])}" for key in _STREAMS if key in settings)
        if streams and command is not None:
            words = (*POSIX, command) if isinstance(command, str) else command
            command, launch = f"{shlex.join(words)} {streams}", replace(launch or Launch(), shell=POSIX)
        task = replace(task, command=command, cores=facts.cores, memory=facts.memory, launch=launch)
        return replace(task, inputs=inputs, outputs=outputs)

    def _of_job(self, job: NodeJob | None) -> str:
        return os.path.join(self.folder, job.settings.get("initialdir", "") if job else "")

    def _in_folder(self, command: str | tuple[str, ...] | None, job: NodeJob) -> str | tuple[str, ...] | None:
        """The command with its program as it is called in the folder of the job, where that is not that of the node."""
        if not isinstance(command, tuple) or "initialdir" not in job.settings or "/" not in command[0]:
            return command
        return (os.path.abspath(os.path.join(self.root, self.folder, command[0])), *command[1:])

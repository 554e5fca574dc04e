"""What is asked of `eligo run`, and what programs are told of it, whoever runs the tasks."""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from eligo.cli.options import Reading
from eligo.cli.plan_text import tell
from eligo.running import Retries, Settings

#: the options with which a run is resumed, unless others are given then
REMEMBERED = ("on", "workers", "policy", "fat", "retries", "timeout", "max_failures")
FAILED, INTERRUPTED = 1, 130  # exit codes
MOST_SHOWN = 5  # failures that are told one by one


class Ended(NamedTuple):
    """How many tasks a run has, how long it took, and where its folder and its report are."""

    tasks: int
    seconds: float
    run: str
    report: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """What is asked of `eligo run`."""

    folder: str | None
    on: str
    workers: int | None
    policy: str
    fat: int
    retries: int
    timeout: float | None
    max_failures: int | None
    skip_done: bool
    directory: str | None
    json: bool
    quiet: bool = False
    page: bool = False
    #: files with the token for a server, and with the certificates to trust
    token: str | None = None
    ca: str | None = None
    #: what the file asks for and the run may go on without
    ignore: tuple[str, ...] = ()
    #: how FILE is read; None without FILE
    reading: Reading | None = None

    def facts(self) -> dict[str, str]:
        """What the folder of a run keeps of this, for those who resume it without FILE and its options."""
        options = json.dumps({name: getattr(self, name) for name in REMEMBERED})
        ignored = {"ignored": ",".join(self.ignore), "options": options}
        if self.reading is None:
            return ignored
        how = self.reading
        words = how.args and [word if "=" in word else os.path.abspath(word) for word in how.args]
        rest = (words, how.env, how.columns, how.trace and os.path.abspath(how.trace))
        return {**ignored, "reading": json.dumps((how.from_, how.allow_outside, how.reverse, rest))}

    def as_before(self, facts: Mapping[str, str], overridden: Collection[str]) -> "RunRequest":
        """The same with the options of the run that is resumed, except for those that are given now."""
        before = json.loads(facts.get("options", "{}"))
        new = {"policy"} if "batch" in overridden else set[str]()
        old = {name: before[name] for name in REMEMBERED if name in before and name not in {*overridden, *new}}
        words = [f"--{name.replace('_', '-')} {value}" for name, value in old.items() if value != getattr(self, name)]
        tell([f"resuming with the options of the run: {' '.join(words)}"] if words else [])
        return replace(self, **old)

    def settings(self, policy: str | None = None) -> Settings:
        """The same in the library's words, or with another policy."""
        return Settings(
            workers=self.workers,
            policy=policy or self.policy,
            size=self.fat,
            retries=Retries(most=self.retries),
            timeout=self.timeout,
            most_failures=float("inf") if self.max_failures is None else self.max_failures,
            skip_done=self.skip_done,
            directory=self.directory,
        )

    def document(self, done: int, failed: Mapping[str, str], blocked: Sequence[str], ended: Ended) -> dict[str, Any]:
        """What JSON says of a run, whoever ran it."""
        fields = {
            "tasks": ended.tasks,
            "done": done,
            "failed": dict(failed),
            "blocked": list(blocked),
            "futile": list(blocked),
        }  # futile: its name in schema 1
        times = {"seconds": ended.seconds, "makespan": ended.seconds}
        return fields | times | {"run": ended.run, "policy": self.policy, "report": ended.report}

"""Hooks of a run: commands that run, and webhooks that are called, when it starts and ends. None of them can fail the run."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from eligo.engines.command_line import words_of
from eligo.errors import InputError, shorten
from eligo.running.loop import Runner
from eligo.workflow import HOOKS

ADDRESS = ("http://", "https://")
LONGEST, PATIENCE = 60.0, 10.0  # seconds that a command may take, and that an address has to answer
STANDARD_ERROR = 2  # of this process, where commands print: standard output may be read by a program
_AFTER = {"done": ("on_success", "on_end"), "failed": ("on_failure", "on_end"), "stopped": ("on_end",)}

Hooks = Mapping[str, str | tuple[str, ...]]


def hooks_in(words: list[str]) -> dict[str, str]:
    """The hooks that options of the form EVENT=COMMAND give.

    >>> hooks_in(["on_end=./notify"])
    {'on_end': './notify'}
    """
    hooks = {}
    for word in words:
        name, _, command = word.partition("=")
        if name not in HOOKS or not command:
            raise InputError(f"--hook must be EVENT=COMMAND with EVENT from {', '.join(HOOKS)}, got {shorten(word)!r}")
        hooks[name] = command
    return hooks


@contextmanager
def calling(hooks: Hooks, runner: Runner, place: str, warn: Callable[[str], object]) -> Iterator[None]:
    """Call the hooks at the start and the end of a run in the folder *place*; *warn* gets a sentence about failures."""
    began = time.monotonic()

    def call(name: str, status: str) -> None:
        if name in hooks:
            facts = {"event": name, "status": status, **_facts(runner, place, time.monotonic() - began)}
            if (why := _call(hooks[name], facts, runner)) is not None:
                warn(f"hook {name} failed: {why}")

    call("on_start", "started")
    try:
        yield
    finally:
        status = _status(runner)
        for name in _AFTER[status]:
            call(name, status)


def _status(runner: Runner) -> str:
    """How a run has ended: done, failed, or stopped from outside."""
    if runner.execution.finished:
        return "done"
    return "stopped" if runner.stopping and len(runner.failures) < runner.settings.most_failures else "failed"


def _facts(runner: Runner, place: str, seconds: float) -> dict[str, Any]:
    game = runner.execution
    counts = {"done": len(game.executed), "failed": len(runner.failures), "blocked": len(game.blocked)}
    name = runner.growth.live.flow.name if runner.growth else None
    run = os.path.abspath(place)
    return {"run": run, "workflow": name or "", "tasks": len(game.graph), **counts, "seconds": round(seconds, 3)}


def _call(hook: str | tuple[str, ...], facts: Mapping[str, Any], runner: Runner) -> str | None:
    """Call one hook; returns why it failed, or None."""
    try:
        if isinstance(hook, str) and hook.startswith(ADDRESS):
            return _post(hook, facts)
        folder = runner.growth.commands.folder if runner.growth else None
        return _run(words_of(hook), facts, folder)
    except Exception as error:  # whatever is wrong with a hook, the run continues
        return f"{type(error).__name__}: {error}"[:300]


def _post(url: str, facts: Mapping[str, Any]) -> str | None:
    import urllib.request  # here, because most runs call no address

    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(facts).encode(), head, method="POST")  # noqa: S310 - http(s) only
    with urllib.request.urlopen(request, timeout=PATIENCE):  # noqa: S310
        return None


def _run(words: tuple[str, ...], facts: Mapping[str, Any], folder: str | None) -> str | None:
    environment = os.environ | {f"ELIGO_{name.upper()}": str(value) for name, value in facts.items()}
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(  # noqa: S603 - the command is the user's own
        words, cwd=folder, env=environment, stdin=nothing, stdout=STANDARD_ERROR, start_new_session=True
    )
    try:
        code = process.wait(LONGEST)
    except subprocess.TimeoutExpired:
        return f"it took longer than {LONGEST:g} s"
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return f"exit code {code}" if code else None

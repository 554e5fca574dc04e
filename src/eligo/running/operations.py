"""Operations on a run while it is running: pause, resume, cancel, retry, release and workers, requested through its inbox."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eligo.engines import Resizable
from eligo.errors import InputError
from eligo.execution import FAILED
from eligo.running.inbox import answer, refuse, take_requests
from eligo.running.loop import Runner

#: the words of a request and of an answer
Words = Mapping[str, Any]


@dataclass(frozen=True)
class Operations:
    """Performs the requests in an inbox; called by the loop of the run, at intervals."""

    inbox: Path

    def __call__(self, runner: Runner) -> bool:
        """Perform all requests and answer them; returns whether there were any."""
        requests = list(take_requests(self.inbox))
        for path, words in requests:
            try:
                reply = self._perform(runner, words)
                runner.save()  # before the answer, so that displays agree with it
                answer(path, reply)
            except InputError as error:
                refuse(path, str(error))
        return bool(requests)

    def _perform(self, runner: Runner, words: Words) -> Words:
        verb = words.get("verb")
        if verb == "workers":
            return _resize(runner, words["workers"])
        if verb in {"retry", "release"} and runner.stopping:
            raise InputError("the run is stopping and starts no more tasks: resume it afterwards")
        if verb == "retry":
            return _retry(runner, words.get("tasks"))
        if verb == "release":
            return _release(runner, words["tasks"])
        if verb not in _CHANGES:
            raise InputError(f"this version of the run does not know the request {verb!r}")
        before = runner.state
        _CHANGES[verb](runner)
        return {"changed": runner.state != before, "state": before}


def _resize(runner: Runner, workers: int) -> Words:
    """Change the number of workers, unless a task needs more."""
    before, engine = runner.settings.slots, runner.engine
    if not isinstance(engine, Resizable):
        cure = f"cancel the run and resume it with --workers {workers}"
        raise InputError(f"engine {engine.name} cannot change its workers while it runs: {cure}")
    engine.resize(workers)
    try:
        if runner.growth is not None:
            runner.growth.check_room(runner.growth.live.flow)
    except InputError:
        engine.resize(before)
        raise
    runner.settings = replace(runner.settings, workers=workers)
    return {"changed": workers != before, "before": before}


def _pause(runner: Runner) -> None:
    runner.paused = True


def _resume(runner: Runner) -> None:
    runner.paused = False


_CHANGES: Mapping[object, Callable[[Runner], None]] = {"pause": _pause, "resume": _resume, "cancel": Runner.abort}


def _numbers(runner: Runner, tasks: Iterable[str]) -> list[int]:
    """The numbers of tasks by their labels; raises for unknown ones before any is changed."""
    return [runner.execution.graph.number(task) for task in tasks]


def _retry(runner: Runner, tasks: Iterable[str] | None) -> Words:
    """Make failed tasks ready, with all their retries again; by default all of them."""
    game = runner.execution
    numbers = list(game.numbers(FAILED)) if tasks is None else _numbers(runner, tasks)
    failed = sorted({v for v in numbers if game.codes[v] == FAILED})
    runner.tries.restart(failed, 0)
    for task in game.graph.named(failed):
        runner.failures.pop(task, None)
        game.release(task)
    return {"count": len(failed)}


def _release(runner: Runner, tasks: Iterable[str]) -> Words:
    """Stop running attempts at tasks, which become ready again."""
    numbers = {*_numbers(runner, tasks)}
    running = {
        lease.task: job for job in runner.running.values() for lease in job.leases[job.ended :] if lease.task in numbers
    }
    runner.withdraw({job.number: job for job in running.values()}.values())
    return {"count": len(running)}

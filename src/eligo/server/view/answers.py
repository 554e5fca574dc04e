"""Answers of the API, made from the state of the server."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from eligo.execution import FAILED, HELD, STATES
from eligo.grown_dag import reachable_tasks
from eligo.launch import Launch
from eligo.running.states import BAD, BLOCKED, DONE, PENDING, READY, RETRYING, RUNNING
from eligo.server import schema
from eligo.server.rules.clients import Client
from eligo.server.rules.needs import MOST_MISSING
from eligo.server.rules.requests import Granted, Ticket
from eligo.server.rules.served import UNAVAILABLE, Served
from eligo.server.rules.service import Service
from eligo.server.rules.state import Unavailable
from eligo.stores.service import Sums, TokenRow, WorkflowRow

#: the common words for the states of an execution
STATUSES = (PENDING, READY, RUNNING, RUNNING, BAD, DONE)
MOST_NAMED = 10  # listed tasks of one cause of failure
MOST_NAMES = 10_000  # names of files that are written in one step of the event loop
NAMED = 12  # characters of a token's hash that serve as its id


def token_row_words(row: TokenRow, state: str, fault: str | None) -> schema.TokenRowWords:
    """The description of a token for operators."""
    parent = None if row.parent is None else row.parent[:NAMED]
    scopes, times = row.scopes.split(), (row.made, row.expires)
    return schema.TokenRowWords(row.hash[:NAMED], parent, row.name, scopes, row.client, *times, state, fault)


def task_words(granted: Granted) -> Iterator[schema.TaskWords]:
    """The tasks of a grant as sent to its client."""
    served = granted.served
    members = {lease.task for lease in granted.leases}
    local_files: set[str] = set()
    for lease in granted.leases:
        name = served.flow.dag.tasks[lease.task]
        task = served.flow.task(name)
        words = schema.TaskWords(lease.id, str(name), lease.attempt, task.command or (), served.wishes.timeout)
        _add_launch(words, task.launch)
        words.cores, words.memory, words.grow = task.cores or 1.0, served.memory_of(lease.task), served.wishes.grow
        if served.files is not None and (task.inputs or task.outputs):
            _add_files(words, served, lease.task, members, local_files)
            local_files.update(task.outputs)
        if served.signatures:
            words.signature = served.signatures.get(words.task)
            words.signed = schema.SignedWords(served.row.name, sorted(task.inputs), sorted(task.outputs), {})
        yield words


def _arcs(granted: Granted) -> list[list[int]]:
    """For each task of a grant, the indices of those that it depends on; empty if no task waits for another."""
    codes, leases = granted.served.codes, granted.leases
    if len(leases) == 1 or not any(codes[lease.task] == HELD for lease in leases):
        return []
    place = {lease.task: i for i, lease in enumerate(leases)}
    parents_of = granted.served.flow.dag.parents_of
    return [[place[u] for u in parents_of(lease.task).tolist() if u in place] for lease in leases]


def _has_only_commands(served: Served) -> bool:
    """Whether clients need nothing of a workflow's tasks but their commands."""
    return served.files is None and not (served.signatures or served.needs.demanding or served.wishes.grow)


def _command_words(granted: Granted) -> list[schema.TaskWords]:
    """The tasks of a grant that have nothing but commands."""
    served, leases = granted.served, granted.leases
    names, commands, timeout = served.flow.dag.tasks, served.commands, served.wishes.timeout
    tasks = [
        schema.TaskWords(lease.id, str(names[lease.task]), lease.attempt, commands[lease.task], timeout)
        for lease in leases
    ]
    for words, lease in zip(tasks, leases, strict=True) if served.launches else ():
        _add_launch(words, served.launches[lease.task])
    return tasks


def _add_launch(words: schema.TaskWords, launch: Launch | None) -> None:
    """Add how the command is run, and the time limit of this attempt, if the task has its own."""
    if launch is not None:
        limit = launch.limit(words.attempt)
        words.timeout = words.timeout if limit is None else limit
        words.launch = {key: value for key, value in launch.document().items() if key != "timeout"}


def _add_files(words: schema.TaskWords, served: Served, v: int, members: set[int], local_files: set[str]) -> None:
    """Add the files that the client fetches, uploads, and keeps for later tasks of the grant."""
    files, task = served.files, served.flow.task(served.flow.dag.tasks[v])
    if files is None:
        return
    there = files.there
    for name in task.inputs:
        if name in local_files:
            words.inputs[name] = None
        elif name in there:
            words.inputs[name] = schema.FileWords(there[name].sha256, there[name].size)
    words.inside = files.inside(v, members)
    stays = set(words.inside)  # a set, since there may be very many
    words.outputs = [name for name in task.outputs if name not in stays]


def grants_words(ticket: Ticket | None, lease: float) -> schema.GrantsWords:
    """The answer to a request."""
    if ticket is None:
        return schema.GrantsWords([], lease)
    grants = [
        _grant_words(one, _command_words(one) if _has_only_commands(one.served) else [*task_words(one)])
        for one in ticket.grants
    ]
    return schema.GrantsWords(grants, lease, round(ticket.away, 3), ticket.stop)


async def grants_in_turn(ticket: Ticket | None, lease: float) -> schema.GrantsWords:
    """The result of `grants_words`; if tasks have many files, other requests are answered in between."""
    if ticket is None or all(_has_only_commands(one.served) for one in ticket.grants):
        return grants_words(ticket, lease)
    grants, names = list[schema.GrantWords](), 0
    for one in ticket.grants:
        tasks = list[schema.TaskWords]()
        for words in task_words(one):
            tasks.append(words)
            names += len(words.inputs) + len(words.outputs) + len(words.inside)
            if names > MOST_NAMES:
                await asyncio.sleep(0)
                names = 0
        grants.append(_grant_words(one, tasks))
    return schema.GrantsWords(grants, lease, round(ticket.away, 3), ticket.stop)


def _grant_words(granted: Granted, tasks: list[schema.TaskWords]) -> schema.GrantWords:
    served = granted.served
    return schema.GrantWords(served.id, granted.why, tasks, _arcs(granted), served.wishes.retries)


def without_nul(results: Iterable[schema.ResultWords]) -> None:
    """Remove NUL characters, which stores cannot keep, from results."""
    for one in results:
        one.failure = one.failure and one.failure.replace("\0", " ")
        one.tail = one.tail and one.tail.replace("\0", " ")


def workflow_words(served: Served, service: Service) -> schema.WorkflowWords:
    """The state of a served workflow, with notes for its owner."""
    row, ready = served.row, served.execution.ready.numbers
    tasks = served.flow.dag.tasks
    failures = [
        schema.FailureWords(cause, len(failed), [str(tasks[v]) for v in islice(failed, MOST_NAMED)])
        for cause, failed in served.tries.failed_for.items()
    ]
    missing = [] if served.files is None else served.files.some_missing(MOST_MISSING)
    return schema.WorkflowWords(
        row.id, row.name, row.owner, row.policy, served.state, row.made, len(served.flow), served.counts(),
        served.lost, served.repeated, served.saved, missing, failures,
        service.notes(served, ready, "ready task"),
    )  # fmt: skip


def ended_words(row: WorkflowRow, tally: Sums) -> schema.WorkflowWords:
    """The state of a workflow that has ended, from its row in the store."""
    return schema.WorkflowWords(
        row.id, row.name, row.owner, row.policy, row.state, row.made, tally.tasks, {"done": tally.done},
        tally.lost, tally.repeated, tally.saved, [], [],
    )  # fmt: skip


def unavailable_words(workflow: Unavailable) -> schema.WorkflowWords:
    """The state of a workflow that could not be restored, with the reason."""
    row = workflow.row
    return schema.WorkflowWords(
        row.id, row.name, row.owner, row.policy, UNAVAILABLE, row.made, 0, {}, row.lost, 0, 0, [], [],
        reason=workflow.reason,
    )  # fmt: skip


def state_words(served: Served, numbers: Sequence[int]) -> list[schema.StateWords]:
    """The states of tasks."""
    names, codes, tries = served.flow.dag.tasks, served.execution.codes, served.tries
    states = []
    for v, status in zip(numbers, _statuses(served, numbers), strict=True):
        holders = [served.leases[number].client for number in sorted(served.holding.get(v, ()))]
        failure = tries.causes.get(v)
        states.append(schema.StateWords(str(names[v]), STATES[codes[v]], status, tries.begun[v], holders, failure))
    return states


def _statuses(served: Served, numbers: Sequence[int]) -> list[str]:
    """The states of tasks in the common words, which also tell retrying and blocked tasks apart."""
    codes, dag = np.frombuffer(served.execution.codes, np.uint8), served.execution.dag
    failed, blocked = codes == FAILED, np.zeros(len(codes), np.bool_)
    failed[list(served.tries.waiting)] = False
    if failed.any():
        blocked[reachable_tasks(dag, np.flatnonzero(failed))] = True
    retrying = (codes == FAILED) & ~failed
    return [BLOCKED if blocked[v] else RETRYING if retrying[v] else STATUSES[codes[v]] for v in numbers]


def client_words(client: Client, service: Service, access: str) -> schema.ClientWords:
    """A client with its state and its record."""
    speeds = (one.allocator.speeds.of(client.id) for one in service.served.values())
    speed = next((speed for speed in speeds if speed is not None), None)
    books = service.books
    return schema.ClientWords(
        client.id, client.name, client.cores, client.seen + books.ahead, client.approved, client.holds, client.quota,
        client.done, client.failures, client.lost, max(0.0, client.paused - books.now), speed,
        [] if client.offer is None else sorted(client.offer.labels.difference(client.tags)), client.held, list(client.tags),
        access,
    )  # fmt: skip

"""The process that reads and plans submitted workflows and additions: `python -m eligo.server.prepare_worker`.

It reads jobs from standard input and writes the outcomes to standard output. A job consists of the length of its header (as
`JOB_LENGTH`), the header and the body. Each job has limits of memory and CPU time. The process ends with its input.
"""

import os
import resource
import select
import struct
import sys
import threading
from itertools import chain
from typing import IO

import msgspec

from eligo.additions import read_addition
from eligo.errors import EligoError, shorten
from eligo.formats.reader import parse
from eligo.server.rules.document import pack_plan, pack_workflow
from eligo.server.rules.prepared import Wishes, prepare
from eligo.workflow import Workflow

JOB_LENGTH = struct.Struct("<I")
MOST_FILES = 100_000  # limit for one task, since writing them all into an answer delays other clients


class PrepareJob(msgspec.Struct):
    """The header of a job: what to prepare, and the limits."""

    format: str | None
    #: the settings of a workflow; None: the body is an addition
    wishes: Wishes | None
    #: the size of the body, which follows
    body: int
    #: the limits of memory in bytes and of CPU time in seconds
    memory: int
    seconds: int
    most_tasks: int
    most_arcs: int
    most_names: int
    most_document: int


class AdditionLinks(msgspec.Struct):
    """The links of an addition to existing tasks; see `NewTasks`."""

    after: tuple[tuple[str, str], ...]
    linked: bool


class PrepareOutcome(msgspec.Struct):
    """The outcome of a job: why it is refused, or the lengths of the document and of the plan, which follow.

    For an addition, the document is the workflow of the new tasks, and its links replace the plan.
    """

    refusal: str | None = None
    document: int = 0
    plan: int | None = None
    #: whether the process can take no more jobs
    spent: bool = False


def send(stream: IO[bytes], header: msgspec.Struct, *parts: bytes) -> None:
    """Write a header with its length, and the parts that follow it."""
    encoded = msgspec.msgpack.encode(header)
    for part in (JOB_LENGTH.pack(len(encoded)), encoded, *parts):
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes], size: int) -> bytes:
    """Read *size* bytes; raises EOFError if the other side has ended."""
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


def main() -> None:
    """Process jobs until there are no more."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    jobs, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # printed text must not mix with the answers
    while True:
        try:
            (size,) = JOB_LENGTH.unpack(receive(jobs, JOB_LENGTH.size))
            job = msgspec.msgpack.decode(receive(jobs, size), type=PrepareJob)
            outcome, parts = _answer(job, receive(jobs, job.body))
        except EOFError:
            return
        send(answers, outcome, *parts)


def _end_with_input() -> None:
    """End when the server has ended, also in the middle of a job."""
    poll = select.poll()
    poll.register(0, select.POLLHUP)
    while not any(event & select.POLLHUP for _, event in poll.poll()):
        pass
    os._exit(0)


def _answer(job: PrepareJob, body: bytes) -> tuple[PrepareOutcome, list[bytes]]:
    _limit(job)
    what = "addition" if job.wishes is None else "workflow"
    try:
        document, plan = _read_addition(job, body) if job.wishes is None else _prepare(job, job.wishes, body)
    except EligoError as error:
        return PrepareOutcome(str(error)), []
    except MemoryError:
        refusal = f"preparing this {what} takes more than {job.memory >> 20:,} MiB of memory"
        return PrepareOutcome(refusal, spent=True), []
    except Exception as error:
        return PrepareOutcome(f"this {what} cannot be prepared ({error!r})"[:1000]), []
    return PrepareOutcome(None, len(document), None if plan is None else len(plan)), [document, plan or b""]


def _limit(job: PrepareJob) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + 1 + job.seconds
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    resource.setrlimit(resource.RLIMIT_AS, (job.memory, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _read_addition(job: PrepareJob, body: bytes) -> tuple[bytes, bytes]:
    if job.format == "json" and body.lstrip()[:1] not in {b"{", b"["}:
        raise EligoError("tasks that a task adds must be sent as JSON (update eligo where the task ran)")
    new = read_addition(body)
    arcs = new.flow.dag.arc_count + len(new.after)
    names = sum(map(len, chain(new.flow.column("inputs"), new.flow.column("outputs"))))
    limits = (job.most_tasks, "tasks"), (job.most_arcs, "dependencies"), (job.most_names, "file names")
    for size, (most, what) in zip((len(new.flow), arcs, names), limits, strict=True):
        if size > most:
            raise EligoError(f"an addition may have at most {most:,} {what}, got {size:,} (add them in parts)")
    return pack_workflow(new.flow), msgspec.msgpack.encode(AdditionLinks(new.after, new.linked))


def _prepare(job: PrepareJob, wishes: Wishes, body: bytes) -> tuple[bytes, bytes | None]:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise EligoError(f"a workflow must be UTF-8 text: {error}") from None
    flow = parse(text, job.format)
    _check_size("tasks", len(flow), job.most_tasks)
    _check_size("arcs", flow.dag.arc_count, job.most_arcs)
    _check_size("file names", sum(map(len, chain(flow.column("inputs"), flow.column("outputs")))), job.most_names)
    _check_files(flow, wishes)
    ready = prepare(flow, wishes)
    _check_size("bytes in the store", len(ready.document), job.most_document)
    return ready.document, pack_plan(ready.order, ready.ceiling, ready.reference)


def _check_files(flow: Workflow, wishes: Wishes) -> None:
    """Refuse a task with so large a number of files that handing it out would delay other clients."""
    if not wishes.files:
        return
    for task, *files in zip(flow.dag.tasks, flow.column("inputs"), flow.column("outputs"), strict=True):
        count = sum(map(len, files))
        if count > MOST_FILES:
            sentence = f"task {shorten(task)!r} reads and writes {count:,} files, more than the {MOST_FILES:,}"
            raise EligoError(f"{sentence} that this server hands out (pack them, or submit with --no-files)")


def _check_size(what: str, size: int, most: int) -> None:
    if size > most:
        limit = f"more than the {most:,} that this server accepts (submit it in parts)"
        raise EligoError(f"the workflow has {size:,} {what}, {limit}")


if __name__ == "__main__":
    main()

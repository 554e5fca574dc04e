"""The messages of the API: every request and response body."""

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, Struct

from eligo.names import LABEL
from eligo.work.attempts import last_of

HEX = re.compile("[0-9a-f]*")
NAME, PREFIX = re.compile(LABEL), re.compile("[0-9a-f]{16}")
# Where a message may have very many strings, their pattern is only described here: msgspec would check each before it counts
# them. The message itself checks all together after their number is checked.
Hash = Annotated[str, Meta(min_length=64, max_length=64, extra_json_schema={"pattern": "^[0-9a-f]{64}$"})]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Amount = Annotated[float, Meta(ge=0, le=1e15)]
Short = Annotated[str, Meta(max_length=200, pattern="^[^\\x00]*$")]
Text = Annotated[str, Meta(max_length=8192)]
Label = Annotated[str, Meta(extra_json_schema={"pattern": f"^{LABEL}$"})]
Prefix = Annotated[str, Meta(extra_json_schema={"pattern": "^[0-9a-f]{16}$"})]
Lease = Annotated[str, Meta(max_length=200)]
FileName = Annotated[str, Meta(min_length=1, max_length=4096, extra_json_schema={"pattern": "^[^\\x00]*$"})]
Outcome = Literal["done", "failed", "returned"]
MOST_TASKS = 10_000  # in one request or answer
MOST_ADDED = 2**18  # letters of a document with tasks that a task adds


@lru_cache(maxsize=1024)  # mostly all tasks have the same
def _digest(text: str, of_files: bool) -> str:
    """A digest whose first bit is set if it was computed from files."""
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    first = int(digest[0], 16)
    return f"{first | 8 if of_files else first & 7:x}{digest[1:]}"


class Brief(Struct, omit_defaults=True):
    """A message that omits default values; every request body is one (see `http.routes.Answering`)."""

    most: ClassVar[int] = 2**16  # bytes


def check_all(texts: Collection[str], pattern: re.Pattern[str], what: str) -> None:
    """Raise if a text does not match a pattern; *what* names what it must be."""
    for text in texts:
        if pattern.fullmatch(text) is None:
            raise ValueError(f"{text[:50]!r} is not {what}")


class FileWords(Struct):
    """A file, identified by its content."""

    sha256: Hash
    size: Count


def check_files(files: Collection[Mapping[str, FileWords]]) -> None:
    """Raise if the name of a file has a NUL character, or a hash is invalid; checks all together."""
    if any("\0" in name for names in files for name in names):
        raise ValueError("the name of a file must not contain NUL")
    if HEX.fullmatch("".join([file.sha256 for names in files for file in names.values()])) is None:
        raise ValueError("sha256 must be 64 hexadecimal digits in lower case")


class EnrolWords(Brief):
    """The description of a new client."""

    name: Short = ""
    cores: Amount = 1.0
    version: Short = ""


class EnrolledWords(Struct):
    """The id of a new client and its token, which is shown only once."""

    client: str
    approved: bool
    token: str | None = None


class AskWords(Brief):
    """A request for work: a number of grants, each of `size` tasks or `seconds` of work."""

    count: Annotated[int, Meta(ge=1, le=MOST_TASKS)] = 1
    size: Annotated[int, Meta(ge=1, le=MOST_TASKS)] = 1
    seconds: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    wait: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    cores: Annotated[float, Meta(gt=0, le=1e6)] = 1.0
    memory: Amount | None = None
    #: features of its machine, such as "gpu"
    labels: Annotated[list[Label], Meta(max_length=64)] = []
    #: prefixes of the hashes of files that it has cached
    files: Annotated[list[Prefix], Meta(max_length=256)] = []

    def __post_init__(self) -> None:
        check_all(self.labels, NAME, "a label")
        check_all(self.files, PREFIX, "a prefix of a hash: 16 hexadecimal digits in lower case")


class SignedWords(Struct):
    """The fields of a task that the owner's signature covers, besides its name and command."""

    workflow: str
    inputs: list[str]
    outputs: list[str]
    environment: dict[str, str]


class TaskWords(Brief):
    """A task assigned to a client."""

    lease: str
    task: str
    attempt: int
    command: str | tuple[str, ...]
    timeout: float | None = None
    cores: float = 1.0
    memory: int | None = None
    #: None: an earlier task of the same grant writes it
    inputs: dict[str, FileWords | None] = {}
    outputs: list[str] = []
    inside: list[str] = []
    environment: dict[str, str] = {}
    #: how the command is run: the keys `env`, `dir`, `shell`, `container`, `setup` and `retries` of a workflow file
    launch: dict[str, Any] = {}
    signature: str | None = None
    signed: SignedWords | None = None
    #: whether it may add tasks
    grow: bool = False


class GrantWords(Struct):
    """Tasks that one client runs one after another, and why they were chosen."""

    workflow: str
    why: str
    tasks: list[TaskWords]
    #: for each task, the indices in `tasks` of its predecessors; empty if no task here depends on another
    after: list[list[int]] = []
    #: number of retries of a failed task; None: the server's default
    retries: int | None = None


class GrantsWords(Struct):
    """The grants of a client, the lease time in seconds, and how long to wait before the next request."""

    grants: list[GrantWords]
    lease: float
    wait: float = 0.0
    stop: bool = False


class RenewWords(Brief):
    """The leases that a client renews."""

    most = 2**21

    leases: Annotated[list[Lease], Meta(max_length=MOST_TASKS)]


class GoneWords(Struct):
    """The leases that the client no longer has."""

    gone: list[str]


class ResultWords(Brief):
    """The result of a task."""

    lease: Lease
    outcome: Outcome
    seconds: Amount = 0.0
    code: Annotated[int, Meta(ge=1 - 2**31, le=2**31 - 1)] | None = None
    memory: Count | None = None
    failure: Text | None = None
    #: the files that it wrote and uploaded
    outputs: dict[FileName, FileWords] = {}
    tail: Text | None = None
    saved: Count = 0
    #: if returned: whether the client died while running the task, which counts as a lost lease
    died: bool = False
    #: if returned: whether the client does not trust the signature; it gets no more tasks of the workflow
    distrusted: bool = False
    #: a document with the tasks that it adds
    added: Annotated[str, Meta(max_length=MOST_ADDED)] | None = None

    @property
    def digest(self) -> str:
        """The value by which results are compared: the files or, without files, the end of the output."""
        if not self.outputs:
            return _digest(f"{self.code} {last_of(self.tail) if self.tail else ''}", of_files=False)
        files = sorted((name, file.sha256, file.size) for name, file in self.outputs.items())
        return _digest(repr(files), of_files=True)


class DeliverWords(Brief):
    """The results of a client, and its next request for work."""

    most = 2**23

    results: Annotated[list[ResultWords], Meta(max_length=MOST_TASKS)]
    ask: AskWords | None = None

    def __post_init__(self) -> None:
        if files := [one.outputs for one in self.results if one.outputs]:
            check_files(files)


class AnswersWords(Struct):
    """The answer to each result, and the grants that were asked for."""

    answers: list[str]
    grants: list[GrantWords]
    lease: float
    wait: float = 0.0
    stop: bool = False


class SubmittedWords(Struct):
    """A submitted workflow, and the input files that it needs."""

    workflow: str
    tasks: int
    needs: list[str]
    state: str
    #: notes for its owner, one sentence each
    notes: list[str] = []


class InputsWords(Brief):
    """Uploaded files by their names in the workflow, and the owner's signatures of tasks."""

    most = 2**23

    files: dict[FileName, FileWords] = {}
    signatures: dict[str, Text] | None = None

    def __post_init__(self) -> None:
        check_files([self.files])


class AddedWords(Struct):
    """The added tasks, the input files that are missing, and the state of the workflow."""

    added: list[str]
    missing: list[str]
    state: str


class MissingWords(Struct):
    """The input files that are still missing, at most 1,000 of them."""

    missing: list[str]


class RetryWords(Brief):
    """The tasks to retry; null: all failed tasks."""

    most = 2**23

    tasks: list[str] | None = None


class ReleaseWords(Brief):
    """The tasks to take back from their clients."""

    most = 2**23

    tasks: list[str]


class SizeWords(Brief):
    """The number of tasks that a run may run at the same time."""

    workers: int


class CountWords(Struct):
    """A count."""

    count: int


class FailureWords(Struct):
    """A cause of failure, the number of tasks that failed from it, and some of them."""

    cause: str
    count: int
    tasks: list[str]


class WorkflowWords(Struct):
    """The state of a workflow."""

    workflow: str
    name: str
    owner: str
    policy: str
    state: str
    made: float
    tasks: int
    counts: dict[str, int]
    #: lost leases, reassigned tasks, bytes that were not transferred
    lost: int
    repeated: int
    saved: int
    missing: list[str]
    failures: list[FailureWords]
    #: notes for its owner, one sentence each
    notes: list[str] = []
    #: why it is "unavailable"
    reason: str | None = None


class WorkflowsWords(Struct):
    """A list of workflows."""

    workflows: list[WorkflowWords]
    #: the last workflow of this page, if older ones follow
    before: str | None = None


class StateWords(Struct):
    """The state of a task."""

    task: str
    #: the state of the execution: "waiting", "eligible", "allocated", "held", "failed" or "executed"
    state: str
    #: the common word: "pending", "ready", "running", "retrying", "done", "failed" or "blocked"
    status: str
    attempts: int
    clients: list[str]
    failure: str | None = None


class StatesWords(Struct):
    """A page of the tasks of a workflow; `after` is where the next page begins, or null."""

    tasks: list[StateWords]
    after: int | None


class ResultsWords(Struct):
    """The available files of a workflow, by name."""

    state: str
    files: dict[str, FileWords]
    #: those that were uploaded with the workflow, not written by a task
    given: list[str] = []


class AttemptWords(Struct):
    """The outcome of one attempt at a task."""

    task: str
    attempt: int
    client: str
    began: float
    ended: float
    answer: str
    failure: str | None
    code: int | None
    memory: int | None
    #: the end of standard error, with that of standard output in `out`; of standard output if there is no other
    tail: str | None
    out: str | None = None


class AttemptsWords(Struct):
    """A page of attempts in the order in which they ended; `after` is where the next page begins, or null."""

    attempts: list[AttemptWords]
    after: int | None


class ClientWords(Struct):
    """A client: its state and its record."""

    client: str
    name: str
    cores: float
    seen: float
    approved: bool
    holds: int
    quota: float
    done: int
    failed: int
    lost: int
    paused: float
    speed: float | None
    labels: list[str] = []
    #: set by an operator
    held: bool = False
    tags: list[str] = []
    #: "approved", "waiting" for approval, "revoked", or "void" if its request expired unanswered
    access: str = "approved"


class ClientsWords(Struct):
    """A list of clients; `after` is the parameter for the next page, or null."""

    clients: list[ClientWords]
    after: str | None = None


class TokenAskWords(Brief):
    """A request for a new token: its name, its scopes, and the days until it expires."""

    name: Short
    scopes: list[str]
    days: Annotated[float, Meta(gt=0, le=36500)] | None = None


class TokenWords(Struct):
    """A new token, which is shown only once."""

    token: str


class TokenRowWords(Struct):
    """The description of a token, without the token itself."""

    #: a prefix of its hash; and that of the token that issued it
    id: str
    parent: str | None
    name: str
    scopes: list[str]
    client: str | None
    made: float
    expires: float | None
    #: "approved", "waiting", "refused", "revoked" or "expired", also where the token with which it was made is so
    state: str
    #: why it is not valid; null if it is
    fault: str | None


class TokensWords(Struct):
    """A list of tokens."""

    tokens: list[TokenRowWords]


class TagsWords(Brief):
    """The new tags of a client, which replace the present ones."""

    tags: Annotated[list[Label], Meta(max_length=32)]

    def __post_init__(self) -> None:
        check_all(self.tags, NAME, "a label")


class DrainWords(Brief):
    """Whether the server stops handing out tasks."""

    on: bool = True


class NameWords(Brief):
    """A name."""

    name: Short


class DoneWords(Struct):
    """Confirmation."""

    done: bool = True


class ChangedWords(Struct):
    """Whether the call changed the workflow, and its present state."""

    changed: bool
    state: str
    done: bool = True


class HealthWords(Struct):
    """The state of the server: "serving", "draining", or "failing" if the store cannot be written."""

    status: str
    version: str


encode = msgspec.json.Encoder().encode

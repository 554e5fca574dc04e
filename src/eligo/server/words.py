"""What goes over the wire, word for word: every request and answer of the API."""

from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from eligo.client.tails import last_of
from eligo.names import LABEL

Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Meta(ge=0, le=2**53)]
Amount = Annotated[float, Meta(ge=0, le=1e15)]
Short = Annotated[str, Meta(max_length=200, pattern="^[^\\x00]*$")]
Text = Annotated[str, Meta(max_length=8192)]
Label = Annotated[str, Meta(pattern=f"^{LABEL}$")]
Prefix = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
FileName = Annotated[str, Meta(min_length=1, max_length=4096, pattern="^[^\\x00]*$")]
Outcome = Literal["done", "failed", "returned"]
MOST_TASKS = 10_000  # in one request or answer
MOST_ADDED = 2**18  # letters of a document with tasks that a task adds


@lru_cache(maxsize=1024)  # mostly there is one for all tasks
def _digest(code: int | None, tail: str) -> str:
    return _hash(f"{code} {tail}")


def _hash(told: str) -> str:
    return sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class Brief(Struct, omit_defaults=True):
    """Words of which those that are as usual are not said; all that are taken are such: see `http.Answering`."""


class FileWords(Struct):
    """A file by its content."""

    sha256: Hash
    size: Count


class EnrolWords(Brief):
    """A client introduces itself."""

    name: Short = ""
    cores: Amount = 1.0
    version: Short = ""


class EnrolledWords(Struct):
    """Who the client is from now on; a token is shown once."""

    client: str
    approved: bool
    token: str | None = None


class AskWords(Brief):
    """A client asks for work: so many grants of so many tasks, or of so many seconds of work."""

    count: Annotated[int, Meta(ge=1, le=MOST_TASKS)] = 1
    size: Annotated[int, Meta(ge=1, le=MOST_TASKS)] = 1
    seconds: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    wait: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    cores: Annotated[float, Meta(gt=0, le=1e6)] = 1.0
    memory: Amount | None = None
    #: what its machine has, such as "gpu"
    labels: Annotated[list[Label], Meta(max_length=64)] = []
    #: the beginnings of the hashes of files that it has of this server
    files: Annotated[list[Prefix], Meta(max_length=256)] = []


class SignedWords(Struct):
    """What of a task the owner's signature covers beside its name and command."""

    workflow: str
    inputs: list[str]
    outputs: list[str]
    environment: dict[str, str]


class TaskWords(Brief):
    """A task that a client gets."""

    lease: str
    task: str
    attempt: int
    command: str | tuple[str, ...]
    timeout: float | None = None
    cores: float = 1.0
    memory: int | None = None
    #: None: a task before it in the same grant makes it
    inputs: dict[str, FileWords | None] = {}
    outputs: list[str] = []
    inside: list[str] = []
    environment: dict[str, str] = {}
    signature: str | None = None
    signed: SignedWords | None = None
    #: whether it may add tasks
    grow: bool = False


class GrantWords(Struct):
    """Tasks that one client runs one after another, and why these."""

    workflow: str
    why: str
    tasks: list[TaskWords]
    #: for each task, the places in `tasks` of those that it depends on; empty: no task here depends on another
    after: list[list[int]] = []
    #: how often the owner lets a failed task be tried again; None: as often as the server does
    retries: int | None = None


class GrantsWords(Struct):
    """What a client gets: for how long without a sign of life, and how long it shall stay away."""

    grants: list[GrantWords]
    lease: float
    wait: float = 0.0
    stop: bool = False


class RenewWords(Brief):
    """A client lives, and has these."""

    leases: Annotated[list[Short], Meta(max_length=MOST_TASKS)]


class GoneWords(Struct):
    """Those that it has no more."""

    gone: list[str]


class ResultWords(Brief):
    """What came of a task."""

    lease: Annotated[str, Meta(max_length=200)]
    outcome: Outcome
    seconds: Amount = 0.0
    code: Annotated[int, Meta(ge=1 - 2**31, le=2**31 - 1)] | None = None
    memory: Count | None = None
    failure: Text | None = None
    #: the files it made and uploaded
    outputs: dict[FileName, FileWords] = {}
    tail: Text | None = None
    saved: Count = 0
    #: of what is returned: whether the client died while it ran the task, which counts as a lost lease
    died: bool = False
    #: of what is returned: whether the client trusts nobody who has signed the task; it gets no more of the workflow
    distrusted: bool = False
    #: the tasks that it adds, as a document
    added: Annotated[str, Meta(max_length=MOST_ADDED)] | None = None

    @property
    def digest(self) -> str:
        """By what results are compared: the files, or where there are none what it printed last."""
        if not self.outputs:
            return _digest(self.code, last_of(self.tail or ""))
        return _hash(repr(sorted((name, file.sha256, file.size) for name, file in self.outputs.items())))


class DeliverWords(Brief):
    """What a client brings, and what it asks for next."""

    results: Annotated[list[ResultWords], Meta(max_length=MOST_TASKS)]
    ask: AskWords | None = None


class AnswersWords(Struct):
    """What each result is taken for; and what was asked for."""

    answers: list[str]
    grants: list[GrantWords]
    lease: float
    wait: float = 0.0
    stop: bool = False


class SubmittedWords(Struct):
    """A workflow that is served; the files that no task makes."""

    workflow: str
    tasks: int
    needs: list[str]
    state: str
    #: what its owner should know, a sentence each
    notes: list[str] = []


class InputsWords(Brief):
    """Files that were uploaded, by their names in the workflow; the owner's signatures of tasks."""

    files: dict[FileName, FileWords] = {}
    signatures: dict[str, Text] | None = None


class AddedWords(Struct):
    """The tasks that were added, the files that are missing for them, and the state of the workflow."""

    added: list[str]
    missing: list[str]
    state: str


class MissingWords(Struct):
    """Files that are still missing."""

    missing: list[str]


class RetryWords(Brief):
    """Tasks to be tried again; none: all that failed."""

    tasks: list[str] | None = None


class ReleaseWords(Brief):
    """Tasks to be taken back from the clients that have them."""

    tasks: list[str]


class CountWords(Struct):
    """How many."""

    count: int


class FailureWords(Struct):
    """A cause, how many tasks it set aside, and some of them."""

    cause: str
    count: int
    tasks: list[str]


class WorkflowWords(Struct):
    """A workflow, and where it stands."""

    workflow: str
    name: str
    owner: str
    policy: str
    state: str
    made: float
    tasks: int
    counts: dict[str, int]
    #: leases lost, tasks handed out again, bytes that did not travel
    lost: int
    repeated: int
    saved: int
    missing: list[str]
    failures: list[FailureWords]
    #: what its owner should know, a sentence each
    notes: list[str] = []
    #: why it is "unavailable"
    reason: str | None = None


class WorkflowsWords(Struct):
    """All workflows."""

    workflows: list[WorkflowWords]
    #: the last of a page, where older ones follow
    before: str | None = None


class StateWords(Struct):
    """A task, and where it stands."""

    task: str
    state: str
    attempts: int
    clients: list[str]
    failure: str | None = None


class StatesWords(Struct):
    """Some tasks of a workflow; `after` is where the rest begins, or None."""

    tasks: list[StateWords]
    after: int | None


class ResultsWords(Struct):
    """The files of a workflow that are there, by name."""

    state: str
    files: dict[str, FileWords]
    #: those of them that were given with the workflow, and not made by a task
    given: list[str] = []


class AttemptWords(Struct):
    """What came of one attempt at a task."""

    task: str
    attempt: int
    client: str
    began: float
    ended: float
    answer: str
    failure: str | None
    code: int | None
    memory: int | None
    #: the last that it printed: on standard error, and then `out` is the last on standard output; else on standard output
    tail: str | None
    out: str | None = None


class AttemptsWords(Struct):
    """Attempts, those that ended last at the end; `after` is where the rest begins, or None."""

    attempts: list[AttemptWords]
    after: int | None


class ClientWords(Struct):
    """A client, and what is thought of it."""

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
    #: what an operator says of it
    held: bool = False
    tags: list[str] = []
    #: "approved", "waiting" for approval, "revoked", or "void" where nobody answered its request in time
    access: str = "approved"


class ClientsWords(Struct):
    """All clients."""

    clients: list[ClientWords]


class TokenAskWords(Brief):
    """A token is wanted: what it is called, what it is good for, and for how many days."""

    name: Short
    scopes: list[str]
    days: Annotated[float, Meta(gt=0, le=36500)] | None = None


class TokenWords(Struct):
    """A token, which is told only here."""

    token: str


class TokenRowWords(Struct):
    """What is known of a token: never the token itself."""

    #: what it is called by, the beginning of its hash; and that of the token with which it was made
    id: str
    parent: str | None
    name: str
    scopes: list[str]
    client: str | None
    made: float
    expires: float | None
    state: str
    #: why it opens nothing, where it does not
    fault: str | None


class TokensWords(Struct):
    """All tokens that are kept."""

    tokens: list[TokenRowWords]


class TagsWords(Brief):
    """The tags of a client, which replace those that it has."""

    tags: Annotated[list[Label], Meta(max_length=32)]


class DrainWords(Brief):
    """Whether nothing new is handed out."""

    on: bool = True


class NameWords(Brief):
    """A name."""

    name: Short


class DoneWords(Struct):
    """It is done."""

    done: bool = True


class ChangedWords(Struct):
    """Whether a workflow was changed, and the state that it is in."""

    changed: bool
    state: str
    done: bool = True


class HealthWords(Struct):
    """How the server is: "serving", "draining", or "failing" where the store cannot be written."""

    status: str
    version: str


encode = msgspec.json.Encoder().encode

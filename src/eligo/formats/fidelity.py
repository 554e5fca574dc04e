"""Features of files that a run does not honour: they are refused before anything runs, unless the user ignores them.

A format lists these features in `Origin.unhonoured`. Each has a key, with which the user can ignore it. A format whose
commands are in other files also has a function `runnable`.

>>> from eligo.formats import parse
>>> flow = parse("rule cc\\n command = cc $in\\n pool = one\\npool one\\n depth = 1\\nbuild a: cc\\nbuild b: cc\\n", "ninja")
>>> as_runnable(flow)
Traceback (most recent call last):
eligo.errors.UnhonouredError: unsupported in a run: pool (2 tasks, first 'a', line 6); use ignore=('pool',) to run it anyway
>>> unsupported_features(as_runnable(flow, ["pool"]))
["pool (2 tasks, first 'a', line 6)"]
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from eligo.errors import InputError, UnhonouredError, shorten
from eligo.formats.detection import MODULES, module
from eligo.formats.launches import CONTAINER, SETUP, TIMEOUT, launch_features, with_own_shell, without
from eligo.names import Name
from eligo.workflow import FUNCTION, Unhonoured, Workflow

#: The word for all keys.
ALL = "all"
#: The key of labels, which name what a machine must have: clients of a server and options of a run declare them.
LABELS = "labels"
#: The key of hooks, which are called by the process of a run; a server runs no commands, and calls no addresses, of others.
CALLS = "hooks"
#: The key of resources that tasks share, such as licences, which a server does not count.
RESOURCES = "resources"
#: The known commands of HTCondor that a run does not honour; unknown keys that no macro uses are not honoured either.
SUBMIT_COMMANDS = (
    "allowed_execute_duration", "allowed_job_duration", "concurrency_limits", "container_image", "cron_minute",
    "deferral_time", "docker_image", "environment", "error", "hold", "initialdir", "input", "kill_sig", "max_retries",
    "on_exit_hold", "on_exit_remove", "output", "periodic_hold", "periodic_release", "periodic_remove", "request_gpus",
    "requirements", "retry_until", "success_exit_code", "transfer_input_files", "transfer_output_files",
    "transfer_output_remaps", "universe", "use",
)  # fmt: skip
#: The keys of each format. Files may have more: profiles, and commands of HTCondor that are not listed here.
KEYS: dict[str, tuple[str, ...]] = {
    "dagman": (
        "ABORT-DAG-ON", "CONFIG", "ENV", "FINAL", "HOLD", "MAXJOBS", "POST", "PRE", "PRE-SKIP", "PROVISIONER", "RETRY",
        "SCRIPT", "SERVICE", "SUBDAG", "TOLERANCE", "VARS", "WEAK", *SUBMIT_COMMANDS,
    ),
    "makeflow": ("BATCH_OPTIONS", "GPUS", "LOCAL", "MPI_PROCESSES", "UMBRELLA", "export", "rename"),
    "jx": ("allocation", "gpus", "local_job", "mpi-processes", "options", "rename"),
    "ninja": ("dyndep", "pool"),
    "make": ("MAKE", "NOTPARALLEL", "::", "archive", "export"),
    "pegasus": (
        "condorWorkflow", "env", "hooks", "pegasusWorkflow", "replicaCatalog", "siteCatalog", "transformationCatalog",
    ),
    "dax": ("condorWorkflow", "env", "hooks", "pegasusWorkflow", "replicaCatalog", "transformationCatalog"),
    "json": (LABELS, RESOURCES, CONTAINER, SETUP, TIMEOUT, CALLS),
    "yaml": (LABELS, RESOURCES, CONTAINER, SETUP, TIMEOUT, CALLS),
}  # fmt: skip
#: Keys that earlier versions did not honour, which a resumed run may still ignore.
FORMER = ("DIR", "WALL_TIME")
#: The keys that keep a task on the machine of the run, which needs no support if all tasks run there.
HERE = frozenset({"local", "local_job"})


def as_runnable(
    flow: Workflow,
    ignore: str | Collection[str] = (),
    elsewhere: bool = False,
    labels: Collection[str] | None = (),
    *,
    dispatched: bool = True,
) -> Workflow:
    """The workflow with the commands of its tasks; raises if its file uses unsupported features that are not ignored.

    *elsewhere*: tasks may run on other machines. *labels*: what the machines of a run have; None: a server hands the tasks
    out, whose clients have labels, but which counts no resources and calls no hooks. *dispatched*: each attempt is started by
    eligo, so that time limits may differ between attempts and hooks are called. The origin of the result lists the ignored
    features.
    """
    flow, words = with_own_shell(_with_commands(flow)), words_in(ignore)
    _refuse_functions(flow)
    features = [each for each in _unhonoured_features(flow) if elsewhere or _normal(each.key) not in HERE]
    features += _resource_features(flow) if labels is None else _label_features(flow, labels)
    lacking = launch_features(flow, labels is None, dispatched)
    features += lacking
    if flow.hooks and (labels is None or not dispatched):
        features.append(Unhonoured(CALLS, ", ".join(flow.hooks)))
        flow = replace(flow, hooks={})
    origin = flow.origin
    _check_words(words, features)
    remaining = [each for each in features if not _is_ignored(each, words)]
    if remaining:
        error = UnhonouredError(f"unsupported in a run: {', '.join(_lines(remaining))}", _keys(remaining))
        raise error if origin is None or origin.path is None else error.located(origin.path)
    flow = without(flow, {each.key for each in lacking})
    return flow if origin is None else replace(flow, origin=replace(origin, unhonoured=tuple(features)))


def _refuse_functions(flow: Workflow) -> None:
    """Refuse the stored workflow of Python functions, which only the program that defines them can run."""
    commands = zip(flow.dag.tasks, flow.column("command"), strict=True)
    function = next((name for name, command in commands if command and command[0] == FUNCTION), None)
    if function is not None:
        cure = "resume this run in Python, with eligo.run(..., folder=...)"
        raise InputError(f"task {shorten(function)!r} is a Python function: {cure}")


def labels_to_check(labels: Iterable[str], ignore: str | Iterable[str]) -> frozenset[str] | None:
    """The labels that the machines of a run have, and its tasks may need; None if labels are ignored.

    >>> labels_to_check(["gpu"], "PRE"), labels_to_check(["gpu"], "PRE,labels")
    (frozenset({'gpu'}), None)
    """
    return None if not {ALL, LABELS}.isdisjoint(map(_normal, words_in(ignore))) else frozenset(labels)


def unsupported_features(flow: Workflow) -> list[str]:
    """The unsupported features of a workflow: the key, the number of tasks, and the first place."""
    return _lines(_unhonoured_features(flow))


def rewritten(flow: Workflow, format: str) -> tuple[Workflow, list[str]]:
    """The workflow to be written in a format, and messages about lost features, one sentence each.

    If the format is another one, commands replace the files that describe them; they are omitted if these cannot be read.
    """
    remarks = []
    if flow.origin is not None and format != flow.origin.format and "command" not in module(format).CANNOT:
        try:
            flow = _with_commands(flow)
        except InputError as error:
            bare = {name: replace(task, command=None) for name, task in flow.details.items()}
            flow, remarks = replace(flow, details=bare), [f"commands were not written: {error}"]
    features = unsupported_features(flow)
    return flow, [*remarks, f"not written: {', '.join(features)}"] if features else remarks


def unused_words(flow: Workflow, ignore: Iterable[str]) -> list[str]:
    """The names to ignore that do not occur in the file."""
    keys = {_normal(each.key) for each in _unhonoured_features(flow)} | {ALL}
    return [word for word in dict.fromkeys(ignore) if _normal(word) not in keys]


def words_in(values: str | Iterable[str]) -> tuple[str, ...]:
    """The words of one or several comma-separated lists.

    >>> words_in(["PRE,POST", "environment"])
    ('PRE', 'POST', 'environment')
    """
    lists = [values] if isinstance(values, str) else values
    return tuple(word.strip() for words in lists for word in words.split(",") if word.strip())


def _with_commands(flow: Workflow) -> Workflow:
    origin = flow.origin
    if origin is None or origin.script is None or origin.format not in MODULES:
        return flow
    complete: Callable[[Workflow], Workflow] = getattr(module(origin.format), "runnable", lambda flow: flow)
    return complete(flow)


def _unhonoured_features(flow: Workflow) -> Sequence[Unhonoured]:
    return flow.origin.unhonoured if flow.origin else ()


def _label_features(flow: Workflow, available: Collection[str]) -> list[Unhonoured]:
    """A record of the tasks for each set of labels that no machine has."""
    lacking = ([label for label in labels if label not in available] for labels in flow.column("labels"))
    return _grouped(LABELS, flow, map("/".join, lacking))


def _resource_features(flow: Workflow) -> list[Unhonoured]:
    """A record of the tasks for each set of resources."""
    return _grouped(RESOURCES, flow, ("/".join(dict(amounts)) for amounts in flow.column("resources")))


def _grouped(key: str, flow: Workflow, words: Iterable[str]) -> list[Unhonoured]:
    """A record of the tasks for each word; tasks with an empty word have the feature not."""
    tasks: dict[str, list[Name]] = {}
    for name, word in zip(flow.dag.tasks, words, strict=True):
        if word:
            tasks.setdefault(word, []).append(name)
    return [Unhonoured(key, word, tuple(names)) for word, names in tasks.items()]


def _keys(features: Iterable[Unhonoured]) -> list[str]:
    return list(dict.fromkeys(each.key for each in features))


def _lines(features: Iterable[Unhonoured]) -> list[str]:
    by_key: dict[str, list[Unhonoured]] = {}
    for each in features:
        by_key.setdefault(each.key, []).append(each)
    return [f"{key} ({_places(records)})" for key, records in by_key.items()]


def _places(records: Sequence[Unhonoured]) -> str:
    """The number of tasks, or of places if no task is concerned, and the first one."""
    tasks = dict.fromkeys(task for each in records for task in each.tasks)
    if tasks:
        first = next(each for each in records if each.tasks)
        name = repr(shorten(first.tasks[0]))
        count = "task" if len(tasks) == 1 else f"{len(tasks):,} tasks, first"
        return f"{count} {name}, {first.where}"
    return records[0].where if len(records) == 1 else f"{len(records):,} places, first {records[0].where}"


def _normal(word: str) -> str:
    return word.lower().replace("-", "_")


def _is_ignored(each: Unhonoured, ignore: Iterable[str]) -> bool:
    return not {ALL, _normal(each.key)}.isdisjoint(map(_normal, ignore))


def _check_words(ignore: Iterable[str], features: Iterable[Unhonoured]) -> None:
    """Raise if a word is not a key of any format or feature."""
    known_keys = (*KEYS.values(), FORMER, [each.key for each in features])
    valid = {_normal(key) for keys in known_keys for key in keys} | {ALL}
    for word in ignore:
        if _normal(word) not in valid:
            here = _keys(features)
            these = f"this file has {', '.join(here)}" if here else "nothing in this file needs to be ignored"
            raise InputError(f"unknown feature {shorten(word)!r} to ignore ({these})")

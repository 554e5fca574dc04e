"""The command: `eligo VERB FILE ...`. It parses arguments and prints; the library does the work.

Exit codes: 0 success; 1 the answer is no, or tasks failed; 2 usage or input error, reported in one line on standard error.
"""

import errno
import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING

from eligo.cli.output import open_streams, outlast_readers, speak_plainly, version_line
from eligo.cli.shorthands import written_out

if TYPE_CHECKING:
    from typer import Typer

    from eligo.errors import EligoError

INTERRUPTED = 130
SELDOM = 20_000  # new objects before each garbage collection: loading a verb leaves none to collect
#: the verbs that compute with numpy
COMPUTING = ("plan", "show", "explain", "verify", "batch", "cluster", "compare", "run")
#: the verbs that start nothing that must be ended: the program exits at once, since freeing a plan takes long
LOOKING = ("plan", "show", "verify")
#: the number of threads that numpy's linear algebra starts when it is loaded; nothing here uses them
THREADS = "OPENBLAS_NUM_THREADS"
#: the option of the command for each argument that the library suggests
REMEDIES = {
    "allow_outside": "add --allow-outside to read it",
    "arcs": "--format arcs reads it as a list of arcs",
    "format": "give it with --to",
    "arguments": "set it with --args NAME=VALUE or --args FILE",
    "environment": "--env reads it from the environment",
    "names": "`eligo convert` changes such names",
    "file_names": "`eligo convert` omits such files",
    "columns": "give the titles with --columns FROM,TO",
    "in_place": "--in-place changes the file itself",
    "force": "--force overwrites it",
    "history": "add --history FILE with run times of an earlier run",
    "workers": "raise it with --workers N",
    "resource": "give its total with --resource NAME=N",
    "label": "add --label LABEL if the machine has it",
    "clean": "add --clean to remove files once all tasks that read them are done",
    "space": "raise it with --space SIZE",
    "run": "start another run with --run FOLDER",
    "insecure": "enable TLS with --cert FILE --key FILE, or add --insecure",
    "open": "leave --open out, or add --insecure to allow everyone",
    "token": "give a token with --token-file FILE or ELIGO_TOKEN_FILE",
    "files": "give their folder with --dir DIR, or add --no-files to transfer none",
    "folder": "choose another with --folder DIR",
    "directory": "choose another with --dir DIR",
    "ca": "give the certificates to trust with --ca FILE",
    "family": "`eligo generate list` lists all",
}


def main() -> None:
    """Run the command and leave with its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it were ignored, the exit status of processes would be lost
    open_streams()
    outlast_readers()
    gc.set_threshold(SELDOM)
    code = run(sys.argv[1:])
    if sys.argv[1:2] and sys.argv[1] in LOOKING:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """The exit code of the command with these arguments."""
    from eligo.errors import EligoError, NotBuiltError

    speak_plainly()
    try:
        return _run_and_flush(arguments or ["--help"])
    except NotBuiltError as error:
        return _complain(str(error), 1)
    except EligoError as error:
        return _complain(_explained(error))
    except KeyboardInterrupt:
        return _complain("stopped", INTERRUPTED)
    except MemoryError:
        return _complain("not enough memory for this workflow")
    except Exception as error:
        if hasattr(error, "format_message"):  # wrong usage, found by the argument parser
            verb = getattr(getattr(error, "ctx", None), "command_path", "eligo")
            return _complain(f"{error.format_message()} (see {verb} --help)")
        if getattr(error, "errno", None) == errno.ENOSPC:
            return _complain("cannot write the output: no space left on device")
        if type(error).__module__ == "sqlite3":  # its import is slow
            return _complain(f"cannot write the state: {error}")
        if os.environ.get("ELIGO_DEBUG"):
            raise
        return _complain(f"internal error: {type(error).__name__}: {error} (set ELIGO_DEBUG=1 for a traceback)")


def _explained(error: "EligoError") -> str:
    """The message of an error, with the option that would help."""
    from eligo.errors import UnhonouredError

    if isinstance(error, UnhonouredError):
        place = f"{error.path}: " if error.path else ""
        return f"{place}{error.message}; add --ignore {','.join(error.keys)} to run it anyway"
    remedy = REMEDIES.get(getattr(error, "remedy", None) or "")
    return f"{error}: {remedy}" if remedy else str(error)


def _run_and_flush(arguments: list[str]) -> int:
    """Run a verb and write all of its output; returns the exit code."""
    code = _run_verb(arguments)
    sys.stdout.flush()
    return _complain("stopped", code) if code == INTERRUPTED else code


def _run_verb(arguments: list[str]) -> int:
    if arguments == ["--version"]:  # before anything heavy is imported
        sys.stdout.write(version_line())
        return 0
    arguments, warnings = without_old_names(written_out(arguments))
    for warning in warnings:
        sys.stderr.write(f"eligo: {warning}\n")
    if arguments[0] in COMPUTING and THREADS not in os.environ:
        _load_numpy()
    return int(_verb(arguments[0])(arguments, prog_name="eligo", standalone_mode=False) or 0)


def _load_numpy() -> None:
    """Load numpy without threads, which take as long to start as a plan; programs that eligo runs keep the environment."""
    os.environ[THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[THREADS]


def _verb(name: str) -> "Typer":
    """The command with only this verb, if it exists: building all verbs takes ten milliseconds."""
    from eligo.cli.serve_verbs import app

    alone = copy(app)
    named = [each for each in app.registered_commands if name in {each.name, getattr(each.callback, "__name__", "")}]
    alone.registered_commands = named or app.registered_commands
    return alone


def _complain(message: str, code: int = 2) -> int:
    sys.stderr.write(f"eligo: {' '.join(message.split())}\n")
    return code


# Old names, which still work for one release


#: the options that were renamed, by verb
RENAMED_OPTIONS = {
    "plan": {"--order": "--policy"},
    "compare": {"--schedulers": "--policy"},
    "work": {"--output": "--max-output"},
}
#: the policies that were renamed
RENAMED_POLICIES = {"plan": "ready"}
#: the verbs that take a policy
TAKING_POLICIES = ("plan", "run", "serve", "submit", "compare")


def without_old_names(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments of a command with current names, and a warning for each old one.

    >>> without_old_names(["plan", "x.dag", "--order=plan"])
    (['plan', 'x.dag', '--policy=ready'], ['--order is deprecated: use --policy', "policy 'plan' is deprecated: use 'ready'"])
    """
    verb, renamed = arguments[0], RENAMED_OPTIONS.get(arguments[0], {})
    words, warnings = list(arguments), []
    for place, word in _options(words):
        flag, equals, value = word.partition("=")
        if flag in renamed:
            warnings.append(f"{flag} is deprecated: use {renamed[flag]}")
            flag = renamed[flag]
            words[place] = flag + equals + value
        if flag == "--policy" and verb in TAKING_POLICIES:
            at = place if equals else place + 1
            warnings += _rename_policies(words, at, "--policy=" if equals else "")
    return words, warnings


def _options(words: list[str]) -> Iterator[tuple[int, str]]:
    for place, word in enumerate(words):
        if word == "--":
            return
        if word.startswith("--"):
            yield place, word


def _rename_policies(words: list[str], place: int, before: str) -> list[str]:
    """Replace old names in the comma-separated policies at a place; returns a warning for each."""
    if place >= len(words):
        return []
    names = words[place].removeprefix(before).split(",")
    words[place] = before + ",".join(RENAMED_POLICIES.get(name, name) for name in names)
    return [
        f"policy {name!r} is deprecated: use {RENAMED_POLICIES[name]!r}" for name in names if name in RENAMED_POLICIES
    ]

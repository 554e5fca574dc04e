"""The words of a task's command: its shell, its environment of programs and its container around it.

A line that needs a shell is run by `bash -euo pipefail -c` where bash is there, and by `sh -e -c` elsewhere, so that a
failure within the line is a failure of the task.

>>> words_of("sort a.txt > b.txt", Launch(shell=POSIX)), words_of("cut -f1 a", Launch(shell="none"))
(('/bin/sh', '-c', 'sort a.txt > b.txt'), ('cut', '-f1', 'a'))
"""

import os
import re
import shlex
import shutil
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from eligo.errors import InputError, shorten
from eligo.launch import CONDAS, CONTAINER_ENGINES, POSIX, Launch, program_for

Words = tuple[str, ...]

BASH, SH = ("-euo", "pipefail", "-c"), ("/bin/sh", "-e", "-c")
PLAIN = Launch()
NO_BASH = "sh -e, since bash is not on the PATH"
_PLAIN = re.compile(r"[\w@%+=:,./ -]+")  # words without a special meaning to a shell
#: runs the line with the shell that is there, on another machine or in a container
_CHOOSE = 'if command -v bash >/dev/null 2>&1; then exec bash -euo pipefail -c "$0"; else exec sh -e -c "$0"; fi'
_ENV = "/usr/bin/env"
_LOAD = 'command -v module >/dev/null 2>&1 || . /etc/profile; module load {} && exec "$@"'
#: Runs a container, whose processes may be children of a service and not of this shell. If the task is asked to stop, so is
#: the container, which has 3 seconds for that; the program that sees to it outlives this shell.
_CONTAIN = """\
engine=$1 name=$2; shift 2
stop='until "$1" stop -t 3 "$2" || ! kill -0 "$3"; do sleep 0.2; done; "$1" rm -f "$2"'
trap '(setsid sh -c "$stop" sh "$engine" "$name" "$run" >/dev/null 2>&1 &)' TERM INT HUP
setsid "$engine" run --name "$name" "$@" &
run=$!
while :; do wait "$run"; code=$?; kill -0 "$run" 2>/dev/null || exit "$code"; done
"""


@dataclass(frozen=True, kw_only=True)
class Site:
    """Where a command runs: the folder of the run, that of the task, and what it needs to know of the machine."""

    folder: str
    #: the working folder; inside `folder`, or not
    place: str
    #: a name for its container, which no other has
    name: str = "eligo"
    #: variables for the command, besides those that every process has
    variables: Collection[str] = ()
    #: further folders that it uses
    folders: Collection[str] = ()
    #: options for its container that limit what it uses
    limits: Collection[str] = ()
    #: whether it may run on another machine
    elsewhere: bool = False


def argv_of(command: str | Words, launch: Launch | None, site: Site) -> Words:
    """All words of a task's command."""
    if launch is None:
        return words_of(command, PLAIN, site.elsewhere)
    words = words_of(command, launch, site.elsewhere)
    words = _in_conda(words, launch.conda) if launch.conda else words
    words = _with_modules(words, launch.modules) if launch.modules else words
    return _in_container(words, launch.container, site) if launch.container else words


def words_of(command: str | Words, launch: Launch = PLAIN, elsewhere: bool = False) -> Words:
    """The arguments to run: as given, or the words of a line, passed to a shell if the line needs one."""
    changes = bool(launch.container or launch.conda or launch.modules)  # the programs that are there
    if not isinstance(command, str):
        return (_ENV, *command) if "PATH" in launch.env and not changes else command
    if launch.shell == "none":
        return words_of(_split(command), launch)
    changes = changes or "PATH" in launch.env
    if not changes and (launch.shell in (None, "bash", "sh", POSIX)) and _PLAIN.fullmatch(command):
        words = command.split()
        program = _find_program(words[0]) if words and "=" not in words[0] else None
        if program is not None:
            return (program, *words[1:])
    splits = launch.conda and "\n" in command and isinstance(launch.shell, str | None)
    line = _as_one_line(command) if splits else command
    return (*shell_words(launch.shell, elsewhere or bool(launch.container)), line)


def shell_words(shell: str | Words | None, elsewhere: bool = False) -> Words:
    """The words before a command line; *elsewhere*, where the line runs decides whether bash is there."""
    if isinstance(shell, tuple):
        return shell
    if shell is None and elsewhere:
        return ("/bin/sh", "-c", _CHOOSE)
    bash = "bash" if elsewhere else _find_program("bash")
    if shell == "sh" or (shell is None and bash is None):
        return SH
    return (bash or "bash", *BASH)


def default_shell() -> str:
    """The shell for lines that need one on this machine, in words.

    >>> default_shell() in {NO_BASH, "bash -euo pipefail"}
    True
    """
    return NO_BASH if _find_program("bash") is None else "bash -euo pipefail"


def _split(line: str) -> Words:
    try:
        return tuple(shlex.split(line))
    except ValueError as error:
        raise InputError(f"{shorten(line)!r} cannot be split into words: {error}") from None


@lru_cache(maxsize=1024)
def _find_program(program: str) -> str | None:
    """The path of a program; None if only the shell may find it."""
    return shutil.which(program) if os.sep not in program else program


def _as_one_line(line: str) -> str:
    r"""A line for a shell that does the same as several, since conda refuses words of several lines.

    >>> print(_as_one_line("echo a\necho 'b'"))
    eval "$(printf %b 'echo a\0012echo \0047b\0047')"
    """
    escaped = line.replace("\\", "\\0134").replace("'", "\\0047").replace("\n", "\\0012")
    return f"""eval "$(printf %b '{escaped}')\""""


def _in_conda(words: Words, environment: str) -> Words:
    program = program_for(CONDAS) or CONDAS[0]
    options = ("--no-capture-output",) if os.path.basename(program) == "conda" else ()
    return (program, "run", *options, "-p" if os.sep in environment else "-n", environment, *words)


def _with_modules(words: Words, modules: Words) -> Words:
    """The words behind a shell that loads environment modules; bash, since they are mostly its exported function."""
    return (_find_program("bash") or SH[0], "-c", _LOAD.format(shlex.join(modules)), "eligo", *words)


def _in_container(words: Words, image: str, site: Site) -> Words:
    """The words behind the program that runs containers, with the run's folder at its own place and the caller as user."""
    engine = program_for(CONTAINER_ENGINES) or CONTAINER_ENGINES[0]
    outside = (each for each in (site.place, *site.folders) if not _is_in(each, site))
    folders = [*dict.fromkeys([site.folder, *outside])]
    if os.path.basename(engine) in {"apptainer", "singularity"}:
        binds = [word for folder in folders for word in ("--bind", folder)]
        return (engine, "exec", *binds, "--pwd", site.place, _apptainer_image(image), *words)
    user, group = os.getuid(), os.getgid()
    keep = ("--userns=keep-id",) if os.path.basename(engine) == "podman" and user else ()
    volumes, variables = [f"--volume={each}:{each}" for each in folders], [f"--env={name}" for name in site.variables]
    options = (
        *("--rm", "--init", *keep, f"--user={user}:{group}", "--cap-drop=all", "--security-opt=no-new-privileges"),
        *("--security-opt=label=disable", *volumes, f"--workdir={site.place}", *site.limits, *variables),
        *("--entrypoint=", image),
    )
    return ("/bin/sh", "-c", _CONTAIN, "eligo", engine, site.name, *options, *words)


def _is_in(folder: str, site: Site) -> bool:
    return folder != site.folder and os.path.commonpath((folder, site.folder)) == site.folder


def _apptainer_image(image: str) -> str:
    """An image as apptainer names it: a file or an address; other names are those of a registry."""
    is_file = image.endswith((".sif", ".img")) or os.sep == image[:1] or image[:2] == "./"
    return image if is_file or "://" in image else f"docker://{image}"


def folder_of(launch: Launch | None, folder: str) -> str:
    """The folder in which a task's command runs; it is created, unless its name is that of a file."""
    if launch is None or launch.dir is None:
        return folder
    place = os.path.normpath(os.path.join(folder, launch.dir))
    with suppress(OSError):  # the start of the command fails, and says why
        os.makedirs(place, exist_ok=True)
    return place

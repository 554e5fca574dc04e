"""Wraps commands with the system's limits and, if wanted, in a sandbox.

A shell sets the limits and then becomes the command, so that nothing runs without them.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

from eligo.errors import InputError, check_choice, shorten

SANDBOXES = ("bwrap",)
BLOCK, KILOBYTE = 512, 1024  # the units of shells for file size and memory
UNABLE = 125  # exit code: a limit could not be set
SHOWN = ("/usr", "/bin", "/lib", "/lib64", "/lib32", "/sbin", "/etc")
_LIMIT = """\
ulimit -c 0 && { [ -z "$1" ] || ulimit -f "$1"; } && { [ -z "$2" ] || ulimit -v "$2"; } || exit 125
[ -z "$3" ] || echo $$ > "$3" || exit 125
shift 3
exec "$@"
"""


def limit_command(
    argv: Sequence[str], output: int | None = None, memory: int | None = None, group: str = ""
) -> tuple[str, ...]:
    """The command line that runs a command with a limit of *output* bytes per file and *memory* bytes per process.

    *group* is a file to which the process writes its number before the command starts.
    """
    blocks = "" if output is None else str(-(-output // BLOCK))
    kilobytes = "" if memory is None else str(max(1, memory // KILOBYTE))
    return ("/bin/sh", "-c", _LIMIT, "eligo", blocks, kilobytes, group, *argv)


def sandbox(kind: str | None, network: bool = False) -> "Sandbox":
    """The sandbox of this kind; None: no sandbox."""
    if kind is None:
        return Sandbox(None)
    check_choice("sandbox", kind, SANDBOXES)
    program = shutil.which(kind)
    if program is None:
        raise InputError(f"{kind} is not installed: install the package bubblewrap")
    box = Sandbox(program, network)
    with tempfile.TemporaryDirectory() as folder:  # an unusable sandbox would fail every task
        tried = subprocess.run(box.around(["true"], folder), capture_output=True, check=False)  # noqa: S603 - our own words
    if tried.returncode:
        why = tried.stderr.decode("utf-8", "replace").strip().removeprefix(f"{kind}: ")
        raise InputError(f"{kind} does not work on this machine: {shorten(why, 200)}")
    return box


class Sandbox:
    """Restricts what commands see of this machine: its programs and the scratch folder."""

    def __init__(self, program: str | None, network: bool = False) -> None:
        self._program, self._network = program, network

    def around(self, argv: Sequence[str], folder: str) -> tuple[str, ...]:
        """The command line that runs a command in the sandbox, with one writable folder."""
        if self._program is None:
            return tuple(argv)
        binds = [word for path in SHOWN if os.path.exists(path) for word in _bind_option(path)]
        network = ("--share-net",) if self._network else ()
        own = ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", folder, folder, "--chdir", folder)  # noqa: S108 - its own
        return (
            *(self._program, "--unshare-all", *network, "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *(*binds, *own, "--", *argv),
        )


def _bind_option(path: str) -> tuple[str, str, str]:
    """The option that binds a system folder, or recreates the link if it is one."""
    if os.path.islink(path):
        return ("--symlink", os.readlink(path), path)
    return ("--ro-bind", path, path)

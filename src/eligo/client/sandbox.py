"""How a task is begun: within limits that the system keeps, and, where that is wanted, in a sandbox.

The limits are set by a shell that then becomes the command: nothing runs before they hold.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

from eligo.errors import InputError, check_choice, shorten

SANDBOXES = ("bwrap",)
BLOCK, KILOBYTE = 512, 1024  # the units in which shells count the size of a file, and memory
UNABLE = 125  # exit code: a limit could not be set
SHOWN = ("/usr", "/bin", "/lib", "/lib64", "/lib32", "/sbin", "/etc")
_LIMIT = """\
ulimit -c 0 && { [ -z "$1" ] || ulimit -f "$1"; } && { [ -z "$2" ] || ulimit -v "$2"; } || exit 125
[ -z "$3" ] || echo $$ > "$3" || exit 125
shift 3
exec "$@"
"""


def limited(
    argv: Sequence[str], output: int | None = None, memory: int | None = None, group: str = ""
) -> tuple[str, ...]:
    """The words that run a command so that no file of its grows beyond *output* bytes, and no process beyond *memory*.

    *group* is a file that the number of the process is written into before it begins.
    """
    blocks = "" if output is None else str(-(-output // BLOCK))
    kilobytes = "" if memory is None else str(max(1, memory // KILOBYTE))
    return ("/bin/sh", "-c", _LIMIT, "eligo", blocks, kilobytes, group, *argv)


def sandbox(kind: str | None, network: bool = False) -> "Sandbox":
    """The sandbox of a name; None: none."""
    if kind is None:
        return Sandbox(None)
    check_choice("sandbox", kind, SANDBOXES)
    program = shutil.which(kind)
    if program is None:
        raise InputError(f"{kind} is not installed: install the package bubblewrap")
    box = Sandbox(program, network)
    with tempfile.TemporaryDirectory() as folder:  # one that cannot be made would fail every task
        tried = subprocess.run(box.around(["true"], folder), capture_output=True, check=False)  # noqa: S603 - our own words
    if tried.returncode:
        why = tried.stderr.decode("utf-8", "replace").strip().removeprefix(f"{kind}: ")
        raise InputError(f"{kind} does not work on this machine: {shorten(why, 200)}")
    return box


class Sandbox:
    """What commands see of this machine: all, or its programs and the scratch folder."""

    def __init__(self, program: str | None, network: bool = False) -> None:
        self._program, self._network = program, network

    def around(self, argv: Sequence[str], folder: str) -> tuple[str, ...]:
        """The words that run a command in the sandbox, with one folder to write in."""
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
    """A folder of the system as it is, also where it is a link to another."""
    if os.path.islink(path):
        return ("--symlink", os.readlink(path), path)
    return ("--ro-bind", path, path)

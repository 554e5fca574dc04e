"""`python -m eligo.client URL` works for a server on machines with nothing but Python."""

import argparse
import sys

from eligo.client.options import WorkOptions
from eligo.client.worker import tell, work
from eligo.errors import EligoError

HELP = {
    "cores": "maximum number of concurrent tasks (default: number of cores)",
    "memory": "memory limit of a task, such as 2G",
    "output": "size limit of a file that a task writes, and of all its outputs",
    "cache": "size limit of the file cache",
    "size": "tasks per request",
    "seconds": "request this many seconds of work instead",
    "folder": "folder for files and state",
    "name": "name of this client (default: hostname)",
    "token": "file with the token",
    "ca": "file with the certificates to trust",
    "sandbox": "run commands in bwrap",
    "idle_exit": "exit after this many seconds without a task",
    "grace": "seconds for running tasks to finish after a signal",
    "poll": "longest time the server may hold a request, in seconds",
}
KINDS = {"cores": int, "size": int, "seconds": float, "idle_exit": float, "grace": float, "poll": float}


def parser() -> argparse.ArgumentParser:
    """The command's argument parser."""
    argument_parser = argparse.ArgumentParser("eligo work", description="Run tasks for a server.", allow_abbrev=False)
    argument_parser.add_argument("url", help="URL of the server, such as https://host:8765")
    add, suppress = argument_parser.add_argument, argparse.SUPPRESS
    for name, text in HELP.items():
        add(f"--{name.replace('_', '-')}", type=KINDS.get(name, str), help=text, default=suppress)
    add("--trust", action="append", help="run only commands signed by this public key; repeatable", default=[])
    needed = "feature that tasks may require, such as gpu; repeatable"
    add("--label", dest="labels", action="append", help=needed, default=[])
    add("--sandbox-network", action="store_true", help="allow network access in the sandbox")
    add("--once", action="store_true", help="exit after one assignment")
    add("-v", "--verbose", action="store_true", help="print a line for every task")
    return argument_parser


def main() -> int:
    """Run the command; returns its exit code."""
    words = vars(parser().parse_args())
    try:
        tally = work(WorkOptions.of({**words, "trust": tuple(words["trust"]), "labels": tuple(words["labels"])}))
    except EligoError as error:
        cure = ": give a token with --token FILE or ELIGO_TOKEN_FILE" if getattr(error, "remedy", "") == "token" else ""
        tell(f"{error}{cure}")
        return 2
    tell(str(tally))
    return 0


if __name__ == "__main__":
    sys.exit(main())

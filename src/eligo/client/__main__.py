"""`python -m eligo.client URL` works for a server on machines with nothing but Python."""

import argparse
import sys
from dataclasses import fields

from eligo.client.options import WorkOptions
from eligo.client.worker import tell, work
from eligo.errors import EligoError

UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
BYTES = ("memory", "output", "cache")
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


def amount(text: str) -> int:
    """A number of bytes.

    >>> amount("2G"), amount("100")
    (2147483648, 100)
    """
    unit = UNITS.get(text[-1:].lower(), 1)
    try:
        return int(float(text[: -1 if unit > 1 else None]) * unit)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes, such as 500M") from None


def parser() -> argparse.ArgumentParser:
    """The command's argument parser."""
    argument_parser = argparse.ArgumentParser("eligo work", description="Run tasks for a server.", allow_abbrev=False)
    argument_parser.add_argument("url", help="URL of the server, such as https://host:8765")
    for name, text in HELP.items():
        kind = amount if name in BYTES else KINDS.get(name, str)
        argument_parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=text, default=argparse.SUPPRESS)
    argument_parser.add_argument(
        "--trust", action="append", help="run only commands signed by this public key; repeatable", default=[]
    )
    argument_parser.add_argument(
        "--label", action="append", help="feature that tasks may require, such as gpu; repeatable", default=[]
    )
    argument_parser.add_argument("--sandbox-network", action="store_true", help="allow network access in the sandbox")
    argument_parser.add_argument("--once", action="store_true", help="exit after one assignment")
    argument_parser.add_argument("-v", "--verbose", action="store_true", help="print a line for every task")
    return argument_parser


def main() -> int:
    """Run the command; returns its exit code."""
    words = vars(parser().parse_args())
    field_names = {field.name for field in fields(WorkOptions)}
    try:
        options = WorkOptions(
            **{name: word for name, word in words.items() if name in field_names}
            | {"trust": tuple(words["trust"]), "labels": tuple(words["label"])}
        )
        tally = work(options)
    except EligoError as error:
        cure = ": give a token with --token FILE or ELIGO_TOKEN_FILE" if getattr(error, "remedy", "") == "token" else ""
        tell(f"{error}{cure}")
        return 2
    tell(str(tally))
    return 0


if __name__ == "__main__":
    sys.exit(main())

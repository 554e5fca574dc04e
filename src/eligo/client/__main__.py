"""`python -m eligo.client URL` works for a server, where nothing but Python is installed."""

import argparse
import sys
from dataclasses import fields

from eligo.client.options import WorkOptions
from eligo.client.working import tell, work
from eligo.errors import EligoError

UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
BYTES = ("memory", "output", "cache")
HELP = {
    "cores": "tasks at once",
    "memory": "most bytes of memory of a task, such as 2G",
    "output": "most bytes of a file that a task writes, and of its outputs together",
    "cache": "most bytes of files kept for later tasks",
    "size": "tasks to ask for at once",
    "seconds": "ask for so many seconds of work instead",
    "folder": "where everything is kept",
    "name": "how this client is called",
    "token": "a file with the token",
    "ca": "a file with the certificates to trust",
    "sandbox": "run commands in bwrap",
    "idle_exit": "stop after so many seconds without anything to do",
    "grace": "seconds that tasks may run on once told to stop",
    "poll": "seconds that the server may hold a request",
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
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes, such as 500M") from None


def parser() -> argparse.ArgumentParser:
    """What the words of the command mean."""
    made = argparse.ArgumentParser("eligo work", description="Run tasks for a server.", allow_abbrev=False)
    made.add_argument("url", help="the server, such as https://host:8765")
    for name, text in HELP.items():
        kind = amount if name in BYTES else KINDS.get(name, str)
        made.add_argument(f"--{name.replace('_', '-')}", type=kind, help=text, default=argparse.SUPPRESS)
    made.add_argument("--trust", action="append", help="a public key whose owner's commands are run", default=[])
    made.add_argument("--label", action="append", help="what this machine has, such as gpu; repeatable", default=[])
    made.add_argument("--sandbox-network", action="store_true", help="let commands in the sandbox use the network")
    made.add_argument("--once", action="store_true", help="stop after one grant")
    made.add_argument("-v", "--verbose", action="store_true", help="a line for every task")
    return made


def main() -> int:
    """Run the command; its exit code."""
    words = vars(parser().parse_args())
    known = {field.name for field in fields(WorkOptions)}
    try:
        options = WorkOptions(
            **{name: word for name, word in words.items() if name in known}
            | {"trust": tuple(words["trust"]), "labels": tuple(words["label"])}
        )
        tally = work(options)
    except EligoError as error:
        cure = ": name a token with --token FILE or ELIGO_TOKEN_FILE" if getattr(error, "remedy", "") == "token" else ""
        tell(f"{error}{cure}")
        return 2
    tell(str(tally))
    return 0


if __name__ == "__main__":
    sys.exit(main())

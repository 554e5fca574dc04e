"""What the tests of the server share: real servers and clients as processes, on loopback, ended by their ids."""

import json
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eligo.client.options import token_for
from running_cases import COMMAND

PATIENCE = 60


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """A server in a folder, by its address and its process; it is told to end, where it has not."""
    arguments = [*COMMAND, "serve", *words, "--port", "0", *(() if "--store" in words else ("--store", "s.db"))]
    with (folder / "server.err").open("a") as errors:
        server = subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert server.stdout is not None
    try:
        yield _address(server, folder / "server.err", "--json" in words), server
    finally:
        with suppress(ProcessLookupError):
            server.send_signal(signal.SIGTERM)
        try:
            server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
            raise
        finally:
            server.stdout.close()


def _address(server: "subprocess.Popen[str]", errors: Path, quiet: bool) -> str:
    """Where a server serves: told on standard output, or, where that is for a document, on standard error."""
    if not quiet:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("serving on http"), (line, errors.read_text())
        return line.split()[-1]
    end = time.monotonic() + PATIENCE
    while not (found := re.findall(r"^serving on (\S+)$", errors.read_text(), re.M)):
        assert server.poll() is None, errors.read_text()
        assert time.monotonic() < end
        time.sleep(0.05)
    return str(found[-1])


def working(folder: Path, url: str, name: str, *words: str) -> "subprocess.Popen[str]":
    """A client, in a process of its own."""
    place = ("--folder", str(folder / name), "--name", name)
    return subprocess.Popen(
        [*COMMAND, "work", url, *place, "--cores", "1", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def worked(folder: Path, url: str, name: str = "ann", *words: str) -> str:
    """What a client says at its end, once it found nothing to do for a second."""
    client = working(folder, url, name, "--idle-exit", "1", *words)
    _, said = client.communicate(timeout=PATIENCE)
    assert client.returncode == 0, said
    return said


def dismissed(client: "subprocess.Popen[str]") -> str:
    """What a client says when it is asked to stop."""
    client.send_signal(signal.SIGTERM)
    _, said = client.communicate(timeout=PATIENCE)
    return said


def told(*words: str) -> tuple[int, str, str]:
    """The exit code of a command, and what it says."""
    found = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    return found.returncode, found.stdout, found.stderr


def got(url: str, token: str | None = None) -> Any:
    """What is at an address; the token is the one that the server offers, unless another is given."""
    token = token_for(url) if token is None else token
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE) as reply:
        return json.loads(reply.read())


def posted(url: str, words: Any, key: str = "k", **headers: str) -> tuple[int, Any]:
    """The status and the answer of a POST."""
    given = {"Idempotency-Key": key, "Content-Type": "application/json"}
    token = token_for(url)
    given |= {"Authorization": f"Bearer {token}"} if token else {}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, json.dumps(words).encode(), given)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())

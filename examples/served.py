"""A server and four clients on this machine: two are fast, one is slow, one is killed; every task is done."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from eligo.client.options import token_for

HERE = Path(__file__).parent
ELIGO = str(Path(sys.executable).with_name("eligo"))
SLOW = '#!/bin/sh\nsleep .7\nexec {python} "$@"\n'  # comes before the real one in the slow client's PATH


def main(place: str) -> None:
    """Serve the mosaic, and print what was lost, repeated and saved."""
    folder = Path(place).resolve()
    shutil.copytree(HERE / "mosaic", folder / "mosaic")
    server = subprocess.Popen(
        [ELIGO, "serve", "mosaic/mosaic.yaml", "--until-done", "--lease", "2", "--port", "0"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    url = server.stdout.readline().split()[-1]
    print(f"serving on {url}", flush=True)
    clients = {name: client(folder, url, name, *words) for name, words in TEAM.items()}
    wait_for(url, "mayfly")
    clients["mayfly"].kill()
    print("mayfly is killed in the middle of a task", flush=True)
    for line in server.stdout:
        print(line, end="", flush=True)
    for name, process in clients.items():
        _, said = process.communicate()
        print(f"{name}: {said.strip().removeprefix('eligo: ') or 'killed'}")
    sys.exit(server.wait())


#: fast2 takes three tasks at a time and runs them in one folder: files that only these need stay there
TEAM = {"fast1": (), "fast2": ("--size", "3"), "snail": (), "mayfly": ()}


def client(folder: Path, url: str, name: str, *words: str) -> "subprocess.Popen[str]":
    """Start a client, the slow one with a slow python3."""
    path = os.environ["PATH"]
    if name == "snail":
        shell = folder / "slow" / "python3"
        shell.parent.mkdir()
        shell.write_text(SLOW.format(python=shutil.which("python3")))
        shell.chmod(0o755)
        path = f"{shell.parent}:{path}"
    place = ["--folder", str(folder / name), "--name", name, "--cores", "1"]
    return subprocess.Popen(
        [ELIGO, "work", url, *place, *words], env={**os.environ, "PATH": path}, stderr=subprocess.PIPE, text=True
    )


def wait_for(url: str, name: str) -> None:
    """Wait until a client has finished a task and has another one."""
    asked = urllib.request.Request(f"{url}/v1/clients", headers={"Authorization": f"Bearer {token_for(url)}"})
    while True:
        found: list[dict[str, Any]] = json.load(urllib.request.urlopen(asked))["clients"]
        if any(one["name"] == name and one["holds"] and one["done"] for one in found):
            return
        time.sleep(0.02)


if __name__ == "__main__":
    main(sys.argv[1])

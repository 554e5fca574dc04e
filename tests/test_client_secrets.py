"""What a task sees of its client where there is no sandbox: what is not passed on, and what its user may read."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from client_server import StandIn, task
from eligo.engines.job_run import MARK

TOKEN = "the-clients-secret"
ALLOWED = {
    "PATH",
    "LANG",
    "TZ",
    "HOME",
    "TMPDIR",
    "PWD",
    "ELIGO_TASK",
    "ELIGO_ATTEMPT",
    "ELIGO_WORKFLOW",
    "ELIGO_CORES",
}
SHELL = {"SHLVL", "_", "OLDPWD"}  # what a shell sets itself
PARENTS = 'p=$$; while [ "$p" -gt 1 ]; do tr "\\0" " " < /proc/$p/cmdline; p=$(cut -d" " -f4 /proc/$p/stat); done'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A client's folder whose parent anybody may write to, as with a careless umask."""
    (tmp_path / "token").write_text(TOKEN)
    return tmp_path / "home" / "client"


def worked(server: StandIn, folder: Path) -> None:
    token = folder.parent.parent / "token"
    argv = [sys.executable, "-m", "eligo.client", server.url, "--folder", str(folder), "--token", str(token)]
    environment = os.environ | {"ELIGO_TOKEN_FILE": str(token), "ELIGO_URL": server.url, "AWS_SECRET_ACCESS_KEY": TOKEN}
    words = ["--cores", "1", "--idle-exit", "0.5"]
    subprocess.run([*argv, *words], env=environment, umask=0, timeout=60, check=True)


def test_nothing_of_the_clients_environment_or_token_is_passed_on(folder: Path) -> None:
    with StandIn(token=TOKEN) as server:
        server.grant(task("look", f"env > e; {PARENTS} > c; ls -l /proc/self/fd > f", outputs=["e", "c", "f"]))
        worked(server, folder)
        result = server.result("look")
        found = {name: server.content(result, name).decode("utf-8", "replace") for name in "ecf"}
    names = {line.split("=", 1)[0] for line in found["e"].splitlines()}
    assert {name for name in names - ALLOWED - SHELL if not name.startswith("LC_")} <= {MARK}
    assert TOKEN not in "".join(found.values())
    assert "eligo.client" in found["c"]  # the command lines of all above it were seen
    own = {
        str(folder / "scratch"),
        str(folder / "processes.bin"),
    }  # the latter, read-only, marks the processes of tasks
    opened = {line.partition(" -> ")[2] for line in found["f"].splitlines()}
    assert not [path for path in opened if path.startswith(str(folder)) and not path.startswith(tuple(own))]
    assert all(line.startswith("lr-") for line in found["f"].splitlines() if line.endswith("processes.bin"))


def test_other_users_see_nothing_of_a_clients_folder(folder: Path) -> None:
    """Whatever the umask is: its token, its files and the folders of its tasks are for its user alone."""
    with StandIn(token=TOKEN) as server:
        server.grant(task("look", f"stat -c %a {folder} .. . > o", outputs=["o"]))
        worked(server, folder)
        modes = server.content(server.result("look"), "o").decode().split()
    assert modes[0] == "700"
    assert stat.S_IMODE((folder / "client.json").stat().st_mode) == 0o600
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir() if path.is_dir()} == {0o700}


def test_the_same_user_can_read_the_clients_token_without_a_sandbox(folder: Path) -> None:
    """Docs say so: no mode keeps a process from its own user's files. Only a sandbox or another user does."""
    with StandIn(token=TOKEN) as server:
        server.grant(task("look", f"cat {folder}/client.json > o", outputs=["o"]))
        worked(server, folder)
        identity = json.loads(server.content(server.result("look"), "o"))
    assert identity["url"] == server.url

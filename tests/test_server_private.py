"""What a server writes is for its user alone, and nothing of other users is written to."""

import os
import stat
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

from running_cases import COMMAND
from server_faults import ServerProcess

USUAL = ("sh", "-c", 'umask 022; exec "$@"', "sh")  # what a shell has mostly
NOBODY = 65534


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_other_users_cannot_read_what_a_server_keeps(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, "--tokens", "-q", "--log", str(tmp_path / "requests.log"))
    server.before = USUAL
    with server:
        operator = {"Authorization": f"Bearer {(tmp_path / 'served.token').read_text().strip()}"}
        path = f"/v1/files/{sha256(b'secret').hexdigest()}"
        assert server.call("PUT", path, b"secret", operator).status == 201
        names = ("served.db", "served.db-wal", "served.db-shm", "served.db.lock", "served.token", "requests.log")
        assert {name: mode(tmp_path / name) for name in names} == dict.fromkeys(names, 0o600)
        copy = tmp_path / "copy.db"
        subprocess.run(
            [*USUAL, *COMMAND, "backup", str(server.store), str(copy)], check=True, stdout=subprocess.DEVNULL
        )
        assert mode(copy) == 0o600
        for folder in (tmp_path / "served.files", tmp_path / "copy.files"):
            assert {mode(path) for path in (folder, *folder.iterdir()) if path.is_dir()} == {0o700}


def test_what_was_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "served.files").mkdir(0o750)
    (tmp_path / "requests.log").touch(0o640)
    with ServerProcess(tmp_path, "-q", "--log", str(tmp_path / "requests.log")):
        assert mode(tmp_path / "served.files") == 0o750
        assert mode(tmp_path / "requests.log") == 0o640


def test_the_operators_token_goes_through_no_link(tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "served.token"
    other.write_text("of another")
    link.symlink_to(other)
    with ServerProcess(tmp_path, "--tokens", "-q") as server:
        token = link.read_text().strip()
        assert server.call("GET", "/v1/tokens", headers={"Authorization": f"Bearer {token}"}).status == 200
    assert (other.read_text(), link.is_symlink(), mode(link)) == ("of another", False, 0o600)
    assert not list(tmp_path.glob(".token-*"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file of another user")
def test_the_operators_token_goes_into_no_file_of_another_user(tmp_path: Path) -> None:
    path, same = tmp_path / "served.token", tmp_path / "same"
    path.write_text("of another")
    path.chmod(0o666)
    os.chown(path, NOBODY, NOBODY)
    same.hardlink_to(path)  # as if the other user held it open
    with ServerProcess(tmp_path, "--tokens", "-q"):
        assert (path.stat().st_uid, mode(path)) == (os.geteuid(), 0o600)
    assert (same.read_text(), same.stat().st_uid) == ("of another", NOBODY)


def test_a_token_that_cannot_be_written_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "served.token").mkdir()
    serve = [*COMMAND, "serve", "--store", str(tmp_path / "served.db"), "--port", "0"]
    ended = subprocess.run(serve, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "served.token: cannot write the operator token: Is a directory" in ended.stderr
    assert not list(tmp_path.glob(".token-*"))

"""Files by their hash: whole or not at all, gone on with where they were broken off, within their room."""

import hashlib
import http.client
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Router

import uvicorn_thread as live
from eligo.server import files
from eligo.server.files import Blobs, routes
from eligo.server.http.guard import Bounds, Guard
from eligo.server.http.refusals import RefusedError

TEXT = b"content" * 1000
HASH = hashlib.sha256(TEXT).hexdigest()
Address = tuple[str, int]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return Blobs(tmp_path / "files", 5_000_000, 8_000_000)


@pytest.fixture
def address(blobs: Blobs) -> Iterator[Address]:
    app = Guard(Router([*routes(blobs)]), Bounds(file=6_000_000, patience=0.4))
    with live.served(app) as address:
        yield address


def call(address: Address, method: str, name: str, body: bytes | None = None, **headers: str) -> tuple[int, Any, bytes]:
    connection = http.client.HTTPConnection(*address, timeout=10)
    given = {key.replace("_", "-"): value for key, value in headers.items()}
    connection.request(method, f"/v1/files/{name}", body, given)
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found


def there(blobs: Blobs) -> set[str]:
    return {path.name for path in blobs.folder.glob("*/*")}


def put(blobs: Blobs, data: bytes, name: str | None = None) -> None:
    incoming = blobs.begin(name or sha(data), 0, len(data))
    incoming.write(data)
    incoming.finish()


# Without a network


def test_a_file_is_there_whole_or_not_at_all(blobs: Blobs) -> None:
    incoming = blobs.begin(HASH, 0, len(TEXT))
    incoming.write(TEXT[:100])
    assert blobs.size(HASH) is None
    incoming.write(TEXT[100:])
    assert blobs.size(HASH) is None
    incoming.finish()
    assert blobs.size(HASH) == len(TEXT) == blobs.used
    assert blobs.path(HASH).read_bytes() == TEXT
    assert there(blobs) == {HASH}


def test_what_has_another_hash_is_not_kept(blobs: Blobs) -> None:
    with pytest.raises(RefusedError, match="does not match its hash") as refused:
        put(blobs, b"other", HASH)
    assert refused.value.status == 422
    assert (there(blobs), blobs.used, blobs.offset(HASH)) == (set(), 0, 0)


@pytest.mark.parametrize("again", [False, True])
def test_it_goes_on_where_it_was_broken_off(blobs: Blobs, again: bool) -> None:
    incoming = blobs.begin(HASH, 0, len(TEXT))
    incoming.write(TEXT[:100])
    incoming.leave()
    assert (blobs.offset(HASH), blobs.used) == (100, 100)
    blobs = Blobs(blobs.folder, 10**6, 10**6) if again else blobs  # also by another process
    with pytest.raises(RefusedError, match="continue at byte 100") as refused:
        blobs.begin(HASH, 50, len(TEXT))
    assert (refused.value.status, refused.value.headers["eligo-offset"]) == (409, "100")
    incoming = blobs.begin(HASH, 100, len(TEXT))
    incoming.write(TEXT[100:])
    incoming.finish()
    assert blobs.path(HASH).read_bytes() == TEXT
    assert blobs.used == len(TEXT)


def test_it_can_also_begin_anew(blobs: Blobs) -> None:
    incoming = blobs.begin(HASH, 0, len(TEXT))
    incoming.write(b"wrong" * 100)
    incoming.leave()
    put(blobs, TEXT)
    assert (blobs.size(HASH), blobs.used) == (len(TEXT), len(TEXT))


def test_two_send_the_same_at_a_time(blobs: Blobs) -> None:
    first, second = (blobs.begin(HASH, 0, len(TEXT)) for _ in range(2))
    first.write(TEXT[:10])
    second.write(TEXT)
    with pytest.raises(RefusedError, match="another client"):
        blobs.begin(HASH, 10, len(TEXT))
    second.finish()
    first.write(TEXT[10:])
    first.finish()
    assert (there(blobs), blobs.used) == ({HASH}, len(TEXT))


def test_too_much_is_refused(blobs: Blobs) -> None:
    with pytest.raises(RefusedError, match="limit of 5000000 bytes"):
        blobs.begin(HASH, 0, 5_000_001)
    large = blobs.begin(HASH, 0, 5_000_000)
    large.write(bytes(5_000_000))
    with pytest.raises(RefusedError, match="file storage is full"):
        blobs.begin(sha(b"b"), 0, 3_000_001)
    incoming = blobs.begin(sha(b"b"), 0, 1)
    with pytest.raises(RefusedError, match="longer than the announced 1 bytes"):
        incoming.write(b"bb")
    assert blobs.used == 5_000_000
    large.drop()
    assert blobs.used == 0


def test_room_is_taken_by_what_comes_and_not_by_what_is_announced(blobs: Blobs) -> None:
    """Else a few uploads that send nothing would take all of it."""
    announced = [blobs.begin(sha(b"%d" % number), 0, 5_000_000) for number in range(10)]
    assert blobs.used == 0
    put(blobs, TEXT)
    announced[0].write(b"x" * 4_000_000)
    with pytest.raises(RefusedError, match="disk is full"):
        announced[1].write(b"x" * 4_000_000)
    assert blobs.used == len(TEXT) + 4_000_000
    announced[0].leave()
    again = blobs.begin(sha(b"0"), 0, 5_000_000)  # from its beginning
    assert blobs.used == len(TEXT)
    again.write(b"x" * 10)
    again.drop()
    for one in announced:
        one.leave()
    assert blobs.used == len(TEXT)
    assert there(blobs) == {HASH}


@pytest.mark.parametrize("name", ["../../etc/passwd", "A" * 64, "a" * 63, "", "a" * 64 + "\n"])
def test_nothing_but_a_hash_is_a_name(blobs: Blobs, name: str) -> None:
    for asked in (blobs.size, blobs.offset, blobs.path, lambda name: blobs.begin(name, 0, 1)):
        with pytest.raises(RefusedError, match="named by its SHA-256"):
            asked(name)


def test_a_full_disk_leaves_nothing_behind(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RefusedError, match="disk is full") as refused:
        put(blobs, TEXT)
    assert (refused.value.status, refused.value.headers["retry-after"]) == (503, "60")
    assert (there(blobs), blobs.used, blobs._busy) == (set(), 0, set())
    monkeypatch.undo()
    put(blobs, TEXT)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_fills_while_it_is_written(blobs: Blobs) -> None:
    incoming = blobs.begin(HASH, 0, len(TEXT))
    incoming._file.close()
    incoming._file = open("/dev/full", "r+b", buffering=0)  # noqa: SIM115
    with pytest.raises(RefusedError, match="disk is full"):
        incoming.write(TEXT)
    incoming.leave()
    assert (there(blobs), blobs.used, blobs._busy) == (set(), 0, set())


def test_what_nobody_keeps_goes_when_it_is_old(blobs: Blobs) -> None:
    for data in (b"kept", b"old", b"new"):
        put(blobs, data)
    part = blobs.begin(HASH, 0, len(TEXT))
    part.write(b"x")
    part.leave()
    busy = blobs.begin(sha(b"busy"), 0, 4)
    past = time.time() - 2 * 86_400
    for path in blobs.folder.glob("*/*"):
        if path.name != sha(b"new"):
            os.utime(path, (past, past))
    assert sum(blobs.swept(lambda hashes: {sha(b"kept")})) == len(b"old") + 1
    assert there(blobs) == {sha(b"kept"), sha(b"new"), sha(b"busy")}
    os.utime(blobs.path(sha(b"kept")), (past, past))
    assert blobs.size(sha(b"kept")) == 4  # asked for, so it is used
    assert sum(blobs.swept(lambda hashes: set())) == 0
    busy.drop()
    assert blobs.used == 7


def test_files_are_looked_at_some_at_a_time(blobs: Blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.server.files.MOST_SWEPT", 4)
    asked: list[int] = []
    for number in range(10):
        put(blobs, bytes([number]))

    def needed(hashes: list[str]) -> set[str]:
        asked.append(len(hashes))
        return set()

    steps = blobs.swept(needed, older=-1.0)
    assert next(steps) == 4
    assert len(there(blobs)) == 6
    assert list(steps) == [4, 2]
    assert (asked, blobs.used) == ([4, 4, 2], 0)


def test_what_is_used_while_it_is_looked_at_stays(blobs: Blobs) -> None:
    put(blobs, b"old")
    past = time.time() - 2 * 86_400
    os.utime(blobs.path(sha(b"old")), (past, past))

    def needed(hashes: list[str]) -> set[str]:
        assert blobs.size(sha(b"old")) == 3  # somebody is about to say that it has made this
        return set()

    assert sum(blobs.swept(needed)) == 0
    assert there(blobs) == {sha(b"old")}


def test_what_was_being_removed_when_the_server_died_is_there_again(blobs: Blobs) -> None:
    put(blobs, b"needed")
    blobs.path(sha(b"needed")).rename(blobs.parts / f"{sha(b'needed')}.gone")
    again = Blobs(blobs.folder, 1000, 1000)
    assert (again.size(sha(b"needed")), again.used) == (6, 6)


def test_a_folder_is_one_stores(blobs: Blobs) -> None:
    assert [blobs.claimed(mark) for mark in ("ours", "theirs", "ours")] == [True, False, True]


def test_threads_do_not_get_in_each_others_way(blobs: Blobs) -> None:
    chance = random.Random(1)
    contents = [chance.randbytes(20_000) for _ in range(20)]

    def send(seed: int) -> None:
        order = random.Random(seed).sample(contents, len(contents))
        for data in order:
            if blobs.size(sha(data)) is None:
                incoming = blobs.begin(sha(data), 0, len(data))
                for start in range(0, len(data), 3000):
                    incoming.write(data[start : start + 3000])
                incoming.finish()

    threads = [threading.Thread(target=send, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert there(blobs) == {sha(data) for data in contents}
    assert all(sha(blobs.path(name).read_bytes()) == name for name in there(blobs))
    assert blobs.used == sum(map(len, contents))


# Over HTTP


def test_put_head_get(address: Address) -> None:
    code, headers, body = call(address, "HEAD", HASH)
    assert (code, headers["eligo-offset"], body) == (404, "0", b"")
    assert call(address, "PUT", HASH, TEXT)[0] == 201
    assert call(address, "PUT", HASH, TEXT)[0] == 200
    code, headers, body = call(address, "HEAD", HASH)
    assert (code, headers["content-length"], body) == (200, str(len(TEXT)), b"")
    code, headers, body = call(address, "GET", HASH)
    assert (code, body, headers["content-type"]) == (200, TEXT, "application/octet-stream")
    assert call(address, "GET", sha(b"no"))[0] == 404
    assert call(address, "GET", "no")[0] == 404
    assert call(address, "PUT", sha(b""), b"")[0] == 201
    assert call(address, "GET", sha(b""))[::2] == (200, b"")
    assert call(address, "POST", HASH, b"")[0] == 405


def test_a_range_of_a_file(address: Address) -> None:
    call(address, "PUT", HASH, TEXT)
    code, headers, body = call(address, "GET", HASH, Range="bytes=10-19")
    assert (code, headers["content-range"], body) == (206, "bytes 10-19/7000", TEXT[10:20])
    assert call(address, "GET", HASH, Range="bytes=6990-")[2] == TEXT[6990:]
    assert call(address, "GET", HASH, Range="bytes=-5")[2] == TEXT[-5:]
    assert call(address, "GET", HASH, Range="bytes=0-1,5-6")[0] == 200
    code, headers, body = call(address, "GET", HASH, Range="bytes=7000-")
    assert (code, headers["content-range"]) == (416, "bytes */7000")


def test_a_file_in_parts(address: Address, blobs: Blobs) -> None:
    code, headers, _ = call(address, "PUT", HASH, TEXT[:3000], Content_Range="bytes 0-2999/7000")
    assert (code, headers["eligo-offset"]) == (202, "3000")
    assert call(address, "HEAD", HASH)[1]["eligo-offset"] == "3000"
    code, headers, _ = call(address, "PUT", HASH, TEXT[4000:], Content_Range="bytes 4000-6999/7000")
    assert (code, headers["eligo-offset"]) == (409, "3000")
    assert call(address, "PUT", HASH, TEXT[3000:], Content_Range="bytes 3000-6999/7000")[0] == 201
    assert call(address, "GET", HASH)[2] == TEXT
    for wrong in ("bytes 0-5/7000", "bytes 5-4/3", "lines 1-2/3", "bytes 0-2999/*"):
        assert call(address, "PUT", sha(b"a"), TEXT[:3000], Content_Range=wrong)[0] == 400
    assert there(blobs) == {HASH}


def test_what_is_all_there_gets_its_name_by_sending_nothing_more(address: Address, blobs: Blobs) -> None:
    incoming = blobs.begin(HASH, 0, len(TEXT))  # as a server leaves it that dies after the last byte
    incoming.write(TEXT)
    incoming.leave()
    assert call(address, "HEAD", HASH)[1]["eligo-offset"] == "7000"
    assert call(address, "PUT", HASH, b"", Content_Range="bytes 7000-6999/7000")[0] == 201
    assert call(address, "GET", HASH)[2] == TEXT


def test_the_wrong_hash_and_too_much_are_refused(address: Address, blobs: Blobs) -> None:
    assert call(address, "PUT", HASH, b"other")[0] == 422
    assert call(address, "PUT", HASH, b"x" * 5_000_001)[0] == 413
    blobs.most_total = 10
    code, headers, _ = call(address, "PUT", HASH, TEXT)
    assert (code, headers["retry-after"]) == (503, "60")
    assert there(blobs) == set()


def test_the_length_must_be_told(address: Address) -> None:
    head = f"PUT /v1/files/{HASH} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
    assert live.status(live.said(address, head.encode())) == 411


@pytest.mark.parametrize("dying", [True, False])
def test_a_sender_who_dies_or_drips_can_go_on(address: Address, blobs: Blobs, dying: bool) -> None:
    head = f"PUT /v1/files/{HASH} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(TEXT)}\r\n\r\n".encode()
    with live.connected(address) as connection:
        connection.sendall(head + TEXT[:2500])
        if dying:
            time.sleep(0.2)  # else what came last is lost with the connection
        else:
            assert live.status(live.rest(connection)) == 408
    end = time.monotonic() + 5
    while HASH in blobs._busy or not blobs.offset(HASH):
        assert time.monotonic() < end
        time.sleep(0.01)
    offset = int(call(address, "HEAD", HASH)[1]["eligo-offset"])
    assert offset == 2500
    assert call(address, "PUT", HASH, TEXT[2500:], Content_Range="bytes 2500-6999/7000")[0] == 201
    assert blobs.used == len(TEXT)


def test_a_large_file_goes_through_in_pieces(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random.Random(3).randbytes(4_500_000)
    assert call(address, "PUT", sha(data), data)[0] == 201
    assert call(address, "GET", sha(data))[2] == data
    monkeypatch.setattr(files, "PIECE", 1000)
    assert call(address, "GET", sha(data), Range="bytes=-2500")[2] == data[-2500:]

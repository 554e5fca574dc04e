"""What strangers send: too much, too slowly, too many, or no HTTP at all; honest clients are served all the while."""

import asyncio
import json
import random
import re
import secrets
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from pathlib import Path

import pytest

from light_clients import Ledger, percentile, read_message, working
from server_faults import Line, Reply, ServerProcess, layered, light, line, watching, worker

STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")
MEGABYTE = 2**20
HANGS = 10.0  # seconds in which a connection whose sender has said all must end


def refused_soundly(server: ServerProcess, codes: Counter[int]) -> None:
    """Nothing went wrong inside; 503 is a refusal."""
    assert {code: number for code, number in codes.items() if code >= 500 and code != 503} == {}
    assert "Traceback" not in server.log(), server.log()[-3000:]
    assert "unexpected" not in server.log(), server.log()[-3000:]


@asynccontextmanager
async def honest(server: ServerProcess, workflow: str, ledger: Ledger, count: int = 4) -> AsyncIterator[None]:
    """Honest clients at work while something else happens."""
    async with watching(server, workflow) as over:
        clients = light(count, server.address, ledger, seed=6, nap=0.01)
        doing = asyncio.ensure_future(working(clients, over, 600))
        await asyncio.sleep(0.5)
        yield
        over.set()
        assert await doing


# Too slowly


def drips(folder: Path, number: int, seconds: float, wait: bool) -> Line:
    """Connections that bring a byte a second, half of them of headers, half of a body; *wait* until all are closed."""
    began, before, during = time.monotonic(), Ledger(), Ledger()

    async def play(server: ServerProcess, workflow: str) -> tuple[float, int]:
        async with honest(server, workflow, before):
            await asyncio.sleep(seconds)
        async with honest(server, workflow, during):
            dripping = [asyncio.ensure_future(_drip(server.address, i % 2 == 0)) for i in range(number)]
            opened = time.monotonic()
            done, left = await asyncio.wait(dripping, timeout=45.0 if wait else seconds)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
            return time.monotonic() - opened, len(done)

    with ServerProcess(folder, "-q") as server:
        workflow = server.submit(layered(200_000 if wait else 20_000, 10_000))
        closed, count = asyncio.run(play(server, workflow))
        refused_soundly(server, before.codes + during.codes)
    assert not wait or count == number, f"{number - count} were not closed"
    one, two = percentile(before.took), percentile(during.took)
    said = f"99 % of honest calls within {one * 1000:.0f} ms before, {two * 1000:.0f} ms during"
    said += f"; all closed within {closed:.0f} s" if wait else ""
    what = ("13", "connections that bring a byte a second", f"{number:,} connections")
    return line(what, began, said)


async def _drip(address: tuple[str, int], head: bool) -> None:
    reader, writer = await asyncio.open_connection(*address)
    try:
        begin = b"POST /v1/deliver HTTP/1.1\r\nHost: localhost\r\n"
        writer.write(begin if head else begin + b"Content-Length: 1000\r\n\r\n")
        while not reader.at_eof():
            writer.write(b"X")
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1000), 1.0)
    except OSError:
        pass
    finally:
        writer.transport.abort()


# Too much


def bodies(folder: Path, size: int = 2**30) -> Line:
    """Bodies of a gigabyte, without end, compressed: refused, without memory being taken for them."""
    began, codes = time.monotonic(), Counter[int]()
    with ServerProcess(folder, "-q") as server:
        before = [server.memory()]
        for path in ("/v1/deliver", "/v1/clients", "/v1/workflows"):
            told = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\n"
            for rest, chunked in (
                (f"Content-Length: {size}\r\n\r\n", False),
                ("Transfer-Encoding: chunked\r\n\r\n", True),
            ):
                codes[asyncio.run(_pour(server.address, (told + rest).encode(), size, chunked))] += 1
            before.append(server.memory())
        squeezed = server.call("POST", "/v1/deliver", b"x" * 1000, {"Content-Encoding": "gzip"})
        codes[squeezed.status] += 1
        refused_soundly(server, codes)
        assert server.answers()
    assert set(codes) <= {413, 415}, codes
    small, large = (before[-2] - before[0]) / MEGABYTE, (before[-1] - before[-2]) / MEGABYTE
    assert small < 64
    assert large < 64
    said = (
        f"413 (415 where compressed); memory grew by {small:.0f} MiB, by {large:.0f} MiB more where workflows come in"
    )
    return line(
        ("14", "bodies that are too large, endless, compressed", f"{size / MEGABYTE:,.0f} MiB each"), began, said
    )


async def _pour(address: tuple[str, int], head: bytes, size: int, chunked: bool) -> int:
    """Send a body until somebody answers; the answer's code."""
    reader, writer = await asyncio.open_connection(*address)
    part, sent = bytes(MEGABYTE), 0
    frame = b"%x\r\n%b\r\n" % (len(part), part) if chunked else part
    answer = asyncio.ensure_future(read_message(reader))
    with suppress(OSError):
        writer.write(head)
        while sent < size and not answer.done():
            writer.write(frame)
            await asyncio.wait_for(writer.drain(), 10)
            sent += len(part)
            await asyncio.sleep(0)
    got, _ = await asyncio.wait_for(answer, 10)
    writer.transport.abort()
    return got.status


# No sense


def malformed(folder: Path, number: int, seed: int = 1) -> Line:
    """Requests with bytes changed, left out, put in and doubled, over plain sockets."""
    began, ledger, codes = time.monotonic(), Ledger(), Counter[int]()
    rng = random.Random(seed)

    async def play(server: ServerProcess, workflow: str) -> None:
        async with honest(server, workflow, ledger, 2):
            (known,) = light(1, server.address, ledger)
            await known.enrol()
            lease = (await known.call("/v1/request", known.asking()))["grants"][0]["tasks"][0]["lease"]
            known.hang_up()
            seeds = _requests(known.id, workflow, lease)
            gate = asyncio.Semaphore(32)

            async def one() -> None:
                async with gate:
                    codes.update(await _said(server.address, mutated(rng.choice(seeds), rng)))

            for first in range(0, number, 1000):
                await asyncio.gather(*(one() for _ in range(min(1000, number - first))))

    with ServerProcess(folder, "-q") as server:
        workflow = server.submit(layered(200_000 if number > 10_000 else 20_000, 10_000))
        asyncio.run(play(server, workflow))
        refused_soundly(server, codes + ledger.codes)
        assert server.answers()
    told = ", ".join(
        f"{count:,} × {code or 'closed'}" for code, count in sorted(codes.items()) if count > number // 200
    )
    what = ("15", f"mutated requests over plain sockets, seed {seed}", f"{number:,} requests")
    return line(what, began, f"no 5xx, no hang; {told}")


def _requests(client: str, workflow: str, lease: str) -> list[bytes]:
    """One good request of each kind."""
    result = {
        "lease": lease,
        "outcome": "done",
        "seconds": 1.5,
        "code": 0,
        "tail": "é\n",
        "outputs": {"a": {"sha256": "0" * 64, "size": 3}},
    }
    posts = {
        "/v1/clients": {"name": "x", "cores": 4, "version": "1"}, "/v1/request": {"count": 1, "size": 2, "wait": 0.0},
        "/v1/renew": {"leases": [lease, "w-1.2.3"]}, "/v1/deliver": {"results": [result], "ask": {"count": 1}},
        "/v1/workflows?name=x&format=json&share=2&quorum=1": {"tasks": [{"name": "a", "run": "true"}]},
        f"/v1/workflows/{workflow}/inputs": {"files": {"a": {"sha256": "0" * 64, "size": 1}}, "signatures": {"t0": "x"}},
        f"/v1/workflows/{workflow}/retry": {"tasks": ["t1"]}, f"/v1/clients/{client}/approve": {},
        "/v1/tokens": {"name": "x", "scopes": ["work"], "days": 1.0},
    }  # fmt: skip
    gets = ("/health", "/metrics", "/v1/openapi.json", "/v1/workflows", f"/v1/workflows/{workflow}/tasks?after=1&limit=2",
            f"/v1/workflows/{workflow}/attempts?limit=2", f"/v1/clients/{client}", f"/v1/files/{'0' * 64}")  # fmt: skip
    common = f"Host: localhost\r\nEligo-Client: {client}\r\nConnection: close\r\n"
    found = [f"GET {path} HTTP/1.1\r\n{common}\r\n".encode() for path in gets]
    for path, words in posts.items():
        body = json.dumps(words, ensure_ascii=False).encode()
        key = f"Idempotency-Key: {secrets.token_hex(4)}\r\n"
        head = f"POST {path} HTTP/1.1\r\n{common}{key}Content-Length: {len(body)}\r\n\r\n"
        found.append(head.encode() + body)
    put = f"PUT /v1/files/{'0' * 64} HTTP/1.1\r\n{common}Content-Range: bytes 0-2/3\r\nContent-Length: 3\r\n\r\nabc"
    return [*found, put.encode()]


PIECES = (b"\r\n", b"\x00", b"\xff\xfe", b"-1", b"9" * 400, b"1e999", b"NaN", b"[" * 500, b"{" * 500, b'"', b"%00",
          b"../" * 5, b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n", "٣".encode(),
          b"null", b"\\ud800", b"\\u0000", "é".encode() * 3)  # fmt: skip


def mutated(request: bytes, rng: random.Random) -> bytes:
    """A request with some of it changed; its length told anew half of the time, so that the body is read at all."""
    head, gap, body = request.partition(b"\r\n\r\n")
    for _ in range(rng.choice([1, 1, 2, 4])):
        if body and rng.random() < 0.6:
            body = _changed(body, rng)
        else:
            head = _changed(head, rng)
    if rng.random() < 0.7:
        head = re.sub(rb"Content-Length: \d+", b"Content-Length: %d" % len(body), head)
    return head + gap + body


def _changed(data: bytes, rng: random.Random) -> bytes:
    first = rng.randrange(len(data) + 1)
    last = min(len(data), first + rng.choice([0, 1, 1, 4, 20]))
    piece = rng.choice([b"", rng.choice(PIECES), rng.randbytes(rng.choice([1, 3, 50])), data[first:last] * 2])
    return data[:first] + piece + data[last:]


async def _said(address: tuple[str, int], request: bytes) -> list[int]:
    """The codes of all that is answered to these bytes, after which nothing more comes; 0 where nothing is."""
    reader, writer = await asyncio.open_connection(*address)
    answer = b""
    try:
        writer.write(request)
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), HANGS)
    except TimeoutError:
        raise AssertionError(f"nothing ends this: {request!r}") from None
    except OSError:
        pass
    finally:
        writer.transport.abort()
    assert b"Traceback" not in answer
    return [int(code) for code in STATUS.findall(answer)] or [0]


def _played(command: list[str], folder: Path, seconds: float) -> tuple[int, str]:
    """The exit code of a tool, 0 if its time is over, and what it printed."""
    try:
        played = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, cwd=folder)
    except subprocess.TimeoutExpired as late:
        return 0, (late.stdout or b"").decode()
    return played.returncode, played.stdout


#: a fault of CPython 3.11: threads that parse at the same time disturb each other
MISPARSED = "AST constructor recursion depth mismatch"


def described(folder: Path, examples: int, seconds: float) -> Line:
    """Schemathesis plays what the API's own description allows, and what it forbids."""
    found = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip(
            'THE DESCRIPTION OF THE API WAS NOT PLAYED: there is no schemathesis here: pip install "schemathesis>=4"'
        )
    began = time.monotonic()
    with ServerProcess(folder, "-q") as server:
        server.submit(layered(1000, 100))
        client = server.call("POST", "/v1/clients", {"name": "st"}).words["client"]
        command = [found, "run", f"{server.url}/v1/openapi.json", "-H", f"Eligo-Client: {client}",
                   "--max-examples", str(examples), "--exclude-path", "/v1/drain",  # after which /ready says 503, rightly
                   "--checks", "not_a_server_error", "--seed", "1", "--request-timeout", "65",
                   "--phases", "examples,coverage,fuzzing", "--no-color"]  # fmt: skip
        for workers in ("4", "1"):
            code, out = _played([*command, "--workers", workers], folder, seconds)
            if MISPARSED not in out:
                break
        assert code == 0, out[-4000:]
        refused_soundly(server, Counter())
        assert server.answers()
    cases = re.search(r"([\d,]+) generated", out)
    what = ("15", "schemathesis on /v1/openapi.json", f"{cases[1] if cases else 'some'} cases")
    return line(what, began, "no server error, no traceback")


def strict_json(folder: Path) -> Line:
    """JSON that parsers differ about."""
    began, answers = time.monotonic(), dict[str, int]()
    bad = {
        "depth 100,000": b'{"results": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "depth 100,000 where nobody looks": b'{"results": [], "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        "5,000 digits": b'{"results": [{"lease": "a", "outcome": "done", "code": ' + b"9" * 5000 + b"}]}",
        "NaN": b'{"results": [{"lease": "a", "outcome": "done", "seconds": NaN}]}',
        "infinite": b'{"results": [{"lease": "a", "outcome": "done", "seconds": 1e999}]}',
        "twice the same key": b'{"results": [], "results": []}',
        "twice, inside": b'{"results": [{"lease": "a", "lease": "b", "outcome": "done"}]}',
        "half a character": b'{"results": [{"lease": "a", "outcome": "done", "tail": "\\ud800"}]}',
        "not UTF-8": b'{"results": [{"lease": "a", "outcome": "done", "tail": "\xff"}]}',
        "more after it": b'{"results": []} {}',
    }  # fmt: skip
    with ServerProcess(folder, "-q") as server:
        who = {"Eligo-Client": server.call("POST", "/v1/clients", {"name": "x"}).words["client"]}
        for case, body in bad.items():
            answers[case] = server.call("POST", "/v1/deliver", body, who).status
        refused_soundly(server, Counter(answers.values()))
    assert {case: code for case, code in answers.items() if code != 400} == {}
    what = ("16", "JSON: " + ", ".join(bad), f"{len(bad)} bodies")
    return line(what, began, "each refused with 400")


# Workflows of strangers


def bombs(folder: Path) -> Line:
    """Workflows that grow when they are read, or make no sense."""
    began = time.monotonic()
    lol = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    alias = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
    )
    cycle = {"tasks": [{"name": "a", "run": "x", "after": ["b"]}, {"name": "b", "run": "x", "after": ["a"]}]}
    flows = {
        "XML bomb": ("dax", f'<!DOCTYPE adag [<!ENTITY l0 "lol">{lol}]><adag><job id="a" name="&l9;"/></adag>'),
        "XML from a file": (
            "dax",
            '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><adag><job id="a" name="&x;"/></adag>',
        ),
        "YAML bomb": ("yaml", alias + "tasks: *a9\n"),
        "YAML object": ("yaml", "tasks: !!python/object/apply:os.system ['true']\n"),
        "JSON depth": ("json", '{"tasks": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        "cycle": ("json", json.dumps(cycle)),
        "dangling": ("json", json.dumps({"tasks": [{"name": "a", "run": "x", "after": ["zz"]}]})),
        "zip": ("json", "PK\x03\x04" + "x" * 1000),
    }
    slowest, sentences = 0.0, dict[str, str]()
    with ServerProcess(folder, "-q") as server:
        server.call("POST", "/v1/workflows?format=json", b"{}")  # which starts the process that reads them
        before = server.memory()
        for case, (format, text) in flows.items():
            sent = time.monotonic()
            reply = server.call("POST", f"/v1/workflows?format={format}", text.encode())
            slowest = max(slowest, time.monotonic() - sent)
            assert reply.status in {400, 422}, (case, reply)
            sentences[case] = reply.words["error"]
        grown = server.memory() - before
        refused_soundly(server, Counter())
    assert slowest < 2.0
    assert grown < 100 * MEGABYTE
    assert "a" in sentences["cycle"]
    what = ("24, 27", f"workflows submitted: {', '.join(flows)}", f"{len(flows)} files")
    return line(what, began, f"each refused, at most {slowest:.2f} s, memory grew by {grown / MEGABYTE:.0f} MiB")


HOSTILE = ("../../evil", "/tmp/eligo-evil", "a/../../evil", "evil\x00x", "CON", "x" * 4096, "\u202eevil", "~/evil", "a\nb",
           "-rf",
           ".", "..", "", "$(touch evil)", "`touch evil`", "a;touch evil", "a\\..\\..\\evil", "é" * 200)  # fmt: skip


def names(folder: Path, work: Sequence[str] = ("--idle-exit", "1")) -> Line:
    """Names of tasks and files that would like to be something else, through a server and a real client."""
    began, replies = time.monotonic(), dict[str, Reply]()
    with ServerProcess(folder, "-q") as server:
        for i, name in enumerate(HOSTILE):
            for place, task in enumerate(({"name": name, "run": "true"},
                                          {"name": "a", "run": "echo x > out", "outputs": [name]},
                                          {"name": "a", "run": "true", "inputs": [name]})):  # fmt: skip
                reply = server.call("POST", f"/v1/workflows?format=json&name=n{i}-{place}&retries=0", {"tasks": [task]})
                assert reply.status in {201, 400, 422}, (name, reply)
                replies[f"{i} {place}"] = reply
                if place == 2 and reply.status == 201:
                    _provide(server, reply.words, name)
        with worker(server, folder / "w", *work) as client:
            assert client.wait(60) == 0, (folder / "w.log").read_text()
        refused_soundly(server, Counter(one.status for one in replies.values()))
    outside = [
        path for path in (*folder.rglob("*evil*"), *Path("/tmp").glob("*eligo-evil*")) if "scratch" not in path.parts
    ]
    assert outside == []
    taken = sum(reply.status == 201 for reply in replies.values())
    what = ("25, 26", "hostile names of tasks, inputs and outputs, with a real client", f"{len(replies)} workflows")
    return line(what, began, f"{taken} served, {len(replies) - taken} refused; nothing outside the client's folder")


def _provide(server: ServerProcess, words: dict[str, object], name: str) -> None:
    """Upload a file, and say that it is this input."""
    hash = sha256(b"evil").hexdigest()
    assert server.call("PUT", f"/v1/files/{hash}", b"evil").status in {200, 201}
    told = server.call(
        "POST", f"/v1/workflows/{words['workflow']}/inputs", {"files": {name: {"sha256": hash, "size": 4}}}
    )
    assert told.status in {200, 400, 422}, told


def broken_uploads(folder: Path) -> Line:
    """Files that are cut off, are not what their hash says, or never came, with a result that says they did."""
    began, answers = time.monotonic(), list[str]()
    good = sha256(b"good").hexdigest()
    with ServerProcess(folder, "-q") as server:
        flow = {"tasks": [{"name": "a", "run": "true", "outputs": ["out"]}]}
        workflow = server.call("POST", "/v1/workflows?format=json&retries=9", flow).words["workflow"]
        who = {"Eligo-Client": server.call("POST", "/v1/clients", {"name": "x"}).words["client"]}
        assert server.call("PUT", f"/v1/files/{good}", b"evil", who).status == 422
        assert server.call("PUT", f"/v1/files/{good}", b"go", {**who, "Content-Range": "bytes 0-1/4"}).status < 300
        for outputs in ({}, {"out": {"sha256": good, "size": 4}}):
            answers += _brought(server, who, outputs)
        assert server.state(workflow)["counts"]["done"] == 0
        assert server.call("PUT", f"/v1/files/{good}", b"od", {**who, "Content-Range": "bytes 2-3/4"}).status < 300
        answers += _brought(server, who, {"out": {"sha256": good, "size": 4}})
        assert server.state(workflow)["state"] == "done"
    assert answers == ["failed", "failed", "accepted"]
    what = ("30", "files cut off, of another hash, or never sent", "1 task, 1 client")
    return line(what, began, "not done before the whole file was there; the upload went on where it ended")


def _brought(server: ServerProcess, who: dict[str, str], outputs: object) -> list[str]:
    """What is said to a result with these files, of whatever is handed out next."""
    until = time.monotonic() + 20
    while not (grants := server.call("POST", "/v1/request", {"wait": 1.0}, who).words["grants"]):
        assert time.monotonic() < until
    result = {"lease": grants[0]["tasks"][0]["lease"], "outcome": "done", "outputs": outputs}
    answers: list[str] = server.call("POST", "/v1/deliver", {"results": [result]}, who).words["answers"]
    return answers

"""A small real server that speaks the client's protocol, loses what it is told to lose, and can die and come back."""

import hashlib
import json
import random
import re
import socket
import ssl
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

MOST_WAIT = 5.0  # seconds that a request is held, whatever the client wishes


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class StandIn:
    """What it was asked is in `log`, what was delivered in `results`; `faults` has what happens next on a path."""

    def __init__(self, lease: float = 60.0, token: str | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.lease, self.token, self.tls, self.port = lease, token, tls, 0
        self.chance, self.random = 0.0, random.Random(7)
        self.lock = threading.Condition()
        self.grants = deque[list[dict[str, Any]]]()
        self.leases = dict[str, str]()  # to the task's name
        self.results = list[dict[str, Any]]()
        self.files, self.parts = dict[str, bytes](), dict[str, bytes]()
        self.replies = dict[str, tuple[int, Any]]()  # by idempotency key
        self.log = list[tuple[str, str, str]]()  # method, path, idempotency key
        self.requests, self.connections = list[dict[str, Any]](), 0
        self.faults = dict[str, deque[str]]()
        self.gone, self.renewed = set[str](), Counter[str]()
        self.stop_word, self.approved, self.wait, self.known = False, True, 0.0, set[str]()
        self.open = set[socket.socket]()
        self.server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.die()

    def start(self) -> None:
        """Listen, on the same port as before."""
        world = self

        class Handler(_Handler):
            here = world

        self.server = _Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        if self.tls is not None:
            self.server.socket = self.tls.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def die(self) -> None:
        """Be gone at once, with all connections."""
        if self.server is not None:
            server, self.server = self.server, None
            server.shutdown()
            server.server_close()
            with self.lock:
                self.lock.notify_all()
            for connection in list(self.open):
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def grant(self, *tasks: dict[str, Any]) -> list[str]:
        """Have tasks handed out together; their leases."""
        with self.lock:
            self.grants.append(list(tasks))
            self.leases |= {task["lease"]: task["task"] for task in tasks}
            self.lock.notify_all()
        return [task["lease"] for task in tasks]

    def keep(self, data: bytes) -> dict[str, Any]:
        """Have a file to be fetched."""
        self.files[digest(data)] = data
        return {"sha256": digest(data), "size": len(data)}

    def result(self, task: str, seconds: float = 240.0) -> dict[str, Any]:
        """The last result of a task, which is waited for."""
        until = time.monotonic() + seconds
        with self.lock:
            while not (found := [each for each in self.results if self.leases[each["lease"]] == task]):
                assert self.lock.wait(until - time.monotonic()), f"nothing came of {task}"
        return found[-1]

    def outcomes(self) -> dict[str, str]:
        return {self.leases[each["lease"]]: each["outcome"] for each in self.results}

    def content(self, result: dict[str, Any], name: str) -> bytes:
        return self.files[result["outputs"][name]["sha256"]]

    def fault(self, path: str, *what: str) -> None:
        self.faults.setdefault(path, deque()).extend(what)

    def count(self, method: str, path: str) -> int:
        return sum((method, path) == (each[0], each[1][: len(path)]) for each in self.log)

    def await_count(self, method: str, path: str, number: int, seconds: float = 240.0) -> None:
        until = time.monotonic() + seconds
        while self.count(method, path) < number:
            assert time.monotonic() < until, f"{method} {path} came {self.count(method, path)} times"
            time.sleep(0.01)

    def take(self, wait: float) -> dict[str, Any]:
        """What is granted, once there is something."""
        until = time.monotonic() + min(wait, MOST_WAIT)
        with self.lock:
            while not self.grants and not self.stop_word and self.server is not None:
                if (left := until - time.monotonic()) <= 0:
                    break
                self.lock.wait(left)
            alive = self.server is not None
            grants = (
                [{"workflow": "w-1", "why": "it is ready", "tasks": self.grants.popleft()}]
                if self.grants and alive
                else []
            )
        return {"grants": grants, "lease": self.lease, "wait": self.wait, "stop": self.stop_word and not grants}

    def post(self, path: str, words: dict[str, Any]) -> tuple[int, Any]:
        if path == "/v1/clients":
            client = f"c-{len(self.known) + 1}"
            self.known.add(client)
            return 201, {"client": client, "approved": self.approved, "token": None if self.approved else "own-token"}
        if path == "/v1/request":
            self.requests.append(words)
            return 200, self.take(words["wait"])
        if path == "/v1/renew":
            self.renewed.update(words["leases"])
            return 200, {"gone": [lease for lease in words["leases"] if lease in self.gone]}
        if path == "/v1/deliver":
            with self.lock:
                self.results += words["results"]
                self.requests += [words["ask"]] if words["ask"] else []
                self.lock.notify_all()
            nothing = {"grants": [], "lease": self.lease, "wait": 0.0, "stop": False}
            reply = self.take(0.0) if words["ask"] else nothing
            return 200, {"answers": ["accepted"] * len(words["results"]), **reply}
        return 404, {"error": "there is nothing here", "request": "r-1"}


class _Server(ThreadingHTTPServer):
    daemon_threads, allow_reuse_address = True, True

    def handle_error(self, *_: object) -> None:
        """Lost connections are the subject here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    here: StandIn

    def setup(self) -> None:
        super().setup()
        self.here.connections += 1
        self.here.open.add(self.connection)

    def finish(self) -> None:
        self.here.open.discard(self.connection)
        super().finish()

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True

    def reply(self, code: int, body: bytes, headers: Sequence[tuple[str, str]] = ()) -> None:
        self.send_response(code)
        for name, word in (*headers, ("Eligo-Request", "r-1"), ("Content-Length", str(len(body)))):
            self.send_header(name, word)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def next_fault(self) -> str:
        self.here.log.append((self.command, self.path, self.headers.get("Idempotency-Key", "")))
        waiting = next((faults for path, faults in self.here.faults.items() if self.path.startswith(path)), None)
        if self.here.random.random() < self.here.chance:
            return self.here.random.choice(["lose request", "lose reply"])
        return waiting.popleft() if waiting else ""

    def lose(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def refused(self) -> bool:
        token, given = self.here.token, self.headers.get("Authorization")
        if token is not None and given not in {f"Bearer {token}", "Bearer own-token"}:
            self.reply(401, b'{"error": "who are you?", "request": "r-1"}')
        elif token is None and self.path != "/v1/clients" and self.headers.get("Eligo-Client") not in self.here.known:
            self.reply(401, b'{"error": "nobody knows this client", "request": "r-1"}')
        else:
            return False
        return True

    def do_POST(self) -> None:
        body, fault = self.rfile.read(int(self.headers["Content-Length"])), self.next_fault()
        if fault == "lose request":
            self.lose()
            return
        if fault in {"503", "429"}:
            self.reply(int(fault), b'{"error": "busy", "request": "r-1"}', [("Retry-After", "0.2")])
            return
        if fault.startswith("say "):
            self.reply(200, fault[4:].encode())
            return
        if fault.startswith("go to "):
            self.reply(307, b"", [("Location", fault[6:] + self.path)])
            return
        if self.refused():
            return
        key = self.headers["Idempotency-Key"]
        assert re.fullmatch("[A-Za-z0-9_-]{1,64}", key)
        if key not in self.here.replies:
            self.here.replies[key] = self.here.post(self.path, json.loads(body))
        if fault == "lose reply" or self.here.server is None:
            self.lose()
            return
        code, words = self.here.replies[key]
        self.reply(code, json.dumps(words).encode())

    def do_HEAD(self) -> None:
        self.next_fault()
        name = self.path.rpartition("/")[2]
        if name in self.here.files:
            self.reply(200, self.here.files[name])
        else:
            self.reply(404, b"", [("Eligo-Offset", str(len(self.here.parts.get(name, b""))))])

    def do_GET(self) -> None:
        fault, name = self.next_fault(), self.path.rpartition("/")[2]
        if self.path.startswith("/v1/clients/"):
            self.reply(200, json.dumps({"approved": self.here.approved}).encode())
            return
        data = self.here.files.get(name)
        if fault.startswith("go to "):
            self.reply(307, b"", [("Location", fault[6:] + self.path)])
            return
        if data is None:
            self.reply(404, b'{"error": "there is no such file", "request": "r-1"}')
            return
        first = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        data = data if fault != "wrong" else bytes(len(data))
        if fault == "cut":
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2])
            self.wfile.flush()
            self.lose()
            return
        self.reply(206 if first else 200, data[first:])

    def do_PUT(self) -> None:
        fault, name = self.next_fault(), self.path.rpartition("/")[2]
        length = int(self.headers["Content-Length"])
        first, total = 0, length
        if told := self.headers.get("Content-Range"):
            first, _, total = (int(word) for word in re.findall("[0-9]+", told))
        if fault == "413":  # without reading what comes
            self.reply(413, b'{"error": "that is too large", "request": "r-1"}')
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.rfile.read(length)
            self.close_connection = True
            return
        if fault == "drop":
            self.lose()
            return
        there = self.here.parts.get(name, b"")
        if first != len(there):
            self.rfile.read(length)
            self.reply(409, b'{"error": "go on from elsewhere", "request": "r-1"}')
            return
        self.here.parts[name] = there = there + self.rfile.read(length // 2 if fault == "cut" else length)
        if fault == "cut":
            self.lose()
            return
        if len(there) == total:
            del self.here.parts[name]
            if digest(there) != name:
                self.reply(422, b'{"error": "that does not match its hash", "request": "r-1"}')
                return
            self.here.files[name] = there
        self.reply(201, b"{}")


def task(name: str, command: str | list[str], **more: Any) -> dict[str, Any]:
    """A task as the server hands it out."""
    usual = {"attempt": 1, "environment": {}, "timeout": 20.0, "cores": 1, "memory": None, "inputs": {}}
    lease = f"w-1.{name}.{digest(name.encode())[:8]}"
    told: dict[str, Any] = {"outputs": [], "inside": [], "signature": None}
    return {"lease": lease, "task": name, "command": command, **usual, **told, **more}


def certificate(folder: Path) -> ssl.SSLContext:
    """What a server of this machine shows; the certificate is in the folder."""
    now, name = datetime.now(UTC), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "eligo")])
    key = Ed25519PrivateKey.generate()
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
    form = serialization.Encoding.PEM
    private = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key").write_bytes(private)
    (folder / "ca").write_bytes(made.sign(key, None).public_bytes(form))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca", folder / "key")
    return context

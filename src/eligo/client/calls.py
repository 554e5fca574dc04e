"""Calls to the server: a persistent connection per thread, with retries while the server does not respond."""

import http.client
import json
import random
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from eligo.errors import EligoError, InputError, shorten
from eligo.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
PATIENCE = 30.0  # seconds until a silent server counts as unreachable
FIRST_WAIT, LONGEST_WAIT = 0.25, 30.0  # maximum seconds between two attempts, at first and finally
LONGEST_TOLD_WAIT = 300.0  # longest pause in seconds that the server can request
SLICE = 0.1  # seconds between two checks whether to give up
LARGEST_REPLY = 64 * 2**20
BUSY = frozenset({429, 503})


class ServerAwayError(EligoError):
    """The server could not be reached, and the caller gave up."""


class ServerRefusedError(EligoError):
    """The server refused a request; `code` is the HTTP status."""

    def __init__(self, code: int, why: str) -> None:
        self.code, self.why = code, why
        #: the argument that would help: see `InputError`
        self.remedy = "token" if code in {401, 403} else None
        status = f" (HTTP {code})" if code else ""
        super().__init__(f"the server refused the request: {shorten(why, 300)}{status}")


class Outgoing(NamedTuple):
    """One request."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = {}
    #: seconds until a silent server counts as unreachable
    patience: float = PATIENCE


class Replied(NamedTuple):
    """The server's answer."""

    code: int
    headers: http.client.HTTPMessage | Mapping[str, str]
    body: bytes

    def error(self) -> ServerRefusedError:
        """The error for a refused request."""
        try:
            return ServerRefusedError(self.code, str(json.loads(self.body)["error"]))
        except (ValueError, KeyError, TypeError):
            return ServerRefusedError(self.code, http.client.responses.get(self.code, "no reason given"))

    def wait(self) -> float | None:
        """The pause that the server requests, in seconds; None if it requests none."""
        try:
            return min(max(float(self.headers.get("Retry-After", "")), 0.0), LONGEST_TOLD_WAIT)
        except ValueError:
            return None


def never() -> bool:
    """False: for callers that never give up."""
    return False


class Calls:
    """Calls to one server, from any thread; *until* returns True when a caller should give up."""

    def __init__(self, url: str, ca: str | None, say: Callable[[str], None]) -> None:
        parts = urlsplit(url)
        self.url, self._prefix, self._say = url, parts.path.rstrip("/"), say
        self._host, self._port = str(parts.hostname), parts.port
        self._tls = _tls(ca) if parts.scheme == "https" else None
        #: headers of every call that identify the client
        self.identity: dict[str, str] = {}
        self._mine, self._lock = threading.local(), threading.Lock()
        self._polling = set[http.client.HTTPConnection]()
        self._cut, self._away = False, False
        #: whether the server has ever answered
        self.met = False

    def post(
        self,
        path: str,
        words: Mapping[str, Any],
        until: Callable[[], bool] = never,
        wait: float = 0.0,
        patience: float = PATIENCE,
    ) -> dict[str, Any]:
        """The server's answer to a POST; all attempts have the same idempotency key, so that it is executed once."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": secrets.token_urlsafe(24)}
        sending = Outgoing("POST", path, json.dumps(words).encode(), headers, patience + wait)

        def attempt() -> Replied:
            with self._interruptible(wait):
                return self.exchange(sending, read_reply)

        return reply_object(self.insist(attempt, until))

    def get(self, path: str, until: Callable[[], bool] = never) -> dict[str, Any]:
        """The server's answer to a GET."""
        return self.call(Outgoing("GET", path), until)

    def call(self, sending: Outgoing, until: Callable[[], bool] = never) -> dict[str, Any]:
        """The server's answer to a request."""
        return reply_object(self.insist(lambda: self.exchange(sending, read_reply), until))

    def insist(self, attempt: Callable[[], Replied], until: Callable[[], bool] = never) -> Replied:
        """Retry until the server answers and is not busy."""
        longest = FIRST_WAIT
        while True:
            try:
                replied = attempt()
                if replied.code < 500 and replied.code not in BUSY:
                    return replied
                why, retry_after = str(replied.error()), replied.wait()
            except (OSError, http.client.HTTPException) as error:
                why, retry_after = str(error) or type(error).__name__, None
                self._check_certificate(error)
            if until():
                raise ServerAwayError(f"cannot reach {self.url}: {why}")
            if longest > FIRST_WAIT:  # the first failure is not reported
                self._tell(True, f"cannot reach {self.url}, retrying: {shorten(why, 200)}")
            pause((retry_after or 0.0) + random.uniform(0, longest), until)  # noqa: S311 - no secret
            longest = min(2 * longest, LONGEST_WAIT)

    def exchange(self, sending: Outgoing, read: Callable[[http.client.HTTPResponse], T]) -> T:
        """Send one request and return what *read* makes of the response; a closed connection is reopened once."""
        connection = getattr(self._mine, "connection", None)
        try:
            return self._exchange(sending, read)
        except (ConnectionError, http.client.BadStatusLine):
            if connection is None or self._cut or sending.method == "PUT":  # a part of a file may have arrived partly
                raise
        return self._exchange(sending, read)

    def _exchange(self, sending: Outgoing, read: Callable[[http.client.HTTPResponse], T]) -> T:
        connection, ended = self._connection(), False
        try:
            connection.timeout = sending.patience
            if connection.sock is not None:
                connection.sock.settimeout(sending.patience)
            headers = {"User-Agent": f"eligo/{__version__}", **self.identity, **sending.headers}
            with suppress(BrokenPipeError, ConnectionResetError):  # a refusal may arrive before the whole body is sent
                connection.request(sending.method, self._prefix + sending.path, sending.body, headers)
            response = connection.getresponse()
            result = read(response)
            ended = response.isclosed()  # read to its end
        finally:
            if not ended:
                self.close()
        self.met = True
        self._tell(False, f"connected to {self.url} again")
        return result

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if connection is None:
            if self._tls is not None:
                connection = http.client.HTTPSConnection(self._host, self._port, timeout=PATIENCE, context=self._tls)
            else:
                connection = http.client.HTTPConnection(self._host, self._port, timeout=PATIENCE)
            self._mine.connection = connection
        return connection

    def close(self) -> None:
        """Close this thread's connection."""
        connection: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if connection is not None:
            self._mine.connection = None
            connection.close()

    @contextmanager
    def _interruptible(self, wait: float) -> "Iterator[None]":
        """Let `cut` interrupt a request that the server may hold."""
        if not wait:
            yield
            return
        connection = self._connection()
        with self._lock:
            if self._cut:
                raise ConnectionAbortedError("the client is stopping")
            self._polling.add(connection)
        try:
            yield
        finally:
            with self._lock:
                self._polling.discard(connection)

    def cut(self) -> None:
        """Interrupt the requests that the server holds, and start no others."""
        with self._lock:
            self._cut = True
            for connection in self._polling:
                if connection.sock is not None:
                    with suppress(OSError):
                        socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)

    def _check_certificate(self, error: Exception) -> None:
        """Fail on an untrusted certificate at the first contact, since retrying does not help."""
        if isinstance(error, ssl.SSLCertVerificationError) and not self.met:
            raise InputError(f"the certificate of {self.url} is not trusted: {error.verify_message}").cured_by("ca")

    def _tell(self, away: bool, message: str) -> None:
        """Tell the user that the server is away, or there again."""
        with self._lock:
            was_away, self._away = self._away, away
        if was_away != away:
            self._say(message)


def read_reply(response: http.client.HTTPResponse) -> Replied:
    """A response with its complete body; raises if that is too large."""
    body = response.read(LARGEST_REPLY)
    if not response.isclosed() and response.read(1):
        raise http.client.HTTPException("the reply is too large")
    return Replied(response.status, response.headers, body)


def reply_object(replied: Replied) -> dict[str, Any]:
    """The JSON object in a reply."""
    if replied.code >= 300:
        raise replied.error()
    try:
        words = json.loads(replied.body)
    except (ValueError, RecursionError):
        words = None
    if not isinstance(words, dict):
        why = "the answer is not a JSON object (check that the URL is that of an eligo server)"
        raise ServerRefusedError(replied.code, why)
    return words


def _tls(ca: str | None) -> ssl.SSLContext:
    """The TLS settings, with the certificates to trust."""
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{ca}: cannot read certificates: {error.strerror or error}") from None


def pause(seconds: float, until: Callable[[], bool]) -> None:
    """Wait this many seconds, or until *until* returns True."""
    end = time.monotonic() + seconds
    while (remaining := end - time.monotonic()) > 0 and not until():
        time.sleep(min(remaining, SLICE))

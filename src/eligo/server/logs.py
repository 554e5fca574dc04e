"""The server's log: one JSON object per line, with time, level, event and fields; never a token, a body or a query."""

import json
import logging
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from eligo.errors import InputError
from eligo.server.rules.served import ENDED
from eligo.stores.database import make_private
from eligo.stores.service import Changes

LOGGER = logging.getLogger("eligo.server")
encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


class JsonLines(logging.Formatter):
    """Formats each record as one line of JSON.

    >>> record = logging.makeLogRecord({"msg": "client_enrolled", "levelname": "INFO", "created": 0.0, **event(client="c-1")})
    >>> JsonLines().format(record)
    '{"time":"1970-01-01T00:00:00.000Z","level":"info","event":"client_enrolled","client":"c-1"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record; one without an event of its own is an "error" or a "message"."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        words = {"time": f"{time[:-6]}Z", "level": record.levelname.lower(), **_fields(record)}
        if record.exc_info:
            words["traceback"] = self.formatException(record.exc_info)
        return encode(words)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    name = getattr(record, "event", "error" if record.exc_info else "message")
    fields: dict[str, Any] = getattr(record, "fields", {})
    about = {"event": record.msg} if name is None else {"event": name, "message": record.getMessage()}
    return {**about, **fields}


def event(name: str | None = None, /, **fields: Any) -> dict[str, Any]:
    """The `extra` of a record: its fields, and the event's name if the message is a sentence."""
    return {"event": name, "fields": fields}


def emit(name: str, logger: logging.Logger = LOGGER, /, **fields: Any) -> None:
    """Log an event at level INFO; unlike `Logger.info`, this does not search the stack for its caller."""
    if logger.isEnabledFor(logging.INFO):
        about = {"name": logger.name, "levelno": logging.INFO, "levelname": "INFO", "msg": name, **event(**fields)}
        logger.handle(logging.makeLogRecord(about))


def emit_changes(changes: Changes) -> None:
    """Log the changes of interest to operators before they are written to the store."""
    if not LOGGER.isEnabledFor(logging.INFO):
        return
    for row in changes.workflows:
        emit("workflow_submitted", workflow=row.id, name=row.name, owner=row.owner, policy=row.policy)
    for workflow, state in changes.states:
        emit("workflow_ended" if state in ENDED else "workflow_state", workflow=workflow, state=state)
    for workflow, count in Counter(row[0] for row in changes.losses).items():
        emit("leases_expired", workflow=workflow, count=count)
    for workflow, count in Counter(row[0] for row in changes.retried).items():
        emit("tasks_retried", workflow=workflow, count=count)
    for client, approved in changes.approvals:
        emit("client_approved" if approved else "client_revoked", client=client)
    for token in changes.tokens:
        fields = {"name": token.name, "scopes": token.scopes, "client": token.client}
        emit("token_issued" if token.revoked is None else "token_revoked", **fields)


def log_unavailable(workflow: str, reason: str) -> None:
    """Log that a workflow could not be restored."""
    extra = event("workflow_unavailable", workflow=workflow, reason=reason)
    LOGGER.error("%s cannot be served: %s", workflow, reason, extra=extra)


def log_lines(lines: Iterable[str]) -> None:
    """Log lines that are otherwise written to standard error."""
    for line in lines:
        LOGGER.info("%s", line)


def log_to(path: str) -> None:
    """Write the log to a file; "-" is standard error."""
    try:
        if path != "-":
            make_private(path)
        handler = logging.StreamHandler() if path == "-" else logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot write the log: {error.strerror}") from None
    handler.setFormatter(JsonLines())
    for logger in (LOGGER, logging.getLogger("asyncio")):
        logger.addHandler(handler)
        logger.propagate = False
    LOGGER.setLevel(logging.INFO)

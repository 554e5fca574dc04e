"""The log of a real server: every line is one JSON object, what an operator asks about is there, and no secret is."""

import json
import logging
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from eligo.server.logs import JsonLines, event
from server_faults import ServerProcess
from test_server_security import ask, bearer, client, token

FLOW = {"tasks": [{"name": "a", "run": "true"}, {"name": "b", "run": "true"}]}
LEASE = ("--lease", "0.5")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def fields(log: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [line for line in log if line["event"] == event]


def await_event(path: Path, event: str, count: int = 1) -> None:
    until = time.monotonic() + 60
    while len(fields(lines(path), event)) < count:
        assert time.monotonic() < until, path.read_text()
        time.sleep(0.05)


def test_events_of_a_servers_life_are_lines_of_json(tmp_path: Path) -> None:
    log = tmp_path / "events.log"
    with ServerProcess(tmp_path, "--approve", "-q", "--log", str(log), *LEASE) as server:
        operator = (tmp_path / "served.token").read_text().strip()
        admin = bearer(operator)
        working = client(server, admin)
        owner = token(server, admin, "submit", name="owner")
        assert server.call("POST", "/v1/workflows?files=false&secret=1", FLOW, owner).status == 400
        workflow = server.call("POST", "/v1/workflows?files=false&name=survey", FLOW, owner).words["workflow"]
        lease = ask(server, working).words["grants"][0]["tasks"][0]["lease"]
        await_event(log, "leases_expired")
        waiting = server.call("POST", "/v1/clients", {"name": "stranger"}).words["client"]
        assert server.call("POST", f"/v1/clients/{waiting}/approve", {}, admin).status == 200
        assert server.call("POST", f"/v1/clients/{waiting}/revoke", {}, admin).status == 200
        assert server.call("POST", f"/v1/workflows/{workflow}/cancel", {}, owner).status == 200
        assert server.stop(60)[0] == 0
    found = lines(log)
    assert all(datetime.fromisoformat(line["time"]).tzinfo and line["level"] == "info" for line in found)
    order = [line["event"] for line in found if line["event"].startswith("server")]
    assert order == ["server_started", "server_draining", "server_stopped"]
    assert fields(found, "server_started")[0]["address"] == server.url
    assert fields(found, "workflow_submitted")[0].items() >= {"name": "survey", "owner": "owner"}.items()
    assert fields(found, "workflow_ended")[0].items() >= {"workflow": workflow, "state": "cancelled"}.items()
    assert sum(line["count"] for line in fields(found, "leases_expired")) == 1
    assert [line["approved"] for line in fields(found, "client_enrolled")] == [True, False]
    assert [line["client"] for line in fields(found, "client_approved")] == [waiting]
    assert [line["client"] for line in fields(found, "client_revoked")] == [waiting]
    assert {"operator", "owner"} <= {line["name"] for line in fields(found, "token_issued")}
    text, tokens = (
        log.read_text(),
        [operator, *(who["Authorization"].removeprefix("Bearer ") for who in (working, owner))],
    )
    assert not any(secret in text for secret in (*tokens, lease.rpartition(".")[2], "secret", "files=false"))


def test_a_failure_is_one_line_with_its_traceback() -> None:
    try:
        raise ValueError('two\nlines and a "quote"')
    except ValueError:
        record = logging.makeLogRecord({"msg": "request %s failed", "args": ("7-1",), "levelname": "ERROR",
                                        "exc_info": sys.exc_info(), **event("error", request="7-1")})  # fmt: skip
    line = JsonLines().format(record)
    assert "\n" not in line
    words = json.loads(line)
    assert (words["level"], words["event"], words["request"], words["message"]) == (
        "error", "error", "7-1", "request 7-1 failed",
    )  # fmt: skip
    assert words["traceback"].splitlines()[-1] == 'lines and a "quote"'


def test_what_has_no_event_is_a_message_or_an_error() -> None:
    plain = logging.makeLogRecord({"msg": "now serving %s", "args": ("w-1",), "levelname": "INFO"})
    words = json.loads(JsonLines().format(plain))
    assert (words["event"], words["message"]) == ("message", "now serving w-1")

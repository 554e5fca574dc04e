"""Two real servers on one real PostgreSQL: who holds what, what is passed on, and what becomes of it where one dies."""

import json
import signal
import threading
import time
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from postgres_server import PostgresServer
from serving_programs import (
    LightClients,
    RefusedCallError,
    ServingProgram,
    Speaker,
    check_once,
    command,
    submit,
    two_servers,
    wait_for,
)

from eligo.stores.service import HELD

pytest_plugins = ["postgres_fixtures"]


@pytest.fixture
def where(postgres: PostgresServer) -> str:
    return postgres.new_database()


def holders(where: str) -> dict[str, str]:
    with psycopg.connect(where) as database:
        return dict(database.execute("SELECT workflow, address FROM holding WHERE until > now()").fetchall())


def test_everything_is_done_once_whoever_is_asked(where: str, tmp_path: Path) -> None:
    with two_servers(where, tmp_path) as (one, other):
        workflows = {submit(one, 300, 1): 300, submit(other, 300, 2): 300}
        assert list(holders(where).values()) == [one.url, other.url]
        clients = LightClients([one, other], 6)
        wait_for([one, other], list(workflows), 60)
        clients.stop()
    assert clients.answers["accepted"] == 600
    assert len(set(clients.leases)) == len(clients.leases)
    check_once(where, workflows, clients.accepted)


def test_a_call_is_answered_by_whoever_holds_its_workflow(where: str, tmp_path: Path) -> None:
    with two_servers(where, tmp_path) as (one, other):
        first, second = submit(one, 3, 1, "a"), submit(other, 3, 2, "b")
        assert submit(other, 3, 1, "a") == first
        listed = [[w["workflow"] for w in server.call("GET", "/v1/workflows")["workflows"]] for server in (one, other)]
        assert listed == [[second, first]] * 2
        client = one.call("POST", "/v1/clients", {"name": "x"})["client"]
        with closing(Speaker(other, client)) as speaker:
            key = "one-key"
            held = [_granted(speaker, {"wait": 5.0}, key), _granted(speaker, {"wait": 5.0})]
            assert {lease.partition(".")[0] for lease in held} == {first, second}
            assert _granted(speaker, {"wait": 5.0}, key) == held[0]
            assert speaker.call("POST", "/v1/renew", {"leases": [*held, f"{first}.9.x"]}) == {"gone": [f"{first}.9.x"]}
            results = [{"lease": lease, "outcome": "done"} for lease in (*held, f"{first}.9.x", "w-0.1.x")]
            answers = [speaker.call("POST", "/v1/deliver", {"results": results})["answers"] for _ in range(2)]
            assert answers == [["accepted", "accepted", "refused", "refused"]] * 2
        for server in (one, other):
            assert server.call("GET", f"/v1/workflows/{first}")["counts"]["done"] == 1
            assert len(server.call("GET", f"/v1/workflows/{first}/tasks")["tasks"]) == 3
        assert other.call("POST", f"/v1/workflows/{first}/cancel", {})["done"]
        assert [server.call("GET", f"/v1/workflows/{first}")["state"] for server in (one, other)] == ["cancelled"] * 2
        with pytest.raises(RefusedCallError, match="404"):
            other.call("GET", "/v1/workflows/w-00")


def _granted(speaker: Speaker, ask: dict[str, Any], key: str = "") -> str:
    headers = {"Idempotency_Key": key} if key else {}
    (grant,) = speaker.call("POST", "/v1/request", ask, **headers)["grants"]
    return str(grant["tasks"][0]["lease"])


def test_real_clients_and_owners_may_come_to_any_server(where: str, tmp_path: Path) -> None:
    flow = tmp_path / "flow.makeflow"
    flow.write_text("b: a\n\tsort a > b\nc: b\n\twc -l < b > c\n")
    (tmp_path / "a").write_text("2\n1\n")
    with two_servers(where, tmp_path / "files") as (one, other):
        working = command("work", other.url, "--folder", str(tmp_path / "client"), "--idle-exit", "20")
        with working, command("submit", one.url, str(flow), "--wait") as submitting:
            assert submitting.wait(60) == 0
        (told,) = other.call("GET", "/v1/workflows")["workflows"]
        assert (told["state"], told["counts"]["done"]) == ("done", 2)
    assert (tmp_path / "c").read_text().strip() == "2"


def test_a_workflow_is_watched_at_any_server(where: str, tmp_path: Path) -> None:
    with two_servers(where, tmp_path) as (one, other):
        workflow = submit(one, 40)
        with urllib.request.urlopen(f"{other.url}/v1/workflows/{workflow}/events", timeout=20) as stream:
            assert _view(stream)["counts"]["ready"] > 0
            clients = LightClients([one, other], 2)
            wait_for([one, other], [workflow], 60)
            while (shown := _view(stream))["state"] != "done":
                pass
            clients.stop()
        assert shown["counts"]["done"] == 40
        for server in (one, other):
            place = f"/v1/workflows/{workflow}"
            assert server.call("GET", f"{place}/view")["counts"]["done"] == 40
            assert server.call("GET", f"{place}/table?limit=5")["total"] == 40
            assert server.call("GET", f"{place}/gantt")["attempts"] == 40


def _view(stream: Any) -> dict[str, Any]:
    line = next(line for line in stream if line.startswith(b"data: "))
    return dict(json.loads(line[6:]))


def test_a_request_that_waits_gets_what_comes_elsewhere(where: str, tmp_path: Path) -> None:
    with two_servers(where, tmp_path) as (one, other):
        client = one.call("POST", "/v1/clients", {"name": "x"})["client"]
        late = threading.Timer(1.0, submit, (other, 1))
        late.start()
        with closing(Speaker(one, client)) as speaker:
            began = time.monotonic()
            assert _granted(speaker, {"wait": 15.0})
            assert time.monotonic() - began < 12
        late.join()


def test_a_server_that_ends_leaves_its_workflows_to_the_other(where: str, tmp_path: Path) -> None:
    with two_servers(where, tmp_path) as (one, other):
        workflow = submit(one, 50)
        one.signal(signal.SIGTERM)
        one.process.wait(20)
        _until_held(where, workflow, other, 5.0)
        clients = LightClients([other], 2)
        wait_for([other], [workflow], 30)
        clients.stop()
    check_once(where, {workflow: 50}, clients.accepted)


def _until_held(where: str, workflow: str, server: ServingProgram, seconds: float) -> None:
    end = time.monotonic() + seconds
    while holders(where).get(workflow) != server.url:
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_server_that_is_killed_is_followed_by_the_other(where: str, tmp_path: Path) -> None:
    with two_servers(where, tmp_path) as (one, other):
        workflows = {submit(one, 300, 1): 300, submit(other, 300, 2): 300}
        clients = LightClients([one, other], 4, pause=0.02)
        time.sleep(1.0)
        one.signal(signal.SIGKILL)
        acknowledged = len(clients.accepted)
        _until_held(where, next(iter(workflows)), other, HELD + 5)
        wait_for([other], list(workflows), 100)
        clients.stop()
    assert 0 < acknowledged < 600
    assert clients.refusals.keys() <= {503}
    check_once(where, workflows, clients.accepted)


def test_a_server_that_stood_still_writes_nothing_of_what_it_lost(where: str, tmp_path: Path) -> None:
    with two_servers(where, tmp_path) as (one, other):
        workflow = submit(one, 60)
        with closing(Speaker(one, patience=100)) as speaker:
            speaker.client = speaker.call("POST", "/v1/clients", {"name": "x"})["client"]
            lease = _granted(speaker, {})
            one.signal(signal.SIGSTOP)
            stale: list[Any] = []
            body = {"results": [{"lease": lease, "outcome": "done", "code": 0}]}
            late = threading.Thread(target=lambda: stale.append(_said(speaker, "/v1/deliver", body)))
            late.start()
            _until_held(where, workflow, other, HELD + 5)
            with closing(Speaker(other, speaker.client)) as elsewhere:
                assert _in_the_end(elsewhere, "/v1/deliver", body)["answers"] == ["accepted"]
            clients = LightClients([other, one], 3, pause=0.01)
            time.sleep(0.5)
            one.signal(signal.SIGCONT)
            late.join(20)
            assert stale == [503]
            wait_for([one, other], [workflow], 60)
            clients.stop()
            assert speaker.call("POST", "/v1/deliver", body)["answers"] == ["accepted"]
    assert lease not in clients.accepted
    check_once(where, {workflow: 60}, [*clients.accepted, lease])


def _in_the_end(speaker: Speaker, path: str, body: Any) -> Any:
    """What is answered once the server knows that it holds the workflow: until then it says to come again.

    A call may take ten seconds: it was passed on to the server that stands still.
    """
    end = time.monotonic() + 30
    while (answer := _said(speaker, path, body)) == 503 and time.monotonic() < end:
        time.sleep(0.1)
    return answer


def _said(speaker: Speaker, path: str, body: Any) -> Any:
    try:
        return speaker.call("POST", path, body)
    except RefusedCallError as error:
        return error.status


def test_postgresql_started_anew_in_the_middle(where: str, tmp_path: Path, postgres: PostgresServer) -> None:
    with two_servers(where, tmp_path) as (one, other):
        workflows = {submit(one, 300, 1): 300, submit(other, 300, 2): 300}
        clients = LightClients([one, other], 4, pause=0.01)
        for _ in range(2):
            time.sleep(0.7)
            postgres.stop(signal.SIGINT)
            time.sleep(1.5)
            postgres.start()
        wait_for([one, other], list(workflows), 60)
        clients.stop()
    assert clients.refusals.keys() == {503}
    check_once(where, workflows, clients.accepted)


def test_tokens_are_good_everywhere_and_no_longer_within_a_second(where: str, tmp_path: Path) -> None:
    with two_servers(where, tmp_path / "files", "--tokens") as (one, other):
        admin = {"Authorization": f"Bearer {(tmp_path / 'files.token').read_text().strip()}"}
        token = one.call("POST", "/v1/tokens", {"name": "n", "scopes": ["work", "read"]}, **admin)["token"]
        bearer = {"Authorization": f"Bearer {token}"}
        mine = one.call("POST", "/v1/clients", {"name": "x"}, **bearer)
        own = {"Authorization": f"Bearer {mine['token']}"}
        assert other.call("GET", "/v1/workflows", **bearer)["workflows"] == []
        assert other.call("POST", "/v1/request", {}, **own)["grants"] == []
        assert other.call("POST", "/v1/tokens/revoke", {"name": "n"}, **admin) == {"count": 2}
        one.call("POST", f"/v1/clients/{mine['client']}/revoke", {}, **admin)
        time.sleep(1.0)
        for server, headers in ((one, bearer), (other, bearer), (one, own), (other, own)):
            with pytest.raises(RefusedCallError, match="401"):
                server.call("GET", "/v1/workflows", **headers)

"""A quorum of owners on a real server: clients that enrolled with one token are one voice, and revoking takes all of them."""

from pathlib import Path

from server_faults import ServerProcess, kept

Header = dict[str, str]


def bearer(token: str) -> Header:
    return {"Authorization": f"Bearer {token}"}


def pool(server: ServerProcess, operator: Header, name: str) -> Header:
    """A new token of the scope work."""
    return bearer(server.call("POST", "/v1/tokens", {"name": name, "scopes": ["work"]}, operator).words["token"])


def enrolled(server: ServerProcess, token: Header) -> Header:
    return bearer(server.call("POST", "/v1/clients", {"name": "c"}, token).words["token"])


def bring(server: ServerProcess, client: Header, tail: str) -> list[str]:
    """What a client is told of the results of all that it gets at once."""
    grants = server.call("POST", "/v1/request", {"count": 8}, client).words["grants"]
    leases = [task["lease"] for grant in grants for task in grant["tasks"]]
    results = [{"lease": lease, "outcome": "done", "tail": tail} for lease in leases]
    answers: list[str] = server.call("POST", "/v1/deliver", {"results": results}, client).words["answers"]
    return answers


def submitted(server: ServerProcess, operator: Header, tasks: int) -> str:
    words = {"tasks": [{"name": f"t{i}", "run": "true"} for i in range(tasks)]}
    path = "/v1/workflows?format=json&copies=1&files=false&policy=fifo&quorum=3"
    told = server.call("POST", path, words, operator).words
    assert told["notes"][0].startswith("the quorum is 3, but only clients of 0 owners are connected")
    return str(told["workflow"])


def test_one_token_outvotes_nobody(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--tokens", "-q") as server:
        operator = bearer(next(tmp_path.glob("*.token")).read_text().strip())
        workflow = submitted(server, operator, 20)
        token = pool(server, operator, "pool")
        liars = [enrolled(server, token) for _ in range(8)]
        for _ in range(4):
            assert {answer for liar in liars for answer in bring(server, liar, "lie")} <= {"voted"}
        server.kill()
        server.start()
        for liar in liars:
            assert bring(server, liar, "lie") == []
        status = server.get(f"/v1/workflows/{workflow}", **operator).words
        assert status["counts"]["done"] == 0
        assert "only clients of 1 owner are connected" in status["notes"][0]
        honest = [enrolled(server, pool(server, operator, f"honest{i}")) for i in range(3)]
        for _ in range(40):
            for client in honest:
                bring(server, client, "right")
        attempts = server.get(f"/v1/workflows/{workflow}/attempts", **operator).words["attempts"]
        assert [one["tail"] for one in attempts if one["answer"] == "accepted"] == ["right"] * 20
        server.kill()
        assert set(kept(server.store, workflow).answers("accepted").values()) == {1}


def test_revoking_a_token_takes_its_clients_and_their_votes(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--tokens", "-q") as server:
        operator = bearer(next(tmp_path.glob("*.token")).read_text().strip())
        submitted(server, operator, 1)
        liars = [enrolled(server, pool(server, operator, "bad")) for _ in range(2)]  # two tokens of one name
        for liar in liars:
            assert bring(server, liar, "lie") == ["voted"]
        assert server.call("POST", "/v1/tokens/revoke", {"name": "bad"}, operator).words == {"count": 4}
        clients = server.get("/v1/clients", **operator).words["clients"]
        assert [one["approved"] for one in clients] == [False, False]
        server.kill()
        server.start()
        late = [enrolled(server, pool(server, operator, f"p{i}")) for i in range(3)]
        assert [bring(server, client, "lie") for client in late] == [["voted"], ["voted"], ["accepted"]]

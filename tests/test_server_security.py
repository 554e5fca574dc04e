"""Who is refused, by a real server with tokens: thieves, strangers, pages of other sites; and what a real client refuses."""

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from eligo.server.view.run_page import RunLookout
from running_cases import COMMAND, ran, written
from server_faults import Reply, ServerProcess, layered, worker

ONE = {"tasks": [{"name": "a", "run": "echo ran >> ran.txt"}]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One with tokens, where new clients may ask for approval."""
    with ServerProcess(tmp_path_factory.mktemp("served"), "--approve", "-q") as running:
        yield running


@pytest.fixture(scope="module")
def admin(server: ServerProcess) -> dict[str, str]:
    return bearer((server.folder / "served.token").read_text().strip())


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def token(server: ServerProcess, admin: Mapping[str, str], *scopes: str, **more: Any) -> dict[str, str]:
    reply = server.call("POST", "/v1/tokens", {"name": more.pop("name", "x"), "scopes": list(scopes), **more}, admin)
    assert reply.status == 201, reply
    return bearer(reply.words["token"])


def client(server: ServerProcess, admin: Mapping[str, str]) -> dict[str, str]:
    """The token of a new client that is let in."""
    told = server.call("POST", "/v1/clients", {"name": "one"}, token(server, admin, "work")).words
    assert told["approved"]
    return bearer(told["token"])


def ask(server: ServerProcess, who: Mapping[str, str], key: str = "") -> Reply:
    return server.call("POST", "/v1/request", {"count": 1}, {**who, **({"Idempotency-Key": key} if key else {})})


def test_without_a_token(server: ServerProcess) -> None:
    for method, path in (("GET", "/v1/workflows"), ("GET", "/metrics"), ("POST", "/v1/request"), ("POST", "/v1/workflows"),
                         ("GET", f"/v1/files/{'0' * 64}"), ("PUT", f"/v1/files/{'0' * 64}"),
                         ("HEAD", f"/v1/files/{'0' * 64}"), ("POST", "/v1/tokens"),
                         ("POST", "/v1/clients/c-1/approve")):  # fmt: skip
        assert server.call(method, path, b"" if method != "GET" else None).status == 401, path
    for wrong in ("Bearer nonsense", "Basic YTpi", "Bearer", "Bearer " + "x" * 5000, "bearer \xff"):
        assert server.get("/v1/workflows", Authorization=wrong).status == 401
    assert server.get("/health").status == 200


def test_a_stolen_token_is_worthless_once_it_is_revoked(server: ServerProcess, admin: dict[str, str]) -> None:
    stolen = token(server, admin, "read", name="stolen")
    assert server.get("/v1/workflows", **stolen).status == 200
    assert server.call("POST", "/v1/tokens/revoke", {"name": "stolen"}, admin).words == {"count": 1}
    assert server.get("/v1/workflows", **stolen).status == 401
    server.kill()
    server.start()
    assert server.get("/v1/workflows", **stolen).status == 401
    assert server.get("/v1/workflows", **admin).status == 200


def test_a_token_that_has_expired(server: ServerProcess, admin: dict[str, str]) -> None:
    brief = token(server, admin, "read", days=1.0 / 86_400)
    assert server.get("/v1/workflows", **brief).status == 200
    time.sleep(1.1)
    reply = server.get("/v1/workflows", **brief)
    assert reply.status == 401
    assert "expired" in reply.words["error"]


def test_a_token_of_the_wrong_scope(server: ServerProcess, admin: dict[str, str]) -> None:
    read, work = token(server, admin, "read"), client(server, admin)
    assert server.call("POST", "/v1/workflows", ONE, read).status == 403
    assert server.call("POST", "/v1/workflows", ONE, work).status == 403
    assert server.call("POST", "/v1/tokens", {"name": "x", "scopes": ["admin"]}, work).status == 403
    assert server.call("POST", "/v1/tokens/revoke", {"name": "operator"}, read).status == 403
    assert ask(server, read).status == 403
    assert server.call("PUT", f"/v1/files/{sha256(b'x').hexdigest()}", b"x", read).status == 403
    assert server.get(f"/v1/files/{'0' * 64}", **read).status == 403


def test_another_clients_lease(server: ServerProcess, admin: dict[str, str]) -> None:
    """It cannot be renewed, delivered or returned by anybody else, even by one who knows it."""
    one, two = client(server, admin), client(server, admin)
    assert server.call("POST", "/v1/workflows?files=false&format=json", ONE, admin).status == 201
    task = ask(server, one).words["grants"][0]["tasks"][0]
    lease = task["lease"]
    for outcome in ("done", "failed", "returned"):
        words = {"results": [{"lease": lease, "outcome": outcome}]}
        assert server.call("POST", "/v1/deliver", words, two).words["answers"] == ["refused"]
    assert server.call("POST", "/v1/renew", {"leases": [lease]}, two).words == {"gone": [lease]}
    guessed = [f"{lease.rpartition('.')[0]}.{secret}" for secret in ("", "0" * 16, "é" * 16, "\u0663")]
    results = [{"lease": wrong, "outcome": "done"} for wrong in guessed]
    assert server.call("POST", "/v1/deliver", {"results": results}, one).words["answers"] == ["refused"] * 4
    assert server.call("POST", "/v1/renew", {"leases": guessed}, one).words == {"gone": guessed}
    done = {"results": [{"lease": lease, "outcome": "done"}]}
    assert server.call("POST", "/v1/deliver", done, one).words["answers"] == ["accepted"]
    assert server.call("POST", "/v1/deliver", {"results": results}, one).words["answers"] == ["refused"] * 4


def test_a_replayed_request(server: ServerProcess, admin: dict[str, str]) -> None:
    """The same POST again has one effect; somebody else's key is no key to it."""
    one, two = client(server, admin), client(server, admin)
    flow = json.dumps({"tasks": layered(4, 4)}).encode()
    submits = [server.call("POST", "/v1/workflows?files=false&format=json", flow, {**admin, "Idempotency-Key": "s-1"})
               for _ in range(3)]  # fmt: skip
    assert len({reply.words["workflow"] for reply in submits}) == 1
    mine = [ask(server, one, "r-1").words["grants"][0]["tasks"] for _ in range(3)]
    assert mine[0] == mine[1] == mine[2]
    assert ask(server, two, "r-1").words["grants"][0]["tasks"] != mine[0]
    assert server.call("POST", "/v1/request", {"count": 1}, {**one, "Idempotency-Key": "a b"}).status == 400
    workflow = submits[0].words["workflow"]
    counts = server.get(f"/v1/workflows/{workflow}", **admin).words["counts"]
    assert (counts["running"], counts["ready"]) == (2, 2)
    assert server.call("POST", f"/v1/workflows/{workflow}/cancel", {}, admin).status == 200


def test_pages_of_other_sites(server: ServerProcess, admin: dict[str, str]) -> None:
    for method, path in (("POST", "/v1/workflows"), ("GET", "/v1/workflows"), ("DELETE", "/v1/workflows"),
                         ("PUT", "/v1/files/x"), ("OPTIONS", "/v1/workflows"), ("GET", "/health")):  # fmt: skip
        for page in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            reply = server.call(method, path, b"", {**admin, **page})
            assert reply.status == 403, (method, path, page)
            assert "access-control-allow-origin" not in reply.headers
    assert server.get("/v1/workflows", **admin, Origin=server.url).status == 200


def test_pages_of_the_same_machine_at_another_port(server: ServerProcess, admin: dict[str, str]) -> None:
    """To browsers they are of the same site: SameSite would not stop them."""
    for origin in (f"http://127.0.0.1:{server.port + 1}", "http://127.0.0.1", f"https://127.0.0.1:{server.port}"):
        page = {"Origin": origin, "Sec-Fetch-Site": "same-site", "Content-Type": "text/plain"}
        reply = server.call("POST", "/v1/workflows?format=json&files=false", ONE, {**admin, **page})
        assert reply.status == 403, origin


def test_the_page_behind_a_proxy_that_speaks_tls(server: ServerProcess, admin: dict[str, str]) -> None:
    """Its own page is of https, which the server behind does not know; the browser says that it is the same."""
    here = f"https://127.0.0.1:{server.port}"
    for site, code in (("same-origin", 200), ("same-site", 403), ("cross-site", 403)):
        page = {**admin, "Origin": here, "Sec-Fetch-Site": site}
        assert server.call("POST", "/v1/tokens/revoke", {"name": "nobody"}, page).status == code, site
    for origin in ("https://evil.example", "null", here + ".evil.example", f"https://x@127.0.0.1:{server.port}"):
        page = {**admin, "Origin": origin, "Sec-Fetch-Site": "same-origin"}
        assert server.call("POST", "/v1/tokens/revoke", {"name": "nobody"}, page).status == 403, origin


def test_a_link_on_another_site_leads_to_the_page_and_nowhere_else(
    server: ServerProcess, admin: dict[str, str]
) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert server.get("/", **link).status == server.get("/").status != 403
    assert server.get("/v1/workflows", **link, **admin).status == 403
    assert server.get("/", **{**link, "Sec-Fetch-Mode": "no-cors"}).status == 403
    assert server.call("POST", "/", b"", {**link, "Origin": "https://evil.example"}).status == 403


def test_a_policy_is_a_name_and_never_a_file_of_the_server(server: ServerProcess, admin: dict[str, str]) -> None:
    """A file of an order would be read with the server's rights, and its lines told in the error."""
    secret = Path(server.store).with_name("secret.txt")
    secret.write_text("root:x:0:0\n")
    flow = {"tasks": [{"name": "a", "run": "true"}]}
    for number, path in enumerate((str(secret), "/etc/passwd", "../secret.txt", "secret.txt", "/dev/zero")):
        address, key = f"/v1/workflows?policy={quote(path, safe='')}", {"Idempotency-Key": f"policy{number}"}
        reply = server.call("POST", address, flow, admin | key)
        assert reply.status == 422, path
        assert "root:x" not in str(reply.words)
        assert "unknown policy" in str(reply.words)


def test_a_clients_token_enrols_nobody_else(server: ServerProcess, admin: dict[str, str]) -> None:
    """One approved client could otherwise outvote all others, and outlive its own revocation."""
    reply = server.call("POST", "/v1/clients", {"name": "twin"}, client(server, admin))
    assert (reply.status, reply.words["error"][:39]) == (403, "a client's token cannot enrol another c")


def test_what_came_of_a_token_ends_with_it(server: ServerProcess, admin: dict[str, str]) -> None:
    pool = token(server, admin, "work", name="short-pool")
    mine = bearer(server.call("POST", "/v1/clients", {"name": "heir"}, pool).words["token"])
    assert ask(server, mine).status == 200
    listed = {one["name"]: one for one in server.get("/v1/tokens", **admin).words["tokens"]}
    assert listed["heir"]["parent"] == listed["short-pool"]["id"]
    assert server.call("POST", "/v1/tokens/revoke", {"name": "short-pool"}, admin).words == {"count": 2}
    assert {ask(server, who).status for who in (pool, mine)} == {401}
    assert not server.call("POST", "/v1/clients", {"name": "late"}, mine).words[
        "approved"
    ]  # it waits, as a stranger does


def test_somebody_can_always_operate_the_server(tmp_path: Path) -> None:
    """The last admin token is not revoked; where it has expired or is lost, the store's owner makes another."""
    with ServerProcess(tmp_path, "--tokens", "-q") as server:
        operator = bearer(next(tmp_path.glob("*.token")).read_text().strip())
        assert server.call("POST", "/v1/tokens/revoke", {"name": "operator"}, operator).status == 409
        server.kill()
        command = [*COMMAND, "token", str(server.store), "spare", "--scope", "admin"]
        spare = bearer(subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout.strip())
        server.start()
        assert server.call("POST", "/v1/tokens/revoke", {"name": "operator"}, spare).words == {"count": 1}
        assert server.get("/v1/tokens", **operator).status == 401
        assert len(server.get("/v1/tokens", **spare).words["tokens"]) == 2


def test_tokens_are_listed_as_a_tree(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--tokens", "-q") as server:
        operator = ["--token-file", str(next(tmp_path.glob("*.token")))]
        subprocess.run([*COMMAND, "token", server.url, "pool", *operator], check=True, capture_output=True, timeout=240)
        command = [*COMMAND, "token", server.url, "--list", *operator]
        lines = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout.splitlines()
        told = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True, timeout=240).stdout
    assert [line.split()[0] for line in lines] == ["name", "operator", "pool"]
    assert lines[2].startswith("  pool")
    assert [one["fault"] for one in json.loads(told)["tokens"]] == [None, None]


def test_no_cookie_is_set_or_heeded(server: ServerProcess, admin: dict[str, str]) -> None:
    """A browser sends nothing by itself that lets anybody in: the page puts its token into a header."""
    for path in ("/", "/page/page.js", "/health", "/v1/workflows", "/v1/nothing"):
        assert "set-cookie" not in server.get(path, **admin).headers, path
    made = server.call("POST", "/v1/tokens", {"name": "x", "scopes": ["read"]}, admin)
    assert "set-cookie" not in made.headers
    known = made.words["token"]
    for cookie in (known, f"token={known}", f"Authorization=Bearer {known}", f"eligo={known}; session={known}"):
        assert server.get("/v1/workflows", Cookie=cookie).status == 401, cookie
    assert server.get(f"/v1/workflows?token={known}&access_token={known}").status == 401
    assert server.get("/v1/workflows", **bearer(known)).status == 200


def test_the_page_runs_nothing_from_elsewhere_and_is_in_no_frame(server: ServerProcess) -> None:
    policy = server.get("/").headers["content-security-policy"]
    rules = dict(rule.strip().partition(" ")[::2] for rule in policy.split(";"))
    assert (rules["default-src"], rules["frame-ancestors"], rules["script-src"]) == ("'none'", "'none'", "'self'")
    assert "unsafe" not in policy


def test_the_page_of_a_run_is_for_its_own_site(tmp_path: Path) -> None:
    """As `eligo run --page` and `eligo page` show it, to whoever is on this machine."""
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    assert ran(flow) == 0

    async def codes() -> list[int]:
        app = RunLookout(tmp_path / "flow.yaml.run").app()
        here = {"host": "127.0.0.1:8000"}
        others = [
            {"origin": "https://evil.example"},
            {"origin": "http://127.0.0.1:9"},
            {"sec-fetch-site": "cross-site"},
        ]
        callers = [here, {**here, "origin": "http://127.0.0.1:8000"}, {"host": "evil.example"}]
        return [await answered(app, headers) for headers in (*callers, *({**here, **one} for one in others))]

    assert asyncio.run(codes()) == [200, 200, 421, 403, 403, 403]


async def answered(app: Any, headers: Mapping[str, str]) -> int:
    """The code of the answer to one look at the workflows."""
    said = list[Any]()

    async def nothing() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        said.append(message)

    scope = {
        "type": "http", "method": "GET", "path": "/v1/workflows", "raw_path": b"/v1/workflows", "query_string": b"",
        "scheme": "http", "headers": [(name.encode(), word.encode()) for name, word in headers.items()], "state": {},
    }  # fmt: skip
    await app(scope, nothing, send)
    return int(said[0]["status"])


def test_another_name_for_the_server(server: ServerProcess, admin: dict[str, str]) -> None:
    """As by a name of a stranger's that points here."""
    for host in (
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
        "localhost@evil",
    ):
        assert server.call("GET", "/v1/workflows", headers={**admin, "Host": host}).status in {400, 421}, host
    assert server.get("/v1/workflows", **admin, Host=f"LOCALHOST:{server.port}").status == 200


def test_enrolling_waits_for_approval(server: ServerProcess, admin: dict[str, str]) -> None:
    told = server.call("POST", "/v1/clients", {"name": "new"}).words
    waiting = bearer(told["token"])
    assert told["approved"] is False
    assert ask(server, waiting).status == 403
    assert server.call("POST", f"/v1/clients/{told['client']}/approve", {}, waiting).status == 403
    assert server.call("POST", f"/v1/clients/{told['client']}/approve", {}, admin).status == 200
    assert ask(server, waiting).status == 200
    assert server.get("/v1/workflows", **waiting).status == 403
    assert server.call("POST", f"/v1/clients/{told['client']}/revoke", {}, admin).status == 200
    assert ask(server, waiting).status == 401
    refused = server.call("POST", "/v1/clients", {"name": "bad"}).words
    assert server.call("POST", f"/v1/clients/{refused['client']}/revoke", {}, admin).status == 200
    assert ask(server, bearer(refused["token"])).status == 401


def test_file_names_that_lead_elsewhere(server: ServerProcess, admin: dict[str, str]) -> None:
    (server.folder / "secret").write_text("secret")
    for name in ("../secret", "..%2fsecret", "%2e%2e/secret", "/etc/passwd", "%2fetc%2fpasswd", "served.db", "0" * 63,
                 "Z" * 64, f"{'0' * 64}/../../../secret", "..\\secret", "%00", "A" * 64):  # fmt: skip
        for method in ("GET", "HEAD", "PUT"):
            reply = server.call(method, f"/v1/files/{name}", b"x" if method == "PUT" else None, admin)
            assert 400 <= reply.status < 500, (method, name, reply.status)
            assert b"secret" not in reply.body.replace(name.encode(), b"")
    wrong = server.call("PUT", f"/v1/files/{'0' * 64}", b"not that", admin)
    assert wrong.status == 422
    assert server.get(f"/v1/files/{'0' * 64}", **admin).status == 404


def test_nothing_secret_is_kept_or_told(server: ServerProcess, admin: dict[str, str]) -> None:
    known = admin["Authorization"].split()[1].encode()
    assert (server.folder / "served.token").stat().st_mode & 0o077 == 0
    server.stop()
    assert all(known not in path.read_bytes() for path in server.folder.glob("served.db*"))
    assert known.decode() not in server.log()
    server.start()


def test_a_clients_trust(tmp_path: Path) -> None:
    """A client that was told whom to trust runs what was signed by them, and nothing else."""
    for name in ("owner", "stranger"):
        subprocess.run([*COMMAND, "key", str(tmp_path / name)], check=True, capture_output=True, timeout=240)
    flow = tmp_path / "flow.json"
    flow.write_text(json.dumps({"tasks": [{"name": "a", "run": f"echo ran >> {tmp_path}/ran"}]}))
    with ServerProcess(tmp_path, "-q") as server:
        for number, sign in enumerate(([], ["--sign", "stranger"], ["--sign", "owner"])):
            key = [*sign[:1], *(str(tmp_path / name) for name in sign[1:])]
            command = [*COMMAND, "submit", server.url, str(flow), "--name", f"n{number}", "--retries", "0", *key]
            subprocess.run(command, check=True, capture_output=True, timeout=240)
        with worker(server, tmp_path / "w", "--trust", str(tmp_path / "owner.pub"), "--idle-exit", "1") as process:
            assert process.wait(60) == 0
        told = {one["name"][:2]: one for one in server.get("/v1/workflows").words["workflows"]}
    assert {name: one["state"] for name, one in told.items()} == {"n0": "running", "n1": "running", "n2": "done"}
    for name in ("n0", "n1"):
        assert (told[name]["failures"], told[name]["counts"]["ready"]) == ([], 1), "others may trust its owner"
        assert told[name]["notes"] == [
            "all connected clients refuse its tasks because they do not trust its signatures"
        ]
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_taken_server_cannot_change_a_signed_command(tmp_path: Path) -> None:
    """Whoever has the server's store changes what was signed: the client does not run it."""
    import sqlite3
    from contextlib import closing

    subprocess.run([*COMMAND, "key", str(tmp_path / "owner")], check=True, capture_output=True, timeout=240)
    flow = tmp_path / "flow.json"
    flow.write_text(json.dumps({"tasks": [{"name": name, "run": f"echo {name} >> {tmp_path}/ran"} for name in "ab"]}))
    with ServerProcess(tmp_path, "-q") as server:
        command = [*COMMAND, "submit", server.url, str(flow), "--retries", "0", "--sign", str(tmp_path / "owner")]
        subprocess.run(command, check=True, capture_output=True, timeout=240)
        server.kill()
        with closing(sqlite3.connect(server.store)) as database:  # b gets the signature of a
            database.execute("UPDATE signature SET signature = (SELECT signature FROM signature WHERE task = 'a')")
            database.commit()
        server.start()
        with worker(server, tmp_path / "w", "--trust", str(tmp_path / "owner.pub"), "--idle-exit", "1") as process:
            assert process.wait(60) == 0
    assert (tmp_path / "ran").read_text() == "a\n"

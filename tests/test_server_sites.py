"""Pages of other sites and other names for the server: every method with every origin, site, mode and host, by the rule."""

from collections.abc import Iterator
from itertools import product

import pytest

from server_faults import ServerProcess
from test_server_security import bearer

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
PATHS = ("/", "/v1/workflows", "/v1/files/" + "0" * 64, "/health", "/nothing")
SITES = (None, "none", "same-origin", "same-site", "cross-site", "nonsense")
MODES = (None, "navigate", "no-cors", "cors")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("served"), "--tokens", "-q") as running:
        yield running


def origins(server: ServerProcess) -> dict[str | None, str]:
    """What a browser may say, and whose that is: ours, ours behind a proxy that speaks TLS, or another's."""
    other = [
        "null",
        "https://evil.example",
        f"http://127.0.0.1:{server.port + 1}",
        "http://127.0.0.1",
        "http://localhost",
    ]
    other += [f"http://127.0.0.1:{server.port}.evil.example", f"http://x@127.0.0.1:{server.port}", "file://", "garbage"]
    ours = {None: "none", server.url: "own", f"https://127.0.0.1:{server.port}": "own by TLS"}
    return ours | dict.fromkeys(other, "other")


def allowed(path: str, whose: str, site: str | None, mode: str | None) -> bool:
    """The rule, said once more: only our own page calls, and only a link leads here from elsewhere, to the page itself."""
    if whose == "other" or (whose == "own by TLS" and site != "same-origin"):
        return False
    return site not in {"cross-site", "same-site"} or (path == "/" and mode == "navigate")


def test_only_our_own_page_is_answered(server: ServerProcess) -> None:
    admin = bearer((server.folder / "served.token").read_text().strip())
    wrong = []
    for method, path, (origin, whose), site, mode in product(METHODS, PATHS, origins(server).items(), SITES, MODES):
        if mode is not None and (site not in {"cross-site", "same-site"} or origin is not None):
            continue
        given = {"Origin": origin, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
        headers = admin | {name: value for name, value in given.items() if value is not None}
        reply = server.call(method, path, None, headers)
        good = (reply.status != 403) == allowed(path, whose, site, mode)
        if not good or "access-control-allow-origin" in {name.lower() for name in reply.headers}:
            wrong.append((method, path, origin, site, mode, reply.status))
    assert not wrong, wrong[:10]


@pytest.mark.parametrize("method", METHODS)
def test_by_another_name_nothing_is_answered(server: ServerProcess, method: str) -> None:
    """DNS rebinding: the attacker's own name leads to 127.0.0.1, and to the browser all is of one origin."""
    admin = bearer((server.folder / "served.token").read_text().strip())
    port, own = server.port, {"Sec-Fetch-Site": "same-origin"}
    names = {f"127.0.0.1:{port}": True, "localhost": True, f"LOCALHOST:{port}": True, f"[::1]:{port}": True,
             "evil.example": False, f"evil.example:{port}": False, "127.0.0.1.evil.example": False, "": False,
             f"127.0.0.1:{port}@evil.example": False, "127.0.0.1:x": False, "0.0.0.0": False, "127.1": False,
             "localhost.": False, "[::ffff:127.0.0.1]": False}  # fmt: skip
    for path, (name, good) in product(PATHS, names.items()):
        for more in ({}, own, own | {"Origin": f"http://{name}"}):
            reply = server.call(method, path, None, {**admin, **more, "Host": name})
            assert (reply.status != 421) == good, (path, name, more, reply)

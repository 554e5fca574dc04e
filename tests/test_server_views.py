"""What the page asks of a real server: one query for all, kept over restarts, for those who may look."""

import asyncio
import gzip
import json
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Generator, Iterator
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from eligo.client.options import token_for
from eligo.server.group_commit import Keeper
from eligo.server.http.refusals import RefusedError
from eligo.server.http.routes import ApiCall, Caller
from eligo.server.view import page_data
from eligo.server.view.page_data import PATHS
from fault_scenarios import Size
from page_truth import truth_shown
from running_cases import written
from serving_cases import got, posted, serving, told, worked, working

EVIL = "<script>alert(1)</script>"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    tasks: list[dict[str, Any]] = [{"name": f"fit_{i}", "run": "true"} for i in range(5)]
    tasks += [{"name": EVIL, "run": "echo no such file >&2; exit 3"}, {"name": "end", "run": "true", "after": [EVIL]}]
    return written(tmp_path, tasks)


def workflow_of(url: str) -> str:
    return str(got(f"{url}/v1/workflows")["workflows"][0]["workflow"])


def events(url: str, most: float = 10.0, token: str = "") -> Generator[dict[str, Any], None, None]:
    """What is told as it goes on."""
    headers = {"Authorization": f"Bearer {token or token_for(url)}"}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=most) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        for line in stream:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def test_what_came_of_a_workflow_is_seen_also_after_a_restart(small: Path, tmp_path: Path) -> None:
    with serving(tmp_path, str(small), "--no-files") as (url, _):
        place = f"{url}/v1/workflows/{workflow_of(url)}"
        first = got(f"{place}/view")
        assert (first["counts"]["ready"], first["state"], first["attempts"]) == (6, "running", 0)
        worked(tmp_path, url)
        before = _ended(place)
        table = got(f"{place}/table?search=fit&sort=task&limit=2&offset=1")
        assert (table["total"], [row[1] for row in table["rows"]]) == (5, ["fit_1", "fit_2"])
        bars = got(f"{place}/gantt")
        assert sum(bar[5] for bar in bars["bars"]) == bars["attempts"] == before["attempts"]
    with serving(tmp_path) as (url, _):
        place = f"{url}/v1/workflows/{workflow_of(url)}"
        after = got(f"{place}/view")
        for what in ("counts", "attempts", "failures", "state", "title", "began"):
            assert after[what] == before[what], what
        assert after["curve"]["lines"] == before["curve"]["lines"]


def _ended(place: str) -> dict[str, Any]:
    until = time.monotonic() + 60
    while (found := got(f"{place}/view"))["counts"]["running"] or found["counts"]["retrying"]:
        assert time.monotonic() < until
        time.sleep(0.1)
    return dict(found)


def test_a_failure_is_told_with_what_was_printed_and_can_be_tried_again(small: Path, tmp_path: Path) -> None:
    with serving(tmp_path) as (url, _):
        assert told("submit", url, str(small), "--no-files", "--retries", "0")[0] == 0
        place = f"{url}/v1/workflows/{workflow_of(url)}"
        worked(tmp_path, url)
        found = _ended(place)
        (cause,) = found["failures"]
        assert (cause["cause"], cause["tasks"], cause["tail"]) == ("exit code 3", [EVIL], ["no such file"])
        assert (found["counts"]["failed"], found["counts"]["blocked"], found["state"]) == (1, 1, "failed")
        rights = {right for right, holds in found["can"].items() if holds}
        assert rights == {"cancel", "retry", "approve"}
        one = got(f"{place}/task?name={quote(EVIL)}")
        assert one["log"] == ["no such file"]
        assert one["attempts"][0]["answer"] == "failed"
        assert posted(f"{place}/retry", {"tasks": [EVIL]}) == (200, {"count": 1})
        assert got(f"{place}/view")["state"] == "running"


def test_whoever_listens_is_told_what_changes(small: Path, tmp_path: Path) -> None:
    with serving(tmp_path, str(small), "--no-files") as (url, _):
        place = f"{url}/v1/workflows/{workflow_of(url)}"
        stream = events(f"{place}/events")
        assert next(stream)["counts"]["done"] == 0
        worked(tmp_path, url)
        began = time.monotonic()
        while next(stream)["counts"]["done"] < 5:
            assert time.monotonic() - began < 30
        stream.close()


def test_only_who_may_look_is_told(small: Path, tmp_path: Path) -> None:
    with serving(tmp_path, str(small), "--no-files", "--tokens") as (url, _):
        operator = (tmp_path / "s.token").read_text().strip()
        place = f"{url}/v1/workflows/" + str(got(f"{url}/v1/workflows", operator)["workflows"][0]["workflow"])
        reader = posted(f"{url}/v1/tokens", {"name": "eve", "scopes": ["read"]}, Authorization=f"Bearer {operator}")[1]
        for path in ("view", "events", "table", "task?name=end", "dag", "dag/states", "lineage?name=end", "gantt"):
            with pytest.raises(urllib.error.HTTPError) as refused:
                got(f"{place}/{path}", "")
            assert refused.value.code == 401
            refused.value.close()
        assert not any(got(f"{place}/view", reader["token"])["can"].values())
        assert got(f"{place}/view", operator)["can"]["cancel"]
        code, _ = posted(f"{place}/cancel", {}, Authorization=f"Bearer {reader['token']}")
        assert code == 403


def test_who_may_look_no_longer_is_told_nothing_more(small: Path, tmp_path: Path) -> None:
    with serving(tmp_path, str(small), "--no-files", "--tokens") as (url, _):
        operator = (tmp_path / "s.token").read_text().strip()
        place = f"{url}/v1/workflows/" + str(got(f"{url}/v1/workflows", operator)["workflows"][0]["workflow"])
        who = {"Authorization": f"Bearer {operator}"}
        reader = posted(f"{url}/v1/tokens", {"name": "eve", "scopes": ["read"]}, **who)[1]["token"]
        stream = events(f"{place}/events", token=reader)
        next(stream)
        assert posted(f"{url}/v1/tokens/revoke", {"name": "eve"}, "k2", **who)[1] == {"count": 1}
        assert len(list(stream)) <= 1


def test_the_end_is_seen_also_where_the_server_ends_with_it(small: Path, tmp_path: Path) -> None:
    path = written(tmp_path, [{"name": "a", "run": "sleep 2"}], "brief.yaml")
    with serving(tmp_path, str(path), "--no-files", "--until-done") as (url, _):
        stream = events(f"{url}/v1/workflows/{workflow_of(url)}/events", 30)
        next(stream)
        client = working(tmp_path, url, "ann")
        last = list(stream)[-1]
        client.communicate(timeout=240)
    assert (last["state"], last["counts"]["done"]) == ("done", 1)


def test_an_exit_code_that_no_process_has_is_refused(asked: str) -> None:
    server = asked.split("/v1/", maxsplit=1)[0]
    client = posted(f"{server}/v1/clients", {"name": "eve"})[1]["client"]
    got(f"{asked}/view")
    result = {"lease": "w.1.x", "outcome": "failed", "code": 2**31}
    code, _ = posted(f"{server}/v1/deliver", {"results": [result]}, "k9", Eligo_Client=client)
    assert code == 400


def test_what_cannot_be_taken_stops_the_server_before_anything_is_written_behind_it() -> None:
    written_down: list[Any] = []
    broken: list[BaseException] = []

    class Paper:
        def prepare(self, changes: Any) -> None:
            written_down.append(changes)

        def finish(self) -> None:
            pass

    def take() -> Any:
        raise OverflowError("too large")

    async def play() -> None:
        keeper = Keeper(Paper(), take, broken=broken.append)  # type: ignore[arg-type]
        for _ in range(2):
            with pytest.raises(RefusedError):
                await keeper.kept()
        with pytest.raises(RefusedError):
            keeper.check()
        keeper._thread.shutdown()

    asyncio.run(play())
    assert (len(broken), written_down) == (1, [])


@pytest.mark.parametrize(
    ("path", "code", "says"),
    [
        ("table?sort=colour", 422, "unknown column 'colour'"),
        ("table?state=asleep", 422, "unknown state 'asleep'"),
        ("table?limit=-3", 400, "limit must be a non-negative integer, got"),
        ("task?name=nobody", 422, "no task named 'nobody'"),
        ("lineage", 422, "no task named ''"),
        ("gantt?begin=soon", 400, "begin must be a number, got"),
        ("gantt?begin=nan", 422, "begin must be a time"),
    ],
)
def test_what_cannot_be_answered_is_told(asked: str, path: str, code: int, says: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        got(f"{asked}/{path}")
    with refused.value as reply:
        assert (reply.code, says in json.loads(reply.read())["error"]) == (code, True)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("asked")
    path = written(folder, [{"name": "a", "run": "true"}])
    with serving(folder, str(path), "--no-files", "--open") as (url, _):
        yield f"{url}/v1/workflows/{workflow_of(url)}"


def test_nothing_is_told_of_what_there_is_not(asked: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        got(f"{asked}x/view")
    assert refused.value.code == 404
    refused.value.close()


def test_the_page_and_its_stream_are_compressed_for_browsers(asked: str) -> None:
    """Each event can be read when it comes, and says what it says uncompressed."""
    accepts = {"Accept-Encoding": "gzip, br"}
    with urllib.request.urlopen(urllib.request.Request(f"{asked}/events", headers=accepts), timeout=10) as stream:
        assert stream.headers["content-encoding"] == "gzip"
        packer, text = zlib.decompressobj(31), b""
        while b"\n\n" not in text:
            text += packer.decompress(stream.read1())
    assert json.loads(text.split(b"data: ", 1)[1])["tasks"] == got(f"{asked}/view")["tasks"]
    if files("eligo.pages").joinpath("built", "page.js.gz").is_file():  # as the server's own process sees it
        server = asked.split("/v1/", maxsplit=1)[0]
        for path in PATHS:
            plain, zipped = (
                urllib.request.urlopen(urllib.request.Request(f"{server}{path}", headers=headers), timeout=10)
                for headers in ({}, accepts)
            )
            with plain, zipped:
                assert gzip.decompress(zipped.read()) == plain.read()
                assert (plain.headers["content-encoding"], zipped.headers["content-encoding"]) == (None, "gzip")


def test_the_page_comes_from_here_alone(asked: str) -> None:
    server = asked.split("/v1/", maxsplit=1)[0]
    try:
        with urllib.request.urlopen(f"{server}/", timeout=10) as reply:
            code, headers, body = reply.status, reply.headers, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            code, headers, body = error.code, error.headers, error.read()
    built = files("eligo.pages").joinpath("built", "page.js").is_file()  # as the server's own process sees it
    assert code == (200 if built else 404)
    assert built or b"make page" in body
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_what_is_shown_is_what_the_store_has(tmp_path: Path) -> None:
    """The long form is in tests/faults."""
    truth_shown(tmp_path, Size(tasks=600, clients=10, wide=50, nap=0.05, kills=2), (0.5, 1.5))


def test_one_viewer_leaves_places_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a token for each, half of the places are the most that one gets."""
    monkeypatch.setattr(page_data, "MOST_WATCHERS", 4)

    async def picture(call: ApiCall) -> bytes:
        return b"{}"

    async def watch(views: page_data.Views, name: str) -> Any:
        state = {"headers": {b"authorization": name.encode()}}
        scope = {"path": "/v1/workflows/w/events", "state": state}
        caller = Caller(name, frozenset({"read"}), token=name)
        events = await views.events(ApiCall(caller, "", {"workflow": "w"}, {}, None, b"", hung_up, scope))
        assert (await anext(events)).startswith(b"event: view")
        return events

    async def hung_up() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def run() -> None:
        source: Any = SimpleNamespace(closing=False, end=None)
        views = page_data.Views(source, lambda headers: Caller(headers[b"authorization"].decode(), frozenset({"read"})))
        views.answer = picture
        mine = [await watch(views, "ann") for _ in range(2)]
        with pytest.raises(RefusedError, match="too many viewers"):
            await watch(views, "ann")
        await watch(views, "bob")
        for events in mine:
            await events.aclose()
        await watch(views, "ann")

    asyncio.run(run())

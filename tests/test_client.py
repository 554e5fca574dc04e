"""The client against a real HTTP server that loses, cuts and dies: what is run, delivered and refused."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from client_server import StandIn, certificate, digest, task
from eligo.client.calls import ServerAwayError
from eligo.client.options import WorkOptions
from eligo.client.results import Tally
from eligo.client.worker import work
from eligo.engines.cgroups import Cgroup, groups
from eligo.errors import EligoError, InputError

MEGABYTE = 2**20


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as made:
        yield made


def options(server: StandIn, folder: Path, **more: Any) -> WorkOptions:
    return WorkOptions(
        server.url, **{"cores": 1, "folder": str(folder / "client"), "idle_exit": 0.0, "poll": 2.0, **more}
    )


def worked(server: StandIn, folder: Path, **more: Any) -> Tally:
    """What a client does of all that there is now."""
    return work(options(server, folder, **more), lambda text: None)


def test_a_task_is_run_and_delivered(server: StandIn, tmp_path: Path) -> None:
    server.grant(task("a", "echo out; echo err >&2; echo x > b.txt", outputs=["b.txt"]))
    tally = worked(server, tmp_path)
    result = server.result("a")
    assert (result["outcome"], result["code"], result["failure"], result["tail"]) == ("done", 0, None, "out\n\x1eerr\n")
    assert server.content(result, "b.txt") == b"x\n"
    assert result["seconds"] > 0
    assert (tally.done, tally.failed, tally.returned, tally.sent) == (1, 0, 0, 2)
    assert os.listdir(tmp_path / "client" / "owed") == os.listdir(tmp_path / "client" / "scratch") == []


def test_one_connection_a_thread_serves_many_tasks(server: StandIn, tmp_path: Path) -> None:
    for number in range(20):
        server.grant(task(f"t{number}", ["true"]))
    assert worked(server, tmp_path, idle_exit=0.1).done == 20
    assert server.connections <= 3
    assert server.count("POST", "/v1/request") <= 3, "the next request goes with the results of the last"


def test_strings_go_to_the_shell_and_lists_do_not(server: StandIn, tmp_path: Path) -> None:
    server.grant(task("shell", 'printf "%s" "$((1 + 1)) \'q\'" > o', outputs=["o"]))
    server.grant(task("list", ["sh", "-c", 'printf "%s|" "$@" > o', "sh", "$HOME; x", "a b"], outputs=["o"]))
    server.grant(task("stdin", "cat > o", outputs=["o"]))
    worked(server, tmp_path)
    assert server.content(server.result("shell"), "o") == b"2 'q'"
    assert server.content(server.result("list"), "o") == b"$HOME; x|a b|"
    assert server.content(server.result("stdin"), "o") == b""


def test_the_environment_is_small_and_has_no_secret(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s3cret")
    monkeypatch.setenv("LC_ALL", "C")
    signed = {"environment": {"MODE": "fast", "ELIGO_TASK": "other"}}
    server.grant(task("a", "env > o", outputs=["o"], environment={"EVIL": "1"}, signed=signed))
    worked(server, tmp_path)
    lines = server.content(server.result("a"), "o").decode().splitlines()
    found = dict(line.split("=", 1) for line in lines)
    assert (found["ELIGO_TASK"], found["ELIGO_WORKFLOW"]) == ("a", "w-1")
    assert (found["MODE"], found["LC_ALL"], found["ELIGO_ATTEMPT"]) == ("fast", "C", "1")
    assert found["HOME"] == found["TMPDIR"] == found["PWD"]
    assert not {"SECRET", "EVIL"} & set(found)


def test_a_failure_tells_its_code_and_last_words(server: StandIn, tmp_path: Path) -> None:
    server.grant(task("a", "seq 10000; exit 3"), task("b", "true"))
    server.grant(task("c", ["/no/such/program"]))
    tally = worked(server, tmp_path)
    result = server.result("a")
    assert (result["outcome"], result["code"], result["failure"]) == ("failed", 3, "exit code 3")
    assert len(result["tail"]) == 2000
    assert result["tail"].endswith("9999\n10000\n")
    assert server.outcomes() == {"a": "failed", "b": "returned", "c": "failed"}
    assert (tally.failed, tally.returned) == (2, 1)


def test_inputs_are_fetched_once_and_outputs_sent_by_hash(server: StandIn, tmp_path: Path) -> None:
    file = server.keep(b"x" * 100_000)
    for name in ("a", "b"):
        server.grant(
            task(name, "cat sub/in.txt in.txt > o", inputs={"sub/in.txt": file, "in.txt": file}, outputs=["o"])
        )
    tally = worked(server, tmp_path)
    assert server.content(server.result("b"), "o") == b"x" * 200_000
    assert server.count("GET", "/v1/files/") == 1
    assert server.count("PUT", "/v1/files/") == 1, "the second time the server has it"
    assert (tally.fetched, tally.sent, tally.saved) == (100_000, 200_000, 3 * 100_000 + 200_000)


def test_a_task_cannot_spoil_the_kept_files(server: StandIn, tmp_path: Path) -> None:
    file = server.keep(b"good")
    for name in ("a", "b"):
        server.grant(task(name, "cp in o; echo bad > in", inputs={"in": file}, outputs=["o"]))
    worked(server, tmp_path)
    assert server.content(server.result("b"), "o") == b"good"


def test_what_was_used_longest_ago_is_not_kept(server: StandIn, tmp_path: Path) -> None:
    for number in range(5):
        file = server.keep(bytes([number]) * 1000)
        server.grant(task(f"t{number}", ["true"], inputs={"in": file}))
    worked(server, tmp_path, cache=2500)
    kept = set(os.listdir(tmp_path / "client" / "files"))
    assert kept == {digest(bytes([number]) * 1000) for number in (3, 4)}


def test_an_upload_that_was_cut_goes_on_from_there(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eligo.client.transfers.PART", MEGABYTE)
    server.fault("/v1/files/", "", "", "cut")  # what is asked, the first part, the second
    server.grant(task("a", "head -c 3500000 /dev/urandom > o", outputs=["o"]))
    tally = worked(server, tmp_path)
    result = server.result("a")
    assert len(server.content(result, "o")) == result["outputs"]["o"]["size"] == 3_500_000
    assert tally.sent == 3_500_000 - MEGABYTE // 2, "the half part that was cut is not sent again"


@pytest.mark.parametrize(("fault", "why"), [("413", "that is too large"), ("drop", "times while sending a file")])
def test_a_server_that_takes_no_file_is_not_asked_for_ever(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, why: str
) -> None:
    monkeypatch.setattr("eligo.client.calls.LONGEST_WAIT", 0.01)
    server.fault("/v1/files/", *["", fault] * 20)
    server.grant(task("a", "head -c 5000000 /dev/zero > o", outputs=["o"]))
    worked(server, tmp_path)
    assert server.result("a")["failure"].startswith("cannot send 'o': ")
    assert why in server.result("a")["failure"]
    assert server.result("a")["outputs"] == {}


def test_a_download_that_was_cut_goes_on_from_there(server: StandIn, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    server.fault("/v1/files/", "cut")
    server.grant(task("a", "cp in o", inputs={"in": server.keep(data)}, outputs=["o"]))
    tally = worked(server, tmp_path)
    assert server.content(server.result("a"), "o") == data
    assert tally.fetched == len(data)


def test_a_file_with_the_wrong_hash_is_not_used(server: StandIn, tmp_path: Path) -> None:
    files = {"in": server.keep(b"right")}
    server.fault("/v1/files/", "wrong")
    server.grant(task("a", "cat in", inputs=files))
    worked(server, tmp_path)
    assert server.result("a")["outcome"] == "done", "it was right the second time"
    server.fault("/v1/files/", "wrong", "wrong")
    server.grant(task("b", "cat in", inputs={"in": server.keep(b"other")}))
    server.grant(task("c", "cat in", inputs={"in": {"sha256": "0" * 64, "size": 4}}))
    worked(server, tmp_path)
    assert "does not match its hash" in server.result("b")["failure"]
    assert "there is no such file" in server.result("c")["failure"]


def test_a_file_that_is_larger_than_was_said_is_not_taken(server: StandIn, tmp_path: Path) -> None:
    server.grant(task("a", "cat in", inputs={"in": {**server.keep(bytes(1000)), "size": 10}}))
    worked(server, tmp_path)
    assert "larger than announced" in server.result("a")["failure"]


INSIDE = [
    task("a", "echo 1 > c; echo 2 > d", inside=["c"], outputs=["d"]),
    task("b", "cat c > e", inputs={"c": None}, outputs=["e"]),
    task("z", "true"),
]


def test_inside_files_stay_and_their_makers_wait_for_the_readers(server: StandIn, tmp_path: Path) -> None:
    server.grant(*INSIDE)
    tally = worked(server, tmp_path)
    assert server.outcomes() == dict.fromkeys("abz", "done")
    assert [server.leases[each["lease"]] for each in server.results] == ["a", "b", "z"]
    assert set(server.result("a")["outputs"]) == {"d"}
    assert server.result("a")["saved"] == tally.saved == 2
    assert digest(b"1\n") not in server.files or server.content(server.result("b"), "e") == b"1\n"


def test_inside_files_leave_the_scratch_folder_after_their_last_reader(server: StandIn, tmp_path: Path) -> None:
    server.grant(*INSIDE[:2], task("z", "test ! -e c && test -e d"))
    worked(server, tmp_path)
    assert server.outcomes() == dict.fromkeys("abz", "done")


@pytest.mark.parametrize(("command", "outcome"), [("false", "done"), ("echo more >> c; false", "returned")])
def test_inside_files_travel_where_a_reader_fails(server: StandIn, tmp_path: Path, command: str, outcome: str) -> None:
    """Unless the reader has changed them: then their maker is run again."""
    server.grant(INSIDE[0], {**INSIDE[1], "command": command}, INSIDE[2])
    worked(server, tmp_path)
    assert server.outcomes() == {"a": outcome, "b": "failed", "z": "returned"}
    if outcome == "done":
        assert server.content(server.result("a"), "c") == b"1\n"
        assert server.result("a")["saved"] == 0


def test_what_is_done_is_delivered_before_a_task_that_was_tried_before(server: StandIn, tmp_path: Path) -> None:
    """Such a task may kill the client, and its death counts only once what it waits for is done."""
    server.grant(INSIDE[0], {**INSIDE[1], "attempt": 2}, INSIDE[2])
    worked(server, tmp_path)
    assert server.content(server.result("a"), "c") == b"1\n"
    assert server.outcomes() == dict.fromkeys("abz", "done")


def test_a_chain_of_tasks_whose_files_stay_here_is_delivered_in_one_call(server: StandIn, tmp_path: Path) -> None:
    """A maker without its file is taken only together with the reader, and that with its own."""
    middle = task("b", "cat c > e", inputs={"c": None}, inside=["e"])
    server.grant(INSIDE[0], middle, task("z", "cat e > f", inputs={"e": None}, outputs=["f"]), task("y", "true"))
    worked(server, tmp_path)
    assert [server.leases[each["lease"]] for each in server.results] == ["a", "b", "z", "y"]
    assert server.count("POST", "/v1/deliver") <= 2


def test_a_task_whose_files_are_waited_for_is_not_delivered_yet(server: StandIn, tmp_path: Path) -> None:
    """Even where no task says that it reads them."""
    server.grant(INSIDE[0], task("mid", "cat c"), task("end", "cat c"))
    worked(server, tmp_path)
    assert [server.leases[each["lease"]] for each in server.results] == ["a", "mid", "end"]


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a\0b", "", "a/../../x", "a/", "."])
@pytest.mark.parametrize("where", ["inputs", "outputs", "inside"])
def test_hostile_names_are_refused_without_running_anything(
    server: StandIn, tmp_path: Path, name: str, where: str
) -> None:
    names = {name: server.keep(b"evil")} if where == "inputs" else [name]
    server.grant(task("a", f"touch {tmp_path}/ran", **{where: names}))
    worked(server, tmp_path)
    assert server.result("a")["outcome"] == "failed"
    assert "name" in server.result("a")["failure"]
    assert os.listdir(tmp_path) == ["client"]


def test_links_do_not_lead_out_of_the_scratch_folder(server: StandIn, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    evil = {"sub/evil": server.keep(b"evil"), "link": server.keep(b"plain")}
    server.grant(task("out", f"ln -s {tmp_path}/secret o", outputs=["o"]))
    server.grant(task("folder", f"ln -s {tmp_path} d", outputs=["d/secret"]))
    server.grant(task("first", f"ln -s {tmp_path} sub"), task("in", "true", inputs={"sub/evil": evil["sub/evil"]}))
    server.grant(
        task("f2", f"ln -s {tmp_path}/secret link"),
        task("over", "cp link o", inputs={"link": evil["link"]}, outputs=["o"]),
    )
    server.grant(task("inner", "echo x > v1; ln -s v1 o", outputs=["o"]))
    server.grant(task("pipe", "mkfifo o", outputs=["o"]))
    worked(server, tmp_path)
    assert "points outside the scratch folder" in server.result("out")["failure"]
    assert "points outside the scratch folder" in server.result("folder")["failure"]
    assert "cannot place input" in server.result("in")["failure"]
    assert server.content(server.result("over"), "o") == b"plain"
    assert server.content(server.result("inner"), "o") == b"x\n"
    assert "not a regular file" in server.result("pipe")["failure"]
    assert (tmp_path / "secret").read_text() == "secret"
    assert digest(b"secret") not in server.files
    assert sorted(os.listdir(tmp_path)) == ["client", "secret"]


def test_time_memory_and_output_are_limited(server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without control groups; with one, see test_memory_limits."""
    monkeypatch.setattr("eligo.client.worker.groups", lambda mark: None)
    hungry = "x = bytearray(400_000_000); print(len(x))"
    server.grant(task("slow", "sleep 60", timeout=0.3))
    server.grant(task("hungry", [sys.executable, "-c", hungry]))
    server.grant(task("own", [sys.executable, "-c", hungry], memory=300_000_000))
    server.grant(task("loud", "head -c 100000000 /dev/zero"))
    server.grant(task("large", "head -c 100000000 /dev/zero > o", outputs=["o"]))
    server.grant(task("both", "head -c 900000 /dev/zero > o; cp o p", outputs=["o", "p"]))
    server.grant(task("fine", [sys.executable, "-c", "x = bytearray(50_000_000)"]))
    worked(server, tmp_path, output=MEGABYTE, memory=350_000_000)
    assert server.result("slow")["failure"] == "took longer than 0.3 s"
    assert "MemoryError" in server.result("hungry")["tail"]
    assert "MemoryError" in server.result("own")["tail"]
    assert server.result("loud")["failure"] == "printed more than the limit of 1,048,576 bytes"
    assert server.result("large")["failure"] == "'o' exceeded the size limit of 1,048,576 bytes"
    assert "exceed the limit of" in server.result("both")["failure"]
    assert server.result("fine")["outcome"] == "done"
    assert server.result("fine")["memory"] is None or server.result("fine")["memory"] > 50_000_000


def test_inputs_may_be_programs(server: StandIn, tmp_path: Path) -> None:
    server.grant(
        task("a", ["./run.sh", "x"], inputs={"run.sh": server.keep(b"#!/bin/sh\necho $1 > o\n")}, outputs=["o"])
    )
    worked(server, tmp_path)
    assert server.content(server.result("a"), "o") == b"x\n"


def test_an_output_that_is_not_there_is_a_failure(server: StandIn, tmp_path: Path) -> None:
    server.grant(task("a", "true", outputs=["o"]))
    worked(server, tmp_path)
    assert server.result("a")["failure"] == "the task did not create 'o'"


def test_a_lease_that_is_gone_stops_its_task(tmp_path: Path) -> None:
    with StandIn(lease=0.6) as server:
        leases = server.grant(task("a", f"sleep 60; touch {tmp_path}/late"), task("b", "true"))
        server.gone.add(leases[0])
        began = time.monotonic()
        tally = worked(server, tmp_path)
        assert time.monotonic() - began < 40
        assert server.outcomes() == {"b": "returned"}, "of the lost lease nothing is delivered"
        assert (tally.done, tally.returned) == (0, 1)
        assert server.renewed[leases[1]]


def test_leases_are_renewed_while_tasks_run(tmp_path: Path) -> None:
    with StandIn(lease=0.6) as server:
        (lease,) = server.grant(task("a", "sleep 1.2"))
        assert worked(server, tmp_path).done == 1
        assert 4 <= server.renewed[lease] <= 7


@pytest.mark.parametrize("fault", ["lose request", "lose reply", "503", "429"])
@pytest.mark.parametrize("path", ["/v1/clients", "/v1/request", "/v1/deliver"])
def test_what_is_lost_is_sent_again_with_the_same_key(server: StandIn, tmp_path: Path, fault: str, path: str) -> None:
    server.fault(path, fault, fault)
    server.grant(task("a", f"echo ran >> {tmp_path}/runs"))
    assert worked(server, tmp_path, once=True, idle_exit=None).done == 1
    keys = [key for method, where, key in server.log if where == path]
    assert keys[0] == keys[1] == keys[2]
    assert (tmp_path / "runs").read_text() == "ran\n"
    assert len(server.results) == 1, "by its key the server knows that it is the same"


def test_nothing_is_lost_or_run_twice_where_a_quarter_of_all_messages_is(server: StandIn, tmp_path: Path) -> None:
    server.chance = 0.25
    for number in range(40):
        server.grant(
            task(
                f"t{number}",
                f"echo {number} >> {tmp_path}/runs; cp in o",
                inputs={"in": server.keep(b"x")},
                outputs=["o"],
            )
        )
    server.stop_word = True
    assert worked(server, tmp_path, cores=4, idle_exit=None).done == 40
    assert sorted(map(int, (tmp_path / "runs").read_text().split())) == list(range(40))
    assert server.outcomes() == {f"t{number}": "done" for number in range(40)}
    assert len(server.results) == 40


def test_a_server_that_dies_and_comes_back_loses_nothing(server: StandIn, tmp_path: Path) -> None:
    server.grant(task("a", "sleep 0.5; echo x > o", outputs=["o"]))
    said: list[str] = []
    thread = threading.Thread(target=lambda: work(options(server, tmp_path, once=True, idle_exit=None), said.append))
    thread.start()
    server.await_count("POST", "/v1/request", 1)
    time.sleep(0.2)
    server.die()
    time.sleep(1.0)
    server.start()
    assert server.content(server.result("a"), "o") == b"x\n"
    thread.join(10)
    assert not thread.is_alive()
    assert "retrying" in said[0]
    assert said[1] == f"connected to {server.url} again"


def test_nonsense_from_the_server_is_told_and_asked_again(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eligo.client.worker.CONFUSED", 0.1)
    said: list[str] = []
    odd = {**task("odd", ""), "command": [1, 2]}
    server.fault("/v1/request", 'say {"grants": [{"tasks": 7}]}', 'say {"grants": 5}', 'say {"grants": [[]]}')
    server.grant(odd)
    work(options(server, tmp_path, idle_exit=1.0), said.append)
    assert [line.split(":")[0] for line in said] == ["invalid answer from the server"] * 3
    assert "command must be a non-empty list of strings" in server.result("odd")["failure"]
    server.fault("/v1/request", "say []")
    with pytest.raises(EligoError, match="check that the URL is that of an eligo server"):
        worked(server, tmp_path, idle_exit=1.0)


def test_several_cores_run_at_once_and_a_wide_task_alone(server: StandIn, tmp_path: Path) -> None:
    clock = f"date +%s.%N >> {tmp_path}/"
    for name in ("a", "b", "c"):
        server.grant(task(name, f"{clock}{name}; sleep 0.4; {clock}{name}"))
    server.grant(task("wide", f"{clock}wide; sleep 0.2; {clock}wide", cores=8))
    worked(server, tmp_path, cores=2, idle_exit=0.3)
    spans = {path.name: sorted(map(float, path.read_text().split())) for path in tmp_path.iterdir() if path.is_file()}
    overlaps = {name for name in "abc" if _overlap(spans[name], spans["wide"])}
    assert not overlaps
    assert _overlap(spans["a"], spans["b"])
    assert {words["cores"] for words in server.requests} == {2}


def _overlap(one: list[float], other: list[float]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def test_it_stops_once_when_idle_or_when_told(server: StandIn, tmp_path: Path) -> None:
    server.grant(task("a", "true"), task("b", "true"))
    server.grant(task("c", "true"))
    assert worked(server, tmp_path, once=True, cores=4, idle_exit=None).done == 2
    assert worked(server, tmp_path, idle_exit=0.3).done == 1
    server.stop_word = True
    assert worked(server, tmp_path, idle_exit=None).done == 0


def test_a_client_that_ends_when_idle_ends_while_the_server_cannot_be_reached(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eligo.client.worker.AWAY", 0.5)
    server.die()
    with pytest.raises(ServerAwayError, match="cannot reach"):
        worked(server, tmp_path, idle_exit=0.2)


def test_a_client_that_ends_when_idle_leaves_what_it_cannot_deliver_to_the_next(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eligo.client.worker.AWAY", 0.5)
    server.grant(task("a", "true"))
    server.fault("/v1/deliver", *["503"] * 100)
    assert worked(server, tmp_path, idle_exit=0.2).done == 0
    server.faults.clear()
    assert worked(server, tmp_path, idle_exit=0.0).done == 1


def test_a_client_that_the_server_keeps_away_does_not_ask(server: StandIn, tmp_path: Path) -> None:
    server.wait = 60.0
    worked(server, tmp_path, idle_exit=0.8)
    assert server.count("POST", "/v1/request") <= 2


def test_a_server_without_anything_is_not_asked_all_the_time(server: StandIn, tmp_path: Path) -> None:
    server.fault("/v1/request", *['say {"grants": []}'] * 1000)
    worked(server, tmp_path, idle_exit=1.5)
    assert server.count("POST", "/v1/request") < 30


def test_a_client_keeps_its_name_and_takes_a_new_one_where_it_is_forgotten(server: StandIn, tmp_path: Path) -> None:
    worked(server, tmp_path)
    worked(server, tmp_path)
    assert server.known == {"c-1"}
    server.known = {"others-1", "others-2"}
    server.grant(task("a", "true"))
    assert worked(server, tmp_path).done == 1
    assert json.loads((tmp_path / "client" / "client.json").read_text())["client"] == "c-3"


def test_tokens_come_from_a_file_and_approval_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.client.enrolment.LONGEST_WAIT", 1.1)
    (tmp_path / "token").write_text("enrolment\n")
    with StandIn(token="enrolment") as server:
        server.approved = False
        server.grant(task("a", "env > o", outputs=["o"]))
        threading.Timer(0.5, lambda: setattr(server, "approved", True)).start()
        assert worked(server, tmp_path, token=str(tmp_path / "token"), once=True, idle_exit=None).done == 1
        assert b"own-token" not in server.content(server.result("a"), "o")
        kept = tmp_path / "client" / "client.json"
        assert json.loads(kept.read_text())["token"] == "own-token"
        assert kept.stat().st_mode & 0o077 == 0
    with StandIn(token="other") as server, pytest.raises(EligoError, match="who are you"):
        worked(server, tmp_path / "new", token=str(tmp_path / "token"))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"token": "/no/such"}, "cannot read the token"),
        ({"ca": "/no/such", "url": "https://localhost:1"}, "cannot read certificates"),
        ({"url": "localhost:80"}, "is not a server's URL"),
        ({"cores": 0}, "must be at least 1"),
        ({"sandbox": "jail"}, "unknown sandbox 'jail'"),
        ({"trust": ("/no/such",)}, "cannot read the key"),
        ({"folder": "/proc/nowhere"}, "cannot write the files of the client"),
    ],
)
def test_wrong_options_are_told_in_one_sentence(
    server: StandIn, tmp_path: Path, more: dict[str, Any], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        work(WorkOptions(**{"url": server.url, "folder": str(tmp_path / "client"), "idle_exit": 0.0, **more}))


def test_a_folder_has_one_client_and_one_server(server: StandIn, tmp_path: Path) -> None:
    worked(server, tmp_path)
    with StandIn() as other, pytest.raises(InputError, match="this folder belongs to a client of"):
        worked(other, tmp_path)


def test_the_server_shows_a_certificate_that_is_trusted(tmp_path: Path) -> None:
    with StandIn(tls=certificate(tmp_path)) as server:
        server.grant(task("a", "head -c 100000 /dev/zero > o", outputs=["o"]))
        with pytest.raises(InputError, match="is not trusted: self"):
            worked(server, tmp_path)
        assert worked(server, tmp_path, ca=str(tmp_path / "ca")).done == 1


BARE = """
import sys
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"numpy", "typer", "rich", "msgspec", "yaml", "cryptography", "starlette", "highspy"}:
            raise ImportError(name)
sys.meta_path.insert(0, Refusing())
import runpy
sys.argv[0] = "eligo"
runpy.run_module("eligo.client", run_name="__main__")
"""


def test_it_needs_nothing_but_python(server: StandIn, tmp_path: Path) -> None:
    server.grant(task("a\x1b[31m", "true"))
    words = [server.url, "--once", "--folder", str(tmp_path / "client"), "--memory", "1G", "-v"]
    done = subprocess.run(
        [sys.executable, "-c", BARE, *words], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    first, last = done.stderr.splitlines()
    assert first.startswith("eligo: a?[31m done after ")
    assert last == "eligo: 1 tasks done, 0 failed, 0 returned; 0 bytes fetched, 0 bytes sent, 0 bytes saved"
    words += ["--trust", "key"]
    done = subprocess.run(
        [sys.executable, "-c", BARE, *words], capture_output=True, text=True, timeout=240, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install cryptography" in done.stderr


def test_where_the_client_has_a_control_group_its_tasks_get_their_own(
    server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder stands in for the system's: what is written into it is what the system is asked for."""
    own = tmp_path / "group"
    own.mkdir()
    assert groups("m", str(own)) is None, "no limit of memory to be had"
    (own / "cgroup.controllers").write_text("cpu memory pids\n")
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n1\n")
    assert groups("m", str(own)) is None, "others are in it"
    (own / "cgroup.procs").write_text(f"{os.getpid()}\n")
    monkeypatch.setattr("eligo.engines.cgroups.TRIES", 1)
    made = groups("m", str(own))
    assert made is not None
    assert (own / "eligo" / "cgroup.procs").read_text() == str(os.getpid())
    assert (own / "cgroup.subtree_control").read_text() == "+memory"
    monkeypatch.setattr("eligo.client.worker.groups", lambda mark: made)
    inner = own / f"eligo-m-{os.getpid()}-2"
    full = f"echo 'oom_kill 1' > {inner}/memory.events; echo 12345 > {inner}/memory.peak; echo $$; kill -9 $$"
    server.grant(task("a", full, memory=2**20))
    worked(server, tmp_path)
    assert server.result("a")["failure"] == "exceeded the memory limit of 1 MiB"
    assert server.result("a")["memory"] == 12345
    assert (inner / "memory.max").read_text() == "1048576"
    assert (inner / "cgroup.kill").read_text() == "1"
    assert (inner / "cgroup.procs").read_text() == server.result("a")["tail"], "it was in before it began"


def test_what_cannot_be_limited_is_not_run() -> None:
    words = Cgroup("/no/such/group", 1).around(["echo", "ran"], {})
    done = subprocess.run(words, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (125, b"")


def test_a_folder_that_a_task_has_locked_is_taken_away(server: StandIn, tmp_path: Path) -> None:
    server.grant(task("a", "mkdir -p d/e; touch d/e/f; chmod 000 d/e; chmod 500 d"))
    worked(server, tmp_path)
    assert os.listdir(tmp_path / "client" / "scratch") == []


def test_clients_of_one_machine_with_names_of_their_own_have_folders_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    url = "http://127.0.0.1:8750"
    assert WorkOptions(url).home() == "/state/eligo/127.0.0.1_8750"
    assert WorkOptions(url, name="ann").home() == "/state/eligo/127.0.0.1_8750_ann"
    assert WorkOptions(url, name="../x y").home() == "/state/eligo/127.0.0.1_8750_.._x_y"

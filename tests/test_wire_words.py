"""Text from the wire never becomes a path, a pattern, a module or a variable of the server: a real server, and a canary.

The canary is a file, a folder and a variable of the server, whose names are known to the caller. Should anything that is
sent make the server look at one of them, its word would come back: as a task, or in the sentence of an error.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from eligo.formats.detection import MODULES
from server_faults import ServerProcess

WORD = "CANARY"
SECRET = f"JOB {WORD} x.sub\nexecutable = {WORD}\nbuild {WORD}: phony\n{WORD}:\n\techo {WORD}\n"
#: workflows that name a file, by format; FILE stands for it
FILES = [
    ("dagman", "INCLUDE FILE\n"),
    ("dagman", "SPLICE s FILE\n"),
    ("dagman", "SUBDAG EXTERNAL s FILE\n"),
    ("dagman", "JOB a FILE\n"),
    ("dagman", "JOB a b.sub DIR FOLDER\n"),
    ("dagman", "JOB a {\nexecutable = /bin/true\ninclude : FILE\n}\n"),
    ("dagman", "JOB a {\nexecutable = /bin/true\narguments = $ENV(SECRET_VARIABLE)\n}\nCONFIG FILE\n"),
    ("ninja", "include FILE\n"),
    ("ninja", "subninja FILE\n"),
    ("ninja", "rule r\n  command = cat $SECRET_VARIABLE\n  depfile = FILE\nbuild o: r\n"),
    ("make", "M:1: target 'a' does not exist\ncat a\n# GNU Make 4\nMAKEFILE_LIST := FILE\n# Files\n\na: FILE\n#  x\n"),
    ("makeflow", "include FILE\n"),
    ("makeflow", "o:\n\techo $(SECRET_VARIABLE) $SECRET_VARIABLE > o\n"),
    ("makeflow", "X=$(shell cat FILE)\no:\n\techo $(X) > o\n"),
    ("jx", '{"rules": [{"command": "x", "inputs": listdir("FOLDER")}]}'),
    ("jx", '{"rules": [{"command": fetch("file://FILE")}]}'),
    ("jx", '{"rules": [{"command": SECRET_VARIABLE, "outputs": ["o"]}]}'),
    ("yaml", "tasks: !include FILE\n"),
    ("yaml", "include: FILE\ntasks:\n- name: a\n  run: 'true'\n"),
    ("json", '{"$ref": "file://FILE"}'),
    ("json", '{"tasks": [{"name": "a", "run": ["@FILE"]}]}'),
    ("csv", "task,needs\n@FILE,\n"),
    ("dot", 'digraph { a [command="true" image="FILE"]; a -> b }'),
    ("graphml", '<!DOCTYPE g [<!ENTITY e SYSTEM "file://FILE">]><graphml>&e;</graphml>'),
    ("dax", '<!DOCTYPE g [<!ENTITY e SYSTEM "file://FILE">]><adag>&e;</adag>'),
    ("dax", '<adag xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="FILE" parse="text"/></adag>'),
    ("pegasus", "pegasus: '5.0'\nname: x\nreplicaCatalog: FILE\njobs: []\n"),
    ("arcs", "@FILE\n"),
]
FORMATS = ["os", "../json", "FILE", "eligo.formats.json_format", "histories", "json_format", "__init__", "shared.files",
           "json\0", "JSON", "json,yaml", "."]  # fmt: skip
WISHES = {"policy": ["FILE", "FOLDER", "../fifo", "fifo\0", "__class__"], "ignore": ["FILE", "*", ".*"],
          "name": ["../../x", "FILE", "%s%n", "{0.__class__}", "x\0y", "\u202e"],
          "timeout": ["nan", "inf", "1e999", "-1"], "quorum": ["1e9", "0", "9" * 30], "owner": ["admin"]}  # fmt: skip
QUERIES = ["table?search=(a%2B)%2B%24", "table?search=.*", "table?search=%25", "table?sort=__class__", "table?sort=FILE",
           "table?state=.*", "table?kind=%2A", "table?offset=-1", "table?limit=1e9", "task?name=FILE", "task?name=*",
           "lineage?name=..%2F..%2Fx", "gantt?begin=nan", "gantt?begin=inf", "tasks?state=.*", "tasks?after=-1",
           "attempts?after=%D9%A3", "results?x=FILE"]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secret")
    (folder / "file").write_text(SECRET)
    (folder / "folder").mkdir()
    (folder / "folder" / WORD).write_text(SECRET)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, place: Path) -> Iterator[ServerProcess]:
    running = ServerProcess(tmp_path_factory.mktemp("served"), "-q")
    running.environment = {**os.environ, "SECRET_VARIABLE": WORD}
    with running:
        yield running


def forms(text: str, place: Path) -> list[str]:
    """A text with the names of the canary, absolute and from where the server runs."""
    roots = (str(place), os.path.relpath(place))
    return list(
        dict.fromkeys(text.replace("FILE", f"{root}/file").replace("FOLDER", f"{root}/folder") for root in roots)
    )


def submit(server: ServerProcess, query: str, text: str) -> None:
    """Submit; nothing of the canary comes back, neither at once nor in what is served."""
    reply = server.call("POST", f"/v1/workflows?files=false{query}", text.encode())
    assert reply.status in {201, 400, 422}, (query, text, reply)
    assert WORD not in reply.body.decode(), (query, text, reply)
    if reply.status == 201:
        workflow = reply.words["workflow"]
        tasks = server.get(f"/v1/workflows/{workflow}/tasks").body
        who = {"Eligo-Client": server.call("POST", "/v1/clients", {"name": "one"}).words["client"]}
        granted = server.call("POST", "/v1/request", {"count": 4}, who).body
        assert WORD not in (tasks + granted).decode(), (query, text, tasks, granted)
        assert server.call("POST", f"/v1/workflows/{workflow}/cancel", {}).status == 200


def test_every_format_is_tried() -> None:
    """A new one needs a case of its own above, or a place here: it names no other file and takes no variable."""
    assert {format for format, _ in FILES} | {"wfcommons", "d3dag", "mermaid", "lines"} == set(MODULES)


@pytest.mark.parametrize(("format", "text"), FILES)
def test_a_workflow_does_not_make_the_server_read_a_file(
    server: ServerProcess, place: Path, format: str, text: str
) -> None:
    for form in forms(text, place):
        submit(server, f"&format={format}", form)
        submit(server, "&ignore=all", form)


def test_added_tasks_do_not_make_the_server_read_a_file(server: ServerProcess, place: Path) -> None:
    flow = b'{"tasks": [{"name": "a", "run": "true"}]}'
    workflow = server.call("POST", "/v1/workflows?files=false", flow).words["workflow"]
    for _, text in FILES:
        for form in forms(text, place):
            reply = server.call("POST", f"/v1/workflows/{workflow}/tasks", form.encode())
            assert reply.status < 500, (text, reply)
            assert WORD not in reply.body.decode(), (text, reply)
    assert WORD not in server.get(f"/v1/workflows/{workflow}/tasks").body.decode()
    assert server.call("POST", f"/v1/workflows/{workflow}/cancel", {}).status == 200


def test_options_of_a_workflow_are_words_of_a_list_or_labels(server: ServerProcess, place: Path) -> None:
    before = sorted(os.listdir(server.folder))
    flow = '{"tasks": [{"name": "a", "run": "true"}]}'
    for wish, values in {"format": FORMATS, **WISHES}.items():
        for form in {form for value in values for form in forms(value, place)}:
            submit(server, f"&{wish}={quote(form)}", flow)
    assert {name for name in sorted(os.listdir(server.folder)) if name not in before} <= {
        "served.db-wal",
        "served.db-shm",
    }
    assert sorted(os.listdir(place)) == ["file", "folder"]


def test_what_is_asked_about_a_workflow_is_text_and_no_pattern(server: ServerProcess, place: Path) -> None:
    """Searching for ".*" finds the tasks with these two characters in their name: none."""
    flow = b'{"tasks": [{"name": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "run": "true"}]}'
    workflow = server.call("POST", "/v1/workflows?files=false", flow).words["workflow"]
    for query in (form for words in QUERIES for form in forms(words, place)):
        reply = server.get(f"/v1/workflows/{workflow}/{query}")
        assert reply.status < 500, (query, reply)
        assert WORD not in reply.body.decode(), (query, reply)
        if "search=" in query:
            assert reply.words["rows"] == [], query
    for path in ("../clients", "..%2Fclients", "%2e%2e/clients", "w-1%00", quote(str(place)), "."):
        reply = server.get(f"/v1/workflows/{path}/view")
        assert reply.status in {400, 404}, (path, reply)
    assert server.call("POST", f"/v1/workflows/{workflow}/cancel", {}).status == 200


def test_names_of_clients_and_tasks_stay_text_in_the_log_and_in_errors(server: ServerProcess) -> None:
    for name in ("%s%n", "{0.__class__}", "a\nb", "\x1b[2J", "../../x"):
        client = server.call("POST", "/v1/clients", {"name": name})
        assert client.status in {201, 400, 422}, (name, client)
        if client.status == 201:
            found = server.get(f"/v1/clients/{client.words['client']}").words
            assert re.sub(r"\s|\W", "", str(found["name"])) in re.sub(r"\s|\W", "", name)

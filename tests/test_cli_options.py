"""Every verb with every option it has, on small files, as people type them; and every --help and documented option."""

import json
import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import typer

from eligo.cli import run
from eligo.cli.serve_verbs import app
from running_cases import COMMAND
from serving_cases import PATIENCE, serving, told
from test_tracing import DAG, TRACE

ROOT = Path(__file__).parent.parent
DOCUMENTED = "\n".join(path.read_text("utf-8") for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))))
#: the verbs whose other options are run by other tests: with certificates, keys, several servers, a browser, a cluster
ALSO_ELSEWHERE = {
    "add",
    "serve",
    "work",
    "submit",
    "cancel",
    "clients",
    "drain",
    "list",
    "pause",
    "purge",
    "release",
    "results",
    "resume",
    "retry",
    "workers",
    "token",
    "status",
    "why",
    "log",
    "report",
    "top",
    "page",
    "run",
    "compare",
}
TASKS = [
    {"name": "a", "run": "echo a > a.txt", "seconds": 1, "outputs": ["a.txt"]},
    {"name": "b", "run": "echo b", "seconds": 2},
    {"name": "c", "run": "cat a.txt", "after": ["a", "b"], "seconds": 1, "inputs": ["a.txt"]},
]
FILES = {
    "flow.json": json.dumps({"tasks": TASKS}),
    "sized.json": json.dumps({"tasks": TASKS, "files": {"a.txt": 9}}),
    "lines.txt": "echo a\n",
    "more.json": '{"tasks": [{"name": "d", "run": "echo d", "after": ["b"]}]}',
    "table.csv": "job,needs\nb,a\nc,a\n",
    "flow.jx": '{"rules": [{"command": CMD, "outputs": ["x.out"]}]}',
    "flow.mf": "y.out:\n\techo $HOME > y.out\n",
    "flow.mmd": DAG,
    "trace.txt": TRACE,
    "flow.dag": "JOB A a.sub\nJOB B a.sub\nPARENT A CHILD B\n",
    "post.dag": "JOB A a.sub\nSCRIPT POST A check\n",
    "a.sub": "executable = /bin/true\nqueue\n",
    "names.txt": "a\n",
    "order.txt": "b\na\nc\n",
    "tiny.yaml": "dags: [{family: w, sizes: [[3, 2]]}]\nschedulers: [fifo]\ngames: {pebble: {}}\nruns: 2\n",
}
#: how every option that says how a file is read is given; {} is the verb with what stands before the file
READINGS = (
    "{} table.csv --from csv --columns job,needs --reverse",
    "{} flow.jx --args 'CMD=touch x.out'",
    "{} flow.mf --env",
    "{} flow.mmd --trace trace.txt",
    "{} flow.dag --allow-outside",
)
READERS = {
    "show": "show",
    "plan": "plan",
    "explain": "explain",
    "verify": None,
    "convert": None,
    "batch": "batch --requests 1",
    "cluster": "cluster --size 1",
}
LINES = [
    *(line.format(words) for words in READERS.values() if words for line in READINGS),
    "show flow.json --history flow.json --json",
    "plan flow.json -o out.json --policy ready --priority-base 9 --override --force --save plan.json --json",
    "plan flow.json --names",
    "plan flow.json --output out.txt --to names --effort quick --prefer finish",
    "plan copy.json --in-place --seconds 5",
    "plan flow.json --workers 2 --history flow.json --verbose",
    "plan flow.json --cores 2",
    "plan flow.json --assume cat=5m --seconds-per-task 60 --price 0.04/h --deadline 2h",
    "plan sized.json --space 1K",
    "explain flow.json -o out.svg --effort quick --seconds 5 --json",
    "verify flow.json order.txt --json --history flow.json",
    "verify table.csv table.txt --from csv --columns job,needs --reverse",
    "verify flow.jx jx.txt --args 'CMD=touch x.out'",
    "verify flow.mf mf.txt --env",
    "verify flow.mmd mmd.txt --trace trace.txt",
    "verify flow.dag dag.txt --allow-outside",
    "convert table.csv out.dot --from csv --columns job,needs --to dot --names change --force --reverse",
    "convert flow.jx x.json --args 'CMD=touch x.out'",
    "convert flow.mf y.json --env",
    "convert flow.mmd m.json --trace trace.txt",
    "convert flow.dag d.json --allow-outside",
    "generate random 10 0.3 --seed 3 -o r.json --to json --force",
    "batch flow.json -r 2 --executed names.txt --allocated none.txt --eligible b.txt --method exact --seconds 5 --json",
    "cluster flow.json --sizes 2,1 --exchange 1 --goal mixed --weight 0.4 --strategy direct --effort quick --json",
    "cluster flow.json --seconds 2 --tolerance 0.5 --executed names.txt -o fat.svg --force",
    "cluster flow.json --tasks names.txt",
    "cluster flow.json --size 2 --export dagman -o fat.dag",
    "compare flow.json --policy finish,fifo --order order.txt --rates 2 --workers 2 --clients 2 --stay 5 --away 5"
    " --runs 2 --seed 1 --processes 1 --results r.csv -o c.html --history flow.json --json",
    "compare --family 'w 3 2' --policy fifo --rates 2 --runs 2",
    "compare tiny.yaml",
    "compare rev.json --reverse --policy fifo --rates 2 --runs 2",
    "run flow.json a.txt --except c --again a",
    "run flow.json --fresh --dry-run",
    "run flow.json c --until b --start-from b --quiet",
    "run flow.json --stream-lines --hook 'on_end=echo ended'",
    "log flow.json.run b --follow",
    "cancel flow.json.run --json",
    "run flow.json --stream --joblog jobs.tsv --quiet",
    "run --lines lines.txt --run lines.run",
    "run 'echo {}' --values '[[\"a\"]]'",
    "run flow.json --on local --workers 2 --policy fifo --run here.run --fat 1 --retries 1 --timeout 60 --dir ."
    " --max-failures 3 --resource scratch=9 --label gpu --skip-done --history flow.json --quiet --json",
    "run flow.json --batch",
    "run flow.json --cache cache --why --clean --keep-incomplete",
    "run --resume flow.json.run",
    "run flow.json --rehearse 0.5 --workers 2",
    "run flow.jx --args 'CMD=touch x.out'",
    "run flow.mf --env",
    "run flow.dag --from dagman --allow-outside",
    "run post.dag --ignore POST",
    "run rev.json --reverse",
    "status flow.json.run --json",
    "why flow.json.run a --json",
    "log flow.json.run b --attempt 1",
    "log flow.json.run b --err",
    "top flow.json.run --once",
    "report flow.json.run -o r.html",
    "add flow.json.run more.json --json",
    "key mine",
    "serve --check --port 0 --store s.db --json",
    "serve --check --port 0 --store s.db --open --insecure --address http://127.0.0.1:8750",
]
#: drawings and tables have no commands: read as the options say, then refused
WITHOUT_COMMANDS = [
    "run table.csv --from csv --columns job,needs",
    "run flow.mmd --trace trace.txt",
    "submit http://127.0.0.1:9 table.csv --columns job,needs",
    "submit http://127.0.0.1:9 flow.mmd --trace trace.txt",
]
WRONG = ["work http://127.0.0.1:9 --sandbox none --sandbox-network", "run flow.json --space 1M"]
#: what is run with a real server; {url} and {id} are its address and the workflow's
SERVED = [
    "token {url} pool --scope work --days 3 --token-file kept.token > w.token",
    "submit {url} flow.json --name n --policy fifo --share 2 --quorum 1 --timeout 60 --retries 1 --dir . --from json"
    " --token-file kept.token > id",
    "add {url}/{id} more.json --dir . --token-file kept.token",
    "work {url} --cores 1 --name ann --token-file w.token --folder ann --memory 1G --max-output 1G --size 1 --grace 5"
    " --verbose --idle-exit 1 --label gpu --cache 500M",
    "work {url} --token-file w.token --folder ann --seconds 3 --once --idle-exit 0",
    "submit {url} flow.json --json --token-file kept.token --no-files --no-locality --name m --reverse",
    "status {url}/{id} --token-file kept.token --json",
    "why {url}/{id} a --token-file kept.token --json",
    "log {url}/{id} b --token-file kept.token",
    "top {url}/{id} --token-file kept.token --once",
    "clients {url} --token-file kept.token --json",
    "submit {url} flow.jx --args 'CMD=touch x.out' --token-file kept.token",
    "submit {url} flow.mf --env --token-file kept.token",
    "submit {url} post.dag --allow-outside --ignore POST --token-file kept.token",
    "list {url} --state done --limit 5 --token-file kept.token --json",
    "results {url}/{id} made --force --token-file kept.token --json",
    "clients {url} --pause {client} --resume {client} --tag {client}=gpu,fast --token-file kept.token",
    "drain {url} --token-file kept.token --json",
    "drain {url} --stop",
    "page {url} --token-file kept.token",
    "clients {url} --revoke {client} --token-file kept.token",
    "cancel {url}/{id} --token-file kept.token --json",
    "purge {url}/{id} --token-file kept.token --json",
    "token {url} pool --revoke --token-file kept.token",
    "backup x.db copy.db --files kept",
]
SERVE = (
    "flow.json --host 127.0.0.1 --files kept --policy fifo --quorum 1 --lease 30 --gather 0.01 --keep-results 1"
    " --allow-host me --ignore all --log log.txt --from json --allow-outside --tokens -q --store x.db"
)
#: the files of tests that run what needs certificates, keys, several servers, a browser, or a cluster
ELSEWHERE = ("test_operator.py",
             "test_serving.py", "test_server_*.py", "test_client*.py", "postgres/*.py", "faults/*.py", "*_scenarios.py",
             "test_pages.py", "test_comparing.py", "test_tracing.py", "test_csv.py", "test_running.py",
             "test_operations.py")  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("copy.json").write_text(FILES["flow.json"])
    Path("rev.json").write_text(
        '{"tasks": [{"name": "a", "run": "true"}, {"name": "b", "after": ["a"], "run": "true"}]}'
    )
    for name in ("none", "b"):
        Path(f"{name}.txt").write_text("b\n" if name == "b" else "")
    return tmp_path


def verbs() -> dict[str, Any]:
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return commands


def options(verb: str) -> set[frozenset[str]]:
    """Every option of a verb, as the flags that mean it."""
    return {frozenset(each.opts) for each in verbs()[verb].params if each.param_type_name == "option"}


def test_no_option_is_left_out() -> None:
    seen: dict[str, set[str]] = {}
    for line in (
        *LINES,
        *WITHOUT_COMMANDS,
        *WRONG,
        *SERVED,
        f"serve {SERVE}",
        "page --open --port --with-parent",
        "run --page --hold",
    ):
        verb, *words = shlex.split(line)
        seen.setdefault(verb, set()).update(word for word in words if word.startswith("-"))
    files = [path for pattern in ELSEWHERE for path in Path(__file__).parent.glob(pattern)]
    others = set(re.findall(r"-{1,2}[a-z][a-z-]*", "".join(path.read_text("utf-8") for path in files)))
    missing = {
        (verb, max(flags))
        for verb in verbs()
        for flags in options(verb)
        if not flags & (seen.get(verb, set()) | (others if verb in ALSO_ELSEWHERE else set()))
    }
    assert missing == set()


@pytest.mark.parametrize("line", LINES)
def test_a_command_with_its_options(line: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(line)
    if words[0] == "verify":
        run(["plan", *words[1:2], *words[3:], "--names", "-o", words[2]])
    if {"flow.json.run"} & set(words):
        assert run(["run", "flow.json", "--quiet"]) == 0
    capsys.readouterr()
    code = run(words)
    out, err = capsys.readouterr()
    assert code == 0, err
    if "--json" in words:
        json.loads(out)


@pytest.mark.parametrize("line", WITHOUT_COMMANDS + WRONG)
def test_a_wrong_command_is_refused_in_one_line(line: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(shlex.split(line)) == 2
    assert "internal error" not in (err := capsys.readouterr().err)
    assert "has no command" in err or not line.startswith("run") or line in WRONG


def test_the_page_opens_in_the_users_browser(place: Path) -> None:
    assert run(["run", "flow.json", "--quiet"]) == 0
    Path("browser").write_text("#!/bin/sh\necho $1 > opened\n")
    Path("browser").chmod(0o755)
    command = [*COMMAND, "page", "flow.json.run", "--port", "0", "--open"]
    environment = os.environ | {"BROWSER": f"{place}/browser %s"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as page:
        assert page.stdout is not None
        line = page.stdout.readline()
        if not line:  # the page is made by `make page`, and without it the command says so
            assert page.wait(PATIENCE) == 2
            return
        until = time.monotonic() + PATIENCE
        while not Path("opened").exists() or not Path("opened").read_text():
            assert time.monotonic() < until
            time.sleep(0.05)
        page.terminate()
    opened = (
        Path("opened").read_text().strip().removeprefix("file://")
    )  # it leads on, so that no process names the token
    assert line.split()[-1] in Path(opened).read_text()


def test_every_option_of_the_servers_verbs(place: Path) -> None:
    with serving(place, *shlex.split(SERVE)) as (url, _):
        known = {"url": url, "id": "", "client": ""}
        for line in SERVED:
            command, _, output = line.partition(" > ")
            code, out, err = told(*shlex.split(command.format(**known)))
            assert code == 0, (line, out, err)
            if output:
                Path(output).write_text(out)
            if output == "id":
                known["id"] = out.strip()
            if command.startswith("clients") and "--json" in command:
                known["client"] = json.loads(out)["clients"][0]["client"]
    assert '"path":"/v1/request"' in Path("log.txt").read_text()


@pytest.mark.parametrize("words", re.findall(r"^\$ (eligo .*)|^(eligo [^#\n|]*)", DOCUMENTED, re.M))
def test_a_documented_command_names_verbs_and_options_that_exist(words: tuple[str, str]) -> None:
    verb, *rest = shlex.split("".join(words))[1:] or ["--help"]
    flags = {word.partition("=")[0] for word in rest if word.startswith("--")}
    assert verb in verbs() or verb.startswith("-")
    assert flags <= {flag for option in options(verb) for flag in option} | {"--help"} if verb in verbs() else True


@pytest.mark.parametrize("named", sorted(set(re.findall(r"`(tests/[\w/]+\.py(?:::\w+)?)", DOCUMENTED))))
def test_a_test_that_the_documents_name_exists(named: str) -> None:
    path, _, function = named.partition("::")
    assert f"def {function}" in Path(__file__).parents[1].joinpath(path).read_text("utf-8")


def test_the_number_of_workers_has_the_same_names_in_every_verb() -> None:
    named = {name: [set(param.opts) for param in verb.params] for name, verb in verbs().items()}
    flags = {"--workers", "--jobs", "-j"}
    having = {name for name, options in named.items() if any(flags & each for each in options)}
    assert having == {"plan", "run", "work", "compare"}
    assert all(flags in named[name] for name in having)


@pytest.mark.parametrize("flag", ["--workers", "-j", "--jobs", "--cores"])
def test_a_client_is_told_its_workers_by_any_of_their_names(flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def work(url: str, options: dict[str, Any]) -> int:
        asked.append(options["cores"])
        return 0

    monkeypatch.setattr("eligo.cli.remote.do_work", work)
    assert run(["work", "http://127.0.0.1:9", flag, "3"]) == 0
    assert asked == [3]


def test_the_workers_of_a_client_are_given_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["work", "http://127.0.0.1:9", "--workers", "3", "--cores", "2"]) == 2
    assert "--workers and --cores are the same option" in capsys.readouterr().err

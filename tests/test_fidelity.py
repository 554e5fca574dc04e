"""What a file asks for and a run does not do is refused before anything runs, or ignored by name."""

import urllib.error
import urllib.request
from pathlib import Path

import pytest

import eligo
from eligo.cli import run as cli
from eligo.errors import FormatError, InputError, UnhonouredError
from eligo.formats import lost, parse, read
from eligo.formats.fidelity import KEYS, as_runnable, unsupported_features
from running_cases import attempts, completed, ran
from serving_cases import PATIENCE, got, serving, told

Captured = pytest.CaptureFixture[str]
NODE = "JOB {name} {{\n executable = /usr/bin/touch\n arguments = {name}.made\n}}\n"
SUBMIT = "executable = /usr/bin/touch\narguments = {name}.made\n{more}\nqueue\n"


def nodes(*names: str) -> str:
    """Nodes that each make a file."""
    return "".join(NODE.format(name=name) for name in names)


def dag(folder: Path, text: str, **submit_files: str) -> Path:
    """A DAGMan file, with submit files that say something more."""
    for name, more in submit_files.items():
        (folder / f"{name}.sub").write_text(SUBMIT.format(name=name, more=more))
    path = folder / "x.dag"
    path.write_text(text)
    return path


STATEMENTS = {
    "PRE": "SCRIPT PRE a no-such.sh",
    "POST": "SCRIPT DEFER 1 10 DEBUG out.txt ALL POST a no-such.sh",
    "HOLD": "SCRIPT HOLD ALL_NODES no-such.sh",
    "FINAL": "FINAL z {\n executable = /bin/true\n}",
    "PROVISIONER": "PROVISIONER z z.sub",
    "SERVICE": "SERVICE z z.sub",
    "RETRY": "RETRY a 3 UNLESS-EXIT 2",
    "ABORT-DAG-ON": "ABORT-DAG-ON a 3 RETURN 1",
    "MAXJOBS": "CATEGORY a heavy\nMAXJOBS heavy 1",
    "PRE-SKIP": "PRE_SKIP a 1",
    "CONFIG": "CONFIG dagman.config",
    "ENV": "ENV SET A=1",
    "WEAK": "JOB b b.sub\nWEAK PARENT a CHILD b",
    "SUBDAG": "SUBDAG EXTERNAL b inner.dag",
    "VARS": "VARS a seed=7",
    "SCRIPT": "SCRIPT BETWEEN a no-such.sh",
}


@pytest.mark.parametrize("key", STATEMENTS)
def test_a_statement_that_a_run_does_not_honour_is_refused(tmp_path: Path, capsys: Captured, key: str) -> None:
    path = dag(tmp_path, nodes("a") + STATEMENTS[key] + "\n", b="")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "b.sub").write_text(SUBMIT.format(name="b", more=""))
    assert ran(path) == 2
    said = capsys.readouterr().err
    assert f" {key} (" in said
    assert f"--ignore {key}" in said
    assert not (tmp_path / "a.made").exists()
    assert not (tmp_path / "x.dag.run").exists()
    with pytest.raises(UnhonouredError) as error:
        eligo.run(path)
    assert key in error.value.keys
    assert not (tmp_path / "a.made").exists()


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("environment", 'environment = "A"'),
        ("output", "output = $(Cluster).txt"),
        ("initialdir", "initialdir = $ENV(HOME)"),
        ("universe", "universe = docker"),
        ("transfer_input_files", "transfer_input_files = data/a.txt"),
        ("success_exit_code", "success_exit_code = 3"),
        ("request_memory", "request_memory = 2 * 1024"),
        ("request_cpus", "request_cpus = $(Cluster)"),
        ("+image", '+Image = "x"'),
        ("command_of_tomorrow", "command_of_tomorrow = yes"),
    ],
)
def test_a_submit_command_that_a_run_does_not_honour_is_refused(
    tmp_path: Path, capsys: Captured, key: str, line: str
) -> None:
    path = dag(tmp_path, "JOB a a.sub\n", a=line)
    assert ran(path) == 2
    assert f"{path}: unsupported in a run: {key} (task 'a', a.sub" in capsys.readouterr().err
    assert ran(path, "--ignore", key) == 0
    assert f"warning: running without {key} (task 'a', a.sub" in capsys.readouterr().err
    assert (tmp_path / "a.made").exists()


def test_what_changes_nothing_of_a_job_is_passed_over(tmp_path: Path, capsys: Captured) -> None:
    more = (
        "universe = vanilla\nlog = $(title).log\ntitle = any\nnotification = never\nrequest_cpus = 1\nrequest_memory = 1M\n"
        "should_transfer_files = YES\ntransfer_input_files = a.txt, b.txt\ngetenv = true\n# output = no\nerror = /dev/null"
    )
    path = dag(
        tmp_path, "JOB a a.sub\nDOT x.dot\nNODE_STATUS_FILE x.status\nSET_JOB_ATTR A = 1\nJOB b no.sub NOOP\n", a=more
    )
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).touch()
    assert ran(path) == 0
    assert "warning" not in capsys.readouterr().err


def test_the_message_counts_tasks_and_names_the_first_place(tmp_path: Path, capsys: Captured) -> None:
    path = dag(
        tmp_path,
        nodes("a", "b") + "SCRIPT PRE a no.sh\nSCRIPT PRE b no.sh\nFINAL z no.sub\nJOB c c.sub\n",
        c="hold = true",
    )
    assert ran(path) == 2
    said = capsys.readouterr().err
    assert f"FINAL ({path}:11), PRE (2 tasks, first 'a', {path}:9), hold (task 'c', c.sub:3)" in said
    assert said.endswith("; add --ignore FINAL,PRE,hold to run it anyway\n")


def test_ignore_takes_lists_and_any_case_and_all(tmp_path: Path, capsys: Captured) -> None:
    path = dag(tmp_path, nodes("a") + "SCRIPT PRE a no.sh\nSCRIPT POST a no.sh\nABORT-DAG-ON a 3\n")
    assert ran(path, "--ignore", "pre,POST") == 2
    assert "unsupported in a run: ABORT-DAG-ON (" in capsys.readouterr().err
    assert ran(path, "--ignore", "pre,POST", "--ignore", "abort_dag_on") == 0
    assert "warning: running without PRE (task 'a'" in capsys.readouterr().err
    assert ran(path, "--ignore", "all") == 0
    assert eligo.run(path, ignore=("PRE", "POST", "ABORT-DAG-ON")).ok
    assert eligo.run(path, ignore="all").ok


def test_a_word_that_nothing_needs_is_told_and_an_unknown_one_refused(tmp_path: Path, capsys: Captured) -> None:
    path = dag(tmp_path, nodes("a") + "SCRIPT PRE a no.sh\n")
    assert ran(path, "--ignore", "PRE,FINAL") == 0
    assert "warning: --ignore FINAL has no effect on this file" in capsys.readouterr().err
    assert ran(path, "--ignore", "PREE") == 2
    assert "unknown feature 'PREE' to ignore (this file has PRE)" in capsys.readouterr().err
    with pytest.raises(InputError, match="nothing in this file needs to be ignored"):
        as_runnable(parse('{"tasks": [{"name": "a", "run": "ls"}]}'), ["no_such"])


def test_a_run_that_goes_on_ignores_what_it_ignored_before(tmp_path: Path, capsys: Captured) -> None:
    path = dag(
        tmp_path, nodes("a") + "JOB b {\n executable = /usr/bin/test\n arguments = -e go\n}\nSCRIPT PRE a no.sh\n"
    )
    assert ran(path, "--ignore", "PRE", "--retries", "0") == 1
    (tmp_path / "go").touch()
    assert cli(["run", "--resume", f"{path}.run"]) == 0
    path.write_text(path.read_text() + "FINAL z no.sub\n")
    assert cli(["run", "--resume", f"{path}.run"]) == 2
    assert "unsupported in a run: FINAL (" in capsys.readouterr().err


def test_what_concerns_only_nodes_that_are_done_is_not_listed(tmp_path: Path) -> None:
    path = dag(tmp_path, nodes("a", "b") + "SCRIPT PRE a no.sh\nDONE a\n")
    assert ran(path) == 0
    assert completed(tmp_path / "x.dag.run") == {"b": 1}


def test_nodes_of_splices_are_named_in_full(tmp_path: Path) -> None:
    (tmp_path / "inner.dag").write_text(nodes("a") + 'SCRIPT POST a no.sh\nVARS ALL_NODES seed="$(JOB)"\n')
    path = dag(tmp_path, "SPLICE S inner.dag\nSPLICE T inner.dag DIR .\n" + nodes("b"))
    found = as_runnable(read(path), "all").origin
    assert found
    assert [(each.key, each.tasks) for each in found.unhonoured] == [("POST", ("S+a", "T+a"))]
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "inner.dag").write_text(nodes("a", "c"))
    path.write_text("SPLICE S inner.dag DIR far\n")
    assert unsupported_features(read(path)) == []


def test_a_node_runs_in_its_folder_with_its_files_and_variables(tmp_path: Path) -> None:
    """As in HTCondor, the executable counts from DIR, and files from initialdir; a splice has a DIR of its own."""
    for folder in ("S/n/in", "S/n/deep"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "S" / "n" / "tool").write_text('#!/bin/sh\ncat; echo "$A $B"; pwd; echo oops >&2\n')
    (tmp_path / "S" / "n" / "tool").chmod(0o755)
    (tmp_path / "S" / "n" / "deep" / "given").write_text("given\n")
    (tmp_path / "S" / "n" / "a.sub").write_text(
        "executable = tool\ninitialdir = deep\ninput = given\noutput = $(name).out\nerror = err\n"
        "environment = \"A=1 B='two words'\"\nqueue\n"
    )
    (tmp_path / "S" / "inner.dag").write_text('JOB a a.sub DIR n\nVARS a name="made"\n')
    path = dag(tmp_path, "SPLICE S inner.dag DIR S\n")
    assert ran(path) == 0
    here = tmp_path / "S" / "n" / "deep"
    assert (here / "made.out").read_text() == f"given\n1 two words\n{here}\n"
    assert (here / "err").read_text() == "oops\n"


def test_a_node_is_retried_as_often_as_it_says(tmp_path: Path) -> None:
    text = "JOB a {\n executable = /bin/false\n}\nJOB b {\n executable = /bin/false\n}\nRETRY a 0\nRETRY b 1\n"
    assert ran(dag(tmp_path, text), "--retries", "5") == 1
    names = [attempt["name"] for attempt in attempts(tmp_path / "x.dag.run")]
    assert (names.count("a"), names.count("b")) == (1, 2)


# Macros


def test_vars_are_put_into_commands(tmp_path: Path) -> None:
    script = "echo $(Seed) $(me) $(Process) $(DOLLAR)0 $(note) > $(me).made"
    (tmp_path / "a.sub").write_text(f"executable = /bin/sh\nhow = -c\narguments = \"$(how) '{script}'\"\nqueue\n")
    values = 'VARS ALL_NODES seed="1" note="x"\nVARS b APPEND seed = "2" me="$(JOB)"\nVARS a me="$(JOB)"\n'
    path = dag(tmp_path, f"JOB a a.sub\nJOB b a.sub\n{values}")
    assert ran(path) == 0
    assert (tmp_path / "a.made").read_text() == "1 a 0 /bin/sh x\n"
    assert (tmp_path / "b.made").read_text() == "2 b 0 /bin/sh x\n"


def test_submit_files_outside_the_folder_are_read_where_that_is_allowed(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "a.sub").write_text(SUBMIT.format(name="a", more=""))
    path = dag(tmp_path / "inner", "JOB a ../a.sub\n")
    assert ran(path) == 2
    assert "is outside the folder of" in (said := capsys.readouterr().err)
    assert said.endswith("add --allow-outside to read it\n")
    assert ran(path, "--allow-outside") == 0


def test_a_program_is_the_file_of_that_name_as_for_htcondor(tmp_path: Path) -> None:
    (tmp_path / "sort").write_text("#!/bin/sh\ntouch made\n")
    (tmp_path / "sort").chmod(0o755)
    (tmp_path / "a.sub").write_text("executable = sort\nqueue\n")
    assert ran(dag(tmp_path, "JOB a a.sub\n")) == 0
    assert (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("arguments", "variables", "why"),
    [
        ("$(seed)", "", r"a\.sub uses \$\(seed\), which eligo run does not expand"),
        ("$(JOB)", "", r"a\.sub uses \$\(JOB\), which"),
        ("$(n)", 'VARS a n="$(RETRY)"', r"a\.sub uses \$\(RETRY\), which"),
        ("$ENV(HOME)", "", r"a\.sub uses \$ENV\(HOME\), which"),
        ("$$(Name)", "", r"a\.sub uses \$\$\(Name\), which"),
        ("$(x:$(y))", 'VARS a y="1"', r"a\.sub uses \$\(x:1\), which"),
        ("$(arguments)", "", r"a\.sub uses \$\(arguments\), which"),
        ("$(n)\nn = 1", 'VARS a n="2"', r"a\.sub and VARS both set n .add PREPEND or APPEND"),
    ],
)
def test_a_macro_that_only_htcondor_knows_is_refused(tmp_path: Path, arguments: str, variables: str, why: str) -> None:
    (tmp_path / "a.sub").write_text(f"executable = /bin/echo\narguments = {arguments}\nqueue\n")
    with pytest.raises(FormatError, match=f"node 'a': {why}"):
        eligo.run(dag(tmp_path, f"JOB a a.sub\n{variables}\n"), ignore="all")


@pytest.mark.parametrize("line", ["if defined x", "include : more.sub", "arguments @=end"])
def test_a_description_that_cannot_be_read_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(FormatError, match=r"a\.sub: line 3 uses .*, which eligo run does not support"):
        eligo.run(dag(tmp_path, "JOB a a.sub\n", a=line), ignore="all")


# Rescue files


def test_a_node_whose_scripts_were_ignored_is_not_done_in_the_rescue_file(tmp_path: Path, capsys: Captured) -> None:
    text = nodes("a", "b", "c", "d") + "JOB e {\n executable = /bin/false\n}\n"
    arcs = "PARENT a CHILD c\nPARENT b c d CHILD e\nRETRY d 1\nSCRIPT POST a no.sh\n"
    path = dag(tmp_path, text + arcs)
    assert ran(path, "--retries", "0", "--ignore", "POST,RETRY") == 1
    assert "2 finished nodes left out" in capsys.readouterr().err
    assert (tmp_path / "x.dag.run" / "rescue.dag").read_text().splitlines()[1:] == ["DONE b", "DONE d"]


def test_there_is_no_rescue_file_where_nothing_can_be_in_it(tmp_path: Path, capsys: Captured) -> None:
    path = dag(
        tmp_path, nodes("a") + "JOB e {\n executable = /bin/false\n}\nPARENT a CHILD e\nSCRIPT PRE ALL_NODES no.sh\n"
    )
    assert ran(path, "--retries", "0", "--ignore", "PRE") == 1
    assert "no rescue file for DAGMan: 1 finished node left out" in capsys.readouterr().err
    assert not (tmp_path / "x.dag.run" / "rescue.dag").exists()


# Other formats

RULE = "a:\n\ttouch a\n"
JX_RULE = '{{"command": "touch a", "outputs": ["a"]{more}}}'
PEGASUS = 'pegasus: "5.0"\njobs:\n- {{id: a, name: touch, arguments: [a]{more}}}\n'
DAX = '<adag>{top}<job id="a" name="touch"><argument>a</argument>{inside}</job></adag>'
NINJA = "rule cc\n  command = touch $out\n{rule}pool one\n  depth = 1\nbuild a: cc\n{edge}build b: cc\n{edge}"

ASKS = [
    ("makeflow", f"export PATH\n{RULE}", "export (task 'a', line 2)"),
    ("makeflow", f"{RULE}export A=1\n", "export (line 3)"),
    ("makeflow", f".MAKEFLOW GPUS 1\n{RULE}", "GPUS (line 1)"),
    ("makeflow", f".UMBRELLA SPEC x\n{RULE}", "UMBRELLA (line 1)"),
    ("makeflow", 'a:\nBATCH_OPTIONS="-x"\n\ttouch a\n', "BATCH_OPTIONS (task 'a', line 1)"),
    ("makeflow", "a: far/b->b\n\tcp b a\n", "rename (task 'a', line 1)"),
    ("jx", '{"rules": [' + JX_RULE.format(more=', "resources": {"gpus": 1}') + "]}", "gpus (task 'a', rule 1)"),
    (
        "jx",
        '{"rules": [' + JX_RULE.format(more=', "inputs": [{"dag_name": "b", "task_name": "c"}]') + "]}",
        "rename (task 'a', rule 1)",
    ),
    ("ninja", NINJA.format(rule="  pool = one\n", edge=""), "pool (2 tasks, first 'a', line 6)"),
    ("ninja", NINJA.format(rule="", edge="  dyndep = a.dd\n"), "dyndep (2 tasks, first 'a', line 5)"),
    ("pegasus", PEGASUS.format(more=", profiles: {dagman: {retry: 3}}"), "dagman.retry (task 'a', its profiles)"),
    ("pegasus", PEGASUS.format(more=", hooks: {shell: []}"), "hooks (task 'a', its job)"),
    ("pegasus", "transformationCatalog: {x: []}\n" + PEGASUS.format(more=""), "transformationCatalog (at the top)"),
    ("dax", DAX.format(top='<executable name="x"/>', inside=""), "transformationCatalog (line 1)"),
]


@pytest.mark.parametrize(("format", "text", "line"), ASKS)
def test_every_format_lists_what_a_run_does_not_honour(
    tmp_path: Path, capsys: Captured, format: str, text: str, line: str
) -> None:
    assert unsupported_features(parse(text, format)) == [line]
    path = tmp_path / "flow"
    path.write_text(text)
    assert ran(path, "--from", format) == 2
    assert f"{path}: unsupported in a run: {line}; add --ignore " in capsys.readouterr().err
    assert not (tmp_path / "a").exists()
    with pytest.raises(UnhonouredError):
        eligo.run(read(path, format))


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("makeflow", f"CORES=1\nMEMORY=10\nDISK=5\n.MAKEFLOW MODE MAX\nX=1\n{RULE}"),
        ("makeflow", "a: b->b\n\tLOCAL cp b a\n"),
        ("jx", '{"rules": [' + JX_RULE.format(more=', "local_job": true, "resources": {"cores": 1, "disk": 5}') + "]}"),
        ("ninja", NINJA.format(rule="  depfile = x.d\n  restat = 1\n", edge="")),
        ("pegasus", PEGASUS.format(more=", profiles: {pegasus: {runtime: 3, label: x}, dagman: {PRIORITY: 2}}")),
        ("dax", DAX.format(top="", inside='<profile namespace="pegasus" key="runtime">60</profile>')),
        ("yaml", "tasks:\n- {name: a, run: touch a, priority: 3}\n"),
    ],
)
def test_what_is_honoured_or_changes_nothing_is_not_listed(format: str, text: str) -> None:
    assert unsupported_features(as_runnable(parse(text, format))) == []


def test_a_rule_that_runs_here_is_refused_where_tasks_run_elsewhere() -> None:
    flow = parse("a:\n\tLOCAL touch a\n", "makeflow")
    assert unsupported_features(as_runnable(flow)) == []
    with pytest.raises(UnhonouredError, match=r"LOCAL \(task 'a', line 1\)"):
        as_runnable(flow, elsewhere=True)


LABELLED = """tasks:
- {name: a, run: touch a, labels: [gpu]}
- {name: b, run: touch b, labels: [gpu, site-a]}
- {name: c, run: touch c}
"""


@pytest.mark.parametrize("engine", ["local", "slurm", "dask"])
def test_labels_are_refused_where_machines_do_not_say_theirs(tmp_path: Path, capsys: Captured, engine: str) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(LABELLED)
    assert cli(["run", str(path), "--on", engine]) == 2
    assert "unsupported in a run: labels (2 tasks, first 'a', gpu); add --ignore labels" in capsys.readouterr().err
    assert not (tmp_path / "flow.yaml.run").exists()
    with pytest.raises(UnhonouredError, match="labels"):
        eligo.run(read(path))


def test_labels_are_ignored_by_name_and_that_is_told(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "flow.yaml"
    path.write_text(LABELLED)
    assert ran(path, "--ignore", "labels") == 0
    assert "warning: running without labels (2 tasks, first 'a', gpu)" in capsys.readouterr().err
    assert {name for name in "abc" if (tmp_path / name).exists()} == {*"abc"}


def test_labels_are_honoured_where_a_server_hands_tasks_out() -> None:
    assert unsupported_features(as_runnable(parse(LABELLED), elsewhere=True, labels=None)) == []


@pytest.mark.parametrize("format", ["dagman", "wfcommons", "pegasus", "dax", "makeflow", "jx", "ninja", "graphml"])
def test_formats_without_a_place_for_labels_say_so(format: str) -> None:
    assert "labels (2 tasks)" in lost(parse(LABELLED), format)


def test_every_key_that_formats_list_is_known() -> None:
    known = {key for keys in KEYS.values() for key in keys}
    named = {line.partition(" ")[0] for _, _, line in ASKS if "." not in line.partition(" ")[0]}
    assert named | STATEMENTS.keys() <= known


# Wherever commands are run


@pytest.mark.parametrize("engine", ["local", "slurm", "htcondor", "htcondor-dagman", "http://127.0.0.1:1"])
def test_nothing_is_begun_on_any_engine(tmp_path: Path, capsys: Captured, engine: str) -> None:
    path = dag(tmp_path, nodes("a") + "SCRIPT PRE a no.sh\n")
    assert cli(["run", str(path), "--on", engine]) == 2
    assert "unsupported in a run: PRE (task 'a'" in capsys.readouterr().err
    assert not (tmp_path / "x.dag.run").exists()


def test_a_rehearsal_runs_nothing_of_the_file(tmp_path: Path, capsys: Captured) -> None:
    path = dag(tmp_path, nodes("a", "b") + "SCRIPT PRE a no.sh\n")
    (tmp_path / "times.csv").write_text("task,seconds\na,1\nb,1\n")
    assert ran(path, "--rehearse", "0.1", "--history", str(tmp_path / "times.csv")) == 0
    assert not (tmp_path / "a.made").exists()
    capsys.readouterr()


def test_a_server_refuses_what_its_clients_would_not_do(tmp_path: Path) -> None:
    text = nodes("a") + "SCRIPT PRE a no.sh\n"
    path = dag(tmp_path, text)
    code, _, said = told("serve", str(path), "--port", "0", "--store", str(tmp_path / "other.db"))
    assert (code, "unsupported in a run: PRE (task 'a'" in said) == (2, True)
    with serving(tmp_path, str(path), "--ignore", "PRE", "--open") as (url, _):
        assert "warning: running without PRE (task 'a'" in (tmp_path / "server.err").read_text()
        code, _, said = told("submit", url, str(path))
        assert (code, "unsupported in a run: PRE (task 'a'" in said) == (2, True)
        code, _, said = told("submit", url, str(path), "--ignore", "PRE", "--name", "again")
        assert (code, "warning: running without PRE (task 'a'" in said) == (0, True)
        place = f"{url}/v1/workflows?format=dagman"
        assert _submitted(place, text)[0] == 422
        assert _submitted(f"{place}&ignore=PRE,POST", text)[0] == 201
        assert _submitted(place, "JOB a /etc/passwd\n")[0] == 422
        assert len(got(f"{url}/v1/workflows")["workflows"]) == 3


def _submitted(url: str, text: str) -> tuple[int, str]:
    request = urllib.request.Request(url, text.encode(), {"Idempotency-Key": str(hash((text, url)))})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
            return reply.status, ""
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("export", ["dagman", "snakemake"])
def test_an_export_tells_what_it_leaves_out(tmp_path: Path, capsys: Captured, export: str) -> None:
    path = dag(tmp_path, nodes("a", "b") + "JOB c no.sub NOOP\nPARENT a CHILD b\nSCRIPT PRE a no.sh\n")
    assert cli(["cluster", str(path), "--size", "2", "--export", export, "-o", str(tmp_path / "fat")]) == 0
    assert any(
        "/usr/bin/touch" in (tmp_path / name).read_text() for name in ("fat", "fat_1.sh") if (tmp_path / name).exists()
    )
    assert "warning: exporting without PRE (task 'a'" in capsys.readouterr().err


def test_what_a_conversion_does_not_write_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """And commands stand for submit files, which mean nothing elsewhere."""
    monkeypatch.chdir(tmp_path)
    Path("x.dag").write_text("JOB A a.sub\nSCRIPT POST A check\n")
    Path("a.sub").write_text("executable = /bin/echo\narguments = hi\nhold = true\nqueue\n")
    for words in (["convert", "x.dag", "x.yaml"], ["plan", "x.dag", "-o", "y.yaml"]):
        assert cli(words) == 0
        err = capsys.readouterr().err
        assert "not written: POST (task 'A', x.dag:2), hold (task 'A', a.sub:3)" in err
    for file in ("x.yaml", "y.yaml"):
        assert eligo.read(file).task("A").command == ("/bin/echo", "hi")
    assert cli(["convert", "x.dag", "z.dag"]) == 0
    assert "not written: POST (task 'A', x.dag:2)" in capsys.readouterr().err
    Path("a.sub").unlink()
    assert cli(["convert", "x.dag", "w.yaml"]) == 0
    assert "commands were not written: " in capsys.readouterr().err
    assert eligo.read("w.yaml").task("A").command is None


def test_files_that_htcondor_would_transfer_must_be_there(tmp_path: Path, capsys: Captured) -> None:
    """HTCondor holds a job that did not make what it should bring back, and one whose input is missing."""
    path = dag(tmp_path, "JOB a a.sub\n", a="transfer_output_files = a.made, more.txt")
    assert cli(["run", str(path), "--retries", "0"]) == 1
    assert "the task did not create 'more.txt'" in capsys.readouterr().out
    path = dag(tmp_path, "JOB b b.sub\n", b="transfer_input_files = none.txt")
    assert cli(["run", str(path)]) == 2
    assert "reads 'none.txt', which does not exist" in capsys.readouterr().err

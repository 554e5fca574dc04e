"""Makeflow, in its own language and as JX: files make the arcs, and what is written is read back."""

import time
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eligo.dag import Dag
from eligo.errors import CycleError, DuplicateTaskError, FormatError, InputError
from eligo.formats import jx, makeflow
from eligo.formats.shared import rules
from eligo.launch import Launch
from eligo.workflow import Task, Workflow
from format_cases import MEGABYTE, accepts_or_refuses, damaged, names, workflows

both = pytest.mark.parametrize("module", [makeflow, jx], ids=["makeflow", "jx"])

MAKE = r"""# a comment that ends in a backslash \
CURL=/usr/bin/curl
URL="http://localhost/a b"
export CURL
export PLACE=here
CORES=1
NAMES=count.txt
NAMES+="the rest"
.SIZE page.html 20K   # about
page.html: $CURL
	LOCAL $(CURL)  -o page.html   $URL  # fetch

.MAKEFLOW CATEGORY count
.MAKEFLOW CORES 4
MEMORY=100
links.txt count.txt : \
    page.html extract.py->x.py
@CORES=2
	python x.py "page.html" '$HOME' > links.txt ; wc \
 -l links.txt > count.txt
all: ${NAMES} links.txt
    cat $NAMES \$NAMES $UNKNOWN > all
sub.out: all
	MAKEFLOW sub.mf
"""
JSON = r"""# JX has comments
{
  "categories": {"count": {"resources": {"cores": 4, "memory": 100}, "environment": {"A": "b"}}},
  "default_category": "usual",
  "rules": [
    {"command": "/usr/bin/curl -o page.html it\'s", "inputs": ["/usr/bin/curl"], "outputs": ["page.html"], "local_job": true},
    {"command": "python x.py", "category": "count", "resources": {"cores": 2, "disk": 5, "wall-time": 60},
     "inputs": [{"dag_name": "page.html", "size": 20480, "task_name": "p"}, "extract.py"],
     "outputs": ["links.txt", "count.txt"],},
    {"workflow": "sub.jx", "args": {"n": 1}, "inputs": ["links.txt"], "outputs": ["all"], "environment": {"X": "y"}},
  ],
}
"""


EXPORTED = Launch(env={"CURL": "/usr/bin/curl", "PLACE": "here"})


def test_the_language() -> None:
    """page.html -> links.txt -> all -> sub.out: each named by its first file."""
    flow = makeflow.parse(MAKE)
    assert makeflow.sniff(MAKE)
    assert list(flow.dag.arcs()) == [("page.html", "links.txt"), ("links.txt", "all"), ("all", "sub.out")]
    assert flow.file_sizes == {"page.html": 20 * 1024}
    count: dict[str, Any] = {"cores": 4, "memory": 100 * MEGABYTE, "category": "count", "launch": EXPORTED}
    assert dict(flow.details) == {
        "page.html": Task(name="page.html", command='/usr/bin/curl -o page.html "http://localhost/a b"', cores=1,
                          inputs=("/usr/bin/curl",), outputs=("page.html",), launch=EXPORTED),
        "links.txt": Task(name="links.txt", inputs=("page.html", "extract.py"), outputs=("links.txt", "count.txt"),
                          command="python x.py \"page.html\" '$HOME' > links.txt ; wc -l links.txt > count.txt",
                          **(count | {"cores": 2})),
        "all": Task(name="all", command='cat count.txt "the rest" $NAMES $UNKNOWN > all', **count,
                    inputs=("count.txt", "the rest", "links.txt"), outputs=("all",)),
        "sub.out": Task(name="sub.out", command="makeflow sub.mf", inputs=("all",), outputs=("sub.out",), **count),
    }  # fmt: skip


def test_jx() -> None:
    flow = jx.parse(JSON)
    assert jx.sniff(JSON)
    assert list(flow.dag.arcs()) == [("page.html", "links.txt"), ("links.txt", "all")]
    assert flow.file_sizes == {"page.html": 20480}
    assert dict(flow.details) == {
        "page.html": Task(name="page.html", command="/usr/bin/curl -o page.html it's", inputs=("/usr/bin/curl",),
                          outputs=("page.html",)),
        "links.txt": Task(name="links.txt", command="python x.py", inputs=("page.html", "extract.py"),
                          outputs=("links.txt", "count.txt"), cores=2, memory=100 * MEGABYTE, category="count",
                          launch=Launch(env={"A": "b"}, timeout=60)),
        "all": Task(name="all", command="makeflow sub.jx", inputs=("links.txt",), outputs=("all",),
                    launch=Launch(env={"X": "y"})),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("written", "files"),
    [
        ("a\\ b c", ["a b", "c"]),
        ("'a b'c \"d $X\"", ["a bc", "d x y"]),
        ("$X", ["x", "y"]),
        ("pre$(X)post", ["prex", "ypost"]),
        ("a-b a--c \\-d", ["a-b", "a--c", "-d"]),
        ("a->b c", ["a", "c"]),
        ("a\\:b \\#c d\\=e", ["a:b", "#c", "d=e"]),
        ("", ["rule 1"]),
    ],
)
def test_names_of_files(written: str, files: list[str]) -> None:
    flow = makeflow.parse(f"X=x y\n{written}: in\n\tcommand\n")
    assert [*(flow.task(flow.dag.tasks[0]).outputs or flow.dag.tasks)] == files


@pytest.mark.parametrize(
    ("written", "command"),
    [
        ("echo  a\t\tb ", "echo a b"),
        ("echo a\\  b", "echo a  b"),
        ("echo '#' \\# # gone", "echo '#' #"),
        ('echo "$X\\"" \'$X\'', 'echo "x y"" \'$X\''),
        ("$X;$(X) ${X}z", "$X;x y x yz"),
        ("LOCAL LOCAL ls", "ls"),
        ("$L ls", "ls"),
    ],
)
def test_commands(written: str, command: str) -> None:
    """A name of a variable ends where Makeflow ends it: $X; is another variable than $X."""
    assert makeflow.parse(f"X=x y\nL=LOCAL\na:\n\t{written}\n").task("a").command == command


def test_lines_may_end_in_any_way() -> None:
    flow = makeflow.parse("a:\r\n\tls > a\r\n\r\nb: \\\r\n a\r\n\tcp a b")
    assert list(flow.dag.arcs()) == [("a", "b")]
    assert flow.task("b").command == "cp a b"


# Writing


def test_tasks_without_files_get_marks() -> None:
    """a has no command, b no files, and c reads what b does not write."""
    flow = Workflow(
        Dag.from_arcs([("a", "b"), ("b", "c")]),
        {"b": Task(name="b", command="LOCAL"), "c": Task(name="c", command=("sort", "x y"), outputs=("c",))},
    )
    assert makeflow.generate(flow) == (
        "a.done:\nELIGO_TASK=a\nELIGO_MARK=a.done\n\ttouch a.done\n"
        "b.done: a.done\nELIGO_TASK=b\nELIGO_MARK=b.done\n\ttouch b.done; LOCAL\n"
        "c: b.done\n\tsort \\'x y\\'\n"
    )
    assert jx.generate(flow) == (
        '{"rules": [\n'
        '  {"task": "a", "mark": "a.done", "command": "touch a.done", "inputs": [], "outputs": ["a.done"]},\n'
        '  {"task": "b", "mark": "b.done", "command": "touch b.done; LOCAL", "inputs": ["a.done"], "outputs": ["b.done"]},\n'
        '  {"command": "sort \'x y\'", "inputs": ["b.done"], "outputs": ["c"]}\n'
        "]}\n"
    )


def test_a_mark_is_a_file_of_its_own() -> None:
    flow = Workflow(Dag.from_arcs([("a", "b")]), {"b": Task(name="b", inputs=("a.done",))})
    assert rules.rules_of(flow, "Makeflow")[0].outputs == ("_a.done",)


def test_amounts_are_rounded_up() -> None:
    flow = Workflow(Dag.from_arcs([], ["a"]), {"a": Task(name="a", cores=0.5, memory=1)})
    assert makeflow.parse(makeflow.generate(flow)).task("a") == Task(name="a", cores=1, memory=MEGABYTE)


words = names | st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8)
known = {
    "command": words,
    "cores": st.integers(1, 64),
    "memory": st.integers(1, 2**20).map(lambda n: n * MEGABYTE),
    "category": words,
}
ODD = Workflow(
    Dag.from_arcs([("", "=")]),
    {
        "=": Task(name="=", command=" LOCAL  a", outputs=("-a->b", "\t", '"'), category="'x' "),
        "": Task(name="", command=""),
    },
)


@both
@settings(max_examples=60)
@given(flow=workflows(names, words, **known))
@example(flow=ODD)
def test_everything_is_read_back(module: ModuleType, flow: Workflow) -> None:
    text = module.generate(flow)
    assert replace(module.parse(text), origin=None) == flow
    assert module.sniff(text)


@both
@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        (
            [Task(name="a", inputs=("f",), outputs=("f",))],
            "task 'a' reads and writes 'f', which Makeflow cannot represent",
        ),
        ([Task(name="a", outputs=("f",)), Task(name="b", outputs=("f",))], "tasks 'a' and 'b' both write 'f'"),
        (
            [Task(name="a", outputs=("f",)), Task(name="b", inputs=("f",))],
            "no arc between them; Makeflow would add one",
        ),
    ],
)
def test_files_that_rules_cannot_have(module: ModuleType, tasks: list[Task], message: str) -> None:
    dag = Dag.from_arcs([], [task.name for task in tasks])
    with pytest.raises(FormatError) as caught:
        module.generate(Workflow(dag, {task.name: task for task in tasks}))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (Task(name="a b", command="x\ny"), "the command of task 'a b' contains '\\n', which Makeflow cannot represent"),
        (
            Task(name="a b", outputs=("f\x1a",)),
            "a file of task 'a b', 'f\\x1a', contains '\\x1a', which Makeflow cannot represent",
        ),
        (Task(name="a b", inputs=("",)), "a file of task 'a b' has an empty name, which Makeflow does not allow"),
        (Task(name="a b", category="\r"), "the category of task 'a b' contains '\\r', which Makeflow cannot represent"),
    ],
)
def test_what_the_language_cannot_say_is_refused_by_name(task: Task, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        makeflow.generate(Workflow(Dag.from_arcs([], ["a b"]), {"a b": task}))
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("\0", "task 'a': a string contains '\\x00', which is not a valid character"),
        ("x" * 70_000, "more than 65,000 bytes"),
    ],
)
def test_what_jx_cannot_say_is_refused_by_name(command: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        jx.generate(Workflow(Dag.from_arcs([], ["a"]), {"a": Task(name="a", command=command)}))
    assert message in str(caught.value)


# What is wrong

WRONG = {
    "a:\n\tx\nb a:\n\ty\n": "line 3: two rules write the file 'a': this one and line 1",
    "a:\n": "line 1: a rule has no command (write it on the next line, after a tab)",
    "a:\nb:\n\tx\n": "line 1: a rule has no command",
    "a:\n\tx\n\ty\n": "line 3: a command has no rule",
    "\nls\n": "line 2: a line must be a rule (files: files), a variable (X=value) or a command after a tab, got 'ls'",
    "=x\n": "line 1: a variable must be NAME=VALUE, got '=x'",
    "\na: 'b\n\tx\n": "line 2: the line has an unclosed quote",
    "a:\n\techo 'b\n": "line 2: the line has an unclosed quote",
    "a: $X\n\tx\n": "line 1: the variable 'X' is not set in the file",
    'a: "$X"\n\tx\n': "line 1: the variable 'X' is not set",
    "X=$Y\n": "line 1: the variable 'Y' is not set",
    "a: ->b\n\tx\n": "line 1: an arrow must be between two names of a file",
    "a: b->\n\tx\n": "line 1: an arrow must be between two names of a file",
    ".SIZE a big\n": "line 1: unknown directive '.SIZE a big'",
    ".MAKEFLOW CORES many\n": "line 1: unknown directive '.MAKEFLOW CORES many'",
    ".OTHER x\n": "line 1: unknown directive '.OTHER x'",
    "X=\\$X\na: $X\n\tx\n": "line 2: variables expand to too much, or to themselves",
    "X=\\$X\\$X\na:\n\t$X\n": "line 3: variables expand to too much, or to themselves",
    "X=xxxxxxxxxx\n" + "X=$X$X\n" * 40: "variables expand to too much, or to themselves",
    "X=x\n" + "X+=y\n" * 100_000: "variables expand to too much, or to themselves",
    "a:\nELIGO_TASK=b\n\tx\nb:\n\tx\n": "line 4: duplicate task 'b'",
}


@pytest.mark.parametrize("text", WRONG, ids=lambda text: repr(text[:20]))
def test_rules_that_do_not_fit(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(InputError) as caught:
        makeflow.parse(text)
    assert WRONG[text] in str(caught.value)
    assert time.perf_counter() - start < 60  # it ends; how soon is for the benchmarks


def rule(more: str) -> str:
    return '{"rules": [\n {"command": "x", ' + more + "}]}"


WRONG_JX = {
    '{"rules": [{"command": "x", "outputs": ["a"]},\n {"command": "x", "outputs": ["a"]}]}': "line 2: two rules write"
    " the file 'a': this one and line 1",
    '{"rules": [\n {"outputs": ["a"]}]}': 'line 2: rule 1 must have either a "command" or a "workflow"',
    rule('"outputs": "a"'): 'line 2: "outputs" of rule 1 must be a list, got a string',
    rule('"outputs": [1]'): 'line 2: a file in "outputs" of rule 1 must be a string, got a number',
    rule('"outputs": [{"name": "a"}]'): 'line 2: a file in "outputs" of rule 1 is missing',
    rule('"inputs": [{"dag_name": "a", "size": -1}]'): (
        "line 2: \"size\" of 'a' must be an integer number of bytes, or text such as 2G, got -1"
    ),
    rule('"category": 5'): 'line 2: "category" of rule 1 must be a string, got a number',
    rule('"resources": {"cores": "many"}'): 'line 2: "cores" of rule 1 must be an integer within range, got a string',
    rule('"outputs": [format("a.%d", i)]'): "line 2: 'i' is not defined",
    rule('"outputs": ["a" + ["b"]]'): "line 2: '+' cannot be applied to a string and a list",
    rule('"outputs": ["a" for i in 1]'): "line 2: 'for' needs a list, got an integer",
    rule('"outputs": ["a" "b"]'): "line 2: unexpected value (a comma or colon is missing before it)",
    rule('"command": "y"'): "line 2: the key 'command' appears twice in one object",
    '{"rules": [1]}': "rule 1 must be an object, got a number",
    '{"rules": {}}': '"rules" must be a list, got an object',
    '{"rules": ["a': "line 1: a string has no closing quote",
    '{"rules": [': "line 1: unexpected end of the text",
    '{"rules": [}': "line 1: unexpected '}'",
    "{5: 6}": "line 1: a key must be a string",
    "[]": "the document must be an object, got a list",
    "{}": 'no rules (a Makeflow document lists them under "rules")',
    "[" * 100_000: "line 1: the JX is nested more than 64 levels deep",
    '{"rules": ' + "1" * 10_000 + "}": "line 1: a number has too many digits",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG_JX, ids=lambda text: text[:60])
def test_jx_that_does_not_fit(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        jx.parse(text)
    assert WRONG_JX[text] in str(caught.value)


def test_cycles() -> None:
    with pytest.raises(CycleError):
        makeflow.parse("a: b\n\tx\nb: a\n\tx\n")
    with pytest.raises(CycleError):
        jx.parse('{"rules": [{"command": "x", "inputs": ["a"], "outputs": ["a"]}]}')


def test_a_name_given_twice_in_jx() -> None:
    with pytest.raises(DuplicateTaskError):
        jx.parse('{"rules": [{"command": "x", "task": "a"}, {"command": "x", "task": "a"}]}')


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "'x'\"y\"" * 100_000 + "\n\tx\n",
        "a: " + "\\\n" * 200_000 + "b\n\tx\n",
        "a:\n\t" + '"' * 200_001 + "\n",
        "a:\n\t" + "'\\" * 100_000 + "\n",
        "# " * 300_000,
    ],
    ids=["pieces", "continued", "quotes", "escapes", "comment"],
)
def test_long_lines_take_no_longer(text: str) -> None:
    start = time.perf_counter()
    accepts_or_refuses(makeflow.parse, text)
    assert time.perf_counter() - start < 60  # it ends; how soon is for the benchmarks


@given(
    text=damaged(
        [MAKE], ["\t", "\n", ":", "=", "$X", "$(", "\\", "'", '"', "#", "->", ".SIZE ", "@", "+=", "MEMORY=9P\n"]
    )
)
def test_damaged_rules(text: str) -> None:
    accepts_or_refuses(makeflow.parse, text)


@given(
    text=damaged([JSON], ["{", "}", "[", "]", ",", ":", '"', "#", "\\u00", "1e999", "null", "for", "-", '"size": 1e30'])
)
def test_damaged_jx(text: str) -> None:
    accepts_or_refuses(jx.parse, text)


@both
@given(text=st.text(max_size=30) | st.text("ab:=$(){}[]'\"\\#@+-> \t\n", max_size=30))
def test_any_text(module: ModuleType, text: str) -> None:
    module.sniff(text)
    accepts_or_refuses(module.parse, text)

"""eligo finds in a DAG file the nodes and arcs that DAGMan finds there, and refuses what DAGMan refuses."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from condor_pool import Pool, is_join

import eligo
from eligo.dag import Dag
from eligo.errors import EligoError

pytest_plugins = ["condor_fixtures"]

SECONDS = 120
ARC = re.compile(r'^\s*"(.*)" -> "(.*)";$', re.MULTILINE)
FIXED = {
    "node.sub": "executable = /bin/true\nlog = node.log\nqueue\n",
    # Arcs as the user wrote them: with join nodes DAGMan would show its own.
    "oracle.conf": "DAGMAN_USE_JOIN_NODES = False\nDAGMAN_STARTUP_CYCLE_DETECT = True\n",
    "oracle.dag": "CONFIG oracle.conf\nDOT oracle.dot\nINCLUDE user.dag\n",
}
Files = str | bytes | dict[str, str]


def nodes(*names: str) -> str:
    return "".join(f"JOB {name} node.sub NOOP\n" for name in names)


AB = nodes("a", "b")
A_THEN_B = "PARENT a CHILD b\n"
CHAIN = nodes("p", "q") + "PARENT p CHILD q\n"

READ: dict[str, Files] = {
    "keywords in any case": "job a node.sub noop\nJob b node.sub NoOp\nparent a Child b\n",
    "comments": f"# JOB z node.sub\n   # PARENT b CHILD a\n\n{AB}{A_THEN_B}",
    "comment that ends in a backslash": f"# hello \\\n{AB}{A_THEN_B}",
    "continued lines": "JOB a \\\n node.sub \\\n NOOP\nJOB \\\nb node.sub NOOP\nPARENT a \\\nCHILD b\n",
    "blank after the backslash": f"{AB}PARENT a \\ \nCHILD b\n",
    "CR LF": f"{AB}{A_THEN_B}".replace("\n", "\r\n"),
    "CR LF and continued": f"JOB a node.sub \\\nNOOP\n{nodes('b')}{A_THEN_B}".replace("\n", "\r\n"),
    "no end of line at the end": f"{AB}PARENT a CHILD b",
    "tabs and blanks": "\tJOB\ta\tnode.sub\tNOOP  \n JOB  b   node.sub NOOP\t\n\tPARENT\ta\tCHILD\tb\t\n",
    "keywords as names": nodes("JOB", "PRIORITY", "DONE", "SPLICE") + "PARENT JOB PRIORITY CHILD DONE SPLICE\n",
    "names that differ in case": nodes("a", "A") + "PARENT a CHILD A\n",
    "punctuation in names": nodes("a.b", "c-d", "e:f", "g/h", "i=j", "k,l", "{", "m\\n", "#o")
    + "PARENT a.b CHILD c-d e:f g/h i=j k,l { m\\n #o\n",
    "letters of the world": nodes("ä", "日本") + "PARENT ä CHILD 日本\n",
    "Latin-1": (nodes("\xe4", "b") + "PARENT \xe4 CHILD b\n").encode("latin-1"),
    "blanks that are none": nodes("a\u00a0c", "d\u2028e", "h\u3000i"),
    "quoted file": f'JOB a "node.sub" NOOP\n{nodes("b")}{A_THEN_B}',
    "missing submit file": f"JOB a nothing.sub NOOP\n{nodes('b')}{A_THEN_B}",
    "quotes in VARS": AB + 'VARS a k="v \\"q\\" \\\\ PARENT b CHILD a" l="#x"\nVARS ALL_NODES m="\'"\n' + A_THEN_B,
    "VARS before and after": f'{AB}VARS a PREPEND p="1"\nVARS b APPEND q="2"\n{A_THEN_B}',
    "VARS continued": f'{AB}VARS a k="v \\\nPARENT b CHILD a"\n{A_THEN_B}',
    "PRE_SKIP and ABORT-DAG-ON": f"{AB}PRE_SKIP a 1\nABORT-DAG-ON a 3 RETURN 1\n{A_THEN_B}",
    "named description": "SUBMIT-DESCRIPTION d {\n executable = /bin/true\n # PARENT\n arguments = JOB z node.sub\n}\n"
    "JOB a d NOOP\nJOB b d NOOP\n" + A_THEN_B,
    "description in the line": "JOB a {\n executable = /bin/true\n arguments = } \n # JOB z node.sub\n} NOOP\n"
    + nodes("b")
    + A_THEN_B,
    "arcs before nodes": A_THEN_B + AB,
    "arcs twice": nodes("a", "b", "c")
    + "PARENT a a CHILD b b\nPARENT a b CHILD c\nPARENT a CHILD b\nPARENT a CHILD c\n",
    "many to many": nodes(*"abcdef") + "PARENT a b c CHILD d e f\n",
    "nothing": "# nothing\n",
    "done": f"JOB a node.sub NOOP DONE\n{nodes('b')}{A_THEN_B}",
    "DIR": f"JOB a node.sub DIR . NOOP\n{nodes('b')}{A_THEN_B}",
    "inner DAG": f"SUBDAG EXTERNAL a nothing.dag NOOP\n{nodes('b')}{A_THEN_B}",
    "same splice twice": {
        "in.dag": CHAIN,
        "user.dag": f"SPLICE S in.dag\nSPLICE T in.dag\n{nodes('a')}PARENT S CHILD T a\n",
    },
    "splice used before it is named": {
        "in.dag": CHAIN,
        "user.dag": f"PARENT S CHILD a\nSPLICE S in.dag\n{nodes('a')}",
    },
    "nested splices": {
        "in.dag": nodes("p", "q", "r") + "PARENT p CHILD q\n",
        "mid.dag": "SPLICE X in.dag\nSPLICE Y in.dag\nPARENT X CHILD Y\n",
        "user.dag": f"SPLICE S mid.dag\nSPLICE T mid.dag\n{nodes('a')}PARENT S CHILD T\nPARENT T CHILD a\n",
    },
    "splice in a folder": {
        "sub/in.dag": "SPLICE M m.dag DIR deep\nSPLICE N deep/m.dag\n" + CHAIN + "INCLUDE more.dag\n",
        "sub/more.dag": nodes("r"),
        "sub/deep/m.dag": nodes("z"),
        "user.dag": f"SPLICE S in.dag DIR sub\n{nodes('a')}PARENT S CHILD a\n",
    },
    "categories of splices": {
        "in.dag": CHAIN + "CATEGORY p c\nMAXJOBS c 1\nCATEGORY q +g\nPRIORITY p 5\nPRIORITY ALL_NODES 2\n",
        "user.dag": "SPLICE S in.dag\nMAXJOBS +g 2\n",
    },
    "pins": {
        "in.dag": CHAIN + nodes("r") + "PIN_IN p 1\nPIN_IN r 1\nPIN_OUT q 1\nPIN_OUT r 1\n",
        "user.dag": "SPLICE S in.dag\nSPLICE T in.dag\nCONNECT S T\n",
    },
    "files from the folder of the submit": {
        "sub/i.dag": f"INCLUDE j.dag\n{nodes('p')}",
        "sub/j.dag": nodes("wrong"),
        "j.dag": nodes("right"),
        "user.dag": "INCLUDE sub/i.dag\nPARENT p CHILD right\n",
    },
    "categories": f"{AB}CATEGORY ALL_NODES big\nMAXJOBS big 1\n{A_THEN_B}",
    "scripts": AB
    + "SCRIPT DEFER 1 2 PRE a /bin/true PARENT b CHILD a\nSCRIPT DEBUG d.txt ALL POST b /bin/true\n"
    + A_THEN_B,
    "retries": f"{AB}RETRY a 3 UNLESS-EXIT 2\nRETRY ALL_NODES 2\n{A_THEN_B}",
    "files that DAGMan writes": f"{AB}NODE_STATUS_FILE s.txt 30\nJOBSTATE_LOG j.log\nSAVE_POINT_FILE a\n{A_THEN_B}",
    "attributes": f'{AB}SET_JOB_ATTR x = "y"\nENV SET A=1;B=2\n{A_THEN_B}',
    "priorities": f"{AB}PRIORITY a 3\nPRIORITY a -4\nPRIORITY b +4\n{A_THEN_B}",
}
BESIDES: dict[str, Files] = {
    "final node": f"{AB}FINAL late node.sub NOOP\nPRIORITY ALL_NODES 3\n{A_THEN_B}",
    "service": f"{AB}SERVICE late node.sub\n{A_THEN_B}",
}
REFUSED: dict[str, Files] = {
    "comment after a command": f"{AB}PARENT a CHILD b # c\n",
    "only CR": f"{AB}{A_THEN_B}".replace("\n", "\r"),
    "NUL": b"JOB a node.sub NOOP\nJOB b\x00c node.sub NOOP\n",
    "node named PARENT": nodes("PARENT", "b"),
    "node named child": nodes("child", "b"),
    "node named ALL_NODES": nodes("ALL_NODES", "b"),
    "plus in a name": nodes("a+b", "c"),
    "same name twice": nodes("a", "b", "a"),
    "own parent": f"{AB}PARENT a CHILD a\n",
    "cycle": f"{AB}{A_THEN_B}PARENT b CHILD a\n",
    "unknown child": f"{AB}PARENT a CHILD z\n",
    "unknown node with a priority": f"{AB}PRIORITY z 3\n",
    "two priorities": f"{AB}PRIORITY a 3 4\n",
    "no CHILD": f"{AB}PARENT a b\n",
    "no child": f"{AB}PARENT a CHILD\n",
    "no parent": f"{AB}PARENT CHILD a\n",
    "PARENT twice": nodes("a", "b", "c") + "PARENT a PARENT b CHILD c\n",
    "arc to the final node": f"{AB}FINAL f node.sub NOOP\nPARENT a CHILD f\n",
    "two final nodes": f"{AB}FINAL f node.sub NOOP\nFINAL g node.sub NOOP\n",
    "final node with a priority": f"{AB}FINAL f node.sub NOOP\nPRIORITY f 3\n",
    "word after NOOP": f"JOB a node.sub NOOP extra\n{nodes('b')}",
    "unknown command": f"{AB}FROB a\n",
    "REJECT": f"{AB}REJECT\n",
    "node named as a splice": {"in.dag": CHAIN, "user.dag": f"SPLICE S in.dag\n{nodes('S')}"},
    "priority of a splice": {"in.dag": CHAIN, "user.dag": "SPLICE S in.dag\nPRIORITY S 3\n"},
    "final node in a splice": {"in.dag": f"{CHAIN}FINAL f node.sub NOOP\n", "user.dag": "SPLICE S in.dag\n"},
    "pins with a gap": {
        "in.dag": CHAIN + "PIN_IN p 2\nPIN_OUT q 2\n",
        "user.dag": "SPLICE S in.dag\nSPLICE T in.dag\nCONNECT S T\n",
    },
    "missing splice file": f"{AB}SPLICE S nothing.dag\n",
    "missing included file": f"{AB}INCLUDE nothing.dag\n",
}


@dataclass(frozen=True)
class Reading:
    """What DAGMan found in a file, or why it found nothing."""

    folder: Path
    names: set[str]
    arcs: set[tuple[str, str]]
    complaint: str | None = None


def ask_dagman(pool: Pool, name: str, content: Files) -> Reading:
    files: Mapping[str, str | bytes] = content if isinstance(content, dict) else {"user.dag": content}
    folder = pool.folder(f"reading {name}", {**FIXED, **files})
    try:
        run = pool.submit(folder / "oracle.dag")
    except subprocess.CalledProcessError as error:
        return Reading(folder, set(), set(), error.stdout)
    pool.wait(run, SECONDS)
    if run.status != 0:
        return Reading(folder, set(), set(), run.last_words)
    names = {decoded(node) for node in run.submitted}
    drawing = (folder / "oracle.dot").read_text("utf-8", "surrogateescape")
    arcs = {(decoded(tail), decoded(head)) for tail, head in ARC.findall(drawing)}
    return Reading(folder, names, {(tail, head) for tail, head in arcs if {tail, head} <= names})


def decoded(name: str) -> str:
    """The name as eligo reads it: as Latin-1 where it is not UTF-8."""
    raw = name.encode("utf-8", "surrogateescape")
    return raw.decode("latin-1") if "\udc80" <= max(name) <= "\udcff" else name


def without_joins(dag: Dag) -> tuple[set[str], set[tuple[str, str]]]:
    """The names and arcs that the user meant: from each parent of a join node to each of its children."""
    arcs = {(tail, head) for tail, head in dag.arcs() if not is_join(tail) and not is_join(head)}
    for join in filter(is_join, dag.tasks):
        arcs.update((tail, head) for tail in dag.parents(join) for head in dag.children(join))
    return {name for name in dag.tasks if not is_join(name)}, arcs


@pytest.fixture(scope="module")
def readings(pool: Pool) -> Iterator[dict[str, Future[Reading]]]:
    """Every file, forty at a time."""
    with ThreadPoolExecutor(40) as threads:
        yield {
            name: threads.submit(ask_dagman, pool, name, files) for name, files in (READ | BESIDES | REFUSED).items()
        }


@pytest.mark.parametrize("name", READ | BESIDES)
def test_eligo_reads_what_dagman_reads(readings: dict[str, Future[Reading]], name: str) -> None:
    theirs = readings[name].result()
    assert theirs.complaint is None
    names, arcs = without_joins(eligo.read(theirs.folder / "user.dag").dag)
    assert names == theirs.names - {"late"}
    assert arcs == theirs.arcs


@pytest.mark.parametrize("name", REFUSED)
def test_eligo_refuses_what_dagman_refuses(readings: dict[str, Future[Reading]], name: str) -> None:
    theirs = readings[name].result()
    assert theirs.complaint is not None
    with pytest.raises(EligoError):
        eligo.read(theirs.folder / "user.dag")

"""A CMake project and ninja itself: the same statements, arcs and commands as ninja sees, its log, and a build without it."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_venv import engine_python

import eligo
from benchmarks.builds import began, configured
from benchmarks.cmake_project import write_project
from eligo.formats.ninja.manifest import Edge, read_manifest
from eligo.formats.shared.files import Beside
from eligo.simulation import finish_on

LIBRARIES, SOURCES = 6, 4
LONGEST = 300


def ninjas() -> list[str]:
    """The newest ninja, and that of the machine."""
    python = engine_python("ninja", with_eligo=False)
    found = [] if python is None else [str(python.parent / "ninja")]
    return [*found, *filter(None, [shutil.which("ninja")])]


@pytest.fixture(scope="module", params=[0, 1], ids=["newest", "installed"])
def ninja(request: pytest.FixtureRequest) -> str:
    found = ninjas()
    if request.param >= len(found) or shutil.which("cmake") is None or shutil.which("cc") is None:
        sys.stderr.write(
            "\neligo: NINJA, CMAKE OR A COMPILER IS MISSING: what is read of builds is not compared with them\n"
        )
        pytest.skip("ninja, cmake or a compiler is missing")
    return str(found[request.param])


@pytest.fixture(scope="module")
def build(ninja: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a build that ninja has done."""
    folder = tmp_path_factory.mktemp("project")
    write_project(folder / "source", LIBRARIES, SOURCES)
    place = configured(folder, ninja)
    subprocess.run([ninja, "-C", str(place), "-j2"], check=True, capture_output=True, timeout=LONGEST)
    yield place
    shutil.rmtree(folder)


def said(ninja: str, place: Path, *words: str) -> str:
    done = subprocess.run(
        [ninja, "-C", str(place), *words], capture_output=True, text=True, check=True, timeout=LONGEST
    )
    return re.sub(r"^ninja: Entering directory.*\n", "", done.stdout)


def test_the_commands_are_those_of_ninja(ninja: str, build: Path) -> None:
    flow = eligo.read(build / "build.ninja")
    ours = [re.sub(r"^\[ -d [^;]*; ", "", str(flow.task(name).command)) for name in flow.dag.tasks]
    assert sorted(ours) == sorted(said(ninja, build, "-t", "commands").splitlines())
    assert len(ours) > LIBRARIES * (SOURCES + 1)


def test_the_graph_is_that_of_ninja(ninja: str, build: Path) -> None:
    """What `ninja -t graph` draws: files, and statements between them."""
    theirs = drawn(said(ninja, build, "-t", "graph"))
    path = build / "build.ninja"
    manifest = read_manifest(path.read_text("utf-8"), Beside(str(path)))
    reached = {made for _, made, _ in theirs}
    ours = {arc for edge in manifest.edges if reached & {*edge.outputs} for arc in arcs_of(edge) if arc[1] in reached}
    assert ours == theirs
    flow = eligo.read(path)
    assert set(flow.dag.tasks) == {e.outputs[0] for e in manifest.edges if not e.is_phony and reached & {*e.outputs}}


def arcs_of(edge: Edge) -> Iterator[tuple[str | None, str, str]]:
    for made in edge.outputs:
        yield None, made, edge.recipe.name
        for used in (*edge.inputs, *edge.order_only):
            yield used, made, edge.recipe.name


def drawn(text: str) -> set[tuple[str | None, str, str]]:
    """From which file which one is made by which rule, in what ninja draws; None where it only says that it is made."""
    files = dict(re.findall(r'^"(0x\w+)" \[label="([^"]*)"\]$', text, re.MULTILINE))
    rules = dict(re.findall(r'^"(0x\w+)" \[label="([^"]*)", shape=ellipse\]$', text, re.MULTILINE))
    arcs = re.findall(r'^"(0x\w+)" -> "(0x\w+)"(?: \[(.*)\])?$', text, re.MULTILINE)
    found: set[tuple[str | None, str, str]] = set()
    for tail, head, known in arcs:
        if tail in files and head in files:
            rule = str(re.findall(r'label=" ?([^"]*)"', known)[0])
            found |= {(files[tail], files[head], rule), (None, files[head], rule)}
        elif tail in rules and head in files:  # what nothing needs is not called by its name
            used = {files[start] for start, end, _ in arcs if end == tail and start in files}
            found |= {(file, files[head], rules[tail]) for file in used} | {(None, files[head], rules[tail])}
    return found


def test_the_log_has_the_seconds_of_every_task(build: Path) -> None:
    log = build / ".ninja_log"
    flow = eligo.with_history(eligo.read(build / "build.ninja"), log)
    theirs = began(flow, log)
    eligo.priorities(flow, theirs)  # it is a schedule: ninja began nothing before what it needs
    bound = eligo.earliest_finish(flow, 2).seconds
    played, ours = (finish_on(flow, 2, order).makespan for order in (theirs, "finish"))
    assert bound <= ours * 1.000001
    assert ours <= played * 1.000001
    verb = [sys.executable, "-m", "eligo", "plan", str(build / "build.ninja"), "--history", str(log), "--workers", "8"]
    done = subprocess.run(verb, capture_output=True, text=True, check=True, timeout=LONGEST)
    assert f"{len(flow):,} tasks by name" in done.stderr
    assert "8 workers: about" in done.stdout


def test_eligo_builds_what_ninja_builds(ninja: str, build: Path, tmp_path: Path) -> None:
    place = configured(tmp_path, ninja, build.parent / "source")
    verb = [sys.executable, "-m", "eligo", "run", str(place / "build.ninja"), "--workers", "2", "--quiet"]
    subprocess.run(verb, check=True, capture_output=True, timeout=LONGEST)
    flow = eligo.read(place / "build.ninja")
    assert all((place / file).exists() for name in flow.dag.tasks for file in flow.task(name).outputs)
    assert (place / "liblib0.a").stat().st_size == (build / "liblib0.a").stat().st_size
    subprocess.run([str(place / "one")], check=True, timeout=LONGEST)


TORTURE = {
    "build.ninja": r"""
x = 1
depfile = file
rule r
  command = r $in -> $out : $x $y ${x}.${z} $$ $depfile
  depfile = rule $description
  description = d $out
include more.ninja
build a$ b $
  c|i d: r ./in//1 ../q'uote | imp || $
    order |@ v
  z = $x$y
build v: r a$ b
x = 2
subninja sub.ninja
build ${x}e: r
build last: phony ${x}e f d
default last v
""",
    "more.ninja": "y = $x and more$\n    to come  \n",
    "sub.ninja": """x = 3
rule r
 command = sub $x $y $in $in_newline
build f: r d ${x}e | 2e
build 3e: r
  x = 9
  y = $x
""",
}


def test_scopes_and_escapes_are_those_of_ninja(ninja: str, tmp_path: Path) -> None:
    for name, text in TORTURE.items():
        (tmp_path / name).write_text(text, "utf-8")
    flow = eligo.read(tmp_path / "build.ninja")
    ours = "\n".join(str(flow.task(name).command) for name in flow.dag.tasks)
    theirs = said(ninja, tmp_path, "-t", "commands")
    assert sorted(ours.splitlines()) == sorted(theirs.splitlines())
    assert len(flow) == 5


R = "rule r\n command = r\n"


@pytest.mark.parametrize(
    "text",
    ["build a: cc b\n", "rule r\n x = 1\n", "rule r\n", "x = $(y)\n", " x = 1\n", f"{R}build a: r\n pool = p\n",
     f"{R}build a: r\nbuild a: r\n", f"{R}build a: r b\nbuild b: r a\n", "include none\n", f"{R}build a: r\ndefault b\n",
     f"{R} rspfile = x\nbuild a: r\n", f"{R}build $x: r\n", f"{R}build a: r b: c\n", "a b c\n"],
)  # fmt: skip
def test_what_ninja_refuses_is_refused(ninja: str, tmp_path: Path, text: str) -> None:
    (tmp_path / "build.ninja").write_text(text, "utf-8")
    done = subprocess.run(
        [ninja, "-C", str(tmp_path), "-n"], capture_output=True, text=True, check=False, timeout=LONGEST
    )
    assert done.returncode == 1
    with pytest.raises(eligo.InputError):
        eligo.read(tmp_path / "build.ninja")

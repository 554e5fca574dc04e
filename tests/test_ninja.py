"""build.ninja: variables and their scopes, what is a task and what an arc, and what is written is read back."""

import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import eligo
from eligo.cli import run
from eligo.dag import Dag
from eligo.errors import CycleError, FormatError, InputError
from eligo.formats import detect, ninja, read, write_priorities
from eligo.workflow import Task, Workflow
from format_cases import accepts_or_refuses, damaged, names, workflows

BUILD = r"""# what CMake and others write
ninja_required_version = 1.5
cflags = -O2
root = .
rule cc
  command = gcc $cflags -c $in -o $out
  description = CC $out
  depfile = $out.d
  deps = gcc
rule ar
  # an archive
  command = rm -f $out && ar rcs $out $
      $in
  rspfile = $out.rsp
  rspfile_content = $in_newline
rule cp
  command = cp $in $out
pool two
  depth = 2
build config.h: cp config.in
build headers: phony config.h | other.h
build $root/obj//a.o | obj/a.su: cc ./src/a.c | src/../a.h || headers
  cflags = $cflags -g
build obj/b$ c.o: cc b$ c.c || headers |@ check
build check: cp obj/a.o
  pool = two
build check2: cp obj/a.o
  pool = two
build check3: cp obj/a.o || check2 check
  pool = two
build lib$:x.a: ar obj/a.o obj/b$ c.o
build all: phony lib$:x.a check3
build clean: cp nothing
build build.ninja: cp CMakeLists.txt
  generator = 1
default all
"""


def test_a_build_is_read_as_ninja_means_it() -> None:
    flow = ninja.parse(BUILD)
    assert flow.dag.tasks == ("config.h", "obj/a.o", "obj/b c.o", "check", "check2", "check3", "lib:x.a")
    assert set(flow.dag.arcs()) == {
        ("config.h", "obj/a.o"), ("config.h", "obj/b c.o"), ("obj/a.o", "check"), ("obj/a.o", "check2"),
        ("obj/a.o", "check3"), ("check", "check3"), ("check2", "check3"), ("obj/a.o", "lib:x.a"), ("obj/b c.o", "lib:x.a"),
    }  # fmt: skip
    assert flow.task("obj/a.o") == Task(
        name="obj/a.o", command="[ -d obj ] || mkdir -p obj; gcc -O2 -g -c src/a.c -o obj/a.o", inputs=("src/a.c", "a.h"),
        outputs=("obj/a.o", "obj/a.su"), category="cc",
    )  # fmt: skip
    assert flow.task("obj/b c.o").command == "[ -d obj ] || mkdir -p obj; gcc -O2 -c 'b c.c' -o 'obj/b c.o'"
    written = "printf %s 'obj/a.o\n'\"'\"'obj/b c.o'\"'\"'' > lib:x.a.rsp; "
    library = f"{written}rm -f 'lib:x.a' && ar rcs 'lib:x.a' obj/a.o 'obj/b c.o'"
    assert flow.task("lib:x.a").command == library
    assert flow.origin is not None
    assert flow.origin.remarks == (
        "skipped build statements that the default targets do not need: 1",
        "skipped the statement that regenerates this file, which ninja runs before all others",
        "the pool two limits its 3 tasks to 2 at a time, which plans do not take into account",
    )


def test_without_defaults_all_is_built_and_validations_too() -> None:
    text = "rule r\n command = r\nbuild a: r |@ v\nbuild v: r\nbuild lone: r\nbuild x: phony a\n"
    assert ninja.parse(text).dag.tasks == ("a", "v", "lone")
    assert ninja.parse(text + "default x\n").dag.tasks == ("a", "v")
    assert ninja.parse(text + "default x\n").dag.arc_count == 0


def test_rules_of_cmake_are_kinds() -> None:
    text = "rule C_COMPILER__lib1_unscanned_Release\n command = cc\nbuild a: C_COMPILER__lib1_unscanned_Release\n"
    assert ninja.parse(text).task("a").category == "C_COMPILER"


def test_files_are_included_and_subninjas_have_a_scope_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    root = "x = 1\nrule r\n command = echo $x $y $z\ninclude sub/vars.ninja\nbuild a: r\n"
    root += "subninja sub/more.ninja\nbuild c: r\nx = 4\n"
    (tmp_path / "build.ninja").write_text(root)
    (tmp_path / "sub" / "vars.ninja").write_text("y = $x$x\n")
    (tmp_path / "sub" / "more.ninja").write_text(
        "x = 3\nrule s\n command = s $x $y\nbuild b: r a\nbuild s: s a\n z = $x\n"
    )
    flow = read(tmp_path / "build.ninja")
    assert [flow.task(name).command for name in "absc"] == ["echo 4 11 ", "echo 3 11 ", "s 3 11", "echo 4 11 "]
    assert flow.origin is not None
    assert len(flow.origin.files) == 2


def test_a_variable_of_the_file_counts_before_one_of_the_rule_where_the_edge_has_none() -> None:
    """So ninja does it, by accident or not."""
    text = "depfile = file\nrule r\n command = r $depfile\n depfile = rule\nbuild a: r\nbuild b: r\n x = 1\n"
    text += "build c: r\n depfile = own\n"
    flow = ninja.parse(text)
    assert [flow.task(name).command for name in "abc"] == ["r file", "r rule", "r own"]


def test_escapes_continuations_and_line_ends() -> None:
    text = "x = a$\r\n    b$ $$c$:d$^e|f\r\nrule r\r\n  command = r '$x' ${x}y $in\r\n"
    text += "build $\r\n  o1$ $\r\n  o2 $\r\n : r i$$1\r\n"
    flow = ninja.parse(text)
    assert flow.task("o1 o2").command == "r 'ab $c:d\ne|f' ab $c:d\ne|fy 'i$1'"
    assert ninja.parse("rule r\n command = r\nbuild a b: r # c").task("a").inputs == ("#", "c")


def test_the_last_line_needs_no_end() -> None:
    assert ninja.parse("rule r\n command = r $in\nbuild a: r b").task("a").command == "r b"


def test_phony_statements_that_name_themselves_are_read() -> None:
    assert len(ninja.parse("rule r\n command = r\nbuild a: r x\nbuild x: phony x\n")) == 1


def test_phony_statements_stay_where_there_would_be_too_many_arcs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.formats.ninja.MOST_ARCS", 20)
    made = " ".join(f"a{i}" for i in range(5))
    text = "rule r\n command = r\n" + "".join(f"build a{i}: r\nbuild b{i}: r || all\n" for i in range(5))
    flow = ninja.parse(f"{text}build all: phony {made}\n")
    assert len(flow) == 11
    assert flow.dag.arc_count == 10
    assert flow.task("all").command == ":"
    assert flow.origin is not None
    assert "to avoid too many arcs: 1" in flow.origin.remarks[-1]


def test_dyndep_files_are_told() -> None:
    text = "rule r\n command = r\nbuild dd: r\nbuild a: r || dd\n dyndep = dd\n"
    flow = ninja.parse(text)
    assert flow.origin is not None
    assert flow.origin.remarks == ("dependencies in the dyndep files of 1 tasks are not known before the build",)


R = "rule r\n command = r $x\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("build a: cc b\n", "line 1: unknown rule 'cc'"),
        (R + "build a: r\nbuild b a: r\n", "line 4: two build statements write 'a': this one and line 3"),
        ("rule r\n x = 1\n", "line 2: unknown variable 'x' in a rule"),
        ("rule r\nrule s\n", "line 1: the rule 'r' has no command"),
        (R + R, "line 3: duplicate rule 'r'"),
        ("rule r\n command = r\n rspfile = x\n", "line 1: the rule 'r' must have both rspfile and rspfile_content"),
        ("\nrule\n", "line 2: a rule has no name"),
        (R + "build a: r\n pool = p\n", "line 3: unknown pool 'p'"),
        ("pool p\n depth = x\n", "line 1: the depth of pool 'p' must be a number"),
        ("pool p\n size = 2\n", "line 2: unknown variable 'size' in a pool"),
        (R + "build a: r\ndefault b\n", "line 4: the default 'b' is in no build statement above it"),
        (R + "build a: r\ndefault\n", "line 4: the name of a file is missing, or empty"),
        (R + "build $nothing: r\n", "line 4: the name of a file is missing, or empty"),
        (R + "build a r\n", "line 3: a build statement must have the form"),
        (R + "build a:\n", "line 3: a build statement has no rule"),
        (R + "build a: r b: c\n", "line 3: expected the end of the line, got ': c'"),
        (R + "build a: r | b | c\n", "line 3: expected the end of the line, got '| c'"),
        ("x = $(y)\n", "line 1: $ must be followed by a variable's name or one of"),
        ("x = a\n  y = b\n", "line 2: an indented line must follow a rule, a pool or a build statement"),
        ("rule r\n\tcommand = r\n", "line 1: the rule 'r' has no command"),
        ("x\ty\n", "line 1: a statement must be build, rule, pool"),
        ("a b c\n", "line 1: a statement must be build, rule, pool"),
        ("build a: phony b\n", "no build statement runs a command"),
        ("include x.ninja\n", "line 1: refers to the file 'x.ninja', but this text has no folder to look in"),
        ("rule r\n command = $description\n description = $command\nbuild a: r\n",
         "line 4: variables of the rule 'r' refer to each other: command -> description -> command"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        ninja.parse(text)
    assert message in str(caught.value)


def test_circles_are_told_also_those_of_aliases() -> None:
    with pytest.raises(CycleError, match="a -> b -> a"):
        ninja.parse(R + "build a: r b\nbuild b: r a\n")
    with pytest.raises(CycleError, match=r"x -> y -> x|y -> x -> y"):
        ninja.parse(R + "build x: phony y\nbuild y: phony x\nbuild a: r x\n")


def test_files_that_cannot_be_included_are_told(tmp_path: Path) -> None:
    place = tmp_path / "build.ninja"
    for line, message in [
        ("include none.ninja", r"build\.ninja:1: in the included file 'none\.ninja': cannot be read: no such file"),
        ("subninja ../x.ninja", r"build\.ninja:1: in the included file '\.\./x\.ninja': .* is outside the folder"),
        ("include build.ninja", "included more than 32 levels deep"),
        ("include bad.ninja", r"bad\.ninja:1: unknown rule 'q'"),
    ]:
        place.write_text(f"{line}\n")
        (tmp_path / "bad.ninja").write_text("build a: q\n")
        with pytest.raises(InputError, match=message):
            read(place)


def test_small_files_do_not_become_large(tmp_path: Path) -> None:
    begin = time.process_time()
    doubled = "x0 = 0123456789\n" + "".join(f"x{i + 1} = $x{i}$x{i}\n" for i in range(60))
    with pytest.raises(FormatError, match="variables expand to too much"):
        ninja.parse(doubled)
    for i in range(31):
        (tmp_path / f"{i}.ninja").write_text(f"subninja {i + 1}.ninja\nsubninja {i + 1}.ninja\n")
    (tmp_path / "31.ninja").write_text("x = 1\n" * 1000)
    with pytest.raises(FormatError, match="variables expand to too much"):
        read(tmp_path / "0.ninja")
    assert time.process_time() - begin < 20


def test_it_is_told_by_name_and_by_looks() -> None:
    assert detect("build.ninja", "x = 1\n") == "ninja"
    assert detect("-", BUILD) == "ninja"
    assert detect("-", "# c\nrule cc\n  command = cc\n") == "ninja"
    assert detect("-", "build all: x\n\tcp x all\n") == "makeflow"
    with pytest.raises(InputError, match="arcs of ninja cannot be reversed"):
        eligo.formats.parse(BUILD, "ninja", reverse=True)


def test_ninja_has_no_place_for_priorities(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "build.ninja").write_text(BUILD)
    flow = read(tmp_path / "build.ninja")
    known = r"ninja cannot represent priorities \(since 1\.12 it takes the longest remaining path first, counted in "
    with pytest.raises(FormatError, match=known):
        write_priorities(flow, flow.dag.tasks, tmp_path / "other.ninja")
    assert run(["plan", str(tmp_path / "build.ninja"), "--in-place"]) == 2
    assert "ninja cannot represent priorities" in capsys.readouterr().err


def test_the_log_of_a_build_tells_how_long_its_tasks_take(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "build.ninja").write_text(BUILD)
    names = ("config.h", "obj/a.o", "obj/a.su", "obj/b c.o", "check", "check2", "check3", "lib:x.a")
    lines = "".join(f"{i}00\t{i}50\t0\t{name}\tabc\n" for i, name in enumerate(names, 1))
    (tmp_path / ".ninja_log").write_text(f"# ninja log v6\n{lines}")
    words = ["plan", str(tmp_path / "build.ninja"), "--history", str(tmp_path / ".ninja_log"), "--workers", "8"]
    assert run(words) == 0
    told = capsys.readouterr()
    assert ".ninja_log: 7 tasks by name" in told.err
    assert "no order can finish before 0.2 s" in " ".join(told.out.split())
    assert f"eligo run {words[1]}" in told.out.replace("\n", "").replace("FILE", words[1])


def test_a_build_is_run(tmp_path: Path) -> None:
    text = "rule cp\n command = cat $in > $out\nrule all\n command = cat < $out.rsp > $out\n"
    text += " rspfile = $out.rsp\n rspfile_content = $in\n"
    (tmp_path / "build.ninja").write_text(f"{text}build o/p/b: cp a\nbuild o/c: cp o/p/b a\nbuild d: all o/p/b o/c\n")
    (tmp_path / "a").write_text("x")
    assert run(["run", str(tmp_path / "build.ninja"), "--quiet", "--workers", "2"]) == 0
    assert (tmp_path / "o" / "c").read_text() == "xx"
    assert (tmp_path / "d").read_text() == "o/p/b o/c"


# What is written


task_names = names | st.sampled_from(["a|b", "$", "a/b", "a//b", "./x", "x/..", "/", ".."])


@given(workflows(tasks=task_names, text=task_names, command=task_names, category=task_names.filter(bool)))
@settings(max_examples=150)
def test_what_is_written_is_read_back(flow: Workflow) -> None:
    text = ""
    with suppress(FormatError):
        text = ninja.generate(flow)
    if not text:
        return
    back = ninja.parse(text)
    assert set(back.dag.tasks) == set(flow.dag.tasks)
    assert set(back.dag.arcs()) == set(flow.dag.arcs())
    for name in flow.dag.tasks:
        assert back.task(name) == replace(flow.task(name), category=flow.task(name).category or None)


def test_what_was_read_from_ninja_is_written_and_read_back() -> None:
    flow = ninja.parse("rule cp\n command = cp $in $out\nbuild o/b: cp a\nbuild x: phony o/b\nbuild o/c: cp a || x\n")
    back = ninja.parse(ninja.generate(flow))
    assert back.dag == flow.dag
    assert dict(back.details) == dict(flow.details)


def test_names_that_have_no_place_are_refused() -> None:
    for name in ("a\nb", "./a", "a//b", "a/../b"):
        flow = Workflow(Dag.from_arcs([], ["t"]), {"t": Task(name="t", outputs=(name,))})
        with pytest.raises(FormatError):
            ninja.generate(flow)


# Whatever the text


PIECES = ["build ", "rule ", "pool ", "default ", "include x\n", "subninja x\n", "\n  ", "\n", " | ", " || ", " |@ ", ": ",
          "$", "$\n", "${", "}", "phony", " = ", "$in", "$out", "command = $command", "\t", "#", "depth = 1", "dyndep = a",
          "\r", "rspfile = $in"]  # fmt: skip


@given(
    damaged([BUILD, ninja.generate(ninja.parse(BUILD.replace("$in_newline", "$in")))], PIECES) | st.text(max_size=60)
)
@example("build a: phony a\n")
@example("rule r\n command = $out\nbuild a: r a\n")
@settings(max_examples=300)
def test_any_text_is_read_or_refused(text: str) -> None:
    accepts_or_refuses(ninja.parse, text)


def test_it_takes_no_longer_than_its_length_allows() -> None:
    lines = "".join(
        f"build o{i}: r o{i - 1} || all{i - 1}\n flags = $x -g\nbuild all{i}: phony o{i}\n" for i in range(20_000)
    )
    begin = time.process_time()
    assert len(ninja.parse(f"x = 1\nrule r\n command = r $flags $in\n{lines}")) == 20_000
    assert time.process_time() - begin < 10


def test_the_program_says_the_same(tmp_path: Path) -> None:
    """Where ninja is installed: tests/plugins/ninja does this with whole projects."""
    try:
        (tmp_path / "build.ninja").write_text(BUILD.replace("build build.ninja", "build other.ninja"))
        words = ["ninja", "-C", str(tmp_path), "-t", "commands"]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()
    except FileNotFoundError:
        pytest.skip("ninja is not installed")
    flow = read(tmp_path / "build.ninja")
    ours = [str(flow.task(name).command).rpartition("; ")[2] for name in flow.dag.tasks]
    assert sorted(ours) == sorted(line for line in said if not line.startswith("ninja:"))

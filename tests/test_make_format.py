"""What GNU make prints of a Makefile, as a workflow: the same files as make makes, and the same ones again after a change."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from eligo.cli import run as eligo
from eligo.errors import FormatError
from eligo.formats import generate, parse, read
from running_cases import attempts, ran

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="GNU make is not installed")

#: no compiler: `cat` compiles, and its dependency files name the headers that a source names
MAKEFILE = r"""
NAMES := one two three
OBJECTS := $(NAMES:%=out/%.o)
SHOUT = @tr a-z A-Z <
define both
@echo first > $@
-false
echo second >> $@
endef
.PHONY: all clean
all: program report.txt twice.txt left.gen
program: $(OBJECTS) version.txt
	cat $^ > $@
	@cd out && \
	pwd | sed 's|.*/||' >> ../$@
out/%.o: %.src flags.txt | out config.h
	{ cat $< flags.txt; sed 's/.*/# &/' config.h > /dev/null; } > $@
	echo "$@: $$(sed -n 's/^use //p' $< | tr '\n' ' ')" > $(@:.o=.d)
out:
	mkdir $@
config.h: config.in
	cp $< $@
version.txt:
	$(SHOUT) version.in > $@
report.txt: program
	-rm no-such-file
	set -e; false || wc -c < program > $@
twice.txt: report.txt
	$(both)
left.gen right.gen &: one.src
	cp one.src left.gen
	cp one.src right.gen
clean:
	rm -rf out
-include $(OBJECTS:.o=.d)
"""
SOURCES = {
    "one.src": "1\nuse one.h\n", "two.src": "2\nuse one.h two.h\n", "three.src": "3\n", "one.h": "h1\n", "two.h": "h2\n",
    "flags.txt": "-O\n", "config.in": "c\n", "version.in": "v1\n",
}  # fmt: skip
MADE = ("program", "report.txt", "twice.txt", "left.gen", "right.gen", "version.txt", "config.h")


@pytest.fixture(autouse=True)
def _outside_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run below make, which would number its messages."""
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS"):
        monkeypatch.delenv(name, raising=False)


def _project(folder: Path, makefile: str = MAKEFILE, sources: dict[str, str] = SOURCES) -> Path:
    folder.mkdir()
    (folder / "Makefile").write_text(makefile)
    for name, text in sources.items():
        (folder / name).write_text(text)
    return folder


def _make(folder: Path, *words: str) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(
        ["make", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout


def _listed(folder: Path, *words: str) -> Path:
    (folder / "build.make").write_text(_make(folder, "-Bnp", "--trace", *words))
    return folder / "build.make"


def _parsed(tmp_path: Path, makefile: str, *words: str) -> Path:
    return _listed(_project(tmp_path / "p", makefile), *words)


def _contents(folder: Path) -> dict[str, bytes]:
    names = [*MADE, *(f"out/{name}" for name in sorted(os.listdir(folder / "out")))]
    return {name: (folder / name).read_bytes() for name in names}


def _run_again(listing: Path) -> set[str]:
    """The tasks that a run of the listing runs now."""
    before = len(attempts(listing.with_name("build.make.run")))
    assert ran(listing) == 0
    return {row["name"] for row in attempts(listing.with_name("build.make.run"))[before:]}


def _made_again(folder: Path) -> set[str]:
    """The targets that make makes now."""
    lines = [line for line in _make(folder, "--trace").splitlines() if "target '" in line]
    return {line.split("target '")[1].split("'")[0] for line in lines}


@needs_make
def test_a_makefile_is_built_both_ways_with_the_same_files(tmp_path: Path) -> None:
    ours, theirs = _project(tmp_path / "ours"), _project(tmp_path / "theirs")
    _make(theirs)
    assert ran(_listed(ours)) == 0
    there = _contents(theirs)
    assert len(read(ours / "build.make").dag) == 10
    assert {name: data.replace(b"ours", b"theirs") for name, data in _contents(ours).items()} == there


@needs_make
def test_after_any_source_changes_make_and_a_run_make_the_same_again(tmp_path: Path) -> None:
    """The listing is written when the dependency files are there, as make reads them at its second run."""
    ours, theirs = _project(tmp_path / "ours"), _project(tmp_path / "theirs")
    for folder in (ours, theirs):
        _make(folder)
    listing = _listed(ours)
    assert ran(listing, "--skip-done") == 0
    assert attempts(ours / "build.make.run") == []
    again = {}
    for name in (name for name in SOURCES if name != "version.in"):  # no rule names that one
        for folder in (ours, theirs):
            (folder / name).write_text(f"{(folder / name).read_text()}# more\n")
        again[name] = _run_again(listing)
        assert again[name] == _made_again(theirs), name
        assert _contents(ours) == _contents(theirs)
    assert again["config.in"] == {"config.h"}  # others only wait for it
    assert again["two.h"] == {"out/two.o", "program", "report.txt", "twice.txt"}


@needs_make
def test_a_deleted_file_is_made_again(tmp_path: Path) -> None:
    listing = _listed(_project(tmp_path / "p"))
    assert ran(listing) == 0
    (tmp_path / "p/twice.txt").unlink()
    assert _run_again(listing) == {"twice.txt"}
    assert _run_again(listing) == set()


@needs_make
@pytest.mark.parametrize(
    ("recipe", "code"),
    [
        ("\tfalse\n\ttouch a\n", 1),
        ("\t-false\n\ttouch a\n", 0),
        ("\t@-false\n\ttouch a\n", 0),
        ("\t$(MAYBE)false\n\ttouch a\n", 0),
        ('\tX=1\n\ttest -z "$$X" && touch a\n', 0),
        ("\tset -e; false; touch a\n", 1),
        ('\techo "it\'s \\\n\tone line" > a\n', 0),
        ("\t+-false\n\ttouch a\n", 0),
        (".ONESHELL:\nb:\n\ttrue\na:\n\t@X=1\n\t@test $$X = 1\n\t-touch a\n", 0),
        ("\tset -o pipefail; touch a\nSHELL := /bin/bash\n", 0),
        ("\tset -o pipefail; touch a\na: SHELL := $(firstword /bin/bash -)\n", 0),
        ("\tfalse; touch a\n.SHELLFLAGS = -e -c\n", 1),
        ("\tfalse\n\ttouch a\n.IGNORE: a\n", 0),
        ("\t+@touch a\n", 0),
        ("\t$(if $(MAYBE),@)touch a; false\n\ttouch b\n", 1),
        (".ONESHELL:\nSHELL = python3\na:\n\tif True:\n\t    open('a', 'w')\n", 0),
        ("\t@:\n", 0),
    ],
)
def test_a_recipe_does_what_it_does_under_make(tmp_path: Path, recipe: str, code: int) -> None:
    makefile = f"MAYBE = -\na:{'' if recipe.startswith(chr(9)) else ' b'}\n{recipe}"
    if recipe.startswith(".ONESHELL"):
        makefile = f"all: a\n{recipe}"
    listing = _parsed(tmp_path, makefile)
    (tmp_path / "p/a").unlink(missing_ok=True)
    assert ran(listing, "--retries", "0") == code
    made = (tmp_path / "p/a").exists()
    (tmp_path / "p/a").unlink(missing_ok=True)
    done = subprocess.run(["make"], cwd=tmp_path / "p", capture_output=True, check=False).returncode
    assert (bool(done), (tmp_path / "p/a").exists()) == (bool(code), made)


@needs_make
@pytest.mark.parametrize(
    ("makefile", "key"),
    [
        ("a:\n\t$(MAKE) --version > a\n", "MAKE"),
        ("a:\n\t${MAKE} -C . b > a\nb:\n\techo > b\n", "MAKE"),
        ("a:: one.src\n\techo 1 >> a\na:: two.src\n\techo 2 >> a\n", "::"),
        ("export WORD = x\na:\n\techo $$WORD > a\n", "export"),
        (".EXPORT_ALL_VARIABLES:\na:\n\techo $$WORD > a\n", "export"),
        (".NOTPARALLEL:\na:\n\techo > a\n", "NOTPARALLEL"),
        ("lib.a(one.o): one.src\n\tcp one.src one.o; ar rc lib.a one.o\n", "archive"),
    ],
)
def test_what_a_run_cannot_do_is_refused_unless_it_is_ignored(
    tmp_path: Path, makefile: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    listing = _parsed(tmp_path, makefile)
    assert eligo(["run", str(listing)]) == 2
    assert f"unsupported in a run: {key}" in capsys.readouterr().err
    assert ran(listing, "--ignore", key) == 0


@needs_make
def test_a_phony_target_writes_no_file(tmp_path: Path) -> None:
    flow = read(_parsed(tmp_path, ".PHONY: all\nall: b\n\techo all\nb:\n\techo > b\n"))
    assert [flow.task(name).outputs for name in ("all", "b")] == [(), ("b",)]


@needs_make
def test_goals_are_those_of_the_command_line(tmp_path: Path) -> None:
    flow = read(_listed(_project(tmp_path / "p"), "config.h", "version.txt"))
    assert flow.dag.tasks == ("config.h", "version.txt")


@needs_make
def test_arcs_pass_through_targets_without_a_recipe(tmp_path: Path) -> None:
    makefile = "all: group\n\techo > all\ngroup: b FORCE\nb: one.h\n\tcp one.h b\none.h: two.h\nFORCE:\n"
    flow = read(_parsed(tmp_path, makefile))
    assert list(flow.dag.arcs()) == [("b", "all")]
    assert (flow.task("b").inputs, flow.task("all").inputs) == (("one.h", "two.h"), ("b",))


@needs_make
def test_intermediate_files_are_kept_with_a_remark(tmp_path: Path) -> None:
    makefile = "a.final:\n%.final: %.middle\n\tcp $< $@\n%.middle: %.begin\n\tcp $< $@\n"
    folder = _project(tmp_path / "p", makefile, {"a.begin": "x\n"})
    flow = read(_listed(folder))
    assert flow.task("a.final").command == "cp a.middle a.final"
    assert flow.origin is not None
    assert flow.origin.remarks == ("intermediate files that make deletes at the end, and a run keeps: 1",)


@needs_make
def test_what_a_recursive_make_prints_is_left_out(tmp_path: Path) -> None:
    folder = _project(tmp_path / "p", "all: b\n\t@echo first\n\t$(MAKE) -C sub\n\t-echo last\nb:\n\techo > b\n")
    _project(folder / "sub", "x:\n\techo inner > x\n", {})
    flow = read(_listed(folder))
    assert (
        flow.task("all").command
        == "set -e\n/bin/sh -c 'echo first'\n/bin/sh -c 'make -C sub'\n/bin/sh -c 'echo last' || :"
    )


@needs_make
def test_a_recipe_that_cannot_be_told_from_what_it_printed_is_refused(tmp_path: Path) -> None:
    listing = _parsed(tmp_path, "a:\n\t+touch a; echo printed\n")
    with pytest.raises(FormatError, match="the recipe of 'a' has `-` or `\\+`"):
        read(listing)


def _refusal(text: str, words: Sequence[str]) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text, "make")
    assert all(word in str(caught.value) for word in words)


def test_other_texts_are_refused_with_the_command_that_writes_a_listing() -> None:
    _refusal("a: b\n\tcp b a\n", ["not a complete listing", "make -Bnp --trace"])
    _refusal("# GNU Make 4.3\n# Make data base, printed on today\n# Files\n\na: b\n", ["no target", "has a recipe"])


def test_a_listing_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="does not write listings of make"):
        generate(parse("a -> b", "arcs"), "make")

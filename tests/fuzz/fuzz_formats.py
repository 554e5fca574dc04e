"""Coverage-guided fuzzing of every parser: whatever the text, only an InputError may come out, and soon.

    python tests/fuzz/fuzz_formats.py [SECONDS] [FORMAT ...]

Each format is fuzzed by a process of its own, from a corpus of small valid files. A text that breaks a parser is left in
out/fuzz, the table says why, and the exit code is 1: make the text a test.
"""

import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from eligo import formats
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.workflow import Task, Workflow

LONGEST, SLOWEST, LARGEST = 4096, 10, 1024  # bytes of a text, seconds for one, megabytes
START = 60  # seconds that a fuzzer may take to begin
FOUND = Path("out/fuzz")
#: What is read and never written
MORE = {
    "jx": """{"define": {"N": 2, "OUT": "o" + i}, "rules": [{"command": template("x {i}", {"q": 1}) + join(["a"], ","),
     "outputs": [OUT, format("%d.%s", i * 2 % 3, "a")], "inputs": [k for k in range(N) if not (k < 1 or false)][1:]}
     for i in range(N)] + [{"n": 1}].select(n == 1 and like("a", "a*")).project({"command": basename("/a"), "k": -n})}""",
    "ninja": """x = -$\n  g $$ $:\nrule cc\n command = cc $x ${x} $in\n rspfile = $out.r\n rspfile_content = $in_newline
pool p\n depth = 2\nbuild o/a | b: cc ./c || d |@ e\n  pool = p\n  x = $x\nbuild d: phony e\nbuild e: cc\ndefault o/a\n""",
    "arcs": "a b {'weight': 3}\n1 2 {}\n",
    "csv": "weight;To;From\n1;a;b\n",
    "make": """M:1: target 'a' does not exist\ncp b a\nx \\\ny\n# GNU Make 4.3\n.DEFAULT_GOAL := a\nX = -$(Y)\ndefine Y\n@x
endef\n# Files\n\n# Not a target:\nb:\n#  Last modified\n\na: SHELL := sh\na: b | c\n#  Also makes: d
#  recipe to execute (from 'M', line 1):\n\t-cp $< $@\n\tx \\\n\ty\n\nc:\n#  Phony target\n""",
}


def seeds(format: str) -> list[str]:
    """Valid texts of a format: a plain one, and one with all details that the format has a place for."""
    if format == "lines":  # it has no place for dependencies
        return ["cat x > y\n\n# the next\nls\n"]
    if format == "make":  # it is not written
        return [MORE[format]]
    dag = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], ["a", "b", "c", "d", "lonely"])
    task = Task(name="a", command="cat x > y", inputs=("x",), outputs=("y",), seconds=2.0, cores=1, memory=2**20)
    plain = [formats.generate(flow, format) for flow in (dag, Workflow(dag, {"a": task}, "four", None, {"x": 3}))]
    return plain + ([MORE[format]] if format in MORE else [])


def fuzz_one(format: str, arguments: list[str]) -> None:
    """Never returns: the fuzzer ends the process."""
    import atheris

    with atheris.instrument_imports(include=["eligo.formats"]):
        for name in [name for name in sys.modules if name.startswith("eligo.formats.")]:
            del sys.modules[name]
        parser = formats.module(format)

    def parse(data: bytes) -> None:
        with suppress(InputError):
            parser.parse(data.decode("utf-8", "replace"))

    atheris.Setup([sys.argv[0], *arguments], parse)
    atheris.Fuzz()


def fuzz(format: str, seconds: int) -> bool:
    """Fuzz a format; whether nothing was found."""
    corpus, found = FOUND / "corpus" / format, FOUND / f"{format}-"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(seeds(format)):
        (corpus / f"seed{number}").write_text(text, "utf-8")
    limits = [f"-max_total_time={seconds}", f"-timeout={SLOWEST}", f"-rss_limit_mb={LARGEST}", f"-max_len={LONGEST}"]
    command = [sys.executable, __file__, "--one", format, str(corpus), *limits, f"-artifact_prefix={found}", "-seed=1"]
    code, said = run(command, seconds + SLOWEST + START)
    sys.stdout.write(f"{format:12} {'nothing found' if code == 0 else 'BROKEN'}: {outcome(said)}\n")
    sys.stdout.flush()
    if code:
        sys.stderr.write(said[-4000:])
    return code == 0


def run(command: list[str], seconds: int) -> tuple[int, str]:
    """The exit code of a command and what it said; one that does not end in time is ended."""
    both = subprocess.STDOUT  # an exception is told in the one stream, its text in the other
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=both, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as late:
        return 1, (late.stdout or b"").decode("utf-8", "replace") + f"\nTimeoutExpired: no end after {seconds} seconds"
    return done.returncode, done.stdout.decode("utf-8", "replace")


def outcome(said: str) -> str:
    """The one line that tells how fuzzing ended: how many texts were tried, or what went wrong with which text.

    >>> outcome("ValueError: no number\\nTest unit written to out/fuzz/x-1")
    'ValueError: no number, in out/fuzz/x-1'
    """
    text = re.findall(r"Test unit written to (\S+)", said)
    where = f", in {text[-1]}" if text else ""
    for pattern in (
        r"Uncaught Python exception: ===\s*\n(.*)",
        r"ERROR: libFuzzer: (.*)",
        r"^(\w+(?:Error|Expired): .*)",
    ):
        if found := re.search(pattern, said, re.MULTILINE):
            return found[1].strip() + where
    return (
        next((line for line in reversed(said.splitlines()) if line.startswith("Done ")), "no end, and no reason")
        + where
    )


def main(arguments: list[str]) -> int:
    """Fuzz all formats, or those named."""
    seconds = int(arguments[0]) if arguments else 20
    chosen = arguments[1:] or list(formats.MODULES)
    broken = [format for format in chosen if not fuzz(format, seconds)]
    return 1 if broken else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        fuzz_one(sys.argv[2], sys.argv[3:])
    sys.exit(main(sys.argv[1:]))

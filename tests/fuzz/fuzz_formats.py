"""Coverage-guided fuzzing of every parser: whatever the text, only an InputError may come out, and soon.

    python tests/fuzz/fuzz_formats.py [SECONDS] [FORMAT ...]

Each format is fuzzed by a process of its own, from a corpus of small valid files. A text that breaks a parser is left in
out/fuzz, and the exit code is 1.
"""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from eligo import formats
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.workflow import Task, Workflow

LONGEST, SLOWEST, LARGEST = 4096, 10, 1024  # bytes of a text, seconds for one, megabytes
FOUND = Path("out/fuzz")


def seeds(format: str) -> list[str]:
    """Valid texts of a format: a plain one, and one with all details that the format has a place for."""
    dag = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], ["a", "b", "c", "d", "lonely"])
    task = Task(name="a", command="cat x > y", inputs=("x",), outputs=("y",), seconds=2.0, cores=1, memory=2**20)
    return [formats.generate(flow, format) for flow in (dag, Workflow(dag, {"a": task}, "four", None, {"x": 3}))]


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
    done = subprocess.run(command, capture_output=True, text=True, timeout=20 * (seconds + 10), check=False)
    runs = next((line for line in reversed(done.stderr.splitlines()) if line.startswith("Done ")), "no end")
    sys.stdout.write(f"{format:12} {'nothing found' if done.returncode == 0 else 'BROKEN'}: {runs}\n")
    sys.stdout.flush()
    if done.returncode:
        sys.stderr.write(done.stderr[-4000:])
    return done.returncode == 0


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

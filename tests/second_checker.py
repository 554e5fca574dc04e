"""The checker in C beside `verify`: what each says of a plan, by exit code and by the first line that it prints."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import pytest

from eligo.errors import InputError
from eligo.formats import generate
from eligo.planning import VERDICTS
from eligo.verifying import verify
from eligo.workflow import Workflow

SOURCE = Path(__file__).parents[1] / "checker" / "check.c"
STRICT = ("-std=c11", "-Wall", "-Wextra", "-Werror")
SANITIZED = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
HOLDS, FALSE, UNCHECKED = 0, 1, 2


class Answer(NamedTuple):
    """The exit code of a checker, and its words; none if it cannot check."""

    code: int
    words: str = ""


@cache
def built(*flags: str) -> Path:
    """The checker in C, compiled with these flags; skips the test if there is no compiler."""
    if shutil.which("gcc") is None:
        pytest.skip("THE SECOND CHECKER IS NOT TESTED: there is no gcc")
    program = Path(mkdtemp(prefix="eligo-checker-"), "check")
    subprocess.run(["gcc", *STRICT, *flags, "-o", str(program), str(SOURCE)], check=True)
    return program


def first_answer(flow: Workflow, document: Any) -> Answer:
    """The answer of `verify`, as the command prints it."""
    try:
        result = verify(flow, document)
    except InputError:
        return Answer(UNCHECKED)
    if not result.holds:
        return Answer(FALSE, f"Not valid: the proof does not hold: {result.reason}.")
    return Answer(HOLDS, f"Valid: the proof holds ({VERDICTS[str(result.verdict)]}).")


class Second:
    """The checker in C for the plans of one workflow."""

    def __init__(self, flow: Workflow, folder: Path, program: Path) -> None:
        self.program, self.dag, self.plan = program, folder / "dag.json", folder / "plan.json"
        self.dag.write_text(generate(flow, "json"), "utf-8")

    def answer(self, document: Any) -> Answer:
        """Its answer to a document."""
        return self.answer_to_text(json.dumps(document))

    def answer_to_text(self, text: str) -> Answer:
        """Its answer to a text, which may be no JSON."""
        self.plan.write_text(text, "utf-8")
        done = subprocess.run([self.program, self.dag, self.plan], capture_output=True, text=True, check=False)
        assert done.returncode in {HOLDS, FALSE, UNCHECKED}, done.stderr
        assert bool(done.stdout) == (done.returncode != UNCHECKED), done.stderr
        return Answer(done.returncode, done.stdout.strip())

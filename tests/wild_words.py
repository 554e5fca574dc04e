"""Words that shells, parsers and disks would like to make something of, as names of tasks and as arguments."""

import json
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import category

import pytest

from eligo.errors import InputError
from eligo.names import checked_names
from running_cases import completed, started
from server_faults import Line, ServerProcess, kept, line, worker

PIECES = (
    "$(touch pwned)", "`touch pwned`", "; touch pwned;", "| touch pwned", "&& touch pwned", "> pwned", "$HOME",
    "${IFS}", "$((1+1))", "'", '"', "''", '"""', "\\", "\\n", "\n", "\r\n", "\t", " ", "  ", "-", "--", "-rf",
    "--help", "-c", "*", "?", "[a-z]", "{a,b}", "~", "!", "!!", "#", "%", "%s%n", "%2e%2e", "../", "/", "/etc/passwd",
    ".", "..", "\x1b[31m", "\x7f", "\x01", "é", "e\u0301", "漢字", "\u202e", "\u200b", "\ufeff", "🙂", "\u2028",
    "\u0085", "null", "true", "0x0", "1e9", "=", "a=b", ":", ",", "<", ">", "<script>", "&amp;", "]]>", "{{", "}}",
    "${{", "@file", "&anchor", "*alias", "!!python/object:x", "|", "- a", "PARENT a CHILD b", "$$", "\\$", "a", "b",
    "x1",
)  # fmt: skip
#: what each task does: write its name, and its arguments behind the first, into the file of that number, each behind a NUL
SCRIPT = 'n="$1"; shift; printf "%s\\0" "$ELIGO_TASK" "$@" > "$0/$n"'
TOGETHER = 1000  # tasks of one workflow, where they go to a server


def wild(number: int, seed: int) -> list[str]:
    """So many words, each another one; none has what no argument can have, which is NUL."""
    rng, known = random.Random(seed), dict[str, None]()
    while len(known) < number:
        word = "".join(rng.choices(PIECES, k=rng.choice([1, 1, 2, 3, 5, 12])))
        if rng.random() < 0.2:
            word += "".join(chr(rng.choice([rng.randrange(1, 128), rng.randrange(160, 0xD800)])) for _ in range(5))
        known[word] = None
    return [*known]


def named(number: int, seed: int) -> list[str]:
    """So many words that can be names; those with control characters are refused, each of them."""
    found = list[str]()
    for word in wild(2 * number, seed):
        if any(category(sign) == "Cc" for sign in word):
            with pytest.raises(InputError, match="contains a control character"):
                checked_names([word])
        else:
            found.append(word)
    assert len(found) >= number
    return found[:number]


@dataclass(eq=False)
class Wild:
    """Tasks with wild names and words, each of which writes what it was given into a file of the folder."""

    folder: Path
    number: int
    seed: int

    def __post_init__(self) -> None:
        self.names, self.words = named(self.number, self.seed), wild(self.number, self.seed + 1)
        self.folder.mkdir()

    def tasks(self) -> list[dict[str, Any]]:
        begin = ["/bin/sh", "-c", SCRIPT, str(self.folder)]
        pairs = zip(self.names, self.words, strict=True)
        return [{"name": name, "run": [*begin, str(i), word, "", name]} for i, (name, word) in enumerate(pairs)]

    def check(self) -> None:
        """Every task ran, with its name and its words as they are, and nothing else did."""
        for i, (name, word) in enumerate(zip(self.names, self.words, strict=True)):
            found = (self.folder / str(i)).read_bytes()
            assert found == b"".join(one.encode() + b"\0" for one in (name, word, "", name)), (name, word, found)
        assert len([*self.folder.iterdir()]) == self.number
        assert not [*self.folder.parent.rglob("pwned")]

    def line(self, how: str, began: float) -> Line:
        what = ("26", f"wild names and arguments, {how}, seed {self.seed}", f"{self.number:,} tasks")
        return line(what, began, "each name and each argument as it was, byte for byte; nothing else ran")


def run_here(folder: Path, number: int, seed: int = 26) -> Line:
    """By `eligo run` on this machine."""
    began, these, flow = time.monotonic(), Wild(folder / "out", number, seed), folder / "flow.json"
    flow.write_text(json.dumps({"tasks": these.tasks()}))
    with started(flow, "--workers", "2", "--policy", "fifo", "--retries", "0", cwd=folder) as run:
        _, err = run.communicate(timeout=600)
    assert run.returncode == 0, err[-2000:]
    assert completed(folder / "flow.json.run") == dict.fromkeys(these.names, 1)
    these.check()
    return these.line("`eligo run`", began)


def served(folder: Path, number: int, seed: int = 27) -> Line:
    """By a server and a real client."""
    began, these = time.monotonic(), Wild(folder / "out", number, seed)
    with ServerProcess(folder, "-q") as server:
        tasks, query = these.tasks(), "files=false&retries=0&policy=fifo"
        flows = [server.submit(tasks[i : i + TOGETHER], query) for i in range(0, number, TOGETHER)]
        with worker(server, folder / "w", "--size", "50", "--cores", "2"):
            for flow in flows:
                told = server.finish(flow, 600)
                assert (told["state"], told["failures"]) == ("done", [])
        server.kill()
        assert "Traceback" not in server.log()
    found = [task for flow in flows for task in kept(server.store, flow).completed]
    assert sorted(found) == sorted(these.names)
    these.check()
    return these.line("`eligo work`", began)

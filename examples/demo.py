"""Each main command of eligo once, with what it gains; `make demo` runs it and leaves the files in out/."""

import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE.parent / "out"
ELIGO = str(Path(sys.executable).with_name("eligo"))
WIDTH = 80
STEPS = [
    ("PLAN. Twelve samples of unequal size go through a sequencing pipeline of 75 tasks. How long does that take on 8"
     " workers, and how much does the order matter?",
     "plan sequencing.yaml --workers 8 -o order.txt --save plan.json"),
    ("VERIFY. The plan carries a proof. A separate checker, which shares no code with the planner, verifies it.",
     "verify sequencing.yaml plan.json"),
    ("EXPLAIN. Why is an order best? In words, and as a picture in out/pie.svg.", "explain pie.yaml -o pie.svg"),
    ("RUN. The same 75 tasks for real, 500 times as fast, first come, first served ...",
     "run sequencing.yaml --workers 8 --policy fifo --run fifo.run --quiet"),
    ("... and in the order of the plan. Compare the two times.",
     "run sequencing.yaml --workers 8 --policy order.txt --quiet"),
    ("RESUME. Run the same command again, also after a crash: finished tasks are not repeated.",
     "run sequencing.yaml --workers 8 --policy order.txt --quiet"),
    ("STATUS. The state of a run, during it or afterwards.", "status sequencing.yaml"),
    ("WHY. What a task waited for, and its place in the order.", "why sequencing.yaml align_12"),
    ("COMPARE. Which policy serves best if workers come and go, or ask several at a time?",
     "compare sequencing.yaml --runs 20"),
    ("BATCH. Four workers ask at once: which four tasks leave the most work ready afterwards?",
     "batch sequencing.yaml --requests 4"),
    ("CLUSTER. One package of 6 tasks for a client that is rarely online, with little to send back.",
     "cluster sequencing.yaml --size 6 --goal communication"),
    ("ANOTHER ENGINE. Priorities for HTCondor DAGMan; your own file stays as it is.",
     "plan survey.dag -o prio.dag"),
]  # fmt: skip


def main() -> None:
    """Run every step in out/ and print what it prints."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    for file in ("sequencing.yaml", "pie.yaml", "survey.dag", "plate.dag"):
        shutil.copy(HERE / file, OUT)
    for comment, words in STEPS:
        announce(comment, f"eligo {words}")
        show([ELIGO, *shlex.split(words)], OUT)
    announce("PYTHON. Hand out tasks yourself: three cooks, one of them slow, share the tasks of a pie.",
             "python examples/live.py")  # fmt: skip
    show([sys.executable, str(HERE / "live.py")])
    announce("SERVE and WORK. A server hands out a mosaic of 12 shots to four clients: one is slow, one is killed."
             " Nothing is lost.", "python examples/served.py out/served")  # fmt: skip
    (OUT / "served").mkdir()
    show([sys.executable, str(HERE / "served.py"), str(OUT / "served")])
    print("\nDone. Look at out/pie.svg and out/served/mosaic/mosaic.png.")
    print("Plan a file of yours: .venv/bin/eligo plan FILE --workers 8")
    print("docs/README.md lists what to read next.")


def show(command: list[str], folder: Path | None = None) -> None:
    """Run a command and print its output, lines folded to the width of the demo."""
    environment = {**os.environ, "COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        cwd=folder,
        env=environment,
    ) as process:
        for line in process.stdout or ():
            folded = (
                textwrap.wrap(line.rstrip(), WIDTH, subsequent_indent="  ")
                if len(line) > WIDTH + 1
                else [line.rstrip()]
            )
            print("\n".join(folded), flush=True)
    if process.returncode:
        sys.exit(process.returncode)


def announce(comment: str, command: str) -> None:
    """Print what comes next, in words and as a command."""
    print()
    print(textwrap.fill(comment, WIDTH, initial_indent="# ", subsequent_indent="# "))
    print(f"$ {command}", flush=True)


if __name__ == "__main__":
    main()

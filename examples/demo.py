"""Every verb of eligo once, with what it gains; `make demo` runs it and leaves the files in out/."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
import urllib.request
from pathlib import Path

from eligo.client.options import token_for

HERE = Path(__file__).parent
OUT = HERE.parent / "out"
WIDTH = 80
#: tasks to add to the pie
WASHING = "tasks:\n- {name: wash, run: echo washed, after: [serve]}\n"
#: one task that ends at once, one that fails at its first attempt, and one that takes long
ERRANDS = """tasks:
- {name: fetch, run: echo 42 > data.txt, outputs: [data.txt]}
- {name: flaky, run: 'test "$ELIGO_ATTEMPT" -gt 1'}
- {name: nap, run: sleep 300}
"""
#: what each step shows, and its command; & runs it in the background, URL and ID are those of the server and the workflow
STEPS = [
    ("SHOW. Twelve samples of unequal size go through a sequencing pipeline of 75 tasks. What does it look like?",
     "eligo show sequencing.yaml"),
    ("PLAN. How long does it take on 8 workers, and how much does the order matter?",
     "eligo plan sequencing.yaml --workers 8 -o order.txt --save plan.json"),
    ("VERIFY. The plan carries a proof. A separate checker, which shares no code with the planner, verifies it.",
     "eligo verify sequencing.yaml plan.json"),
    ("EXPLAIN. Why is this order the best? In words, and as a picture in out/pie.svg.",
     "eligo explain pie.yaml -o pie.svg"),
    ("RUN. Run the 75 tasks, 500 times as fast as in reality, first come, first served ...",
     "eligo run sequencing.yaml --workers 8 --policy fifo --run fifo.run --quiet"),
    ("... and then in the order of the plan. Compare the two times.",
     "eligo run sequencing.yaml --workers 8 --policy order.txt --quiet"),
    ("RESUME. The same command again: finished tasks are not repeated. This also holds after a crash.",
     "eligo run sequencing.yaml --workers 8 --policy order.txt --quiet"),
    ("CLEAN. Eight branches, each with a file of 4 MB between two tasks, removed after its last reader. First come,"
     " first served has most at once ...",
     "eligo run branches.yaml --workers 2 --policy fifo --clean --run wide.run --quiet"),
    ("... while the policy space opens few branches at a time. Compare the two amounts between tasks.",
     "eligo run branches.yaml --workers 2 --policy space --clean --run narrow.run --quiet"),
    ("SPACE. Two mosaics on a disk of 480 kB. First come, first served fills it; a limit on the files between tasks"
     " does not.", "python examples/small_disk.py out/small"),
    ("STATUS. The counts, running tasks and failures of a run, while it runs or afterwards.",
     "eligo status sequencing.yaml"),
    ("WHY. The state of one task: what it waited for, and its place in the order.", "eligo why sequencing.yaml align_12"),
    ("TOP. The same run as a live display in the terminal; here one frame of it.", "eligo top sequencing.yaml --once"),
    ("ADD. A pie is baked. Then one more task is added to the same run ...", "eligo run pie.yaml --quiet"),
    ("... also possible while it runs ...", "eligo add pie.yaml washing.yaml"),
    ("... and the same command does only what is new.", "eligo run pie.yaml --quiet"),
    ("LOG. The output of one task.", "eligo log pie.yaml wash"),
    ("REPORT. A run as one HTML page (if the page is built: make page).", "eligo report pie.yaml -o pie.html"),
    ("COMPARE. Which policy finishes first if workers come and go, or if several ask for tasks at once?",
     "eligo compare sequencing.yaml --runs 20"),
    ("BATCH. Four workers ask at once: which four tasks leave the most tasks ready afterwards?",
     "eligo batch sequencing.yaml --requests 4"),
    ("CLUSTER. Six tasks for a client that is rarely online, chosen so that it has little data to send back.",
     "eligo cluster sequencing.yaml --size 6 --goal communication"),
    ("ANOTHER ENGINE. Priorities for HTCondor DAGMan; your own file stays as it is.",
     "eligo plan survey.dag -o prio.dag"),
    ("CONVERT. The same workflow as a drawing for Graphviz.", "eligo convert sequencing.yaml sequencing.dot"),
    ("GENERATE. Graphs of known families, to try policies on.", "eligo generate out-mesh 4 --to arcs"),
    ("PYTHON. Hand out tasks from your own code: three cooks, one of them slow, share the tasks of a pie.",
     "python examples/live.py"),
    ("SERVE and WORK. A server hands out the tasks of a mosaic to four clients: one is slow, one is killed."
     " Nothing is lost.", "python examples/served.py out/served"),
    ("PAUSE. A run on this machine can change while it runs. This one starts paused ...",
     "eligo run errands.yaml --workers 1 --pause &"),
    ("WORKERS. ... gets two workers ...", "eligo workers errands.yaml 2"),
    ("CANCEL. ... and stops. The same command would resume it.", "eligo cancel errands.yaml"),
    ("OPERATE. Now step by step. A server without workflows; its state is in one file.",
     "eligo serve --store demo.db --port 0 --lease 3 &"),
    ("SUBMIT. A workflow of three errands; one of them always fails at its first attempt.",
     "eligo submit errands.yaml --retries 0"),
    ("PAUSE. The server hands out none of its tasks ...", "eligo pause ID"),
    ("RESUME. ... until its owner resumes it.", "eligo resume ID"),
    ("TOKEN. Machines of others get a token that can only work, and expires.",
     "eligo token URL site --scope work --days 30"),
    ("WORK. A client on this machine finds its token by itself.", "eligo work URL --name ann --folder ann --cores 3 &"),
    ("LIST. All workflows of the server.", "eligo list"),
    ("CLIENTS. All machines that work for it.", "eligo clients"),
    ("PAGE. The link to the live page of the server.", "eligo page URL"),
    ("RETRY. One errand failed; the cause is fixed, so it runs again.", "eligo retry ID flaky"),
    ("RELEASE. Another errand hangs: take it back from its client, so that others can get it.", "eligo release ID nap"),
    ("RESULTS. Fetch the files that exist so far; their hashes are verified.", "eligo results ID made"),
    ("CANCEL. The rest is not needed ...", "eligo cancel ID"),
    ("PURGE. ... nor the record of it.", "eligo purge ID"),
    ("BACKUP. A consistent copy of the server's state, while it runs.", "eligo backup demo.db copy.db"),
    ("DRAIN. Before maintenance: hand out nothing more, and let running tasks finish.", "eligo drain URL"),
    ("KEY. Sign your workflows, so that clients run nothing that a server made up.", "eligo key owner"),
]  # fmt: skip


def main() -> None:
    """Run every step and print its output."""
    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "served").mkdir(parents=True)
    for file in ("sequencing.yaml", "branches.yaml", "pie.yaml", "survey.dag", "plate.dag"):
        shutil.copy(HERE / file, OUT)
    (OUT / "washing.yaml").write_text(WASHING)
    (OUT / "errands.yaml").write_text(ERRANDS)
    demo = Demo()
    try:
        for comment, command in STEPS:
            demo.step(comment, command)
    finally:
        demo.end()
    print("\nDone. Look at out/pie.svg and out/served/mosaic/mosaic.png.")
    print("Plan a file of yours: .venv/bin/eligo plan FILE --workers 8")
    print("docs/README.md lists what to read next.")


class Demo:
    """The steps that were run, the server and the client in the background, and the workflow on the server."""

    def __init__(self) -> None:
        self.environment = {**os.environ, "COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"}
        self.background: list[subprocess.Popen[str]] = []
        self.url = self.workflow = ""

    def step(self, comment: str, command: str) -> None:
        """Print what comes next, in words and as a command, and run it."""
        command = command.replace("URL", self.url).replace("ID", self.workflow)
        print(f"\n{textwrap.fill(comment, WIDTH, initial_indent='# ', subsequent_indent='# ')}")
        print(f"$ {command}", flush=True)
        program, *words = shlex.split(command.removesuffix("&"))
        if command.endswith("&"):
            self._begin(words)
            return
        lines = self._show([sys.executable, *words] if program == "python" else eligo(*words), program == "eligo")
        if words[0] == "submit":
            self.workflow = lines[-1]

    def _show(self, command: list[str], inside: bool) -> list[str]:
        """Run a command and print its lines, folded to the width of the demo; ends the demo if the command fails."""
        lines = []
        folder = OUT if inside else HERE.parent
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", cwd=folder,
            env=self.environment,
        ) as process:  # fmt: skip
            for line in process.stdout or ():
                lines.append(line.rstrip())
                print("\n".join(fold(lines[-1])), flush=True)
        if process.returncode and not (lines and "the page is not built" in lines[-1]):
            sys.exit(process.returncode)
        return lines

    def _begin(self, words: list[str]) -> None:
        """Start a server, a paused run, or a client, which is awaited until it has run what it can."""
        process = subprocess.Popen(
            eligo(*words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=OUT, env=self.environment
        )
        self.background.append(process)
        if words[0] == "serve":
            assert process.stdout is not None
            print(line := process.stdout.readline().rstrip())
            self.url = self.environment["ELIGO_URL"] = line.split()[-1]
        elif words[0] == "run":
            self._wait_for_pause(words[1])
        else:
            self._wait_for_errands()

    def _wait_for_pause(self, file: str) -> None:
        """Wait until the run of a file has started, paused."""
        status = eligo("status", file)
        while b"paused" not in subprocess.run(status, check=False, cwd=OUT, capture_output=True).stdout:
            time.sleep(0.1)

    def _wait_for_errands(self) -> None:
        """Wait until one errand is done, one has failed and one is running."""
        address = f"{self.url}/v1/workflows/{self.workflow}"
        question = urllib.request.Request(address, headers={"Authorization": f"Bearer {token_for(self.url)}"})
        while True:
            counts = json.load(urllib.request.urlopen(question))["counts"]
            if all(counts.get(state) == 1 for state in ("done", "failed", "running")):
                return
            time.sleep(0.1)

    def end(self) -> None:
        """End the client and the server."""
        for process in reversed(self.background):
            process.terminate()
            process.communicate()


def eligo(*words: str) -> list[str]:
    """A command of eligo, as this Python has it."""
    return [sys.executable, "-m", "eligo", *words]


def fold(line: str) -> list[str]:
    """A line in parts that fit the width of the demo."""
    return textwrap.wrap(line, WIDTH, subsequent_indent="  ") if len(line) > WIDTH else [line]


def verbs() -> set[str]:
    """The verbs of eligo that the steps show."""
    return {match[1] for _, command in STEPS if (match := re.match(r"eligo (\S+)", command))}


if __name__ == "__main__":
    main()

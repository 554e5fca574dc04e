"""Reading large files, compared with splitting their text into words or with the plain decoder."""

import json
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.timing import fastest, heading, row, shuffled, verdict
from eligo.dag import Dag
from eligo.families import random_layered
from eligo.formats import read

WIDTHS = (36, 10, 10, 9, 9, 8)


def dagman_text(dag: Dag) -> str:
    """The nodes of a dag, one per line, then a line for every task with children, which lists them."""
    names = [f"task_{i:07d}" for i in range(len(dag))]
    cuts, ends = dag.child_ptr.tolist(), [names[v] for v in dag.child.tolist()]
    jobs = [f"JOB {name} task.sub\n" for name in names]
    arcs = [
        f"PARENT {names[u]} CHILD {' '.join(ends[cuts[u] : cuts[u + 1]])}\n"
        for u in range(len(dag))
        if cuts[u + 1] > cuts[u]
    ]
    return "".join([*jobs, *arcs])


def split_lines(path: Path) -> int:
    """The number of words in a file: the minimum that any reader has to do."""
    return sum(len(line.split()) for line in path.read_text().split("\n"))


def run() -> None:
    """Print how long reading takes, and how much memory."""
    dagman()
    json_files()
    arc_lists()


def dagman() -> None:
    """A million jobs, in topological order and shuffled."""
    heading("Reading", ("file", "ours ms", "words ms", "ratio", "target", ""), WIDTHS)
    dag = random_layered(1000, 1000, seed=1, degree=2)
    for title, shown in (("DAGMan 1e6 jobs 2e6 arcs", dag), ("the same, shuffled", shuffled(dag))):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.dag"
            path.write_text(dagman_text(shown))
            ours, words = fastest(partial(read, path), partial(split_lines, path), rounds=3)
        row((title, ours * 1e3, words * 1e3, ours / words, "<= 4 s", verdict(ours <= 4)), WIDTHS)


def json_files() -> None:
    """100,000 tasks as WfFormat and as our own JSON, against Python's decoder; memory as a multiple of the file."""
    widths = (36, 10, 12, 9, 9, 8, 10, 8)
    heading(
        "Reading JSON, 1e5 tasks", ("file", "ours ms", "decoder ms", "ratio", "target", "", "memory x", "<= 10"), widths
    )
    names = [f"task_{i:07d}" for i in range(100_000)]
    rows = [(name, [names[i // 2]] if i else []) for i, name in enumerate(names)]
    below = [[names[c] for c in (2 * i, 2 * i + 1) if 0 < c < len(names)] for i in range(len(names))]
    tasks = [
        {"name": name, "id": name, "parents": parents, "children": children}
        for (name, parents), children in zip(rows, below, strict=True)
    ]
    own = [{"name": name, "run": f"work {name}", "seconds": 1.5, "after": parents} for name, parents in rows]
    documents = {
        "WfFormat": {"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": tasks, "files": []}}},
        "own, with run and seconds": {"tasks": own},
    }
    for title, document in documents.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.json"
            path.write_text(json.dumps(document))
            decode = partial(lambda path: json.loads(path.read_text()), path)
            ours, plain = fastest(partial(read, path), decode, rounds=5)
            times = peak_of_reading(path) / path.stat().st_size
        told = ("<= .5 s", verdict(ours <= 0.5), times, verdict(times <= 10))
        row((title, ours * 1e3, plain * 1e3, ours / plain, *told), widths)


def arc_lists() -> None:
    """Two and ten million arcs."""
    widths = (36, 10, 10, 9)
    heading("Reading arc lists", ("file", "ours s", "MB", "memory x"), widths)
    for millions in (2, 10):
        dag = random_layered(1000, 500 * millions, seed=1, degree=2)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.arcs"
            path.write_text("".join(f"{u} {v}\n" for u, v in zip(dag.tails.tolist(), dag.child.tolist(), strict=True)))
            ours = fastest(partial(read, path), rounds=1)[0]
            size = path.stat().st_size
            row((f"{dag.arc_count / 1e6:.1f} million arcs", ours, size / 1e6, peak_of_reading(path) / size), widths)


PEAK = """
import sys
from benchmarks.timing import peak_kilobytes
from eligo.formats import detect, module, read
module(detect(sys.argv[1], open(sys.argv[1]).read(4096)))
before = peak_kilobytes()
read(sys.argv[1])
print(peak_kilobytes() - before)
"""


def peak_of_reading(path: Path) -> float:
    """The peak memory of reading in bytes, in a separate process."""
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
    return 1024 * float(done.stdout)

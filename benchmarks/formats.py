"""Reading: a large DAGMan file, whole, against the lines of its text alone."""

import tempfile
from functools import partial
from pathlib import Path

from benchmarks.timing import fastest, heading, row, shuffled, verdict
from eligo.dag import Dag
from eligo.families import random_layered
from eligo.formats import read

WIDTHS = (36, 10, 10, 9, 9, 8)


def dagman_text(dag: Dag) -> str:
    """The nodes of a dag, one a line, then for every task with children a line with all of them."""
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
    """How many words a file has: the least that any reader does."""
    return sum(len(line.split()) for line in path.read_text().split("\n"))


def run() -> None:
    """Print how long reading takes, of tasks in the order in which they were made and in any order."""
    heading("Reading", ("file", "ours ms", "words ms", "ratio", "target", ""), WIDTHS)
    dag = random_layered(1000, 1000, seed=1, degree=2)
    for title, shown in (("DAGMan 1e6 jobs 2e6 arcs", dag), ("the same, shuffled", shuffled(dag))):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "large.dag"
            path.write_text(dagman_text(shown))
            ours, words = fastest(partial(read, path), partial(split_lines, path), rounds=3)
        row((title, ours * 1e3, words * 1e3, ours / words, "<= 4 s", verdict(ours <= 4)), WIDTHS)

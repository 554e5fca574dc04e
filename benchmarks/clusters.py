"""Fat tasks: the arcs that they cut in real workflows, and the time to choose one, or all, from 100,000 tasks."""

import time
from collections.abc import Callable
from functools import partial

from benchmarks.timing import REAL, fastest, heading, row, shuffled, verdict
from eligo import families
from eligo.allocating import Ask, ByCluster
from eligo.clusters import cluster, fat_task
from eligo.dag import Dag
from eligo.execution import Execution
from eligo.formats import read
from eligo.planning import plan
from eligo.simulation import deal

LARGE: dict[str, Callable[[], Dag]] = {
    "out-mesh": lambda: families.out_mesh(447),
    "butterfly": lambda: families.butterfly(13),
    "out-tree": lambda: families.out_tree(17),
    "in-tree": lambda: families.in_tree(17),
    "layered": lambda: families.random_layered(100, 1000, seed=1, degree=3),
}
CLIENTS = (100, 100, 50)


def run() -> None:
    """Print the figures."""
    real_workflows()
    one_of_many()
    dealing()


def real_workflows() -> None:
    """Cut arcs and bytes of one fat task: communication never cuts more than direct."""
    widths = (44, 6, 6, 9, 9, 9, 10, 11, 11, 8)
    columns = ("workflow", "tasks", "size", "direct", "light", "arcs", "bytes", "strategy", "residual", "<= 1")
    heading("Real workflows: arcs cut by one fat task, direct against communication", columns, widths)
    if not REAL.exists():
        print("  none beside the checkout: skipped")
        return
    for path in sorted(REAL.glob("*.json*")):
        if path.name.startswith("synthetic"):
            continue
        flow = read(path)
        found = plan(flow, "quick")
        for size in (8, 32):
            if size >= len(flow):
                continue
            direct = cluster(flow, size, strategy="direct", effort="quick", plan=found)
            light = cluster(flow, size, "communication", effort="quick", plan=found)
            arcs = light.cut_arcs / max(1, direct.cut_arcs)
            shares = f"{light.bytes_out / max(1, direct.bytes_out):.3f}" if light.bytes_out and direct.bytes_out else ""
            told = (light.strategy, light.residual_verdict, verdict(arcs <= 1))
            row(
                (path.name[:44], len(flow), size, direct.cut_arcs, light.cut_arcs, f"{arcs:.3f}", shares, *told), widths
            )


def one_of_many() -> None:
    """A fat task of 100 tasks out of 100,000: at once, planning included, and from a dealer that has planned."""
    widths = (24, 10, 10, 9, 9, 9, 8, 10)
    columns = ("dag", "tasks", "arcs", "prod. s", "comm. s", "dealt s", "<= .2", "cut arcs")
    heading("One fat task of 100", columns, widths)
    for name, make in LARGE.items():
        dag = shuffled(make())
        times = fastest(*(partial(cluster, dag, 100, goal) for goal in ("productive", "communication")), rounds=3)
        dealer = ByCluster(dag, Execution(dag), goal="communication")
        begin = time.perf_counter()
        (grant,) = dealer.hand_out([Ask("somebody", 100)])
        dealt = time.perf_counter() - begin
        cut = fat_task(dag, grant.tasks).cut_arcs
        row((name, len(dag), dag.arc_count, *times, dealt, verdict(max(*times, dealt) <= 0.2), cut), widths)


def dealing() -> None:
    """Deal out the whole dag, to three clients of sizes 100, 100 and 50 at once."""
    widths = (24, 14, 9, 8, 10, 10, 10, 12)
    columns = ("dag", "goal", "s", "<= 20", "fat tasks", "cut arcs", "of arcs", "time/single")
    heading("Dealing 100,000 tasks", columns, widths)
    for name, make in LARGE.items():
        dag = shuffled(make())
        for goal in ("productive", "communication"):
            begin = time.process_time()
            found = deal(dag, CLIENTS, goal)
            seconds = time.process_time() - begin
            share = f"{found.makespan / found.makespan_singly:.3f}"
            cells = (seconds, verdict(seconds <= 20), len(found), found.cut_arcs, dag.arc_count, share)
            row((name, goal, *cells), widths)

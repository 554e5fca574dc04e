"""Real workflows as sleeps inside other engines: how long they take with the engine's own order, and with eligo's.

    python -m benchmarks.plugins_rehearsing luigi|doit|airflow WORKERS SECONDS ROUNDS FILE...

SECONDS is what all tasks of a workflow take together. ROUNDS runs of each, in turns: in the engine's own order, in eligo's by
the structure alone, and in eligo's by what each task takes as well (luigi and doit).
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import eligo
from benchmarks.plugins_turns import compare
from eligo.estimates import estimate

HERE = Path(__file__).resolve().parent
for folder in ("tests", "tests/plugins", "tests/plugins/airflow"):
    sys.path.append(str(HERE.parent / folder))

from began import times  # noqa: E402
from engine_venv import engine_python  # noqa: E402

Spec = dict[str, tuple[list[str], float]]  # what every task needs, and how long it sleeps

NOTING = """
import json, sys, time
from pathlib import Path
FOLDER = Path().absolute()
SPEC = json.loads((FOLDER / "spec.json").read_text())
def work(name):
    begun = time.time()
    time.sleep(SPEC[name][1])
    with open(FOLDER / "log", "a") as log:
        log.write(f"begin {name} {begun}\\nend {name} {time.time()}\\n")
"""
LUIGI = (
    NOTING
    + """
import luigi
from eligo.plugins.luigi import build
class Step(luigi.Task):
    name = luigi.Parameter()
    def requires(self): return [Step(parent) for parent in SPEC[self.name][0]]
    def complete(self): return (FOLDER / self.name).exists()
    def run(self):
        work(self.name)
        (FOLDER / self.name).touch()
known = [(Step(name).task_id, None, sleep) for name, (_, sleep) in SPEC.items()]
options = {"workers": int(sys.argv[2]), "local_scheduler": True, "log_level": "ERROR"}
options |= {"history": known} if sys.argv[1] == "timed" else {}
assert (luigi.build if sys.argv[1] == "own" else build)([Step(name) for name in SPEC], **options)
"""
)
DODO = (
    NOTING
    + """
def task_all():
    for name, (parents, _) in SPEC.items():
        yield {"basename": name, "actions": [(work, [name])], "task_dep": parents, "verbosity": 0}
"""
)
AIRFLOW = """
import json, os, time
from pathlib import Path
from airflow.sdk import DAG, BaseOperator
SPEC = json.loads((Path(os.environ["AIRFLOW_HOME"]) / "spec.json").read_text())
class Step(BaseOperator):
    def execute(self, context): time.sleep(SPEC[self.task_id][1])
known = {"max_active_tasks": int(os.environ["SLOTS"]), "default_args": {"weight_rule": os.environ["RULE"]}}
with DAG("rehearsed", schedule="@once", **known) as dag:
    steps = {name: Step(task_id=name) for name in SPEC}
    for name, (parents, _) in SPEC.items():
        for parent in parents:
            steps[parent] >> steps[name]
"""


def luigi(python: Path, folder: Path, way: str, workers: int) -> float:
    """Seconds from the first start to the last end inside Luigi."""
    (folder / "steps.py").write_text(LUIGI, "utf-8")
    subprocess.run([str(python), "steps.py", way, str(workers)], cwd=folder, check=True)
    return makespan(folder)


def doit(python: Path, folder: Path, way: str, workers: int) -> float:
    """The same inside doit."""
    (folder / "dodo.py").write_text(DODO, "utf-8")
    if way != "own":
        line = '[tool.doit.plugins.command]\nrun = "eligo.plugins.doit:OrderedRun"\n'
        (folder / "pyproject.toml").write_text(line, "utf-8")
    spec: Spec = json.loads((folder / "spec.json").read_text("utf-8"))
    rows = [f"{name},{sleep}\n" for name, (_, sleep) in spec.items()]
    (folder / "history.csv").write_text("task,seconds\n" + "".join(rows), "utf-8")
    known = ["--history", "history.csv"] if way == "timed" else []
    words = [str(python), "-m", "doit", "run", "-n", str(workers), *known]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return makespan(folder)


def airflow(python: Path, folder: Path, way: str, workers: int) -> float:
    """The same under Airflow's scheduler."""
    from airflow_home import Home

    home = Home(python, folder / "home", workers)
    (home.folder / "spec.json").write_text((folder / "spec.json").read_text("utf-8"), "utf-8")
    (home.folder / "dags" / "steps.py").write_text(AIRFLOW, "utf-8")
    home.surroundings |= {"RULE": "downstream" if way == "own" else "eligo.plugins.airflow.EligoPriority"}
    home.surroundings |= {"SLOTS": str(workers)}
    home.run("db", "migrate")
    home.play(1200)
    days = "select julianday(max(end_date)) - julianday(min(start_date)) from task_instance"
    return 86400 * float(home.asked(days)[0][0])


def makespan(folder: Path) -> float:
    """Seconds from the start of the first task to the end of the last."""
    seen = times(folder / "log").values()
    return max(end for _, end in seen) - min(begin for begin, _ in seen)


def spec_of(path: str, seconds: float) -> Spec:
    """A workflow whose tasks take a given time in total."""
    flow = eligo.read(path)
    taken = estimate(flow).seconds
    names = {task: f"t{number}" for number, task in enumerate(flow.dag.tasks)}
    scale = seconds / float(taken.sum())
    return {
        names[task]: ([names[parent] for parent in flow.dag.parents(task)], float(took) * scale)
        for task, took in zip(flow.dag.tasks, taken, strict=True)
    }


ENGINES: dict[str, Callable[[Path, Path, str, int], float]] = {"luigi": luigi, "doit": doit, "airflow": airflow}


def rehearsed(engine: str, python: Path, workers: int, spec: Spec, way: str) -> float:
    """The seconds of one run."""
    with tempfile.TemporaryDirectory(prefix="eligo-rehearsing-") as place:
        (Path(place) / "spec.json").write_text(json.dumps(spec), "utf-8")
        return ENGINES[engine](python, Path(place), way, workers)


def main(engine: str, workers: int, seconds: float, rounds: int, paths: list[str]) -> None:
    """Print a row for every workflow."""
    python = engine_python(engine)
    if python is None:
        return
    ways = ["own", "eligo"] if engine == "airflow" else ["own", "eligo", "timed"]
    specs = ((Path(path).name.split(".")[0], spec_of(path, seconds)) for path in paths)
    flows = ((name, len(spec), partial(rehearsed, engine, python, workers, spec)) for name, spec in specs)
    compare(f"{engine}, {workers} workers, {seconds:g} s of work", flows, ways, rounds)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])

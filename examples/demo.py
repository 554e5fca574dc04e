"""What eligo does, command by command; `make demo` runs it and leaves the files in out/."""

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
OUT = HERE.parent / "out"
ELIGO = str(Path(sys.executable).with_name("eligo"))
STEPS = [
    ("A workflow of 45 commands: twelve shots of a scene, put together into one picture. Which ready task next?",
     "plan mosaic/mosaic.yaml"),
    ("And the work itself, on this machine, in that order:", "run mosaic/mosaic.yaml"),
    ("What was done stays done:", "run mosaic/mosaic.yaml"),
    ("Which ready task next? The plan of a small workflow, and how good it is:", "plan pie.yaml"),
    ("The same workflow with a priority for every task, for engines that heed them:", "plan pie.yaml -o prioritised.yaml"),
    ("A plan carries its proof; a separate checker rechecks it:", "plan pie.yaml --save plan.json"),
    ("", "verify pie.yaml plan.json"),
    ("A DAGMan file with splices stays as it is; a wrapper gives its nodes priorities:", "plan survey.dag -o prio.dag"),
    ("From any format to any other; what has no place there is told:", "convert survey.dag survey.mmd"),
    ("Larger: 820 tasks whose blocks are run in an order of priority,", "generate in-mesh 40 -o mesh.json"),
    ("explained in words and in a picture:", "explain mesh.json -o mesh.svg"),
    ("Nine requests at once: which tasks leave the most ready?", "batch mesh.json --requests 9"),
    ("A fat task for a client that takes 15 tasks, cutting few arcs, and what it leaves:",
     "cluster mesh.json --size 15 --goal communication -o fat.svg"),
    ("Which order serves best, at which rate of requests?", "compare mesh.json --runs 20 -o compare.svg"),
    ("Not every workflow has an order that is best at every moment; then a bound says how close this one is:",
     "generate layered 12 15 --seed 4 -o layered.json"),
    ("", "explain layered.json -o layered.svg"),
]  # fmt: skip


def main() -> None:
    """Run every step in out/ and print what it prints."""
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    shutil.copytree(HERE / "mosaic", OUT / "mosaic")
    for file in ("pie.yaml", "survey.dag", "plate.dag"):
        shutil.copy(HERE / file, OUT)
    for comment, words in STEPS:
        if comment:
            print(f"\n# {comment}", flush=True)
        print(f"$ eligo {words}", flush=True)
        subprocess.run([ELIGO, *shlex.split(words)], check=True, cwd=OUT)
    print("\n# Tasks handed out live, from Python, to clients of different speed:", flush=True)
    print("$ python examples/live.py", flush=True)
    subprocess.run([sys.executable, str(HERE / "live.py")], check=True)
    print("\n# The same mosaic by a server and four clients, of which one is slow and one dies:", flush=True)
    print("$ python examples/served.py out/served", flush=True)
    (OUT / "served").mkdir()
    subprocess.run([sys.executable, str(HERE / "served.py"), str(OUT / "served")], check=True)
    pictures = "mosaic/mosaic.png, mesh.svg and layered.svg"
    print(f"\nLook at {pictures} in {OUT.name}, or plan a file of yours: eligo plan FILE")


if __name__ == "__main__":
    main()

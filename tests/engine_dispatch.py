"""A dispatcher to be killed: runs the workflow of a folder on the engine of that name.

python engine_dispatch.py slurm FOLDER
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from eligo.engines.slurm import StepsEngine
from engine_contract import WORKERS, Bench, flow_of, prepare


def main(name: str, place: Path) -> None:
    told = json.loads((place / "flow.json").read_text())
    made_by: Any = StepsEngine if name == StepsEngine.name else import_module(f"eligo.engines.{name}").make
    options = {} if name == StepsEngine.name else {"python": "/usr/bin/python3"}
    bench = Bench(name, place, lambda *given: made_by(*given, **options), lambda _: None, lambda _: [])
    prepare(bench, place, flow_of(told["parents"], told["command"].format), WORKERS).run(float("inf"))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

"""Tasks of Luigi that note when they begin and end: python luigi_steps.py FOLDER own|eligo WORKERS [CASE]."""

import json
import os
import sys
import time
from pathlib import Path

import luigi
from began import PARENTS

import eligo.plugins.luigi

FOLDER = Path(sys.argv[1])
CASE = sys.argv[4] if len(sys.argv) > 4 else "order"


def note(what: str, name: str) -> None:
    with (FOLDER / "log").open("a", encoding="utf-8") as log:
        log.write(f"{what} {name} {time.time():.4f}\n")


def count(what: str) -> None:
    with (FOLDER / "asked").open("a", encoding="utf-8") as log:
        log.write(f"{what}\n")


class Step(luigi.Task):
    name = luigi.Parameter()
    retry_count = 2

    @property
    def priority(self) -> int:
        return 10 if CASE == "wish" and self.name == "w2" else 0

    def requires(self) -> list[luigi.Task]:
        count(f"requires {self.name}")
        return [Step(parent) for parent in PARENTS[self.name]]

    def complete(self) -> bool:
        count(f"complete {self.name}")
        return bool(super().complete())

    def output(self) -> luigi.Target:
        return luigi.LocalTarget(str(FOLDER / "out" / self.name))

    def run(self) -> object:
        note("begin", self.name)
        time.sleep(0.2)
        tried = FOLDER / f"tried-{self.name}"
        if CASE == "fail" and (self.name == "d" or (self.name == "w" and not tried.exists())):
            tried.touch()
            raise RuntimeError("on purpose")
        if CASE == "dynamic" and self.name == "d":
            yield Late(name="late")
        note("end", self.name)
        self.output().makedirs()
        Path(self.output().path).touch()


class Late(Step):
    def requires(self) -> list[luigi.Task]:
        return []


if __name__ == "__main__":
    build = luigi.build if sys.argv[2] == "own" else eligo.plugins.luigi.build
    found = build(
        [Step(name) for name in PARENTS], workers=int(sys.argv[3]), local_scheduler=True, log_level="CRITICAL",
        detailed_summary=True,
    )  # fmt: skip
    done = sorted(os.listdir(FOLDER / "out"))
    Path(FOLDER / "result").write_text(json.dumps([found.status.name, done]), "utf-8")

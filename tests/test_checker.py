"""Two checkers, in Python and in C, that share no line: the same words for every plan, real or forged."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import families as f
from eligo.cli import run
from eligo.dag import Dag
from eligo.errors import EligoError
from eligo.formats import generate, parse, read
from eligo.planning import plan
from eligo.workflow import Workflow
from second_checker import FALSE, HOLDS, SANITIZED, SOURCE, STRICT, UNCHECKED, Answer, Second, built, first_answer
from test_verifying import FAMILIES, SPECIMENS, Document, document, edits, in_series

FORGED = int(os.environ.get("ELIGO_FORGED", "300"))
DATA = Path(__file__).parent / "data" / "plans"
REAL = Path(__file__).parents[2] / "shared" / "data"
FILES = (
    sorted([*REAL.glob("wfinstances/*.json*"), *REAL.glob("dagman/*.dag")])
    if FORGED > 300
    else sorted(REAL.glob("wfinstances/*chameleon*.json"))
)


def assert_agree(flow: Workflow | Dag, claim: Document, folder: Path, program: Path) -> Answer:
    """Both checkers say the same of a plan."""
    flow = flow if isinstance(flow, Workflow) else Workflow(flow)
    expected = first_answer(flow, claim)
    assert Second(flow, folder, program).answer(claim) == expected
    return expected


def plan_document(dag: Dag) -> Document:
    saved: Document = json.loads(json.dumps(plan(dag).document()))
    return saved


def test_the_source_is_plain_c_of_one_file() -> None:
    text = SOURCE.read_text("ascii")
    included = {line.split()[1] for line in text.splitlines() if line.startswith("#include")}
    assert included <= {f"<{name}.h>" for name in ("limits", "stdarg", "stdint", "stdio", "stdlib", "string")}


def test_it_is_built_without_warnings_by_make(tmp_path: Path) -> None:
    built()  # skips without a compiler
    (tmp_path / "checker").mkdir()
    (tmp_path / "checker" / "check.c").write_bytes(SOURCE.read_bytes())
    make = ["make", "-C", str(tmp_path), "-f", str(SOURCE.parents[1] / "Makefile"), "checker"]
    done = subprocess.run(make, capture_output=True, text=True, check=True)
    assert {*STRICT} <= {*done.stdout.split()}
    assert (tmp_path / "checker" / "check").exists()


@pytest.mark.parametrize("path", sorted(DATA.glob("*.plan")), ids=lambda path: path.stem)
def test_kept_plans(path: Path, tmp_path: Path) -> None:
    """Plans as `eligo plan --save` wrote them, with files, and forgeries of them with the words that both must say."""
    flow, claim = parse(path.with_suffix(".json").read_text("utf-8")), json.loads(path.read_text("utf-8"))
    assert assert_agree(flow, claim, tmp_path, built(*SANITIZED)).code == HOLDS
    false = assert_agree(flow, claim | {"area_bound": claim["area_bound"] + 1}, tmp_path, built(*SANITIZED))
    assert false.code == FALSE
    other = assert_agree(flow, claim | {"fingerprint": "0" * 32}, tmp_path, built(*SANITIZED))
    assert other.code == UNCHECKED


@pytest.mark.parametrize("name", [*SPECIMENS, *FAMILIES])
def test_specimens_and_families(name: str, tmp_path: Path) -> None:
    dag, claim = document(name) if name in SPECIMENS else (FAMILIES[name], plan_document(FAMILIES[name]))
    assert assert_agree(dag, claim, tmp_path, built(*SANITIZED)).code == HOLDS


@pytest.mark.parametrize("seed", range(4))
def test_random_dags(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    dags = [random_small_dag(rng, most=14) for _ in range(10)]
    dags += [f.random_layered(5, 8 + seed, seed=seed), f.random_dag(50, 0.08, seed=seed)]
    dags += [in_series(*(random_small_dag(rng, most=16) for _ in range(3)))]
    for dag in dags:
        assert assert_agree(dag, plan_document(dag), tmp_path, built(*SANITIZED)).code == HOLDS


# Forged


@cache
def changes(name: str) -> list[Document]:
    return [changed for _, changed in edits(document(name)[1])]


def forged(rng: np.random.Generator) -> Iterator[tuple[str, Document]]:
    """Plans changed in one place, and plans with a proof, order or bound of another one."""
    names = list(SPECIMENS)
    while True:
        name = names[rng.integers(len(names))]
        claim = changes(name)[rng.integers(len(changes(name)))]
        if rng.random() < 0.2:
            other = document(names[rng.integers(len(names))])[1]
            key = ("proof", "order", "upper_bound", "verdict", "area_bound")[rng.integers(5)]
            claim = claim | {key: other[key]}
        yield name, claim


def test_forged_plans(tmp_path: Path) -> None:
    """Both say the same words of every forgery; those that harm nothing hold in both."""
    program = built(*(SANITIZED if FORGED <= 300 else ("-O2",)))
    seconds: dict[str, Second] = {}
    codes = Counter[int]()
    stream = forged(np.random.default_rng(FORGED))
    for _ in range(FORGED):
        name, claim = next(stream)
        flow = Workflow(document(name)[0])
        if name not in seconds:
            (tmp_path / str(len(seconds))).mkdir()
            seconds[name] = Second(flow, tmp_path / str(len(seconds)), program)
        expected = first_answer(flow, claim)
        assert seconds[name].answer(claim) == expected, (name, claim)
        codes[expected.code] += 1
    assert set(codes) == {HOLDS, FALSE, UNCHECKED}
    kinds = f"{codes[HOLDS]:,} harmless, {codes[FALSE]:,} false, {codes[UNCHECKED]:,} malformed"
    sys.stdout.write(f"\n{FORGED:,} forged plans: {kinds}\n")


def test_fuzzed_texts(tmp_path: Path) -> None:
    """Texts with some characters changed: what the C checker accepts the other accepts; what it refutes is not accepted."""
    rng = np.random.default_rng(1)
    for _ in range(max(100, FORGED // 10)):
        name = list(SPECIMENS)[rng.integers(len(SPECIMENS))]
        dag, claim = document(name)
        text = bytearray(json.dumps(claim), "ascii")
        for place in rng.integers(0, len(text), size=rng.integers(1, 4)):
            text[place] = b'0123456789-.eE"{}[]:, ntf\\u\x7f'[rng.integers(27)]
        second = Second(Workflow(dag), tmp_path, built(*SANITIZED)).answer_to_text(text.decode("ascii"))
        try:
            first = first_answer(Workflow(dag), json.loads(text))
        except (ValueError, RecursionError):
            first = Answer(UNCHECKED)
        assert second.code in {first.code, UNCHECKED}, text
        assert second.code == UNCHECKED or second == first


# Real workflows


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_real_workflows(path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The saved plan of the command, with its orders and the bound on space."""
    try:
        flow = read(path)
    except EligoError as error:
        pytest.skip(f"no workflow: {error}")
    (tmp_path / "dag.json").write_text(generate(flow, "json"), "utf-8")
    assert run(["plan", str(tmp_path / "dag.json"), "--save", str(tmp_path / "saved")]) == 0
    assert run(["verify", str(tmp_path / "dag.json"), str(tmp_path / "saved")]) == 0
    words = capfd.readouterr().out.splitlines()
    again = subprocess.run(
        [built("-O2"), tmp_path / "dag.json", tmp_path / "saved"], capture_output=True, text=True, check=False
    )
    assert (again.returncode, again.stderr) == (HOLDS, "")
    assert again.stdout.strip() in words


def test_real_workflows_are_there() -> None:
    if not FILES:
        pytest.skip("NO REAL WORKFLOWS ARE CHECKED: ../shared/data is missing")


# What is not checked is refused


def test_a_bound_on_the_finish_is_refused(tmp_path: Path) -> None:
    dag, claim = document("chain")
    certificate: dict[str, Any] = {"rule": "path", "seconds": 1.0, "workers": [1.0], "t": 0.0, "u": 0.0, "j": 0}
    second = Second(Workflow(dag), tmp_path, built(*SANITIZED))
    assert second.answer(claim | {"certificate": certificate}).code == UNCHECKED


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"order": 1}', '{"a": 1, "a": 2}', "9" * 30, "[" * 10_000, "\x00", '"\\ud800"']
)
def test_what_is_no_plan_is_refused(text: str, tmp_path: Path) -> None:
    assert Second(Workflow(document("chain")[0]), tmp_path, built(*SANITIZED)).answer_to_text(text).code == UNCHECKED

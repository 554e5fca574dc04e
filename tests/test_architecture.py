"""The layers hold: imports point downward, heavy libraries stay where they belong, the surface is what it says."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import eligo

ROOT = Path(eligo.__file__).parent
LEVELS = {
    "version": 0, "errors": 0, "kernels": 0, "rows": 0, "dag": 0, "workflow": 0,
    "families": 1, "formats": 1, "interop": 1, "theory": 1,
    "border": 2,
    "execution": 3, "deciding": 3, "verifying": 3,
    "planning": 4,
    "batches": 5, "clusters": 5, "policies": 5,
    "allocating": 6, "priorities": 6,
    "simulation": 7,
    "plotting": 8, "explaining": 8, "reproducing": 8,
    "cli": 9,
}  # fmt: skip
FOUNDATION = ["version", "errors", "kernels", "rows", "dag", "workflow"]
MODULES = sorted(ROOT.rglob("*.py"))


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else "__init__"


def imported(path: Path) -> set[str]:
    """Every eligo module that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name for name in found if name.split(".")[0] == "eligo"}


def allowed(importer: str, target: str) -> bool:
    if importer == target:
        return True
    if LEVELS[importer] == LEVELS[target] == 0:
        return FOUNDATION.index(target) < FOUNDATION.index(importer)
    return LEVELS[target] < LEVELS[importer]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downward(path: Path) -> None:
    importer = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if importer == "__init__":
        return
    wrong = {target for target in imported(path) if not allowed(importer, room(target))}
    assert not wrong, f"{importer} must not import {wrong}"


def test_no_module_outgrows_its_name() -> None:
    assert {str(p): n for p in MODULES if (n := len(p.read_text("utf-8").splitlines())) > 450} == {}


def test_the_public_names_exist_and_are_all_declared() -> None:
    assert sorted(eligo.__all__) == eligo.__all__
    assert set(eligo._HOME) | {"__version__"} == set(eligo.__all__)
    for name in eligo.__all__:
        assert getattr(eligo, name) is not None


def test_the_command_starts_without_anything_heavy() -> None:
    code = "import sys, eligo.cli; sys.argv = ['eligo', '--version']; eligo.cli.main(); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "scipy", "typer", "rich", "yaml"} & set(out.split())

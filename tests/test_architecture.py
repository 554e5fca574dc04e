"""The layers hold: imports point downward, heavy libraries stay where they belong, the surface is what it says."""

import ast
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import draw_architecture as draw
import eligo
import eligo.allocating
import eligo.simulation

ROOT = Path(eligo.__file__).parent
LEVELS = {
    "version": 0, "errors": 0, "launch": 0, "work": 0, "stores": 0, "user_state": 0,
    "kernels": 0, "rows": 0, "names": 0, "dag": 0, "workflow": 0, "estimates": 0,
    "grown_dag": 1, "families": 1, "formats": 1, "interop": 1, "pools": 1, "theory": 1,
    "border": 2,
    "execution": 3, "deciding": 3, "verifying": 3,
    "additions": 4, "planning": 4, "space": 4, "times": 4,
    "batches": 5, "clusters": 5, "finishing": 5, "policies": 5, "schedules": 5,
    "allocating": 6, "predictions": 6, "prioritising": 6, "scaling": 6,
    "simulation": 7, "engines": 7,
    "choice": 8, "running": 8, "client": 8,
    "plotting": 9, "explaining": 9, "plugins": 9,
    "pages": 10,
    "server": 11,
    "cli": 12,
}  # fmt: skip
FOUNDATION = [
    "version",
    "errors",
    "launch",
    "user_state",
    "work",
    "stores",
    "kernels",
    "rows",
    "names",
    "dag",
    "workflow",
    "estimates",
]
MODULES = sorted(ROOT.rglob("*.py"))


GRAPH = draw.module_graph()
#: a library that is not always installed, and the only modules, by the end of their names, that import it
OPTIONAL = {
    "dask": ("interop.dask", "engines.dask", "plugins.dask"),
    "distributed": ("interop.dask", "engines.dask", "plugins.dask"),
    "networkx": ("interop.networkx",), "rustworkx": ("interop.rustworkx",), "pyarrow": ("interop.pyarrow",),
    "snakemake": ("plugins.snakemake",), "matplotlib": ("plotting",), "ray": ("engines.ray",),
    "parsl": ("engines.parsl", "plugins.parsl"),
    "starlette": ("server",), "uvicorn": ("server",), "prometheus_client": ("server",),
    "msgspec": ("server", "stores.service_sql"),
    "cryptography": ("server", "client.trust"), "psycopg": ("stores.service_postgres",),
    "textual": ("cli.top", "cli.top_board", "cli.top_panes"),
    "airflow": ("plugins.airflow",), "doit": ("plugins.doit",), "luigi": ("plugins.luigi",),
}  # fmt: skip


def allowed(importer: str, target: str) -> bool:
    if importer == target:
        return True
    if LEVELS[importer] == LEVELS[target] == 0:
        return FOUNDATION.index(target) < FOUNDATION.index(importer)
    return LEVELS[target] < LEVELS[importer]


@pytest.mark.parametrize("module", sorted(GRAPH))
def test_imports_point_downward(module: str) -> None:
    importer = draw.room_of(module)
    wrong = {target for target in GRAPH[module] if importer and not allowed(importer, draw.room_of(target))}
    assert not wrong, f"{module} must not import {wrong}"


def test_nothing_goes_in_a_circle() -> None:
    assert draw.cycle(GRAPH) == []
    assert draw.cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]


@pytest.mark.parametrize("package", sorted(OPTIONAL))
def test_an_optional_package_is_imported_where_it_belongs(package: str) -> None:
    for module, path in draw.modules().items():
        if package in outside(path):
            assert any(f".{home}." in f".{module}." for home in OPTIONAL[package]), (
                f"{module} must not import {package}"
            )


def outside(path: Path) -> set[str]:
    """The packages that a file imports, by statement or by name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            found.update(str(word.value) for word in node.args if isinstance(word, ast.Constant))
    return {name.partition(".")[0] for name in found}


def test_no_public_name_is_defined_twice() -> None:
    """Verbs are called like the functions that they print, and plug-ins like what they stand for in their engine."""
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        place = path.relative_to(ROOT)
        for node in ast.parse(path.read_text("utf-8")).body if place.parts[0] not in {"cli", "plugins"} else ():
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in eligo.__all__:
                homes.setdefault(node.name, []).append(str(place))
    assert {name: paths for name, paths in homes.items() if len({*paths}) > 1} == {}


#: what is said once in the rules, by its fields, and the only classes that may have these: beside it, messages at the wire
ONCE: dict[frozenset[str], set[str]] = {
    frozenset({"began", "ended", "failure"}): {
        "work.attempts.Attempt", "engines.worker.Performed", "server.schema.AttemptWords",
    },
    frozenset({"task", "attempt", "since"}): {"work.attempts.Lease"},
    frozenset({"count", "size", "wait"}): {"server.schema.AskWords"},
}  # fmt: skip


@pytest.mark.parametrize("fields", ONCE, ids=lambda fields: "-".join(sorted(fields)))
def test_an_attempt_a_lease_and_a_request_have_one_type_each(fields: frozenset[str]) -> None:
    classes = set()
    for module, path in draw.modules().items():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                own = {ast.unparse(row.target) for row in node.body if isinstance(row, ast.AnnAssign)}
                classes |= {f"{module.removeprefix('eligo.')}.{node.name}"} if fields <= own else set()
    assert classes == ONCE[fields]


def test_a_retry_is_decided_in_one_module() -> None:
    """No module but `work.tries` compares the failures or losses of a task with anything."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))) if path.name != "tries.py" else ():
            names = {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Attribute)}
            counts = {name for name in names if name.endswith(("tries.failures", "tries.losses"))}
            assert not (isinstance(node, ast.Compare) and counts), f"{path}: {ast.unparse(node)}"


def test_the_library_does_not_speak_of_the_commands_options() -> None:
    """Messages raised below the command line name no option of it."""
    options = {"--to", "--from", "--in-place", "--override", "--allow-outside", "--effort", "--json", "--history", "-o"}
    for path in MODULES:
        if path.relative_to(ROOT).parts[0] != "cli":
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Raise):
                    words = {w for c in ast.walk(node) if isinstance(c, ast.Constant) for w in str(c.value).split()}
                    assert not options & {word.strip(".,:;") for word in words}, f"{path}: {ast.unparse(node)}"


#: what describes and reads workflows; no order is computed there
DESCRIBING = {
    "border", "dag", "errors", "estimates", "formats", "interop", "launch", "names", "pools", "rows", "stores", "verifying",
    "version", "work", "workflow",
}  # fmt: skip


def test_the_checker_shares_no_line_with_the_planner() -> None:
    """Nothing that it leans on, however far below, computes an order: of the kernels only the rows of a dag."""
    below = {module for module in GRAPH if draw.room_of(module) == "verifying"}
    while grown := {target for module in below for target in GRAPH[module]} - below:
        below |= grown
    assert {draw.room_of(module) for module in below} - {""} == DESCRIBING | {"kernels"}
    assert {module for module in below if draw.room_of(module) == "kernels"} <= {"eligo.kernels", "eligo.kernels.graph"}


def test_the_drawing_of_the_house_is_true() -> None:
    text = draw.PAGE.read_text("utf-8")
    assert draw.page(text) == text, "run `make docs`"


def test_the_walks_of_a_task_have_at_most_twelve_steps_each_of_which_exists() -> None:
    walks = re.findall(r"\| step \| where \|.*\n\|[-|]+\n((?:\|.*\n)+)", draw.PAGE.read_text("utf-8"))
    assert len(walks) == 3
    for rows in map(str.splitlines, walks):
        assert len(rows) <= 12
        for row in rows:
            for place in re.findall(r"`([\w.]+)`", row.split("|")[2]):
                assert pkgutil.resolve_name(f"eligo.{place}") is not None


def test_a_module_has_one_subject_that_its_first_line_names() -> None:
    first_lines = {
        path: (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n")[0] for path in MODULES
    }
    assert {path for path, line in first_lines.items() if not line.endswith((".", ":", "?"))} == set()
    assert len({*first_lines.values()}) == len(MODULES), "two modules say that they are about the same"


def test_the_public_names_exist_and_are_all_declared() -> None:
    assert sorted(eligo.__all__) == eligo.__all__
    assert set(eligo._HOME) | {"__version__"} == set(eligo.__all__)
    for name in eligo.__all__:
        assert getattr(eligo, name) is not None


def test_the_command_starts_without_anything_heavy() -> None:
    code = "import sys, eligo.cli; sys.argv = ['eligo', '--version']; eligo.cli.main(); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "scipy", "typer", "rich", "yaml"} & set(out.split())


def test_planning_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    """Most of what a small workflow takes is imports."""
    file = tmp_path / "two.txt"
    file.write_text("a b\n", "utf-8")
    code = f"import os, sys, eligo.cli; eligo.cli.run(['plan', {str(file)!r}]); print(*sys.modules, *os.environ)"
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    out = done.stdout.split()
    rooms = {name.split(".")[1] for name in out if name.startswith("eligo.") and name.count(".") == 1}
    assert {"planning", "prioritising"} <= rooms
    assert not rooms & {"batches", "clusters", "plotting", "explaining", "running", "engines", "server", "families"}
    assert not {"eligo.simulation.deals", "highspy", "matplotlib", "rich", "yaml"} & set(out)
    assert not {"numpy.ma", "numpy.random", "OPENBLAS_NUM_THREADS"} & set(out)


def test_running_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    """A run on this machine calls no address and reads one format; two thirds of its CPU without tasks are imports."""
    file = tmp_path / "flow.json"
    file.write_text('{"tasks": [{"name": "a", "run": "true"}]}', "utf-8")
    code = f"import sys, eligo.cli; eligo.cli.run(['run', '-q', {str(file)!r}]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    out = set(done.stdout.split())
    assert "eligo.engines.local" in out
    assert not {"eligo.formats.dot", "eligo.formats.jx", "eligo.formats.dagman", "eligo.client.worker"} & out
    assert not {"http.client", "ssl", "email", "multiprocessing", "webbrowser", "numpy.ma", "rich", "yaml"} & out


def test_what_is_imported_when_first_used_is_all_there() -> None:
    for module in (eligo.allocating, eligo.simulation):
        assert all(getattr(module, name) is not None for name in module.__all__)
        with pytest.raises(AttributeError, match=f"'{module.__name__}' has no attribute 'nothing'"):
            _ = module.nothing


def test_no_module_hides_a_public_name() -> None:
    """`import eligo.x` sets the attribute x of eligo to the module."""
    assert not {draw.room_of(module) for module in GRAPH} & set(eligo.__all__)

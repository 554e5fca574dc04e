"""The comparison with other runners: every cell of ours names a test, and the test exists."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
ROWS = [
    [cell.strip() for cell in line.strip("| \n").split("|")] + [""] * line.endswith("| |\n")
    for line in (TESTS.parent / "docs/reference/peers.md").read_text("utf-8").splitlines(keepends=True)
    if line.startswith("|") and not line.startswith(("|---", "| feature"))
]


def _names(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return (node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_row_has_as_many_cells() -> None:
    assert {len(row) for row in ROWS} == {8}


def test_what_we_do_is_shown_by_a_test_that_exists() -> None:
    for feature, ours, *_, test in ROWS:
        assert bool(test) == (ours != "no"), feature
        if test:
            path, _, name = test.strip("`").partition("::")
            assert name in _names(TESTS / path), test

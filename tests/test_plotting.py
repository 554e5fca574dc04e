"""Pictures: where things are put, what is merged, and what is written."""

import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import families, plotting
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.pages.plans import facts
from eligo.planning import Plan, plan
from eligo.plotting.dags import LARGEST, panel_size
from eligo.plotting.layout import MIXED, Layout, Limits, count_crossings, group_nodes, layered, with_bends
from eligo.plotting.profiles import thin
from eligo.plotting.sketches import (
    BLOCK_LIMITS,
    NEUTRAL,
    SHORTCUT,
    Anatomy,
    sketch_of_blocks,
    sketch_of_conflict,
    sketch_of_dag,
    sketch_of_tasks,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

draws = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="pictures need matplotlib: pip install 'eligo[plot]'"
)

#: Names that break careless writers: markup, quotes, mathematics, other scripts, a character that XML forbids.
AWKWARD = ("<b>&amp;", 'say "hi"', "it's", "$x^2$", "naïve Ω", "任务一", "a\uffffb", "]]>", "<!-- no -->")

SMALL = {
    "nothing": Dag.from_arcs([]),
    "one task": Dag.from_arcs([], tasks=["a"]),
    "no arcs": Dag.from_arcs([], tasks="abcde"),
    "one arc": Dag.from_arcs([("a", "b")]),
    "shortcut": Dag.from_arcs([("a", "b"), ("b", "c"), ("a", "c")]),
    "mesh": families.out_mesh(6),
    "butterfly": families.butterfly(3),
    "parts": Dag.from_arcs([("a", "b"), ("c", "d"), ("c", "e")], tasks="abcdef"),
    "fork-join": families.fork_join(6, 2, 3),
}


def awkward() -> Dag:
    """The awkward names along a path, with a shortcut."""
    return Dag.from_arcs([*pairwise(AWKWARD), (AWKWARD[0], AWKWARD[-1])])


def nodes(figure: "Figure") -> int:
    """How many nodes a picture has."""
    return sum(1 for artist in figure.findobj() if artist.get_gid())


def texts(svg: str) -> list[str]:
    """What is written in an SVG document."""
    return ["".join(node.itertext()) for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


# The layout


@pytest.mark.parametrize("dag", SMALL.values(), ids=SMALL)
def test_levels_are_rows_from_the_top_and_no_two_tasks_overlap(dag: Dag) -> None:
    check_layout(dag, layered(dag, np.full(len(dag), 30.0), np.full(len(dag), 20.0)), 30.0)


def test_random_dags_are_laid_out_without_overlaps() -> None:
    rng = np.random.default_rng(5)
    for _ in range(150):
        dag = random_small_dag(rng, 25)
        check_layout(dag, layered(dag, np.full(len(dag), 30.0)), 30.0)


def check_layout(dag: Dag, drawn: Layout, width: float) -> None:
    """Rows by level; neighbours a width apart; every arc bends once on each level between, beside the tasks there."""
    for level in range(dag.depth):
        row = np.flatnonzero(dag.level == level)
        assert len({*drawn.y[row]}) == 1
        assert (np.diff(np.sort(drawn.x[row])) > width).all()
    heights = [drawn.y[dag.level == level][0] for level in range(dag.depth)]
    assert (np.diff(heights) < 0).all()
    assert (drawn.x >= width / 2 - 1e-9).all()
    for tail, head, bends in zip(dag.tails, dag.child, drawn.bends, strict=True):
        assert bends[:, 1].tolist() == heights[dag.level[tail] + 1 : dag.level[head]]
        for x, y in bends:
            assert (np.abs(drawn.x[drawn.y == y] - x) > width / 2).all()


def test_a_mesh_is_drawn_as_a_symmetric_triangle_without_crossings() -> None:
    drawn = layered(families.out_mesh(6))
    middle = drawn.x[0]
    for level in range(6):
        row = np.flatnonzero(families.out_mesh(6).level == level)
        assert np.allclose(drawn.x[row] - middle, middle - drawn.x[row][::-1])
    assert drawn.crossings == 0


@pytest.mark.parametrize("seed", range(5))
def test_barycentres_leave_no_more_crossings_than_the_order_of_appearance(seed: int) -> None:
    """A mesh whose tasks come in random order has many crossings; sorted, none."""
    mesh = families.out_mesh(8)
    mixed = np.random.default_rng(seed).permutation(len(mesh))
    dag = Dag.from_arrays(len(mesh), mixed[mesh.tails], mixed[mesh.child])
    net = with_bends(dag, np.arange(len(dag)), np.zeros(dag.arc_count, np.bool_))
    naive = count_crossings(net.gaps, np.arange(len(net.level), dtype=np.float64))
    assert layered(dag).crossings <= naive // 10


def test_crossings_are_counted_as_by_looking_at_every_pair() -> None:
    rng = np.random.default_rng(1)
    upper, lower = rng.integers(0, 8, 30), rng.integers(8, 17, 30)
    pairs = np.unique(np.column_stack([upper, lower]), axis=0)
    place = rng.permutation(17).astype(np.float64)
    a, b = place[pairs[:, 0]], place[pairs[:, 1]]
    slow = sum((a[i] < a[j]) & (b[i] > b[j]) for i in range(len(a)) for j in range(len(a)))
    assert count_crossings([(pairs[:, 0], pairs[:, 1])], place) == slow


def test_a_layout_is_the_same_every_time() -> None:
    dag = families.random_layered(6, 9, seed=3)
    one, two = layered(dag), layered(dag)
    assert np.array_equal(one.x, two.x)
    assert np.array_equal(one.y, two.y)


def test_long_arcs_of_one_task_share_their_bends_but_shortcuts_keep_apart() -> None:
    """a -> b -> c -> d, with a -> d and a -> e, where e is below c as well: one trunk leaves a."""
    dag = Dag.from_arcs([("a", "b"), ("b", "c"), ("c", "d"), ("c", "e"), ("a", "d"), ("a", "e")])
    far = np.flatnonzero(dag.level[dag.child] - dag.level[dag.tails] > 1)
    shared = layered(dag)
    assert np.array_equal(shared.bends[far[0]], shared.bends[far[1]])
    light = np.zeros(dag.arc_count, np.bool_)
    light[far[0]] = True
    apart = layered(dag, light=light)
    assert not np.array_equal(apart.bends[far[0]], apart.bends[far[1]])


# What is drawn


def test_a_task_is_numbered_by_its_place_in_the_plan_and_arcs_of_a_block_share_a_colour() -> None:
    dag = families.butterfly(3)
    parts = Anatomy(dag, best := plan(dag))
    sketch = sketch_of_tasks(parts)
    for place, task in enumerate(best.order, start=1):
        assert sketch.lines[dag.index[task]][:2] == (str(place), task)
    owner = parts.blocks.source_of[dag.tails]
    assert [{*sketch.arc_colour[owner == b].tolist()} for b in range(len(parts.blocks))] == [{c} for c in parts.colours]
    superdag = parts.blocks.superdag
    assert (parts.colours[superdag.tails] != parts.colours[superdag.child]).all()


def test_single_arcs_are_grey_and_shortcuts_have_their_own_colour() -> None:
    dag = SMALL["shortcut"]
    sketch = sketch_of_tasks(Anatomy(dag, plan(dag, "quick")))
    assert dict(zip(dag.arcs(), sketch.arc_colour.tolist(), strict=True)) == {
        ("a", "b"): NEUTRAL,
        ("a", "c"): SHORTCUT,
        ("b", "c"): NEUTRAL,
    }
    assert "dotted: shortcuts" in sketch.legend


def test_blocks_are_numbered_in_the_order_in_which_the_plan_starts_them() -> None:
    dag = families.out_mesh(5)
    sketch = sketch_of_blocks(Anatomy(dag, plan(dag, "quick")))
    assert sketch.lines == [("W(1,2)", "1st"), ("W(2,2)", "2nd"), ("W(3,2)", "3rd"), ("W(4,2)", "4th")]


def test_many_equal_blocks_are_drawn_as_one() -> None:
    dag = families.fork_join(120, 1, 3)
    sketch = sketch_of_dag(Anatomy(dag, plan(dag, "quick")))
    assert [texts[0] for texts in sketch.lines] == ["W(1,120)", "×240 N(1)", "M(1,120)"]
    assert list(sketch.dag.arcs()) == [("0", "1"), ("1", "2")]
    assert sketch.width[1] * sketch.height[1] > sketch.width[0] * sketch.height[0]


def test_a_long_run_of_one_family_becomes_a_short_one() -> None:
    dag = families.out_mesh(200)
    sketch = sketch_of_dag(Anatomy(dag, plan(dag, "quick")))
    assert sketch.lines[0][0] == "×16 W(1,2) … W(16,2)"
    assert sketch.dag.depth == len(sketch.dag) <= BLOCK_LIMITS.depth


def test_a_large_dag_that_is_all_one_block_is_drawn_by_levels() -> None:
    dag = families.random_dag(2000, 0.01, seed=1)
    sketch = sketch_of_dag(Anatomy(dag, plan(dag, "quick")))
    assert sketch.name == "level"
    assert sum(int(texts[0].split()[0].replace(",", "")) for texts in sketch.lines) == 2000


def test_tasks_that_are_in_no_block_are_not_forgotten() -> None:
    lonely = Dag.from_arcs([], tasks=[f"t{i}" for i in range(500)])
    assert sketch_of_dag(Anatomy(lonely, plan(lonely))).lines == [("500 tasks", "level 1", "t")]
    mixed = families.out_mesh(30) + lonely
    assert "not drawn: 500 tasks without arcs" in sketch_of_dag(Anatomy(mixed, plan(mixed))).legend


def test_merging_keeps_every_node_and_stops_when_it_fits() -> None:
    rng = np.random.default_rng(9)
    for _ in range(60):
        dag = random_small_dag(rng, 40)
        kind = rng.integers(0, 4, len(dag)).astype(np.int32)
        groups = group_nodes(dag, kind, kind // 2, Limits(width=4, depth=5, nodes=12, arcs=30))
        assert {*groups.of.tolist()} == {*range(len(groups.dag))}
        assert groups.dag.depth <= 5
        assert groups.dag.level_sizes.max() <= 4
        for g in range(len(groups.dag)):
            inside = {*kind[groups.of == g].tolist()}
            assert groups.kind[g] == (inside.pop() if len(inside) == 1 else MIXED)
        untouched = group_nodes(dag, kind, kind, Limits(40, 40, 40, 2000))
        assert untouched.of.tolist() == list(range(len(dag)))


def test_first_come_first_served_is_what_the_pebble_game_says() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        dag = random_small_dag(rng, 20)
        game, counts = Execution(dag), [len(dag.sources)]
        while game.eligible:
            game.execute(next(iter(game.eligible)))
            counts.append(len(game.eligible))
        assert list(plotting.fifo_profile(dag)) == counts


def test_a_long_profile_is_thinned_without_losing_its_extremes() -> None:
    curve = np.random.default_rng(0).integers(0, 1000, 100_000)
    curve[54_321] = 5000
    steps = thin([curve, curve + 1])
    assert len(steps) < 5000
    assert {0, 54_321, 99_999} <= {*steps.tolist()}


def test_a_plan_of_another_workflow_is_refused() -> None:
    with pytest.raises(InputError, match="another workflow"):
        Anatomy(families.out_mesh(4), plan(families.out_mesh(5)))


# Files


@draws
@pytest.mark.parametrize("suffix", [".svg", ".png"])
@pytest.mark.parametrize("dag", SMALL.values(), ids=SMALL)
def test_every_dag_has_its_picture(dag: Dag, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"picture{suffix}"
    plotting.save_figure(plotting.draw_explanation(plan(dag), dag), path)
    data = path.read_bytes()
    if suffix == ".png":
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
    else:
        assert ET.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"
        assert b"tasks executed" in data


@draws
def test_svg_has_the_names_as_text_and_as_tips(tmp_path: Path) -> None:
    dag = awkward()
    plotting.save_figure(plotting.draw_explanation(plan(dag), dag), tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text("utf-8")
    written = texts(svg)
    titles = [node.text or "" for node in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]
    for name in (name.replace("\uffff", "\ufffd") for name in AWKWARD):
        assert name in written
        assert any(title.startswith(f"{name}: number ") for title in titles)
    assert "$x^2$" in written  # and not typeset as mathematics


@draws
def test_the_verdict_and_the_axes_are_told_in_plain_words(tmp_path: Path) -> None:
    dag = families.butterfly(3)
    best = plan(dag, "quick")
    plotting.save_figure(plotting.draw_explanation(best, dag), tmp_path / "p.svg")
    written = texts((tmp_path / "p.svg").read_text("utf-8"))
    legend = {"this plan", "first come, first served", "bound at each step: no order can have more ready"}
    assert {str(best), "tasks executed", "tasks ready", *legend} <= {*written}
    assert "gap between plan and bound" not in written  # there is none


@draws
def test_the_gap_is_told_where_there_is_one(tmp_path: Path) -> None:
    dag = families.random_layered(5, 8, seed=2)
    undecided = plan(dag)
    assert undecided.profile != undecided.upper_bound
    plotting.save_figure(plotting.draw_explanation(undecided, dag), tmp_path / "p.svg")
    assert "gap between plan and bound" in texts((tmp_path / "p.svg").read_text("utf-8"))


@draws
@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_the_same_plan_gives_the_same_bytes(suffix: str, tmp_path: Path) -> None:
    dag = families.fork_join(5, 2, 2)
    for name in ("one", "two"):
        plotting.save_figure(plotting.draw_explanation(plan(dag), dag), tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@draws
def test_svg_bytes_do_not_depend_on_the_process_or_the_users_settings(tmp_path: Path) -> None:
    code = (
        "import sys, matplotlib\n"
        "if sys.argv[2:]: matplotlib.rcParams.update({'font.size': 20, 'axes.grid': True, 'svg.fonttype': 'path'})\n"
        "from eligo import families, planning, plotting; dag = families.out_mesh(4)\n"
        "plotting.save_figure(plotting.draw_explanation(planning.plan(dag), dag), sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "assert (matplotlib.rcParams['font.size'] == 20) == bool(sys.argv[2:])"
    )
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    subprocess.run([sys.executable, "-c", code, one], check=True)
    subprocess.run([sys.executable, "-c", code, two, "strange settings"], check=True)
    assert one.read_bytes() == two.read_bytes()
    assert b"<dc:date>" not in one.read_bytes()


def test_every_node_of_a_conflict_has_a_label() -> None:
    """A hub of 12 leaves against 4 tasks that render 40: rows too wide for names are told by number."""
    arcs = [("hub", f"leaf_{i}") for i in range(12)] + [(f"up_{i}", f"down_{j}") for i in range(4) for j in range(40)]
    conflict = plan(Dag.from_arcs(arcs)).conflict
    assert conflict is not None
    sketch = sketch_of_conflict(conflict)
    assert [*sketch.lines] == [("hub",), ("×12", "leaf"), ("×4", "up"), ("×40", "down")]
    unfound = replace(conflict, sets=(conflict.sets[0], conflict.sets[1][:0]))
    assert f"for step {conflict.steps[1]} no such tasks were found" in sketch_of_conflict(unfound).legend
    assert "vermilion" not in sketch_of_conflict(unfound).legend
    few = plan(Dag.from_arcs([("a", f"b{i}") for i in range(3)] + [(f"c{i}", f"d{j}") for i in "12" for j in range(5)]))
    assert few.conflict is not None
    assert all(len(names) == 1 and names[0] for names in sketch_of_conflict(few.conflict).lines)


@draws
def test_the_picture_says_the_verdict_once(tmp_path: Path) -> None:
    dag = families.out_mesh(3)
    best = plan(dag)
    plotting.save_figure(plotting.draw_explanation(best, dag), tmp_path / "a.svg")
    assert texts((tmp_path / "a.svg").read_text("utf-8")).count(str(best)) == 1


@draws
def test_a_small_drawing_is_made_larger_and_a_large_one_is_not() -> None:
    small, large = (sketch_of_tasks(Anatomy(dag, plan(dag))) for dag in (families.out_mesh(3), families.out_mesh(12)))
    for sketch, most in ((small, LARGEST), (large, 1.0)):
        (width, height), (_, down) = panel_size(sketch), sketch.size
        assert most * down < height < most * down + 100
        assert width >= most * sketch.size[0]


def test_the_facts_of_a_plan() -> None:
    expected = {
        "tasks": "3",
        "arcs": "3, of which 1 are shortcuts",
        "blocks": "2",
        "verdict": "optimal",
        "ready on average": "1.00",
        "first come, first served": "1.00",
        "share of the largest possible average": "100 %",
        "steps at which it is proved best": "3 of 3 (100 %)",
    }
    assert expected.items() <= dict(facts(plan(SMALL["shortcut"], "quick"))).items()


@pytest.mark.parametrize("name", ["picture", "picture.pdf", "picture.svg.gz", "-"])
def test_another_suffix_is_refused_with_those_that_are_not(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.svg or \.png"):
        plotting.save_figure(plotting.draw_explanation(plan(SMALL["mesh"]), SMALL["mesh"]), tmp_path / name)
    assert not list(tmp_path.iterdir())


@draws
def test_a_file_that_cannot_be_written_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.*cannot be written: no such file"):
        plotting.save_figure(
            plotting.draw_explanation(plan(SMALL["mesh"]), SMALL["mesh"]), tmp_path / "nowhere" / "a.svg"
        )


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=r"pictures need matplotlib: pip install 'eligo\[plot\]'"):
        plotting.save_figure(plotting.draw_explanation(plan(SMALL["mesh"]), SMALL["mesh"]), tmp_path / "a.svg")


def test_to_import_the_package_does_not_import_matplotlib() -> None:
    code = "import sys, eligo.plotting; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


LARGE: dict[str, Any] = {
    "one lump": lambda: families.random_dag(5000, 0.002, seed=1),
    "layers": lambda: families.random_layered(50, 100, seed=1),
    "composition": lambda: families.random_composition("wnm", 5000, seed=3),
    "butterfly": lambda: families.butterfly(9),
    "mesh": lambda: families.out_mesh(100),
    "tree": lambda: families.random_out_tree(5000, seed=1),
    "chain": lambda: families.grid(1, 5000),
    "chains": lambda: families.fork_join(100, 5, 10),
}


@draws
@pytest.mark.parametrize("kind", LARGE)
def test_a_large_dag_is_drawn_with_few_nodes(kind: str) -> None:
    dag: Dag = LARGE[kind]()
    best: Plan = plan(dag, "quick")
    figure = plotting.draw_explanation(best, dag)
    assert 1 <= nodes(figure) < 400
    assert max(figure.get_size_inches()) < 40

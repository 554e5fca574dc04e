"""Reproductions: the papers' values where they are exact, and ours where they are played."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.pages.html import save_output
from eligo.planning import plan
from eligo.plotting.comparison import draw_picture, first_figure
from eligo.plotting.profiles import svg_of
from eligo.simulation.reports import Curve, Panel, Picture, Report, Table
from eligo.theory.eligibility import eligible_counts
from papers import PAPERS, batch, clustering, comparison, reproduce, sweep
from papers.__main__ import main
from papers.areas import KINDS, coefficient, of_family
from papers.compositions import bracketed_composition
from papers.files import save_folder
from papers.findings import Checked, Finding, document_of, findings_of
from papers.fits import lower_envelope, power_law
from papers.phases import cells
from papers.playing import (
    HEURISTICS,
    AreaJob,
    DagName,
    PhaseJob,
    ideal,
    play_all,
    play_areas,
    play_phases,
)
from papers.unreliable import expected_ready

TINY = replace(
    comparison.QUICK,
    fft=range(3, 7),
    meshes=(5, 10, 15),
    targets=[100, 150, 200],
    runs=4,
    rates=[2, 8, 64],
    pairs={"reduction": (6, 12), "evolving": (6, 12), "fft": (3, 5)} | dict.fromkeys(KINDS, (60, 120)),
)


def quiet(done: int, total: int) -> None:
    """Nobody watches."""


@pytest.fixture(scope="module")
def tiny() -> Report:
    """The comparison paper on very small dags."""
    before = comparison.QUICK
    comparison.QUICK = TINY
    try:
        return comparison.report(True, 1, quiet)
    finally:
        comparison.QUICK = before


# The comparison paper


@pytest.mark.parametrize("kind", KINDS)
def test_bracketed_compositions_are_scheduled_optimally_by_their_making(kind: str) -> None:
    """Theorem 2.1 holds for partial dags composed with one another."""
    for seed in range(4):
        dag, order = bracketed_composition(kind, 120, seed)
        best = plan(dag)
        assert best.verdict == "optimal"
        assert np.array_equal(eligible_counts(dag, order), best.counts)
        assert 60 < len(dag) < 240
        assert len(dag.components()) == 1


@pytest.mark.parametrize(
    "family", ["fft", "reduction", "evolving", *KINDS, "w joined", "wnm joined", "w 10", "m 20", "wnm 0"]
)
def test_the_ideal_order_loses_nothing(family: str) -> None:
    dag, order = ideal(DagName(family, 7 if family in {"fft", "reduction", "evolving"} else 90, 3))
    assert np.array_equal(eligible_counts(dag, order), plan(dag).counts)


def test_there_are_no_other_kinds() -> None:
    with pytest.raises(InputError, match="kind is w, m, wnm, q2"):
        bracketed_composition("x", 10)


def test_the_largest_dags_are_of_one_size() -> None:
    """Ten levels of an FFT dag are about as many tasks as a hundred levels of a mesh: that settles what a level is."""
    assert len(ideal(DagName("fft", 10))[0]) == 5120
    assert len(ideal(DagName("evolving", 100))[0]) == 5050


def test_evolving_meshes_are_optimal_for_queues_and_reduction_meshes_are_not() -> None:
    evolving = play_areas(AreaJob(DagName("evolving", 15), 10))
    reduction = play_areas(AreaJob(DagName("reduction", 15), 10))
    for name in ("fifo", "greedy-fifo"):
        assert not evolving.lost(name).any()
        assert reduction.lost(name).all()
    assert evolving.lost("greedy").all()
    assert evolving.lost("lifo").all()
    assert all((point.lost(name) >= 0).all() for point in (evolving, reduction) for name in HEURISTICS)


def test_fft_coefficients_have_the_published_ratio() -> None:
    """LIFO's loss is 4.8 times FIFO's; the reading per level, a guess, stays where it was found."""
    points = [play_areas(AreaJob(DagName("fft", levels), 8)) for levels in range(3, 10)]
    sizes = [point.tasks for point in points]
    lifo = [float(point.lost("lifo").mean()) for point in points]
    fifo = [float(point.lost("fifo").mean()) for point in points]
    assert coefficient(sizes, lifo, 1.7) / coefficient(sizes, fifo, 1.7) == pytest.approx(0.11 / 0.023, rel=0.1)
    per_level = [value / levels for value, levels in zip(fifo, range(3, 10), strict=True)]
    fit = power_law(sizes, per_level)
    assert fit is not None
    assert fit.b == pytest.approx(1.7, abs=0.1)
    assert coefficient(sizes, per_level, 1.7) == pytest.approx(0.023, rel=0.2)


def test_all_schedulers_meet_the_same_requests() -> None:
    """On a dag where order does not matter, ratios are exactly 1."""
    point = play_phases(PhaseJob(DagName("evolving", 12), 4.0, 5))
    assert np.array_equal(point.polls["ready"], point.polls["fifo"])
    assert not np.array_equal(point.polls["ready"], point.polls["plan, other requests"])


def test_reproductions_do_not_depend_on_the_number_of_processes() -> None:
    areas = [AreaJob(DagName("fft", levels), 3) for levels in (3, 4)]
    phases = [PhaseJob(DagName("w", 60, 1), rate, 3) for rate in (2.0, 8.0)]
    one, two = (play_all(areas, phases, processes, quiet) for processes in (1, 2))
    assert one[0].keys() == two[0].keys()
    assert one[1].keys() == two[1].keys()
    for name in one[0]:
        assert one[0][name].best == two[0][name].best
        assert all(np.array_equal(one[0][name].areas[h], two[0][name].areas[h]) for h in HEURISTICS)
    for key in one[1]:
        assert all(np.array_equal(one[1][key].polls[h], two[1][key].polls[h]) for h in HEURISTICS)


def test_the_report_has_every_figure(tiny: Report) -> None:
    names = [picture.name for section in tiny.sections for picture in section.pictures]
    assert names == [
        "figure-4", "figure-5", "figure-6", "figure-7", "figure-6-joined", "figure-7-joined", "figure-8", "figure-9",
    ]  # fmt: skip
    panels = {picture.name: len(picture.panels) for section in tiny.sections for picture in section.pictures}
    assert (panels["figure-4"], panels["figure-7"], panels["figure-8"], panels["figure-9"]) == (3, 3, 6, 8)
    found = {finding.what: finding for finding in findings_of(tiny)}
    assert found["evolving meshes: FIFO is IC-optimal"].agrees
    assert found["reduction meshes: neither FIFO nor GREEDY is IC-optimal"].agrees
    assert not found["FFT: exponent b of n Δ, for LIFO / FIFO / GREEDY-FIFO"].agrees
    assert all(finding.why for finding in findings_of(tiny) if finding.agrees is False)


def test_what_disagrees_about_random_dags_tells_whether_that_depends_on_their_blocks(tiny: Report) -> None:
    told = [finding.why for finding in findings_of(tiny) if "epend on the unpublished" in finding.why]
    told += [finding.why for finding in findings_of(tiny) if "epends on the unpublished" in finding.why]
    assert told
    assert all("yes with" in why or "no with" in why for why in told)
    table = next(section.tables[0] for section in tiny.sections if "other blocks" in section.title)
    assert table.head == [
        "claim",
        "s, d <= 5",
        "s, d <= 10",
        "s, d <= 20",
        "a limit for each dag",
        "each block joins the dag so far",
    ]
    assert len(table.rows) == 5


def test_quick_reports_say_so() -> None:
    assert reproduce("sweep", quick=True).title.endswith("(quick: the same, as there is nothing to shorten)")
    assert not reproduce("sweep").title.endswith(")")


@pytest.fixture(scope="module")
def others() -> Report:
    """The statements, figures and times that have no report of their own."""
    return reproduce("statements", quick=True)


def test_all_statements_and_figures_hold_but_theorem_5(others: Report) -> None:
    tried, figures, _, _ = others.sections
    assert isinstance(tried, Checked)
    assert isinstance(figures, Checked)
    false = [finding for finding in (*tried.findings, *figures.findings) if finding.agrees is False]
    assert [finding.what.partition(":")[0] for finding in false] == ["Clustering, Theorem 5"]
    assert len(tried.findings) == 9
    assert len(figures.findings) == 12


def test_a_largest_area_is_best_if_bad_results_are_repeated_but_not_always_if_they_are_final(others: Report) -> None:
    rows = others.sections[3]
    assert isinstance(rows, Checked)
    assert [finding.agrees for finding in rows.findings] == [True, True, None, None]


def test_expected_readiness_is_that_of_trials() -> None:
    """By playing an order many times, with results that are good with probability p."""
    dag, p = Dag.from_arcs([("a", "c"), ("b", "c"), ("b", "d"), ("d", "e")]), 0.7
    rng, order, total, runs = np.random.default_rng(1), dag.order.tolist(), 0, 20_000
    for _ in range(runs):
        good, tried = set[int](), set[int]()
        while ready := [v for v in order if v not in tried and good.issuperset(dag.parents_of(v).tolist())]:
            tried.add(ready[0])
            good |= {ready[0]} if rng.random() < p else set()
            total += sum(v not in tried and good.issuperset(dag.parents_of(v).tolist()) for v in order)
    assert abs(total / runs - expected_ready(dag, p, final=True, order=order)) < 0.05


def test_every_claim_about_time_is_measured(others: Report) -> None:
    """Whether the exponent agrees is for a quiet machine to say."""
    times = others.sections[2]
    assert isinstance(times, Checked)
    assert len(times.findings) == 8
    assert all("exponent" in finding.ours for finding in times.findings)


def test_what_disagrees_is_explained_in_every_paper() -> None:
    for paper in ("sweep", "clustering"):
        assert all(finding.why for finding in findings_of(reproduce(paper)) if finding.agrees is False)


# Fits


@given(st.floats(1e-6, 1e3), st.floats(-2, 4))
def test_fits_recover_what_was_put_in(a: float, b: float) -> None:
    sizes = np.array([12.0, 32, 80, 192, 448, 1024, 2304, 5120])
    fit = power_law(sizes, a * sizes**b)
    assert fit is not None
    assert fit.a == pytest.approx(a, rel=1e-6)
    assert fit.b == pytest.approx(b, abs=1e-7)


def test_fits_are_least_squares() -> None:
    """No a v^b near the fit has a smaller sum of squares, noise or not."""
    rng = np.random.default_rng(4)
    sizes = np.linspace(100, 5000, 30)
    values = 0.02 * sizes**1.7 * rng.uniform(0.5, 1.5, 30)
    fit = power_law(sizes, values)
    assert fit is not None
    best = ((values - fit.at(sizes)) ** 2).sum()
    for da, db in ((1.001, 0.0), (0.999, 0.0), (1.0, 1e-4), (1.0, -1e-4), (1.01, -1e-3), (0.99, 1e-3)):
        assert ((values - fit.a * da * sizes ** (fit.b + db)) ** 2).sum() >= best


def test_nothing_is_fitted_to_nothing() -> None:
    assert power_law([1, 2, 3], [0, 0, 0]) is None
    assert power_law([5, 5], [1, 2]) is None


points = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=9)


@given(points)
def test_the_envelope_is_the_one_by_brute_force(drawn: list[tuple[int, int]]) -> None:
    """A point is a corner exactly when no line between two others, and no equal point before it, is as low there."""
    x, y = [float(a) for a, _ in drawn], [float(b) for _, b in drawn]

    def covered(i: int) -> bool:
        for j in range(len(drawn)):
            if x[j] == x[i] and (y[j], j) < (y[i], i):
                return True
            for k in range(len(drawn)):
                if x[j] < x[i] < x[k]:
                    share = (x[i] - x[j]) / (x[k] - x[j])
                    if y[j] + share * (y[k] - y[j]) <= y[i] + 1e-9:
                        return True
        return False

    corners = [i for i in range(len(drawn)) if not covered(i)]
    assert lower_envelope(x, y) == sorted(corners, key=lambda i: x[i])


# The other papers


def test_every_entry_of_sweeps_tables() -> None:
    report = sweep.report(False, 1, quiet)
    assert all(finding.agrees for finding in findings_of(report))
    entries = [finding.ours for finding in findings_of(report) if finding.what == "entries"]
    assert entries == [f"{n} of {n} the same" for n in (9, 6, 20, 9, 9, 12, 20, 16)]


def test_figure_5_of_the_clustering_paper() -> None:
    first, theorems = clustering.report(False, 1, quiet).sections
    assert isinstance(first, Checked)
    assert isinstance(theorems, Checked)
    assert all(finding.agrees for finding in first.findings)
    assert [fat.cut_arcs for fat in first.fat_tasks.values()] == [8, 6]
    assert [finding.agrees for finding in theorems.findings] == [False, False, False, True, True]


def test_the_factors_of_the_batch_paper() -> None:
    trials = [trial for seed in range(3) for trial in batch.expansive_trials(seed)]
    for trial in trials:
        assert trial.gains["static"] <= trial.best <= 3 * trial.gains["static"]
        assert trial.gains["expansive"] <= trial.best <= 2 * trial.gains["expansive"]
    assert all(batch.tree_agrees(seed) for seed in range(5))


def test_the_command_prints_what_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert "Table 2" in shown.out
    assert "23 of 23 published values and claims agree" in shown.err
    assert (tmp_path / "out" / "sweep.html").exists()


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["clustering", "--quick", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sections"][0]["findings"][2]["ours"] == "8"


def test_the_command_refuses_other_papers(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(PAPERS) == ["comparison", "sweep", "batch", "clustering", "statements"]
    with pytest.raises(SystemExit, match="2"):
        main(["dreams"])
    assert "invalid choice: 'dreams'" in capsys.readouterr().err


def test_the_command_says_which_folder_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["clustering", "-o", str(tmp_path / "file" / "out")]) == 2
    assert "cannot create this folder" in capsys.readouterr().err


# Pages and pictures


def sample() -> Report:
    curve = Curve(label="one <b>", x=[2, 4, 8], y=[1, 1.2, 1], low=[1, 1.1, 1], high=[1, 1.3, 1])
    fit = Curve(label="", x=[2, 8], y=[1, 1.1], style="fit")
    dots = Curve(label="two", x=[2, 4, 8], y=[1, 1.1, 1.2], style="points", colour=1)
    panels = [Panel(title="a & b", across="ρ", up="T", curves=[curve, fit, dots], logarithmic=True, level=1.0)] * 3
    finding = Finding(what="<i>", published="1", ours="2", agrees=False, why="because & so")
    table = Table(title="t", head=["", "x"], rows=[["r", "<td>"]], marked={(0, 1): "best"})
    section = Checked(
        title="s",
        words=["w"],
        findings=[finding],
        tables=[table],
        pictures=[Picture(name="p", title="P", panels=panels)],
    )
    return Report(title="R", words=["first"], sections=[section])


def test_pictures_are_the_same_bytes_every_time() -> None:
    picture = sample().sections[0].pictures[0]
    assert svg_of(draw_picture(picture)) == svg_of(draw_picture(picture))


def test_a_folder_has_the_page_and_both_kinds_of_pictures(tmp_path: Path) -> None:
    files = save_folder(reproduce("clustering"), tmp_path / "out", "clustering")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(Path(file).name for file in files)
    assert {Path(file).suffix for file in files} == {".html", ".svg", ".png"}
    assert len(files) == 5


def test_what_cannot_be_drawn_or_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to draw"):
        first_figure(Report(title="none"))
    with pytest.raises(InputError, match=r"must be \.svg, \.png or \.html"):
        save_output(tmp_path / "a.pdf", dict, lambda: first_figure(sample()))


def test_cells_and_families_are_found_by_name(tiny: Report) -> None:
    document = document_of(tiny)
    assert document["sections"][0]["title"].startswith("Figure 4")
    points, phases = play_all([AreaJob(DagName("fft", 3), 2)], [PhaseJob(DagName("fft", 3), 2.0, 2)], 1, quiet)
    assert [point.tasks for point in of_family(points, "fft")] == [12]
    assert {cell.heuristic for cell in cells(phases, ("fft",))} == {"fifo", "lifo", "greedy"}

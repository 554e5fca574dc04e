"""The Sweep paper: Tables 2-6 entry by entry, and what it concludes from them.

Its figures are not all in its text: dags are the smallest that fit their tables, and where two readings fit, both are tried.

.. [1] Cordasco, Malewicz, Rosenberg: Extending IC-scheduling via the Sweep algorithm.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eligo.dag import Dag, sum_of
from eligo.families import m_dag, planar_bipartite_tree, w_dag
from eligo.planning import plan
from eligo.simulation.experiments import Progress
from eligo.simulation.reports import Report, Section, Table
from eligo.theory.exact import max_profile
from eligo.theory.priority import has_priority
from eligo.theory.sweep import sum_table, sweep_two, verification_table
from papers.findings import Checked, Finding

Entries = Sequence[Sequence[int]]


class Published(NamedTuple):
    """A table of the paper: whom it sweeps, its entries, and what the paper reads off it."""

    number: str
    first: str
    second: str
    entries: Entries
    #: ▷ one way only, "first" or "second"; "interleaved"; "none": no IC-optimal schedule
    conclusion: str


TABLES = (
    Published("2", "B1", "B2", [[0, 3, 5], [4, 7, 9], [6, 9, 11]], "interleaved"),
    Published("3", "G3 left", "G3 right", [[0, 0, 2], [1, 1, 3]], "none"),
    Published("4", "G4 left", "G4 right", [[0, 0, 0, 1, 3], [0, 0, 0, 1, 3], [1, 1, 1, 2, 4], [2, 2, 2, 3, 5]], "none"),
    Published("5, first part", "B1", "B3", [[0, 0, 1], [4, 4, 5], [6, 6, 7]], "first"),
    Published("5, second part", "B2", "B3", [[0, 0, 1], [3, 3, 4], [5, 5, 6]], "first"),
    Published("5, third part", "B3", "B6", [[0, 0, 0, 1], [0, 0, 0, 1], [1, 1, 1, 2]], "first"),
    Published(
        "5, fourth part", "B6", "B5", [[0, 0, 0, 0, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 1], [1, 1, 1, 1, 2]], "first"
    ),
    Published("6", "fMRI left", "fMRI right", [[0, 3, 4, 5], [3, 6, 7, 8], [4, 7, 8, 9], [5, 8, 9, 10]], "interleaved"),
)


def dags() -> dict[str, Dag]:
    """The dags that are swept."""
    return {
        "B1": planar_bipartite_tree(5, "1/2", 2),
        "B2": planar_bipartite_tree(4, "1/2", 2),
        "B3": m_dag(1, 2),
        "B5": m_dag(1, 4),
        "B6": m_dag(1, 3),
        "G3 left": Dag.from_arrays(2, [0], [1]),
        "G3 right": Dag.from_arrays(4, [0, 0, 1, 1], [2, 3, 2, 3]),
        "G4 left": Dag.from_arrays(4, [0, 1, 2], [2, 2, 3]),
        "G4 right": Dag.from_arrays(6, [0, 1, 2, 3, 3], [3, 3, 3, 4, 5]),
        "fMRI left": Dag.from_arrays(8, [0, 1, 1, 2, 2, 2, 2], [7, 6, 7, 3, 4, 5, 6]),
        "fMRI right": Dag.from_arrays(8, [0, 1, 2, 2, 2, 2, 2], [6, 7, 3, 4, 5, 6, 7]),
    }


def profile_of(dag: Dag) -> tuple[int, ...]:
    """The maximal cumulative profile over nonsinks, by enumeration of every set that can be executed."""
    most = max_profile(dag)
    inner = int((dag.outdegree > 0).sum())
    return tuple(most[t] + t - most[0] for t in range(inner + 1))


def report(quick: bool, processes: int, progress: Progress) -> Report:
    """Compare every table; there is nothing to shorten."""
    profiles = {name: profile_of(dag) for name, dag in dags().items()}
    sections = []
    for number, table in enumerate(TABLES, 1):
        sections.append(_section(table, profiles[table.first], profiles[table.second]))
        progress(number, len(TABLES) + 1)
    sections.append(_examples())
    progress(len(TABLES) + 1, len(TABLES) + 1)
    return Report(
        title="The tables of the Sweep paper, again",
        words=(
            "Cordasco, Malewicz, Rosenberg: Extending IC-Scheduling via the Sweep Algorithm.",
            "E counts the tasks rendered eligible (section 3.2, step 1); section 2.1 defines another E, the tasks that are "
            "eligible now and no sources, which is a different problem for dags of three levels or more. Marked entries are "
            "reached by a path through diagonal maxima (the Verification Table). Profiles are by enumeration.",
        ),
        sections=sections,
    )


def _section(table: Published, first: Sequence[int], second: Sequence[int]) -> Section:
    ours = sum_table(first, second)
    reached = verification_table(first, second)
    entries = [(i, j) for i, row in enumerate(table.entries) for j in range(len(row))]
    same = ours.shape == (len(table.entries), len(table.entries[0]))
    equal = sum(bool(ours[i, j] == table.entries[i][j]) for i, j in entries) if same else 0
    found = conclusion(first, second)
    grid = Table(
        title=f"{table.first} down, {table.second} across",
        head=["", *map(str, range(ours.shape[1]))],
        rows=[[str(i), *map(str, row)] for i, row in enumerate(ours.tolist())],
        marked={(i, j + 1): "best" for i, j in entries if same and reached[i, j]},
    )
    return Checked(
        title=f"Table {table.number}",
        findings=[
            Finding(
                what="entries",
                published=" | ".join(" ".join(map(str, row)) for row in table.entries),
                ours=f"{equal} of {len(entries)} the same",
                agrees=equal == len(entries),
            ),
            Finding(
                what="conclusion",
                published=_told(table.conclusion, table),
                ours=_told(found, table),
                agrees=found == table.conclusion,
            ),
            *_remarks(table, first, second),
        ],
        tables=[grid],
    )


def conclusion(first: Sequence[int], second: Sequence[int]) -> str:
    """The result of 2-IC-Sweep for two profiles.

    >>> conclusion([0, 4, 6], [0, 3, 5]), conclusion([0, 1], [0, 0, 2]), conclusion([0, 2], [0, 0, 1])
    ('interleaved', 'none', 'first')
    """
    if sweep_two(first, second) is None:
        return "none"
    ways = has_priority(first, second), has_priority(second, first)
    return {(True, True): "both", (True, False): "first", (False, True): "second"}.get(ways, "interleaved")


def _told(word: str, table: Published) -> str:
    return {
        "none": "no IC-optimal schedule",
        "interleaved": "IC-optimal, but only interleaved: neither ▷ the other",
        "first": f"{table.first} ▷ {table.second}, and not the other way",
        "second": f"{table.second} ▷ {table.first}, and not the other way",
        "both": "▷ both ways",
    }[word]


def _remarks(table: Published, first: Sequence[int], second: Sequence[int]) -> Iterable[Finding]:
    if table.number == "2":
        reached = verification_table(first, second)
        forced = bool(reached[1, 0] and not reached[0, 1] and reached[1, 1] and not reached[2, 0])
        yield Finding(
            what="the first two steps are forced: B1's first, then B2's first",
            published="in both schedules",
            ours="forced" if forced else "not forced",
            agrees=forced,
        )
    if table.number == "4":
        wider = (
            Dag.from_arrays(5, [0, 1, 2, 2], [2, 2, 3, 4]),
            Dag.from_arrays(7, [0, 1, 2, 3, 3, 3], [3, 3, 3, 4, 5, 6]),
        )
        other = conclusion(*map(profile_of, wider))
        yield Finding(
            what="the other dag that fits the table, if E counts tasks that are eligible now",
            published=_told("none", table),
            ours=_told(other, table),
            agrees=other == "none",
            why="The table fits two dags: node 6 with one child and 7 with two, or with two and three. Both fail, so the "
            "paper's conclusion is safe.",
        )
    if table.number == "6":
        itself = has_priority(first, first)
        yield Finding(
            what="the summand precedes itself",
            published="no: all schedules are interleaved",
            ours="yes" if itself else "no",
            agrees=not itself,
        )


def _examples() -> Section:
    """The dags of Figure 3, whole, and the tree of Figure 9."""
    known = dags()
    whole = {
        "Figure 3, top left (20 tasks)": figure_3_left(),
        "Figure 3, top right (16 tasks)": figure_3_right(),
        "Figure 8 (16 tasks)": sum_of(known["fMRI left"], known["fMRI right"]).dag,
    }
    findings = []
    for name, dag in whole.items():
        found = plan(dag)
        findings.append(
            Finding(
                what=name,
                published="IC-optimal by the extended framework, not by the earlier one",
                ours=f"{found.verdict}, by {found.method}",
                agrees=found.verdict == "optimal" and "sweep" in found.method,
            )
        )
    tree = plan(planar_bipartite_tree("1/4", 3, "1/3", 3, "1/2", 2, "1/4", 3, "1/2", 4))
    findings.append(
        Finding(
            what="Figure 9: the tree P[1/4, 3, 1/3, 3, 1/2, 2, 1/4, 3, 1/2, 4]",
            published="admits an IC-optimal schedule",
            ours=f"{tree.verdict}, E = {' '.join(map(str, profile_of(tree.dag)))}",
            agrees=tree.verdict == "optimal",
        )
    )
    return Checked(title="Section 5: whole dags", findings=findings)


def figure_3_left() -> Dag:
    """B1 and B2, whose eleven sinks feed M(1,2), M(1,2), M(1,4) and M(1,3), and these M(1,4)."""
    arcs = {
        0: (2, 3, 4, 5, 6), 1: (6, 7), 8: (10, 11, 12, 13), 9: (13, 14), 2: (15,), 3: (15,), 4: (16,), 5: (16,), 6: (17,),
        7: (17,), 10: (17,), 11: (17,), 12: (18,), 13: (18,), 14: (18,), 15: (19,), 16: (19,), 17: (19,), 18: (19,),
    }  # fmt: skip
    ends = [(u, v) for u, below in arcs.items() for v in below]
    return Dag.from_arrays(20, [u for u, _ in ends], [v for _, v in ends])


def figure_3_right() -> Dag:
    """W(1,4), whose sinks are the sources of B1 and B2."""
    top = w_dag(1, 4)
    return Dag.from_arrays(
        16,
        [*top.tails.tolist(), 1, 1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 4, 4],
        [*top.child.tolist(), 5, 6, 7, 8, 9, 9, 10, 11, 12, 13, 14, 14, 15],
    )

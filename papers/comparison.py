"""The comparison paper: Figures 4-9 with its settings, and every number and claim of section 5 beside ours.

.. [1] Hall, Rosenberg, Venkataramani (2006), A comparison of dag-scheduling strategies for Internet-based computing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eligo.simulation.experiments import Progress
from eligo.simulation.reports import Report
from papers.areas import KINDS, area_sections
from papers.compositions import DRAWN
from papers.phases import phase_sections
from papers.playing import AreaJob, DagName, PhaseJob, play_all

#: how partial dags are put together: with one another, as the paper says, or block after block as `eligo.families` does
GENERATORS = ("", " joined")
#: other limits of s and d than `LARGEST_BLOCK`, with which the paper's claims are compared
OTHER_LIMITS = (10, 20, DRAWN)


@dataclass(frozen=True)
class Scale:
    """How much of the paper's experiment is played."""

    fft: Sequence[int]
    meshes: Sequence[int]
    targets: Sequence[int]
    runs: int
    rates: Sequence[int]
    pairs: dict[str, tuple[int, int]]

    def areas(self, limits: Sequence[int]) -> list[AreaJob]:
        """The dags of Figures 4-7; compositions of blocks that have sizes also with other limits of these."""
        names = [DagName("fft", levels) for levels in self.fft]
        names += [DagName(family, levels) for family in ("reduction", "evolving") for levels in self.meshes]
        for seed, size in enumerate(self.targets):
            names += [DagName(kind + generator, size, seed) for kind in KINDS for generator in GENERATORS]
            names += [DagName(f"{kind} {limit}", size, seed) for kind in KINDS[:3] for limit in limits]
        return [AreaJob(name, self.runs) for name in names]

    def phases(self) -> list[PhaseJob]:
        """The pairs of dags of Figures 8 and 9, a smaller and a larger one."""
        names = [DagName(family, size) for family, sizes in self.pairs.items() for size in sizes]
        return [PhaseJob(name, float(rate), self.runs) for name in names for rate in self.rates]


FULL = Scale(
    fft=range(3, 11),
    meshes=range(10, 101, 10),
    targets=[200 + 100 * i for i in range(49)],
    runs=50,
    rates=[2**k for k in range(1, 15)],
    pairs={"reduction": (30, 90), "evolving": (30, 90), "fft": (6, 10)} | dict.fromkeys(KINDS, (500, 4000)),
)
QUICK = Scale(
    fft=range(3, 10),
    meshes=range(10, 61, 10),
    targets=[200 + 100 * i for i in range(14)],
    runs=12,
    rates=[2**k for k in range(1, 15, 2)],
    pairs={"reduction": (20, 50), "evolving": (20, 50), "fft": (5, 8)} | dict.fromkeys(KINDS, (300, 1500)),
)

WORDS = (
    "Hall, Rosenberg, Venkataramani: A Comparison of Dag-Scheduling Strategies for Internet-Based Computing (2006).",
    "Read with its errata. 4.3.1 prints max for min, and the argument of E is cumulative; polls are simulated. 4.3.2: ρ is "
    "the mean of an exponential number of requests, and its rounding is not told: r = max(1, ceil(Exp(ρ))). 5.1: Δ is a "
    "difference per step and cannot grow faster than n; the printed exponents can only be those of n Δ, the area lost, which "
    "is what is drawn and fitted here.",
    "Dags: the FFT with k levels has k levels of tasks (10 levels: 5,120 tasks, as many as the largest mesh). The paper does "
    "not tell the sizes of blocks in compositions: here s and d are up to 5, and other limits show what depends on it. "
    "Partial dags are composed with one another as section 4.1.3 says (a random bracketing of the ▷-sorted blocks). For "
    "comparison, eligo.families.random_composition, which joins each block to the one dag so far, is played too and called "
    "'joined'.",
    "GREEDY breaks ties at random, as its definition says; GREEDY-FIFO breaks them by arrival, as its remark on FFT dags "
    "supposes.",
)


def report(quick: bool, processes: int, progress: Progress, limits: Sequence[int] = OTHER_LIMITS) -> Report:
    """Play everything and compare; *limits* are other limits of the sizes of blocks."""
    scale = QUICK if quick else FULL
    areas, phases = play_all(scale.areas(limits), scale.phases(), processes, progress)
    played = (
        f"{scale.runs} runs of each heuristic on each dag; {len(areas)} dags for the areas, {len(phases)} settings of "
        f"{2 * len(scale.pairs)} dags for the polls."
    )
    return Report(
        title="A comparison of dag-scheduling strategies, again",
        words=(*WORDS, played),
        sections=(*area_sections(areas, limits), *phase_sections(areas, phases)),
    )

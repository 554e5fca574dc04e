"""The papers' tables and figures, reproduced: each published value is compared with ours.

`python -m papers PAPER` prints a paper's report. The package is part of the repository, not of the released wheel.

| paper | module |
|---|---|
| comparison of schedulers | `comparison`, with `areas` (Figures 4-7), `phases` (8, 9), `playing`, `compositions`, `fits` |
| Sweep | `sweep` (Tables 2-6) |
| batches | `batch` (Theorems 3.1, 5.1, 6.1), with `hardness` |
| clustering | `clustering` (Figure 5, Theorems 6 and 7) |
| all of them | `statements`: other lemmas and theorems, times, figures; and results that may be bad, in `unreliable` |
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from eligo.simulation.experiments import Progress
from eligo.simulation.reports import Report
from papers import batch, clustering, comparison, statements, sweep

__all__ = ["PAPERS", "reproduce"]

#: every paper by name
PAPERS: dict[str, Callable[[bool, int, Progress], Report]] = {
    "comparison": comparison.report,
    "sweep": sweep.report,
    "batch": batch.report,
    "clustering": clustering.report,
    "statements": statements.report,
}


def reproduce(
    paper: str,
    quick: bool = False,
    processes: int = 1,
    progress: Progress = lambda done, total: None,
    limits: Sequence[int] = comparison.OTHER_LIMITS,
) -> Report:
    """Repeat a paper's experiments and compare; *quick* uses smaller dags and fewer runs, and the title says so.

    *limits* are other limits of the sizes of blocks in the comparison's random dags; 0 draws one for each dag.

    >>> from papers.findings import findings_of
    >>> all(finding.agrees for finding in findings_of(reproduce("sweep")))
    True
    """
    if paper == "comparison":
        report = comparison.report(quick, processes, progress, limits)
    else:
        report = PAPERS[paper](quick, processes, progress)
    return replace(report, title=f"{report.title} (quick: {QUICKLY[paper]})") if quick else report


#: what is smaller than in the paper if it must be quick
QUICKLY = {
    "comparison": "smaller dags and fewer runs than the paper's",
    "batch": "fewer random dags",
    "sweep": "the same, as there is nothing to shorten",
    "clustering": "the same, as there is nothing to shorten",
    "statements": "fewer random cases and smaller dags",
}

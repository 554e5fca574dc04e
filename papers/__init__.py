"""The papers' tables and figures, reproduced: each published value is compared with ours.

`python -m papers PAPER` prints a paper's report. The package is part of the repository, not of the released wheel.

| paper | module |
|---|---|
| comparison of schedulers | `comparison`, with `areas` (Figures 4-7), `phases` (8, 9), `playing`, `compositions`, `fits` |
| Sweep | `sweep` (Tables 2-6) |
| batches | `batch` (Theorems 3.1, 5.1, 6.1), with `hardness` |
| clustering | `clustering` (Figure 5, Theorems 6 and 7) |
"""

from collections.abc import Callable

from eligo.simulation.experiments import Progress
from eligo.simulation.reports import Report
from papers import batch, clustering, comparison, sweep

__all__ = ["PAPERS", "reproduce"]

#: every paper by name
PAPERS: dict[str, Callable[[bool, int, Progress], Report]] = {
    "comparison": comparison.report,
    "sweep": sweep.report,
    "batch": batch.report,
    "clustering": clustering.report,
}


def reproduce(
    paper: str, quick: bool = False, processes: int = 1, progress: Progress = lambda done, total: None
) -> Report:
    """Repeat a paper's experiments and compare; *quick* uses smaller dags and fewer runs.

    >>> from papers.findings import findings_of
    >>> all(finding.agrees for finding in findings_of(reproduce("sweep")))
    True
    """
    return PAPERS[paper](quick, processes, progress)

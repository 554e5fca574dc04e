"""Reproductions as people ask for them and see them."""

from eligo.cli.comparing import print_report, progress_bar
from eligo.cli.plans import tell
from eligo.cli.printing import print_json
from eligo.reproducing import reproduce as play_again


def reproduce(paper: str, output: str | None, quick: bool, processes: int, as_json: bool) -> None:
    """Play a paper's experiments again, draw, and print what agrees and what does not."""
    with progress_bar(f"reproducing {paper}") as progress:
        report = play_again(paper, quick, processes, progress)
    files: list[str] = []
    if output is not None:
        from eligo.cli.pictures import save_reproduction

        files, remarks = save_reproduction(report, output, paper)
        tell(remarks)
    if as_json:
        print_json(report.document())
        return
    print_report(report)
    judged = [finding.agrees for finding in report.findings() if finding.agrees is not None]
    tell([f"{sum(judged)} of {len(judged)} published values and claims agree"])
    tell([f"wrote {files[0]} and {len(files) - 1} pictures"] if files else [])

"""A reproduced paper as files: one page, and every picture as SVG and PNG."""

import os

from eligo.errors import InputError
from eligo.pages.html import save_page
from eligo.pages.reports import report_page
from eligo.plotting import save_figure
from eligo.plotting.comparison import figures_of
from eligo.simulation.reports import Report
from papers.findings import findings_of


def save_folder(report: Report, folder: str | os.PathLike[str], name: str) -> list[str]:
    """Write a report to a folder: NAME.html, and the pictures as NAME-PICTURE.svg and .png; returns the files."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise InputError(f"{os.fspath(folder)}: cannot create this folder: {error.strerror}") from None
    files = [os.path.join(folder, f"{name}.html")]
    for picture, figure in figures_of(report.sections):
        for suffix in (".svg", ".png"):
            files.append(os.path.join(folder, f"{name}-{picture}{suffix}"))
            save_figure(figure, files[-1])
    save_page(files[0], lambda: report_page(report, (), [f"{agreement(report)}."]))
    return files


def agreement(report: Report) -> str:
    """How many of the published values agree with ours, in a sentence."""
    agree = [finding.agrees for finding in findings_of(report) if finding.agrees is not None]
    return f"{sum(agree):,} of {len(agree):,} published values and claims agree"

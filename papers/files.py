"""A reproduced paper as files: one page, and every picture as SVG and PNG."""

import os

from eligo.cli.pictures import check_saved, save_comparison
from eligo.errors import InputError
from eligo.plotting.comparison import figures_of
from eligo.plotting.report import save_figure
from eligo.simulation.reports import Report


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
    check_saved(files[0], save_comparison(report, files[0], [f"{agreement(report)}."]))
    return files


def agreement(report: Report) -> str:
    """How many of the published values agree with ours, in a sentence."""
    agree = [finding.agrees for finding in report.findings() if finding.agrees is not None]
    return f"{sum(agree):,} of {len(agree):,} published values and claims agree"

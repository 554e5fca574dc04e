"""Reproduce a paper: `python -m papers sweep -o out`."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from eligo.cli.compare import print_report, progress_bar
from eligo.cli.output import print_json, speak_plainly
from eligo.cli.plan_text import tell
from eligo.errors import EligoError
from papers import PAPERS, QUICKLY, reproduce
from papers.comparison import OTHER_LIMITS
from papers.files import agreement, save_folder
from papers.findings import document_of


def main(arguments: Sequence[str]) -> int:
    """Run the command with these arguments; returns its exit code."""
    speak_plainly()
    options = _parser().parse_args(arguments)
    try:
        _run(options)
    except EligoError as error:
        sys.stderr.write(f"papers: {error}\n")
        return 2
    return 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser("python -m papers", description="Reproduce the tables and figures of a paper.")
    parser.add_argument("paper", choices=PAPERS, help="the paper to reproduce")
    parser.add_argument("-o", "--output", metavar="FOLDER", help="write the page and the pictures to this folder")
    parser.add_argument("--quick", action="store_true", help="smaller dags and fewer runs: within a minute")
    parser.add_argument(
        "--limits", type=_limits, default=OTHER_LIMITS, metavar="N,...",
        help="comparison: other limits of the sizes of blocks, 0 for one drawn for each dag [default: 10,20,0]",
    )  # fmt: skip
    parser.add_argument("-p", "--processes", type=int, default=1, metavar="N", help="parallel processes [default: 1]")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _limits(words: str) -> tuple[int, ...]:
    """Limits of the sizes of blocks: 0, or 2 and more."""
    limits = tuple(map(int, words.split(",")))
    if any(limit == 1 or limit < 0 for limit in limits):
        raise ValueError(words)
    return limits


def _run(options: Namespace) -> None:
    with progress_bar(f"reproducing {options.paper}") as progress:
        report = reproduce(options.paper, options.quick, options.processes, progress, options.limits)
    if options.json:
        print_json(document_of(report))
    else:
        print_report(report)
        tell([agreement(report) + (f" (quick: {QUICKLY[options.paper]})" if options.quick else "")])
    if options.output is not None:
        files = save_folder(report, options.output, options.paper)
        tell([] if options.json else [f"wrote {files[0]} and {len(files) - 1} pictures"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

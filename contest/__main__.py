"""Run the contest: `python -m contest FILES... -o docs/understand/contest.md`."""

import statistics
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from contest.adversary import LONGEST, TASKS, WORKERS, Loss, worst_losses
from contest.entrants import Entrant, all_entrants
from contest.scores import CLIENTS, Arena, Scores
from eligo.errors import EligoError
from eligo.formats import read

#: a column: its head, and the value of some scores
COLUMNS: dict[str, Callable[[Scores], float | None]] = {
    "area": lambda scores: scores.area, "rounds": lambda scores: scores.rounds, "finish": lambda scores: scores.finish,
    "peak": lambda scores: scores.peak, "starved": lambda scores: scores.starved,
}  # fmt: skip
#: scores by workflow and entrant
Results = dict[str, dict[str, Scores]]


def main(words: Sequence[str]) -> int:
    """Run the command with these arguments; returns its exit code."""
    options = _parser().parse_args(words)
    entrants = all_entrants({path.stem: path for path in options.order}, options.policy)
    results = play(options.files, entrants, options.workers)
    rivals = all_entrants({}, options.policy)  # an order in a file is of one workflow
    losses = worst_losses(rivals, options.adversary) if options.adversary else {}
    text = "\n".join(page(results, losses, options)) + "\n"
    if options.output:
        options.output.write_text(text, "utf-8")
    else:
        sys.stdout.write(text)
    return 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser("python -m contest", description="Score orders of many tools on workflows.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="workflows in any format")
    parser.add_argument("--workers", type=int, default=8, metavar="N", help="equal workers for the finish [default: 8]")
    parser.add_argument(
        "--order", type=Path, action="append", default=[], metavar="FILE", help="an order, one task a line"
    )
    parser.add_argument("--policy", action="append", default=[], metavar="NAME", help="another policy of Eligo")
    parser.add_argument(
        "--adversary", type=int, default=0, metavar="STEPS", help="steps of the search for losses [default: 0]"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="PAGE", help="write the page to this file")
    return parser


def play(files: Iterable[str], entrants: Mapping[str, Entrant], workers: int) -> Results:
    """The scores of all entrants; a file that is no workflow, and an order of another workflow, are named and left out."""
    results: Results = {}
    for file in files:
        try:
            arena = Arena(read(file), workers)
        except EligoError as error:
            sys.stderr.write(f"contest: {error}\n")
            continue
        own = results.setdefault(Path(file).name.partition(".")[0], {})
        for name, entrant in entrants.items():
            try:
                own[name] = arena.scores(entrant)
            except (EligoError, ImportError) as error:
                sys.stderr.write(f"contest: {file}: {name}: {error}\n")
    return results


def page(results: Results, losses: Mapping[str, Loss], options: Namespace) -> Iterator[str]:
    """The lines of the page."""
    yield "# Contest\n"
    yield "Orders of many tools on the same workflows. Each score is a gap to a bound that no order beats."
    yield "This page is what one command wrote:\n"
    yield f"`python -m contest FILES --workers {options.workers} --adversary {options.adversary} -o PAGE`\n"
    yield from _losses(losses) if losses else ()
    yield f"## All workflows\n\nMedian and largest gap over {len(results)} workflows.\n"
    yield from _summary(results)
    yield "\n| column | gap |\n|---|---|"
    yield "| area | missing part of the largest possible sum of ready tasks |"
    yield f"| rounds | rounds beyond the fewest, if {CLIENTS} clients ask at a time and each task takes a round |"
    yield f"| finish | time beyond the lower bound on {options.workers} equal workers, where all run times are known |"
    yield "| peak | bytes between tasks beyond the lower bound, one task at a time |"
    yield f"| starved | part of the requests of {CLIENTS} clients that find nothing, beyond what is unavoidable |\n"
    yield "A gap is never smaller than the true loss; part of it may be due to the bound. Of other tools only dask.order is"
    yield "called; the other orders follow their rules. HEFT is for equal workers without transfers. `finish` is the policy"
    yield "alone: `eligo plan` also tries other orders on the given workers, and takes the soonest.\n"
    yield "## The finish by workflow\n"
    yield from _by_workflow(results)


def _summary(results: Results) -> Iterator[str]:
    names = list(dict.fromkeys(name for scores in results.values() for name in scores))
    yield f"| order | {' | '.join(COLUMNS)} |\n|---|{'---:|' * len(COLUMNS)}"
    for name in names:
        cells = [_cell([value(own[name]) for own in results.values() if name in own]) for value in COLUMNS.values()]
        yield f"| {name} | {' | '.join(cells)} |"


def _cell(values: Sequence[float | None]) -> str:
    there = [value for value in values if value is not None]
    return f"{_percent(statistics.median(there))}, {_percent(max(there))}" if there else ""


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _by_workflow(results: Results) -> Iterator[str]:
    shown = ("finish", "fifo", "critical path in seconds", "HEFT", "dask.order", "ninja without a log")
    yield f"| workflow | {' | '.join(shown)} |\n|---|{'---:|' * len(shown)}"
    for workflow, own in results.items():
        gaps = [own[name].finish if name in own else None for name in shown]
        if any(gap is not None for gap in gaps):
            yield f"| {workflow} | {' | '.join('' if gap is None else _percent(gap) for gap in gaps)} |"


def _losses(losses: Mapping[str, Loss]) -> Iterator[str]:
    yield "## Where `finish` loses most\n"
    yield f"For each other order, a search looks for the dag of {TASKS} tasks on which `finish` loses most."
    yield f"Tasks take 1 to {LONGEST} s, on {WORKERS} workers. Larger losses may exist; 0.0 % means that none was found.\n"
    yield "| order | `finish` ends later by |\n|---|---:|"
    ranked = sorted(losses.items(), key=lambda item: -item[1].share)
    yield from (f"| {name} | {_percent(loss.share)} |" for name, loss in ranked)
    name, worst = ranked[0]
    arcs = ", ".join(f"{u} → {v}" for u, v in worst.flow.dag.arcs())
    seconds = ", ".join(f"{time:g}" for time in worst.flow.column("seconds"))
    yield f"\nThe worst of them, against {name}: tasks 0 to {TASKS - 1} take {seconds} s. The arcs are {arcs}.\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""What several verbs print about plans, and how they read workflows and show progress."""

import math
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from textwrap import wrap
from types import FrameType
from typing import Any

from eligo.cli.options import Reading
from eligo.cli.output import chart, harmless, print_facts, print_json, print_lines, width, wrapped
from eligo.deciding.work import Clock, Outlook
from eligo.errors import InputError, UnknownTaskError
from eligo.estimates import lasting
from eligo.formats.shared.drawings import ALL_DONE
from eligo.names import without_shared_path
from eligo.planning import VERDICTS, Plan, percent
from eligo.times import RunTimes, times_of
from eligo.workflow import Workflow

FIRST_TASKS = 10
FIRST_LINES = 2


@contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Show what eligo is doing, if standard error is a terminal; yields a function that adds details."""
    if not sys.stderr.isatty():
        yield lambda more: None
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda more: status.update(f"{what}{more}")


@contextmanager
def searching(tasks: int, seconds: float | None = None) -> Iterator[tuple[Clock, Callable[[Outlook], None]]]:
    """A clock that Ctrl-C and the time limit, if any, stop; and a function that shows the progress of the search."""
    if seconds is not None and not seconds > 0:
        raise InputError(f"--seconds must be positive, got {seconds:g}")
    begin = time.monotonic()
    with working(f"planning {tasks:,} tasks") as say, stoppable(seconds) as clock:
        yield clock, lambda outlook: say(outlook_words(outlook, time.monotonic() - begin))


def outlook_words(outlook: Outlook, elapsed: float) -> str:
    """The progress of a search in words.

    >>> print(outlook_words(Outlook("a part of 74 tasks", 5.2, 0.9941), 3.1))
    , 3 s: 99.4 % of the bound so far
      trying a part of 74 tasks; at most about 6 s more, Ctrl-C keeps the best
    """
    best = f": {math.floor(1000 * outlook.best) / 10:g} % of the bound so far" if outlook.best else ""
    most = (
        f"at most about {lasting(math.ceil(outlook.seconds))} more"
        if outlook.seconds < math.inf
        else "this may take a while"
    )
    return f", {lasting(round(elapsed))}{best}\n  trying {outlook.trying}; {most}, Ctrl-C keeps the best"


def read_workflow(file: str, how: Reading) -> Workflow:
    """The workflow in a file; shows progress, and prints remarks to standard error."""
    from eligo.formats import read

    with working(f"reading {file}"):
        flow = read(
            file,
            how.from_,
            allow_outside=how.allow_outside,
            reverse=how.reverse,
            arguments=_arguments(how.args) if how.args else None,
            environment=dict(os.environ) if how.env else None,
            columns=_titles(how.columns) if how.columns is not None else None,
            trace=how.trace,
        )
    if flow.origin:
        tell(flow.origin.remarks)
        tell(["add --reverse to reverse every dependency"] if flow.origin.backward and not how.reverse else [])
    return flow


def accept(
    flow: Workflow, ignore: Collection[str], elsewhere: bool = True, *, what: str = "running", **how: Any
) -> Workflow:
    """The workflow as it is run or exported; prints the features that are ignored, and refuses all others.

    *how*: see `eligo.formats.fidelity.as_runnable`.
    """
    from eligo.formats.fidelity import as_runnable, unsupported_features, unused_words

    flow = as_runnable(flow, ignore, elsewhere, **how)
    ignored = unsupported_features(flow)
    tell([harmless(f"warning: {what} without {', '.join(ignored)}")] if ignored else [])
    tell([harmless(f"warning: --ignore {word} has no effect on this file") for word in unused_words(flow, ignore)])
    return flow


def recall(flow: Workflow, paths: Sequence[str] | None, run: str | None = None) -> RunTimes:
    """The workflow's run times, with those of histories or of an earlier run; prints which match."""
    with working(f"reading {' '.join(paths)}") if paths else nullcontext():
        times = times_of(flow, paths or (), run)
    tell(times.remarks)
    return times


def _titles(columns: str) -> tuple[str, str]:
    parent, comma, child = columns.partition(",")
    if not comma or "," in child:
        raise InputError(f"--columns must be two titles separated by a comma, FROM,TO, got {columns!r}")
    return parent, child


def _arguments(words: Sequence[str]) -> dict[str, Any]:
    """The values that --args gives: NAME=VALUE, or those in a file."""
    from eligo.formats.detection import Typed
    from eligo.formats.jx.evaluation import read_arguments

    values: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name.isidentifier():
            values[name] = Typed(value)
        else:
            values |= _yaml_arguments(word) if word.endswith((".yaml", ".yml")) else read_arguments(word)
    return values


def _yaml_arguments(path: str) -> dict[str, Any]:
    """The values in a YAML file."""
    from eligo.formats.shared import files, yaml_text

    values = yaml_text.load(files.load(path))
    if not isinstance(values, dict):
        raise InputError(f"{path}: must be one object of names and values")
    return values


def headline(flow: Workflow, otherwise: str) -> str:
    """The first line: that all tasks are done if that is so, else the other text."""
    if len(flow) or not flow.origin or not flow.origin.done:
        return otherwise
    sentence = ALL_DONE if ALL_DONE in flow.origin.remarks else "all tasks of this workflow are already done"
    return sentence[0].upper() + sentence[1:]


def listed_names(flow: Workflow, path: str | None) -> tuple[str, ...]:
    """The tasks that a file lists; none without a file."""
    from eligo.formats import read_order

    names = () if path is None else read_order(path)
    for name in names:
        if name not in flow.dag:
            raise UnknownTaskError(name).located(str(path))
    return names


def tell(lines: Sequence[str]) -> None:
    """Print messages to standard error, after the output so far; a terminal gets them wrapped."""
    sys.stdout.flush()
    for line in (f"eligo: {line}" for line in lines):
        parts = wrapped(line, width(sys.stderr), "  ") if sys.stderr.isatty() and "\n" not in line else [line]
        sys.stderr.write("\n".join(parts) + "\n")


def tell_cut(plan: Plan) -> None:
    """Print that the search for a plan was cut short, if it was."""
    if plan.cut:
        tell(["the search was cut short: this is the best order so far, and more time may change it"])


def tell_renamed(old: Mapping[str, str], format: str) -> None:
    """Print how many tasks were renamed in the output, with an example; *old* maps new names to old ones."""
    for new, name in list(old.items())[:1]:
        what = "1 task" if len(old) == 1 else f"{len(old):,} tasks"
        tell([f"renamed {what}, because {format} does not allow the names: {name!r} is now {new!r}"])


@contextmanager
def stoppable(seconds: float | None = None) -> Iterator[Clock]:
    """A clock that the first Ctrl-C stops, to keep the best plan so far; a second one ends the program."""
    clock, pressed = Clock(math.inf if seconds is None else seconds), list[int]()

    def stop(number: int, frame: FrameType | None) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)
        sys.stderr.write("eligo: stopping with the best order so far; press Ctrl-C again to quit\n")
        clock.stop()

    with heeding(stop, signal.SIGINT):
        yield clock


@contextmanager
def heeding(handler: Callable[[int, FrameType | None], None], *numbers: int) -> Iterator[None]:
    """Call a function on these signals during the block."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan as plain data, with the averages that are printed."""
    usual = sum(plan.first_come) / max(1, len(plan))
    return plan.document() | {"average": plan.average, "average_first_come": usual, "gain": plan.gain}


#: the effect of a preference among orders with equally many ready tasks at every step
PREFERRED = {"path": "longest remaining path first", "finish": "started branches first"}


def print_details(plan: Plan, prefer: str) -> None:
    """Print what the plan rests on, in the terms of the theory."""
    shortcuts = f", {plan.shortcuts:,} of them shortcuts" if plan.shortcuts else ""
    sys.stdout.write("\n")
    print_facts(
        "What is proved about `ready`, and how:",
        [
            ("verdict", f"{VERDICTS[plan.verdict]} ({plan.method})"),
            ("tasks", len(plan)),
            ("arcs", f"{plan.dag.arc_count:,}{shortcuts}"),
            ("blocks", plan.blocks),
            ("first come, first served", f"{sum(plan.first_come) / max(1, len(plan)):,.2f} ready on average"),
            ("largest possible average", average_share(plan.area, plan.area_bound)),
            ("bound at each step", f"attained at {plan.tight_steps:,} of {len(plan):,} steps"),
            ("tie-break", f"{PREFERRED[prefer]}; costs no ready task"),
            ("seconds", f"{plan.seconds:.3f}"),
        ],
    )


def average_share(area: int, area_bound: int) -> str:
    """The share of the largest possible average that is attained, in words."""
    share = percent(area, area_bound)
    return "attained" if share == "100 %" else f"at least {share} of it"


def first_tasks(order: Sequence[str]) -> str:
    """The first names, without the prefix that all names share, on few lines."""
    names = without_shared_path([str(name) for name in order])
    text = ", ".join(names[:FIRST_TASKS]) + (", ..." if len(names) > FIRST_TASKS else "")
    lines = wrap(text, width() - 12, break_on_hyphens=False, max_lines=FIRST_LINES, placeholder=" ...")
    return "\n            ".join(lines)


def explain_plan(flow: Workflow, effort: str, seconds: float | None, output: str | None, json: bool) -> None:
    """Plan a workflow, print what the plan rests on, and draw it if *output* is given."""
    from eligo.explaining import explain
    from eligo.planning import plan as make_plan

    with searching(len(flow), seconds) as (clock, watch):
        plan = make_plan(flow, effort, clock=clock, watch=watch)
        words = explain(flow, plan)
    tell_cut(plan)
    if json:
        print_json(plan_document(plan) | {"words": words})
    else:
        print_explanation(plan, words)
    if output is not None:
        _save_picture(plan, flow, words, output)
        tell([f"wrote {output}"])


def _save_picture(plan: Plan, flow: Workflow, words: Sequence[str], output: str) -> None:
    from eligo.pages.html import save_output
    from eligo.pages.plans import plan_page
    from eligo.plotting import draw_explanation

    with working("drawing"):
        save_output(output, lambda: plan_page(plan, flow, words), lambda: draw_explanation(plan, flow))


def print_explanation(plan: Plan, words: Sequence[str]) -> None:
    """Print the words, then the chart."""
    print_lines(words)
    sys.stdout.write(f"\n{chart(plan.profile, plan.upper_bound, plan.first_come)}\n")

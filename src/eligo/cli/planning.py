"""The verb `plan`: one order is used, shown, written and saved; what the others would give stands beside it."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eligo.cli.charts import chart
from eligo.cli.exporting import export, next_steps, text_to_write
from eligo.cli.finishes import asked_pool, finish_told, print_finish, print_unpromised, sooner
from eligo.cli.orders import USED, Candidate, Candidates, candidates, number, table, told_name
from eligo.cli.places import check_place
from eligo.cli.plans import first_tasks, headline, plan_document, print_details, searching, tell, tell_cut
from eligo.cli.printing import json_text, print_json, print_lines
from eligo.cli.recalling import Knowledge
from eligo.errors import InputError
from eligo.estimating import estimate, lasting
from eligo.formats.shared.files import save
from eligo.planning import gained, sentence
from eligo.pools import Pool
from eligo.prioritising import check_order
from eligo.simulation.players import name_of
from eligo.simulation.steady import Steady
from eligo.workflow import Workflow

WORTH_SAYING = 0.0005  # as a share: what rounds to a tenth of a per cent
HEIGHT = 5  # lines of the chart: all of a plan fits on a screen


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What the command's options say."""

    file: str
    output: str | None
    names: bool
    in_place: bool
    order: str
    priority_base: int | None
    force: bool
    override: bool
    to: str | None
    save: str | None
    workers: str | None
    cores: int | None
    histories: Sequence[str]
    effort: str
    seconds: float | None
    prefer: str
    verbose: bool
    json: bool

    def __post_init__(self) -> None:
        if self.in_place and self.output is not None:
            raise InputError("--in-place writes FILE itself: leave -o out")
        if [self.place, self.save, "-" if self.json else None].count("-") > 1:
            raise InputError("only one of -o -, --save - and --json can go to standard output")
        check_order(self.order)

    @property
    def place(self) -> str | None:
        """Where the order is written, if anywhere but into the workflow's own file."""
        return self.output or "-" if self.names else self.output

    @property
    def writing(self) -> bool:
        """Whether an order is written."""
        return self.in_place or self.place is not None


def answer(flow: Workflow, known: Knowledge, asked: PlanRequest) -> None:
    """Plan, and show, write and save what is asked for."""
    from eligo.planning import plan as make_plan

    pool = asked_pool(known, asked.workers, asked.cores)
    to = "names" if asked.names else asked.to
    text = text_to_write(flow, asked.file, asked.place, to) if asked.writing else None
    for place in (asked.place, asked.save):
        check_place(flow, place, asked.force)
    with searching(len(flow), asked.seconds) as (clock, watch):
        plan = make_plan(flow, asked.effort, asked.prefer, clock, watch)
        whole = asked.writing or asked.json or (asked.save, pool) != (None, None)
        found = candidates(flow, plan, asked.order, pool if pool and known.whole else None, whole)
    tell_cut(plan)
    if not asked.override and len({priority or 0 for priority in flow.column("priority")}) > 1:
        tell(["the tasks have priorities: `eligo run` starts larger ones first, and no figure here counts them"])
    told = []
    if asked.writing:
        told = export(flow, found.order, asked.place, text, asked.override, to, asked.priority_base)
        told = [f"order written: {found.used}{_made(found, ' for {}')}", *told]
    if asked.json:
        print_json(document(known, found, pool, asked))
    elif "-" not in (asked.place, asked.save):
        _print(known, found, pool, asked)
    if asked.save is not None:
        _save(document(known, found, pool, asked, ("ready", found.used)), asked.save)
    tell(told)


def document(
    known: Knowledge, found: Candidates, pool: Pool | None, asked: PlanRequest, kept: Sequence[str] = ()
) -> dict[str, Any]:
    """The plan as plain data, with its orders, or those *kept*, and with when it ends where that is asked for."""
    whole = plan_document(found.plan) | found.document(kept)
    if asked.histories or pool is not None:
        whole |= known.document()
    return whole if pool is None else whole | finish_told(pool, found.finish)


def _save(whole: dict[str, Any], path: str) -> None:
    """Write a plan with its proof as JSON."""
    if path == "-":
        print_json(whole)
        return
    save(json_text(whole), path)
    tell([f"wrote {path}"])


# As people see it


def _print(known: Knowledge, found: Candidates, pool: Pool | None, asked: PlanRequest) -> None:
    """What it means and what each order gives; then, where nothing is written, ready tasks over time and what to do next."""
    flow = known.flow
    print_lines(sentences(flow, found))
    if len(flow):
        sys.stdout.write("\n" + "".join(f"{line}\n" for line in (*table(found), *_remarks(flow, found))))
    if len(flow) and not asked.writing and asked.save is None:
        _print_rest(found, next_steps(flow, asked.file, pool is not None))
    if pool is not None:
        _print_end(known, found, pool)
    if asked.verbose:
        print_details(found.plan, asked.prefer)


def _print_end(known: Knowledge, found: Candidates, pool: Pool) -> None:
    """When it ends on a pool, or that no time is promised."""
    if found.finish is None or found.chosen is None:
        print_unpromised(pool, known)
        return
    order = found.used if found.used == "finish" else found.chosen.sequence
    print_finish(pool, known, found.finish, Steady.following(known.flow, order, found.plan))


def sentences(flow: Workflow, found: Candidates) -> list[str]:
    """What is proved, and of which order; what the order used gains; or that nothing is left to plan."""
    plan, chosen = found.plan, found.chosen
    if not len(flow):
        return [headline(flow, "There are no tasks, so there is nothing to put in order.")]
    told = found.known["ready"] if chosen is None else chosen
    if chosen is None:
        return [
            sentence(plan, "`ready`"),
            f"You get {told_name(found.used)}; in `ready` there are {_gain(found, told)}.",
        ]
    same = np.array_equal(told.counts, plan.counts)
    proved = sentence(plan, told_name(found.used if same else "ready"))
    return [proved, f"You get {told_name(found.used)}: {_gain(found, told)}."]


def _gain(found: Candidates, told: Candidate) -> str:
    """What an order gains on first come, first served: in time where that is known, else in ready tasks."""
    usual = found.known["fifo"].makespan
    if told.makespan is None or usual is None:
        return f"{number(told.average)} tasks ready, {gained(told.area, sum(found.plan.first_come))}"
    return f"all done after {lasting(told.makespan)}, {sooner(told.makespan, usual)}"


def _made(found: Candidates, words: str) -> str:
    """For what the order used was made, where it was made for a pool."""
    return "" if found.bound is None or found.used != "finish" else words.format(found.bound.pool.head)


def _remarks(flow: Workflow, found: Candidates) -> Iterator[str]:
    """What the mark means, and whether anything is gained."""
    aim = _made(found, ", made for {}") or (", meant to end soonest" if found.used == "finish" else "")
    yield f"{USED} you get this one{aim}; --order NAME gives another"
    yield from _choice(found)
    if found.chosen is None or found.used == "fifo":
        return
    level = "nothing" if found.bound else estimate(flow).level
    if level != "nothing" and found.usual_does(found.used):
        time = "--workers 16 says what time is gained" if level == "seconds" else "time may still be gained"
        yield f"first come, first served does as well; {time}"
    elif all(map(found.usual_does, found.known)):
        yield "nothing to gain here: first come, first served does as well"
    elif found.usual_does(found.used):
        yield f"nothing is gained by {told_name(found.used)}: first come, first served does as well"


def _choice(found: Candidates) -> Iterator[str]:
    """What the order used was made from, which order ends sooner, and what run times cost in rounds; if anything."""
    chosen, soonest = found.chosen, found.known.get("finish")
    if chosen is None:
        return
    if chosen.origin not in (None, "finish"):
        yield f"  made from {chosen.origin}: that ends sooner here than finish's own rule"
    if chosen.makespan is not None and soonest is not None and (soonest.makespan or 0.0) < chosen.makespan:
        yield f"  `finish` ends sooner: after {lasting(soonest.makespan or 0.0)}"
    share, mean = found.extra_rounds
    if share >= WORTH_SAYING:
        yield f"  run times cost rounds: up to {100 * share:.1f} % more than without them (if {mean:g} ask at a time)"


def _print_rest(found: Candidates, steps: Sequence[tuple[str, str]]) -> None:
    """Ready tasks over time in the order used, its first tasks, and what can be done next."""
    plan, shown = found.plan, found.chosen or found.known["ready"]
    curve = tuple(shown.counts.tolist())
    picture = chart(curve, plan.upper_bound, plan.first_come, height=HEIGHT, name=name_of(shown.name))
    first = "--names prints it" if found.chosen is None else first_tasks(found.order)
    sys.stdout.write(f"\n{picture}\n\nthis order: {first}\n")
    column = max((len(command) for command, _ in steps), default=0) + 2
    for place, (command, what) in enumerate(steps):
        sys.stdout.write(f"{'' if place else 'what next:':12}{command:{column}}{what}".rstrip() + "\n")

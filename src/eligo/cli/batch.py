"""Batches as people ask for them and see them."""

from eligo.batches import Batch, batch
from eligo.cli.output import print_facts
from eligo.cli.plan_text import listed_names, working
from eligo.errors import InputError
from eligo.workflow import Workflow


def ask_batch(  # noqa: PLR0913 - what the command's options say
    flow: Workflow,
    requests: int,
    *,
    executed: str | None,
    allocated: str | None,
    eligible: str | None,
    method: str,
    seconds: float | None,
) -> Batch:
    """The best batch of a state whose tasks are listed in files."""
    from_stdin = flow.origin is not None and flow.origin.path is None
    if [executed, allocated, eligible].count("-") + from_stdin > 1:
        raise InputError("standard input can be read only once: give a file instead of one -")
    ready = None if eligible is None else listed_names(flow, eligible)
    done, out = listed_names(flow, executed), listed_names(flow, allocated)
    with working(f"choosing {requests:,} tasks"):
        return batch(flow, done, requests, allocated=out, eligible=ready, method=method, seconds=seconds)


def print_batch(choice: Batch, requests: int) -> None:
    """The tasks, and how good the choice is."""
    if not choice.tasks:
        print_facts("No task is ready.", [])
        return
    fewer = f" of {requests:,} requested: no more are ready" if len(choice.tasks) < requests else ""
    most = "proved: no choice leaves more" if choice.exact else f"not proved: at most {choice.upper_bound:,} possible"
    print_facts(
        f"Tasks to hand out: {', '.join(choice.tasks)}",
        [
            ("tasks", f"{len(choice.tasks):,}{fewer}"),
            ("ready afterwards", f"{choice.eligible_after:,} ({most})"),
            ("method", choice.method),
        ],
    )

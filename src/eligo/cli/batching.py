"""Batches as people ask for them and see them."""

from eligo.batches import Batch, batch
from eligo.cli.plans import listed_names, working
from eligo.cli.printing import print_facts
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
        raise InputError("standard input can be read only once")
    ready = None if eligible is None else listed_names(flow, eligible)
    done, out = listed_names(flow, executed), listed_names(flow, allocated)
    with working(f"choosing {requests:,} tasks"):
        return batch(flow, done, requests, allocated=out, eligible=ready, method=method, seconds=seconds)


def print_batch(found: Batch, requests: int) -> None:
    """The tasks, and how good the choice is."""
    if not found.tasks:
        print_facts("Nothing can be handed out: no task is ready.", [])
        return
    fewer = f" of {requests:,} asked for: no more are ready" if len(found.tasks) < requests else ""
    most = "no choice leaves more" if found.exact else f"not proved best: at most {found.upper_bound:,} possible"
    print_facts(
        f"Hand out: {', '.join(found.tasks)}",
        [
            ("tasks", f"{len(found.tasks):,}{fewer}"),
            ("ready afterwards", f"{found.eligible_after:,} ({most})"),
            ("method", found.method),
        ],
    )

"""What a run does not honour of a file, as people see it."""

from collections.abc import Collection

from eligo.cli.output import harmless
from eligo.cli.plan_text import tell
from eligo.formats.fidelity import as_runnable, listed, unused
from eligo.workflow import Workflow


def accepted(
    flow: Workflow, ignore: Collection[str], elsewhere: bool = True, what: str = "running", served: bool = False
) -> Workflow:
    """The workflow as it is run or exported; what is ignored of its file goes to standard error, all else is refused."""
    flow = as_runnable(flow, ignore, elsewhere, served)
    ignored = listed(flow)
    tell([harmless(f"warning: {what} without {', '.join(ignored)}")] if ignored else [])
    tell([harmless(f"warning: --ignore {word} has no effect on this file") for word in unused(flow, ignore)])
    return flow

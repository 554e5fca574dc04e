"""Values after `:::` on a command line, as users of GNU parallel write them."""

import json
from collections.abc import Sequence

#: what stands between a command and the values for it
SEPARATOR = ":::"
#: the folder of a run that has no file
FOLDER = "eligo.run"


def written_out(arguments: Sequence[str]) -> list[str]:
    """The command line with an option instead of the values.

    >>> written_out(["run", "gzip -{2} {1}", ":::", "a", "b", ":::", "9"])
    ['run', 'gzip -{2} {1}', '--values=[["a", "b"], ["9"]]']
    """
    before = list(arguments)
    if before[:1] != ["run"] or SEPARATOR not in before:
        return before
    at = before.index(SEPARATOR)
    return [*before[:at], f"--values={json.dumps(sources(before[at:]), ensure_ascii=False)}"]


def sources(words: Sequence[str]) -> list[list[str]]:
    """The values after each separator."""
    lists: list[list[str]] = []
    for word in words:
        if word == SEPARATOR:
            lists.append([])
        else:
            lists[-1].append(word)
    return lists

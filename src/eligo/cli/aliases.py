"""Old names of options and policies, which still work for one release: each is replaced, with a warning."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

#: the options that were renamed, by verb
OPTIONS = {
    "plan": {"--order": "--policy"},
    "compare": {"--schedulers": "--policy"},
    "work": {"--output": "--max-output"},
}
#: the policies that were renamed
POLICIES = {"plan": "ready"}
#: the keys of JSON documents of a server, and their new names
KEYS = {"made": "submitted", "repeated": "reassigned"}
#: the verbs that take a policy
CHOOSING = ("plan", "run", "serve", "submit", "compare")


def without_old_names(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments of a command with present names, and a warning for each old one.

    >>> without_old_names(["plan", "x.dag", "--order=plan"])
    (['plan', 'x.dag', '--policy=ready'], ['--order is deprecated: use --policy', "policy 'plan' is deprecated: use 'ready'"])
    """
    verb, renamed = arguments[0], OPTIONS.get(arguments[0], {})
    words, warnings = list(arguments), []
    for place, word in _options(words):
        flag, equals, value = word.partition("=")
        if flag in renamed:
            warnings.append(f"{flag} is deprecated: use {renamed[flag]}")
            flag = renamed[flag]
            words[place] = flag + equals + value
        if flag == "--policy" and verb in CHOOSING:
            at = place if equals else place + 1
            warnings += _rename_policies(words, at, "--policy=" if equals else "")
    return words, warnings


def with_new_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a server, with the new names of keys beside the old ones.

    >>> with_new_keys({"repeated": 2, "saved": 0})
    {'repeated': 2, 'saved': 0, 'reassigned': 2}
    """
    return {**document, **{new: document[old] for old, new in KEYS.items() if old in document}}


def _options(words: list[str]) -> Iterator[tuple[int, str]]:
    for place, word in enumerate(words):
        if word == "--":
            return
        if word.startswith("--"):
            yield place, word


def _rename_policies(words: list[str], place: int, before: str) -> list[str]:
    """Replace old names in the list of policies at a place; a warning for each."""
    if place >= len(words):
        return []
    names = words[place].removeprefix(before).split(",")
    words[place] = before + ",".join(POLICIES.get(name, name) for name in names)
    return [f"policy {name!r} is deprecated: use {POLICIES[name]!r}" for name in names if name in POLICIES]

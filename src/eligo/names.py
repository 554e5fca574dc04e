"""The names of tasks: any hashable objects, strings if the dag was read from a file; and their labels, as text."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import category

from eligo.errors import DuplicateTaskError, InputError, shorten

#: the name of a task
Name = Any

LONGEST_NAME = 10_000
LONGEST_WORKFLOW_NAME = 200
#: the form of a label such as "gpu" or "site-a"
LABEL = "[A-Za-z0-9][A-Za-z0-9_.:/=+-]{0,63}"


def labels_of(names: tuple[Name, ...]) -> tuple[str, ...]:
    """The names as distinct strings: unchanged if they are strings, else as Python prints them.

    >>> labels_of(("a", ("x", 0))), labels_of((1, "1"))
    (('a', "('x', 0)"), ('1', "'1'"))
    """
    if set(map(type, names)) <= {str}:
        return names
    labels = tuple(map(str, names))
    plain = len(set(labels)) == len(labels) and all(map(str.isprintable, labels))
    return labels if plain else _number_duplicates(map(repr, names))


def check_label(label: object, where: str = "") -> None:
    """Raise if a label of a machine is invalid; *where* is the start of the message.

    >>> check_label("two words")
    Traceback (most recent call last):
    eligo.errors.InputError: label 'two words' must be 1 to 64 letters, digits or _.:/=+- and begin with a letter or digit
    """
    if not isinstance(label, str) or not re.fullmatch(LABEL, label):
        rule = "must be 1 to 64 letters, digits or _.:/=+- and begin with a letter or digit"
        raise InputError(f"{where}label {shorten(label)!r} {rule}")


def check_workflow_name(name: str) -> None:
    r"""Refuse a name that does not fit on one line.

    >>> check_workflow_name("two\nlines")
    Traceback (most recent call last):
    eligo.errors.InputError: workflow name 'two\nlines' must have at most 200 characters, all printable (give another name)
    """
    if len(name) > LONGEST_WORKFLOW_NAME or not name.isprintable():
        rule = f"must have at most {LONGEST_WORKFLOW_NAME} characters, all printable"
        raise InputError(f"workflow name {shorten(name)!r} {rule} (give another name)")


def without_shared_path(names: Sequence[str]) -> list[str]:
    """The names without the dotted or slashed prefix that all share.

    >>> without_shared_path(["NF.ALIGN.BWA_1", "NF.ALIGN.SORT_2"])
    ['BWA_1', 'SORT_2']
    """
    first, last = min(names, default=""), max(names, default="")
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    cut = max(first[:same].rfind(mark) for mark in "./:") + 1 if len(names) > 1 else 0
    return [name[cut:] for name in names]


def checked_names(tasks: Iterable[Name]) -> tuple[Name, ...]:
    """The names as a tuple, checked to be hashable, printable and unique."""
    names = tuple(tasks)
    if not _are_plain(names):
        for name in names:
            _check_name(name)
    if len(set(names)) < len(names):
        raise DuplicateTaskError(Counter(names).most_common(1)[0][0])
    return names


def _are_plain(names: tuple[Name, ...]) -> bool:
    """Whether all names are valid strings, checked all at once."""
    try:
        return "".join(names).isprintable() and max(map(len, names), default=0) <= LONGEST_NAME
    except TypeError:  # not a string
        return False


def _check_name(name: object) -> None:
    if not isinstance(name, str):
        _check_hashable(name)
        return
    if len(name) > LONGEST_NAME:
        raise InputError(f"a task name has {len(name):,} characters, more than the limit of {LONGEST_NAME:,}")
    if not name.isprintable() and any(category(c) in {"Cc", "Cs"} for c in name):
        raise InputError(f"task name {shorten(ascii(name))} contains a control character")


def _check_hashable(name: object) -> None:
    try:
        hash(name)
    except TypeError:
        raise InputError(f"a task name must be hashable, got {shorten(name)}") from None


def _number_duplicates(labels: Iterable[str]) -> tuple[str, ...]:
    """The labels, made printable, with a number appended to each duplicate."""
    labels = [label if label.isprintable() else ascii(label)[1:-1] for label in labels]
    times, taken, numbers = Counter(labels), set(labels), Counter[str]()
    for i, label in enumerate(labels):
        if times[label] > 1:
            while (fresh := f"{label}#{numbers[label] + 1}") in taken:
                numbers[label] += 1
            numbers[label] += 1
            taken.add(fresh)
            labels[i] = fresh
    return tuple(labels)

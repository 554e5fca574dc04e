"""Defaults of our own document: the object `defaults`, with keys that every task has unless it has its own.

>>> with_defaults({"defaults": {"env": {"A": "1"}, "cores": 2}, "tasks": [{"name": "a", "env": {"B": "2"}, "cores": 4}]})
{'tasks': [{'env': {'A': '1', 'B': '2'}, 'cores': 4, 'name': 'a'}]}
"""

from collections.abc import Mapping
from typing import Any

from eligo.formats.shared.document import TASK_KEYS, MisfitError, mapping

DEFAULTS = "defaults"
#: the keys of a task that have no default, since each task has its own
OWN_KEYS = ("name", "after", "run", "inputs", "outputs")
#: objects, of which a task adds its own entries to those of the defaults
MERGED = "env"


def with_defaults(document: object) -> object:
    """The document with its defaults in every task; errors in the tasks are left to its reader."""
    if not isinstance(document, dict) or document.get(DEFAULTS) is None:
        return document
    defaults = _checked(mapping(document[DEFAULTS], f'"{DEFAULTS}"'))
    if not isinstance(document.get("tasks"), list):
        raise MisfitError(f'"{DEFAULTS}" needs "tasks", which this document does not have', DEFAULTS)
    rows = [_merged(defaults, row) if isinstance(row, dict) else row for row in document["tasks"]]
    return {key: rows if key == "tasks" else value for key, value in document.items() if key != DEFAULTS}


def _checked(defaults: Mapping[str, Any]) -> Mapping[str, Any]:
    allowed = [key for key in TASK_KEYS if key not in OWN_KEYS]
    wrong = next((key for key in defaults if key not in allowed), None)
    if wrong is not None:
        raise MisfitError(
            f'"{DEFAULTS}" cannot have the key {wrong!r} (possible keys: {", ".join(allowed)})', str(wrong)
        )
    return defaults


def _merged(defaults: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**defaults, **{key: value for key, value in row.items() if value is not None}}
    usual, own = defaults.get(MERGED), row.get(MERGED)
    if isinstance(usual, dict) and isinstance(own, dict):
        merged[MERGED] = {**usual, **own}
    return merged

"""Snakemake's benchmarks: one file for each job, with one row for each repetition.

    s       h:m:s    max_rss  max_vms  max_uss  max_pss  io_in  io_out  mean_load  cpu_time
    12.3456 0:00:12  ...

Only the file's name identifies the job, and the rule chooses that name. Therefore the file's name without suffixes counts
as a task, and its folder's name as a rule. With `--benchmark-extended`, the columns `rule_name` and `wildcards` identify the
job. In a .jsonl file, every row is a JSON object.
"""

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping

from eligo.errors import FormatError, shorten
from eligo.formats.histories import Parsed, is_blank, left_out, seconds_in
from eligo.formats.shared.files import plain_name
from eligo.workflow import Timed

NAME = "snakemake"

_SUFFIXES = re.compile(r"(?:\.(?:tsv|txt|csv|jsonl|log|bench|benchmarks?))+$", re.IGNORECASE)
_RULE = ("rule_name", "rule")
LONGEST_WILDCARDS = 10_000


def sniff(text: str) -> bool:
    """Whether the first line has the columns of a benchmark."""
    first = text.lstrip().partition("\n")[0]
    if first.startswith("{"):
        return '"h:m:s"' in first and '"s"' in first
    return {"s", "h:m:s"} <= {title.strip() for title in first.split("\t")}


def parse(text: str, path: str) -> Parsed:
    """The run times of the job of a benchmark, one for each row."""
    records: list[Timed] = []
    untimed = 0
    for row, line in _objects(text) if text.lstrip().startswith("{") else _cells(text):
        if is_blank(row.get("s", "")):
            untimed += 1
            continue
        records += _records(row, path, seconds_in(row["s"], line=line))
    return Parsed(records, left_out(untimed, "run without a time", "runs without a time"))


def _cells(text: str) -> Iterator[tuple[Mapping[str, str], int]]:
    """The rows of a table, by the titles of columns, and their lines."""
    lines = text.split("\n")
    begin = next(number for number, line in enumerate(lines) if line.strip())
    titles = [title.strip() for title in lines[begin].split("\t")]
    for number, line in enumerate(lines[begin + 1 :], begin + 2):
        if line.strip():
            yield dict(zip(titles, line.split("\t"), strict=False)), number


def _objects(text: str) -> Iterator[tuple[Mapping[str, str], int]]:
    """The rows of a JSON lines file, and their lines."""
    for number, line in enumerate(text.split("\n"), 1):
        try:
            row = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            raise FormatError(f"this row must be valid JSON, got {shorten(line)!r}", line=number) from None
        if isinstance(row, dict):
            yield {key: str(value) for key, value in row.items()}, number
        elif row is not None:
            raise FormatError(f"this row must be a JSON object, got {shorten(line)!r}", line=number)


def _records(row: Mapping[str, str], path: str, seconds: float) -> list[Timed]:
    rule = next((row[title].strip() for title in _RULE if not is_blank(row.get(title, ""))), None)
    if rule is not None:
        return [Timed(_job(rule, row.get("wildcards", "")), rule, seconds)]
    folder, file = os.path.split(plain_name(path))
    stem, folder = _SUFFIXES.sub("", file), os.path.basename(folder)
    return [Timed(stem, None, seconds), *([Timed(None, folder, seconds)] if folder not in {"", ".", stem} else [])]


def _job(rule: str, wildcards: str) -> str | None:
    """The name of the job in Snakemake's drawings: the rule and its wildcards; None if these cannot be read.

    >>> _job("sort", "{'sample': 'A'}")
    'sort sample: A'
    """
    try:
        values = ast.literal_eval(wildcards) if len(wildcards) <= LONGEST_WILDCARDS else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return " ".join([rule, *(f"{key}: {value}" for key, value in values.items())]) if isinstance(values, dict) else None

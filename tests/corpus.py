"""Reads, plans, verifies and converts every file of a folder, each in a process with limits, and prints what failed by kind.

    make test-corpus FOLDER=path/to/many/files

Not part of the tests: it is how somebody with many files, and we, look for what to mend next. Nothing is written.
"""

import json
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SECONDS = 60  # for one file
MEMORY = 4 * 2**30  # bytes for one file
SHOWN = 3  # examples of each kind


def main() -> None:
    """Go through a folder, or be the process that looks at one file."""
    if sys.argv[1] == "--one":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        print(json.dumps(list(examined(sys.argv[2]))))
        return
    files = sorted(path for path in Path(sys.argv[1]).rglob("*") if path.is_file() and not path.name.startswith("."))
    kinds: dict[str, list[str]] = {}
    with ThreadPoolExecutor(2) as pool:
        for path, found in zip(files, pool.map(looked_at, files), strict=True):
            for kind in found:
                kinds.setdefault(kind, []).append(str(path))
    for kind, paths in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"{len(paths):6}  {kind}")
        for example in paths[:SHOWN] if not kind.startswith("ok") else ():
            print(f"          {example}")
    totals = Counter(kind.split(":")[0] for kind in kinds for _ in kinds[kind])
    print(f"{len(files):,} files: {', '.join(f'{count:,} {kind}' for kind, count in totals.most_common())}")


def looked_at(path: Path) -> list[str]:
    """What another process says of a file, or how that ended."""
    words = [sys.executable, __file__, "--one", str(path)]
    try:
        done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return [f"no end: more than {SECONDS} s"]
    try:
        found: list[str] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return [f"internal error: {alike(last)}"]
    return found


def examined(path: str) -> Iterator[str]:
    """Everything that is noteworthy of one file; "ok" where nothing is."""
    from eligo import EligoError, plan, read, verify

    try:
        flow = read(path)
    except EligoError as error:
        yield f"refused: {alike(str(error).replace(path, 'FILE'))}"
        return
    form = flow.origin.format if flow.origin else "?"
    found = plan(flow, "quick")
    if not verify(flow, found).holds:
        yield f"proof does not hold: {form}"
    failed = list(converted(path))
    yield from failed or [f"ok: {form}"]


def converted(path: str) -> Iterator[str]:
    """What goes wrong between this file, every format, and back."""
    from eligo import EligoError, formats, read

    flow = read(path)
    for target in formats.MODULES:
        if target in {"lines", "make"}:  # these cannot be written with dependencies
            continue
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "flow"
            try:
                formats.write(flow, place, target)
                back = read(place, target)
            except EligoError as error:
                yield f"not converted to {target}: {alike(str(error).replace(str(place), 'FILE'))}"
                continue
            if list(back.dag.arcs()) != list(flow.dag.arcs()) and set(back.dag.arcs()) != set(flow.dag.arcs()):
                yield f"lost on the way to {target}: arcs"
            if set(back.dag.tasks) != set(flow.dag.tasks):
                yield f"lost on the way to {target}: tasks"


def alike(message: str) -> str:
    """A message without what differs from file to file."""
    return re.sub(r"'[^']*'|\"[^\"]*\"|\b\d[\d,.]*\b", "…", message)[:160]


if __name__ == "__main__":
    main()

"""Files that describe a workflow to another program: what they look like, and how that program draws the dag.

>>> named("pipeline/Snakefile").what
'a Snakefile'
>>> print(refusal(looking("cwlVersion: v1.2\\nclass: Workflow")))
this looks like a CWL document, which is not read: `cwltool --print-dot FILE > dag.dot` draws its dag
"""

import os
import re
from typing import NamedTuple

from eligo.errors import FormatError
from eligo.formats.shared.files import plain_name

#: How much of a text is looked at.
GLANCE = 10_000

_PAGE = r"\A\s*+(?:<!--(?:[^-]|-(?!->))*+-->\s*+)*+<(?:!doctype\s++html|html)\b"


class Stranger(NamedTuple):
    """A kind of file that is not read: how such files are called, what their text looks like, and what to do instead."""

    what: str
    name: str
    looks: str
    instead: str


STRANGERS = (
    Stranger(
        "a CWL document",
        r".*\.cwl",
        r'(?:^|\{)\s*+"?cwlVersion"?\s*+:',
        "`cwltool --print-dot FILE > dag.dot` draws its dag",
    ),
    Stranger(
        "a Snakefile",
        r"snakefile.*|.*\.smk",
        r"^(?:rule|checkpoint)[ \t]+\w+:\s[^\0]*?^[ \t]+(?:input|output|shell|run|script):",
        "`snakemake --dag > dag.dot` or `snakemake --d3dag > dag.json` draws its dag",
    ),
    Stranger(
        "a Nextflow script",
        r".*\.nf",
        r"^nextflow\.(?:enable|preview)\.|^process[ \t]+\w+[ \t]*+\{",
        "`nextflow run FILE -preview -with-dag dag.mmd` draws its dag",
    ),
    Stranger(
        "the trace of a Nextflow run",
        "",
        r"\Atask_id\t",
        "a trace does not say which task needs which; `nextflow run ... -with-dag dag.mmd` draws that, and is read with it",
    ),
    Stranger(
        "a WDL document",
        r".*\.wdl",
        r"^version[ \t]+(?:1\.\d|draft-\d|development)\s[^\0]*?^(?:workflow|task)[ \t]+\w+[ \t]*+\{"
        r"|^workflow[ \t]+\w+[ \t]*+\{[^\0]*?^[ \t]*+call[ \t]",
        "`wdlviz --no-render FILE > dag.dot`, of wdlviz, draws its dag",
    ),
    Stranger(
        "a Makefile",
        r"(?:gnu)?makefile(?:\..*)?|.*\.mk",
        r"^\.PHONY[ \t]*+:",
        "`make -Bnd | make2graph > dag.dot`, of makefile2graph, draws its dag",
    ),
    Stranger(
        "a Python program",
        r".*\.pyw?",
        r"\A#!\s*+/[^\n]*python",
        "give its graph to eligo.plan, or let it write a parent and a child a line to a .arcs file",
    ),
    Stranger(
        "a script",
        r".*\.(?:sh|bash|pl|r)",
        r"\A#!\s*+/[^\n]*\b(?:(?:[bdk]a|z|k|c|tc|fi)?sh|perl|ruby|Rscript|node|awk|lua|tclsh|php|groovy|julia)\b",
        "write a parent and a child a line to a .arcs file",
    ),
    Stranger(
        "a page for a browser",
        "",
        _PAGE,
        "draw the dag as .dot or .mmd, as `nextflow run ... -with-dag dag.mmd` does",
    ),
)

#: A file whose name tells nothing and that begins so is for a program that is not known.
SCRIPT = Stranger("a script", "", r"\A#!\s*+/", "write a parent and a child a line to a .arcs file")


def named(path: str) -> Stranger | None:
    """What a file of this name is, if it is one that is not read."""
    name = os.path.basename(plain_name(path.lower()))
    return next((kind for kind in STRANGERS if re.fullmatch(kind.name, name)), None)


def is_page(text: str) -> bool:
    """Whether a text begins as a page for a browser does.

    >>> is_page("<!-- a licence -->\\n<html><body>"), is_page("<graphml>")
    (True, False)
    """
    return re.match(_PAGE, text[:GLANCE], re.IGNORECASE) is not None


def looking(text: str, named: bool = False) -> Stranger | None:
    """What a text is that begins so, if it is one that is not read; *named* where the file's name tells a format."""
    glance, kinds = text[:GLANCE], STRANGERS if named else (*STRANGERS, SCRIPT)
    return next((kind for kind in kinds if re.search(kind.looks, glance, re.MULTILINE | re.IGNORECASE)), None)


def refusal(kind: Stranger) -> FormatError:
    """The error that says what a file is and what to do instead."""
    return FormatError(f"this looks like {kind.what}, which is not read: {kind.instead}")

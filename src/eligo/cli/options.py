"""The options that several verbs share."""

from typing import Annotated

import typer

from eligo.cli.completing import offered

File = Annotated[str, typer.Argument(help="A workflow in any format that eligo reads; - reads standard input.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that eligo did not write.")]
Workers = Annotated[
    str | None,
    typer.Option(
        "--workers", help="Say when it ends on so many workers, or on 4x1.0,2x0.5 of some speeds; order for them."
    ),
]
Cores = Annotated[
    int | None, typer.Option("--cores", help="The same for so many cores in all, which tasks share as they need.")
]
Histories = Annotated[
    list[str] | None,
    typer.Option(
        "--history",
        metavar="FILE",
        help="How long tasks took in earlier runs: a trace, log, table, workflow or folder; may be repeated.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for programs.")]
EffortOption = Annotated[
    str,
    typer.Option(
        "--effort", autocompletion=offered("effort"), help="How long to look: quick, normal (seconds) or thorough."
    ),
]
SearchSeconds = Annotated[
    float | None, typer.Option("--seconds", help="Look no longer than this, whatever the effort.")
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        "--format",
        autocompletion=offered("format"),
        help="The input's format, where its name and content do not tell.",
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to", autocompletion=offered("format"), help="The format to write, where OUT's suffix does not tell."
    ),
]
Outside = Annotated[
    bool, typer.Option("--allow-outside", help="Also read files outside the input's folder where it names them.")
]
Args = Annotated[
    list[str] | None, typer.Option("--args", help="For JX: NAME=VALUE, or a file of names and values; may be repeated.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="WORD,...",
        help="Run without these things that the file asks for and a run does not do, such as PRE,POST; or all of them: all.",
    ),
]
Env = Annotated[bool, typer.Option("--env", help="For Makeflow: take variables from the environment.")]
Columns = Annotated[
    str | None, typer.Option("--columns", help="For tables: the titles of parents and children, FROM,TO.")
]
Trace = Annotated[
    str | None, typer.Option("--trace", help="For what Nextflow draws: the trace or report that has its tasks.")
]
Picture = Annotated[str | None, typer.Option("-o", "--output", help="A picture or page: .svg, .png or .html.")]
Reverse = Annotated[
    bool, typer.Option("--reverse", help="Turn every arc round: for graphs that point at what is needed first.")
]
OrderWritten = Annotated[
    str,
    typer.Option(
        autocompletion=offered("order", "policy"),
        help="The order used and written: finish (ends sooner), ready (most ready), fifo, a policy or a file.",
    ),
]
TextTo = Annotated[
    str | None,
    typer.Option(
        "--to",
        autocompletion=offered("format", "text"),
        help="The format to write, where OUT's suffix does not tell; also names, and snakemake for its rules.",
    ),
]
Prefer = Annotated[
    str,
    typer.Option(
        autocompletion=offered("prefer"),
        help="Among equally good orders: path (longest remaining path first) or finish (begun branches).",
    ),
]
Override = Annotated[
    bool,
    typer.Option("--override", help="Replace the priorities that tasks have; else they part them into classes."),
]
PriorityBase = Annotated[
    int | None, typer.Option(help="The priority of the first task; the others count down from it.")
]

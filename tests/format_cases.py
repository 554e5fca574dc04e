"""Random workflows and random damage, for the tests of several formats."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.workflow import Task, Workflow

nasty = st.sampled_from(["", " ", "->", "#", '"', "a b", "a->b", "#1", "1", "no", "~", "- a", "a: b", "\\", "\\n", "{", "$x",
                         "\ufeffx", "\u2028", "é", "😀", "'", "<<", "=", "&amp;", "]]>", "<a/>", "@a", "-x", ".a", "LOCAL a",
                         "x" * 200, "yes ", "\u3000", "%d", "a=b:c"])  # fmt: skip
names = nasty | st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=8)
plain_names = st.text("abAB01-_", min_size=1, max_size=5)
MEGABYTE = 2**20


@st.composite
def dags(draw: st.DrawFn, tasks: st.SearchStrategy[str]) -> Dag:
    """A dag of at most 8 tasks, listed in an order that has nothing to do with its arcs."""
    ordered = draw(st.lists(tasks, max_size=8, unique=True))
    pairs = [(a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []
    return Dag.from_arcs(chosen, draw(st.permutations(ordered)))


@st.composite
def workflows(
    draw: st.DrawFn, /, tasks: st.SearchStrategy[str], text: st.SearchStrategy[str], **known: Any
) -> Workflow:
    """A workflow whose files make no arc that the dag does not have; *known* are strategies for other details."""
    ordered = draw(st.lists(tasks, min_size=1, max_size=6, unique=True))
    pairs = [(a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :]]
    arcs = draw(st.lists(st.sampled_from(pairs), max_size=8, unique=True)) if pairs else []
    dag = Dag.from_arcs(arcs, draw(st.permutations(ordered)))
    details, free = {}, draw(st.lists(text.filter(bool), max_size=12, unique=True))
    outputs: dict[str, tuple[str, ...]] = {}
    for name in ordered:
        outputs[name] = tuple(free.pop() for _ in range(draw(st.integers(0, 2))) if free)
        above = [file for parent in dag.parents(name) for file in outputs[parent]]
        inputs = draw(st.lists(st.sampled_from(above), unique=True, max_size=3)) if above else []
        more = draw(st.fixed_dictionaries({}, optional=known))
        task = Task(name=name, inputs=tuple(inputs), outputs=outputs[name], **more)
        if task.details():
            details[name] = task
    used = sorted({file for files in outputs.values() for file in files})
    sizes = draw(st.dictionaries(st.sampled_from(used), st.integers(0, 2**62), max_size=2)) if used else {}
    return Workflow(dag, details, file_sizes=sizes)


def accepts_or_refuses(parse: Callable[[str], Workflow], text: str) -> None:
    """Any other exception than an InputError of one line fails the test."""
    message = ""
    try:
        parse(text)
    except InputError as error:
        message = str(error)
    assert "\n" not in message


@st.composite
def damaged(draw: st.DrawFn, texts: list[str], pieces: list[str]) -> str:
    """One of the *texts* with a few cuts, repetitions, and insertions of *pieces* or of any sign."""
    text = draw(st.sampled_from(texts))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        piece = draw(st.sampled_from([*pieces, "", text[start : end + 5]]) | st.text(max_size=2))
        text = text[:start] + piece + text[end:]
    return text

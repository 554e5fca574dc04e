"""Draws the rooms in docs/develop/architecture.md from what the modules import; `make docs` runs it, and a test checks it.

python docs/develop/draw_architecture.py          # writes the drawing into the page
"""

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1] / "src" / "eligo"
PAGE = HERE / "architecture.md"
BEGIN, END = "<!-- drawn by draw_architecture.py -->\n", "<!-- end of the drawing -->\n"
WIDTH = 76

Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """Every module of the product by its dotted name."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {
        ".".join(("eligo", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in paths
    }


def imports(path: Path, known: Iterable[str]) -> set[str]:
    """The modules of the product that a file imports, also within functions."""
    found, known = set(), set(known)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "eligo":
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & known or {node.module}
            found |= {node.module} if names - known else set()
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "eligo"}
    return found & known


def module_graph() -> Graph:
    """The modules that each module imports."""
    known = modules()
    return {name: imports(path, known) - {name} for name, path in known.items()}


def room_of(module: str) -> str:
    """The room of a module: the package or module right below `eligo`; empty for `eligo` and `eligo.__main__` themselves."""
    return module.split(".")[1] if module not in {"eligo", "eligo.__main__"} else ""


def room_graph(graph: Mapping[str, set[str]]) -> Graph:
    """The rooms that each room leans on."""
    rooms: Graph = {}
    for module, targets in graph.items():
        if room_of(module):
            rooms.setdefault(room_of(module), set()).update(map(room_of, targets))
    return {room: targets - {room, ""} for room, targets in rooms.items()}


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """Modules that import one another in a cycle; empty if there is none."""
    done: set[str] = set()
    for start in graph:
        path, stack = [start], [iter(sorted(graph[start]))]
        while stack and start not in done:
            target = next(stack[-1], None)
            if target is None:
                done.add(path.pop())
                stack.pop()
            elif target in path:
                return [*path[path.index(target) :], target]
            elif target not in done:
                path.append(target)
                stack.append(iter(sorted(graph[target])))
    return []


def floors(rooms: Graph) -> list[list[str]]:
    """The rooms in layers, by the length of the longest path of imports below each, the lowest layer first."""
    height: dict[str, int] = {}

    def of(room: str) -> int:
        if room not in height:
            height[room] = 1 + max((of(below) for below in rooms[room]), default=-1)
        return height[room]

    for room in rooms:
        of(room)
    return [sorted(room for room in rooms if height[room] == floor) for floor in range(max(height.values()) + 1)]


def below(rooms: Graph, room: str) -> set[str]:
    """All rooms that a room leans on, directly or indirectly."""
    found = set(rooms[room])
    return found.union(*(below(rooms, other) for other in rooms[room]))


def leans_on(rooms: Graph, room: str) -> list[str]:
    """The rooms that a room leans on, without those that these lean on themselves."""
    return sorted(rooms[room] - set().union(*(below(rooms, other) for other in rooms[room])))


def summary(room: str) -> str:
    """The first sentence of a room's docstring, on one line."""
    path = SOURCE / room / "__init__.py" if (SOURCE / room).is_dir() else SOURCE / f"{room}.py"
    text = " ".join((ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").split("\n\n")[0].split())
    first = text.split(". ")[0].rstrip(".")
    return first if len(first) <= 110 else first[:107].rsplit(" ", 1)[0] + " ..."


def drawing() -> str:
    """The picture of the layers from the top, and the table of the rooms."""
    rooms = room_graph(module_graph())
    stack = list(reversed(floors(rooms)))
    line = "+" + "-" * WIDTH + "+"
    house = [line, *(part for floor in stack for part in (_floor(floor), line))]
    rows = [
        f"| `{room}` | {summary(room)} | {', '.join(leans_on(rooms, room)) or '-'} |"
        for floor in stack
        for room in floor
    ]
    head = ["| room | what it is | leans on |", "|---|---|---|"]
    return "\n".join(["```text", *house, "```", "", *head, *rows, ""])


def _floor(rooms: list[str]) -> str:
    return f"|{'   '.join(rooms):^{WIDTH}}|"


def page(text: str) -> str:
    """The page with the current drawing."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{drawing()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")

"""The contents of a ninja file and the files that it includes: rules, pools, variables in their scopes, and *edges*.

An edge is a build statement, which makes files from others. As in ninja itself, variables of files and edges, and all paths,
are expanded where they occur; commands of rules are expanded at the end. Variables of the edge take precedence over those of
its rule, and these over those of the file. If an edge has no variables of its own, a variable of the file takes precedence
over one of the rule with the same name.

A `$` begins a variable (`$flags`, `${flags}`) or escapes the next character (`$$`, `$ `, `$:`; `$^` is the end of a line). At
the end of a line, it joins that line with the next. A *template* has texts at even places and names of variables at odd ones.

>>> cursor = Cursor("flags = -I $\\n   inc\\nbuild $out/a$ b.o c | d: cc\\n")
>>> cursor.name(), cursor.sign("="), cursor.value()
('flags', True, ('-I inc',))
>>> cursor.name(), cursor.path(), cursor.path(), cursor.path(), cursor.sign("|"), cursor.path(), cursor.sign(":")
('build', ('', 'out', '/a b.o'), ('c',), None, True, ('d',), True)
>>> canonical("./out//a/../b.o"), canonical("/usr/./lib/"), canonical("a/..")
('out/b.o', '/usr/lib', '.')
"""

import re
from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass, field

from eligo.errors import FormatError, InputError, shorten
from eligo.formats.shared.files import Beside
from eligo.formats.shared.rules import DEEPEST, Allowance

# Words

Template = tuple[str, ...]
Lookup = Callable[[str], str]

_NAME = re.compile(r"[a-zA-Z0-9_.-]++")
_NOTHING = re.compile(r"(?: *+(?:#[^\n]*+)?\r?\n)*+")
_COMMENTS = re.compile(r"(?: *+#[^\n]*+\n)*+")
_INDENT = re.compile(r" ++(?!\r?\n)")
_GAP = re.compile(r"(?: ++|\$\r?\n)*+")
_END = re.compile(r" *+\r?\n")
_PLAIN = {True: re.compile(r"[^$ :|\r\n]++(?=[ :|\n]|\r\n)"), False: re.compile(r"[^$\r\n]*+(?=\r?\n)")}
_PART = {
    path: re.compile(
        rf"(?P<text>[^${signs}\r\n]++)|\$(?:(?P<sign>[$ :^])|\{{(?P<braced>[a-zA-Z0-9_.-]++)\}}"
        r"|(?P<name>[a-zA-Z0-9_-]++)|\r?\n *+)"
    )
    for path, signs in ((True, " :|"), (False, ""))
}
_ODD = re.compile(r"(?:^|/)\.{0,2}(?:/|$)")
_SAFE = re.compile(r"[A-Za-z0-9_+./-]*")


class Cursor:
    """A text, and a place up to which it is read."""

    def __init__(self, text: str) -> None:
        self.text = text if text.endswith("\n") else f"{text}\n"
        self.at = 0
        self._counted = (0, 1)  # a place, and the number of its line

    def begin(self) -> bool:
        """Go to the next line that is not empty or a comment; returns whether there is one."""
        self._pass(_NOTHING)
        if self.at == len(self.text):
            return False
        if self.text[self.at] == " ":
            raise self.error("an indented line must follow a rule, a pool or a build statement")
        return True

    def next_indented(self) -> bool:
        """Go to the text of the next line, after comments, if it is indented; returns whether it is."""
        start = self.at
        self._pass(_COMMENTS)
        match = _INDENT.match(self.text, self.at)
        self.at = match.end() if match else start
        return match is not None

    def name(self) -> str:
        """Read a name; returns an empty string if there is none here."""
        match = _NAME.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        self._pass(_GAP)
        return match[0]

    def sign(self, sign: str) -> bool:
        """Skip this sign if it is here; returns whether it is."""
        there = self.text.startswith(sign, self.at)
        if there:
            self.at += len(sign)
            self._pass(_GAP)
        return there

    def value(self) -> Template:
        """Read the rest of the line."""
        template = self._template(path=False)
        self.end()
        return template

    def path(self) -> Template | None:
        """Read a path; returns None if there is none here."""
        start = self.at
        template = self._template(path=True)
        if self.at == start:
            return None
        self._pass(_GAP)
        return template

    def paths(self) -> list[Template]:
        """Read paths up to a sign or the end of the line."""
        paths = []
        while (path := self.path()) is not None:
            paths.append(path)
        return paths

    def end(self) -> None:
        """Skip the end of the line."""
        match = _END.match(self.text, self.at)
        if match is None:
            rest = self.text[self.at : self.at + 20].partition("\n")[0]
            tabs = "a tab is not allowed here (ninja accepts only spaces)"
            raise self.error(tabs if rest.startswith("\t") else f"expected the end of the line, got {shorten(rest)!r}")
        self.at = match.end()

    def error(self, message: str) -> FormatError:
        """The error with this message at this place."""
        return FormatError(message, line=self.line)

    @property
    def line(self) -> int:
        """The number of the current line."""
        place, number = self._counted if self._counted[0] <= self.at else (0, 1)
        self._counted = self.at, number + self.text.count("\n", place, self.at)
        return self._counted[1]

    def _pass(self, pattern: re.Pattern[str]) -> None:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _template(self, path: bool) -> Template:
        plain = _PLAIN[path].match(self.text, self.at)
        if plain:
            self.at = plain.end()
            return (plain[0],)
        parts, pattern = [""], _PART[path]
        while match := pattern.match(self.text, self.at):
            self.at = match.end()
            if variable := match["braced"] or match["name"]:
                parts += variable, ""
            else:
                parts[-1] += match["text"] or ("\n" if match["sign"] == "^" else match["sign"] or "")
        if self.text.startswith("$", self.at):
            raise self.error("$ must be followed by a variable's name or one of $, :, ^ and a space (write $$ for a $)")
        return tuple(parts)


def expand(template: Template, lookup: Lookup, budget: Allowance, line: int | None) -> str:
    """The text of a template with the values of its variables."""
    if len(template) == 1:
        return template[0]
    parts = list(template)
    for i in range(1, len(parts), 2):
        parts[i] = lookup(parts[i])
    text = "".join(parts)
    budget.spend(len(text), 0, line)
    return text


def canonical(path: str) -> str:
    """The path as ninja normalises it, without . and .. steps."""
    root = "/" if path.startswith("/") else ""
    if not _ODD.search(path, len(root)):
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return root + "/".join(parts) or "."


def quote_path(path: str) -> str:
    """The path as ninja quotes it in a command."""
    return path if _SAFE.fullmatch(path) else "'" + path.replace("'", "'\\''") + "'"


# Words of the output


def escape(text: str, what: str, path: bool = False) -> str:
    """A value or a path, escaped; *what* describes it in the error if ninja cannot represent it.

    >>> print(escape("a b:c$", "a file", path=True), escape(" x $", "a command"))
    a$ b$:c$$ $ x $$
    """
    wrong = re.search(r"[\0\r\n]", text)
    if wrong:
        named = f"{what}, {shorten(text)!a}," if path else what
        error = FormatError(f"{named} contains {wrong[0]!a}, which ninja cannot represent")
        raise error.cured_by("file_names") if path else error
    if path and (not text or canonical(text) != text):
        message = f"{what} is named {shorten(text)!r}, which ninja would read as {shorten(canonical(text))!r}"
        raise FormatError(message).cured_by("file_names" if not text else "names")
    return re.sub(r"[$ :]", r"$\g<0>", text).replace("|", PIPE) if path else re.sub(r"\$|^ ", r"$\g<0>", text)


def fitted_file(name: str) -> str | None:
    """The name of a file as ninja normalises it; None if ninja cannot represent it.

    >>> fitted_file("./a//b"), fitted_file("a\\nb")
    ('a/b', None)
    """
    return None if not name or re.search(r"[\0\r\n]", name) else canonical(name)


#: the variable for |, the only sign that cannot be escaped in a path
PIPE = "${eligo_pipe}"


# Statements

#: The number of characters to which variables may expand, for each character of the input; and how many of them a character
#: of a file counts that is included again.
PER_SIGN, AGAIN = 64, 16
#: The variables of a rule.
RULE_VARIABLES = frozenset(
    ("command", "depfile", "deps", "description", "dyndep", "generator", "msvc_deps_prefix", "pool", "restat", "rspfile",
     "rspfile_content")
)  # fmt: skip


@dataclass(slots=True, eq=False)
class Recipe:
    """A rule, with a template for each variable."""

    name: str
    templates: dict[str, Template] = field(default_factory=dict)


#: The rule of an edge that makes nothing, but defines another name for its inputs.
PHONY = Recipe("phony")


@dataclass(slots=True, eq=False)
class Bindings:
    """The variables and rules of a file, or the variables of an edge, in front of those of the files around it."""

    values: ChainMap[str, str] = field(default_factory=ChainMap)
    recipes: ChainMap[str, Recipe] = field(default_factory=ChainMap)

    def value(self, name: str) -> str:
        """The value of a variable; empty if it is not set."""
        return next((table[name] for table in self.values.maps if name in table), "")


@dataclass(slots=True, eq=False)
class Edge:
    """A build statement, with the number of explicit outputs and inputs, which `$out` and `$in` refer to."""

    recipe: Recipe
    bindings: Bindings
    line: int
    outputs: list[str] = field(default_factory=list)
    explicit_outputs: int = 0
    inputs: list[str] = field(default_factory=list)
    explicit_inputs: int = 0
    order_only: list[str] = field(default_factory=list)
    validations: list[str] = field(default_factory=list)
    pool: str = ""

    @property
    def is_phony(self) -> bool:
        """Whether the edge makes nothing."""
        return self.recipe is PHONY


@dataclass(slots=True)
class Manifest:
    """The contents of all files."""

    edges: list[Edge] = field(default_factory=list)
    #: the number of the edge that makes each file
    maker: dict[str, int] = field(default_factory=dict)
    defaults: list[str] = field(default_factory=list)
    #: the number of tasks of each pool that may run at a time; 0 is unlimited
    pools: dict[str, int] = field(default_factory=lambda: {"console": 1})
    #: the limit on the expansion of variables
    budget: Allowance = field(default_factory=lambda: Allowance(0))

    def value(self, edge: Edge, name: str, quote: bool = True) -> str:
        """The value of a variable of an edge, with paths quoted for a shell unless *quote* is false."""
        return _Values(self, edge, quote).value(name)


class _Values:
    """The variables of an edge, while one of them is expanded."""

    def __init__(self, manifest: Manifest, edge: Edge, quote: bool) -> None:
        self.manifest, self.edge, self.quote = manifest, edge, quote
        self.pending: list[str] = []

    def value(self, name: str) -> str:
        edge = self.edge
        if name in {"in", "in_newline"}:
            return self._paths(edge.inputs[: edge.explicit_inputs], "\n" if name == "in_newline" else " ")
        if name == "out":
            return self._paths(edge.outputs[: edge.explicit_outputs], " ")
        template = edge.recipe.templates.get(name)
        if template is None or name in edge.bindings.values.maps[0]:
            return edge.bindings.value(name)
        if name in self.pending:
            circle = " -> ".join([*self.pending[self.pending.index(name) :], name])
            raise FormatError(
                f"variables of the rule {shorten(edge.recipe.name)!r} refer to each other: {circle}", line=edge.line
            )
        self.pending.append(name)
        text = expand(template, self.value, self.manifest.budget, edge.line)
        self.pending.pop()
        return text

    def _paths(self, paths: list[str], between: str) -> str:
        return between.join(map(quote_path, paths) if self.quote else paths)


def read_manifest(text: str, beside: Beside | None) -> Manifest:
    """The contents of a ninja text, with the files *beside* it that it includes."""
    manifest = Manifest(budget=Allowance(2**24 + PER_SIGN * len(text)))
    _Reader(text, manifest, beside, Bindings(recipes=ChainMap({PHONY.name: PHONY})), 0).read()
    return manifest


class _Reader:
    """Reads one file."""

    def __init__(self, text: str, manifest: Manifest, beside: Beside | None, scope: Bindings, depth: int) -> None:
        self.cursor, self.manifest, self.beside = Cursor(text), manifest, beside
        self.bindings, self.depth = scope, depth

    def read(self) -> None:
        statements: dict[str, Callable[[], None]] = {
            "build": self._build, "rule": self._rule, "pool": self._pool, "default": self._default,
            "include": lambda: self._include(self.bindings), "subninja": lambda: self._include(self._inside()),
        }  # fmt: skip
        cursor = self.cursor
        while cursor.begin():
            start, word = cursor.at, cursor.name()
            if word in statements:
                statements[word]()
            else:
                cursor.at = start
                name, value = self._let()
                self.bindings.values[name] = self._expand(value, self.bindings)

    def _inside(self) -> Bindings:
        return Bindings(self.bindings.values.new_child(), self.bindings.recipes.new_child())

    def _let(self) -> tuple[str, Template]:
        name = self.cursor.name()
        if not name or not self.cursor.sign("="):
            expected = "build, rule, pool, default, include, subninja or NAME = VALUE"
            raise self.cursor.error(f"a statement must be {expected}, got {shorten(name)!r}")
        return name, self.cursor.value()

    def _expand(self, template: Template, scope: Bindings) -> str:
        return (
            template[0] if len(template) == 1 else expand(template, scope.value, self.manifest.budget, self.cursor.line)
        )

    def _read_name(self, what: str) -> str:
        name = self.cursor.name()
        if not name:
            raise self.cursor.error(f"a {what} has no name")
        self.cursor.end()
        return name

    def _rule(self) -> None:
        line = self.cursor.line
        recipe = Recipe(self._read_name("rule"))
        if recipe.name in self.bindings.recipes.maps[0]:
            raise FormatError(f"duplicate rule {shorten(recipe.name)!r}", line=line)
        while self.cursor.next_indented():
            name, value = self._let()
            if name not in RULE_VARIABLES:
                message = f"unknown variable {shorten(name)!r} in a rule (known: {', '.join(sorted(RULE_VARIABLES))})"
                raise FormatError(message, line=self.cursor.line - 1)
            recipe.templates[name] = value
        if "command" not in recipe.templates:
            raise FormatError(f"the rule {shorten(recipe.name)!r} has no command", line=line)
        if ("rspfile" in recipe.templates) != ("rspfile_content" in recipe.templates):
            raise FormatError(
                f"the rule {shorten(recipe.name)!r} must have both rspfile and rspfile_content, or neither", line=line
            )
        self.bindings.recipes[recipe.name] = recipe

    def _pool(self) -> None:
        line, depth = self.cursor.line, ""
        name = self._read_name("pool")
        if name in self.manifest.pools:
            raise FormatError(f"duplicate pool {shorten(name)!r}", line=line)
        while self.cursor.next_indented():
            key, value = self._let()
            if key != "depth":
                message = f"unknown variable {shorten(key)!r} in a pool (known: depth)"
                raise FormatError(message, line=self.cursor.line - 1)
            depth = self._expand(value, self.bindings)
        if not (depth.isascii() and depth.isdecimal() and len(depth) < 10):
            raise FormatError(
                f"the depth of pool {shorten(name)!r} must be a number, got {shorten(depth)!r}", line=line
            )
        self.manifest.pools[name] = int(depth)

    def _default(self) -> None:
        for path in self._some(self.cursor.paths(), self.bindings):
            self._check_target(path)
            self.manifest.defaults.append(path)
        self.cursor.end()

    def _check_target(self, path: str) -> None:
        edges = self.manifest.edges
        if path not in self.manifest.maker and not any(path in e.inputs or path in e.order_only for e in edges):
            raise self.cursor.error(f"the default {shorten(path)!r} is in no build statement above it")

    def _include(self, scope: Bindings) -> None:
        cursor = self.cursor
        (path,) = self._some([path for path in [cursor.path()] if path is not None], self.bindings, plain=True)
        line = cursor.line
        cursor.end()
        if self.beside is None:
            raise FormatError(
                f"refers to the file {shorten(path)!r}, but this text has no folder to look in"
                " (read the workflow from a file)",
                line=line,
            )
        if self.depth >= DEEPEST:
            raise FormatError(f"files are included more than {DEEPEST} levels deep", line=line)
        place = None
        try:
            place = self.beside.place(path)
            again = place in self.beside.files
            text = self.beside.load(place)
            self.manifest.budget.spend((AGAIN if again else -PER_SIGN) * len(text), 0, None)
        except InputError as error:
            raise FormatError(f"in the included file {shorten(path)!r}: {_without_place(error)}", line=line).cured_by(
                error.remedy or ""
            ) from None
        try:
            _Reader(text, self.manifest, self.beside, scope, self.depth + 1).read()
        except InputError as error:
            raise error if error.path is not None else error.located(place) from None

    def _build(self) -> None:
        cursor, line = self.cursor, self.cursor.line
        outputs = cursor.paths()
        explicit = len(outputs)
        outputs += cursor.paths() if cursor.sign("|") else []
        if not cursor.sign(":"):
            raise cursor.error("a build statement must have the form build OUTPUT: RULE INPUT")
        name = cursor.name()
        recipe = self.bindings.recipes.get(name)
        if recipe is None:
            raise cursor.error(f"unknown rule {shorten(name)!r}" if name else "a build statement has no rule")
        inputs = cursor.paths()
        edge = Edge(recipe, self.bindings, line, explicit_outputs=explicit, explicit_inputs=len(inputs))
        inputs += cursor.paths() if not self._ahead("||", "|@") and cursor.sign("|") else []
        order_only = cursor.paths() if cursor.sign("||") else []
        checks = cursor.paths() if cursor.sign("|@") else []
        cursor.end()
        edge.bindings = self._own()
        edge.outputs, edge.inputs = self._some(outputs, edge.bindings), self._some(inputs, edge.bindings, least=0)
        edge.order_only = self._some(order_only, edge.bindings, least=0)
        edge.validations = self._some(checks, edge.bindings, least=0)
        self._add(edge)

    def _ahead(self, *signs: str) -> bool:
        return self.cursor.text.startswith(signs, self.cursor.at)

    def _own(self) -> Bindings:
        """The variables of an edge: those of the file if it has none of its own."""
        own: dict[str, str] = {}
        while self.cursor.next_indented():
            name, value = self._let()
            own[name] = self._expand(value, self.bindings)
        return Bindings(self.bindings.values.new_child(own), self.bindings.recipes) if own else self.bindings

    def _some(self, paths: list[Template], scope: Bindings, least: int = 1, plain: bool = False) -> list[str]:
        """The expanded paths."""
        names = [self._expand(path, scope) for path in paths]
        if len(names) < least or "" in names:
            raise self.cursor.error("the name of a file is missing, or empty")
        return names if plain else [canonical(path) for path in names]

    def _add(self, edge: Edge) -> None:
        """Add a complete build statement."""
        manifest, number = self.manifest, len(self.manifest.edges)
        for path in edge.outputs:
            if manifest.maker.setdefault(path, number) != number:
                other = manifest.edges[manifest.maker[path]].line
                raise FormatError(
                    f"two build statements write {shorten(path)!r}: this one and line {other}", line=edge.line
                )
        edge.pool = manifest.value(edge, "pool")
        if edge.pool and edge.pool not in manifest.pools:
            raise FormatError(f"unknown pool {shorten(edge.pool)!r}", line=edge.line)
        if edge.is_phony:  # old versions of CMake wrote such inputs
            edge.inputs = [path for path in edge.inputs if path not in edge.outputs]
        manifest.edges.append(edge)


def _without_place(error: InputError) -> str:
    return error.message if isinstance(error, FormatError) else str(error)

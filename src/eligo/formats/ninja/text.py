"""The words of a ninja file: names, values with variables in them, and paths.

A `$` begins a variable (`$flags`, `${flags}`) or takes the meaning from the sign after it (`$$`, `$ `, `$:`; `$^` is the end
of a line), and at the end of a line it joins that line with the next. A *template* has texts at its even places and names
of variables at its odd ones.

>>> cursor = Cursor("flags = -I $\\n   inc\\nbuild $out/a$ b.o c | d: cc\\n")
>>> cursor.name(), cursor.sign("="), cursor.value()
('flags', True, ('-I inc',))
>>> cursor.name(), cursor.path(), cursor.path(), cursor.path(), cursor.sign("|"), cursor.path(), cursor.sign(":")
('build', ('', 'out', '/a b.o'), ('c',), None, True, ('d',), True)
>>> canonical("./out//a/../b.o"), canonical("/usr/./lib/"), canonical("a/..")
('out/b.o', '/usr/lib', '.')
"""

import re
from collections.abc import Callable

from eligo.errors import FormatError, shorten
from eligo.formats.shared.allowance import Allowance

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
    """A text, and how far it is read."""

    def __init__(self, text: str) -> None:
        self.text = text if text.endswith("\n") else f"{text}\n"
        self.at = 0
        self._counted = (0, 1)  # up to where lines are counted, and the number of the line there

    def begin(self) -> bool:
        """Go to the next line that says something; whether there is one."""
        self._pass(_NOTHING)
        if self.at == len(self.text):
            return False
        if self.text[self.at] == " ":
            raise self.error(
                "an indented line belongs to a rule, a pool or a build statement above it, and there is none"
            )
        return True

    def indented(self) -> bool:
        """Whether the next line, comments aside, belongs to the statement above it; if so, go to what it says."""
        start = self.at
        self._pass(_COMMENTS)
        found = _INDENT.match(self.text, self.at)
        self.at = found.end() if found else start
        return found is not None

    def name(self) -> str:
        """The name that stands here; empty where none does."""
        found = _NAME.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        self._pass(_GAP)
        return found[0]

    def sign(self, sign: str) -> bool:
        """Whether this sign stands here; if so, go past it."""
        there = self.text.startswith(sign, self.at)
        if there:
            self.at += len(sign)
            self._pass(_GAP)
        return there

    def value(self) -> Template:
        """What stands here up to the end of the line, which is passed."""
        found = self._template(path=False)
        self.end()
        return found

    def path(self) -> Template | None:
        """The path that stands here; None where none does."""
        start = self.at
        found = self._template(path=True)
        if self.at == start:
            return None
        self._pass(_GAP)
        return found

    def paths(self) -> list[Template]:
        """The paths that stand here, up to a sign or the end of the line."""
        found = []
        while (path := self.path()) is not None:
            found.append(path)
        return found

    def end(self) -> None:
        """Go past the end of the line."""
        found = _END.match(self.text, self.at)
        if found is None:
            rest = self.text[self.at : self.at + 20].partition("\n")[0]
            tabs = "a tab stands here, and ninja takes only spaces"
            raise self.error(tabs if rest.startswith("\t") else f"the line should end before {shorten(rest)!r}")
        self.at = found.end()

    def error(self, message: str) -> FormatError:
        """What to say of what stands here."""
        return FormatError(message, line=self.line)

    @property
    def line(self) -> int:
        """The number of the line."""
        place, number = self._counted if self._counted[0] <= self.at else (0, 1)
        self._counted = self.at, number + self.text.count("\n", place, self.at)
        return self._counted[1]

    def _pass(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def _template(self, path: bool) -> Template:
        plain = _PLAIN[path].match(self.text, self.at)
        if plain:
            self.at = plain.end()
            return (plain[0],)
        parts, pattern = [""], _PART[path]
        while found := pattern.match(self.text, self.at):
            self.at = found.end()
            if variable := found["braced"] or found["name"]:
                parts += variable, ""
            else:
                parts[-1] += found["text"] or ("\n" if found["sign"] == "^" else found["sign"] or "")
        if self.text.startswith("$", self.at):
            raise self.error(
                "$ stands before a variable's name or one of $, :, ^ and a space: a $ itself is written $$"
            )
        return tuple(parts)


def filled(template: Template, lookup: Lookup, budget: Allowance, line: int | None) -> str:
    """The template with the values of its variables."""
    if len(template) == 1:
        return template[0]
    parts = list(template)
    for i in range(1, len(parts), 2):
        parts[i] = lookup(parts[i])
    text = "".join(parts)
    budget.spend(len(text), 0, line)
    return text


def canonical(path: str) -> str:
    """The path as ninja knows it, without detours."""
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


def quoted(path: str) -> str:
    """The path as ninja puts it into a command."""
    return path if _SAFE.fullmatch(path) else "'" + path.replace("'", "'\\''") + "'"


# Writing


def written(text: str, what: str, path: bool = False) -> str:
    """A value, or a path, escaped; *what* names it where ninja has no place for it.

    >>> print(written("a b:c$", "a file", path=True), written(" x $", "a command"))
    a$ b$:c$$ $ x $$
    """
    wrong = re.search(r"[\0\r\n]", text)
    if wrong:
        named = f"{what}, {shorten(text)!a}," if path else what
        error = FormatError(f"{named} holds {wrong[0]!a}, for which ninja has no place")
        raise error.cured_by("file_names") if path else error
    if path and (not text or canonical(text) != text):
        message = f"{what} is called {shorten(text)!r}, which ninja would read as {shorten(canonical(text))!r}"
        raise FormatError(message).cured_by("file_names" if not text else "names")
    return re.sub(r"[$ :]", r"$\g<0>", text).replace("|", PIPE) if path else re.sub(r"\$|^ ", r"$\g<0>", text)


def fitted_file(name: str) -> str | None:
    """The name of a file as ninja reads it, which is that of the same file; None where it has no place for it.

    >>> fitted_file("./a//b"), fitted_file("a\\nb")
    ('a/b', None)
    """
    return None if not name or re.search(r"[\0\r\n]", name) else canonical(name)


#: the variable that stands for the one sign that cannot be escaped in a path
PIPE = "${eligo_pipe}"

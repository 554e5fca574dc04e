"""The patterns of like(): POSIX extended ones, as far as they cannot take for ever to be looked for.

>>> like("apple", "pp.*e"), like("apple", "^pp")
(True, False)
"""

import re

from eligo.errors import FormatError, shorten

_PART = re.compile(
    r"(?P<many>[*+?]|\{\d{1,3}(?:,\d{0,3})?\})|(?P<open>\()|(?P<close>\))|(?P<either>\|)|(?P<end>\$)"
    r"|\\(?P<escaped>[^A-Za-z0-9])|\[(?P<not>\^?)(?P<class>\]?[^\]\[]*+)\]|(?P<plain>[^\\\[])",
    re.DOTALL,
)


def cost(text: str, pattern: str) -> int:
    """How many steps it may take to look for a pattern: every choice that it leaves multiplies them."""
    choices = sum(part.lastgroup in {"many", "either"} for part in _PART.finditer(pattern))
    return 2**62 if choices > 60 else max(2, len(text)) ** (choices + 1) >> 4


def like(text: str, pattern: str) -> bool:
    """Whether the pattern occurs in the text."""
    try:
        return re.search(_translated(pattern), text, re.DOTALL) is not None
    except (re.error, OverflowError):
        raise _refused(pattern) from None


def _translated(pattern: str) -> str:
    parts: list[str] = []
    end, before = 0, ""
    for part in _PART.finditer(pattern):
        group = str(part.lastgroup)
        if part.start() != end or (group == "many" and before in {"", "open", "close", "either", "many"}):
            break
        end, before = part.end(), group
        if group == "class":
            inside = re.sub(r"[\\&~|\[]", r"\\\g<0>", part["class"])
            parts.append(f"[{part['not']}{inside}]")
        elif group == "escaped":
            parts.append(re.escape(part["escaped"]))
        else:
            parts.append(r"\Z" if group == "end" else "(?:" if group == "open" else part[0])
    if end != len(pattern):
        raise _refused(pattern)
    return "".join(parts)


def _refused(pattern: str) -> FormatError:
    return FormatError(f"like() does not take the pattern {shorten(pattern)!r}: only plain ones are looked for")

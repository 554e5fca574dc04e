"""Texts of limited width: numbers in words, shortened names, and their estimated widths."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from unicodedata import east_asian_width

_SERIAL = re.compile(r"(?:[_\-.\s]*(?:ID)?\d+)+$")
_ILLEGIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def legible(text: str) -> str:
    r"""The text with characters replaced that XML documents must not contain.

    >>> legible("a\uffffb\x00")
    'a�b�'
    """
    return _ILLEGIBLE.sub("\ufffd", text)


def ordinal(number: int) -> str:
    """The number as an ordinal.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 21, 112, 1002)]
    ['1st', '2nd', '3rd', '4th', '11th', '21st', '112th', '1,002nd']
    """
    teen = number % 100 in {11, 12, 13}
    return f"{number:,}" + ("th" if teen else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th"))


def places(numbers: Sequence[int]) -> str:
    """Ascending ordinals in short: a dash between consecutive ones, dots between others.

    >>> places([3]), places([2, 3, 4]), places([2, 5, 9])
    ('3rd', '2nd–4th', '2nd … 9th')
    """
    first, last = numbers[0], numbers[-1]
    if first == last:
        return ordinal(first)
    return f"{ordinal(first)}{'–' if last - first + 1 == len(numbers) else ' … '}{ordinal(last)}"


def kinds(names: Sequence[str]) -> str:
    """The kinds of several blocks, in order, in short.

    >>> kinds(["W(3,2)"]), kinds(["N(1)"] * 120), kinds(["W(1,2)", "W(2,2)", "W(3,2)"])
    ('W(3,2)', '×120 N(1)', '×3 W(1,2) … W(3,2)')
    """
    different = list(dict.fromkeys(names))
    text = ", ".join(different) if len(different) < 3 else f"{different[0]} … {different[-1]}"
    return text if len(names) == 1 else f"×{len(names):,} {text}"


def stem(names: Iterable[str]) -> str:
    """The common part of names without their serial numbers; of several, the most frequent.

    >>> stem(["mProject_ID01", "mProject_ID02"]), stem(["sort_1", "sort_2", "map_1"]), stem(["7", "8"])
    ('mProject', 'sort, …', '')
    """
    counts = Counter(_SERIAL.sub("", name) for name in names)
    (most, _), *others = counts.most_common(2)
    return most + ", …" if most and others else most


def text_width(text: str, size: float) -> float:
    """The approximate width of a text in points, in type of this size."""
    return sum(map(_letter_width, text)) * size


def _letter_width(letter: str) -> float:
    if east_asian_width(letter) in "WF":
        return 1.0
    if letter in " .,:;|'!()[]fijlt":
        return 0.38
    return 0.95 if letter in "mwMW@%…→" else 0.7 if letter.isupper() else 0.62


def elide(text: str, room: float, size: float) -> str:
    """The text, or a part that fits in *room* points: after the last dot or slash, with the middle cut out.

    >>> elide("mProject_ID0000001", 50, 6), elide("NF.PREPARE.INDEX_7", 50, 6)
    ('mProje…00001', '…INDEX_7')
    """
    if text_width(text, size) <= room:
        return text
    last = max(map(text.rfind, "./:")) + 1
    if last and len(text) - last > 2:
        text = text[last:]
        if text_width(f"…{text}", size) <= room:
            return f"…{text}"
    for length in range(min(len(text) - 1, int(room / (0.38 * size)) + 1), 0, -1):
        short = f"{text[: (length + 1) // 2]}…{text[len(text) - length // 2 :]}"
        if text_width(short, size) <= room:
            return short
    return "…"


def wrapped(text: str, room: float, size: float) -> str:
    """The text in lines of at most *room* points, if its words are short enough.

    >>> wrapped("one two three", 40, 6)
    'one two\\nthree'
    """
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width(longer, size) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)

"""Words in bulk: a plain text of millions of lines, one or two words each, taken apart by whole-array operations.

What a person may also write, such as quotes and comments, makes a text not plain; such a text is for a reader that goes
line by line and can say what is wrong where.

>>> numbered_pairs("a b\\nlonely\\na -> c")
(('a', 'b', 'lonely', 'c'), array([0, 0], dtype=int32), array([1, 3], dtype=int32))
>>> numbered_pairs("a b c") is None
True
"""

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.rows import Ints, places

Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Words64 = NDArray[np.uint64]

#: The longest word of a plain text.
LONGEST = 256

_CHUNK = 8
_BLOCK = 2**19
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: a multiplier that mixes well
_MIX = np.uint64(32)
_FACTORS = [np.uint64(0x9E3779B97F4A7C15 ** (2 * k + 1) % 2**64) for k in range(30)]
#: for a word of which k bytes are left, what its next eight bytes are masked with
_MASKS = np.array([(1 << 8 * k) - 1 for k in range(_CHUNK + 1)], np.uint64)
_SPACE, _NEWLINE, _DASH, _HEAD = 32, 10, ord("-"), ord(">")
#: quotes, comments, and control characters beside those that part words and lines
_SPECIAL = frozenset('"#\x7f' + "".join(map(chr, range(_SPACE)))) - frozenset("\t\r\n")


class Words(NamedTuple):
    """Where words are in a text, and whether each has its pair after it."""

    data: Bytes  # the text, with eight bytes more
    start: Ints
    length: Ints
    paired: Bools


def numbered_pairs(text: str) -> tuple[tuple[str, ...], Ints, Ints] | None:
    """Every word once, by first appearance, and the numbers of the words of each pair; None where the text is not plain."""
    words = _words(text)
    owner = None if words is None else _first_like(words)
    if words is None or owner is None:
        return None
    firsts = np.flatnonzero(owner == np.arange(len(owner), dtype=np.int32))
    number = places(len(owner), firsts)[owner]
    tail = np.flatnonzero(words.paired)
    begin = words.start[firsts]
    cuts = zip(begin.tolist(), (begin + words.length[firsts]).tolist(), strict=True)
    return tuple([text[a:b] for a, b in cuts]), number[tail], number[tail + 1]


def _words(text: str) -> Words | None:
    """The words of a plain text, without arrows between two."""
    if not text.isascii() or any(sign in text for sign in _SPECIAL) or len(text) > 2**30 or sys.byteorder != "little":
        return None
    data = np.frombuffer(text.encode() + bytes(_CHUNK), np.uint8)
    blocks: list[tuple[Ints, Ints, Bools, int]] = []
    begin = 0
    while begin < len(text) or not blocks:
        end = text.find("\n", begin + _BLOCK) + 1 or len(text)
        block = _block(data, begin, end)
        if block is None:
            return None
        blocks.append(block)
        begin = end
    start, length, paired, arrow_counts = zip(*blocks, strict=True)
    if sum(arrow_counts) != text.count("->"):  # one is inside a word
        return None
    return Words(data, np.concatenate(start), np.concatenate(length), np.concatenate(paired))


def _block(data: Bytes, begin: int, end: int) -> tuple[Ints, Ints, Bools, int] | None:
    """The words of some whole lines, and the number of arrows; blocks that fit a processor's cache are walked faster."""
    part = data[begin:end]
    inside = np.zeros(len(part) + 2, np.bool_)
    np.greater(part, _SPACE, out=inside[1:-1])
    edge = np.flatnonzero(inside[1:] != inside[:-1]).astype(np.int32)
    start, length = edge[::2], edge[1::2] - edge[::2]
    if length.max(initial=0) > LONGEST:
        return None
    event = part == _NEWLINE
    event[start] = True
    newline = part[np.flatnonzero(event)] == _NEWLINE
    line = np.cumsum(newline, dtype=np.int32)[~newline]
    arrow = (length == 2) & (part[start] == _DASH) & (part[np.minimum(start + 1, len(part) - 1)] == _HEAD)
    if arrow.any() and not _all_between(np.flatnonzero(arrow), arrow, line):
        return None
    start, length, line = start[~arrow], length[~arrow], line[~arrow]
    paired = np.zeros(len(line), np.bool_)
    np.equal(line[1:], line[:-1], out=paired[:-1])
    if (paired[1:] & paired[:-1]).any():  # three in a line
        return None
    return start + np.int32(begin), length, paired, int(arrow.sum())


def _all_between(where: NDArray[np.intp], arrow: Bools, line: Ints) -> bool:
    """Whether each arrow stands between two words of its line."""
    if where[0] == 0 or where[-1] == len(arrow) - 1 or arrow[where - 1].any():
        return False
    return bool(((line[where - 1] == line[where]) & (line[where + 1] == line[where])).all())


def _first_like(words: Words) -> Ints | None:
    """For every word, the first word that is the same; None where different words cannot be told apart."""
    key = np.zeros(len(words.start), np.uint64)
    several = int(words.length.max(initial=0)) > _CHUNK
    for offset in range(0, int(words.length.max(initial=0)), _CHUNK):
        key ^= _chunk(words, offset)
        if several:
            key *= _ODD
            key ^= key >> _MIX
    owner = _first_equal(key)
    return None if owner is None or (several and not _all_same(words, owner)) else owner


def _chunk(words: Words, offset: int) -> Words64:
    """Eight bytes of every word from *offset* on, zeros where it ends before."""
    wide: Words64 = np.ndarray(len(words.data) - _CHUNK + 1, np.uint64, words.data.data, strides=(1,))
    left = np.clip(words.length - offset, 0, _CHUNK)
    return wide[np.minimum(words.start + offset, len(wide) - 1)] & _MASKS[left]


def _all_same(words: Words, owner: Ints) -> bool:
    """Whether every word is letter by letter the same as its owner."""
    if not np.array_equal(words.length[owner], words.length):
        return False
    chunks = (_chunk(words, offset) for offset in range(0, int(words.length.max()), _CHUNK))
    return all(np.array_equal(chunk[owner], chunk) for chunk in chunks)


def _first_equal(key: Words64) -> Ints | None:
    """For every place, the first place of the same key; None for keys that were chosen to make this slow.

    Each round throws the keys that are left into slots; the first place in a slot settles all places of its key. What shared
    a slot with an earlier key goes on to the next round, with another multiplier.
    """
    owner = np.empty(len(key), np.int32)
    left = np.arange(len(key), dtype=np.int32)
    for factor in _FACTORS:
        if not len(left):
            break
        mine = key if len(left) == len(key) else key[left]
        bits = max(len(left).bit_length() + 1, 4)
        slot = (((mine ^ (mine >> _MIX)) * factor) >> np.uint64(64 - bits)).astype(np.int32)
        table = np.empty(1 << bits, np.int32)
        table[slot[::-1]] = left[::-1]  # of several that share a slot, what is written last stays: the first
        first = table[slot]
        settled = key[first] == mine
        owner[left[settled]] = first[settled]
        left = left[~settled]
    return None if len(left) else owner

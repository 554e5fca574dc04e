"""Decoding of JSON bodies: objects with a repeated key are refused, and large bodies do not block other requests.

A small body is decoded at once. A large one is decoded in short steps, one body at a time and callers in turn; other requests
are answered between two steps. Values are counted before decoding, because many of them cost more than their size suggests.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from eligo.server.http.refusals import RefusedError
from eligo.server.schema import encode

SMALL = 16_384  # bytes that are decoded at once
PART = 2**18  # bytes of a large body that are examined in one step
TOKENS = 2_000  # keys, strings and braces that are examined in one step
MOST_VALUES = 2**17  # in one body: elements of lists and fields of objects, and lists and objects within them
#: in a body without escapes: a string, with the colon that makes it a key; a structural character; anything else
TOKEN = re.compile(rb'("[^"]*")(\s*+:)?|[\[{},]|[^"\[{},]{1,256}+')
OPEN, CLOSE = b"{}"
VALUES = b",[{"  # there is one of these for each value except the first of a list or object
TEXT = b'"\\u003'  # may start a string with a colon
BLANKS = (b'" ', b'"\n', b'"\t', b'"\r')
Decode = Callable[[bytes], Any]
anything = msgspec.json.Decoder().decode


def read_small(body: bytes, decode: Decode) -> Any:
    """The message in a body, decoded at once."""
    words = decode(body)
    refuse_repeated(body, words)
    return words


class Reader:
    """Decodes large bodies one at a time; callers that have several waiting take turns with others."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(self, body: bytes, decode: Decode, caller: str) -> Any:
        """The message in a body, decoded step by step."""
        mine = self._turns.setdefault(caller, asyncio.Lock())
        async with mine, self._one:
            return await _read(body, decode)


async def _read(body: bytes, decode: Decode) -> Any:
    text = await _blank_in_steps(body)
    values = 0
    for mark in VALUES:
        values += text.count(mark)
        await asyncio.sleep(0)
    scanned = values > MOST_VALUES  # mostly inside strings, or there are too many
    if scanned:
        await _scan(body, text)
    await asyncio.sleep(0)
    words = decode(body)
    await asyncio.sleep(0)
    if not (scanned or await _is_plain(text, words)):
        await _scan(body, text)
    return words


async def _is_plain(text: bytes, words: object) -> bool:
    """Whether a count of keys proves that none is repeated, without looking at each."""
    encoded = encode(words)
    await asyncio.sleep(0)
    names = text.count(b'":')
    await asyncio.sleep(0)
    if names > (await _blank_in_steps(encoded)).count(b'":'):
        return False
    for sign in (TEXT, *(BLANKS if names < text.count(b":") else ())):
        await asyncio.sleep(0)
        if sign in text:
            return False
    return True


async def _blank_in_steps(body: bytes) -> bytes:
    r"""The body with blanks for escaped quotes and backslashes, so that every remaining quote starts or ends a string.

    >>> asyncio.run(_blank_in_steps(br'{"a\"\\": "\\\\\n"}'))
    b'{"a____": "____\\n"}'
    """
    if b"\\" not in body:
        return body
    parts = []
    for part in _parts(body):
        parts.append(_blank(part))
        await asyncio.sleep(0)
    return b"".join(parts)


def _parts(body: bytes) -> Iterator[bytes]:
    """The parts of a body; no part ends within an escape sequence."""
    first = 0
    while first < len(body):
        part = body[first : first + PART]
        if (len(part) - len(part.rstrip(b"\\"))) % 2:
            part = body[first : first + PART + 1]
        yield part
        first += len(part)


def _blank(body: bytes) -> bytes:
    return body.replace(b"\\\\", b"__").replace(b'\\"', b"__")


async def _scan(body: bytes, text: bytes) -> None:
    """Refuse a repeated key in one object, and too many values; *text* is the body with its escapes blanked."""
    tokens, names, values = TOKEN.finditer(text), [set[bytes]()], 0
    while step := [*islice(tokens, TOKENS)]:
        for token in step:
            if token[2]:
                _note(names[-1], body[token.start(1) : token.end(1)])
            elif not token[1]:
                mark = text[token.start()]
                values += mark in VALUES
                _nest(names, mark)
        if values >= MOST_VALUES:
            raise RefusedError(413, f"the body has more than {MOST_VALUES:,} values (send it in several requests)")
        await asyncio.sleep(0)


def _nest(names: list[set[bytes]], mark: int) -> None:
    """Enter or leave an object; an unmatched brace is refused when the body is decoded."""
    if mark == OPEN:
        names.append(set())
    elif mark == CLOSE and len(names) > 1:
        names.pop()


def _note(names: set[bytes], name: bytes) -> None:
    """Add a key, in quotes as it was sent, to those of its object; raises if it is there already."""
    if b"\\" in name:
        name = json.dumps(json.loads(name), ensure_ascii=False).encode("utf-8", "surrogatepass")
    if name in names:
        raise ValueError("a key is given twice in one object")
    names.add(name)


def _is_odd(text: bytes, names: int) -> bool:
    r"""Whether *names*, the number of quotes before a colon, is unreliable: whitespace or r"\u003a" may hide keys."""
    spaced = names < text.count(b":") and any(blank in text for blank in BLANKS)
    return spaced or TEXT in text


def refuse_repeated(body: bytes, words: object = None) -> None:
    r"""Refuse an object with a repeated key, because another reader could take the other value.

    Mostly, a quote before a colon ends a key or starts a string with a colon. Then it is enough to compare their number in
    the body with that after decoding, which leaves each key once: in the decoded message *words*, which has no keys that were
    not sent, or, if keys were unknown or had default values, in the body decoded without a type.

    >>> refuse_repeated(b'{"a": ":1", "b": {"a": 2}}')
    >>> for body in (b'{"b": [{"a": 1, "a": 2}]}', br'{"a": 1, "\u0061": 2}', b'{"a" :1, "a": 2}', b'{":": 1, ":": 2}'):
    ...     try:
    ...         refuse_repeated(body)
    ...     except ValueError as error:
    ...         print(error)
    a key is given twice in one object
    a key is given twice in one object
    a key is given twice in one object
    a key is given twice in one object
    """
    text = _blank(body) if b"\\" in body else body
    names = text.count(b'":')
    odd = _is_odd(text, names)
    if not odd and names <= _names(encode(words)):
        return
    if odd or names > _names(encode(anything(body))):
        json.loads(body, object_pairs_hook=_check_keys)


def _names(encoded: bytes) -> int:
    return (_blank(encoded) if b"\\" in encoded else encoded).count(b'":')


def _check_keys(pairs: list[tuple[str, Any]]) -> None:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a key is given twice in one object")

"""The beginning of `eligo top`: whether there is what it needs, and on which ground the terminal writes."""

import os
import re
import select
import sys
import time
from contextlib import suppress

from eligo.errors import InputError
from eligo.pages.sources import RunSource

NEEDED = 'eligo top needs Textual: pip install "eligo[top]", or use --once'
PATIENT = 0.2  # seconds that a terminal may take to say what its colours are
_GROUND = re.compile(rb"\]11;rgba?:([0-9a-fA-F]+)/([0-9a-fA-F]+)/([0-9a-fA-F]+)")


def show_top(source: RunSource) -> int:
    """Show it until somebody has seen enough."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("eligo top needs a terminal: use --once to print the current state")
    try:
        from eligo.cli.top import TopApp
    except ImportError as error:
        raise InputError(f"{NEEDED} ({error.name} is missing)") from None
    app = TopApp(source, dark=ground_is_dark())
    app.run()
    return int(app.return_code or 0)


def ground_is_dark() -> bool:
    """Whether the terminal's ground is dark, by its own word or what it answers; it is taken to be where neither says."""
    from eligo.cli.top_style import is_dark

    if os.environ.get("COLORFGBG"):
        return is_dark()
    try:
        return told_dark(_query_terminal())
    except (ImportError, OSError):
        return True


def told_dark(answer: bytes) -> bool:
    r"""Whether a terminal that answers so writes on dark ground.

    >>> told_dark(b"\x1b]11;rgb:ffff/ffff/dddd\x1b\\"), told_dark(b"\x1b]11;rgb:1e1e/1e1e/2e2e\x07"), told_dark(b"")
    (False, True, True)
    """
    match = _GROUND.search(answer)
    if match is None:
        return True
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in match.groups())
    return bool(0.299 * red + 0.587 * green + 0.114 * blue < 0.5)


def _query_terminal() -> bytes:
    """What the terminal answers when asked for its ground, and then for its kind, which all of them tell."""
    import termios
    import tty

    stream = sys.stdin.fileno()
    try:
        before = termios.tcgetattr(stream)
    except termios.error:
        return b""
    answer, end = b"", time.monotonic() + PATIENT
    try:
        tty.setcbreak(stream)
        os.write(sys.stdout.fileno(), b"\x1b]11;?\x1b\\\x1b[c")
        while (remaining := end - time.monotonic()) > 0 and not re.search(rb"\x1b\[\?[\d;]*c", answer):
            if select.select([stream], [], [], remaining)[0]:
                answer += os.read(stream, 256)
    finally:
        with suppress(termios.error):
            termios.tcsetattr(stream, termios.TCSAFLUSH, before)
    return answer

"""The last that a task printed, on standard output and on standard error, as the one text that travels and is kept."""

BETWEEN = "\x1e"  # the record separator of ASCII


def joined(out: str, err: str) -> str:
    """Both as one text; what was printed on standard output alone is that text.

    >>> joined("got it", ""), joined("", "oops")
    ('got it', '\\x1eoops')
    """
    out, err = (text.replace(BETWEEN, "\ufffd") for text in (out, err))
    return f"{out}{BETWEEN}{err}" if err else out


def parted(text: str) -> tuple[str, str]:
    """What was printed on standard output, and on standard error.

    >>> parted(joined("got it", "oops")), parted("got it")
    (('got it', 'oops'), ('got it', ''))
    """
    out, _, err = text.partition(BETWEEN)
    return out, err


def last_of(text: str) -> str:
    """What was printed on standard error, or, where that is empty, on standard output.

    >>> last_of(joined("got it", "oops")), last_of("got it")
    ('oops', 'got it')
    """
    out, err = parted(text)
    return err or out

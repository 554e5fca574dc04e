"""The ends of a task's standard output and standard error, combined into one text for transfer and storage."""

BETWEEN = "\x1e"  # the record separator of ASCII


def joined(out: str, err: str) -> str:
    """Both as one text; standard output alone is unchanged.

    >>> joined("got it", ""), joined("", "oops")
    ('got it', '\\x1eoops')
    """
    out, err = (text.replace(BETWEEN, "\ufffd") for text in (out, err))
    return f"{out}{BETWEEN}{err}" if err else out


def parted(text: str) -> tuple[str, str]:
    """The standard output and the standard error in a combined text.

    >>> parted(joined("got it", "oops")), parted("got it")
    (('got it', 'oops'), ('got it', ''))
    """
    out, _, err = text.partition(BETWEEN)
    return out, err


def last_of(text: str) -> str:
    """The standard error in a combined text, or the standard output if that is empty.

    >>> last_of(joined("got it", "oops")), last_of("got it")
    ('oops', 'got it')
    """
    out, err = parted(text)
    return err or out

"""The ends of a task's standard output and standard error, combined into one text for transfer and storage."""

BETWEEN = "\x1e"  # the record separator of ASCII


def join_tails(out: str, err: str) -> str:
    """Both as one text; standard output alone is unchanged.

    >>> join_tails("got it", ""), join_tails("", "oops")
    ('got it', '\\x1eoops')
    """
    out, err = (text.replace(BETWEEN, "\ufffd") for text in (out, err))
    return f"{out}{BETWEEN}{err}" if err else out


def split_tails(text: str) -> tuple[str, str]:
    """The standard output and the standard error in a combined text.

    >>> split_tails(join_tails("got it", "oops")), split_tails("got it")
    (('got it', 'oops'), ('got it', ''))
    """
    out, _, err = text.partition(BETWEEN)
    return out, err


def last_of(text: str) -> str:
    """The standard error in a combined text, or the standard output if that is empty.

    >>> last_of(join_tails("got it", "oops")), last_of("got it")
    ('oops', 'got it')
    """
    out, err = split_tails(text)
    return err or out

"""How much the variables of a text may stand for, so that no small file becomes a large one."""

from eligo.errors import FormatError

#: How deep variables may stand in the values of variables
DEEPEST = 32


class Allowance:
    """How many signs variables may still add."""

    def __init__(self, signs: int) -> None:
        self.left = signs

    def spend(self, signs: int, depth: int, line: int | None) -> None:
        """Take the value of a variable, so many signs long."""
        self.left -= signs + 16
        if self.left < 0 or depth > DEEPEST:
            raise FormatError("variables stand for too much, or for themselves", line=line)

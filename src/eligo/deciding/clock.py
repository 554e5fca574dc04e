"""How long work may take, and how to end it early."""

import math
import time
from dataclasses import dataclass, field


@dataclass(eq=False)
class Clock:
    """When the work must end: after so many seconds, or at once when somebody stops it.

    >>> clock = Clock(3600.0)
    >>> clock.over()
    False
    >>> clock.stop()
    >>> clock.over(), clock.part(10.0).over()
    (True, True)
    """

    seconds: float = math.inf
    whole: "Clock | None" = None
    end: float = field(init=False)

    def __post_init__(self) -> None:
        self.end = time.monotonic() + self.seconds

    def over(self) -> bool:
        """Whether time is up."""
        return time.monotonic() >= self.end or (self.whole is not None and self.whole.over())

    @property
    def left(self) -> float:
        """The seconds until then."""
        own = max(0.0, self.end - time.monotonic())
        return own if self.whole is None else min(own, self.whole.left)

    def stop(self) -> None:
        """Let time be up now, for this clock and its parts."""
        self.end = -math.inf

    def part(self, seconds: float) -> "Clock":
        """A clock for a part of the work, which ends with the whole at the latest."""
        return Clock(seconds, self)


FOREVER = Clock()

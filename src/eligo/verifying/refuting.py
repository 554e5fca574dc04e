"""How the checker says no."""

import numpy as np


class Refuted(Exception):  # noqa: N818 - an answer, not an error
    """Why a proof does not hold."""


def require(condition: bool | np.bool_, reason: str, error: type[Exception] = Refuted) -> None:
    """Go on only where the condition holds."""
    if not condition:
        raise error(reason)

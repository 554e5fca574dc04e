"""What is not done, and how that is told: a status, one sentence, and the id of the request."""

import json

from eligo.errors import EligoError


class RefusedError(EligoError):
    """A request is refused with an HTTP status and a sentence; `after` says in how many seconds to come again."""

    def __init__(self, status: int, sentence: str, after: float | None = None, **headers: str) -> None:
        self.status, self.sentence, self.after = status, sentence, after
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if after is not None:
            self.headers["retry-after"] = str(max(1, round(after)))
        super().__init__(sentence)


def told(sentence: str, request: str) -> bytes:
    """The body of a refusal.

    >>> told("there is no task 'x'", "7f-1")
    b'{"error":"there is no task \\'x\\'","request":"7f-1"}'
    """
    return json.dumps({"error": sentence, "request": request}, separators=(",", ":")).encode()
